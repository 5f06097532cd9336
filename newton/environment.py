"""Reading of the environment variables and the settings file, without validation.

No other module reads the environment. This module imports only the standard library, so that commands that the daemon
runs start fast.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from newton.errors import ConfigError

ENV_PREFIX = "NEWTON_"
# Environment variables that are not settings: the path of the settings file, and a client's token for a daemon and,
# for hooks, its URL.
CONFIG_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE = "NEWTON_CONFIG", "NEWTON_TOKEN", "NEWTON_URL"
SETTINGS_FILE = "newton.toml"
SERVERS_FILE = "mcp.json"  # in the data folder; `newton mcp add` writes it
CHAT_HISTORY = "history"  # file in the data folder: the inputs of `newton chat`
DEFAULT_DATA_DIR = "~/.local/share/newton"
LOCAL_TIME_FILE = Path("/etc/localtime")

# Keep ONNX Runtime from storing a machine id in the user's cache folder and looking up a host of its vendor, and
# tiktoken from copying its tables, which are bundled with Newton, to a shared temporary folder.
LIBRARY_VARIABLES = {"ORT_DISABLE_TELEMETRY": "1", "TIKTOKEN_CACHE_DIR": ""}

# Variables shared with other tools, and the settings they set. NEWTON_* variables take precedence.
SHARED_VARIABLES = {
    "DATABASE_URL": "database_url",
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_BASE_URL": "openai_base_url",
    "OPENAI_MODEL": "openai_model",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
    "ANTHROPIC_BASE_URL": "anthropic_base_url",
    "ANTHROPIC_MODEL": "anthropic_model",
    **{
        name.upper(): name
        for name in (
            "embeddings_device",
            "rag_chunk_size",
            "rag_chunk_overlap",
            "rag_top_k_max",
            "rag_similarity_threshold",
            "rag_re_rank_top_n",
            "rag_final_top_k",
            "rag_per_turn_memory_budget_tokens",
            "convo_summary_every_n_messages",
            "convo_summary_max_tokens",
        )
    },
}
# Settings that are secret: the variable NAME_FILE is the path of a file that has the value of the variable NAME.
SECRET_SETTINGS = ("database_url", "openai_api_key", "anthropic_api_key")
FILE_SUFFIX = "_FILE"
# Variables that libraries read, which select another database or account although all settings are the same.
LIBRARY_CHOICES = ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")

# The end of the name of a variable, a field or a header that has a secret.
SECRET_NAME = re.compile(r"(?:key|token|secret|password|passwd|passphrase|authorization|database_url)$", re.IGNORECASE)

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSources:
    """The unvalidated settings of a process: the values of the settings file, and the environment variables by name.

    `folder` is the working directory, to which paths are relative; `home` is the data folder. `library_choices` are the
    variables of LIBRARY_CHOICES that are set. `upstream_keys` has the API keys of the upstreams, by the name of the
    environment variable that `api_key_env` in a table `[models.NAME]` gives.
    """

    folder: str
    home: str
    file: str
    file_values: Mapping[str, Any]
    variables: Mapping[str, str]
    library_choices: Mapping[str, str]
    upstream_keys: Mapping[str, str]

    @property
    def values(self) -> dict[str, Any]:
        """Return the values of all settings by name. Environment variables take precedence over the file."""
        return {**self.file_values, **to_setting_values(self.variables)}


def read_sources(env: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None) -> SettingSources:
    """Read the settings file and the environment. `flags` are further settings by name, which may contain `models`.

    Raises ConfigError for a missing or invalid file, and for a secret that is set twice or cannot be read.
    """
    environment = _read_secret_files(os.environ if env is None else env)
    path, file_values = _read_file(environment.get(CONFIG_VARIABLE))
    variables = {name: value for name, value in environment.items() if _is_setting(name, value)}
    data_dir = to_setting_values(variables).get("data_dir", file_values.get("data_dir", DEFAULT_DATA_DIR))
    return SettingSources(
        folder=str(Path.cwd()),
        home=str(Path.cwd() / Path(str(data_dir)).expanduser()),
        file=str(path),
        file_values=file_values,
        variables=variables,
        library_choices={name: environment[name] for name in LIBRARY_CHOICES if environment.get(name)},
        upstream_keys=_read_upstream_keys({**file_values, **(flags or {})}, environment),
    )


def to_setting_values(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values of settings in environment variables, by the name of the setting. Unknown settings are kept."""
    shared = {SHARED_VARIABLES[name]: value for name, value in variables.items() if name in SHARED_VARIABLES}
    own = {
        name.removeprefix(ENV_PREFIX).lower(): value for name, value in variables.items() if name.startswith(ENV_PREFIX)
    }
    return {**shared, **own}


def read_token(env: Mapping[str, str] | None = None) -> str | None:
    """Return the daemon's access token from NEWTON_TOKEN; None if the variable is unset or blank."""
    return (os.environ if env is None else env).get(TOKEN_VARIABLE, "").strip() or None


def expand_variables(text: str, env: Mapping[str, str] | None = None) -> str:
    """Replace `${NAME}` in a text by the environment variable, and `${NAME:-default}` by the default if it is unset.

    Raises ConfigError for a variable that is unset and has no default.
    """
    environment = os.environ if env is None else env

    def find(match: re.Match[str]) -> str:
        name: str = match["name"]
        default: str | None = match["default"]
        if (value := environment.get(name, default)) is None:
            raise ConfigError(f"The environment variable {name} is not set.", hint=f"Set {name}, or write its value.")
        return value

    return _VARIABLE.sub(find, text)


def read_secret_variables(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables whose names end as those of secrets do, such as `_KEY`."""
    environment = os.environ if env is None else env
    return {name: value for name, value in environment.items() if value and SECRET_NAME.search(name)}


def read_referenced_variables(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the values of the environment variables that a text names by `${NAME}`, those that are set."""
    environment = os.environ if env is None else env
    return [environment[name] for name, _ in _VARIABLE.findall(text) if name in environment]


def list_secret_files(env: Mapping[str, str] | None = None) -> list[Path]:
    """Return the files that variables with FILE_SUFFIX after the name of a secret name."""
    environment = os.environ if env is None else env
    return [
        Path(value)
        for name, value in environment.items()
        if value and name.endswith(FILE_SUFFIX) and SECRET_NAME.search(name.removesuffix(FILE_SUFFIX))
    ]


def quieten_libraries() -> None:
    """Set the environment variables that turn off telemetry and caches of ONNX Runtime and tiktoken."""
    os.environ.update(LIBRARY_VARIABLES)


def _is_setting(name: str, value: str) -> bool:
    if name in SHARED_VARIABLES:
        return bool(value)
    return name.startswith(ENV_PREFIX) and name not in (CONFIG_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE)


def _read_upstream_keys(values: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """Return the API keys of the `[models.NAME]` tables, by the environment variable that `api_key_env` names.

    Variables that are not set are omitted.
    """
    if not isinstance(values.get("models"), dict):
        return {}
    tables: dict[str, Any] = values["models"]
    keys: dict[str, str] = {}
    for table in tables.values():
        fields = cast("dict[str, Any]", table) if isinstance(table, dict) else {}  # an invalid one is refused later
        name = str(fields.get("api_key_env", ""))
        if key := (_read_secret(name, env) if name else ""):
            keys[name] = key
    return keys


def _read_secret_files(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the values of the secret settings that variables with FILE_SUFFIX name files of."""
    shared = (name for name, setting in SHARED_VARIABLES.items() if setting in SECRET_SETTINGS)
    names = (*shared, *(ENV_PREFIX + setting.upper() for setting in SECRET_SETTINGS))
    values = {name: _read_secret(name, env) for name in names if env.get(name + FILE_SUFFIX)}
    return {
        name: value
        for name, value in {**env, **values}.items()
        if not (name.endswith(FILE_SUFFIX) and name.removesuffix(FILE_SUFFIX) in names)
    }


def _read_secret(name: str, env: Mapping[str, str]) -> str:
    """Return the variable `name`, or the content of the file that the variable with FILE_SUFFIX after it names.

    It is an empty string if neither is set. Raises ConfigError if both are, and for a file that cannot be read or is
    empty.
    """
    value, file = env.get(name, "").strip(), env.get(name + FILE_SUFFIX, "").strip()
    if not file:
        return value
    if value:
        raise ConfigError(f"{name} and {name}{FILE_SUFFIX} are both set.", hint="Unset one of them.")
    try:
        content = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "Let the user that Newton runs as read the file."
        raise ConfigError(f"{name}{FILE_SUFFIX} is {file}, which cannot be read: {reason}.", hint=hint) from None
    if not content:
        raise ConfigError(f"{name}{FILE_SUFFIX} is {file}, which is empty.", hint=f"Write the value of {name} into it.")
    return content


def _read_file(configured: str | None) -> tuple[Path, dict[str, Any]]:
    """Return the path and the values of the settings file; no values if the default file does not exist.

    Raises ConfigError if it is not valid TOML, or if the file that NEWTON_CONFIG names does not exist.
    """
    path = Path(configured or SETTINGS_FILE)
    if not path.is_file():
        if configured:
            raise ConfigError(
                f"NEWTON_CONFIG is {configured}, which is not a file.", hint="Unset NEWTON_CONFIG or create the file."
            )
        return path, {}
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}.", hint=f"Correct the line in {path}, or delete the file."
        ) from None


def is_dumb_terminal() -> bool:
    """Return whether the terminal, if there is one, only prints text: it moves no cursor and deletes nothing."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def wants_no_color() -> bool:
    """Return whether the user asks programs to print no colors (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def read_zone_name() -> str:
    """Return the name of this machine's time zone: that of the variable TZ, else of the link to the zone's file."""
    return os.environ.get("TZ", "").removeprefix(":") or str(LOCAL_TIME_FILE.resolve()).partition("zoneinfo/")[2]

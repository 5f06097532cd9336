"""The flags of `newton hook`, and the data folder that they and the environment select."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DEFAULT_AGENT, DEFAULT_TOKENS = "default", 600
DEFAULT_DATA_DIR = "~/.local/share/newton"
URL_VARIABLE, TOKEN_VARIABLE, DATA_DIR_VARIABLE = "NEWTON_URL", "NEWTON_TOKEN", "NEWTON_DATA_DIR"
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
VALUE_FLAGS = {"--agent": "agent", "--max-tokens": "max_tokens", "--data-dir": "data_dir", "--program": "program"}


class InvalidFlagError(Exception):
    """A flag of `newton hook` is unknown, or its value is invalid."""


class HookOptions(NamedTuple):
    """The flags of `newton hook`. If `program` is None, the coding agent is recognized by its input."""

    agent: str = DEFAULT_AGENT
    per_project: bool = False
    max_tokens: int = DEFAULT_TOKENS
    data_dir: str | None = None
    program: str | None = None


def find_data_dir(option: str | None, env: Mapping[str, str]) -> Path:
    """Return the data folder: the option, the variable NEWTON_DATA_DIR, or the default.

    A `newton.toml` in the working folder is ignored, because a hook runs in the folder of any project.
    """
    return Path(option or env.get(DATA_DIR_VARIABLE) or DEFAULT_DATA_DIR).expanduser()


def parse_flags(flags: Sequence[str]) -> HookOptions:
    """Parse the flags of `newton hook`. Raises InvalidFlagError for an unknown flag or an invalid value."""
    fields: dict[str, Any] = {}
    rest = list(flags)
    while rest:
        flag, *rest = rest
        flag, has_value, value = flag.partition("=")
        if flag == "--per-project":
            fields["per_project"] = True
            continue
        field = VALUE_FLAGS.get(flag)
        if field is None or not (has_value or rest):
            raise InvalidFlagError(f"the flag {flag!r} is unknown or has no value; see `newton hook run --help`")
        if not has_value:
            value, *rest = rest
        if field == "max_tokens" and not value.isdecimal():
            raise InvalidFlagError(f"the value {value!r} of --max-tokens is not a whole number")
        fields[field] = int(value) if field == "max_tokens" else value
    return HookOptions(**fields)

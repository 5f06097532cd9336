"""What a person may set. The only module that reads the environment."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError

from newton.errors import ConfigError

ENV_PREFIX = "NEWTON_"
CONFIG_VARIABLE, TOKEN_VARIABLE = (
    "NEWTON_CONFIG",
    "NEWTON_TOKEN",
)  # where settings are, and a secret of who asks a daemon: no settings

# ONNX Runtime would keep an id of the machine in the user's cache folder and look up a host of its vendor's; tiktoken
# would copy its tables, which are here, into the folder of all users' temporary files.
QUIET = {"ORT_DISABLE_TELEMETRY": "1", "TIKTOKEN_CACHE_DIR": ""}

# Names that other tools use too; Newton honours them below its own.
SHARED_VARIABLES = {
    "DATABASE_URL": "database_url",
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_BASE_URL": "openai_base_url",
    "OPENAI_MODEL": "openai_model",
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


def _check_url(url: str) -> str:
    """Addresses are logged and shown, so no key may hide in one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise PydanticCustomError("address", "an address begins with http:// or https://")
    if "@" in parts.netloc or parts.query:
        raise PydanticCustomError("address", "no key may stand in an address; one for a model is OPENAI_API_KEY")
    return url


def _off_to_zero(value: object) -> object:
    """Nothing, and the words for it, are 0."""
    return 0 if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "off")) else value


HttpUrl = Annotated[str, AfterValidator(_check_url)]


class Settings(BaseModel):
    """Read once at start, frozen, handed down in parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str = Field("default", min_length=1, max_length=200, description="Whose mind to use; each name is its own.")
    database_url: SecretStr | None = Field(
        None, description="PostgreSQL with pgvector. Unset: an embedded server that Newton starts and stops itself."
    )
    data_dir: Path = Field(
        Path("~/.local/share/newton"), description="Where the embedded server, the history and caches live."
    )
    frames_dir: Path | None = Field(None, description="A folder of your own frames; a frame of the same name wins.")
    pack: str | None = Field(
        None, description="The kind of work: coding, support, research, or packs/NAME in your folder of frames."
    )
    frame_tiebreak: bool = Field(
        default=False,
        description="When Newton is unsure, ask the chat model which frame an input wants.",
    )
    guardrails_dir: Path | None = Field(
        None, description="A folder of your own guardrails; a guardrail of the same name wins."
    )
    procedures_dir: Path | None = Field(
        None, description="A folder of your own procedures, NAME/SKILL.md; a procedure of the same name wins."
    )
    profiles_dir: Path | None = Field(
        None, description="A folder of your own profiles; a profile of the same name wins."
    )
    embedding: Literal["local", "openai", "none"] = Field(
        "local", description="Who embeds: the model that ships with Newton, the OpenAI endpoint, or nobody."
    )
    embedding_model: str = Field("text-embedding-3-small", description="The model asked when embedding = openai.")
    embedding_dimensions: int = Field(512, ge=8, le=1_300, description="Vector length asked when embedding = openai.")
    openai_api_key: SecretStr | None = Field(None, description="Key for the chat (and embedding) endpoint.")
    openai_base_url: HttpUrl | None = Field(None, description="Any OpenAI-compatible server: Ollama, llama.cpp, vLLM.")
    openai_model: str = Field("gpt-4o-mini", description="The chat model to ask for.")
    llm_timeout: float = Field(60.0, gt=0, le=3_600, description="Seconds for one model call in all, retry included.")
    llm_tokens_per_day: int = Field(2_000_000, ge=0, description="Ceiling of model tokens per agent and UTC day.")
    reply_tokens: int = Field(1_000, ge=1, description="Longest reply asked of the model.")
    context_tokens: int = Field(8_000, ge=1, le=1_000_000, description="Ceiling of one context, as rendered.")
    source_seconds: float = Field(2.0, gt=0, le=60, description="Seconds each source of a context has to answer.")
    working_tokens: int = Field(
        128_000, ge=1_000, description="What a session may have at hand; the coldest goes first."
    )
    working_days: int = Field(30, ge=1, description="After so many days without use a session has nothing at hand.")
    window_tokens: int = Field(
        128_000, ge=1_000, le=10_000_000, description="What the chat model reads and writes in one call."
    )
    conversation_tokens: int = Field(
        100_000, ge=0, description="What of that the conversation may take, at most 80 % of what is usable."
    )
    compaction: str = Field(
        "default",
        description="How conversations are made shorter: default, long, conservative, none, or strategies in order.",
    )
    compaction_model: str | None = Field(
        None, description="The model that tells of what is made shorter, at the same endpoint. Unset: openai_model."
    )
    covered: float = Field(
        0.5, ge=0, le=1, description="From this likeness on an input may be covered by the session's last context."
    )
    covered_words: float = Field(
        0.8, ge=0, le=1, description="So much of an input's words that context must say, or it is made anew."
    )
    rag_chunk_size: int = Field(
        300, ge=50, le=2_000, description="Tokens of a passage of a document, and of a piece of what a tool put out."
    )
    rag_chunk_overlap: int = Field(50, ge=0, le=500, description="With so many tokens of one the next one begins.")
    rag_top_k_max: int = Field(5, ge=1, le=100, description="Artifacts of the session looked at for an input.")
    rag_similarity_threshold: float = Field(0.25, ge=0, le=1, description="From this likeness on an artifact goes in.")
    rag_re_rank_top_n: Annotated[int, BeforeValidator(_off_to_zero)] = Field(
        20, ge=0, le=200, description="So many artifacts are looked at and ordered by their words too; 0 or none: off."
    )
    rag_final_top_k: int = Field(3, ge=0, le=50, description="So many artifacts of a session go into a context.")
    rag_per_turn_memory_budget_tokens: int = Field(
        800, ge=0, le=100_000, description="Ceiling of all artifacts of the session in a context, heading included."
    )
    convo_summary_every_n_messages: int = Field(
        12, ge=2, le=1_000, description="After so many lines of a session its summary is brought up to date."
    )
    convo_summary_max_tokens: int = Field(400, ge=50, le=4_000, description="What the summary of a session may have.")
    embeddings_device: Literal["cpu"] = Field("cpu", description="Where embeddings are made: there is only the CPU.")
    search_url: HttpUrl | None = Field(
        None, description="A SearXNG-compatible search that is asked for what is of these days. Unset: never."
    )
    profile: str | None = Field(None, description="How memories are scored. Unset: the frame's own profile.")
    core_sources: int = Field(3, ge=1, description="So many independent sources make a fact a core fact.")
    facts_per_attribute: int = Field(10, ge=2, description="More current facts of one attribute are generalised.")
    same_fact: float = Field(0.95, gt=0, le=1, description="From this likeness on two statements are one fact.")
    near_fact: float = Field(0.85, gt=0, le=1, description="From this likeness on a model judges, or they are linked.")
    summarized_days: int = Field(30, ge=1, description="An episode this old keeps the beginning of its text.")
    archived_days: int = Field(90, ge=1, description="An episode this old keeps its summary; its text is stored cold.")
    procedure_trials: int = Field(5, ge=1, description="Activations before a procedure's record counts.")
    procedure_effective: float = Field(0.6, ge=0, le=1, description="A share of successes above it: effective.")
    procedure_ineffective: float = Field(0.4, ge=0, le=1, description="A share of successes below it: ineffective.")
    censor_trials: int = Field(5, ge=1, description="Activations before false positives can retire a censor.")
    censor_false_share: float = Field(0.5, ge=0, le=1, description="A share of false positives above it retires it.")
    bundle_days: int = Field(90, ge=0, description="So many days a context is kept to be explained; 0: for ever.")
    most_events: int = Field(100_000, ge=1, description="More events than that: the oldest are archived.")
    most_entities: int = Field(10_000, ge=1, description="More entities than that: the least salient are archived.")
    most_relations: int = Field(50_000, ge=1, description="More relations than that: the lightest are archived.")
    most_procedures: int = Field(1_000, ge=1, description="More procedures: the least successful are archived.")
    most_passages: int = Field(100_000, ge=1, description="More passages: unread and old ones are archived.")
    verifiers: dict[str, tuple[str, ...]] = Field(
        {},
        description="Of a category of decisions, the command that says their outcome: its words; 0 success, 1 failure.",
    )
    verifier_seconds: float = Field(60.0, gt=0, le=3_600, description="Seconds a verifier may take.")

    @property
    def home(self) -> Path:
        return self.data_dir.expanduser()


def load(flags: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """Settings from newton.toml, then the environment, then flags; the later wins.

    Raises ConfigError for an unknown name, naming the nearest known one, or a value out of range.
    """
    environment = os.environ if env is None else env  # noqa: TID251 (this is the one module that may)
    given = {**_from_file(environment), **_from_environment(environment), **(flags or {})}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"The setting {name!r} is not usable: {first['msg']}.", hint=_hint_for(name)) from None


def read_token(env: Mapping[str, str] | None = None) -> SecretStr | None:
    """The token for a daemon that the environment names."""
    given = (os.environ if env is None else env).get(TOKEN_VARIABLE, "").strip()  # noqa: TID251 (as above)
    return SecretStr(given) if given else None


def quieten_libraries() -> None:
    """Has libraries that read the environment neither report to their makers nor keep files of their own."""
    os.environ.update(QUIET)  # noqa: TID251 (as above)


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    shared = {SHARED_VARIABLES[name]: value for name, value in env.items() if name in SHARED_VARIABLES and value}
    own = {
        name: value
        for name, value in env.items()
        if name.startswith(ENV_PREFIX) and name not in (CONFIG_VARIABLE, TOKEN_VARIABLE)
    }
    for name in own:
        _check_setting_name(
            name.removeprefix(ENV_PREFIX).lower(), shown_as=name, known={ENV_PREFIX + f.upper() for f in SETTING_NAMES}
        )
    return {**shared, **{name.removeprefix(ENV_PREFIX).lower(): value for name, value in own.items()}}


def _from_file(env: Mapping[str, str]) -> dict[str, Any]:
    chosen = env.get(CONFIG_VARIABLE)
    path = Path(chosen or "newton.toml")
    if not path.is_file():
        if chosen:
            raise ConfigError(f"NEWTON_CONFIG names {chosen}, which is not a file.", hint="Unset it or make the file.")
        return {}
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", hint="Mend that line or delete the file.") from None
    for name in given:
        _check_setting_name(name, shown_as=f"{name} in {path}", known=SETTING_NAMES)
    return given


def _check_setting_name(name: str, *, shown_as: str, known: set[str]) -> None:
    if name in SETTING_NAMES:
        return
    if name.lower() in SETTING_NAMES:
        raise ConfigError(
            f"{shown_as} is not a setting.", hint=f"In a file it is written in small letters: {name.lower()}."
        )
    near = difflib.get_close_matches(shown_as.split(" ", maxsplit=1)[0], sorted(known), n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else "`newton doctor` lists every setting."
    raise ConfigError(f"{shown_as} is not a setting.", hint=hint)


def _hint_for(name: str) -> str:
    field = Settings.model_fields.get(name.split(".", maxsplit=1)[0])
    return f"{field.description} Set {ENV_PREFIX}{name.upper()} or {name} in newton.toml." if field else ""


SETTING_NAMES = set(Settings.model_fields)

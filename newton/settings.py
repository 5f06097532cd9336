"""Settings: read from newton.toml, environment variables and command-line flags, and validated."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from newton.environment import DEFAULT_DATA_DIR, ENV_PREFIX, SettingSources, read_sources
from newton.errors import ConfigError
from newton.setting_types import HttpUrl, McpSettings, UpstreamName, UpstreamSettings


def _off_to_zero(value: object) -> object:
    """Return 0 for None, an empty string, `none` and `off`; return any other value unchanged."""
    return 0 if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "off")) else value


DEFAULT_AGENT = "default"  # created at its first use by any command


class SettingGroup(BaseModel):
    """Settings of one purpose. The first line of the docstring of a group is its title in the documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MainSettings(SettingGroup):
    """The ones you need: agent, database and model."""

    agent: str = Field(DEFAULT_AGENT, min_length=1, max_length=200, description="Agent to use. Agents share no data.")
    database_url: SecretStr | None = Field(
        None, description="URL of a PostgreSQL database with pgvector. If unset, Newton runs an embedded server."
    )
    data_dir: Path = Field(
        Path(DEFAULT_DATA_DIR),
        description="Folder of the embedded database, tokens, input history and caches. The embedded database of root "
        "is in /var/lib/newton instead.",
    )
    embedding_provider: Literal["local", "multilingual", "openai", "none"] = Field(
        "local",
        description="Embedding model: local (bundled, English), multilingual (extra `multilingual`), openai (the "
        "OpenAI endpoint) or none.",
    )
    openai_api_key: SecretStr | None = Field(
        None, description="API key of the OpenAI-compatible server for chat and embeddings."
    )
    openai_base_url: HttpUrl | None = Field(
        None, description="Base URL of an OpenAI-compatible server, such as Ollama, llama.cpp or vLLM."
    )
    openai_model: str | None = Field(
        None,
        description="Name of the chat model. If unset: gpt-4o-mini of OpenAI, or the only model of another server.",
    )
    anthropic_api_key: SecretStr | None = Field(None, description="API key of Anthropic's Messages API.")


class ModelSettings(SettingGroup):
    """Models: which of them answer and embed, and what they may cost."""

    anthropic_base_url: HttpUrl | None = Field(
        None, description="Base URL of a server with Anthropic's Messages API. If unset: Anthropic itself."
    )
    anthropic_model: str | None = Field(
        None,
        description="Name of the Claude model. If unset: claude-haiku-5-5 of Anthropic, or the only model of another"
        " server.",
    )
    models: dict[UpstreamName, UpstreamSettings] = Field(
        {},
        description="Upstream models by name, as tables [models.NAME] in newton.toml with the fields provider (openai"
        " or anthropic), base_url, model, window_tokens, and api_key_env (the environment variable that has the key) or"
        " api_key.",
    )
    default_model: str | None = Field(
        None,
        description="Model of agents that have no other: the name of an upstream, UPSTREAM/MODEL, or a model of the"
        " first upstream. If unset: OpenAI's model setting, else Anthropic's, else the only model of [models].",
    )
    compaction_model: str | None = Field(
        None,
        description="Model that summarizes conversations, named as in default_model. If unset: the model of the agent.",
    )
    embedding_model: str = Field("text-embedding-3-small", description="Model name for embedding_provider = openai.")
    embedding_dimensions: int = Field(512, ge=8, le=1_300, description="Vector length for embedding_provider = openai.")
    embeddings_device: Literal["cpu"] = Field(
        "cpu", description="Device that computes local embeddings. Only cpu is supported."
    )
    window_tokens: int | None = Field(
        None,
        ge=1_000,
        le=10_000_000,
        description="Context window of the chat models, prompt and reply together, where a table [models.NAME] sets no"
        " other. If unset: what the model's server reports, else what the provider publishes, else 128,000. A server"
        " that refuses a smaller prompt is believed.",
    )
    max_output_tokens: int | None = Field(
        None,
        ge=1,
        description="Maximum tokens of a model reply, where a client sets no other. If unset: the model decides.",
    )
    llm_tokens_per_day: int = Field(
        2_000_000,
        ge=0,
        description="Maximum tokens of model calls per agent and UTC day. Summaries of conversations are not counted;"
        " they may use a quarter as many.",
    )
    llm_timeout: float = Field(
        60.0, gt=0, le=3_600, description="Timeout of a model call in seconds, including retries."
    )
    llm_start_timeout: float = Field(
        30.0,
        gt=0,
        le=3_600,
        description="Seconds after which a model call whose reply has not begun is sent once more. The second one may"
        " take what is left of llm_timeout.",
    )
    quote_without_model: bool = Field(
        default=False,
        description="Answer OpenAI clients with quotes of memory, after a sentence that says so, when no model answers."
        " If false, they get an error.",
    )


class ContextSettings(SettingGroup):
    """Contexts: which memories are selected, and how many."""

    project: str | None = Field(
        None,
        description="Project of the agent to use: a memory of its own, which also reads that of the agent.",
    )
    context_tokens: int = Field(8_000, ge=1, le=1_000_000, description="Maximum tokens of a rendered context.")
    profile: str | None = Field(
        None, description="Profile by which memories are scored. If unset: the profile of the frame."
    )
    pack: str | None = Field(
        None,
        description="Kind of work for which all frames are adjusted: coding, support, research, or packs/NAME in"
        " frames_dir.",
    )
    frame_tiebreak: bool = Field(
        default=False, description="Ask the chat model to choose the frame of an input when the classifier is unsure."
    )
    frames_dir: Path | None = Field(
        None, description="Folder of custom frames (kinds of input); they override bundled frames of the same name."
    )
    profiles_dir: Path | None = Field(
        None,
        description="Folder of custom profiles (ways to score memories); they override bundled ones of the same name.",
    )
    search_url: HttpUrl | None = Field(
        None, description="URL of a SearXNG-compatible web search for inputs about current events. If unset: no search."
    )
    rag_top_k_max: int = Field(
        5,
        ge=1,
        le=100,
        description="Maximum session artifacts compared with an input, unless rag_re_rank_top_n is larger.",
    )
    rag_similarity_threshold: float = Field(
        0.25, ge=0, le=1, description="Minimum cosine similarity of a session artifact to the input."
    )
    rag_re_rank_top_n: Annotated[int, BeforeValidator(_off_to_zero)] = Field(
        20,
        ge=0,
        le=200,
        description="Maximum session artifacts compared and reranked by word overlap; 0 or none turns reranking off.",
    )
    rag_final_top_k: int = Field(
        3,
        ge=0,
        le=50,
        description="Maximum session artifacts (summaries, tool and web results) in a context, and as many passages of"
        " documents.",
    )
    rag_per_turn_memory_budget_tokens: int = Field(
        800, ge=0, le=100_000, description="Maximum tokens of all session artifacts in a context, heading included."
    )
    rag_per_turn_document_budget_tokens: int = Field(
        1_000,
        ge=0,
        le=100_000,
        description="Maximum tokens of all passages of documents in a context, heading included.",
    )
    rag_per_turn_profile_budget_tokens: int = Field(
        300,
        ge=0,
        le=100_000,
        description="Maximum tokens of what is known of the user in a context, headings included, unless the input asks"
        " for it; 0 leaves it out.",
    )


class SessionSettings(SettingGroup):
    """Sessions: when conversations are shortened and summarized."""

    conversation_tokens: int | None = Field(
        None,
        ge=0,
        description="Maximum tokens of the conversation in a prompt; the window and the context may leave less. If"
        " unset: that of the compaction preset, 150,000 for long and 100,000 for others.",
    )
    compaction: str = Field(
        "default",
        description="Compaction preset (default, long, conservative, none) or a comma-separated list of strategies.",
    )
    session_idle_minutes: int = Field(
        15,
        ge=0,
        description="Store a session as an episode, and extract memories from it, after this many minutes without a"
        " message.",
    )
    working_set_tokens: int = Field(
        128_000,
        ge=1_000,
        description="Maximum tokens of a session's working memory; unimportant, long unused items are evicted first.",
    )
    convo_summary_every_n_messages: int = Field(
        12, ge=2, le=1_000, description="Update the summary of a session after this many new messages."
    )
    convo_summary_max_tokens: int = Field(400, ge=50, le=4_000, description="Maximum tokens of a session summary.")
    rag_chunk_size: int = Field(
        300, ge=50, le=2_000, description="Tokens per chunk of an ingested document or a tool output."
    )
    rag_chunk_overlap: int = Field(
        50, ge=0, le=500, description="Tokens repeated from the end of one chunk at the start of the next."
    )


class RuleSettings(SettingGroup):
    """Rules, procedures, tools and jobs."""

    guardrails_dir: Path | None = Field(
        None,
        description="Folder of custom guardrails (rules on decisions); they override bundled ones of the same name.",
    )
    procedures_dir: Path | None = Field(
        None, description="Folder of custom procedures (NAME/SKILL.md); they override bundled ones of the same name."
    )
    verifiers: dict[str, tuple[str, ...]] = Field(
        {},
        description="Command that checks outcomes, by decision category, as a list of arguments; exit status 0 means"
        " success, 1 failure.",
    )
    verifier_timeout_seconds: float = Field(60.0, gt=0, le=3_600, description="Timeout of a verifier in seconds.")
    redact_household_codes: bool = Field(
        default=False, description="Redact codes of doors and safes, Wi-Fi passwords and passport numbers too."
    )
    mcp: McpSettings = Field(
        McpSettings(),
        description="MCP servers whose tools the model may call, as tables [mcp.servers.NAME] in newton.toml, and under"
        " `files` the paths of JSON files that list them as `mcpServers`; see docs/tools.md.",
    )
    jobs: dict[str, dict[str, Any]] = Field(
        {}, description="Times of jobs, as tables [jobs.NAME]: cron or every, timezone, jitter, start, end, enabled."
    )


class StorageSettings(SettingGroup):
    """Storage: how much is kept, and how long."""

    bundle_retention_days: int = Field(
        90, ge=0, description="Days to keep stored contexts (bundles) and records of prompts; 0 keeps all of them."
    )
    max_storage_mb: int = Field(
        4_000,
        ge=0,
        description="Maximum megabytes of text that one agent stores, compressed and without indexes; 0 sets no limit.",
    )
    max_events: int = Field(
        100_000, ge=1, description="Maximum active events; the oldest beyond this number are archived."
    )
    max_entities: int = Field(
        10_000, ge=1, description="Maximum active entities; the least salient beyond this number are archived."
    )
    max_relations: int = Field(
        50_000,
        ge=1,
        description="Maximum active relations; beyond this number, those of the lowest weight are archived.",
    )
    max_procedures: int = Field(
        1_000, ge=1, description="Maximum active procedures; the least successful beyond this number are archived."
    )
    max_passages: int = Field(
        100_000,
        ge=1,
        description="Maximum active passages of documents; beyond this number, those unread for the longest time are"
        " archived.",
    )


class Settings(StorageSettings, RuleSettings, SessionSettings, ContextSettings, ModelSettings, MainSettings):
    """All settings of a process. They are read once at start and do not change."""

    @property
    def home(self) -> Path:
        return self.data_dir.expanduser()


# In the order in which they are shown, the main settings first.
SETTING_GROUPS = tuple(cast("type[SettingGroup]", one) for one in reversed(Settings.__bases__))


def load(
    flags: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    *,
    sources: SettingSources | None = None,
) -> Settings:
    """Load and validate the settings from newton.toml, environment variables and flags; later sources take precedence.

    `sources` replaces the file and environment of this process, for a command that runs in the daemon. Raises
    ConfigError for an invalid value, and for an unknown name, with the most similar known name as a suggestion.
    """
    sources = sources or read_sources(env, flags)
    _check_names(sources)
    try:
        settings = Settings.model_validate({**sources.values, **(flags or {})})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"Invalid value for the setting {name!r}: {first['msg']}.", hint=_hint_for(name)) from None
    return _set_upstream_keys(settings, sources.upstream_keys)


def _set_upstream_keys(settings: Settings, keys: Mapping[str, str]) -> Settings:
    """Return the settings with API keys. `keys` maps variables, named by `api_key_env`, to API keys."""
    found = {
        name: one.model_copy(update={"api_key": SecretStr(keys[one.api_key_env])})
        for name, one in settings.models.items()
        if one.api_key_env is not None and one.api_key_env in keys
    }
    return settings.model_copy(update={"models": {**settings.models, **found}}) if found else settings


def _check_names(sources: SettingSources) -> None:
    for name in sources.file_values:
        _check_setting_name(name, shown_as=f"{name} in {sources.file}", known=SETTING_NAMES)
    known = {ENV_PREFIX + name.upper() for name in SETTING_NAMES}
    for name in sources.variables:
        if name.startswith(ENV_PREFIX):
            _check_setting_name(name.removeprefix(ENV_PREFIX).lower(), shown_as=name, known=known)


def _check_setting_name(name: str, *, shown_as: str, known: set[str]) -> None:
    if name in SETTING_NAMES:
        return
    if name.lower() in SETTING_NAMES:
        raise ConfigError(f"{shown_as} is not a setting.", hint=f"Use lower case in the file: {name.lower()}.")
    if name.lower() in REMOVED_SETTINGS:
        raise ConfigError(f"{shown_as} is not a setting.", hint=REMOVED_SETTINGS[name.lower()])
    near = difflib.get_close_matches(shown_as.split(" ", maxsplit=1)[0], sorted(known), n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else "`newton doctor` lists every setting."
    raise ConfigError(f"{shown_as} is not a setting.", hint=hint)


def _hint_for(name: str) -> str:
    field = Settings.model_fields.get(name.split(".", maxsplit=1)[0])
    return f"{field.description} Set {ENV_PREFIX}{name.upper()} or {name} in newton.toml." if field else ""


SETTING_NAMES = set(Settings.model_fields)
# Settings of earlier versions that have no successor, and what to do with them.
REMOVED_SETTINGS = {
    "source_timeout_seconds": "Delete it; a request has one deadline (`--timeout`).",
    **dict.fromkeys(
        (
            *("core_fact_min_sources", "max_facts_per_attribute", "fact_duplicate_min_cosine"),
            *("fact_related_min_cosine", "episode_summarize_after_days", "episode_archive_after_days"),
            *("procedure_min_uses", "procedure_effective_min_rate", "procedure_ineffective_max_rate"),
            *("censor_min_uses", "censor_max_false_positive_rate", "working_set_idle_days"),
            *("context_reuse_min_cosine", "context_reuse_min_word_overlap"),
        ),
        "Delete it; its value is fixed.",
    ),
}

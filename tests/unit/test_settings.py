"""Settings: where each comes from, and that a wrong one stops the start with the right word."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.dialogue.session_summary import SummarySizes
from newton.environment import ENV_PREFIX, SECRET_SETTINGS, SHARED_VARIABLES
from newton.errors import ConfigError
from newton.runtime.settings_mapping import (
    build_artifact_policy,
    build_summary_sizes,
    build_turn_limits,
    check_settings,
)
from newton.settings import REMOVED_SETTINGS, SETTING_GROUPS, SETTING_NAMES, Settings, load
from tests.cases import load_cases

CASES = load_cases(__file__)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without a newton.toml."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_file_environment_and_flags_yield_in_their_order(elsewhere: Path) -> None:
    settings = load(env={})
    assert settings == Settings.model_validate({})
    assert (settings.agent, settings.database_url, settings.embedding_provider) == ("default", None, "local")
    assert (settings.context_tokens, settings.profile) == (8_000, None)  # S002-2
    # the file yields to the environment and that to flags
    (elsewhere / "newton.toml").write_text('agent = "file"\ncontext_tokens = 1\nmax_output_tokens = 1\n')
    env = {"NEWTON_AGENT": "env", "NEWTON_CONTEXT_TOKENS": "2"}
    settings = load({"agent": "flag"}, env)
    assert (settings.agent, settings.context_tokens, settings.max_output_tokens) == ("flag", 2, 1)
    # another file can be named
    other = elsewhere / "other.toml"
    other.write_text('agent = "other"\n')
    assert load(env={"NEWTON_CONFIG": str(other)}).agent == "other"
    with pytest.raises(ConfigError, match="not a file"):
        load(env={"NEWTON_CONFIG": str(elsewhere / "none.toml")})
    # names of other tools are honoured below its own
    url = "postgresql://a/b"
    assert load(env={"DATABASE_URL": url}).database_url == SecretStr(url)
    own = load(env={"DATABASE_URL": url, "NEWTON_DATABASE_URL": "postgresql://c/d"}).database_url
    assert own == SecretStr("postgresql://c/d")
    assert load(env={"DATABASE_URL": ""}).database_url is None, "set to nothing is not set"
    assert set(SHARED_VARIABLES.values()) < set(Settings.model_fields)


def test_the_knobs_of_artifacts_go_by_the_names_of_their_design_too() -> None:
    # S004-12
    knobs = {
        "RAG_CHUNK_SIZE": 300,
        "RAG_CHUNK_OVERLAP": 50,
        "RAG_TOP_K_MAX": 5,
        "RAG_SIMILARITY_THRESHOLD": 0.25,
        "RAG_RE_RANK_TOP_N": 20,
        "RAG_FINAL_TOP_K": 3,
        "RAG_PER_TURN_MEMORY_BUDGET_TOKENS": 800,
        "CONVO_SUMMARY_EVERY_N_MESSAGES": 12,
        "CONVO_SUMMARY_MAX_TOKENS": 400,
        "EMBEDDINGS_DEVICE": "cpu",
    }
    assert {name: getattr(load(env={}), name.lower()) for name in knobs} == knobs
    other = {name: 200 if name == "RAG_CHUNK_SIZE" else value for name, value in knobs.items()}
    assert load(env={name: str(value) for name, value in other.items()}).rag_chunk_size == 200
    assert load(env={"RAG_CHUNK_SIZE": "200", "NEWTON_RAG_CHUNK_SIZE": "250"}).rag_chunk_size == 250
    assert [load(env={"RAG_RE_RANK_TOP_N": off}).rag_re_rank_top_n for off in ("None", "0", "off")] == [0, 0, 0]
    with pytest.raises(ConfigError, match="embeddings_device"):
        load(env={"EMBEDDINGS_DEVICE": "cuda"})


def test_settings_become_what_sessions_are_condensed_and_searched_by() -> None:
    # S004-12
    given = load({"rag_chunk_size": 200, "rag_top_k_max": 4, "rag_re_rank_top_n": 0, "convo_summary_max_tokens": 90})
    assert build_summary_sizes(given) == SummarySizes(
        chunk_tokens=200, overlap_tokens=50, max_new_messages=12, summary_tokens=90, max_new_tokens=4_000
    )
    assert build_artifact_policy(given) == ArtifactPolicy(top_k=4, rerank_candidates=0)
    with pytest.raises(ConfigError, match="cannot overlap by"):
        build_summary_sizes(load({"rag_chunk_size": 60, "rag_chunk_overlap": 60}))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("NEWTON_DATABSE_URL", "NEWTON_DATABASE_URL"),
        ("NEWTON_AGNET", "NEWTON_AGENT"),
        ("NEWTON_DATADIR", "NEWTON_DATA_DIR"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not a setting. Did you mean {nearest}"):
        load(env={name: "x"})


def test_wrong_names_and_broken_toml_are_refused_with_their_place(elsewhere: Path) -> None:
    (elsewhere / "newton.toml").write_text('agnet = "x"\n')
    with pytest.raises(ConfigError, match=r"agnet in newton\.toml is not a setting. Did you mean agent"):
        load(env={})
    (elsewhere / "newton.toml").write_text("RAG_FINAL_TOP_K = 2\n")
    with pytest.raises(ConfigError, match=r"RAG_FINAL_TOP_K in newton\.toml .* lower case .*: rag_final_top_k"):
        load(env={})
    with pytest.raises(ConfigError, match="is not a setting"):
        load(env={"NEWTON_QQQQQQQQ": "x"})
    # broken toml is refused with its place
    (elsewhere / "newton.toml").write_text("agent = \n")
    with pytest.raises(ConfigError, match=r"newton\.toml is not valid TOML: .*line 1"):
        load(env={})
    (elsewhere / "newton.toml").write_bytes(b'agent = "\xff"\n')
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(env={})


@pytest.mark.parametrize("name", ["NEWTON_SOURCE_TIMEOUT_SECONDS", "source_timeout_seconds in newton.toml"])
def test_a_removed_setting_is_refused_with_what_to_do(name: str, elsewhere: Path) -> None:
    variable, _, file = name.partition(" in ")
    if file:
        (elsewhere / file).write_text("source_timeout_seconds = 2\n")
    with pytest.raises(ConfigError, match=f"{name} is not a setting. Delete it; a request has one deadline"):
        load(env={} if file else {variable: "2"})


@pytest.mark.parametrize(("given", "said"), CASES["settings_that_contradict_each_other_are_refused"])
def test_settings_that_contradict_each_other_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_settings(load(given, env={}))


@pytest.mark.parametrize("given", [{}, {"window_tokens": 8_000}, {"rag_top_k_max": 2, "rag_re_rank_top_n": 0}])
def test_what_was_not_set_gives_way(given: dict[str, int]) -> None:
    check_settings(load(given, env={}))
    assert build_turn_limits(load(given, env={})).conversation == 100_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONTEXT_TOKENS", "0"),
        ("CONTEXT_TOKENS", "many"),
        ("EMBEDDING_PROVIDER", "remote"),
        ("EMBEDDING_DIMENSIONS", "1301"),
        ("LLM_TIMEOUT", "0"),
        ("LLM_TIMEOUT", "nan"),
        ("LLM_TOKENS_PER_DAY", "-1"),
        ("AGENT", ""),
        ("AGENT", "a" * 201),
        ("SEARCH_URL", "file:///etc/passwd"),
        ("RAG_RE_RANK_TOP_N", "many"),
        ("OPENAI_BASE_URL", "localhost:8080/v1"),
        ("OPENAI_BASE_URL", "http://ana:secret@localhost/v1"),
        ("OPENAI_BASE_URL", "http://localhost/v1?key=secret"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_meaning(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value for the setting '{name.lower()}'") as raised:
        load(env={ENV_PREFIX + name: value})
    assert ENV_PREFIX + name in raised.value.hint


def test_settings_do_not_change_and_are_few() -> None:
    settings = load(env={"OPENAI_API_KEY": "sk-secret", "DATABASE_URL": "postgresql://u:secret@h/d"})
    with pytest.raises(ValueError, match="frozen"):
        settings.agent = "other"  # pyright: ignore[reportAttributeAccessIssue]  # the point of the test
    assert "secret" not in repr(settings).replace("SecretStr", "").replace("secret_str", "")
    assert load(env={"NEWTON_DATA_DIR": "~/minds"}).home == Path("~/minds").expanduser()
    assert len(Settings.model_fields) <= 59
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
    secret = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert secret == set(SECRET_SETTINGS)


@pytest.mark.parametrize("name", ["DATABASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NEWTON_OPENAI_API_KEY"])
def test_a_secret_can_come_from_a_file(elsewhere: Path, name: str) -> None:
    file = elsewhere / "secret"
    file.write_text("s3cret\n")
    setting = SHARED_VARIABLES.get(name, name.removeprefix(ENV_PREFIX).lower())

    assert getattr(load(env={f"{name}_FILE": str(file), name: ""}), setting) == SecretStr("s3cret")

    with pytest.raises(ConfigError, match=f"{name} and {name}_FILE are both set"):
        load(env={f"{name}_FILE": str(file), name: "other"})
    file.write_text(" \n")
    with pytest.raises(ConfigError, match="is empty"):
        load(env={f"{name}_FILE": str(file)})
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(env={f"{name}_FILE": str(elsewhere / "missing")})


def test_the_key_of_an_upstream_can_come_from_a_file(elsewhere: Path) -> None:
    (elsewhere / "newton.toml").write_text('[models.mine]\nbase_url = "http://m"\napi_key_env = "MY_KEY"\n')
    (elsewhere / "key").write_text("k-1\n")
    assert load(env={"MY_KEY_FILE": str(elsewhere / "key")}).models["mine"].api_key == SecretStr("k-1")


def test_the_settings_are_in_groups_of_which_the_first_is_short() -> None:
    assert len(SETTING_GROUPS[0].model_fields) <= 8
    assert [name for group in SETTING_GROUPS for name in group.model_fields] == list(Settings.model_fields)
    assert SETTING_NAMES.isdisjoint(REMOVED_SETTINGS)

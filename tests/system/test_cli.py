"""The command line as a person meets it: real processes, one database shared by the file."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from newton.db.embedded_server import EmbeddedServer, delete_data
from newton.runtime.cli.app import run_command_line
from tests.system.typed import Done, chatted, create_agents, typed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module", autouse=True)
def kept_running(home: Path) -> Iterator[None]:
    """One server for all commands of this file; each would else start and stop its own."""
    with EmbeddedServer.start(home, durable=False):
        yield
    delete_data(home)


def environment(home: Path, **more: str) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NEWTON_", "OPENAI_")) and k != "DATABASE_URL"}
    return {**plain, "NEWTON_DATA_DIR": str(home), "PYTHONPATH": str(ROOT), **more}


def run(home: Path, *words: str, stdin: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "newton", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(home, **more),
        cwd=home,
    )


def ok(done: "subprocess.CompletedProcess[str] | Done") -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_nothing_to_an_answer(home: Path) -> None:
    question = "What did we decide about the database?"
    first = run(home, "ask", question, "--agent", "tour")
    assert ok(first) == "Memory has nothing about this yet.\n"
    assert "OPENAI_API_KEY" in first.stderr
    fact = "We chose Postgres with pgvector over ChromaDB"
    local = {"NEWTON_EMBEDDING_PROVIDER": "local"}
    assert ok(typed(home, "remember", fact, "--agent", "tour", **local)).startswith("Remembered. (")
    assert ok(typed(home, "ask", question, "--agent", "tour", **local)) == f"From memory:\n- {fact}\n"
    assert ok(typed(home, "remember", fact, "--agent", "tour")).startswith(
        "The memory is already stored; it is now confirmed. ("
    )


def test_an_answer_that_a_model_should_have_given_is_a_failure_that_is_said(home: Path) -> None:
    gone = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "NEWTON_AGENT": "failing"}
    plain, as_json = typed(home, "ask", "What?", **gone), typed(home, "ask", "What?", "--json", **gone)
    assert (plain.returncode, plain.stdout) == (1, "Memory has nothing about this yet.\n")
    assert "cannot be reached" in plain.stderr and "This answer only quotes memory." in plain.stderr
    answer, failure = json.loads(as_json.stdout), json.loads(as_json.stderr)
    assert (as_json.returncode, failure["status"], answer["failed"], answer["from_memory"]) == (1, 1, True, True)
    assert failure["error"]["code"] == "provider_error" and failure["error"]["detail"] == answer["degraded"]


def test_what_was_injected_is_told_with_its_first_words(home: Path) -> None:
    # S004-14
    typed(home, "remember", "The ferry is called Artemis", "--agent", "debugging")
    done = typed(home, "ask", "What is the ferry called?", "--debug", "--agent", "debugging")
    told = next(line for line in done.stderr.splitlines() if line.startswith(": MEMORY_DEBUG "))
    assert [item["text"] for item in json.loads(told.split(" ", 2)[2])["items"]] == ["The ferry is called Artemis"]
    assert "MEMORY_DEBUG" in ok(typed(home, "ask", "--help"))


@pytest.mark.slow
def test_agents_do_not_know_of_each_other(home: Path) -> None:
    create_agents(home, "two")
    typed(home, "remember", "The vault code is under the mat", "--agent", "one")
    for command in ("ask", "context", "recall"):
        assert "vault" not in ok(typed(home, command, "Where is the code of it?", "--agent", "two"))
    assert "vault" in ok(typed(home, "recall", "Where is the code of it?", "--agent", "one"))


def test_context_as_json_has_the_public_shape(home: Path) -> None:
    typed(home, "remember", "The ferry is called Artemis", "--agent", "shape")
    bundle = json.loads(ok(typed(home, "context", "Which ferry?", "--json", "--agent", "shape", "--max-tokens", "500")))
    assert {"bundle_id", "text", "tokens", "frame", "layers", "items", "dropped", "timings_ms"} <= set(bundle)
    assert {"memory_id", "kind", "layer", "detail", "tokens", "score", "features", "refs", "text"} <= set(
        bundle["items"][0]
    )
    assert bundle["tokens"] <= bundle["budget"] == 500
    assert bundle["layers"]["facts"].keys() == {"share", "ceiling", "used"}


def test_a_context_may_be_told_what_to_hold_and_given_words(home: Path) -> None:
    # S001-4, S001-5
    typed(home, "remember", "The ferry is called Artemis", "--agent", "held")
    ask = ("context", "Which ferry?", "--json", "--agent", "held", "--kind", "fact", "--since", "2020-01-01")
    bundle = json.loads(ok(typed(home, *ask, "--additional", "It rains.", "--override", "reach.depth=3")))
    assert "- The ferry is called Artemis\n" in bundle["text"]
    assert (bundle["overrides"], bundle["profile"]["reach"]["depth"]) == ({"reach": {"depth": 3}}, 3)
    assert "## Additional Context\n- It rains.\n" in bundle["text"]
    assert bundle["filters"] == {"since": "2020-01-01T00:00:00+00:00", "kinds": ["fact"]}
    (item,) = bundle["items"]
    assert json.loads(ok(typed(home, *ask, "--until", "yesterday")))["items"] == []
    refused = typed(home, *ask[:-1], "garbage")
    assert (refused.returncode, "words: yesterday, last week" in refused.stderr) == (2, True)
    without = json.loads(ok(typed(home, *ask, "--exclude", item["memory_id"][-8:])))
    assert (without["items"], without["filters"]["exclude"]) == ([], [item["memory_id"]])


def test_import_reports_bad_lines_and_takes_the_rest(home: Path, tmp_path: Path) -> None:
    message = '{"type":"message","session":"s","ref":"m%d","role":"user","content":"The ferry %d","at":"%s"}'
    zoned, bare = "2026-01-01T10:00:00Z", "2026-01-01T10:00:00"
    lines = [message % (1, 1, zoned), "{", message % (2, 2, bare), message % (3, 3, zoned)]
    file = tmp_path / "talk.ndjson"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    first = typed(home, "import", str(file), "--agent", "imports")
    assert first.returncode == 2
    assert first.stdout.startswith("2 new, 0 unchanged")
    (broken,) = [line for line in first.stderr.splitlines() if "the line is not JSON" in line]
    assert broken.startswith("line 2: ") and "at character 2." in broken and broken.count("line 1") == 0
    assert "line 3: 'at': the time has no time zone" in first.stderr
    again = typed(home, "import", str(file), "--agent", "imports", "--json")
    assert json.loads(again.stdout)["unchanged"] == 2
    assert json.loads(again.stdout)["new"] == 0


def test_import_takes_what_comes_through_a_pipe(home: Path) -> None:
    lines = "".join(f'{{"type":"fact","content":"Ferry {n} is blue","at":"2026-01-01T10:00:00Z"}}\n' for n in range(3))
    pipe, end = os.pipe()
    os.write(end, lines.encode())
    os.close(end)
    done = typed(home, "import", f"/dev/fd/{pipe}", "--agent", "piped")
    os.close(pipe)
    assert ok(done).startswith("3 new, 0 unchanged")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask", ""], "The input is empty"),
        (["ask", "hi", "--frame", "debgu"], "Did you mean 'debug'?"),
        (["context", "hi", "--max-tokens", "0"], "max_tokens: Input should be greater"),
        (["context", "hi", "--max-tokens=-1"], "max_tokens: Input should be greater"),
        (["context", "hi", "--max-tokens", "many"], "--max-tokens"),
        (["context", "hi", "--profile", "newtn"], "Did you mean 'newton'?"),
        (["remember", " "], "The text is empty"),
        (["remember", "x", "--at", "2026-01-01T00:00:00"], "has no time zone"),
        (["remember", "x", "--at", "0001-01-01T00:00:00+14:00"], "Use a year from 2 to 9998"),
        (["remember", "x", "--subject", "a\nb"], "subject: The text is not one line"),
        (["remember", "x", "--attribute", "a" * 201], "attribute: The text has 201 characters"),
        (["remember", "x", "--episode", "a\x1b[0m"], "title: The text is not one line"),
        (["ask", "hi", "--session", "x" * 8_000], "The session has 8,000 characters"),
        (["ask", "hi", "--session", "\udcff"], "The session is not one line"),
        (["chat", "--session", "\udcff"], "The session is not one line"),
        (["chat", "--session", " "], "The session is empty"),
        (["ask", "hi", "--agent", "AKIAIOSFODNN7EXAMPLE"], "The agent contains what looks like a secret"),
        (["ask", "\udcff"], "The input contains a lone surrogate"),
        (["recall", "x", "--limit", "3000000000"], "limit: "),
        (["remember", "x", "--confidence", "7"], "confidence: "),
        (["recall", "x", "--limit", "0"], "limit: "),
        (["import", "/nowhere/at/all"], "cannot be read"),
        (["frames", "show", "debgu"], "Did you mean 'debug'?"),
        (["askk", "x"], "askk"),
    ],
)
def test_bad_words_are_refused_with_a_remedy(
    home: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEWTON_DATA_DIR", str(home))
    monkeypatch.setenv("NEWTON_EMBEDDING_PROVIDER", "none")
    assert run_command_line(words) == 2
    printed = capfd.readouterr()
    assert said in printed.err + printed.out
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"NEWTON_DATABSE_URL": "x"}, 2, "Did you mean NEWTON_DATABASE_URL?"),
        ({"DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}, 1, "cannot be reached"),
        ({"DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}, 1, "cannot be reached: Connect call failed"),
        ({"NEWTON_CONTEXT_TOKENS": "lots"}, 2, "NEWTON_CONTEXT_TOKENS"),
    ],
)
def test_bad_settings_stop_the_start(home: Path, given: dict[str, str], code: int, said: str) -> None:
    done = typed(home, "ask", "hi", **given)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_frame_file_with_a_typo_names_file_and_line(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: Mine.\nquestons: []\n", encoding="utf-8")
    done = typed(home, "ask", "hi", NEWTON_FRAMES_DIR=str(tmp_path))
    assert done.returncode == 2
    assert "mine.yaml:3: 'questons' is not a field of a frame" in done.stderr


@pytest.mark.parametrize(
    ("words", "what", "remedy"),
    [
        ("frames packs X", "does not accept 'X'", "`newton frames packs --help`"),
        ("identity rollback", "requires VERSION", "`newton identity rollback --help`"),
        ("identity rollback x", '"x" is not a whole number', "`newton identity rollback --help`"),
        ("remembr x", 'Unknown command "remembr"', 'Did you mean "remember"?'),
        ("add x", 'Unknown command "add"', 'Did you mean "remember"?'),
        ("search x", 'Unknown command "search"', 'Did you mean "recall"?'),
        ("lst", 'Unknown command "lst"', 'Did you mean "list"?'),
        ("recall x --kind y", 'Invalid value "y" for --kind', "Choose from: "),
        ("context x --max-tokns 1", "Unknown option: --max-tokns", "Did you mean --max-tokens?"),
        ("remember x --zzzzzz own", "Unknown option: --zzzzzz", "  See `newton remember --help`"),
        ("context x --max-tokens", "--max-tokens requires a value", "`newton context --help`"),
        ("frames show nope", "There is no frame 'nope'", "The frames are: "),
    ],
)
def test_words_that_cannot_be_read_are_refused_with_a_remedy(home: Path, words: str, what: str, remedy: str) -> None:
    done = typed(home, *words.split())
    first, second, *more = done.stderr.splitlines()
    assert (done.returncode, done.stdout, more) == (2, "", [])
    assert first.startswith("newton: ") and what in first and second.startswith("  ") and remedy in second


def test_who_asked_for_json_is_told_of_a_failure_in_json(home: Path) -> None:
    for words in ("frames show nope", "context x --max-tokens x", "context x --kind y"):
        plain, as_json = typed(home, *words.split()), typed(home, *words.split(), "--json")
        failure = json.loads(as_json.stderr)
        error = failure["error"]
        assert plain.stderr == f"newton: {error['detail']}\n  {error['hint']}\n"
        assert (as_json.stdout, as_json.returncode) == ("", failure["status"]) == ("", 2)
        assert error["code"] in ("invalid_input", "not_found")


def test_chat_talks_explains_and_survives_mistakes(home: Path) -> None:
    said = [
        "/remember The ferry is called Artemis",
        "What is the ferry called?",
        "/context",
        "/why 1",
        "/why nothing of the kind",
        "/frame debug",
        "/frame nope",
        "/nope",
        "/help",
        "/quit",
    ]
    done = chatted(home, "\n".join(said) + "\n", "--agent", "talker")
    remembered, _, answer = ok(done).partition("\n")
    assert remembered.startswith("Remembered. (")
    assert "\nFrom memory:\n- The ferry is called Artemis\n" in answer
    for part in ("facts  ", "similarity 1.000", "Frame: debug.", "/why NUMBER"):
        assert part in done.stdout
    for part in ("No memory of this context", "There is no frame 'nope'", "Unknown command /nope"):
        assert part in done.stderr


@pytest.mark.slow
def test_a_line_that_is_no_text_is_refused_alone(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "newton", "chat", "--agent", "binary"],
        input=b"\xff\xfe\nThe ferry is called Artemis\n",
        capture_output=True,
        timeout=60,
        check=False,
        env=environment(home, PYTHONIOENCODING="utf-8:strict", NEWTON_EMBEDDING_PROVIDER="none"),
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    assert b"contains a lone surrogate" in done.stderr
    assert "Artemis" in ok(typed(home, "recall", "ferry name", "--agent", "binary"))


@pytest.mark.fault
def test_ctrl_c_in_a_chat_leaves_everything_whole(home: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "newton", "chat", "--agent", "stopper", "--session", "s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, PYTHONFAULTHANDLER="1", NEWTON_EMBEDDING_PROVIDER="none"),
        cwd=home,
    )
    assert child.stdin and child.stdout
    child.stdin.write("The ferry is called Artemis\n")
    child.stdin.flush()
    assert child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, trace = child.communicate(timeout=60)
    assert child.returncode in (0, 130), trace
    assert "Artemis" in ok(typed(home, "recall", "ferry name", "--agent", "stopper"))


def test_doctor_finds_a_healthy_newton(home: Path) -> None:
    create_agents(home, "patient")
    done = typed(home, "doctor", "--json", "--agent", "patient", NEWTON_EMBEDDING_PROVIDER="local")
    findings = json.loads(done.stdout)["findings"]
    # the server of this test runs without fsync, and that is what the doctor must say
    wrong = [f["detail"] for f in findings if f["state"] == "wrong"]
    assert len(wrong) == 1 and "can lose committed data" in wrong[0]
    assert done.returncode == 1
    assert any("row-level security is forced" in f["detail"] for f in findings)


@pytest.mark.slow
def test_words_of_every_script_are_found(home: Path) -> None:
    told = "We left for “Lisbon”—finally. That was Ana’s idea, ÉLODIE said Привет."
    by_words = {"NEWTON_EMBEDDING_PROVIDER": "none", "NEWTON_AGENT": "traveller"}
    ok(typed(home, "remember", told, **by_words))
    for word in ("lisbon", "ana", "élodie", "привет"):
        assert told in ok(typed(home, "recall", word, **by_words))


def test_an_existing_data_folder_is_closed_to_others_once(home: Path) -> None:
    folder = home / "open"
    (folder / "ledger").mkdir(parents=True)
    (folder / "ledger" / "heads.json").write_text("{}", encoding="utf-8")
    (folder / "chat_history").write_text("hello", encoding="utf-8")
    opened = {folder: 0o755, folder / "ledger": 0o755, folder / "ledger" / "heads.json": 0o644}
    for path, mode in opened.items():
        path.chmod(mode)
    own = {"NEWTON_DATA_DIR": str(folder)}
    found = json.loads(typed(home, "doctor", "--json", **own).stdout)["findings"]
    assert [one["state"] for one in found if "can read the data folder" in one["detail"]] == ["wrong"]
    for path, mode in opened.items():
        path.chmod(mode)  # the command has closed it
    said = typed(home, "remember", "Cups are white.", **own).stderr
    assert f"Other users could read the data folder {folder}" in said
    assert [path.stat().st_mode & 0o777 for path in opened] == [0o700, 0o700, 0o600]
    assert (folder / "chat_history").stat().st_mode & 0o777 == 0o600
    assert "Other users" not in typed(home, "remember", "Plates are blue.", **own).stderr
    found = json.loads(typed(home, "doctor", "--json", **own).stdout)["findings"]
    assert [one["state"] for one in found if "can read the data folder" in one["detail"]] == ["ok"]


@pytest.mark.slow
def test_doctor_warns_of_a_database_that_knows_only_ascii(home: Path) -> None:
    async def make(dsn: str) -> None:
        conn = await asyncpg.connect(dsn)
        await conn.execute("create database narrow template template0 locale 'C'")
        await conn.close()

    with EmbeddedServer.start(home) as server:
        asyncio.run(make(server.dsn("postgres")))
        narrow = server.dsn("postgres", database="narrow")
        done = typed(home, "doctor", DATABASE_URL=narrow)
    assert done.returncode == 1
    assert "✗ the database locale supports only ASCII" in done.stdout
    assert "locale 'C.UTF-8'" in done.stdout
    words = [line.split() for line in done.stdout.partition("Settings (")[2].splitlines()]
    assert ["agent", "default"] in [line[:2] for line in words]


def test_doctor_says_that_settings_contradict_each_other(home: Path) -> None:
    done = typed(home, "doctor", NEWTON_WINDOW_TOKENS="2000", NEWTON_CONVERSATION_TOKENS="3000")
    assert done.returncode == 1
    assert (
        "✗ A conversation of 3,000 tokens exceeds the context window of 2,000 tokens.\n    Set NEWTON_" in done.stdout
    )

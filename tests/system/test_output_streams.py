"""Whatever standard output and standard error are, a command ends as it should and shows no traceback.

The commands are those of the registry that only show something, with and without --json, and the help of all.
"""

import ast
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from newton.__main__ import run
from newton.operations.conversations.task_records import STATUS_SYMBOLS
from newton.operations.decisions import calibration_text
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.operations.health import STATE_SYMBOLS
from newton.runtime.output_streams import ASCII_SYMBOLS
from tests.system.daemons import SERVES
from tests.system.typed import ROOT, ok, typed

PIPE_CLOSED = 128 + signal.SIGPIPE
NO_SPACE = "newton: Standard output cannot be written: No space left on device.\n"
SHOWING = ("list_", "show_", "print_", "explain_", "report_")
ALL = [((name,), one.function) for name, one in load_commands().items() if one.function] + [
    ((group, name), one.function) for group, of in load_commands().items() for name, one in of.commands.items()
]
READING = [words for words, function in ALL if re.split("[:.]", function)[-1].startswith(SHOWING)]
SOME = [
    ("list",),
    ("show", "🎉", "--json"),
    ("export", "-"),
    ("--help",),
    ("nonsense",),
    ("import", "gone.md", "--json"),
]
MORE = [("list", "--json"), ("context", "Wer hat 🎉?"), ("ask", "Wer hat 🎉?"), ("list", "--help"), ("--version",)]


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: bytes
    err: bytes


def test_symbols_of_newton_have_distinct_forms_in_ascii() -> None:
    # S9
    folders = [
        ROOT / "newton/runtime" / name for name in ("cli", "health", "tools", "jobs", "transfer", "chat_backend")
    ]
    paths = [*(path for folder in folders for path in folder.rglob("*.py")), Path(calibration_text.__file__)]
    read = ("markdown_rows.py", "export_detection.py", "export_files.py")  # characters that they look for in texts
    printed = {
        character
        for path in paths
        if path.name not in read
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for character in node.value
        if not character.isascii()
    }
    assert {"✓", "✗", "·", "…"} <= printed <= ASCII_SYMBOLS.keys() | {"é", "\x9b", "\u202e"}
    assert all(form.isascii() for form in ASCII_SYMBOLS.values())
    for states in (STATE_SYMBOLS, STATUS_SYMBOLS):
        assert len({ASCII_SYMBOLS[symbol] for symbol in states.values()}) == len(states)


def test_doctor_shows_in_ascii_what_is_wrong(spoken: Path) -> None:
    # S9
    done = ended(spoken, "doctor", encoding="ascii")
    lines = done.out.decode("ascii").splitlines()
    assert lines[0].startswith("[ok] Python") and any(line.startswith("- no daemon") for line in lines)
    settings = spoken / "newton.toml"  # of all tests of this file
    former = settings.read_text(encoding="utf-8")
    settings.write_text('database_url = "postgresql://nobody@127.0.0.1:9/none"\n', encoding="utf-8")
    try:
        wrong = ended(spoken, "doctor", encoding="latin-1")
    finally:
        settings.write_text(former, encoding="utf-8")
    assert wrong.status == 1 and b"\n[failed] The database cannot be reached: Connect call failed" in wrong.out


@pytest.fixture
def spoken(home: Path) -> Path:
    ok(typed(home, "remember", "Zoë from Zürich has a 🎉 and 日本語"))
    return home


def ended(home: Path, *words: str, encoding: str = "utf-8", out: int | None = None, err: int | None = None) -> Ended:
    """`newton …` whose standard output and error are these files, or files that can be read afterwards."""
    kept = [os.memfd_create("kept") for _ in range(2)]
    streams = [
        io.TextIOWrapper(io.FileIO(os.dup(kept[number] if file is None else file), "wb"), encoding=encoding)
        for number, file in enumerate((out, err))
    ]
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(home):
        for name in [n for n in os.environ if n.startswith(("NEWTON_", "OPENAI_")) or n == "DATABASE_URL"]:
            patch.delenv(name)
        patch.setenv("NEWTON_DATA_DIR", str(home))
        patch.setenv("NEWTON_EMBEDDING_PROVIDER", "none")
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        status = run(words)
    for stream in streams:
        stream.close()
    written = [Path(f"/dev/fd/{file}").read_bytes() for file in kept]
    for file in kept:
        os.close(file)
    return Ended(status, *written)


@contextlib.contextmanager
def closed_pipe() -> Generator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


@contextlib.contextmanager
def full_disk() -> Generator[int]:
    file = os.open("/dev/full", os.O_WRONLY)
    try:
        yield file
    finally:
        os.close(file)


def check(home: Path, words: tuple[str, ...]) -> None:
    """Run a command with each kind of stream, and compare with the same command where nothing is wrong."""
    usual = ended(home, *words)
    assert b"Traceback" not in usual.err
    for encoding in ("ascii", "latin-1", "cp437"):
        done = ended(home, *words, encoding=encoding)
        assert (done.status, bool(done.out), bool(done.err)) == (usual.status, bool(usual.out), bool(usual.err))
        if words[0] != "export":  # a file, in UTF-8
            done.out.decode(encoding)
        assert b"Traceback" not in done.err
    with full_disk() as full:
        done = ended(home, *words, out=full)
        assert done.err.decode().endswith(NO_SPACE if usual.out else "")
        assert done.status == (1 if usual.out else usual.status) and b"Traceback" not in done.err
        assert ended(home, *words, err=full).status == usual.status
    with closed_pipe() as pipe:
        done = ended(home, *words, out=pipe)
        assert done.status == (PIPE_CLOSED if usual.out else usual.status)
        assert b"Traceback" not in done.err and b"Broken pipe" not in done.err
        assert ended(home, *words, err=pipe).status == usual.status
        assert ended(home, *words, out=pipe, err=pipe).status == done.status


@pytest.mark.parametrize(
    "words", [*SOME, *(pytest.param(words, marks=pytest.mark.slow) for words in MORE)], ids=" ".join
)
def test_a_command_ends_as_it_should_whatever_its_output_is(spoken: Path, words: tuple[str, ...]) -> None:
    check(spoken, words)


@pytest.mark.slow
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_every_command_that_shows_something_ends_as_it_should(spoken: Path, words: tuple[str, ...]) -> None:
    for flags in ((), ("--json",)):
        check(spoken, (*words, *flags))


@pytest.mark.slow
def test_every_help_ends_as_it_should(home: Path) -> None:
    assert len(READING) > 30 and len(ALL) > 100
    with full_disk() as full, closed_pipe() as pipe:
        for words, _ in ALL:
            assert ended(home, *words, "--help", out=full).err.decode() == NO_SPACE, words
            done = ended(home, *words, "--help", out=pipe)
            assert (done.status, done.err) == (PIPE_CLOSED, b""), words


def test_what_an_encoding_does_not_have_is_replaced(spoken: Path) -> None:
    assert b"Zo\xeb from Z\xfcrich has a ? and ???" in ended(spoken, "list", encoding="latin-1").out
    listed = json.loads(ended(spoken, "list", "--json", encoding="ascii").out)
    assert "Zo? from Z?rich has a ? and ???" in {item["text"] for item in listed["items"]}


def process(home: Path, redirection: str, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """`newton … REDIRECTION` as a shell runs it. The output is the exit status, and what is left of the streams."""
    own = {"NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT), **env}
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    script = f'exec 3>&1; {{ "$@" ; echo "status $?" >&3; }} {redirection}'
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", sys.executable, "-m", "newton", *words],
        capture_output=True, text=True, errors="replace", cwd=home, env={**plain, **own}, timeout=100, check=False,
        input="Hello.\n",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("words", [("list",), ("chat",), ("--help",)], ids=" ".join)
@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [("| true", PIPE_CLOSED, ""), (">/dev/full", 1, NO_SPACE), (">&-", 0, ""), (">&- 2>&-", 0, ""), ("2>&-", 0, "")],
)
def test_a_process_ends_as_it_should(
    spoken: Path, words: tuple[str, ...], redirection: str, status: int, said: str
) -> None:
    done = process(spoken, redirection, *words, LC_ALL="C", PYTHONIOENCODING="latin-1")
    assert f"status {status}\n" in done.stdout
    assert "Traceback" not in done.stderr and done.stderr.endswith(said)


@pytest.mark.slow
def test_a_daemon_goes_on_when_nobody_reads_its_log(house: Path) -> None:
    reading, writing = os.pipe()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    own = {"NEWTON_DATA_DIR": str(house / "unread"), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "newton", "serve", "--port", "0"]
    served = subprocess.Popen(command, cwd=house, env={**plain, **own}, stdout=writing, stderr=writing)
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as log:
            url = next(found[1] for line in log if (found := SERVES.search(line)))
        token = (house / "unread" / "operator.token").read_text(encoding="utf-8").strip()
        with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            for _ in range(3):
                assert client.get("/health/ready").status_code == 200
                assert client.get("/v1/nothing").status_code == 404
        served.send_signal(signal.SIGTERM)
        assert served.wait(timeout=60) == 0
    finally:
        served.kill()

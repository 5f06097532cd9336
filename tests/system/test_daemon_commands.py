"""Commands beside a running daemon: they run in it and end as in a process of their own."""

import asyncio
import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from newton.environment import read_sources
from newton.runtime import daemon_socket
from newton.runtime.daemon_address import publish_address
from newton.runtime.daemon_socket import COMMANDS_PATH, LocalRequest
from tests.endpoint import Wire, chunk, endpoint
from tests.system.daemons import Daemon, daemon
from tests.system.servers import wait
from tests.system.typed import Done, ok, typed

ROOT = Path(__file__).parents[2]
NOT_IN_DAEMON = 77
NOBODY = 65534  # a user id
# Runs a command in the daemon or not at all.
IN_DAEMON = f"""
import sys
from newton.runtime.cli.daemon_client import run_in_daemon
code = run_in_daemon(sys.argv[1:])
sys.stdout.flush()
sys.exit({NOT_IN_DAEMON} if code is None else code)
"""
# Before it: whose request is not taken soon does not wait for it.
HURRIED = "from newton.runtime.cli import daemon_client\ndaemon_client.ACCEPT_SECONDS = 0.3\n"
# The same for each of several commands, in a process forked for it: to start Python takes longer than most of them.
EACH_IN_DAEMON = f"""
import json, os, sys
from newton.runtime.cli.daemon_client import run_in_daemon
def run(place, words):
    for stream, name in enumerate(("answer", f"{{place}}.out", f"{{place}}.err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), stream)
    code = run_in_daemon(words)
    sys.stdout.flush()
    os._exit({NOT_IN_DAEMON} if code is None else code)
codes = []
for place, words in enumerate(json.load(sys.stdin)):
    child = os.fork() or run(place, words)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""
HEAVY = {"asyncio", "asyncpg", "cyclopts", "numpy", "onnxruntime", "pydantic", "rich", "yaml", "httpx2", "openai"}


def environment(house: Path, **more: str) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NEWTON_", "OPENAI_")) and k != "DATABASE_URL"}
    own = {"NEWTON_DATA_DIR": str(house / "data"), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT)}
    return {**plain, **own, **more}


def in_daemon(house: Path, *words: str, script: str = IN_DAEMON, **more: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        input="no\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(house, **more),
        cwd=house,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def each_in_daemon(house: Path, folder: Path, commands: Sequence[Sequence[str]]) -> list[Done]:
    (folder / "answer").write_text("no\n")
    command = [sys.executable, "-c", EACH_IN_DAEMON]
    given, env = json.dumps(commands), environment(house)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, env=env, cwd=folder)
    texts = [[(folder / f"{n}.{kind}").read_text("utf-8") for kind in ("out", "err")] for n in range(len(commands))]
    return [Done(code, *text) for code, text in zip(json.loads(done.stdout), texts, strict=True)]


def in_process(house: Path, *words: str) -> Done:
    """The same database, without a daemon: the data folder is another one."""
    return typed(house, *words, NEWTON_DATA_DIR=str(house / "other"))


def plain(text: str) -> str:
    """A text without ids, times and durations."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{8,64}\b", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?)?", "TIME", text)
    return re.sub(r"\d+\.\d{3,}", "NUMBER", text)


COMMANDS: Sequence[Sequence[str]] = (
    ("remember", "Ana lives in Porto.", "--subject", "Ana"),
    ("remember", "Ana lives in Porto.", "--json"),
    ("remember", "The boat is \x1b[31mred\u202e, é and 船.", "--confidence", "0.9"),
    ("remember", "x", "--confidence", "7"),
    ("recall", "Porto boat"),
    ("recall", "Porto boat", "--json", "--limit", "2"),
    ("recall", "Porto", "--kind", "nonsense"),
    ("recall",),
    ("recall", "Porto", "--limit", "many", "--json"),
    ("recal", "Porto"),
    ("context", "Where does Ana live?", "--tokens", "500"),
    ("context", "Where does Ana live?", "--frame", "debgu"),
    ("ask", "Where does Ana live?", "--session", "s"),
    ("ask", "Where does Ana live?", "--session", "s", "--debug"),
    ("sessions",),
    ("sessions", "log", "s", "--json"),
    ("identity", "add", "Answer in one sentence."),
    ("identity",),
    ("censors", "add", "push to main", "--reason", "it breaks"),
    ("decide", "Use Redis", "--confidence", "0.8", "--reason", "analysis:reads outnumber writes"),
    ("decide", "Use Redis"),
    ("decisions", "--json"),
    ("guard",),
    ("tasks", "push", "Ship", "--session", "s"),
    ("tasks", "--session", "s"),
    ("procedures", "--json"),
    ("jobs", "dead", "--json"),
    ("calibration",),
    ("why", "00000000"),
    ("forget", "00000000"),
    ("erase", "--subject", "Ana"),
    ("show", "00000000", "--json"),
)


@pytest.mark.slow
def test_each_command_ends_in_the_daemon_as_in_a_process_of_its_own(
    served: Daemon, house: Path, tmp_path: Path
) -> None:
    ok(in_process(house, "agents", "create", "agent-one"))
    ok(in_process(house, "agents", "create", "agent-two"))
    (tmp_path / "newton.toml").write_bytes((house / "newton.toml").read_bytes())  # the settings of the daemon
    within = each_in_daemon(house, tmp_path, [[*words, "--agent", "agent-one"] for words in COMMANDS])
    for words, inside in zip(COMMANDS, within, strict=True):
        beside = in_process(house, *words, "--agent", "agent-two")
        assert inside.returncode == beside.returncode != NOT_IN_DAEMON, (words, inside)
        for one, other in ((inside.stdout, beside.stdout), (inside.stderr, beside.stderr)):
            assert plain(one).replace("agent-one", "AGENT") == plain(other).replace("agent-two", "AGENT"), words
    assert len({in_process(house, *words, "--agent", "agent-two").returncode for words in COMMANDS[3:6]}) == 2


@pytest.mark.slow
def test_an_agent_that_is_new_or_was_erased_has_its_procedures_in_the_daemon(served: Daemon, house: Path) -> None:
    made = in_daemon(house, "remember", "The kettle is blue.", "--agent", "brief")
    assert (made.returncode, made.stderr.splitlines()[0]) == (0, "Created agent brief.")
    for erase in (in_daemon, in_process):
        procedures = json.loads(ok(in_daemon(house, "procedures", "--json", "--agent", "brief")))["items"]
        assert len(procedures) > 3
        ok(erase(house, "erase", "--everything", "--yes", "--agent", "brief"))
        assert "kettle" not in ok(in_daemon(house, "recall", "kettle", "--agent", "brief"))


def test_the_caller_loads_nothing_heavy(served: Daemon, house: Path) -> None:
    script = IN_DAEMON.replace("sys.stdout.flush()", "print(*sys.modules, file=sys.stderr)")
    done = in_daemon(house, "recall", "boat", script=script)
    loaded = set(done.stderr.split())
    assert (done.returncode, loaded & HEAVY) == (0, set())
    light = ("command_context", "command_registry", "daemon_client", "printing")
    own = {name for name in loaded if name.startswith("newton.runtime.cli.")}
    assert own == {f"newton.runtime.cli.{name}" for name in light}


def test_what_needs_the_files_or_the_terminal_of_the_caller_runs_in_its_process(served: Daemon, house: Path) -> None:
    for words in (
        ("artifacts", "save", "log", "log.txt"),
        ("ask", "Which ferry?", "--daemon", served.url),
        ("decisions", "verify", "00000000"),
        ("export", "-"),
        ("recall", "--help"),
        ("doctor",),
    ):
        done = in_daemon(house, *words)
        assert (done.returncode, done.stdout, done.stderr) == (NOT_IN_DAEMON, "", ""), words
    assert not (house / "log.txt").exists()
    for words in (("forget", "00000000"), ("erase", "--everything", "--agent", "default"), ("decide", "--agent", "no")):
        screen, line = pty.openpty()
        command = [sys.executable, "-c", IN_DAEMON, *words]
        done = subprocess.run(command, stdin=line, capture_output=True, env=environment(house), cwd=house, check=False)
        os.close(line)
        os.close(screen)
        assert (done.returncode, done.stdout, done.stderr) == (NOT_IN_DAEMON, b"", b""), words


@pytest.mark.slow
def test_other_settings_are_named_and_used_in_the_process_of_the_caller(served: Daemon, house: Path) -> None:
    same = typed(house, "doctor", NEWTON_DATA_DIR=str(house / "data")).stdout
    assert "runs commands with the settings below" in same
    assert same.count("PostgreSQL") == 1
    for name, setting in (("OPENAI_MODEL", "openai_model"), ("NEWTON_PACK", "pack"), ("PGDATABASE", "PGDATABASE")):
        other = {name: "support"}
        done = in_daemon(house, "recall", "boat", **other)
        assert (done.returncode, done.stdout) == (NOT_IN_DAEMON, "")
        assert done.stderr == (
            f"(The daemon did not run the command: it was started with another value of {setting}."
            " The command runs without it.)\n"
        )
        assert in_daemon(house, "recall", "boat", "--json", **other).stderr == ""
    told = typed(house, "doctor", NEWTON_DATA_DIR=str(house / "data"), NEWTON_PACK="support").stdout
    assert "was started with another value of: pack" in told and "of the daemon: PostgreSQL" in told
    (house / "elsewhere").mkdir()
    (house / "elsewhere" / "newton.toml").write_text((house / "newton.toml").read_text() + "context_tokens = 900\n")
    script = f"import os\nos.chdir('elsewhere')\n{IN_DAEMON}"
    assert "context_tokens" in in_daemon(house, "recall", "boat", script=script).stderr


def test_only_the_user_of_the_daemon_may_open_its_socket_and_no_other_daemon_takes_it(
    served: Daemon, house: Path
) -> None:
    run = house / "data" / daemon_socket.FOLDER
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (run, run / daemon_socket.SOCKET_FILE)]
    assert modes == [0o700, 0o600]
    with publish_address(house / "data", "http://another") as is_only:
        assert not is_only, "a daemon listens only if no other daemon of its data folder runs"
    assert in_daemon(house, "recall", "boat").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_at_either_end() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)
        path = home / daemon_socket.FOLDER / daemon_socket.SOCKET_FILE
        with daemon_socket.listen(home) as listener:
            path.parent.chmod(0o711)
            path.chmod(0o666)
            with stranger("s.connect(sys.argv[1]); s.recv(1)", path) as other:
                listener.settimeout(30)
                with listener.accept()[0] as connection:
                    assert not daemon_socket.is_own_peer(connection)
                assert other.wait(timeout=30) == 0
        path.parent.chmod(0o777)
        with stranger("s.bind(sys.argv[1]); s.listen(); print(flush=True); s.accept()[0].recv(1)", path) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert daemon_socket.connect(home) is None
            assert other.wait(timeout=30) == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_daemon_answers_no_request_of_another_user(house: Path) -> None:
    head = r"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    request = f"s.connect(sys.argv[1]); s.sendall(b'{head}'); sys.stdout.buffer.write(s.recv(8)); sys.stdout.flush()"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "newton.toml").write_bytes((house / "newton.toml").read_bytes())
        with daemon(home, NEWTON_EMBEDDING_PROVIDER="none"):
            path = home / "data" / daemon_socket.FOLDER / daemon_socket.SOCKET_FILE
            for shared in (home, home / "data", path.parent, path):
                shared.chmod(0o777)
            for user, answer in ((os.geteuid(), b"HTTP/1.1"), (NOBODY, b"")):
                assert stranger(request, path, user=user).communicate(timeout=30)[0] == answer


def stranger(statements: str, path: Path, user: int = NOBODY) -> "subprocess.Popen[bytes]":
    """A process of another user, who uses a socket of this path."""
    code = f"import os, socket, sys; os.setuid({user}); s = socket.socket(socket.AF_UNIX); {statements}"
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)


def test_a_path_that_is_too_long_for_a_socket_is_reached_nevertheless(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    with daemon_socket.listen(home):
        connection = daemon_socket.connect(home)
        assert connection is not None
        connection.close()
    assert daemon_socket.connect(home) is None


@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 404 Not Found\r\n\r\n", b'{"version": "0.1"}\n'])
def test_a_daemon_that_does_not_take_a_command_or_is_of_another_version_is_sent_none(
    tmp_path: Path, response: bytes
) -> None:
    (tmp_path / "data").mkdir()
    command = [sys.executable, "-c", HURRIED + IN_DAEMON, "recall", "x"]
    with (
        daemon_socket.listen(tmp_path / "data") as listener,
        subprocess.Popen(command, env=environment(tmp_path), cwd=tmp_path) as caller,
    ):
        listener.settimeout(30)
        with listener.accept()[0] as connection:
            connection.settimeout(30)
            assert connection.recv(10_000).endswith(b"\r\n\r\n")
            connection.sendall(response)
            assert connection.recv(1) == b""
        assert caller.wait(timeout=30) == NOT_IN_DAEMON


def test_a_defect_of_a_command_is_shown_to_its_caller(served: Daemon, house: Path) -> None:
    request = LocalRequest.open(house / "data", COMMANDS_PATH, seconds=60)
    assert request is not None
    with closing(request):
        terminal = {"can_ask": False, "has_progress": False, "width": None, "shown_style": "text"}
        request.send({"argv": [5], "sources": {**asdict(read_sources({})), "file_values": {}}, "terminal": terminal})
        shown, last = request.read(), request.read()
    assert shown and "TypeError" in shown["stderr"] and last == {"exit": 1}


async def begins(wire: Wire) -> None:
    """A reply that never ends."""
    await wire.begin_stream()
    await wire.event(chunk({"choices": [{"index": 0, "delta": {"content": "It is Artemis"}, "finish_reason": None}]}))
    await asyncio.Event().wait()


async def asking(home: Path, session: str, **model: str) -> asyncio.subprocess.Process:
    """A question whose answer has begun."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "newton", "ask", "Which ferry?", "--session", session),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home, **model),
        cwd=home,
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readexactly(13) == b"It is Artemis"
    return process


async def logged(home: Path, session: str) -> list[tuple[str, str]]:
    done = await asyncio.to_thread(in_process, home, "sessions", "log", session, "--json")
    return [(one["role"], one["content"]) for one in json.loads(ok(done))["items"]]


@pytest.mark.fault
async def test_ctrl_c_and_a_killed_daemon_end_a_command_in_order(home: Path) -> None:
    async with endpoint(begins) as server:
        model = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "scripted"}
        with daemon(home, NEWTON_EMBEDDING_PROVIDER="none", **model) as made:
            wait(lambda: in_daemon(home, "recall", "boat", **model).returncode == 0)
            stopped = await asking(home, "a", **model)
            stopped.send_signal(signal.SIGINT)
            said = (await stopped.communicate())[1]
            assert stopped.returncode == 130, said.decode()
            assert await logged(home, "a") == [("user", "Which ferry?"), ("assistant", "It is Artemis")]

            left = await asking(home, "b", **model)
            made.process.kill()
            _, said = await left.communicate()
            assert (left.returncode, said.decode().splitlines()[0]) == (
                1,
                "newton: The daemon stopped before the command was finished.",
            )
        assert await logged(home, "b") == [("user", "Which ferry?")]
        dead = home / "data" / daemon_socket.FOLDER / daemon_socket.SOCKET_FILE
        assert dead.exists()
        assert in_daemon(home, "recall", "boat", **model).returncode == NOT_IN_DAEMON
        with daemon(home, NEWTON_EMBEDDING_PROVIDER="none", **model) as again:
            wait(lambda: in_daemon(home, "recall", "boat", **model).returncode == 0)
            assert again.stopped() == 0
        assert not dead.exists()

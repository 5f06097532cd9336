"""The daemon: it is spoken to with tokens alone, and ends in order."""

import gzip
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from newton import __version__
from newton.runtime.daemon import ListenOptions, bind_socket
from tests.system.daemons import Daemon, daemon
from tests.system.servers import children, fresh, postmaster, wait
from tests.system.typed import create_agents, ok, typed


def test_it_says_when_it_can_work(served: Daemon) -> None:
    assert httpx2.get(f"{served.url}/health/live").json() == {"status": "live"}
    ready = httpx2.get(f"{served.url}/health/ready")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


@pytest.mark.parametrize("header", [None, "Bearer nonsense", "Bearer nwt_" + "A" * 86, "Basic eA==", "Bearer"])
def test_without_a_valid_token_nothing_is_done(served: Daemon, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    answer = httpx2.post(f"{served.url}/v1/memories", json={"content": "x"}, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "newton tokens create" in answer.json()["hint"]


def test_the_operator_names_any_agent_and_others_read_no_file_of_theirs(served: Daemon, house: Path) -> None:
    served.begins("somebody")
    with served.client(**{"X-Newton-Agent": "somebody"}) as client:
        assert client.post("/v1/memories", json={"content": "The kettle is blue."}).status_code == 201
    assert stat.S_IMODE((house / "data" / "operator.token").stat().st_mode) == 0o600


def test_a_problem_says_what_is_wrong_and_what_to_do(served: Daemon) -> None:
    with served.client() as client:
        answers = [client.post("/v1/memories", json={"contents": "x"}), client.get("/v1/nothing")]
    assert [answer.status_code for answer in answers] == [422, 404]
    assert all(answer.json()["hint"] and answer.json()["type"].startswith("urn:newton:") for answer in answers)


def test_one_who_asks_a_daemon_and_is_refused_is_told_what_to_do(served: Daemon, house: Path) -> None:
    here, data = served.url, str(house / "data")
    create_agents(house, "ana")
    made = ok(typed(house, "tokens", "create", "laptop", "--agent", "ana")).strip()
    (house / "laptop.token").write_text(f"{made}\n", encoding="utf-8")
    ana = ("--token-file", "laptop.token")
    for words, env, code, said in (
        (("--daemon", here), {}, 2, "No token for the daemon is given"),
        (("--daemon", here), {"NEWTON_TOKEN": "nwt_x"}, 2, "rejects the token"),
        (("--daemon", here), {"NEWTON_TOKEN": "two words"}, 2, "NEWTON_TOKEN contains no valid token"),
        (("--daemon", here, *ana, "--agent", "ben"), {}, 2, "another agent"),
        (("--daemon", here, "--frame", "debgu"), {"NEWTON_DATA_DIR": data}, 2, "Did you mean 'debug'?"),
        (("--daemon", "127.0.0.1"), {}, 2, "http://127.0.0.1:8700"),
        (("--daemon", "http://127.0.0.1:9", *ana), {}, 1, "Check that `newton serve` runs"),
        (ana, {}, 2, "--token-file requires --daemon"),
        (("--daemon", here, *ana, "--agent", "ana"), {}, 0, ""),
        (("--daemon", here, "--agent", "anna"), {"NEWTON_DATA_DIR": data}, 2, "Did you mean 'ana'?"),
        (("--daemon", here, "--agent", "ana"), {"NEWTON_DATA_DIR": data}, 0, ""),  # with the operator's own
    ):
        done = typed(house, "ask", "Which ferry?", *words, **env)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.slow
def test_a_port_that_is_taken_is_refused_with_a_remedy(served: Daemon, home: Path) -> None:
    port = served.url.rpartition(":")[2]
    words = [sys.executable, "-m", "newton", "serve", "--port", port]
    second = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 2
    assert "give another --port" in second.stderr


@pytest.mark.fault
def test_it_ends_in_order_when_told_to_and_its_traces_hold_no_word_that_was_said(home: Path) -> None:
    with collector() as (url, traces), daemon(home, "--traces", OTEL_EXPORTER_OTLP_ENDPOINT=url) as made:
        with made.client(traceparent=f"00-{'4b' * 16}-{'a3' * 8}-01") as client:
            assert client.post("/v1/memories", json={"content": "The kettle is blue."}).status_code == 201
            assert client.post("/v1/context", json={"input": "Which colour has the kettle?"}).status_code == 200
            assert client.get("/v1/sessions/kettles/view").status_code == 404
        assert made.stopped() == 0
    told = b"".join(traces)
    for name in (b"POST /v1/memories", b"GET /v1/sessions/{session}/view", b"newton.recall_ms", b"\x4b" * 16):
        assert name in told
    assert b"ettle" not in told and made.token.encode() not in told


@contextmanager
def collector() -> Generator[tuple[str, list[bytes]]]:
    """Takes what a daemon sends to a collector of traces."""
    traces: list[bytes] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            traces.append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", traces
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_an_address_that_others_reach_wants_encryption(home: Path) -> None:
    words = [sys.executable, "-m", "newton", "serve", "--host", "0.0.0.0"]
    refused = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert "--tls-cert" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "remedy"),
    [(("--port", "99999"), "0 to 65535"), (("--port", "0", "--tls-cert", "no", "--tls-key", "no"), "PEM")],
)
def test_what_cannot_be_listened_with_is_refused_with_a_remedy(home: Path, flags: tuple[str, ...], remedy: str) -> None:
    words = [sys.executable, "-m", "newton", "serve", *flags]
    refused = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert (refused.returncode, remedy in refused.stderr, "Traceback" in refused.stderr) == (2, True, False)


@pytest.mark.fault  # twice the time that a daemon has to leave
def test_a_database_that_says_nothing_keeps_neither_the_probe_nor_the_end(tmp_path: Path) -> None:
    with fresh(tmp_path / "data"), daemon(tmp_path, NEWTON_EMBEDDING_PROVIDER="none") as made:
        assert httpx2.get(f"{made.url}/health/ready").status_code == 200
        pid = postmaster(tmp_path / "data")
        assert pid
        silenced = [pid, *children(pid)]
        for one in silenced:
            os.kill(one, signal.SIGSTOP)
        try:
            assert httpx2.get(f"{made.url}/health/ready", timeout=4).status_code == 503
            assert made.stopped() is not None, "it ends while its database is silent"
        finally:
            for one in silenced:
                os.kill(one, signal.SIGCONT)


@pytest.mark.fault
def test_an_embedded_server_that_dies_is_started_again_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    # promise 4, R1 in small
    with fresh(tmp_path / "data"), daemon(tmp_path, NEWTON_EMBEDDING_PROVIDER="none") as made, made.client() as client:
        kept: list[str] = []
        for number in range(2):
            assert client.post("/v1/memories", json={"content": f"Cup {number} is white."}).status_code == 201
            kept.append(f"Cup {number} is white.")
            pid = postmaster(tmp_path / "data")
            assert pid
            os.killpg(os.getpgid(pid), signal.SIGKILL)
            wait(
                lambda: client.post("/v1/memories", json={"content": "Saucers are blue."}).status_code == 201,
                seconds=60,
            )
        of = {"NEWTON_DATA_DIR": str(tmp_path / "data")}
        assert f"the daemon at {made.url} (Newton {__version__}) is ready" in typed(tmp_path, "doctor", **of).stdout
        assert made.stopped() == 0
        assert "no daemon uses this data folder" in typed(tmp_path, "doctor", **of).stdout
        shown = typed(tmp_path, "recall", "white cup", NEWTON_DATA_DIR=str(tmp_path / "data")).stdout
        assert all(words in shown for words in kept)


def test_connections_do_not_wait_for_acknowledgements() -> None:
    # without TCP_NODELAY each answer of two packets takes 40 ms
    with (
        bind_socket(ListenOptions(port=0)) as door,
        socket.create_connection(door.getsockname()),
        door.accept()[0] as taken,
    ):
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.fault
def test_it_leaves_at_once_while_its_database_is_still_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and never says a word
        url = f"postgresql://u:p@127.0.0.1:{silent.getsockname()[1]}/n"
        words = [sys.executable, "-m", "newton", "serve", "--port", "0"]
        env = {**os.environ, "DATABASE_URL": url, "NEWTON_DATA_DIR": str(tmp_path), "NEWTON_EMBEDDING_PROVIDER": "none"}
        process = subprocess.Popen(words, cwd=tmp_path, env=env)
        try:
            silent.settimeout(600)  # it has its whole start before it, on a machine that may be busy
            silent.accept()[0].close()  # the one that asks for TLS; then it tries again without
            with silent.accept()[0]:
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait(timeout=60)

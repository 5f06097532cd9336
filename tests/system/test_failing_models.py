"""A model server that answers 500: what a person sees of it, until it works again."""

import json
from pathlib import Path

import pytest

from tests.endpoint import Wire, aside, endpoint, says
from tests.system.daemons import daemon
from tests.system.test_cli import ok
from tests.system.typed import typed


def answers(broken: list[bool], *, anthropic: bool):
    item: dict[str, object] = {"line": 1, "op": "add", "ids": [], "subject": "", "attribute": "", "when": ""}
    reply = json.dumps({"items": [{**item, "text": "Ana is a baker."}]})

    async def respond(wire: Wire) -> None:
        if broken and wire.path.endswith(("/messages", "/completions")):
            await wire.send(500, {"error": {"message": "SISTER ANA"}})
        elif not anthropic:
            await says([reply])(wire)
        elif wire.path.endswith("/messages"):
            await wire.begin_stream()
            block = {"index": 0, "content_block": {"type": "text", "text": reply}}
            await wire.event({"type": "message_start", "message": {"usage": {"input_tokens": 9}}})
            await wire.event({"type": "content_block_start", **block})
            done = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
            await wire.event({"type": "message_delta", **done})
        else:
            await wire.send(200, {"data": []})

    return respond


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_broken_model_server_is_named_everywhere_until_it_works(home: Path, provider: str) -> None:
    broken, agent, anthropic = [True], f"patient-of-{provider}", provider == "anthropic"
    ok(typed(home, "ask", "Ana, a baker: that is what she is.", "--agent", agent, NEWTON_QUOTE_WITHOUT_MODEL="true"))
    with aside(endpoint(answers(broken, anthropic=anthropic))) as server:
        base = server.url.removesuffix("/v1") if anthropic else server.url
        name = provider.upper()
        settings = {f"{name}_BASE_URL": base, f"{name}_MODEL": "tiny", f"{name}_API_KEY": "k", "NEWTON_AGENT": agent}
        settings |= {"NEWTON_SESSION_IDLE_MINUTES": "0"}
        first = typed(home, "jobs", "run", "extract", **settings)
        assert first.returncode == 1 and "500" in first.stderr
        _, _, line = ok(typed(home, "jobs", **settings)).partition("! ")
        assert (
            "does not work for the reconciliation of new lines" in line and "500" in line and "SISTER ANA" not in line
        )
        doctor = typed(home, "doctor", "--json", **settings)
        found = [one for one in json.loads(doctor.stdout)["findings"] if "reconciliation of new lines" in one["detail"]]
        assert [one["state"] for one in found] == ["wrong"]
        with daemon(home, **settings) as served, served.client() as client:
            listed = client.get("/v1/token").json()["failing_models"]
            (failing,) = [one for one in listed if one["purpose"] == "reconcile"]
            assert failing["calls"] >= 1 and "HTTP status 500" in failing["failure"]
            assert f'newton_failing_models{{agent="{agent}"' in client.get("/metrics").text
        broken.clear()
        ok(typed(home, "jobs", "run", "extract", **settings))
        assert "reconciliation of new lines" not in ok(typed(home, "jobs", **settings))
        assert "Ana is a baker." in ok(typed(home, "list", **settings))

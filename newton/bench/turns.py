"""`newton bench turns`: the time that Newton adds to the first token of a streamed chat completion."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import httpx2
from cyclopts import Parameter

from newton.bench.context import SEED, import_dialogue
from newton.bench.daemon_process import DaemonAccess, run_daemon, wait_until_idle
from newton.bench.environment import WARM_UP_ROUNDS, AtLeastOne, open_environment, vacuum_analyze
from newton.bench.instant_model import MODEL, REPLY, serve_instant_model
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import p50_and_p95, percentile
from newton.bench.synthetic_dialogue import generate_dialogue
from newton.clock import monotonic_ms
from newton.dialogue.messages import Message
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

DEFAULT_TURNS = (1, 20, 100)
MIN_SHARED_TURNS = 10
ANSWER = "It was written down, and nothing else was said about it on that day."


class StreamTimes(NamedTuple):
    """The milliseconds from a request to the first byte of its response, and to the first token of the reply."""

    first_byte: float
    first_token: float


@dataclass(slots=True, kw_only=True)
class TurnMeasurement:
    """Sends requests to the model directly and through Newton, in conversations with `turns` earlier turns.

    The last one of them, or more, has run through Newton, so that the session has a context. A conversation with fewer
    than MIN_SHARED_TURNS turns is a session of its own for each question; a longer one is continued.
    """

    newton: AgentServices
    direct: httpx2.AsyncClient
    through: httpx2.AsyncClient
    turns: int
    questions: Sequence[str]
    session: str | None = None

    async def measure(self, question: str, number: int) -> tuple[StreamTimes, StreamTimes]:
        """Return the times of the model alone and of the model through Newton. The order alternates by `number`."""
        if self.session is None or self.turns < MIN_SHARED_TURNS:
            self.session = await self._begin_session(number)
        earlier = [
            {"role": role, "content": text}
            for text in self._earlier
            for role, text in (("user", text), ("assistant", ANSWER))
        ]
        asked = {"role": "user", "content": question}
        times: dict[bool, StreamTimes] = {}
        for is_direct in (True, False) if number % 2 else (False, True):
            client, messages = (self.direct, [*earlier, asked]) if is_direct else (self.through, [asked])
            body = {"model": MODEL if is_direct else "newton", "messages": messages, "stream": True}
            times[is_direct] = await _time_stream(client, body, session=self.session)
        return times[True], times[False]

    async def _begin_session(self, number: int) -> str:
        """Store a conversation, except its last turn, and run that through Newton; return the name of the session."""
        session, now = f"{self.turns} turns, {number}", self.newton.scope.now()
        *stored, last = self._earlier
        lines = [
            message
            for text in stored
            for message in (
                Message(role="user", content=text, said_at=now),
                Message(role="assistant", content=ANSWER, said_at=now),
            )
        ]
        if lines:
            await self.newton.sessions("bench").append(session, lines)
        body = {"model": "newton", "messages": [{"role": "user", "content": last}], "stream": True}
        await _time_stream(self.through, body, session=session)
        return session

    @property
    def _earlier(self) -> Sequence[str]:
        return [self.questions[-1 - number % len(self.questions)] for number in range(self.turns)]


async def run_benchmark(
    *,
    memories: Annotated[int, AtLeastOne] = 1_000,
    rounds: Annotated[int, AtLeastOne] = 100,
    turns: Annotated[
        list[int] | None, Parameter(negative=(), help="Earlier turns of the session (1, 20, 100).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure the time to the first token of a chat completion, from a model directly and through a daemon.

    The model answers at once. The requests to it and to the daemon alternate.

    Example: newton bench turns --memories 1000 --rounds 100

    Parameters
    ----------
    memories:
        Number of messages to import before.
    rounds:
        Number of questions for each number of turns.
    """
    start, counts = RunStart(), turns or DEFAULT_TURNS
    dialogue = generate_dialogue(memories, rounds + WARM_UP_ROUNDS, seed=SEED)
    settings = load_settings().model_copy(update={"database_url": None})
    async with open_environment(settings) as env, serve_instant_model() as model_url:
        await import_dialogue(env.newton, dialogue, vectors="real")
        await env.newton.maintenance("bench").process_pending(None)
        await vacuum_analyze(env.owner_dsn)
        access = run_daemon(env.newton, env.owner_dsn, openai_base_url=model_url, openai_model=MODEL)
        async with access as daemon, _client(model_url, "none") as direct, _connect(daemon) as through:
            measurements = [
                TurnMeasurement(
                    newton=env.newton, direct=direct, through=through, turns=count, questions=dialogue.questions
                )
                for count in counts
            ]
            await wait_until_idle(daemon)
            results = await _measure_alternately(measurements, dialogue.questions)
        receipt = await collect_run_metadata(env, start, data_sha256=str(SEED), budgets=[settings.context_tokens])
    figures = {str(one.turns): _summarize(results[one.turns]) for one in measurements}
    if json:
        formatting.print_json({"turns": figures, "rounds": rounds, "memories": memories, "receipt": receipt})
    else:
        print("\n".join(_format_line(turn_count, one) for turn_count, one in figures.items()))


async def _measure_alternately(
    measurements: Sequence[TurnMeasurement], questions: Sequence[str]
) -> Mapping[int, list[tuple[StreamTimes, StreamTimes]]]:
    """Measure each conversation with each question in turn. The first WARM_UP_ROUNDS questions do not count."""
    results: dict[int, list[tuple[StreamTimes, StreamTimes]]] = {one.turns: [] for one in measurements}
    for number, question in enumerate(questions):
        for one in measurements:
            times = await one.measure(question, number)
            if number >= WARM_UP_ROUNDS:
                results[one.turns].append(times)
    return results


def _summarize(pairs: Sequence[tuple[StreamTimes, StreamTimes]]) -> dict[str, Any]:
    """Return the percentiles of the times, and of the differences between both requests of a pair. Pure."""
    added = [through.first_token - direct.first_token for direct, through in pairs]
    return {
        "direct_first_token_ms": p50_and_p95([direct.first_token for direct, _ in pairs]),
        "newton_first_token_ms": p50_and_p95([through.first_token for _, through in pairs]),
        "newton_first_byte_ms": p50_and_p95([through.first_byte for _, through in pairs]),
        "added_ms": p50_and_p95(added),
        "added_max_ms": round(percentile(added, 1.0), 1),
    }


def _format_line(turn_count: str, figures: Mapping[str, Any]) -> str:
    shown = {name: figures[f"{name}_ms"] for name in ("direct_first_token", "newton_first_token", "added")}
    parts = (f"{name.replace('_', ' ')} {one['p50']:.1f} ms (p95 {one['p95']:.1f})" for name, one in shown.items())
    return f"{turn_count:>4} earlier turns: {', '.join(parts)}"


def _connect(daemon: DaemonAccess) -> httpx2.AsyncClient:
    return _client(f"{daemon.url}/v1", daemon.token)


def _client(base_url: str, token: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=60, trust_env=False, verify=False)


async def _time_stream(client: httpx2.AsyncClient, body: Mapping[str, object], *, session: str) -> StreamTimes:
    first_byte = first_token = 0.0
    started = monotonic_ms()
    request = client.stream("POST", "/chat/completions", json=body, headers={"X-Newton-Session": session})
    async with request as response, aclosing(_iter_texts(response)) as texts:
        received = ""
        async for text in texts:  # to the end, so that the next request finds the turn stored
            first_byte = first_byte or monotonic_ms() - started
            received += text
            if not first_token and REPLY in received:
                first_token = monotonic_ms() - started
    assert first_token, received
    return StreamTimes(first_byte, first_token)


async def _iter_texts(response: httpx2.Response) -> AsyncGenerator[str]:
    async for text in response.aiter_text():
        yield text

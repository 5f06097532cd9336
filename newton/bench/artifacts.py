"""`newton bench artifacts`: how often a line of a long text is in the prompt, or found by one `read_artifact`."""

import hashlib
import json as json_format
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from newton.agent.maintenance.artifact_vectors import embed_artifacts
from newton.bench.environment import open_environment
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import mean, p50_and_p95
from newton.bench.trials.artifact_trials import ArtifactTrial, generate_trials
from newton.clock import monotonic_ms
from newton.dialogue.messages import Message
from newton.providers.chat import ToolCall
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.wiring import AgentServices

FIRST_REQUEST = "Please get this and tell me when you have it."


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSample:
    """The measurements of one trial: where the line was, the tokens of the digest, and the milliseconds of the call.

    `in_digest` is True if the digest has the line although it was made before the question, `in_asked_digest` if it has
    it when the question came first. `by_words` and `by_both` are True if one call finds it, without and with vectors.
    """

    kind: str
    style: str
    in_digest: bool
    in_asked_digest: bool
    by_words: bool
    by_both: bool
    digest_tokens: int
    call_ms: float

    @property
    def is_reached(self) -> bool:
        """Return whether the line is in the prompt or one call away, with the question after the text."""
        return self.in_digest or self.by_both


async def run_benchmark(
    *, odd_lines: Annotated[int, Parameter(validator=Number(gte=0, lte=1_000))] = 0, json: JsonOption = False
) -> None:
    """Measure how often a wanted line of a long text is in the prompt, or found by one call of `read_artifact`.

    60 generated texts (logs, test outputs, tables, source files, contracts) each have one wanted line at a random
    place. The call searches the two or three content words of the question. It uses a temporary database, not your
    memories.

    Example: newton bench artifacts --json

    Parameters
    ----------
    odd_lines:
        Number of lines of random words in each text.
    """
    start, trials = RunStart(), generate_trials(odd_lines=odd_lines)
    async with open_environment(load_settings()) as env:
        samples = [await measure_trial(env.newton, trial, number) for number, trial in enumerate(trials)]
        # last, because passages of these texts need no vectors
        samples = [await _measure_asked(env.newton, *pair) for pair in zip(trials, samples, strict=True)]
        digest = hashlib.sha256("\n".join(trial.text for trial in trials).encode()).hexdigest()
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=[], odd_lines=odd_lines)
    result = {**summarize(samples), "receipt": receipt}
    if json:
        formatting.print_json(result)
    else:
        say("\n".join(f"{name}: {value}" for name, value in result.items() if name != "receipt"))


async def measure_trial(newton: AgentServices, trial: ArtifactTrial, number: int) -> ArtifactSample:
    """Store the text after a plain request, and search once, without and with vectors."""
    later = await _store(newton, trial, f"later-{number}", FIRST_REQUEST)
    await newton.process_written("bench")
    by_words, _ = await _call(newton, trial, f"later-{number}")
    await embed_artifacts(newton.scope)
    by_both, ms = await _call(newton, trial, f"later-{number}")
    return ArtifactSample(
        kind=trial.kind,
        style=trial.style,
        in_digest=trial.line in later,
        in_asked_digest=False,
        by_words=by_words,
        by_both=by_both,
        digest_tokens=newton.scope.count_tokens(later),
        call_ms=ms,
    )


async def _measure_asked(newton: AgentServices, trial: ArtifactTrial, sample: ArtifactSample) -> ArtifactSample:
    """Store the text after the question."""
    asked = await _store(newton, trial, f"asked {trial.question}", trial.question)
    return replace(sample, in_asked_digest=trial.line in asked)


async def _store(newton: AgentServices, trial: ArtifactTrial, session: str, request: str) -> str:
    """Store a conversation with the text: pasted, or the output of a tool. Return what a model gets of it."""
    now, service = newton.scope.now(), newton.sessions("bench")
    if trial.kind == "contract":
        messages = [Message(role="user", content=f"{request}\n\n{trial.text}", said_at=now)]
    else:
        call = ToolCall("call_1", "run", json_format.dumps({"command": f"show {trial.kind}"}))
        messages = [
            Message(role="user", content=request, said_at=now),
            Message(role="assistant", content="", said_at=now, calls=(call,)),
            Message(role="tool", content=trial.text, said_at=now, tool_call_id="call_1"),
        ]
    await service.append(session, messages)
    return "\n".join(item.text for item in (await service.preview(session)).view)


async def _call(newton: AgentServices, trial: ArtifactTrial, session: str) -> tuple[bool, float]:
    """Search the words of the question in the artifact; return whether the line is found, and the milliseconds."""
    service = newton.artifacts("bench")
    session_id = await service.find_session(session)
    (artifact,) = await service.list_latest(session_id)
    arguments = json_format.dumps({"name": artifact.name, "search": trial.search})
    started = monotonic_ms()
    result = await newton.toolset("bench").for_session(session_id).execute("read_artifact", arguments)
    return trial.line in str(result.fields["text"]), monotonic_ms() - started


def summarize(samples: Sequence[ArtifactSample]) -> dict[str, Any]:
    """Return statistics as JSON: the counts of lines in the prompt and found by one call, by kind and by style."""
    groups: Mapping[str, Sequence[ArtifactSample]] = {
        "all": samples,
        **{kind: [one for one in samples if one.kind == kind] for kind in dict.fromkeys(one.kind for one in samples)},
        **{style: [one for one in samples if one.style == style] for style in ("word", "meaning")},
    }
    return {
        **{name: _count(group) for name, group in groups.items()},
        "digest_tokens_mean": round(mean([float(one.digest_tokens) for one in samples]), 1),
        "call_ms": p50_and_p95([one.call_ms for one in samples]),
    }


def _count(samples: Sequence[ArtifactSample]) -> dict[str, int]:
    names = ("in_digest", "in_asked_digest", "by_words", "by_both", "is_reached")
    return {"trials": len(samples), **{name: sum(getattr(one, name) for one in samples) for name in names}}

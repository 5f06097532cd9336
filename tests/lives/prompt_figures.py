"""The sizes of the requests of a life to its model: tokens by part, calls, and what stays the same. Pure."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from newton.agent.prompting.memory_delta import ADDED_RULES, INPUT_HEADER, LIFTED_RULES, MEMORY_HEADER, SYSTEM_HEADER
from newton.providers.token_counter import count
from tests.lives.living import LivedLife
from tests.lives.played_model import Body, text_of

SYSTEM_ROLES = ("system", "developer")


def system_lines(body: Body) -> list[str]:
    """The lines of a request that have the authority of the system and hold at its end.

    They are those of its messages of the system, and of the parts that the system wrote before the user's messages: a
    line that such a part calls lifted is left out.
    """
    lines = dict[str, None]()
    for message in body["messages"]:
        text = text_of(message)
        if message["role"] in SYSTEM_ROLES:
            lines |= dict.fromkeys(text.splitlines())
        elif message["role"] == "user" and text.startswith(SYSTEM_HEADER) and INPUT_HEADER in text:
            part, is_lifted = text[: text.index(INPUT_HEADER)].split(MEMORY_HEADER)[0], False
            for line in part.splitlines(keepends=True):
                is_lifted = line == LIFTED_RULES or (is_lifted and line != ADDED_RULES)
                lines.pop(line.rstrip("\n"), None)
                lines |= {} if is_lifted else {line.rstrip("\n"): None}
    return list(lines)


def measure_parts(body: Body, spoken: Mapping[str, int]) -> Counter[str]:
    """Tokens of a request by part. `spoken` are the texts of the conversation that the client sent, with their tokens.

    What a message of the user has besides such a text is context, as is each later message of the system.
    """
    parts = Counter({"tools": count(json.dumps(body["tools"])) if body.get("tools") else 0})
    for place, message in enumerate(body["messages"]):
        text = text_of(message)
        if message["role"] in SYSTEM_ROLES:
            parts["system" if place == 0 else "context"] += count(text)
        elif message["role"] == "tool" or message.get("tool_calls"):
            parts["tool work"] += count(text) + count(json.dumps(message.get("tool_calls") or ""))
        else:
            said = max((one for one in spoken if one and one in text), key=len, default="")
            conversation = min(spoken.get(said, 0), count(text))
            parts["conversation"] += conversation
            parts["context"] += count(text) - conversation
    return parts


def measure_requests(seen: LivedLife) -> dict[str, Any]:
    """The figures of all requests of a life."""
    turns = [(said, body, reply) for purpose, said, body, reply in seen.requests if purpose == "turn"]
    background = [(body, reply) for purpose, _, body, reply in seen.requests if purpose != "turn"]
    if not seen.requests:
        return {}
    spoken = {line.text: count(line.text) for line in seen.lines} | {one: count(one) for one in seen.replies.values()}
    parts = sum((measure_parts(body, spoken) for _, body, _ in turns), Counter[str]())
    behind = sum(count(_text(body)) + count(json.dumps(reply)) for body, reply in background)
    before = sum(count(_text(body)) + count(json.dumps(reply)) for _, body, reply in turns)
    tools = [len(json.dumps(body.get("tools") or [])) for _, body, _ in turns]
    lines = max(1, len({said for said, _, _ in turns}))
    return {
        "calls_per_turn": round(len(turns) / lines, 3),
        "tokens_per_turn": {name: round(tokens / lines) for name, tokens in parts.items()},
        "tools_context_system_per_turn": round((parts["tools"] + parts["context"] + parts["system"]) / lines),
        "tools_bytes_per_call": round(sum(tools) / len(turns)),
        "background_calls": len(background),
        "background_share": round(behind / max(1, behind + before), 3),
        **_measure_prefixes(turns, seen),
    }


def _measure_prefixes(turns: Sequence[tuple[str, Body, Body]], seen: LivedLife) -> dict[str, Any]:
    """The share of the messages of a request that the next one of its conversation repeats from the beginning."""
    session_of = {line.text: line.session for line in seen.lines}
    sessions = defaultdict[str, list[tuple[str, bool]]](list)
    for said, body, _ in turns:
        last_is_tool = body["messages"][-1]["role"] == "tool"
        sessions[session_of[said]].append((_text({"messages": body["messages"]}), last_is_tool))
    pairs = [pair for texts in sessions.values() for pair in pairwise(texts)]
    shares = [_count_same(one, other) / len(one) for (one, _), (other, _) in pairs]
    after_tools = [share for share, ((_, is_tool), _) in zip(shares, pairs, strict=True) if is_tool]
    bodies = [body for _, body, _ in turns]
    return {
        "prefix": round(_mean(shares), 3),
        "prefix_after_tools": round(_mean(after_tools), 3) if after_tools else None,
        "same_tools": round(_mean([float(a.get("tools") == b.get("tools")) for a, b in pairwise(bodies)]), 3),
    }


def _count_same(one: str, other: str) -> int:
    """The number of characters that two texts share at their beginnings."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _text(body: Body) -> str:
    messages = [[one["role"], text_of(one)] for one in body["messages"]]
    return json.dumps([body.get("tools"), *messages], ensure_ascii=False)

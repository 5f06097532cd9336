"""A chat model that is played: by a recording, by whoever answers files, or by a constant reply."""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, cast

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from tests.model_servers import ModelServer

Body = dict[str, Any]
POLL_SECONDS = 0.05
_SHAPE = r"[0-9a-f]{5,32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # of ids that a prompt shows
_ID = re.compile(rf"#?({_SHAPE})")
_SHOWN_ID = re.compile(rf"(?<=#)\d+\b|\b(?=\w*[a-f])(?=\w*\d)(?:{_SHAPE})\b")
_HIDDEN = "@line: "


class UnplayedError(Exception):
    """The recording has no answer, and nobody else gave one."""


@dataclass(slots=True)
class PlayedModel(ModelServer):
    """An OpenAI-compatible server that answers from `cassette`, else from `queue`, else with `constant`.

    `said` is the line of the person that is being answered. `asked` has each request and `replies` its reply. Each
    answer that is not from the recording is appended to `record`.
    """

    models: ClassVar[tuple[str, ...]] = ("by-hand",)

    cassette: dict[str, Body] = field(default_factory=dict[str, Body])
    queue: Path | None = None
    constant: str | None = None
    record: Path | None = None
    wait_seconds: float = 3_600
    said: str = ""
    replies: list[Body] = field(default_factory=list[Body])
    purposes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    missing: list[str] = field(default_factory=list[str])
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def respond(self, request: Request) -> Response:
        body = await request.json()
        key, number = self.key(body), next(self._numbers)
        try:
            reply = show_ids(self.cassette[key], body) if key in self.cassette else await self._ask(key, body, number)
        except UnplayedError as error:
            self.missing.append(str(error))
            return JSONResponse({"error": {"message": str(error), "type": "server_error"}}, 504)
        self.replies.append(reply)
        self.purposes.append(("structured" if is_structured(body) else "turn", self.said))
        body["played"] = to_message(reply, number)
        return await ModelServer.respond(self, request)  # reads the same parsed body

    def note(self, body: Body) -> None:
        self.asked.append(body)

    def answer(self, body: Body) -> Body:
        return body.pop("played")

    def key(self, body: Body) -> str:
        """The digest under which an answer is recorded.

        A structured request is known by its schema and all of its text, so that a changed prompt asks for a new answer.
        A turn is known by the line of the person and the calls that followed it, so that its recording survives other
        contexts.
        """
        if is_structured(body):
            texts = [(one["role"], text_of(one)) for one in body["messages"]]
            return digest([body.get("response_format"), texts])
        return digest([self.said, follow_ups(body)])

    async def _ask(self, key: str, body: Body, number: int) -> Body:
        reply: Body = {"text": self.constant, "calls": []}
        if self.queue:
            reply = await self._wait(self.queue, body, number)
        elif self.constant is None:
            raise UnplayedError(f"no recorded answer to a {'structured' if is_structured(body) else 'turn'} request")
        if self.record:
            kept = {"key": key, "said": self.said, **hide_ids(reply, body)}
            with self.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept, ensure_ascii=False) + "\n")
        return reply

    def _earlier(self, body: Body) -> Body | None:
        """The latest request of the same kind, most of which its reader knows."""
        alike = (one for one in reversed(self.asked) if is_structured(one) == is_structured(body))
        return next(alike, None)

    async def _wait(self, queue: Path, body: Body, number: int) -> Body:
        asked, result = queue / f"req-{number}.json", queue / f"res-{number}.json"
        asked.with_suffix(".txt").write_text(describe_request(body, self._earlier(body)), encoding="utf-8")
        draft = queue / f".req-{number}"
        draft.write_text(json.dumps(body, ensure_ascii=False, indent=1), encoding="utf-8")
        draft.rename(asked)
        until = monotonic() + self.wait_seconds
        while monotonic() < until:
            if result.exists():
                try:
                    return json.loads(result.read_text(encoding="utf-8"))
                except ValueError:
                    pass  # it is still being written
            await asyncio.sleep(POLL_SECONDS)
        raise UnplayedError(f"nobody answered {asked}")


def describe_request(body: Body, before: Body | None) -> str:
    """A request to read, without the tools and the first messages that an earlier one had as well."""
    lines = list[str]()
    earlier: list[Body] = before["messages"] if before else []
    if body.get("tools") and (before is None or body["tools"] != before.get("tools")):
        functions = [tool["function"] for tool in body["tools"]]
        lines += ["=== tools ===", *(json.dumps(one, ensure_ascii=False) for one in functions)]
    elif body.get("tools"):
        lines.append("=== tools: as in the request before ===")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(body["messages"], earlier, strict=False)))
    if same:
        lines.append(f"=== the first {same} messages: as in the request before ===")
    for message in body["messages"][same:]:
        calls = [
            f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls") or ()
        ]
        lines += [f"=== {message['role']} ===", text_of(message), *(f"[called {call}]" for call in calls)]
    if body.get("response_format"):
        lines += ["=== the answer must be JSON, in `text` ==="]
    return "\n".join(lines) + "\n"


def load_cassette(path: Path) -> dict[str, Body]:
    """The recorded answers by their keys."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["key"]: row for row in rows}


def is_structured(body: Body) -> bool:
    return bool(body.get("response_format"))


def text_of(message: Body) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def prompt_text(body: Body) -> str:
    return "\n".join(text_of(one) for one in body["messages"])


def follow_ups(body: Body) -> list[Any]:
    """The roles and the called tools after the last message of the user."""
    messages = body["messages"]
    last = max((place for place, one in enumerate(messages) if one["role"] == "user"), default=-1)
    rest = [one for one in messages[last + 1 :] if one["role"] != "system"]
    return [(one["role"], [call["function"]["name"] for call in one.get("tool_calls") or ()]) for one in rest]


def to_message(reply: Body, number: int) -> Body:
    """The message of a reply in OpenAI's format."""
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call.get("args") or {}, ensure_ascii=False)},
        }
        for place, call in enumerate(reply.get("calls") or ())
    ]
    text = reply.get("text")
    return {"role": "assistant", "content": text if calls else text or "", **({"tool_calls": calls} if calls else {})}


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


def hide_ids(reply: Body, body: Body) -> Body:
    """The reply with each id in its calls replaced by the line of the prompt that shows it: ids are new in each run."""
    lines = prompt_text(body).splitlines()

    def hide(text: str) -> str:
        if (found := _ID.fullmatch(text)) is None:
            return text
        line = next((one for one in lines if found[1] in one), None)
        return text if line is None else _HIDDEN + _SHOWN_ID.sub("@other", line.replace(found[1], "@id"))

    return {"text": reply.get("text"), "calls": _change_strings(reply.get("calls") or [], hide)}


def show_ids(reply: Body, body: Body) -> Body:
    """A recorded reply with the ids of this prompt. Raises UnplayedError if the prompt lacks a line."""
    lines = prompt_text(body).splitlines()

    def show(text: str) -> str:
        if not text.startswith(_HIDDEN):
            return text
        wanted = re.escape(text.removeprefix(_HIDDEN)).replace("@other", "[0-9a-f-]+")
        wanted = wanted.replace("@id", f"({_SHAPE})", 1).replace("@id", r"\1")
        for line in lines:
            if match := re.fullmatch(wanted, line):
                return match.group(1)
        raise UnplayedError(f"the prompt has no line {text.removeprefix(_HIDDEN)!r}")

    return {"text": reply.get("text"), "calls": _change_strings(reply.get("calls") or [], show)}


def _change_strings(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _change_strings(one, change) for name, one in cast("Body", value).items()}
    return [_change_strings(one, change) for one in cast("list[Any]", value)] if isinstance(value, list) else value

"""Labelled messages that teach what a person does with each part of a message."""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from newton.providers.speech_reader import ACTS, MAX_CONTEXT_CHARS, SpeechAct, join_statements
from newton.text.languages import ENGLISH, detect_language

SEED = 0
DATA = Path(__file__).parents[2] / "data" / "speech"
TOLD, CORRECTIONS, WILLS = (DATA.parent / name for name in ("told", "speech_corrections", "speech_wills"))
STATED = ("updates_dev", "updates_train", "updates_chat_a", "updates_chat_b", "updates_chat_c", "updates_chat_d")
MAX_STATED = 1_500
CHATS = ("chat_messages_train", "chat_messages")
WILL_ACTS: tuple[SpeechAct, ...] = ("veil", "next", "session", "lift", "last", "topic")
# The acts that a label permits: of some parts it is only known what they are not, or that they are one of several.
LABELS: Mapping[str, frozenset[SpeechAct]] = {
    **{act: frozenset({act}) for act in ACTS},
    "untold": frozenset(ACTS) - {"told"},
    "unwished": frozenset(ACTS) - {*WILL_ACTS},
    "earlier": frozenset({"last", "topic"}),
    "ahead": frozenset({"veil", "next", "session"}),
}
WISHES = {
    **{"named": "topic", "last": "last", "this": "veil", "next": "next"},
    **{"session": "session", "all": "session", "lift": "lift"},
}
MAX_FRAGMENT_WORDS = 6  # of a message that does nothing but correct
_SENTENCE = re.compile(r"\S[^.!?\n]*[.!?]*")

Span = tuple[int, int]
_Told = tuple[str, Sequence[str]]  # a statement with the parts of it that are meant


class Message(NamedTuple):
    """A message with what stands before it; `parts` are its labelled parts: start, end, label.

    `marks` are the parts with a mark, by its name: `wrong` and `gone` are parts of the context, `right` of the message.
    A mark that is not among them is not known.
    """

    author: str
    context: str
    text: str
    parts: tuple[tuple[int, int, str], ...] = ()
    marks: Mapping[str, tuple[Span, ...]] = {}


def load_messages() -> list[Message]:
    """Return the messages of which each part is labelled."""
    lines = [(path.stem, one) for path in sorted(DATA.glob("*.jsonl")) for one in path.read_text("utf-8").splitlines()]
    return [_read(author, json.loads(line)) for author, line in lines]


def _read(author: str, fields: dict[str, Any]) -> Message:
    text, at, parts = fields["text"], 0, list[tuple[int, int, str]]()
    for part, act in fields["parts"]:
        start = text.index(part, at)
        at = start + len(part)
        parts += (
            [(start, at, act)] if act in LABELS else []
        )  # what is true of the world at large is neither told nor talk
    return Message(author, _join(fields.get("assistant", ""), fields.get("earlier", "")), text, tuple(parts))


def load_told() -> list[Message]:
    """Return the messages in English of tests/data/told, of which some parts are labelled as asserted or not."""
    rows = [row for path in sorted(TOLD.glob("*.yaml")) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]
    return [_read_told(row) for row in rows if detect_language(row["text"]) == ENGLISH]


def _read_told(row: dict[str, Any]) -> Message:
    labelled = [(one, "told") for one in row.get("asserted", ())] + [
        (one, "unreal") for one in row.get("unasserted", ())
    ]
    parts = [(at, at + len(one), act) for one, act in labelled if (at := row["text"].find(one)) >= 0]
    return Message("told", _join(row.get("question", ""), row.get("earlier", "")), row["text"], tuple(sorted(parts)))


def _join(*before: str) -> str:
    return "\n".join(one[-MAX_CONTEXT_CHARS:] for one in before)


def load_statements() -> list[Message]:
    """Return statements that each are a message: the older ones of labelled pairs, of people and of things."""
    rows = [
        row for name in STATED for row in yaml.safe_load((DATA.parent / f"{name}.yaml").read_text(encoding="utf-8"))
    ]
    texts = sorted({row["older"] for row in rows if not row["older"].endswith("?")})
    chosen = random.Random(SEED).sample(texts, MAX_STATED)
    return [Message("stated", "", text, ((0, len(text), "told"),)) for text in chosen]


def load_chats() -> list[Message]:
    """Return messages of which the parts that are worth remembering are labelled, so that the others are not told."""
    rows = [row for name in CHATS for row in yaml.safe_load((DATA.parent / f"{name}.yaml").read_text(encoding="utf-8"))]
    return [_read_chat(row["text"], row.get("facts") or ()) for row in rows if detect_language(row["text"]) == ENGLISH]


def _read_chat(text: str, facts: Sequence[str]) -> Message:
    told = [(at, at + len(one), "told") for one in facts if (at := text.lower().find(one.lower())) >= 0]
    return Message("chats", "", text, (*told, *_label_rest(text, [one[:2] for one in told], "untold")))


def _label_rest(text: str, labelled: Sequence[Span], label: str) -> list[tuple[int, int, str]]:
    """Return the sentences of a text that have none of its labelled parts."""
    rest = [(one.start(), one.end(), label) for one in _SENTENCE.finditer(text)]
    return [one for one in rest if not any(start < one[1] and end > one[0] for start, end in labelled)]


def load_corrections() -> list[Message]:
    """Return messages, each behind the statement that it may correct, and behind another one."""
    found = list[Message]()
    for author, row in _read_rows(CORRECTIONS):
        marks = {"wrong": _find(row["statement"], row["old"]), "right": _find(row["message"], row["new"])}
        is_short = row["old"] and len(row["message"].split()) <= MAX_FRAGMENT_WORDS
        parts = ((0, len(row["message"]), "correct"),) if is_short else ()
        found.append(Message(author, row["statement"], row["message"], parts, marks))
        if row["other"]:
            found.append(Message(author, row["other"], row["message"], (), {"wrong": (), "right": ()}))
    return found


def _find(text: str, part: str) -> tuple[Span, ...]:
    at = text.rfind(part) if part else -1
    return ((at, at + len(part)),) if at >= 0 else ()


def load_wills() -> list[Message]:
    """Return wishes on memory, and messages that sound like them, behind what was said before.

    Each also stands alone, and behind more statements of its author, so that how many there are tells nothing. What is
    named stands behind single and other statements too.
    """
    found, rows, draw = list[Message](), list(_read_rows(WILLS)), random.Random(SEED)
    said: dict[str, list[_Told]] = {}
    for author, row in rows:
        said.setdefault(author, []).extend((one, ()) for one in row["before"])
    for author, row in rows:
        told = [(text, [part for k, part in row["forget"] if k == n]) for n, text in enumerate(row["before"])]
        others = [one for one in draw.sample(said[author], min(8, len(said[author]))) if one[0] not in row["before"]]
        is_named = row["act"] in ("named", "earlier")
        contexts = [told, [], *([[*others[:3], *told]] if row["act"] != "all" else [])]
        contexts += [others[3:6], *([one] for one in told[:2])] if is_named else []
        found += [_behind(author, one, row["will"], _label_wish(row)) for one in contexts]
    return found


def _label_wish(row: Mapping[str, Any]) -> tuple[tuple[int, int, str], ...]:
    wished, act = _find(row["will"], row["wish"]), WISHES.get(row["act"], row["act"])
    return (*((*span, act) for span in wished), *_label_rest(row["will"], wished, "unwished"))


def _behind(author: str, told: Sequence[_Told], text: str, parts: tuple[tuple[int, int, str], ...]) -> Message:
    """Return a message behind statements, of each of which some parts are meant."""
    context, starts = join_statements([one for one, _ in told])
    meant = [
        (start + at, start + at + len(part))
        for start, (one, own) in zip(starts, told, strict=True)
        for part in own
        if start is not None and (at := one.find(part)) >= 0 and at + len(part) <= MAX_CONTEXT_CHARS
    ]
    return Message(author, context, text, parts, {"gone": tuple(meant)})


def _read_rows(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(folder.glob("*.jsonl")):
        yield from ((path.stem, json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())

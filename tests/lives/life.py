"""The format of a life: the conversations of a person over some weeks, and what must be known at their end."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from typing_extensions import TypedDict

MINUTE = timedelta(minutes=1)  # between two messages
NAMED_SHARE = 0.15  # of the sentences of the gold, which begin with the name of the person


class Line(TypedDict):
    id: str
    text: str


class Talk(TypedDict):
    """One conversation; its time is that of the person's clock."""

    day: str
    time: str
    messages: list[Line]


# What must be known at the end. Each of `must` has alternatives after `|`; `from` are the lines that say it.
CurrentItem = TypedDict("CurrentItem", {"id": str, "says": str, "must": list[str], "from": list[str]})


class Change(TypedDict):
    """What the line `at` changes; `new` is empty if something only ended."""

    id: str
    at: str
    old: str
    old_words: list[str]
    new: str
    new_words: list[str]
    lookalike_kept: str


class Order(TypedDict):
    """A rule or a wish of the person, and the line that lifts or loosens it, if there is one."""

    at: str
    text: str
    words: list[str]
    lifted_at: str


class Never(TypedDict):
    """What must not be a current fact."""

    at: str
    text: str
    words: list[str]


class Question(TypedDict):
    """A question in other words; each entry of `answer` has alternatives, `old` are words of outdated answers."""

    q: str
    answer: list[str]
    old: list[str]


class Gold(TypedDict, total=False):
    current: list[CurrentItem]
    changes: list[Change]
    rules: list[Order]
    wishes: list[Order]
    never: list[Never]
    questions: list[Question]


class Life(TypedDict):
    person: str
    time_zone: str
    sessions: list[Talk]
    gold: Gold


class SaidLine(NamedTuple):
    """A line with the conversation in which it is said and the time, in UTC."""

    id: str
    text: str
    session: str
    at: datetime


def load_life(path: Path) -> Life:
    return json.loads(path.read_text(encoding="utf-8"))


def list_lines(life: Life) -> Iterator[SaidLine]:
    """All lines in order, a minute apart within a conversation."""
    zone = ZoneInfo(life["time_zone"])
    for talk in life["sessions"]:
        begun = datetime.combine(date.fromisoformat(talk["day"]), time.fromisoformat(talk["time"]), zone)
        for number, line in enumerate(talk["messages"]):
            session = f"{talk['day']} {talk['time']}"
            yield SaidLine(line["id"], line["text"], session, begun.astimezone(UTC) + number * MINUTE)


def names_of(life: Life) -> frozenset[str]:
    """The name of the person: what begins the description, or many sentences of the gold."""
    sentences = [one["says"].split()[0] for one in life["gold"].get("current", [])]
    often = [word for word, number in Counter(sentences).items() if number > max(2, len(sentences) * NAMED_SHARE)]
    return frozenset(fold(word.strip(",")).removesuffix("'s") for word in [*life["person"].split()[:1], *often])


def fold(text: str) -> str:
    """The text in small letters without marks on them, and with plain quotation marks."""
    plain = unicodedata.normalize("NFKD", text.replace("’", "'").replace("ł", "l").replace("Ł", "L"))
    return "".join(mark for mark in plain if not unicodedata.combining(mark)).casefold()

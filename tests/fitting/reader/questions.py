"""Small memories with questions, and the items that answer them, for the training of the question encoder."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

DATA = Path(__file__).parents[2] / "data" / "question_stores"
TRAINED = (
    *("people", "work", "chats", "talks", "dialogues", "long_dialogues", "assistant_chats"),
    *("messages", "projects", "large"),
)


class StoreQuestion(NamedTuple):
    """A question about the items of a store, and the keys of those that answer it; none if nothing does."""

    text: str
    items: dict[str, str]
    right: frozenset[str]
    trap: str


def load_questions(names: Sequence[str] = TRAINED) -> Iterator[StoreQuestion]:
    """Yield the questions of files. Those about one store share its items."""
    for name in names:
        for store in yaml.load((DATA / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            for one in store["questions"]:
                yield StoreQuestion(one["ask"], store["items"], frozenset(one["right"]), one.get("trap", ""))

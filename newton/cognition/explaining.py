"""Why a stored context is as it is: what each candidate was, scored and became, and what just missed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from newton.cognition.bundle import SOURCE_OF, briefly
from newton.cognition.fill import FULL
from newton.cognition.replay import Remembered, features_of, then
from newton.cognition.score import FEATURES, LAYER_OF, contributions
from newton.cognition.trace import Kept, Stored
from newton.errors import ConflictError, InputError
from newton.memory.lookup import FEWEST_LETTERS, short
from newton.memory.recall import Found

LOST = "[its words of then are gone]"
LISTED = 8  # of those that are meant by words that several have


class Item(NamedTuple):
    """A candidate as it was then. `number` is its place among what is in, best first; `source` what brought it here;
    `given` what each feature gave to the score; `sources` are what it was made from; `times` what times the input asked
    for."""

    number: int | None
    kept: Kept
    found: Found
    source: str
    sources: tuple[UUID, ...]
    features: Mapping[str, float]
    given: Mapping[str, float]
    times: str = ""

    @property
    def of_the_time(self) -> str | None:
        """Why it came before others, if it is of the time that was asked for."""
        return f"of the time asked for: {self.times}" if self.features["timely"] else None

    @property
    def layer(self) -> str:
        return LAYER_OF[self.found.kind]

    @property
    def text(self) -> str:
        """Its line in the context, or the one it would have had."""
        return self.found.micro if self.kept.detail == "micro" else self.found.summary

    @property
    def brief(self) -> str:
        """Its line in a list."""
        return briefly(self.found, self.text)

    @property
    def named(self) -> str:
        """By what it can be picked, and what it tells."""
        return f"{self.number or '-'}  {short(self.kept.memory_id)}  {self.found.micro}"

    def as_json(self) -> dict[str, Any]:
        kept, found = self.kept, self.found
        return {
            "number": self.number,
            "memory_id": str(kept.memory_id),
            "kind": found.kind,
            "layer": self.layer,
            "state": kept.state,
            "trust": found.trust,
            "quarantined": kept.quarantined,
            "source": self.source,
            "refs": [found.ref] if found.ref else [],
            "sources": [str(source) for source in self.sources],
            "detail": kept.detail,
            "reason": kept.reason,
            "of_the_time": self.times if self.features["timely"] else None,
            "tokens": kept.tokens,
            "score": round(kept.score, 6),
            "features": {name: round(value, 6) for name, value in self.features.items()},
            "contributions": {name: round(value, 6) for name, value in self.given.items()},
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A stored bundle with all its candidates, best first."""

    stored: Stored
    items: Sequence[Item]

    @property
    def missed(self) -> Mapping[str, Item]:
        """Of each layer the best that would have been in, had there been room."""
        found: dict[str, Item] = {}
        for item in self.items:
            if item.kept.detail is None and item.kept.reason == FULL:
                found.setdefault(item.layer, item)
        return found

    def picked(self, which: str) -> Item:
        """The candidate that is meant by its number, by its ref, by its id or six letters of its beginning or end, or
        by words of its text. Raises InputError when there is none, and ConflictError when several are meant."""
        if which.isdecimal() and (numbered := [item for item in self.items if item.number == int(which)]):
            return numbered[0]
        for means in (_has_ref, _has_id, _has_words):
            meant = [item for item in self.items if means(item, which)]
            if len(meant) > 1:
                listed = [item.named for item in meant[:LISTED]] + ["…"] * (len(meant) > LISTED)
                raise ConflictError(
                    f"{len(meant)} memories of this context are meant by {which!r}.",
                    hint="\n  ".join(["Give the number or the id of one:", *listed]),
                )
            if meant:
                return meant[0]
        last = max((item.number or 0 for item in self.items), default=0)
        numbers = f"a number from 1 to {last}, " if last else ""
        raise InputError(
            f"No memory of this context is {which!r}.",
            hint=f"Give {numbers}its id, {FEWEST_LETTERS} letters of the beginning or end of its id, its ref, or words"
            " of its text.",
        )

    def as_json(self) -> dict[str, Any]:
        stored, trace = self.stored, self.stored.trace
        return {
            "bundle_id": str(stored.bundle_id),
            "created_at": stored.created_at.isoformat(),
            "as_of": stored.as_of and stored.as_of.isoformat(),
            "session": stored.session,
            "input": stored.input,
            "text": stored.text,
            "tokens": stored.tokens,
            "budget": stored.budget,
            "frame": trace.frame.outline(),
            "profile": trace.setting.profile.model_dump(mode="json"),
            "layers": {name: {"budget": layer.budget, "used": layer.used} for name, layer in trace.layers.items()},
            "missing": dict(trace.missing),
            "candidates": [item.as_json() for item in self.items],
            "missed": {layer: str(item.kept.memory_id) for layer, item in self.missed.items()},
        }


def _has_ref(item: Item, which: str) -> bool:
    return which == item.found.ref


def _has_id(item: Item, which: str) -> bool:
    letters, name = which.lower().replace("-", ""), item.kept.memory_id.hex
    return len(letters) >= FEWEST_LETTERS and (name.startswith(letters) or name.endswith(letters))


def _has_words(item: Item, which: str) -> bool:
    """What has no letter is no words: a number is in many a date."""
    return any(c.isalpha() for c in which) and which.casefold() in item.text.casefold()


def account(stored: Stored, memories: Mapping[UUID, Remembered]) -> Account:
    """Of what was forgotten nothing can be told; what has lost its words is told without."""
    number, items = 0, list[Item]()
    for kept in stored.candidates:
        number += kept.detail is not None
        if known := memories.get(kept.memory_id):
            items.append(_item(kept, known, stored, number if kept.detail else None))
    return Account(stored=stored, items=items)


def _item(kept: Kept, known: Remembered, stored: Stored, number: int | None) -> Item:
    features = features_of(kept, stored.trace.features)
    return Item(
        number,
        kept,
        then(kept, known) or known.found._replace(state=kept.state, micro=LOST, summary=LOST),
        "recent" if kept.memory_id in stored.trace.recent else SOURCE_OF.get(known.found.kind, "semantic"),
        known.sources,
        dict(zip(FEATURES, features, strict=True)),
        contributions(features, stored.trace.setting.profile),
        ", ".join(span.words for span in stored.trace.setting.times),
    )

"""What one context has that another has not, and why. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

from newton.cognition.explaining import Account, Item
from newton.cognition.replay import changes, verdict
from newton.cognition.trace import Stored

NOT_FOUND = "not found there"
SAME = 0.0005  # a score or a feature that moved by less is called the same


class Setting(NamedTuple):
    """Something about two contexts that is not the same."""

    name: str
    one: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A memory that only one of them shows, with the reason it is in, and the verdict of the other on it."""

    memory_id: UUID
    kind: str
    text: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A memory that both show, and what of it differs: how it is shown, its place, its score, its features."""

    memory_id: UUID
    kind: str
    text: str
    differs: Mapping[str, tuple[object, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two contexts side by side. `only_one` and `only_other` are what only one of them shows."""

    one: UUID
    other: UUID
    settings: Sequence[Setting]
    only_one: Sequence[Missing]
    only_other: Sequence[Missing]
    moved: Sequence[Moved]

    @property
    def same(self) -> bool:
        return not (self.settings or self.only_one or self.only_other or self.moved)

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["settings"] = [setting._asdict() for setting in self.settings]
        return (
            plain
            | {"one": str(self.one), "other": str(self.other)}
            | {
                part: [entry | {"memory_id": str(entry["memory_id"])} for entry in plain[part]]
                for part in ("only_one", "only_other", "moved")
            }
        )


def compared(one: Account, other: Account) -> Comparison:
    """What differs in what they were made by and in what they show."""
    here, there = _shown(one), _shown(other)
    both = [(item, there[memory_id]) for memory_id, item in here.items() if memory_id in there]
    moved = [
        Moved(memory_id=a.kept.memory_id, kind=a.found.kind, text=a.brief, differs=d)
        for a, b in both
        if (d := _differs(a, b))
    ]
    return Comparison(
        one=one.stored.bundle_id,
        other=other.stored.bundle_id,
        settings=list(_settings(one.stored, other.stored)),
        only_one=_missing(one, other),
        only_other=_missing(other, one),
        moved=moved,
    )


def _shown(account: Account) -> dict[UUID, Item]:
    return {item.kept.memory_id: item for item in account.items if item.kept.detail}


def _missing(here: Account, there: Account) -> list[Missing]:
    verdicts = {i.kept.memory_id: verdict(i.kept.detail, i.kept.reason) for i in there.items}
    focus = {kept.memory_id: "in focus" for kept in there.stored.focus}
    told = {**verdicts, **focus}
    return [
        Missing(
            memory_id=memory_id,
            kind=item.found.kind,
            text=item.brief,
            here=verdict(item.kept.detail, item.kept.reason),
            there=told.get(memory_id, NOT_FOUND),
        )
        for memory_id, item in _shown(here).items()
        if memory_id not in _shown(there)
    ]


def _differs(one: Item, other: Item) -> dict[str, tuple[object, object]]:
    pairs: dict[str, tuple[object, object]] = {
        "shown as": (one.kept.detail, other.kept.detail),
        "words": (one.text, other.text),
        "state": (one.kept.state, other.kept.state),
        "place": (one.number, other.number),
        "score": (round(one.kept.score, 4), round(other.kept.score, 4)),
        **{name: (round(value, 4), round(other.features[name], 4)) for name, value in one.features.items()},
    }
    return {name: pair for name, pair in pairs.items() if not _alike(*pair)}


def _alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < SAME
    return one == other


def _settings(one: Stored, other: Stored) -> Iterator[Setting]:
    a, b = one.trace, other.trace
    pairs = [
        ("input", one.input, other.input),
        ("as of", one.as_of, other.as_of),
        ("frame", one.frame, other.frame),
        ("frame's edition", a.frame_edition, b.frame_edition),
        ("profile", one.profile, other.profile),
        ("budget", one.budget, other.budget),
        ("tokens", one.tokens, other.tokens),
        ("code", a.rules, b.rules),
        *(
            (f"layer {name}", layer.budget, b.layers[name].budget)
            for name, layer in a.layers.items()
            if name in b.layers
        ),
        *((f"source {name}", a.missing.get(name), b.missing.get(name)) for name in sorted({*a.missing, *b.missing})),
    ]
    yield from (Setting(name, _said(x), _said(y)) for name, x, y in pairs if x != y)
    if one.profile == other.profile and (changed := changes(a.setting.profile, b.setting.profile)):
        yield Setting("profile", one.profile, "; ".join(changed))


def _said(value: object) -> str:
    return "-" if value is None else str(value)

"""Labelled pairs of an older and a newer statement, for the training of the change reader."""

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

DATA = Path(__file__).parents[2] / "data"
TRAINED = ("updates_dev", "updates_train", "updates_chat_a", "updates_chat_b", "updates_chat_c", "updates_chat_d",
           "updates_chat_e", "updates_chat_f", "updates_chat_h", "updates_chat_i", "updates_chat_j")  # fmt: skip
CALIBRATED = ("updates_chat_g", "updates_chat_k", "updates_everyday")
HELD_OUT = ("updates_heldout",)
HELD_OUT_SCENARIOS = ("everyday_scenarios_heldout", "everyday_lives_heldout")
LABELS = {"update": 1.0, "compatible": 0.0}
# Of the files of `mentions`: those that train the reader, and those that only the trees have.
MENTIONED, MENTIONED_CALIBRATED = "abcdefg", "hi"
NEAREST, SAME_MAX_COSINE, NEAR = 40, 0.5, 6

# Returns the unit vectors of texts, one a row.
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


class StatementPair(NamedTuple):
    """Two statements, whether the newer one replaces the older one (1 or 0), and where they come from."""

    older: str
    newer: str
    label: float
    group: str


def load_labelled(names: Sequence[str]) -> list[StatementPair]:
    """Return the pairs of files that a person labelled as an update or as compatible."""
    return [
        StatementPair(one["older"], one["newer"], LABELS[one["expect"]], one.get("group", name))
        for name in names
        for one in _load(name)
        if one["expect"] in LABELS
    ]


def load_mentions(names: str) -> list[StatementPair]:
    """Return statements and what people said later, which mostly only mentions them or adds something.

    A line of a file `mentions/*.jsonl` has an older statement, and newer ones that take it for granted (`again`), add
    to it, change it, or tell of another thing.
    """
    paths = [DATA / "mentions" / f"{name}.jsonl" for name in names]
    rows = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        StatementPair(row["older"], newer, float(kind == "changes"), "mentions")
        for row in rows
        for kind in ("again", "adds", "changes", "other")
        for newer in row[kind]
    ]


def load_scenarios(name: str) -> list[StatementPair]:
    """Return the changes and the compatible pairs of the messages of scenarios, the earlier message first."""
    pairs = list[StatementPair]()
    for scenario in _load(name):
        told: dict[str, Any] = scenario["told"]
        refs = sorted(told, key=lambda ref: told[ref][0])
        for kind, label in (("changed", 1.0), ("compatible", 0.0)):
            for ends in _list_related(scenario, kind):
                older, newer = sorted(ends, key=refs.index)
                pairs.append(StatementPair(told[older][1], told[newer][1], label, f"{name} {kind}"))
    return pairs


def _list_related(scenario: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    related: Any = scenario.get(kind) or {}
    return [(a, b) for a, b in (related.items() if kind == "changed" else related)]


def load_others(name: str) -> list[StatementPair]:
    """Return the pairs of the first messages of scenarios and the later ones that leave them as they are."""
    pairs = list[StatementPair]()
    for scenario in _load(name):
        related = {*_list_related(scenario, "changed"), *_list_related(scenario, "compatible")}
        first = min(day for day, *_ in scenario["told"].values())
        pairs += [
            StatementPair(older, newer, 0.0, f"{name} others")
            for new, (day, newer, _) in scenario["told"].items()
            for old, (told, older, _) in scenario["told"].items()
            if told == first != day and (new, old) not in related
        ]
    return pairs


def load_stores() -> list[StatementPair]:
    """Return all pairs of the statements about one subject."""
    return [pair for store in _load("updates_stores") for pair in _pair_up(store)]


def _pair_up(store: dict[str, Any]) -> Iterator[StatementPair]:
    rows = [(ref, "", text) for ref, text in store["facts"].items()]
    rows += [("", change.get("of", ""), change["text"]) for change in store["changes"]]
    for (ref, of, older), (other, other_of, newer) in itertools.permutations(rows, 2):
        if ref and ref == other_of:
            yield StatementPair(older, newer, 1.0, "stores")
        elif not of or of not in (other, other_of):
            yield StatementPair(older, newer, 0.0, "stores")


def load_dossiers() -> list[StatementPair]:
    """Return pairs of facts about one thing, which are all true."""
    texts = [[text for told in dossier for text in told] for dossier in _load("updates_dossiers")]
    return [StatementPair(a, b, 0.0, "dossiers") for one in texts for a, b in itertools.permutations(one, 2)]


def draw_unrelated(pairs: Sequence[StatementPair], embed: Embed, *, each: int, seed: int) -> list[StatementPair]:
    """Return for each newer statement `each` older ones near to it that other pairs have, and one of any meaning.

    Those as near to its own older statement as `SAME_MAX_COSINE` are left out: it may replace them too.
    """
    draw = random.Random(seed)
    older = sorted({pair.older for pair in pairs})
    vectors, place = embed(older), {text: n for n, text in enumerate(older)}
    drawn = list[StatementPair]()
    for pair, vector in zip(pairs, embed([pair.newer for pair in pairs]), strict=True):
        near, same = vectors @ vector, vectors @ vectors[place[pair.older]]
        others = [n for n in np.argsort(-near)[:NEAREST] if same[n] < SAME_MAX_COSINE][:NEAR]
        chosen: list[str] = [older[n] for n in draw.sample(others, min(each, len(others)))]
        drawn += [StatementPair(text, pair.newer, 0.0, "unrelated") for text in [*chosen, draw.choice(older)]]
    return drawn


def _load(name: str) -> Any:
    return yaml.load((DATA / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)

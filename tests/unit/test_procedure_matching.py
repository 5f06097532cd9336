"""Which procedures and which entities an input means, and how much of it a line says."""

import math
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.heart.procedures import ProcedureTriggers, match_triggers
from newton.text.names import NamedEntity, NameIndex, list_candidate_spellings, list_spellings
from newton.text.words import extract_stems, stem_overlap


def pattern(number: int, name: str, **more: object) -> ProcedureTriggers:
    plain: dict[str, object] = {
        "memory_id": UUID(int=number),
        "name": name,
        "domain": "general",
        "triggers": (),
        "tools": (),
        "frames": (),
        "applications": 0,
        "successes": 0,
        "failures": 0,
    }
    return ProcedureTriggers(**{**plain, **more})  # pyright: ignore[reportArgumentType]  # named fields


RELEASE = pattern(1, "release-checklist", triggers=["cut a release", "ship the new version"], frames=["task"])
RESTORE = pattern(2, "restore-a-backup", domain="server", tools=["psql"])


@pytest.mark.parametrize(
    ("text", "types", "frame", "meant"),
    [
        ("How do we cut a release?", (), None, ["release-checklist"]),
        ("How do we recut a released film?", (), None, []),
        ("the checklist for our next release, please", (), "task", ["release-checklist"]),
        ("the checklist for our next release, please", (), "debug", []),
        ("the new version is ready, so ship it", (), "debug", ["release-checklist"]),
        ("Is Atlas well?", ("server",), None, ["restore-a-backup"]),
        ("Is Atlas well?", ("PSQL",), None, ["restore-a-backup"]),
        ("Is Atlas well?", (), None, []),
    ],
)
def test_a_procedure_is_meant_by_words_by_the_frame_and_by_types(
    text: str, types: tuple[str, ...], frame: str | None, meant: list[str]
) -> None:
    # S001-22: keywords, intent, entity types
    assert [p.name for p in match_triggers([RELEASE, RESTORE], text, types=types, frame=frame)] == meant


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=8), st.randoms())
def test_the_most_successful_come_first_and_none_is_no_number(
    records: list[tuple[int, int, int]], dice: Random
) -> None:
    # S001-22: zero applications sorts, no NaN
    every = [
        pattern(n, f"p{n}", triggers=["do it"], applications=a + s + f, successes=s, failures=f)
        for n, (a, s, f) in enumerate(records)
    ]
    shuffled = dice.sample(every, len(every))
    meant = match_triggers(shuffled, "please do it")
    assert meant == match_triggers(every, "please do it")
    assert [p.success_rate for p in meant] == sorted((p.success_rate for p in every), reverse=True)
    assert not any(math.isnan(p.success_rate) for p in meant)


def test_a_line_says_a_share_of_an_input_and_prefixes_name_nobody() -> None:
    # S001-15
    wanted = extract_stems("Where does Ana Berg work?")
    assert stem_overlap(wanted, "Ana Berg works at Acme") == 1.0
    assert stem_overlap(wanted, "Ana Berg knows Ben") == pytest.approx(2 / 3)
    assert stem_overlap(wanted, "the sea") == 0.0
    assert stem_overlap(frozenset(), "anything") == 0.0
    assert not set(list_candidate_spellings("Anabel went to Bergen")) & list_spellings("Ana Berg", ["Annie"])
    assert set(list_candidate_spellings("is ANNIE here?")) & list_spellings("Ana Berg", ["Annie"])


WORDS = st.sampled_from(["Ana", "Berg", "O'Neil", "St.", "New", "York", "of", "Will", "Node.js", "foo/bar", "İda"])
NAME = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
ENTITY = st.tuples(NAME, st.lists(NAME, max_size=2))
TEXT = st.lists(WORDS | st.sampled_from(["knows", ".", "the", "will", "ana's"]), max_size=12).map(" ".join)


@given(st.lists(ENTITY, max_size=6), TEXT)
def test_those_that_a_text_may_name_are_enough_to_know_whom_it_names(
    entities: list[tuple[str, list[str]]], text: str
) -> None:
    # S001-15: names and aliases on word boundaries
    every = [NamedEntity(UUID(int=n), name, tuple(aliases)) for n, (name, aliases) in enumerate(entities)]
    runs = set(list_candidate_spellings(text))
    few = [one for one in every if runs & list_spellings(one.name, one.aliases)]
    assert NameIndex(few).find_mentions(text) == NameIndex(every).find_mentions(text)

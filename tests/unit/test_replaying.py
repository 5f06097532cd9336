"""A bundle that is stored and made once more, without a database: it comes out the same, or the cause is named.

Planted and seen to fail, beside what is planted below: focus taken in from the wrong end; columns read in another order
than they were written; features of the memory of today.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly import assembler as assembling
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import allocate_budget
from newton.cognition.assembly.fill import NO_ROOM, FillCandidate, FillPlacement
from newton.cognition.assembly.render import TextBlock, count_day_tokens, count_header_tokens, render_item
from newton.cognition.assembly.sections import CensorLine, CensorSection, IdentitySection
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.explanation import explain_bundle
from newton.cognition.bundles.replay import CurrentRules, MemoryHistory, ReplayMismatch, replay_bundle
from newton.cognition.bundles.trace import StoredBundle, decode_candidates, decode_trace, encode_bundle
from newton.cognition.frames.selection import FrameEvidence, force_frame
from newton.cognition.request import ContextFilters, SentMessages
from newton.cognition.scoring import score as scoring
from newton.cognition.scoring.score import FEATURE_NAMES, Combine, create_combiner, create_scorer
from newton.content.frames import load_frames
from newton.content.profiles import FeatureWeights, Profile, load_profiles
from newton.errors import ConflictError, InputError
from newton.heart.identity.tenets import IdentityTenet
from newton.ids import new_id
from newton.memory.lookup import short_id
from newton.memory.memory import ShortForms
from newton.memory.representations import one_line
from newton.memory.search_types import BestWindow, RetrievedMemory
from tests.db.catalog import FIXED
from tests.support import ANA, NOON, count, examples
from tests.unit.assembling import found, make_setting

FRAMES = load_frames()
PROFILES = {name: profile for name, profile in load_profiles().items() if not profile.by_frame}
SESSION = new_id()
RULES = "12345678"
KINDS = ("fact", "exchange", "episode", "decision", "procedure", "passage", "event")
evidence = st.floats(0, 1, width=32)


WINDOW = BestWindow(3, "… that answers …", count("- … that answers …\n"))


@st.composite
def memories(draw: st.DrawFn) -> RetrievedMemory:
    kind = draw(st.sampled_from(KINDS))
    words = draw(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=200))
    line = f"[2026-11-21] User: {words}" if kind == "exchange" else words
    full = f"{words} {'and so on ' * draw(st.integers(1, 60))}" if kind in ("fact", "passage") else None
    return found(
        full_text=full,
        full_tokens=full and count(f"- {one_line(full)}\n"),
        window=draw(st.sampled_from([None, WINDOW])) if full else None,
        kind=kind,
        state=draw(st.sampled_from(["NEW", "ACTIVE", "SUPERSEDED"])),
        micro=line[:40],
        summary=line,
        micro_tokens=count(f"- {line[:40]}\n"),
        summary_tokens=count(f"- {line}\n"),
        quarantined=draw(st.booleans()),
        occurred_at=NOON - timedelta(hours=draw(st.integers(0, 100_000))),
        uses=draw(st.integers(0, 10_000)),
        outcome=draw(st.sampled_from([None, "success", "failure"])),
        thread_id=SESSION if kind == "exchange" else None,
        position=draw(st.integers(0, 20)) if kind == "exchange" else None,
        similarity=draw(evidence),
        lexical=draw(evidence),
        relevance=draw(evidence),
    )


def settled(
    candidates: list[RetrievedMemory], focus: list[RetrievedMemory], *, tokens: int, profile: str
) -> AssemblyInput:
    return make_setting(
        tokens,
        input="What is it?",
        profile=PROFILES[profile],
        identity=IdentitySection(3, (IdentityTenet(tenet_id=new_id(), part="value", text="Be honest", tokens=5),)),
        frame_section=TextBlock("## Current Approach: debug\n", 6),
        censors=CensorSection((CensorLine(new_id(), render_item("**WARN:** no", 5)),)),
        focus=focus,
        open_decisions=[],
        calibration_note=TextBlock("You are too sure of yourself.\n", 8),
        triggered=frozenset(f.memory_id for f in candidates[:1]),
        unranked=frozenset(f.memory_id for f in candidates[1:2]),
        extra=[TextBlock("The caller adds this.\n", 6)],
        sent_messages=SentMessages(session_id=SESSION, first_position=10, unsent_positions=frozenset({12})),
        header_tokens=count_header_tokens(count),
        day_tokens=count_day_tokens(count),
    )


def bundle(
    candidates: list[RetrievedMemory], *, focus: list[RetrievedMemory], tokens: int = 500, profile: str = "newton"
) -> Bundle:
    frame, setting = FRAMES["debug"], settled(candidates, focus, tokens=tokens, profile=profile)
    score = create_scorer(frame=frame, profile=setting.profile, now=NOON)
    made = assembling.assemble([score(f) for f in candidates], setting)
    return Bundle(
        bundle_id=new_id(),
        agent_id=ANA,
        session_id=None,
        created_at=NOON,
        as_of=None,
        input=setting.input,
        identity=setting.identity,
        text=made.block.text,
        tokens=made.block.tokens,
        budget=setting.budget.total,
        frame_choice=replace(force_frame("debug"), evidence={"debug": FrameEvidence(0.1235, 0.5, 1.0)}),
        frame_edition=frame.version_hash,
        profile=setting.profile,
        assembly_input=setting,
        layers=made.layers,
        candidates=made.candidates,
        focus=made.focus,
        recent_ids=frozenset(f.memory_id for f in candidates[:2]),
        filters=ContextFilters(kinds=frozenset({"fact"}), exclude=frozenset({SESSION})),
        missing={"words": "late"},
        timings_ms={"recall": 1.23456},
    )


def stored(made: Bundle) -> StoredBundle:
    """What comes back from the database."""
    kept = encode_bundle(made, rules_hash=RULES)
    trace = decode_trace(kept.trace.decode(), input_text=made.input)
    candidates, focus = decode_candidates(trace, kept.memory_ids, kept.candidates)
    return StoredBundle(
        bundle_id=made.bundle_id,
        session=None,
        created_at=made.created_at,
        as_of=made.as_of,
        input=made.input,
        frame=made.frame_choice.frame,
        profile=made.profile.name,
        budget=made.budget,
        tokens=made.tokens,
        text=made.text,
        trace=trace,
        candidates=candidates,
        focus=focus,
    )


def the_form(f: RetrievedMemory) -> ShortForms:
    return ShortForms(micro=f.micro, summary=f.summary, micro_tokens=f.micro_tokens, summary_tokens=f.summary_tokens)


def known(*memories: RetrievedMemory) -> dict[UUID, MemoryHistory]:
    """The memories as they are today: used and confirmed since, called otherwise, and found by another part."""
    later = ShortForms(micro="other", summary="other words", micro_tokens=2, summary_tokens=3)
    return {
        f.memory_id: MemoryHistory(
            f._replace(
                state="CORE",
                uses=999,
                outcome="partial",
                similarity=0,
                lexical=0,
                relevance=0,
                micro="other",
                summary="other",
                window=BestWindow(0, "another part …", 5),
            ),
            [the_form(f), later],
            (),
            {0: BestWindow(0, "another part …", 5), **({f.window.position: f.window} if f.window else {})},
        )
        for f in memories
    }


TODAY = CurrentRules(rules_hash=RULES, frame_edition=FRAMES["debug"].version_hash, profile=PROFILES["newton"])


@pytest.mark.slow
@examples(16)
@given(
    candidates=st.lists(memories(), max_size=25),
    focus=st.lists(memories(), max_size=4),
    tokens=st.integers(1, 3_000),
    profile=st.sampled_from(sorted(PROFILES)),
)
def test_whatever_is_stored_comes_out_the_same(
    candidates: list[RetrievedMemory], focus: list[RetrievedMemory], tokens: int, profile: str
) -> None:
    focus = [f._replace(thread_id=SESSION, position=n) for n, f in enumerate(focus)]
    made = bundle(candidates, focus=focus, tokens=tokens, profile=profile)
    replay = replay_bundle(stored(made), known(*candidates, *focus), replace(TODAY, profile=PROFILES[profile]))
    assert (replay.differences, replay.changes_since, replay.text) == ((), (), made.text)


def facts() -> list[RetrievedMemory]:
    """Twelve, of which some are in whole, one in short, some not at all."""
    return [
        found(
            micro=f"Fact {n}",
            summary=f"Fact {n} tells of what is so, at some length and with an example.",
            micro_tokens=4,
            summary_tokens=40,
            similarity=0.9 - n / 50,
            lexical=0.5,
            relevance=1 - n / 20,
        )
        for n in range(12)
    ]


FACTS = facts()
MADE = bundle(
    FACTS, focus=[found(kind="exchange", summary="[x] User: hello", thread_id=SESSION, position=1)], tokens=381
)
MEMORIES = known(*FACTS, *MADE.focus)
WHOLE = stored(MADE)


def with_setting(**changed: object) -> StoredBundle:
    setting = replace(WHOLE.trace.assembly_input, **changed)  # pyright: ignore[reportArgumentType]  # named fields
    return replace(WHOLE, trace=replace(WHOLE.trace, assembly_input=setting))


def with_first(**changed: object) -> StoredBundle:
    return replace(WHOLE, candidates=(WHOLE.candidates[0]._replace(**changed), *WHOLE.candidates[1:]))


def weighed(**weights: float) -> Profile:
    profile = PROFILES["newton"]
    return profile.model_copy(update={"weights": FeatureWeights(**{**profile.weights.nonzero, **weights})})


def test_a_bundle_is_rebuilt_unless_a_memory_is_gone() -> None:
    assert {c.detail for c in MADE.candidates} == {"summary", "micro", None}
    assert replay_bundle(WHOLE, MEMORIES, TODAY).identical
    replay = replay_bundle(with_first(score=0.1), MEMORIES, TODAY)
    assert replay.differences[-1].reason == "its sources are unchanged, so the stored bundle must have changed"
    # a memory that is gone is named
    left = {memory_id: one for memory_id, one in MEMORIES.items() if memory_id != FACTS[2].memory_id}
    replay = replay_bundle(WHOLE, left, TODAY)
    assert replay.differences[0] == ReplayMismatch(f"memory {short_id(FACTS[2].memory_id)}", "it was forgotten")
    assert "-- Fact 2 tells" in {one.field: one.reason for one in replay.differences}["text"]


@pytest.mark.parametrize(
    ("tampered", "named"),
    [
        (with_setting(profile=weighed(similarity=0.1)), "score of"),
        (with_setting(profile=PROFILES["newton"].model_copy(update={"fill": "stop"})), "verdict on"),
        (with_setting(profile=PROFILES["newton"].model_copy(update={"order": "best_last"})), "text"),
        (with_setting(budget=allocate_budget(350)), "budget"),
        (with_setting(header_tokens={**count_header_tokens(count), "facts": 30}), "layer facts"),
        (with_setting(censors=CensorSection()), "text"),
        (with_setting(identity=IdentitySection()), "text"),
        (with_first(summary_tokens=39), "memory"),
        (with_first(score=0.1), "score of"),
        (with_first(features=(0.5,) * len(FEATURE_NAMES)), "score of"),
        (with_first(detail="micro"), "verdict on"),
        (with_first(reason="it was nice"), "verdict on"),
        (with_first(state="SUPERSEDED"), "verdict on"),
        (with_first(quarantined=True), "verdict on"),
        (with_first(checksum=1), "memory"),
        (replace(WHOLE, text=WHOLE.text.replace("Fact 1 ", "Fact one ")), "text"),
        (replace(WHOLE, text=WHOLE.text + "\n"), "text"),
        (replace(WHOLE, tokens=WHOLE.tokens + 1), "tokens"),
        (replace(WHOLE, profile="recent"), "profile"),
        (replace(WHOLE, frame="question"), "frame"),
        (replace(WHOLE, focus=()), "text"),
        (replace(WHOLE, candidates=WHOLE.candidates[1:]), "text"),
    ],
)
def test_whatever_is_changed_of_a_stored_bundle_is_named(tampered: StoredBundle, named: str) -> None:
    replay = replay_bundle(tampered, MEMORIES, TODAY)
    assert not replay.identical
    assert any(difference.field.startswith(named) for difference in replay.differences), replay.differences


LONG_TEXTS = [
    found(
        micro=f"Long {n} …",
        summary=f"Long text {n} …",
        full_text=f"Long text {n} {'and so on ' * 60}",
        micro_tokens=6,
        summary_tokens=7,
        full_tokens=count(f"- Long text {n} {'and so on ' * 60}".rstrip() + "\n"),
        window=WINDOW,
        relevance=1 - n / 20,
    )
    for n in range(4)
]


def test_parts_and_whole_texts_are_made_once_more_and_a_part_that_is_gone_is_named() -> None:
    made = bundle(LONG_TEXTS, focus=[], tokens=400)
    assert {c.detail for c in made.items} == {"full", "part"}
    assert made.text.count(WINDOW.text) == sum(c.detail == "part" for c in made.items)
    histories = known(*LONG_TEXTS)
    assert replay_bundle(stored(made), histories, TODAY).identical
    gone = next(c.memory_id for c in made.items if c.detail == "part")
    replay = replay_bundle(stored(made), {**histories, gone: histories[gone]._replace(windows={})}, TODAY)
    assert replay.differences[0].reason == "the part of its text that the context could show is gone"


def without_fill(candidates: Sequence[FillCandidate], **_: object) -> list[FillPlacement]:
    return [FillPlacement(one.memory_id, None, 0, NO_ROOM) for one in candidates]


def doubling(profile: Profile) -> Combine:
    return lambda features: 2 * create_combiner(profile)(features)


@pytest.mark.parametrize(
    ("module", "name", "rule", "named"),
    [
        (assembling, "fill", without_fill, "verdict on"),
        (scoring, "create_combiner", doubling, "score of"),
    ],
)
def test_a_changed_rule_of_the_code_is_noticed(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, rule: object, named: str
) -> None:
    monkeypatch.setattr(module, name, rule)
    replay = replay_bundle(WHOLE, MEMORIES, replace(TODAY, rules_hash="87654321"))
    assert any(difference.field.startswith(named) for difference in replay.differences)
    assert replay.changes_since == ("the code has changed: its rules hash was 12345678, is now 87654321",)


def test_what_changed_since_and_does_not_matter_is_told_beside() -> None:
    today = CurrentRules(rules_hash=RULES, frame_edition="other", profile=weighed(similarity=0.1))
    replay = replay_bundle(WHOLE, MEMORIES, today)
    assert replay.identical, "it is made by the weights of then"
    frame, profile = replay.changes_since
    assert frame == "the frame debug has changed"
    assert "'similarity': 0.5" in profile and "'similarity': 0.1" in profile
    gone = replay_bundle(WHOLE, MEMORIES, CurrentRules(rules_hash=RULES, frame_edition=None, profile=None))
    assert gone.changes_since == ("the frame debug was removed", "the profile newton was removed")


def test_every_part_of_a_memory_is_stored_with_a_bundle_or_never_changes() -> None:
    """What a new column of a memory must be, so that a stored bundle can still be made again."""
    stored_with_it = {"memory_id", "state", "outcome", "quarantined", "micro_tokens", "summary_tokens", "window"}
    kept_as_forms = {"micro", "summary"}
    in_features = {
        "confidence", "importance", "uses", "accessed_at", "confirmed_at", "similarity", "lexical",
        "relevance",
    }  # fmt: skip
    in_labels = {
        "renewed_at", "valid_to", "attribute", "contradicted_ids", "changed", "said_at", "word_trust", "is_inherited"
    }  # fmt: skip
    # it is read for long facts and passages only, whose texts are replaced by other memories and never changed
    fixed = {*FIXED["memory.memories"], "kind", "full_text"}
    fixed |= {"stated_thread_id", "stated_position"}  # sources are only inserted, with the memory
    assert set(RetrievedMemory._fields) <= stored_with_it | kept_as_forms | in_features | in_labels | fixed


def test_an_account_tells_weights_contributions_and_what_just_missed() -> None:
    told = explain_bundle(WHOLE, MEMORIES)
    assert [item.number for item in told.candidates if item.number] == list(range(1, len(MADE.items) + 1))
    first = told.find_item("1")
    assert first.memory_id == MADE.items[0].memory_id
    assert sum(first.contributions.values()) == pytest.approx(first.score)
    assert told.near_misses["facts"].memory_id == MADE.rejected_candidates[0].memory_id
    for which in (FACTS[11].memory_id.hex, FACTS[11].memory_id.hex[-8:], "fact 11 tells"):
        assert told.find_item(which).memory_id == FACTS[11].memory_id
    with pytest.raises(InputError, match="No memory of this context"):
        told.find_item("99")
    with pytest.raises(InputError, match="This context has no memories"):
        replace(told, candidates=()).find_item("1")
    with pytest.raises(ConflictError, match=r"10 memories of this context match 'tells'\."):
        told.find_item("tells")
    assert told.frame["name"] == "debug"
    assert len(told.candidates) == 12
    assert told.candidates[0].contributions["similarity"] == pytest.approx(0.5)

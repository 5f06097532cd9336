"""A context brought up to date without a search."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.always_on import select_always_on
from newton.cognition.assembly.assembler import assemble
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import allocate_budget, reserve_always_on
from newton.cognition.assembly.fill import OVER_LIMIT
from newton.cognition.assembly.relevance_floor import RelevanceFloor
from newton.cognition.assembly.render import count_day_tokens, count_header_tokens, render_frame_section
from newton.cognition.scoring.score import ScoredMemory, create_scorer
from newton.cognition.session_context.incremental_update import (
    REASON_ADDED,
    REASON_EVICTED,
    REASON_SHORTENED,
    ContextAdditions,
    PreviousContext,
    UpdatedContext,
    update_context,
)
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.heart.censors import Censor
from newton.heart.identity.tenets import Identity, IdentityTenet, render_tenet
from newton.ids import new_id
from newton.memory.representations import to_bullet
from newton.memory.search_types import RetrievedMemory
from newton.providers.token_counter import count
from tests.support import NOON, examples
from tests.unit.assembling import found, make_setting

FRAME = load_frames()["question"]
NEWTON = load_profiles()["newton"]
WORDS = "The harbour master keeps the timetable of every ferry in the blue folder beside the door"
CENSOR = Censor(
    memory_id=new_id(),
    state="ACTIVE",
    summary="**WARN:** sail at night — the rocks",
    summary_tokens=count(to_bullet("**WARN:** sail at night — the rocks")),
    match_mode="phrase",
    trigger="sail at night",
    action="warn",
    reason="the rocks",
    domain=None,
    embedding=None,
)


def day_of(number: int) -> str:
    return f"[2026-11-{1 + number % 3:02}] User: "


def memory(
    number: int, *, kind: str = "fact", words: str = WORDS, relevance: float = 0.5, place: int = 0
) -> RetrievedMemory:
    front = day_of(number) if kind == "exchange" else ""
    summary, micro = f"{front}{words} {number}", f"{front}{words[: max(len(words) // 8, 1)]} {number}"
    return found(
        kind=kind,
        summary=summary,
        micro=micro,
        summary_tokens=count(to_bullet(summary)),
        micro_tokens=count(to_bullet(micro)),
        relevance=relevance,
        thread_id=THREAD if kind == "exchange" else None,
        position=place if kind == "exchange" else None,
    )


THREAD = new_id()
TENET = IdentityTenet(
    tenet_id=new_id(),
    part="boundary",
    text="Never sail at night",
    tokens=count(render_tenet("boundary", "Never sail at night")),
)


def scored(memories: Sequence[RetrievedMemory]) -> list[ScoredMemory]:
    return [create_scorer(frame=FRAME, profile=NEWTON, now=NOON)(one) for one in memories]


def setting(total: int, *, focus: Sequence[RetrievedMemory] = ()) -> AssemblyInput:
    header_tokens = count_header_tokens(count)
    always_on = select_always_on(
        Identity(1, (TENET,)),
        [CENSOR],
        triggered=frozenset(),
        max_tokens=total,
        header_tokens=header_tokens,
        count_tokens=count,
    )
    budget = reserve_always_on(allocate_budget(total), always_on.tokens, max_tokens=total)
    frame = render_frame_section(FRAME.name, FRAME.questions, count_tokens=count, max_tokens=budget.layers["frame"])
    return make_setting(
        input="Where is the timetable?",
        budget=budget,
        profile=NEWTON,
        identity=always_on.identity,
        frame_section=frame,
        censors=always_on.censors,
        focus=focus,
        header_tokens=header_tokens,
        day_tokens=count_day_tokens(count),
    )


def within(given: AssemblyInput, total: int) -> AssemblyInput:
    return replace(given, budget=replace(given.budget, total=total))


def brought(
    known: Sequence[RetrievedMemory],
    total: int,
    entering: ContextAdditions,
    *,
    most: int | None = None,
    before: Sequence[RetrievedMemory] = (),
) -> tuple[UpdatedContext | None, AssemblyInput]:
    """A context of the known memories, and then with what enters it."""
    then = setting(total, focus=before)
    first = assemble(scored(known), then)
    now = within(replace(then, focus=[*entering.lines, *before]), total if most is None else most)
    return update_context(PreviousContext(first.candidates, first.focus), now, entering), now


SIZES = st.lists(st.integers(1, 40), max_size=12)


@examples(16)
@given(known=SIZES, lines=SIZES, new=SIZES, total=st.integers(60, 3_000), less=st.floats(0.2, 1))
def test_an_updated_context_is_never_over_its_budget_and_keeps_what_always_stands(
    known: list[int], lines: list[int], new: list[int], total: int, less: float
) -> None:
    # S001-34, S002-14: the lowest relevance leaves, censors and frame stay
    memories = [
        memory(n, words=f"w{n} " * size, relevance=n / 12, kind="exchange" if n % 2 else "fact", place=100 + n)
        for n, size in enumerate(known)
    ]
    said = [memory(n, kind="exchange", words=f"l{n} " * size, place=n) for n, size in enumerate(lines)]
    learnt = [memory(n, words=f"n{n} " * size) for n, size in enumerate(new)]
    most = int(total * less)
    done, now = brought(memories, total, ContextAdditions(said[::-1], scored(learnt)), most=most)
    always = [now.frame_section, *now.censors.blocks, *now.identity.blocks]
    if done is None:
        headings = now.header_tokens["censors"] * bool(now.censors.blocks) + now.header_tokens["identity"] * bool(
            now.identity.blocks
        )
        assert sum(block.tokens for block in always) + headings > most
        return
    page = done.assembly.block
    assert page.tokens <= most
    assert page.tokens == count(page.text)
    assert all(block.text in page.text for block in always)
    shown = {c.memory_id: c.context_line for c in done.assembly.candidates if c.detail}
    assert all(to_bullet(text) in page.text for text in shown.values())
    assert {c.memory_id for c in done.assembly.candidates} == {m.memory_id for m in (*memories, *learnt)}
    assert set(done.added) <= shown.keys() | {f.memory_id for f in done.assembly.focus}


@examples(12)
@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=12), spare=st.integers(0, 200))
def test_the_lowest_scored_gives_way_first(sizes: list[int], spare: int) -> None:
    # S001-34
    memories = [memory(n, words=f"w{n} " * size, relevance=n / 12) for n, size in enumerate(sizes)]
    first = assemble(scored(memories), setting(3_000))
    done, _ = brought(memories, 3_000, ContextAdditions(), most=max(first.block.tokens - spare, 1))
    if done is None:
        return
    left = [c.score for c in done.assembly.candidates if done.evicted.get(c.memory_id) == REASON_EVICTED]
    stay = [c.score for c in done.assembly.candidates if c.detail]
    assert not left or not stay or max(left) <= min(stay)
    assert bool(done.evicted) == (spare > 0)


def test_new_lines_enter_first_and_the_lowest_leaves_and_it_is_said() -> None:
    # S001-34: a new event enters first with score 1.0
    known = [memory(n, relevance=n / 10) for n in range(8)]
    first = assemble(scored(known), setting(2_000))
    line = memory(99, kind="exchange", words="We leave from the second pier instead", place=3)
    fact = memory(98, words="The second pier has no light")
    done, now = brought(known, 2_000, ContextAdditions([line], scored([fact])), most=first.block.tokens)
    assert done is not None
    assert done.assembly.candidates[0].memory_id == fact.memory_id
    assert (done.assembly.candidates[0].score, done.assembly.candidates[0].reason) == (1.0, REASON_ADDED)
    assert done.assembly.focus == (line,)
    assert done.added == (line.memory_id, fact.memory_id)
    assert list(done.evicted) == [known[n].memory_id for n in range(len(done.evicted))], "the lowest first"
    assert set(done.evicted.values()) == {REASON_SHORTENED}
    assert done.assembly.block.tokens <= now.budget.total


def test_what_is_shortened_is_a_third_or_less_or_leaves_whole() -> None:
    # S001-31
    # lowest-scored first, each to floor(tokens / 3), stop at the target
    known = [memory(n, relevance=n / 10) for n in range(6)]
    first = assemble(scored(known), setting(2_000))
    one = first.candidates[-1]
    saved = one.tokens - one.scored.found.micro_tokens
    for over, shortened in ((1, 1), (saved, 1), (saved + 1, 2)):
        done, _ = brought(known, 2_000, ContextAdditions(), most=first.block.tokens - over)
        assert done is not None
        changed = [c for c in done.assembly.candidates if c.memory_id in done.evicted]
        assert len(changed) == shortened
        assert all(c.detail == "micro" and c.tokens <= one.tokens // 3 for c in changed)
    # what has no form of a third leaves whole
    # a result that is not short enough is rejected
    long = memory(0)
    stubborn = long._replace(micro=long.summary, micro_tokens=long.summary_tokens)
    first = assemble(scored([stubborn]), setting(2_000))
    done, _ = brought([stubborn], 2_000, ContextAdditions(), most=first.block.tokens - 1)
    assert done is not None
    assert done.evicted == {stubborn.memory_id: REASON_EVICTED}
    assert stubborn.summary not in done.assembly.block.text


def test_messages_of_an_ended_task_need_the_probability_of_other_memories() -> None:
    # S001-38: those of the session need none; a result stands for the messages of its task
    lines = [memory(n, kind="exchange", place=n) for n in range(4)]
    inputs = replace(setting(2_000), session_id=THREAD, relevance_floor=RelevanceFloor(0.6), ended_ranges=((0, 1),))
    placed = {c.scored.found.position: c for c in assemble(scored(lines), inputs).candidates}
    assert [bool(placed[n].detail) for n in range(4)] == [False, False, True, True]
    assert placed[0].reason.startswith("below the relevance floor")


def test_lines_that_come_all_at_once_enter_beyond_the_share_of_their_layer() -> None:
    lines = [memory(n, kind="exchange", place=n) for n in range(10)][::-1]
    older = [memory(50, kind="exchange", words="An older line")]
    done, now = brought([], 2_000, ContextAdditions(lines), before=older)
    assert done is not None
    layer = done.assembly.layers["working"]
    assert layer.share == now.budget.layers["working"] < layer.used <= layer.ceiling
    assert done.assembly.focus == tuple(reversed(lines)), "as they were said, and no older"
    assert older[0].memory_id in done.evicted


def test_new_messages_of_other_sessions_stay_within_their_limit() -> None:
    # S002-2: what is quoted before one input of a conversation is sent again with all later ones
    fact, *messages = memory(1), *(memory(number, kind="exchange", place=number) for number in range(2, 8))
    then = setting(3_000)
    then = replace(then, budget=replace(then.budget, other_sessions=2 * messages[0].summary_tokens))
    first = assemble(scored([fact]), then)
    updated = update_context(
        PreviousContext(first.candidates, first.focus), then, ContextAdditions((), scored(messages))
    )
    assert updated
    assert len(updated.added) == 2
    reasons = [c.reason for c in updated.assembly.candidates if c.kind == "exchange" and not c.detail]
    assert reasons == [OVER_LIMIT] * 4


def test_nothing_is_told_twice_in_an_updated_context() -> None:
    # S001-34
    known = memory(1)
    done, _ = brought([known], 2_000, ContextAdditions((), scored([known._replace(memory_id=new_id())])))
    assert done is not None
    assert done.added == ()
    assert done.assembly.block.text.count(known.summary) == 1
    # nothing is told twice in an updated context
    # of two new memories of the same words the better one enters, and what the identity says does not
    better, worse = memory(1, words="The pier is green", relevance=0.9), memory(1, words="The pier is green")
    stands = memory(2)._replace(summary="Never sail at night!", micro="Never sail at night!")
    done, _ = brought([memory(3)], 2_000, ContextAdditions(memories=scored([worse, better, stands])))
    assert done is not None
    reasons = {c.memory_id: c.reason for c in done.assembly.candidates}
    assert done.added == (better.memory_id,)
    assert reasons[worse.memory_id] == "repeats a better candidate"
    assert reasons[stands.memory_id] == "already in the identity"

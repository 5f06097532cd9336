"""Long conversations: what is shown stays within the window, what matters stays in it, and the log stays as it is."""

import asyncio
import json
from collections import Counter
from datetime import timedelta

import pytest

from newton.dialogue.compaction.presets import MAX_FACTOR, MIN_ENTRIES
from newton.dialogue.compaction.progress_events import (
    EVENT_NAMES,
    CompactionCompleted,
    CompactionProgressed,
    CompactionStarted,
    to_payload,
)
from newton.dialogue.messages import Message, dump_calls
from newton.dialogue.view import MESSAGE_TOKENS
from newton.providers import token_counter
from tests.scenarios.conftest import Mind
from tests.scenarios.longtalk import Talk
from tests.scenarios.talking import Talking, words
from tests.talks import calls, gives, says, turn

WINDOW = 12_000


def file(name: str, lines: int, *, planted: str = "") -> list[Message]:
    text = "\n".join(f"{n:5d}  def {name}_{n}(): return {n}" for n in range(lines))
    return [calls(name, arguments=f'{{"path": "src/{name}.py"}}'), gives(name, text + planted)]


def work(number: int, *lines: Message) -> list[Message]:
    return [
        says("user", f"Look at part {number}."),
        *lines,
        says("assistant", f"Part {number} is done. {'Well. ' * 40}"),
    ]


# --- the seven scenarios of S003 ---


@pytest.mark.slow
async def test_a_session_of_a_hundred_turns_never_overflows_and_needs_about_half(mind: Mind) -> None:
    # S003-21, S003-19: 40 to 60 % fewer tokens above 50,000, nothing recent lost
    talking = Talking(mind)
    bare = 0
    saved: list[float] = []
    for lines in Talk(110):
        bare += sum(placed.tokens + 4 for placed in await talking.doors.append("s1", lines))
        view = await talking.asks(most=24_000)
        assert talking.sent[-1] <= 24_000
        assert view[-1].text == lines[-1].content
        saved += [1 - talking.sent[-1] / bare] if bare > 50_000 else []
    assert len(saved) > 50 and min(saved) > 0.4
    assert sum(placed.tokens + 4 for placed in await talking.doors.read_log("s1")) == bare, "the log is whole"


@pytest.mark.slow
async def test_files_of_five_thousand_lines_are_kept_whole_and_shown_short(mind: Mind) -> None:
    # S003-22
    talking = Talking(mind)
    view = await talking.turns([work(number, *file(f"big{number}", 5_200)) for number in range(6)], most=WINDOW)
    assert max(talking.sent) <= WINDOW
    assert [n for n in range(6) if f"src/big{n}.py" not in words(view)] == []
    outputs = [one.message.content for one in await talking.doors.read_log("s1") if one.message.role == "tool"]
    assert [len(text.splitlines()) for text in outputs] == [5_200] * 6


@pytest.mark.slow
async def test_the_same_tool_thirty_times(mind: Mind) -> None:
    # S003-23
    talking = Talking(mind, "tool_calls, goal_batch")
    made = [work(n, *file(f"part{n}", 60, planted=f"\nValueError: bad row {n}")) for n in range(30)]
    view = await talking.turns(made, most=24_000)
    assert set(talking.ran) == {"tool_calls", "goal_batch"}
    assert talking.sent[-1] < max(talking.sent)
    text = words(view)
    assert [n for n in range(30) if f"src/part{n}.py" not in text or f"bad row {n}" not in text] == []


@pytest.mark.slow
async def test_two_strategies_and_more_work_in_one_session(mind: Mind) -> None:
    # S003-24, S003-8: each is given what the one before it has left
    talking = Talking(mind)
    await talking.turns([turn(n, work=2, words=60, reply=100) for n in range(24)], most=20_000)
    assert {"mask_outputs", "tool_calls", "goal_batch"} <= set(talking.ran)
    first = [event for event in talking.told if isinstance(event, CompactionStarted | CompactionCompleted)]
    for begun, ended in zip(first[::2], first[1::2], strict=True):
        assert isinstance(begun, CompactionStarted) and isinstance(ended, CompactionCompleted)
        assert begun.strategy == ended.strategy
        assert ended.new_count == begun.current - ended.saved < begun.current
    order = [strategy.name for strategy in talking.compacting.preset.strategies]
    entries = await talking.doors.list_entries("s1")
    assert {one.entry.strategy for one in entries} <= set(order)


@pytest.mark.slow
@pytest.mark.parametrize("reply", [10, 400])
async def test_on_the_way_to_the_last_token(mind: Mind, reply: int) -> None:
    # S003-25: what comes is larger each time, until one message alone fills the window
    talking = Talking(mind)
    for number in range(14):
        lines = [
            says("user", f"Part {number}: {'word ' * (40 * 2**number % 20_000)}"),
            says("assistant", f"{number} ok " * reply),
        ]
        view = await talking.turns([lines], most=WINDOW)
        assert talking.sent[-1] <= WINDOW
        assert f"Part {number}" in words(view), "the current turn is there, cut if need be"
        assert view[-1].role == "assistant"


@pytest.mark.slow
async def test_what_was_told_shorter_can_still_be_referred_to(mind: Mind) -> None:
    # S003-26: in the view, or found by recall; and restoring brings it back word for word
    talking, talk = Talking(mind), Talk(40)
    view = await talking.turns(list(talk), most=WINDOW)
    await mind.settle()
    text, lost = words(view), list[str]()
    for planted in talk.planted:
        if planted.key not in text:
            found = await mind.verbs.recall(planted.asked, limit=20)
            lost += [planted.words] if not any(planted.key in one.summary for one in found.memories) else []
    assert len(lost) <= 0.05 * len(talk.planted), lost
    (oldest, *_) = [item for item in view if item.entry_id]
    await talking.doors.restore("s1", str(oldest.entry_id))
    again = (await talking.doors.get_view("s1")).view
    assert oldest.entry_id not in {item.entry_id for item in again}


class Waiting:
    """A model that is asked and thinks until it is told to go on."""

    def __init__(self) -> None:
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    name = "slow"

    async def find_window(self) -> int:
        return 128_000

    async def complete(
        self, prompt: str, schema: object, *, purpose: str, max_tokens: int, timeout_seconds: float | None
    ) -> tuple[None, dict[str, int]]:
        self.asked.set()
        await self.may.wait()
        return None, {}


async def begin_compaction(mind: Mind) -> tuple[Talking, Waiting, "asyncio.Task[object]"]:
    """A session whose compaction waits for its model."""
    model = Waiting()
    talking = Talking(mind, "threshold(share=0.1)", chosen={"model": model})
    await talking.says(*[line for n in range(10) for line in turn(n)])
    running = asyncio.create_task(talking.compacting.compact(await mind.session(), max_tokens=2_000))
    async with asyncio.timeout(60):
        await model.asked.wait()
    return talking, model, running


@pytest.mark.slow
async def test_everything_else_goes_on_while_it_runs(mind: Mind) -> None:
    # S003-27, S003-12: events come, this session and others can be read and written
    talking, model, running = await begin_compaction(mind)
    async with asyncio.timeout(60):
        assert [type(event) for event in talking.told] == [CompactionStarted]
        await talking.says(says("user", "Still there?"))
        other = Talking(mind, ref="s2")
        await other.turns([turn(n) for n in range(3)], most=2_000)
        seen = await talking.doors.get_view("s1")
        assert seen.tokens == seen.logged, "what is being told is shown as it was"
        assert (await Talking(mind, "threshold(share=0.1)").asks(most=2_000))[-1].text == "Still there?"
        assert not running.done()
        model.may.set()
        await running
    assert isinstance(talking.told[-1], CompactionCompleted)
    assert (await talking.doors.get_view("s1")).view[-1].text == "Still there?"


async def test_a_run_that_is_stopped_changes_nothing_and_lets_go(mind: Mind) -> None:
    talking, _, running = await begin_compaction(mind)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    seen = await talking.doors.get_view("s1")
    assert seen.tokens == seen.logged
    other = Talking(mind, "threshold(share=0.1)")
    await other.asks(most=2_000)
    assert other.ran, "nobody waits for a holder that is gone"


# --- what is told of it ---


async def test_events_have_their_names_and_payloads(mind: Mind) -> None:
    # S003-9, S003-10
    talking, limit = Talking(mind, "tool_calls(age=2)"), 1_000
    await talking.turns([turn(n) for n in range(6)], most=limit)
    begun, *between, ended = talking.told[: 2 + sum(isinstance(e, CompactionProgressed) for e in talking.told[:4])]
    assert isinstance(ended, CompactionCompleted) and between
    told = [to_payload(event) for event in (begun, *between, ended)]
    assert [one["event"] for one in told] == [
        "context_summarization_start",
        *["context_summarization_progress"] * len(between),
        "context_summarization_complete",
    ]
    assert set(told[0]) == {"event", "strategy", "current", "max", "time"}
    assert set(told[1]) == {"event", "strategy", "processed", "total", "saved", "time"}
    assert set(told[-1]) == {"event", "strategy", "saved", "new_count", "duration_ms", "time", "exhausted"}
    assert told[0]["max"] == limit and told[0]["time"] == mind.clock.now().isoformat()
    last = between[-1]
    assert isinstance(last, CompactionProgressed) and last.processed == last.total
    assert isinstance(begun, CompactionStarted)
    assert ended.saved == last.saved == begun.current - ended.new_count
    assert set(EVENT_NAMES.values()) == {
        f"context_summarization_{end}" for end in ("start", "progress", "complete", "error")
    }


async def test_a_failure_is_told_and_changes_nothing(mind: Mind) -> None:
    # S003-10: what was planned on a view that changed meanwhile
    talking, model, running = await begin_compaction(mind)
    async with asyncio.timeout(60):
        await mind.execute("update dialogue.leases set expires_at = '-infinity'")
        other = Talking(mind, "threshold(share=0.1)")
        await other.asks(most=2_000)
        first = (await other.doors.get_view("s1")).view
        model.may.set()
        await running
    assert talking.failed[-1] == "another request changed the session during its compaction"
    assert set(to_payload(talking.told[-1])) == {"event", "strategy", "error", "time"}
    assert (await talking.doors.get_view("s1")).view == first


@pytest.mark.slow
async def test_runs_are_tallied_by_strategy_and_session(mind: Mind) -> None:
    # S003-20
    talking, other = Talking(mind), Talking(mind, ref="s2")
    await talking.turns([turn(n, words=100) for n in range(14)], most=4_000)
    await other.turns([turn(n, words=100) for n in range(8)], most=4_000)
    ran, saved = Counter(talking.ran), Counter[str]()
    for event in talking.told:
        if isinstance(event, CompactionCompleted):
            saved[event.strategy] += event.saved
    tallies = {one.strategy: one for one in await talking.doors.get_compaction_stats("s1")}
    assert {name: one.runs - one.failed for name, one in tallies.items()} == ran
    assert {name: one.saved for name, one in tallies.items()} == saved
    assert all(one.sessions == 1 and 0 < one.mean_ms <= one.most_ms for one in tallies.values())
    both = {one.strategy: one for one in await talking.doors.get_compaction_stats()}
    assert both["mask_outputs"].sessions == 2
    assert both["mask_outputs"].runs == tallies["mask_outputs"].runs + Counter(other.ran)["mask_outputs"]


async def test_when_nothing_can_be_told_shorter_that_is_said_once(mind: Mind) -> None:
    # a floor above the threshold ends in "exhausted", not a loop
    talking = Talking(mind, "threshold(recent=2)")
    huge = says("user", "word " * 3_000)
    await talking.turns([turn(0), turn(1), turn(2), [huge, says("assistant", "I see.")], turn(4)], most=4_000)
    ended = [event for event in talking.told if isinstance(event, CompactionCompleted)]
    assert ended[-1].exhausted
    before = len(talking.told)
    await talking.asks(most=4_000)
    await talking.asks(most=4_000)
    assert len(talking.told) == before, "it is not tried again as long as nothing changes"


@pytest.mark.slow
async def test_one_huge_recent_message_does_not_fire_compaction_every_turn(mind: Mind) -> None:
    talking = Talking(mind)
    await talking.turns([turn(n) for n in range(6)], most=WINDOW)
    await talking.turns([[says("user", "word " * 9_000), says("assistant", "Long.")]], most=WINDOW)
    ran: list[int] = []
    for number in range(10, 40):
        before = len(talking.told)
        await talking.turns([turn(number, work=0)], most=WINDOW)
        ran.append(len(talking.told) > before)
    assert sum(ran) <= 6 and talking.failed == []


async def test_a_restored_message_stays_restored(mind: Mind) -> None:
    talking = Talking(mind)
    await talking.says(*(line for n in range(15) for line in turn(n, work=1)))
    await talking.turns([turn(n, work=1) for n in range(15, 25)], most=4_000)
    restored = next(one for one in await talking.doors.list_entries("s1") if one.entry.strategy == "threshold")
    place = restored.entry.first
    assert any(one.entry.kind == "goals" and one.entry.first <= place for one in await talking.doors.list_entries("s1"))
    await talking.doors.restore("s1", str(restored.entry.entry_id))
    whole = (await talking.doors.read_log("s1"))[place].message.content
    for number in range(25, 33):
        mind.clock.advance(timedelta(minutes=5))
        view = await talking.turns([turn(number, work=1)], most=4_000)
        assert [item.text for item in view if item.first == place == item.last] == [whole]
    seen = await talking.doors.get_view("s1")
    assert seen.tokens < 4_000, "what lies beside it is told shorter as before"


@pytest.mark.slow
async def test_where_compaction_is_off_old_turns_are_left_out_of_what_is_sent_alone(mind: Mind) -> None:
    # S003-14: none
    talking = Talking(mind, "none")
    view = await talking.turns([turn(n) for n in range(20)], most=2_000)
    assert talking.told == [] and max(talking.sent) <= 2_000
    assert "earlier turns are not shown here" in words(view)
    seen = await talking.doors.get_view("s1")
    assert seen.tokens == seen.logged


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [1, 5])
async def test_a_message_of_megabytes_is_kept_and_shown_trimmed(mind: Mind, megabytes: int) -> None:
    last = megabytes * 22_000
    text = "".join(f"{n} the quick brown fox jumps over the lazy dog\n" for n in range(last + 1))
    assert len(text) > megabytes * 1_000_000
    talking = Talking(mind)
    view = await talking.turns([[says("user", "Read it."), calls("a"), gives("a", text)], turn(1)], most=WINDOW)
    assert max(talking.sent) < 4_000
    assert "0 the quick" in words(view) and f"{last} the quick" in words(view)
    assert (await talking.doors.read_log("s1"))[2].message.content == text


@pytest.mark.parametrize("said", ["", "I write it now."])
async def test_a_huge_file_that_a_tool_is_given_is_kept_and_shown_in_short(mind: Mind, said: str) -> None:
    # S003-16, S003-22, S003-26
    given = json.dumps({"path": "src/app.py", "content": "x = 1\n" * 14_000})
    lines = [says("user", "Write it. Never touch prod."), calls("w", text=said, arguments=given), gives("w", "written")]
    talking = Talking(mind)
    view = await talking.turns([turn(0), lines], most=WINDOW)
    assert talking.sent[-1] < 5_000, "it is in short before anything has to give way"
    asked, call, gave = view[-3:]
    assert (asked.text, gave.text) == ("Write it. Never touch prod.", "written") and said in call.text
    short = json.loads(call.calls[0].arguments)
    assert short["path"] == "src/app.py" and len(short["content"]) < 6_000
    assert (
        call.tokens
        == token_counter.count(call.text) + token_counter.count(dump_calls(call.calls) or "") + MESSAGE_TOKENS
    )
    assert (await talking.doors.read_log("s1"))[call.first].message.calls[0].arguments == given
    (entry,) = await talking.doors.list_entries("s1")
    await talking.doors.restore("s1", entry.entry.entry_id.hex)
    (_, call, _) = (await talking.doors.get_view("s1")).view[-3:]
    assert call.calls[0].arguments == given
    assert [item.role for item in await talking.asks(most=6_000)][-3:] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("limit", [300, 1_500, pytest.param(4_000, marks=pytest.mark.slow)])
async def test_a_limit_that_a_person_asks_for_is_reached(mind: Mind, limit: int) -> None:
    # S003-18: whatever the preset spares, a person's own limit holds
    talking = Talking(mind, "none")
    await talking.says(*(line for n in range(40) for line in turn(n, work=n % 3)))
    await talking.says(says("user", "And now?"), says("assistant", "Now we go on."))
    outcome = await talking.doors.compact("s1", max_tokens=limit)
    assert outcome.before.tokens > 4_000
    assert outcome.after.tokens <= limit and outcome.is_reached and outcome.obstacles == []
    again = await talking.doors.compact("s1", max_tokens=limit)
    assert again.after == outcome.after, "a repeated compaction changes nothing"


async def test_short_messages_are_compacted_together_when_a_person_asks(mind: Mind) -> None:
    # a turn of few words is not worth a summary of its own
    talking = Talking(mind)
    await talking.says(
        *(line for n in range(200) for line in (says("user", f"Add {n} eggs."), says("assistant", "Yes.")))
    )
    assert (await talking.doors.compact("s1", max_tokens=1_000)).is_reached


async def test_what_keeps_a_session_above_its_limit_is_named(mind: Mind) -> None:
    talking = Talking(mind)
    await talking.says(*(line for n in range(8) for line in turn(n, work=1)))
    await talking.says(says("user", "word " * 2_000), says("assistant", "Long."))
    outcome = await talking.doors.compact("s1", max_tokens=1_500)
    assert not outcome.is_reached and outcome.after.tokens > 1_500
    assert outcome.obstacles[0].reason == "the current turn is never compacted"
    assert outcome.obstacles[0].tokens > 2_000
    assert sum(obstacle.tokens for obstacle in outcome.obstacles) == outcome.after.tokens


@pytest.mark.slow
async def test_wrong_cuts_are_counted_and_make_a_strategy_wait(mind: Mind) -> None:
    # S003-F3, S003-20: a restored entry and a message that is read in full again are wrong cuts
    talking = Talking(mind, "threshold(recent=2, target=0.1)")
    await talking.turns([turn(n, work=1) for n in range(40)], most=3_000, at_once=4)
    before = {one.strategy: one for one in await talking.doors.get_compaction_stats("s1")}["threshold"]
    assert (before.restored, before.reread, before.factor) == (0, 0, 1.0) and before.entries >= MIN_ENTRIES
    entries = [one.entry for one in await talking.doors.list_entries("s1")]
    for entry in entries[:3]:
        await talking.doors.restore("s1", str(entry.entry_id))
    positions = [entry.first for entry in entries[3:6]]
    query = "select memory_id from memory.memories where kind = 'exchange' and position = any($1)"
    read = [row[0] for row in await mind.fetch(query, positions)]
    await mind.verbs.record_reading(read)
    after = {one.strategy: one for one in await talking.doors.get_compaction_stats("s1")}["threshold"]
    assert (after.restored, after.reread) == (3, 3) and 1 < after.factor <= MAX_FACTOR

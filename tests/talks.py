"""Made conversations of every shape, and compaction of them without a database: plans are told and laid over them."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count as numbers
from uuid import UUID

from hypothesis import strategies as st

from newton.dialogue.compaction import extractive_summary
from newton.dialogue.compaction.strategies import CompactionBlock, CompactionStrategy, ViewState, refusal_reason
from newton.dialogue.messages import Message, Role, StoredMessage, dump_calls
from newton.dialogue.view import MESSAGE_TOKENS, CompactionEntry, ViewMessage, build_view, count_view_tokens
from newton.memory.memory import TokenCounter
from newton.providers.chat import ToolCall
from tests.support import NOON, count

SESSION = UUID(int=1)


def placed(lines: Sequence[Message], *, by: TokenCounter = count) -> list[StoredMessage]:
    """Lines as a log has them."""
    return [
        StoredMessage(
            session_id=SESSION,
            position=n,
            tokens=max(by(line.content) + (by(dump_calls(line.calls) or "") if line.calls else 0), 1),
            message=line,
        )
        for n, line in enumerate(lines)
    ]


def says(role: Role, text: str) -> Message:
    return Message(role=role, content=text, said_at=NOON)


def calls(*ids: str, text: str = "", arguments: str = '{"path": "src/app.py"}') -> Message:
    made = tuple(ToolCall(one, "read_file", arguments) for one in ids)
    return Message(role="assistant", content=text, said_at=NOON, calls=made)


def gives(answers: str | None, text: str) -> Message:
    return Message(role="tool", name="read_file", content=text, said_at=NOON, tool_call_id=answers)


def turn(number: int, *, work: int = 2, words: int = 40, reply: int = 20) -> list[Message]:
    """A whole turn: an input, some pairs of calls and answers, a reply."""
    lines = [says("user", f"Please look at part {number} of the importer.")]
    for step in range(work):
        output = "\n".join(f"{n} value_{number}_{step} = {n}" for n in range(words))
        lines += [calls(f"c{number}.{step}"), gives(f"c{number}.{step}", output)]
    return [*lines, says("assistant", f"I looked at part {number}. {'It works now and is done. ' * reply}")]


SHORT = st.text(max_size=12)


def _repeated(text: str, often: int) -> str:
    return text * often


TEXTS: st.SearchStrategy[str] = st.builds(_repeated, SHORT, st.sampled_from([1, 1, 2, 10, 80, 300]))
STEPS = st.sampled_from(
    ["user", "user", "assistant", "system", "call", "call", "pair", "pair", "parallel", "tool", "answer", "late"]
)


@st.composite
def logs(draw: st.DrawFn, *, most: int = 40, reused: bool | None = None) -> list[StoredMessage]:
    """Any log that can be written: roles in any order, calls that wait or are never answered, ids that come again."""
    lines: list[Message] = []
    waiting: list[str] = []
    again = draw(st.booleans()) if reused is None else reused
    for number, step in enumerate(draw(st.lists(STEPS, max_size=most))):
        text, ids = draw(TEXTS), [f"call_{0 if again and not waiting else number}", f"other_{number}"]
        if step in ("user", "assistant", "system"):
            lines.append(says(step, text))
        elif step == "call":
            lines.append(calls(ids[0], text=text))
            waiting.append(ids[0])
        elif step == "pair":
            lines += [calls(ids[0]), gives(ids[0], text)]
        elif step == "parallel":
            lines += [calls(*ids, text=text), gives(ids[1], text), gives(ids[0], "done")]
        elif step == "tool":
            lines.append(gives(None, text))
        elif waiting:
            lines.append(gives(waiting.pop(0 if step == "answer" else -1), text))
    return placed(lines)


@st.composite
def worked(draw: st.DrawFn, *, most: int = 30) -> list[StoredMessage]:
    """A log of turns as programs write them, with a system's lines, silence and open calls among them."""
    lines: list[Message] = []
    sizes = st.tuples(st.integers(0, 3), st.sampled_from([1, 30, 200]), st.sampled_from([1, 20, 60]))
    for number, (work, words, reply) in enumerate(draw(st.lists(sizes, min_size=1, max_size=most))):
        odd = draw(st.sampled_from(["", "", "", "", "", "system", "open", "silent"]))
        made = turn(number, work=work, words=words, reply=reply)
        if odd == "system":
            made.insert(draw(st.integers(0, len(made))), says("system", "Keep to the rules."))
        elif odd == "open":
            made.append(calls(f"open{number}"))
        elif odd == "silent":
            made = made[:1]
        lines += made
    return placed(lines)


class Told:
    """A log with what was laid over it."""

    def __init__(self, log: Sequence[StoredMessage], *, pinned: frozenset[int] = frozenset()) -> None:
        self.log, self.pinned = list(log), pinned
        self.entries: list[CompactionEntry] = []
        self._clock = numbers(1)

    @property
    def view(self) -> list[ViewMessage]:
        return build_view(self.log, self.entries)

    def run(self, strategies: Sequence[CompactionStrategy], most: int, *, rounds: int = 4) -> list[CompactionEntry]:
        """One compaction as the agent does it; returns what it made."""
        made: list[CompactionEntry] = []
        for strategy in strategies:
            for _ in range(rounds):
                sight = ViewState(self.view, most, self.pinned)
                fresh = [
                    entry
                    for block in strategy.plan(sight)
                    if refusal_reason(block, sight) is None and (entry := self._entry(strategy.name, block))
                ]
                if not fresh:
                    break
                self.entries += fresh
                made += fresh
        return made

    def plans(self, strategies: Sequence[CompactionStrategy], most: int) -> list[CompactionBlock]:
        return [b for strategy in strategies for b in strategy.plan(ViewState(self.view, most, self.pinned))]

    @property
    def tokens(self) -> int:
        return count_view_tokens(self.view)

    def lay(self, block: CompactionBlock) -> None:
        """Tells of a block, whatever a strategy would say to it."""
        made = self._entry("by hand", block)
        assert made is not None
        self.entries.append(made)

    def _entry(self, strategy: str, block: CompactionBlock) -> CompactionEntry | None:
        if block.kind == "mask":
            text = extractive_summary.mask_output(block.items[0], max_tokens=block.max_tokens, count_tokens=count)
        else:
            account = extractive_summary.summarize_block(block.items)
            text = extractive_summary.render_summary(
                block.kind, account, block.items, max_tokens=block.max_tokens, count_tokens=count
            )
        if count(text) + MESSAGE_TOKENS >= block.tokens:
            return None
        number = next(self._clock)
        return CompactionEntry(
            entry_id=UUID(int=number),
            kind=block.kind,
            first=block.first,
            last=block.last,
            text=text,
            tokens=count(text),
            before=block.tokens,
            strategy=strategy,
            prompt=extractive_summary.RULES_VERSION,
            model=None,
            made_at=NOON + timedelta(seconds=number),
        )

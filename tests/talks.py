"""Made conversations of every shape, and compaction of them without a database: plans are told and laid over them."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count as numbers
from uuid import UUID

from hypothesis import strategies as st

from newton.dialogue.compaction import telling
from newton.dialogue.compaction.strategies import Block, Sight, Strategy, allowed
from newton.dialogue.lines import Line, Placed, Role, written
from newton.dialogue.view import MESSAGE_TOKENS, Entry, Shown, cost, shown
from newton.memory.memory import Count
from newton.providers.chat import Call
from tests.support import NOON, count

SESSION = UUID(int=1)


def placed(lines: Sequence[Line], *, by: Count = count) -> list[Placed]:
    """Lines as a log has them."""
    return [
        Placed(
            session_id=SESSION,
            position=n,
            tokens=max(by(line.content) + (by(written(line.calls) or "") if line.calls else 0), 1),
            line=line,
        )
        for n, line in enumerate(lines)
    ]


def says(role: Role, text: str) -> Line:
    return Line(role=role, content=text, said_at=NOON)


def calls(*ids: str, text: str = "", arguments: str = '{"path": "src/app.py"}') -> Line:
    made = tuple(Call(one, "read_file", arguments) for one in ids)
    return Line(role="assistant", content=text, said_at=NOON, calls=made)


def gives(answers: str | None, text: str) -> Line:
    return Line(role="tool", name="read_file", content=text, said_at=NOON, answers=answers)


def turn(number: int, *, work: int = 2, words: int = 40, reply: int = 20) -> list[Line]:
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
def logs(draw: st.DrawFn, *, most: int = 40, reused: bool | None = None) -> list[Placed]:
    """Any log that can be written: roles in any order, calls that wait or are never answered, ids that come again."""
    lines: list[Line] = []
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
def worked(draw: st.DrawFn, *, most: int = 30) -> list[Placed]:
    """A log of turns as programs write them, with a system's lines, silence and open calls among them."""
    lines: list[Line] = []
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

    def __init__(self, log: Sequence[Placed], *, pinned: frozenset[int] = frozenset()) -> None:
        self.log, self.pinned = list(log), pinned
        self.entries: list[Entry] = []
        self._clock = numbers(1)

    @property
    def view(self) -> list[Shown]:
        return shown(self.log, self.entries)

    def run(self, strategies: Sequence[Strategy], most: int, *, rounds: int = 4) -> list[Entry]:
        """One compaction as the agent does it; returns what it made."""
        made: list[Entry] = []
        for strategy in strategies:
            for _ in range(rounds):
                sight = Sight(self.view, most, self.pinned)
                fresh = [
                    entry
                    for block in strategy.plan(sight)
                    if allowed(block, sight) is None and (entry := self._entry(strategy.name, block))
                ]
                if not fresh:
                    break
                self.entries += fresh
                made += fresh
        return made

    def plans(self, strategies: Sequence[Strategy], most: int) -> list[Block]:
        return [b for strategy in strategies for b in strategy.plan(Sight(self.view, most, self.pinned))]

    @property
    def tokens(self) -> int:
        return cost(self.view)

    def lay(self, block: Block) -> None:
        """Tells of a block, whatever a strategy would say to it."""
        made = self._entry("by hand", block)
        assert made is not None
        self.entries.append(made)

    def _entry(self, strategy: str, block: Block) -> Entry | None:
        if block.kind == "mask":
            text = telling.masked(block.items[0], most=block.most, count=count)
        else:
            account = telling.account(block.items)
            text = telling.written(block.kind, account, block.items, most=block.most, count=count)
        if count(text) + MESSAGE_TOKENS >= block.tokens:
            return None
        number = next(self._clock)
        return Entry(
            entry_id=UUID(int=number),
            kind=block.kind,
            first=block.first,
            last=block.last,
            text=text,
            tokens=count(text),
            before=block.tokens,
            strategy=strategy,
            prompt=telling.RULES,
            model=None,
            made_at=NOON + timedelta(seconds=number),
        )

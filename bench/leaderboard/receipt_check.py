"""`python -m bench receipt`: asks one question again, and compares its contexts with the stored receipts."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from bench.dataset import DatasetConversation
from bench.leaderboard.command import RECEIPTS_FOLDER, check_systems, open_systems
from bench.leaderboard.measurement import LeaderboardRun, make_receipt
from bench.leaderboard.public_sets import DatasetSelection, load_datasets
from bench.leaderboard.receipts import ContextReceipt, ReceiptStore
from bench.leaderboard.systems import MeasuredSystem
from newton.errors import ConflictError, NotFoundError
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption
from newton.runtime.cli.printing import say

# what a repeated context must have in common with the first one; times differ
COMPARED = ("found", "missed", "verbatim", "tokens", "items", "context_sha256")


class ReceiptComparison(NamedTuple):
    """A stored receipt, the repeated one, and the text of the repeated context."""

    system: str
    stored: ContextReceipt
    repeated: ContextReceipt
    text: str

    @property
    def differences(self) -> list[str]:
        """Return the fields that differ."""
        return [name for name in COMPARED if getattr(self.stored, name) != getattr(self.repeated, name)]


async def check_receipt(
    data: Path,
    output: Path,
    question: str,
    *,
    budget: Annotated[list[int] | None, Parameter(negative=())] = None,
    system: Annotated[list[str] | None, Parameter(negative=())] = None,
    rivals: Path | None = None,
    text: Annotated[bool, Parameter(negative=())] = False,
    json: JsonOption = False,
) -> None:
    """Ask one question of the leaderboard again, and compare its contexts with the stored receipts.

    It fails if a context has other evidence, another size or another text than its receipt says. It uses a temporary
    database, not your memories.

    Example: python -m bench receipt ./data ./leaderboard conv-42_q0 --budget 2000 --system newton --text

    Parameters
    ----------
    data:
        The folder with the data sets, as for `python -m bench leaderboard`.
    output:
        The folder of the receipts.
    question:
        The id of the question.
    budget:
        Only contexts of this size; repeatable.
    system:
        Only these systems: newton, bm25, vectors, fusion, mem0, langgraph; repeatable.
    rivals:
        The Python environment with mem0 and LangGraph. Default: .venv-rivals in the current folder, or that of Newton.
    text:
        Print the contexts.
    """
    check_systems(system or ())
    dataset, conversation = _find_question(data, question)
    async with open_systems(rivals, system or ()) as opened:
        store = ReceiptStore(output / RECEIPTS_FOLDER)
        run = opened.start_run(store, sorted(set(budget or ())))
        compared = await compare_receipts(run, dataset, conversation, opened.systems)
    if not compared:
        hint = "Give --system and --budget as they were measured, and the folder of the leaderboard."
        raise NotFoundError(f"There is no receipt of {question} here.", hint=hint)
    if json:
        formatting.print_json([_to_json(one) for one in compared])
    else:
        say("\n".join(_format(one, with_text=text) for one in compared))
    different = [one for one in compared if one.differences]
    if different:
        what = f"{len(different)} of {len(compared)} receipts differ from the repeated contexts."
        raise ConflictError(what, hint="The data, the code, a version or a receipt has changed since.")


def _find_question(data: Path, question: str) -> tuple[str, DatasetConversation]:
    """Return the folder of the data set and the conversation with only this question."""
    datasets, _ = load_datasets(data, DatasetSelection(question=question))
    return datasets[0].dataset.folder, datasets[0].conversations[0]


async def compare_receipts(
    run: LeaderboardRun, dataset: str, conversation: DatasetConversation, systems: Iterable[MeasuredSystem]
) -> list[ReceiptComparison]:
    """Repeat the contexts of the only question of a conversation in each system that has receipts of it.

    Without budgets, the run repeats all that are stored.
    """
    (question,), compared = conversation.questions, list[ReceiptComparison]()
    texts = run.read_texts(conversation)
    for system in systems:
        stored = _read_stored(run, dataset, system, conversation)
        if stored:
            budgets = sorted({one.budget for one in stored})
            async with system.open(texts) as ask:
                for context in await ask(question.text, budgets):
                    repeated = make_receipt(conversation, question, context, embed_ms=0.0)
                    compared += [
                        ReceiptComparison(system.title, one, repeated, context.text)
                        for one in stored
                        if one.key == repeated.key
                    ]
    return compared


def _read_stored(
    run: LeaderboardRun, dataset: str, system: MeasuredSystem, conversation: DatasetConversation
) -> Sequence[ContextReceipt]:
    file = run.store.read(dataset, system.key, conversation)
    own = [one for one in file.receipts if one.question == conversation.questions[0].id] if file else []
    return [one for one in own if not run.budgets or one.budget in run.budgets]


def _format(one: ReceiptComparison, *, with_text: bool) -> str:
    result = f"differs: {', '.join(one.differences)}" if one.differences else "same"
    found, missed = len(one.repeated.found), len(one.repeated.missed)
    line = (
        f"{one.system}, {one.stored.variant}, {one.stored.budget} tokens: {found} of {found + missed} found; {result}"
    )
    return f"{line}\n{one.text}" if with_text else line


def _to_json(one: ReceiptComparison) -> dict[str, Any]:
    return {
        "system": one.system,
        "differences": one.differences,
        "stored": one.stored.model_dump(),
        "repeated": one.repeated.model_dump(),
        "text": one.text,
    }

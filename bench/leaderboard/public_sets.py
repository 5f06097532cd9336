"""The public data sets of the leaderboard: where they come from, and which conversations the tuning has seen."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from bench.dataset import QUESTIONS_SUFFIX, DatasetConversation, DatasetQuestion, load_conversations
from newton.errors import InputError
from newton.providers import token_counter

Split: TypeAlias = Literal["held out", "tuned on", "unknown"]
FORMAT_HINT = "`python -m bench recall --help` describes the format."


class PublicDataset(NamedTuple):
    """A data set in the subfolder `folder`. `tuning` says what of Newton was chosen on which conversations.

    Conversations in neither list may or may not have been used for tuning.
    """

    folder: str
    title: str
    license: str = "unknown"
    source: str = ""
    tuning: str = ""
    held_out: tuple[str, ...] = ()
    tuned_on: tuple[str, ...] = ()

    def find_split(self, conversation: str) -> Split:
        if conversation in self.held_out:
            return "held out"
        return "tuned on" if conversation in self.tuned_on else "unknown"


PUBLIC_DATASETS = (
    PublicDataset(
        folder="locomo",
        title="LoCoMo",
        license="CC BY-NC 4.0",
        source="https://github.com/snap-research/locomo",
        tuning="The weights of words and neighbours were chosen on all five conversations, before they were divided;"
        " what came later was tuned on the other three only. The results on the held-out ones were looked at during"
        " development.",
        held_out=("conv-42", "conv-43"),
        tuned_on=("conv-26", "conv-30", "conv-41"),
    ),
    PublicDataset(
        folder="beam100k",
        title="BEAM-100K",
        license="CC BY-SA 4.0",
        source="https://github.com/mohammadtavakoli78/BEAM",
        tuning="Kinds of questions were tuned on chats 1-5. The results on the held-out ones were looked at during"
        " development.",
        held_out=tuple(f"beam100K_{number}" for number in range(6, 11)),
        tuned_on=tuple(f"beam100K_{number}" for number in range(1, 6)),
    ),
)


@dataclass(frozen=True, slots=True)
class DatasetSelection:
    """The limits of a run: the splits, conversations of each split, and questions of each conversation.

    `question` is the id of the only question.
    """

    splits: Collection[Split] = ()
    conversations: int | None = None
    questions: int | None = None
    question: str | None = None

    def apply(self, dataset: PublicDataset, conversations: Sequence[DatasetConversation]) -> list[DatasetConversation]:
        """Return the selected conversations with the selected questions."""
        selected = list[DatasetConversation]()
        for split in ("held out", "tuned on", "unknown"):
            if not self.splits or split in self.splits:
                own = [one for one in conversations if dataset.find_split(one.name) == split]
                selected += own[: self.conversations]
        limited = [replace(one, questions=self._select_questions(one)) for one in selected]
        return [one for one in limited if one.questions]

    def _select_questions(self, conversation: DatasetConversation) -> tuple[DatasetQuestion, ...]:
        questions = [one for one in conversation.questions if self.question in (None, one.id)]
        return tuple(questions[: self.questions])


class LoadedDataset(NamedTuple):
    """A data set with the selected conversations."""

    dataset: PublicDataset
    conversations: list[DatasetConversation]


def load_datasets(folder: Path, selection: DatasetSelection) -> tuple[list[LoadedDataset], list[PublicDataset]]:
    """Return the data sets in the subfolders of `folder`, and the public ones that are missing.

    Any other subfolder in the format of the benchmarks is a data set too. Raises InputError if there is none.
    """
    known = {one.folder: one for one in PUBLIC_DATASETS}
    found = sorted({path.parent.name for path in folder.glob(f"*/*{QUESTIONS_SUFFIX}")})
    missing = [one for name, one in known.items() if name not in found]
    loaded = list[LoadedDataset]()
    for name in sorted(found, key=lambda one: (list(known).index(one) if one in known else len(known), one)):
        dataset = known.get(name) or PublicDataset(folder=name, title=name)
        conversations = load_conversations(folder / name, count_tokens=token_counter.count)
        loaded.append(LoadedDataset(dataset, selection.apply(dataset, conversations)))
    if not any(one.conversations for one in loaded):
        what = f"{folder} has no conversation for this selection. {describe_missing(missing)}".strip()
        raise InputError(what, hint=f"Each subfolder is a data set. {FORMAT_HINT}")
    return [one for one in loaded if one.conversations], missing


def describe_missing(missing: Sequence[PublicDataset]) -> str:
    """Return a sentence for each missing data set with the subfolder, the source and the license; empty for none."""
    return " ".join(
        f"{one.title} is missing: get it from {one.source} ({one.license}) and convert it to the subfolder"
        f" {one.folder}."
        for one in missing
    )

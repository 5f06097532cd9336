"""Receipts: what a context of one question contained. They are stored by data set, system and conversation."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from bench.dataset import DatasetConversation
from newton.errors import InputError

# "full": the context is filled up to its maximum; "default": what the system selects without being asked for more
Selection: TypeAlias = Literal["full", "default"]
REMOVE_HINT = "Delete the file, and run `python -m bench leaderboard` again."


class ContextReceipt(BaseModel):
    """The result of one context. `found` and `missed` are the refs of the messages with evidence.

    `verbatim` are those of which the context has at least 80 % of the words, however long they are. `embed_ms` is the
    time that embedding the question took just before. The hash is that of the context's text.
    `is_complete` is False if a source of memories failed or was late; None for a system without sources.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    type: str
    variant: str
    budget: int
    found: tuple[str, ...]
    missed: tuple[str, ...]
    verbatim: tuple[str, ...]
    tokens: int
    items: int
    ms: float
    embed_ms: float
    context_sha256: str
    is_complete: bool | None = None

    @property
    def evidence(self) -> float:
        return len(self.found) / (len(self.found) + len(self.missed))

    @property
    def verbatim_evidence(self) -> float:
        return len(self.verbatim) / (len(self.found) + len(self.missed))

    @property
    def key(self) -> tuple[str, str, int]:
        return self.question, self.variant, self.budget


class ReceiptHeader(BaseModel):
    """The first line of a file of receipts: what was measured, with which versions, where and when.

    The results are used again only while `fingerprint` (data, code, versions and options) is the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    conversation: str
    system: str
    fingerprint: Mapping[str, str]
    description: str
    measured_at: str
    seconds: float
    machine: Mapping[str, Any]
    commit: str


class ReceiptFile(BaseModel):
    """A header with its receipts."""

    model_config = ConfigDict(frozen=True)

    header: ReceiptHeader
    receipts: tuple[ContextReceipt, ...]


@dataclass(frozen=True, slots=True)
class ReceiptStore:
    """The files of receipts below a folder."""

    folder: Path

    def path(self, dataset: str, system: str, conversation: str) -> Path:
        return self.folder / dataset / system / f"{conversation}.jsonl"

    def write(self, file: ReceiptFile) -> None:
        """Write a file at once, so that an interruption leaves no part of it. Raises InputError if it cannot."""
        header = file.header
        path = self.path(header.dataset, header.system, header.conversation)
        lines = [json.dumps(one.model_dump(), ensure_ascii=False) for one in (header, *file.receipts)]
        draft = path.with_suffix(".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise InputError(
                f"{path} cannot be written: {error.strerror}.", hint="Give a folder that you may write."
            ) from None

    def read(self, dataset: str, system: str, conversation: DatasetConversation) -> ReceiptFile | None:
        """Return the stored receipts of a conversation, or None if there are none.

        Raises InputError if a receipt contradicts the data: an unknown question, or other refs than its evidence.
        """
        path = self.path(dataset, system, conversation.name)
        if not path.is_file():
            return None
        try:
            first, *rest = path.read_text(encoding="utf-8").splitlines()
            header = ReceiptHeader.model_validate_json(first)
            receipts = tuple(ContextReceipt.model_validate_json(line) for line in rest)
        except (OSError, ValueError, ValidationError):
            raise InputError(f"{path} has no valid receipts.", hint=REMOVE_HINT) from None
        _check_receipts(path, receipts, conversation)
        return ReceiptFile(header=header, receipts=receipts)


def _check_receipts(path: Path, receipts: Iterable[ContextReceipt], conversation: DatasetConversation) -> None:
    questions = {question.id: question for question in conversation.questions}
    seen = set[tuple[str, str, int]]()
    for receipt in receipts:
        question = questions.get(receipt.question)
        if question is None:
            continue  # measured with more questions than this run has
        is_consistent = (
            sorted((*receipt.found, *receipt.missed)) == sorted(question.gold)
            and set(receipt.verbatim) <= set(question.gold)
            and receipt.type == question.type
            and receipt.tokens <= receipt.budget
            and receipt.key not in seen
        )
        if not is_consistent:
            what = f"{path}: the receipt of {receipt.question} at {receipt.budget} tokens contradicts the data."
            raise InputError(what, hint=REMOVE_HINT)
        seen.add(receipt.key)


def select_receipts(
    file: ReceiptFile, conversation: DatasetConversation, budgets: Sequence[int]
) -> list[ContextReceipt] | None:
    """Return the receipts of the questions and budgets of this run; None if one is missing."""
    by_key = {receipt.key: receipt for receipt in file.receipts}
    variants = dict.fromkeys(receipt.variant for receipt in file.receipts)
    wanted = [(q.id, variant, budget) for q in conversation.questions for variant in variants for budget in budgets]
    return [by_key[key] for key in wanted] if variants and all(key in by_key for key in wanted) else None

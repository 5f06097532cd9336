"""Train the transformer that reads what each part of a message does, and write it, quantized to int8.

`scripts/fit-speech-reader` runs it. It starts from all-MiniLM-L6-v2, of which the vectors of words and the lowest
layers stay as they are. The messages are those of tests/data/speech: each has parts with the label of their author.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from newton.providers.speech_reader import ACTS, MARKS
from tests.fitting.reader.speech_messages import (
    LABELS,
    SEED,
    Message,
    load_chats,
    load_corrections,
    load_messages,
    load_statements,
    load_told,
    load_wills,
)
from tests.fitting.reader.transformer import BASE, DIMENSIONS, export_graph

EPOCHS, BATCH, WARM_UP_STEPS = 3, 32, 80
FROZEN_LAYERS = 2
LAYERS_RATE, HEAD_RATE, WEIGHT_DECAY, DROPOUT, SMOOTHING = 1e-4, 1e-3, 0.01, 0.1, 0.05
MARK_WEIGHT, MARK_SHARE = 2.0, 2.0  # of a marked word piece, and of all marks beside the acts
MAX_PIECES, MAX_CHARS = 224, 100_000
INPUTS = ("word_vectors", "attention_mask", "token_type_ids")
UNLABELLED = -1


class SpeechReader(torch.nn.Module):
    """The layers of the embedding model, and a linear head on each word piece."""

    def __init__(self, attention: str = "sdpa") -> None:
        """Load the embedding model, with an implementation of attention that Transformers names."""
        super().__init__()
        self.encoder = AutoModel.from_pretrained(BASE, attn_implementation=attention)
        self.head = torch.nn.Sequential(torch.nn.Dropout(DROPOUT), torch.nn.Linear(DIMENSIONS, len(ACTS) + len(MARKS)))
        frozen = [self.encoder.embeddings, *self.encoder.encoder.layer[:FROZEN_LAYERS]]
        for parameter in (one for part in frozen for one in part.parameters()):
            parameter.requires_grad = False

    def forward(self, **tensors: torch.Tensor) -> torch.Tensor:
        """Return the log odds of each act for each word piece."""
        return self.head(self.encoder(**tensors).last_hidden_state)


class SpeechGraph(torch.nn.Module):
    """The reader with the vectors of word pieces as its input, as `newton.providers.speech_reader` calls it."""

    def __init__(self, reader: SpeechReader) -> None:
        """Take a trained reader."""
        super().__init__()
        self.reader = reader

    def forward(self, words: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """Return the log odds of each act for each word piece."""
        return self.reader(inputs_embeds=words, attention_mask=mask, token_type_ids=types)


class Batch(NamedTuple):
    """The word pieces of messages.

    `members` has for each of them the number of its part in the batch, or UNLABELLED, and `marks` for each kind of mark
    whether it has that, or UNLABELLED. `labels` are the labels of the parts, and `permitted` the acts that they permit.
    """

    tensors: dict[str, torch.Tensor]
    members: torch.Tensor
    labels: Sequence[str]
    permitted: torch.Tensor
    marks: torch.Tensor


def build_batch(tokenizer: Any, messages: Sequence[Message]) -> Batch:
    """Return messages as tensors."""
    encoded = tokenizer(
        [one.context for one in messages], [one.text for one in messages], truncation="longest_first",
        max_length=MAX_PIECES, padding=True, return_tensors="pt", return_offsets_mapping=True,
    )  # fmt: skip
    members = torch.full_like(encoded["input_ids"], UNLABELLED)
    marks = torch.full((*members.shape, len(MARKS)), float(UNLABELLED))
    labels = list[str]()
    for row, one in enumerate(messages):
        places = list(zip(encoded.offset_mapping[row].tolist(), encoded.sequence_ids(row), strict=True))
        for name, spans in one.marks.items():
            kind, side = MARKS.index(name), int(name == "right")
            marks[row, _find_columns(places, (0, MAX_CHARS), side), kind] = 0.0
            for span in spans:
                marks[row, _find_columns(places, span, side), kind] = 1.0
        for start, end, act in one.parts:
            if columns := _find_columns(places, (start, end), 1):
                members[row, columns] = len(labels)
                labels.append(act)
    tensors = {name: encoded[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    permitted = torch.tensor([[act in LABELS[label] for act in ACTS] for label in labels], dtype=torch.bool)
    return Batch(tensors, members, labels, permitted.reshape(-1, len(ACTS)), marks)


def _find_columns(places: Sequence[Any], span: tuple[int, int], kind: int) -> list[int]:
    """Return the numbers of the word pieces of a span of the context (kind 0) or the message (1)."""
    start, end = span
    return [n for n, ((first, last), place) in enumerate(places) if place == kind and first < end and last > start]


def score_parts(odds: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the log odds of each act for each part of a batch: the mean of those of its word pieces."""
    chosen = batch.members >= 0
    members, odds = batch.members[chosen], odds[chosen][:, : len(ACTS)]
    sums = torch.zeros(len(batch.labels), len(ACTS)).index_add(0, members, odds)
    return sums / torch.bincount(members, minlength=len(batch.labels)).unsqueeze(1)


def compute_loss(odds: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the loss of the acts of parts and of the marks of word pieces."""
    loss = torch.zeros(())
    if len(batch.labels):
        shares = functional.log_softmax(score_parts(odds, batch), dim=1)
        right = shares.masked_fill(~batch.permitted, -torch.inf).logsumexp(dim=1)
        loss = -((1 - SMOOTHING) * right + SMOOTHING * shares.mean(dim=1)).mean()
    marked, given = odds[..., len(ACTS) :][batch.marks >= 0], batch.marks[batch.marks >= 0]
    if len(given):
        weight = torch.tensor(MARK_WEIGHT)
        loss = loss + MARK_SHARE * functional.binary_cross_entropy_with_logits(marked, given, pos_weight=weight)
    return loss


def train(reader: SpeechReader, messages: Sequence[Message], epochs: int) -> None:
    """Train a reader in place; print the mean loss of every 50 steps."""
    tokenizer, started, draw = AutoTokenizer.from_pretrained(BASE), time.monotonic(), random.Random(SEED)
    body = [one for one in reader.encoder.parameters() if one.requires_grad]
    rates = [{"params": body, "lr": LAYERS_RATE}, {"params": reader.head.parameters(), "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(rates, weight_decay=WEIGHT_DECAY)
    batches = [batch for _ in range(epochs) for batch in _draw_batches(messages, draw)]
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / WARM_UP_STEPS) * max(0, 1 - step / len(batches))
    )
    reader.train()
    losses = list[float]()
    for step, rows in enumerate(batches, start=1):
        batch = build_batch(tokenizer, rows)
        loss = compute_loss(reader(**batch.tensors), batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == len(batches):
            print(
                f"{step} of {len(batches)} steps, loss {np.mean(losses[-50:]):.3f}, {time.monotonic() - started:.0f} s",
                flush=True,
            )


def _draw_batches(messages: Sequence[Message], draw: random.Random) -> list[list[Message]]:
    """Return the batches of an epoch, each of messages of similar length."""
    rows = [*messages]
    draw.shuffle(rows)
    parts = [
        sorted(rows[n : n + BATCH * 20], key=lambda one: len(one.text) + len(one.context))
        for n in range(0, len(rows), BATCH * 20)
    ]
    batches = [part[n : n + BATCH] for part in parts for n in range(0, len(part), BATCH)]
    draw.shuffle(batches)
    return batches


def report(reader: SpeechReader, messages: Sequence[Message]) -> None:
    """Print how many parts of each act are read as each act."""
    tokenizer, found = AutoTokenizer.from_pretrained(BASE), Counter[tuple[str, str]]()
    reader.eval()
    with torch.no_grad():
        for n in range(0, len(messages), BATCH):
            batch = build_batch(tokenizer, messages[n : n + BATCH])
            read = score_parts(reader(**batch.tensors), batch).argmax(1)
            found.update((a, ACTS[b]) for a, b in zip(batch.labels, read.tolist(), strict=True))
    print(f"{'':9}" + "".join(f"{act:>9}" for act in ACTS))
    for act in LABELS:
        print(f"{act:9}" + "".join(f"{found[act, other]:9}" for other in ACTS))


def report_marks(reader: SpeechReader, messages: Sequence[Message]) -> None:
    """Print for each kind of mark in how many messages the marked words are exactly those of the author, or none."""
    tokenizer, found = AutoTokenizer.from_pretrained(BASE), Counter[tuple[str, str]]()
    with torch.no_grad():
        for n in range(0, len(messages), BATCH):
            batch = build_batch(tokenizer, messages[n : n + BATCH])
            marked = reader(**batch.tensors)[..., len(ACTS) :] > 0
            for row, one in enumerate(messages[n : n + BATCH]):
                for name, spans in one.marks.items():
                    kind = MARKS.index(name)
                    known = batch.marks[row, :, kind] >= 0
                    is_right = ((marked[row, :, kind] & known) == (batch.marks[row, :, kind] == 1)).all()
                    found[f"{name}, {'some' if spans else 'none'}", "right" if is_right else "wrong"] += 1
    print(dict(found))


def export(reader: SpeechReader, out: Path) -> None:
    """Write a reader as ONNX with matrices of int8, and beside it its SHA-256."""
    # The fused attention of training has no form in ONNX that ONNX Runtime quantizes.
    plain = SpeechReader("eager")
    plain.load_state_dict(reader.state_dict())
    export_graph(SpeechGraph(plain).eval(), INPUTS, "scores", out)


def main() -> None:
    """Train a reader and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--limit", type=int, help="at most so many messages, for a test of the program")
    parser.add_argument("--wishes", action="store_true", help="train the reader of wishes, with the wishes")
    parser.add_argument("--leave-out", nargs="*", default=[], help="authors to measure on")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    reader, messages = (
        SpeechReader(),
        [*load_messages(), *load_told(), *load_statements(), *load_chats(), *load_corrections()],
    )
    messages += load_wills() if arguments.wishes else []
    kept = [one for one in messages if one.author not in arguments.leave_out][: arguments.limit]
    train(reader, kept, arguments.epochs)
    if arguments.leave_out:
        left = [one for one in messages if one.author in arguments.leave_out]
        report(reader, [one for one in left if one.parts])
        report_marks(reader, [one for one in left if one.marks])
    export(reader.eval(), arguments.out)


if __name__ == "__main__":
    main()

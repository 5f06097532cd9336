"""Train the transformer that reads what each part of a message does, and write it, quantized to int8.

`scripts/fit-speech-reader` runs it. It starts from all-MiniLM-L6-v2, of which the vectors of words and the lowest
layers stay as they are. The messages are those of tests/data/speech: each has parts with the label of their author.
"""

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from newton.providers.speech_reader import ACTS, MARKS, MAX_CONTEXT_CHARS
from newton.text.languages import ENGLISH, detect_language
from tests.fitting.reader.transformer import BASE, DIMENSIONS, export_graph

DATA = Path(__file__).parents[2] / "data" / "speech"
TOLD, CORRECTIONS = DATA.parent / "told", DATA.parent / "speech_corrections"
STATED = ("updates_dev", "updates_train", "updates_chat_a", "updates_chat_b", "updates_chat_c", "updates_chat_d")
MAX_STATED = 1_500
CHATS = ("chat_messages_train", "chat_messages")
UNTOLD = "untold"  # the label of a part of which is only known that it is not told
LABELS = (*ACTS, UNTOLD)
_SENTENCE = re.compile(r"\S[^.!?\n]*[.!?]*")
MAX_FRAGMENT_WORDS = 6  # of a message that does nothing but correct
EPOCHS, BATCH, WARM_UP_STEPS = 4, 32, 80
FROZEN_LAYERS = 2
LAYERS_RATE, HEAD_RATE, WEIGHT_DECAY, DROPOUT, SMOOTHING = 1e-4, 1e-3, 0.01, 0.1, 0.05
MARK_WEIGHT, MARK_SHARE = 2.0, 2.0  # of a marked word piece, and of all marks beside the acts
MAX_PIECES, MAX_CHARS = 192, 100_000
SEED = 0
INPUTS = ("word_vectors", "attention_mask", "token_type_ids")
UNLABELLED = -1


class Message(NamedTuple):
    """A message with what stands before it; `parts` are its labelled parts: start, end, act.

    If it `is_compared`, `wrong` is the part of the context that it corrects, and `right` its part that is right
    instead; both are empty if it corrects nothing there.
    """

    author: str
    context: str
    text: str
    parts: tuple[tuple[int, int, str], ...] = ()
    is_compared: bool = False
    wrong: tuple[int, int] = (0, 0)
    right: tuple[int, int] = (0, 0)


def load_messages() -> list[Message]:
    """Return the messages of which each part is labelled."""
    lines = [(path.stem, one) for path in sorted(DATA.glob("*.jsonl")) for one in path.read_text("utf-8").splitlines()]
    return [_read(author, json.loads(line)) for author, line in lines]


def load_told() -> list[Message]:
    """Return the messages in English of tests/data/told, of which some parts are labelled as asserted or not."""
    rows = [row for path in sorted(TOLD.glob("*.yaml")) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]
    return [_read_told(row) for row in rows if detect_language(row["text"]) == ENGLISH]


def _read_told(row: dict[str, Any]) -> Message:
    labelled = [(one, "told") for one in row.get("asserted", ())] + [
        (one, "unreal") for one in row.get("unasserted", ())
    ]
    parts = [(at, at + len(one), act) for one, act in labelled if (at := row["text"].find(one)) >= 0]
    return Message("told", _join(row.get("question", ""), row.get("earlier", "")), row["text"], tuple(sorted(parts)))


def load_statements() -> list[Message]:
    """Return statements that each are a message: the older ones of labelled pairs, of people and of things."""
    rows = [
        row for name in STATED for row in yaml.safe_load((DATA.parent / f"{name}.yaml").read_text(encoding="utf-8"))
    ]
    texts = sorted({row["older"] for row in rows if not row["older"].endswith("?")})
    chosen = random.Random(SEED).sample(texts, MAX_STATED)
    return [Message("stated", "", text, ((0, len(text), "told"),)) for text in chosen]


def load_chats() -> list[Message]:
    """Return messages of which the parts that are worth remembering are labelled, so that the others are not told."""
    rows = [row for name in CHATS for row in yaml.safe_load((DATA.parent / f"{name}.yaml").read_text(encoding="utf-8"))]
    return [_read_chat(row["text"], row.get("facts") or ()) for row in rows if detect_language(row["text"]) == ENGLISH]


def _read_chat(text: str, facts: Sequence[str]) -> Message:
    told = [(at, at + len(one), "told") for one in facts if (at := text.lower().find(one.lower())) >= 0]
    rest = [(one.start(), one.end(), UNTOLD) for one in _SENTENCE.finditer(text)]
    rest = [one for one in rest if not any(start < one[1] and end > one[0] for start, end, _ in told)]
    return Message("chats", "", text, (*told, *rest))


def load_corrections() -> list[Message]:
    """Return messages, each behind the statement that it may correct, and behind another one."""
    found = list[Message]()
    for path in sorted(CORRECTIONS.glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            wrong, right = _find(row["statement"], row["old"]), _find(row["message"], row["new"])
            is_short = row["old"] and len(row["message"].split()) <= MAX_FRAGMENT_WORDS
            parts = ((0, len(row["message"]), "correct"),) if is_short else ()
            found.append(Message(path.stem, row["statement"], row["message"], parts, True, wrong, right))
            if row["other"]:
                found.append(Message(path.stem, row["other"], row["message"], (), True))
    return found


def _find(text: str, part: str) -> tuple[int, int]:
    at = text.rfind(part) if part else -1
    return (at, at + len(part)) if at >= 0 else (0, 0)


def _join(*before: str) -> str:
    return "\n".join(one[-MAX_CONTEXT_CHARS:] for one in before)


def _read(author: str, fields: dict[str, Any]) -> Message:
    text, at, parts = fields["text"], 0, list[tuple[int, int, str]]()
    for part, act in fields["parts"]:
        start = text.index(part, at)
        at = start + len(part)
        parts += (
            [(start, at, act)] if act in LABELS else []
        )  # what is true of the world at large is neither told nor talk
    return Message(author, _join(fields.get("assistant", ""), fields.get("earlier", "")), text, tuple(parts))


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
    whether it has that, or UNLABELLED. `labels` are the acts of the parts.
    """

    tensors: dict[str, torch.Tensor]
    members: torch.Tensor
    labels: torch.Tensor
    marks: torch.Tensor


def build_batch(tokenizer: Any, messages: Sequence[Message]) -> Batch:
    """Return messages as tensors."""
    encoded = tokenizer(
        [one.context for one in messages], [one.text for one in messages], truncation="longest_first",
        max_length=MAX_PIECES, padding=True, return_tensors="pt", return_offsets_mapping=True,
    )  # fmt: skip
    members = torch.full_like(encoded["input_ids"], UNLABELLED)
    marks = torch.full((*members.shape, len(MARKS)), float(UNLABELLED))
    labels = list[int]()
    for row, one in enumerate(messages):
        places = list(zip(encoded.offset_mapping[row].tolist(), encoded.sequence_ids(row), strict=True))
        for kind, span in enumerate((one.wrong, one.right) if one.is_compared else ()):
            marks[row, _find_columns(places, (0, MAX_CHARS), kind), kind] = 0.0
            marks[row, _find_columns(places, span, kind), kind] = 1.0
        for start, end, act in one.parts:
            if columns := _find_columns(places, (start, end), 1):
                members[row, columns] = len(labels)
                labels.append(LABELS.index(act))
    tensors = {name: encoded[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    return Batch(tensors, members, torch.tensor(labels, dtype=torch.long), marks)


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
    marked, given = odds[..., len(ACTS) :][batch.marks >= 0], batch.marks[batch.marks >= 0]
    loss = torch.zeros(())
    if len(batch.labels):
        scores, is_act = score_parts(odds, batch), batch.labels < len(ACTS)
        if is_act.any():
            share = is_act.float().mean()
            loss = share * functional.cross_entropy(scores[is_act], batch.labels[is_act], label_smoothing=SMOOTHING)
        if not is_act.all():
            told = functional.softmax(scores[~is_act], dim=1)[:, ACTS.index("told")]
            loss = loss - (1 - is_act.float().mean()) * torch.log1p(-told.clamp(max=0.999)).mean()
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
            found.update((LABELS[a], ACTS[b]) for a, b in zip(batch.labels.tolist(), read.tolist(), strict=True))
    print(f"{'':9}" + "".join(f"{act:>9}" for act in ACTS))
    for act in ACTS:
        print(f"{act:9}" + "".join(f"{found[act, other]:9}" for other in ACTS))


def report_marks(reader: SpeechReader, messages: Sequence[Message]) -> None:
    """Print in how many messages the marked words are exactly those of the author, and where none should be."""
    tokenizer, found = AutoTokenizer.from_pretrained(BASE), Counter[tuple[bool, str]]()
    with torch.no_grad():
        for n in range(0, len(messages), BATCH):
            batch = build_batch(tokenizer, messages[n : n + BATCH])
            marked = reader(**batch.tensors)[..., len(ACTS) :] > 0
            for row, one in enumerate(messages[n : n + BATCH]):
                known = batch.marks[row] >= 0
                right = (marked[row] & known) == (batch.marks[row] == 1)
                corrects = one.wrong[1] > 0
                found[corrects, "both"] += bool(right.all())
                found[corrects, "wrong"] += bool(right[:, 0].all())
                found[corrects, "right"] += bool(right[:, 1].all())
                found[corrects, "all"] += 1
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
    parser.add_argument("--leave-out", nargs="*", default=[], help="authors to measure on")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    reader, messages = (
        SpeechReader(),
        [*load_messages(), *load_told(), *load_statements(), *load_chats(), *load_corrections()],
    )
    kept = [one for one in messages if one.author not in arguments.leave_out][: arguments.limit]
    train(reader, kept, arguments.epochs)
    if arguments.leave_out:
        left = [one for one in messages if one.author in arguments.leave_out]
        report(reader, [one for one in left if not one.is_compared])
        report_marks(reader, [one for one in left if one.is_compared])
    export(reader.eval(), arguments.out)


if __name__ == "__main__":
    main()

"""Train the transformer of `newton.providers.minilm` and write it, quantized to int8.

`scripts/fit-change-reader` runs it. It starts from all-MiniLM-L6-v2, of which the vectors of words and the lowest
layers stay as they are.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from tests.fitting.canonical import draw_pairs
from tests.fitting.reader import pairs
from tests.fitting.reader.pairs import StatementPair
from tests.fitting.reader.slot_families import FamilyDraw, load_families
from tests.fitting.reader.transformer import BASE, DIMENSIONS, embed, export_graph, pool, tokenize

EPOCHS, BATCH, WARM_UP_STEPS = 3, 32, 60
FROZEN_LAYERS = 2
LAYERS_RATE, HEAD_RATE, WEIGHT_DECAY, DROPOUT = 1e-4, 5e-4, 0.01, 0.1
# Pairs that are compatible, of which each epoch has others: of one subject, of one thing, and unrelated ones near to
# the pairs of TAUGHT and to those of CHATS.
STORES, DOSSIERS, NEAR_TAUGHT, NEAR_CHATS, NEAR_MENTIONS = 900, 300, 1_500, 2_700, 1_200
FAMILIES = 9_000  # pairs of the families of statements, of which each epoch has others
TAUGHT = ("updates_dev", "updates_train")
CHATS = tuple(name for name in pairs.TRAINED if name not in TAUGHT)
SEED = 0
INPUTS = ("word_vectors", "attention_mask", "token_type_ids")


class ChangeReader(torch.nn.Module):
    """The layers of the embedding model, and a linear head on the mean of what they make of the word pieces."""

    def __init__(self, attention: str = "sdpa") -> None:
        """Load the embedding model, with an implementation of attention that Transformers names."""
        super().__init__()
        self.encoder = AutoModel.from_pretrained(BASE, attn_implementation=attention)
        self.head = torch.nn.Sequential(torch.nn.Dropout(DROPOUT), torch.nn.Linear(DIMENSIONS, 1))
        frozen = [self.encoder.embeddings, *self.encoder.encoder.layer[:FROZEN_LAYERS]]
        for parameter in (one for part in frozen for one in part.parameters()):
            parameter.requires_grad = False

    def forward(self, **tensors: torch.Tensor) -> torch.Tensor:
        """Return the log odds of a replacement, one a pair."""
        return self.head(pool(self.encoder, tensors)).squeeze(-1)


class ReaderGraph(torch.nn.Module):
    """The reader with the vectors of word pieces as its input, as `newton.providers.minilm` calls it."""

    def __init__(self, reader: ChangeReader) -> None:
        """Take a trained reader."""
        super().__init__()
        self.reader = reader

    def forward(self, words: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """Return the log odds of a replacement, one a pair."""
        return self.reader(inputs_embeds=words, attention_mask=mask, token_type_ids=types)


class TrainingPairs:
    """The pairs of each epoch: all labelled ones, and a draw of those that are compatible."""

    def __init__(self, limit: int | None) -> None:
        """Load the pairs. With `limit`, at most so many in an epoch, for a test of the program."""
        taught, chats = (pairs.load_labelled(names)[:limit] for names in (TAUGHT, CHATS))
        stores, mentions = pairs.load_stores(), pairs.load_mentions(pairs.MENTIONED)[:limit]
        self._labelled = [*taught, *chats, *mentions, *pairs.load_scenarios("everyday_scenarios")]
        self._labelled += [pair for pair in stores if pair.label] + [
            StatementPair(one["older"], one["newer"], pairs.LABELS[one["expect"]], "canonical") for one in draw_pairs()
        ]
        self._compatible = (
            ([pair for pair in stores if not pair.label], STORES),
            (pairs.load_dossiers(), DOSSIERS),
            (pairs.draw_unrelated(taught, embed, each=2, seed=SEED), NEAR_TAUGHT),
            (pairs.draw_unrelated(chats, embed, each=3, seed=SEED), NEAR_CHATS),
            (pairs.draw_unrelated(mentions, embed, each=1, seed=SEED), NEAR_MENTIONS),
        )
        self._families = FamilyDraw(load_families(calibrated=False), SEED)
        self._limit = limit
        self._draw = random.Random(SEED)

    def draw_batches(self) -> list[list[StatementPair]]:
        """Return the batches of an epoch, each of pairs of similar length."""
        rows = [*self._labelled, *self._families.draw_pairs(FAMILIES)]
        for compatible, count in self._compatible:
            rows += self._draw.sample(compatible, min(count, len(compatible)))
        self._draw.shuffle(rows)
        batches = list(_split(rows[: self._limit]))
        self._draw.shuffle(batches)
        return batches


def _split(rows: Sequence[StatementPair]) -> Iterator[list[StatementPair]]:
    for start in range(0, len(rows), BATCH * 20):
        part = sorted(rows[start : start + BATCH * 20], key=lambda pair: len(pair.older) + len(pair.newer))
        yield from (part[n : n + BATCH] for n in range(0, len(part), BATCH))


def train(reader: ChangeReader, source: TrainingPairs, epochs: int) -> None:
    """Train a reader in place; print the mean loss of every 50 steps."""
    tokenizer, started = AutoTokenizer.from_pretrained(BASE), time.monotonic()
    body = [one for one in reader.encoder.parameters() if one.requires_grad]
    rates = [{"params": body, "lr": LAYERS_RATE}, {"params": reader.head.parameters(), "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(rates, weight_decay=WEIGHT_DECAY)
    batches = [batch for _ in range(epochs) for batch in source.draw_batches()]
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / WARM_UP_STEPS) * max(0, 1 - step / len(batches))
    )
    reader.train()
    losses = list[float]()
    for step, batch in enumerate(batches, start=1):
        tensors = tokenize(tokenizer, [pair.older for pair in batch], [pair.newer for pair in batch])
        labels = torch.tensor([pair.label for pair in batch])
        loss = functional.binary_cross_entropy_with_logits(reader(**tensors), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == len(batches):
            print(
                f"{step} of {len(batches)} steps, loss {np.mean(losses[-50:]):.3f}, {time.monotonic() - started:.0f} s"
            )


def export(reader: ChangeReader, out: Path) -> None:
    """Write a reader as ONNX with matrices of int8, and beside it its SHA-256."""
    # The fused attention of training has no form in ONNX that ONNX Runtime quantizes.
    plain = ChangeReader("eager")
    plain.load_state_dict(reader.state_dict())
    export_graph(ReaderGraph(plain).eval(), INPUTS, "score", out)


def main() -> None:
    """Train a reader and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--pairs", type=int, help="at most so many in an epoch, for a test of the program")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    reader = ChangeReader()
    train(reader, TrainingPairs(arguments.pairs), arguments.epochs)
    export(reader.eval(), arguments.out)


if __name__ == "__main__":
    main()

"""Train the transformer that reads which frame an input asks for, and write it, quantized to int8.

`scripts/fit-frame-reader` runs it. It starts from all-MiniLM-L6-v2, of which the vectors of words and the lowest
layers stay as they are.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from newton.content.frames import load_english_examples, load_frames
from newton.providers.frame_reader import FRAMES
from newton.text.greetings import strip_greeting
from tests.fitting.reader.transformer import BASE, DIMENSIONS, SEED, export_graph, pool, tokenize

EPOCHS, BATCH, WARM_UP_STEPS = 3, 32, 50
FROZEN_LAYERS = 2
LAYERS_RATE, HEAD_RATE, WEIGHT_DECAY, DROPOUT, SMOOTHING = 1e-4, 1e-3, 0.01, 0.2, 0.05
TIMES_TOLD = 3  # an input of people, beside the examples of the frames
INPUTS = Path(__file__).parents[2] / "data" / "frame_inputs"


class LabelledInput(NamedTuple):
    """An input, the frame that its author wants for it, and one that the author accepts too, "" without one."""

    frame: str
    text: str
    other: str


class FrameReader(torch.nn.Module):
    """The layers of the embedding model, and a linear head on the mean of what they make of the word pieces."""

    def __init__(self, attention: str = "sdpa") -> None:
        """Load the embedding model, with an implementation of attention that Transformers names."""
        super().__init__()
        self.encoder = AutoModel.from_pretrained(BASE, attn_implementation=attention)
        self.head = torch.nn.Sequential(torch.nn.Dropout(DROPOUT), torch.nn.Linear(DIMENSIONS, len(FRAMES)))
        frozen = [self.encoder.embeddings, *self.encoder.encoder.layer[:FROZEN_LAYERS]]
        for parameter in (one for part in frozen for one in part.parameters()):
            parameter.requires_grad = False

    def forward(self, **tensors: torch.Tensor) -> torch.Tensor:
        """Return the log odds of each frame, one row an input."""
        return self.head(pool(self.encoder, tensors))


class FrameGraph(torch.nn.Module):
    """The reader with the vectors of word pieces as its input, as `newton.providers.frame_reader` calls it."""

    def __init__(self, reader: FrameReader) -> None:
        """Take a trained reader."""
        super().__init__()
        self.reader = reader

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the log odds of each frame for each word piece, of which the mean is that of the input."""
        return self.reader.head(self.reader.encoder(inputs_embeds=words, attention_mask=mask).last_hidden_state)


def load_examples() -> list[LabelledInput]:
    """Return the English examples of the frames that ship with Newton."""
    english = set(load_english_examples())
    return [
        LabelledInput(frame.name, strip_greeting(text), "")
        for frame in load_frames().values()
        for text in frame.examples
        if text in english
    ]


def load_inputs(folder: Path) -> list[LabelledInput]:
    """Return the inputs of people, of all files of a folder."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in lines]
    return [LabelledInput(row["frame"], row["text"], row["other"] or "") for row in rows]


def train(reader: FrameReader, rows: Sequence[LabelledInput], epochs: int) -> None:
    """Train a reader in place."""
    tokenizer, draw = AutoTokenizer.from_pretrained(BASE), random.Random(SEED)
    body = [one for one in reader.encoder.parameters() if one.requires_grad]
    rates = [{"params": body, "lr": LAYERS_RATE}, {"params": reader.head.parameters(), "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(rates, weight_decay=WEIGHT_DECAY)
    batches = [batch for _ in range(epochs) for batch in _draw_batches(rows, draw)]
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / WARM_UP_STEPS) * max(0, 1 - step / len(batches))
    )
    reader.train()
    for batch in batches:
        odds = reader(**tokenize(tokenizer, [one.text for one in batch]))
        labels = torch.tensor([FRAMES.index(one.frame) for one in batch])
        loss = functional.cross_entropy(odds, labels, label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def _draw_batches(rows: Sequence[LabelledInput], draw: random.Random) -> Iterator[list[LabelledInput]]:
    """Yield the batches of an epoch, each of inputs of similar length."""
    mixed = draw.sample(rows, len(rows))
    parts = [mixed[n : n + BATCH * 20] for n in range(0, len(mixed), BATCH * 20)]
    ordered = [sorted(part, key=lambda one: len(one.text)) for part in parts]
    batches = [part[n : n + BATCH] for part in ordered for n in range(0, len(part), BATCH)]
    yield from draw.sample(batches, len(batches))


def export(reader: FrameReader, out: Path) -> None:
    """Write a reader as ONNX with matrices of int8, and beside it its SHA-256."""
    # The fused attention of training has no form in ONNX that ONNX Runtime quantizes.
    plain = FrameReader("eager")
    plain.load_state_dict(reader.state_dict())
    export_graph(FrameGraph(plain).eval(), ("word_vectors", "attention_mask"), "odds", out)


def main() -> None:
    """Train a reader and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--limit", type=int, help="at most so many inputs, for a test of the program")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    reader, rows = FrameReader(), [*load_examples(), *load_inputs(INPUTS) * TIMES_TOLD]
    train(reader, rows[: arguments.limit], arguments.epochs)
    export(reader.eval(), arguments.out)


if __name__ == "__main__":
    main()

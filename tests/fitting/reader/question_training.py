"""Train the transformer of `newton.providers.minilm` and write it, quantized to int8.

`scripts/fit-question-encoder` runs it. It starts from all-MiniLM-L6-v2, of which the vectors of words stay as they are.
Only questions are encoded by it: the vectors of the items are those of the embedding model, which agents have stored.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from tests.fitting.reader.questions import StoreQuestion, load_questions
from tests.fitting.reader.transformer import BASE, SEED, embed, export_graph, pool, tokenize

EPOCHS, BATCH, RATE, WARM_UP_STEPS, WEIGHT_DECAY = 5, 32, 5e-5, 50, 0.01
SHARPNESS = 20.0  # multiplies the cosines
THRESHOLD, THRESHOLD_RATE = 8.0, 1e-2  # of the sharpened cosine of an item that answers as likely as not
FOREIGN_SHARE, FOREIGN_MAX_COSINE = 0.3, 0.6  # of questions that are put to another store too
EACH_WEIGHT, ANSWER_WEIGHT = 0.3, 0.3  # of the parts of the loss
BASE_SHARE = 0.15  # of the weights of the embedding model in the mean that is written: it knows more kinds of text
COMPARED = 20  # the nearest items, of which each is judged whether it answers


class QuestionGraph(torch.nn.Module):
    """The encoder with the vectors of word pieces as its input, as `newton.providers.minilm` calls it."""

    def __init__(self, encoder: Any) -> None:
        """Take a trained encoder."""
        super().__init__()
        self.encoder = encoder

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the mean vector of the word pieces of each question."""
        return pool(self.encoder, {"inputs_embeds": words, "attention_mask": mask})


class TrainingQuestions:
    """The questions with the vectors of their items, and other stores that know nothing of them."""

    def __init__(self, limit: int | None) -> None:
        """Load the questions and embed the items. With `limit`, only so many, for a test of the program."""
        self.questions = list(load_questions())[:limit]
        self._draw = random.Random(SEED)
        self._items = {id(one.items): one.items for one in self.questions}
        texts = {text for items in self._items.values() for text in items.values()}
        texts |= {one.text for one in self.questions}
        ordered = sorted(texts, key=len)
        self._vectors = dict(zip(ordered, torch.from_numpy(embed(ordered)), strict=True))

    def draw_batches(self) -> Iterator[list[StoreQuestion]]:
        """Yield the questions in batches, in another order each time."""
        shuffled = self._draw.sample(self.questions, len(self.questions))
        for start in range(0, max(1, len(shuffled) - BATCH + 1), BATCH):
            yield shuffled[start : start + BATCH]

    def stack_items(self, question: StoreQuestion) -> torch.Tensor:
        """Return the vectors of the items of its store, one a row."""
        return torch.stack([self._vectors[text] for text in question.items.values()])

    def draw_foreign(self, question: StoreQuestion) -> torch.Tensor | None:
        """Return the items of another store for some of the questions, unless one of them may answer it."""
        other = self._draw.choice(self.questions)
        if self._draw.random() >= FOREIGN_SHARE or other.items is question.items:
            return None
        items = self.stack_items(other)
        return items if float((items @ self._vectors[question.text]).max()) < FOREIGN_MAX_COSINE else None


class QuestionLoss(torch.nn.Module):
    """The loss of questions, and the cosine from which an item is taken to answer, which is trained with it."""

    def __init__(self) -> None:
        """Start with the threshold of the embedding model."""
        super().__init__()
        self.threshold = torch.nn.Parameter(torch.tensor(THRESHOLD))

    def forward(self, question: StoreQuestion, vector: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Return the loss of a question: its right items before the others, and near only if they answer it.

        The first part counts the right items together, the second each of them, and the third judges the nearest
        items one by one.
        """
        right = torch.tensor([key in question.right for key in question.items])
        scores = items @ vector * SHARPNESS
        loss = self.judge_items(scores, right)
        if question.right:
            total = torch.logsumexp(scores, 0)
            loss = loss + total - torch.logsumexp(scores[right], 0) + EACH_WEIGHT * (total - scores[right].mean())
        return loss

    def judge_items(self, scores: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return the loss of the nearest items, each of which is judged whether it answers."""
        nearest = scores.topk(min(COMPARED, len(scores)))
        labels, odds = right[nearest.indices].float(), nearest.values - self.threshold
        return ANSWER_WEIGHT * functional.binary_cross_entropy_with_logits(odds, labels, reduction="sum")


def train(encoder: Any, source: TrainingQuestions, epochs: int) -> None:
    """Train an encoder in place; print the mean loss of each epoch."""
    tokenizer, started, measure = AutoTokenizer.from_pretrained(BASE), time.monotonic(), QuestionLoss()
    body = [one for one in encoder.parameters() if one.requires_grad]
    rates = [{"params": body, "lr": RATE}, {"params": measure.parameters(), "lr": THRESHOLD_RATE}]
    optimizer = torch.optim.AdamW(rates, weight_decay=WEIGHT_DECAY)
    steps = epochs * max(1, len(source.questions) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / WARM_UP_STEPS) * max(0, 1 - step / steps)
    )
    encoder.train()
    for epoch in range(epochs):
        losses = list[float]()
        for batch in source.draw_batches():
            vectors = functional.normalize(pool(encoder, tokenize(tokenizer, [one.text for one in batch])), dim=1)
            loss = _measure_batch(measure, source, batch, vectors)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1} of {epochs}, loss {np.mean(losses):.3f}, {time.monotonic() - started:.0f} s")


def _measure_batch(
    measure: QuestionLoss, source: TrainingQuestions, batch: Sequence[StoreQuestion], vectors: torch.Tensor
) -> torch.Tensor:
    parts = list[torch.Tensor]()
    for question, vector in zip(batch, vectors, strict=True):
        parts.append(measure(question, vector, source.stack_items(question)))
        foreign = source.draw_foreign(question)
        if foreign is not None:
            scores = foreign @ vector * SHARPNESS
            parts.append(measure.judge_items(scores, torch.zeros(len(scores), dtype=torch.bool)))
    return torch.stack(parts).sum() / len(batch)


def mix_with_base(encoder: Any) -> None:
    """Replace the weights of a trained encoder by their mean with those of the embedding model."""
    base = AutoModel.from_pretrained(BASE).state_dict()
    mixed = {
        name: torch.lerp(trained, base[name], BASE_SHARE) if trained.is_floating_point() else trained
        for name, trained in encoder.state_dict().items()
    }
    encoder.load_state_dict(mixed)


def main() -> None:
    """Train an encoder and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--questions", type=int, help="at most so many, for a test of the program")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    # The fused attention of training has no form in ONNX that ONNX Runtime quantizes.
    encoder = AutoModel.from_pretrained(BASE, attn_implementation="eager")
    for parameter in encoder.embeddings.parameters():
        parameter.requires_grad = False
    train(encoder, TrainingQuestions(arguments.questions), arguments.epochs)
    mix_with_base(encoder)
    export_graph(QuestionGraph(encoder.eval()), ("word_vectors", "attention_mask"), "vector", arguments.out)


if __name__ == "__main__":
    main()

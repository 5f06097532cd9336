"""Train the transformer of `newton.providers.question_encoder` and write it, quantized to int8.

`scripts/fit-question-encoder` runs it. It starts from all-MiniLM-L6-v2, of which the vectors of words stay as they are.
Only questions are encoded by it: the vectors of the items are those of the embedding model, which agents have stored.
"""

import argparse
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from tests.fitting.reader.questions import StoreQuestion, load_questions
from tests.fitting.reader.training import BASE, SEED, embed, export_graph, pool, tokenize

EPOCHS, BATCH, RATE, WARM_UP_STEPS, WEIGHT_DECAY = 6, 32, 5e-5, 50, 0.01
SHARPNESS = 20.0  # multiplies the cosines
THRESHOLD, THRESHOLD_RATE = (
    8.0,
    1e-2,
)  # the sharpened cosine of an item that answers as likely as not, and its learning rate
EACH_WEIGHT, ANSWER_WEIGHT = 0.3, 0.3  # of the parts of the loss
COMPARED = 20  # the nearest items, of which each is judged whether it answers


class QuestionGraph(torch.nn.Module):
    """The encoder with the vectors of word pieces as its input, as `newton.providers.question_encoder` calls it."""

    def __init__(self, encoder: Any) -> None:
        """Take a trained encoder."""
        super().__init__()
        self.encoder = encoder

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the mean vector of the word pieces of each question."""
        return pool(self.encoder, {"inputs_embeds": words, "attention_mask": mask})


def compute_loss(
    question: StoreQuestion, vector: torch.Tensor, items: torch.Tensor, lead: torch.Tensor
) -> torch.Tensor:
    """Return the loss of a question: its right items before the others, and near enough only if they answer it.

    The first part counts the right items together, the second each of them, and the third judges the nearest items
    one by one, so that a question without an answer is near to nothing.
    """
    right = torch.tensor([key in question.right for key in question.items])
    scores = items @ vector * SHARPNESS
    nearest = scores.topk(min(COMPARED, len(scores)))
    labels = right[nearest.indices].float()
    loss = ANSWER_WEIGHT * functional.binary_cross_entropy_with_logits(nearest.values + lead, labels, reduction="sum")
    if question.right:
        total = torch.logsumexp(scores, 0)
        loss = loss + total - torch.logsumexp(scores[right], 0) + EACH_WEIGHT * (total - scores[right].mean())
    return loss


def train(encoder: Any, questions: Sequence[StoreQuestion], epochs: int) -> None:
    """Train an encoder in place; print the mean loss of each epoch."""
    tokenizer, started, draw = AutoTokenizer.from_pretrained(BASE), time.monotonic(), random.Random(SEED)
    items = embed_items(questions)
    lead = torch.nn.Parameter(torch.tensor([-THRESHOLD]))
    body = [one for one in encoder.parameters() if one.requires_grad]
    rates = [{"params": body, "lr": RATE}, {"params": [lead], "lr": THRESHOLD_RATE}]
    optimizer, steps = torch.optim.AdamW(rates, weight_decay=WEIGHT_DECAY), epochs * max(1, len(questions) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / WARM_UP_STEPS) * max(0, 1 - step / steps)
    )
    encoder.train()
    for epoch in range(epochs):
        losses = list[float]()
        for batch in _draw_batches(questions, draw):
            vectors = functional.normalize(pool(encoder, tokenize(tokenizer, [one.text for one in batch])), dim=1)
            parts = [compute_loss(one, v, items[id(one.items)], lead) for one, v in zip(batch, vectors, strict=True)]
            loss = torch.stack(parts).sum() / len(batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(
            f"epoch {epoch + 1} of {epochs}, loss {np.mean(losses):.3f}, {time.monotonic() - started:.0f} s", flush=True
        )


def embed_items(questions: Sequence[StoreQuestion]) -> Mapping[int, torch.Tensor]:
    """Return the vectors of the items of each store by the id of its dictionary."""
    stores = {id(one.items): one.items for one in questions}
    texts = sorted({text for items in stores.values() for text in items.values()}, key=len)
    vectors = dict(zip(texts, embed(texts), strict=True))
    return {
        key: torch.from_numpy(np.stack([vectors[text] for text in items.values()])) for key, items in stores.items()
    }


def _draw_batches(questions: Sequence[StoreQuestion], draw: random.Random) -> Iterator[list[StoreQuestion]]:
    shuffled = draw.sample(questions, len(questions))
    for start in range(0, max(1, len(shuffled) - BATCH + 1), BATCH):
        yield shuffled[start : start + BATCH]


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
    train(encoder, list(load_questions())[: arguments.questions], arguments.epochs)
    export_graph(QuestionGraph(encoder.eval()), ("word_vectors", "attention_mask"), "vector", arguments.out)


if __name__ == "__main__":
    main()

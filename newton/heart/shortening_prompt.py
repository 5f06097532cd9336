"""Schema of the answer and prompt for the shortening of long messages by a model. Pure."""

from datetime import date
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from newton.memory.representations import one_line

ASSISTANT = "Assistant"  # as a message without a name of its speaker has it
TOKENS_PER_WORD = 2  # of nine in ten summaries of a strong model, most in English with names and amounts, at most 1.96
MIN_WORDS = 6

SentenceText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class ShortenedOutput(BaseModel):
    """The shortened text."""

    model_config = ConfigDict(frozen=True)

    words: SentenceText


def build_shortening_prompt(text: str, *, speaker: str, said_on: date, max_tokens: int) -> str:
    """Return the prompt that asks the model to shorten a message to at most `max_tokens` tokens.

    The model is asked for a number of words, because it cannot count tokens.
    """
    prompt = (resources.files("newton.heart") / "prompts" / "compress.md").read_text(encoding="utf-8")
    return prompt.format(
        text=_escape_fence(text),
        speaker=_escape_fence(speaker),
        addressee="the user" if speaker == ASSISTANT else "the assistant",
        day=f"{said_on:%Y-%m-%d}",
        max_words=max(max_tokens // TOKENS_PER_WORD, MIN_WORDS),
    )


def _escape_fence(text: str) -> str:
    """Return the text as one line without angle brackets, so that it cannot close the tag around it in a prompt."""
    return one_line(text).replace("<", "‹").replace(">", "›")

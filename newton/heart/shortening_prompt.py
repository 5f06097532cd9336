"""Schema of the answer and prompt for the shortening of long messages by a model. Pure."""

from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from newton.memory.representations import one_line

SentenceText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class ShortenedOutput(BaseModel):
    """The shortened text."""

    model_config = ConfigDict(frozen=True)

    words: SentenceText


def build_shortening_prompt(text: str, *, max_tokens: int) -> str:
    """Return the prompt that asks the model to shorten a text to at most `max_tokens` tokens."""
    prompt = (resources.files("newton.heart") / "prompts" / "compress.md").read_text(encoding="utf-8")
    return prompt.format(text=_escape_fence(text), max_tokens=max_tokens)


def _escape_fence(text: str) -> str:
    """Return the text as one line without angle brackets, so that it cannot close the tag around it in a prompt."""
    return one_line(text).replace("<", "‹").replace(">", "›")

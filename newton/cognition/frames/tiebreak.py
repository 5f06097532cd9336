"""Prompt that asks a model which of a few frames fits an input best. Pure."""

from collections.abc import Sequence
from importlib import resources

from pydantic import BaseModel, ConfigDict

from newton.content.frames import Frame
from newton.memory.representations import one_line

MAX_INPUT_CHARS = 1_000  # of the input in the prompt


class FrameOutput(BaseModel):
    """The model's answer: the name of a frame. The caller ignores a name that was not offered."""

    model_config = ConfigDict(frozen=True)

    frame: str


def build_tiebreak_prompt(text: str, frames: Sequence[Frame]) -> str:
    """Return the prompt that asks which frame fits the text.

    Angle brackets in the text are replaced, so that it cannot end the element that encloses it.
    """
    template = (resources.files("newton.cognition.frames") / "prompts" / "frame.md").read_text(encoding="utf-8")
    descriptions = "\n".join(f"- {frame.name}: {frame.description}" for frame in frames)
    return template.format(
        frames=descriptions, text=one_line(text[:MAX_INPUT_CHARS]).replace("<", "‹").replace(">", "›")
    )

"""What a model is asked when the examples leave open which frame an input wants. Pure."""

from collections.abc import Sequence
from importlib import resources

from pydantic import BaseModel, ConfigDict

from newton.content.frames import Frame
from newton.memory.representations import one_line

MAX_INPUT_CHARS = 1_000  # of the input that the model reads


class FrameOutput(BaseModel):
    """The name of a frame. It counts when it is one of those that were offered."""

    model_config = ConfigDict(frozen=True)

    frame: str


def build_tiebreak_prompt(text: str, frames: Sequence[Frame]) -> str:
    """Asks which of the frames the text wants. The text cannot close the fence it stands in."""
    asked = (resources.files("newton.cognition.frames") / "prompts" / "frame.md").read_text(encoding="utf-8")
    listed = "\n".join(f"- {frame.name}: {frame.description}" for frame in frames)
    return asked.format(frames=listed, text=one_line(text[:MAX_INPUT_CHARS]).replace("<", "‹").replace(">", "›"))

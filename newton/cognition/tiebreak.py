"""What a model is asked when the examples leave open which frame an input wants. Pure."""

from collections.abc import Sequence
from importlib import resources

from pydantic import BaseModel, ConfigDict

from newton.content.frames import Frame
from newton.memory.representations import one_line

MOST_CHARACTERS = 1_000  # of the input that the model reads


class Pick(BaseModel):
    """The name of a frame. It counts when it is one of those that were offered."""

    model_config = ConfigDict(frozen=True)

    frame: str


def picking_prompt(text: str, close: Sequence[Frame]) -> str:
    """Asks which of the frames the text wants. The text cannot close the fence it stands in."""
    asked = (resources.files("newton.cognition") / "prompts" / "frame.md").read_text(encoding="utf-8")
    listed = "\n".join(f"- {frame.name}: {frame.description}" for frame in close)
    return asked.format(frames=listed, text=one_line(text[:MOST_CHARACTERS]).replace("<", "‹").replace(">", "›"))

"""The languages in which frames are chosen: phrases of form and examples, read from `frames/languages/*.yaml`."""

import functools
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from newton.content.package_data import data_folder
from newton.content.yaml_models import NamedModel, read_folder

LANGUAGES_FOLDER = "languages"  # below the folder of the frames
Text = Annotated[str, Field(min_length=1)]


class FrameLanguage(NamedModel):
    """A language: words that identify it, cues (phrases that show the form of an input), and examples for each frame.

    `name` is the ISO 639-1 code. A phrase of a cue is matched as whole words, without regard to case and punctuation:
    `*` at the end of a word stands for any ending, `*` alone for one word, `~` for up to four words; `^` at the start
    requires the start of a sentence.
    """

    title: Text = Field(description="The name of the language in English.")
    spaced: bool = Field(default=True, description="Whether white space separates the words.")
    function_words: str = Field(default="", description="Frequent words that identify the language.")
    letters: str = Field(default="", description="Letters that English does not have.")
    cues: dict[str, Text] = Field(description="The phrases of each cue, separated by commas.")
    examples: dict[str, tuple[Text, ...]] = Field(
        default={}, description="Inputs typical of each frame; those in English are in the files of the frames."
    )

    def list_phrases(self, cue: str) -> list[str]:
        return [phrase for part in self.cues[cue].split(",") if (phrase := part.strip())]


@functools.cache
def load_frame_languages() -> Mapping[str, FrameLanguage]:
    """Load the languages that ship with Newton, by code. Raises ConfigError for the first mistake."""
    return read_folder(data_folder("frames") / LANGUAGES_FOLDER, FrameLanguage)

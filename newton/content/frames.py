"""Frames: how an input is interpreted, as data that a user can edit."""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from newton.content.package_data import data_folder
from newton.content.yaml_models import (
    NamedModel,
    StrictModel,
    build_model,
    get_by_name,
    list_content_files,
    read_folder,
)
from newton.content.yaml_source import YamlDocument, load_yaml

Stakes = Literal["low", "medium", "high", "critical"]

PACK_FILE = "pack.yaml"  # describes a pack, beside the frames in its folder
EXTENDED_LISTS = ("patterns", "examples")  # fields that a frame adds to the frame it extends

NEUTRAL_PRIORITY = 0.5  # the priority of a kind that a frame does not name

Priority = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[int, Field(ge=0, le=1_000_000)]
Text = Annotated[str, Field(min_length=1, max_length=500)]


class KindPriorities(StrictModel):
    """The priority of each kind of memory under a frame, from 0 to 1."""

    exchange: Priority = NEUTRAL_PRIORITY
    episode: Priority = NEUTRAL_PRIORITY
    fact: Priority = NEUTRAL_PRIORITY
    procedure: Priority = NEUTRAL_PRIORITY
    decision: Priority = NEUTRAL_PRIORITY
    censor: Priority = NEUTRAL_PRIORITY
    event: Priority = NEUTRAL_PRIORITY
    entity: Priority = NEUTRAL_PRIORITY
    relation: Priority = NEUTRAL_PRIORITY
    artifact: Priority = NEUTRAL_PRIORITY
    passage: Priority = NEUTRAL_PRIORITY


PRIORITY_KINDS = frozenset(KindPriorities.model_fields)


class LayerShares(StrictModel):
    """The shares in which a frame splits the flexible part of a context; they scale with any token limit."""

    decisions: Share = 2_000
    facts: Share = 1_500
    procedures: Share = 1_500
    episodes: Share = 1_000

    @model_validator(mode="after")
    def _shares_something(self) -> "LayerShares":
        if not sum(self.shares.values()):
            raise ValueError("gives nothing to any layer")
        return self

    @property
    def shares(self) -> dict[str, int]:
        return dict(self)


class FramePattern(StrictModel):
    """A phrase, or an alternation of phrases, whose presence is evidence for a frame."""

    match: Text = Field(description="A phrase or an alternation of phrases, such as 'should (we|i)'.")
    weight: float = Field(
        gt=0, le=1, description="How strong the phrase is as evidence for the frame, above 0 up to 1."
    )

    @field_validator("match")
    @classmethod
    def _compiles(cls, match: str) -> str:
        try:
            found = re.compile(match).match("")
            _compile_whole_words(match)
        except re.error as error:
            raise ValueError(f"is not a pattern: {error}") from None
        if found:
            raise ValueError("matches the empty text, so it would match everything")
        return match

    def is_found_in(self, text: str) -> bool:
        """Return True when the phrase occurs in the text as whole words, ignoring case."""
        return _compile_whole_words(self.match).search(_normalize(text)) is not None


@functools.cache
def _compile_whole_words(match: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{match})(?!\w)", re.IGNORECASE)


def _normalize(text: str) -> str:
    """Collapse white space to single spaces and typographic apostrophes to ASCII."""
    return " ".join(text.split()).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


class Frame(NamedModel):
    """Interpretation of an input: its questions, priorities, scoring profile and layer shares."""

    description: Text = Field(description="One sentence: which inputs the frame is for.")
    questions: tuple[Text, ...] = Field(
        min_length=2, max_length=4, description="Two to four short questions; each context repeats them."
    )
    domains: tuple[Text, ...] = Field(
        default=(), description="The domains to activate: procedures and censors of these apply."
    )
    priorities: KindPriorities = Field(
        default=KindPriorities(), description="A number from 0 to 1 for each kind of memory."
    )
    profile: str = Field(default="evidence", description="The name of a profile: how memories are scored.")
    budget: LayerShares = Field(
        default=LayerShares(), description="Shares for decisions, facts, procedures and episodes."
    )
    floor: Priority = Field(
        default=0.0, description="The minimum evidence of a memory in the context; lines of dialogue are exempt."
    )
    default_stakes: Stakes = Field(default="medium", description="The stakes of a decision made under this frame.")
    category: Text = Field(default="process", description="The category of a decision made under this frame.")
    censors: tuple[Text, ...] = Field(default=(), description="What not to do while this frame is active.")
    patterns: tuple[FramePattern, ...] = Field(default=(), description="Phrases that are evidence for the frame.")
    examples: tuple[Text, ...] = Field(default=(), description="Inputs typical of the frame.")

    @field_validator("questions")
    @classmethod
    def _are_short(cls, questions: tuple[str, ...]) -> tuple[str, ...]:
        for question in questions:
            if len(question.split()) >= 12:
                raise ValueError(f"must stay under 12 words each; this one does not: {question!r}")
        return questions

    @field_validator("profile")
    @classmethod
    def _profile_exists(cls, profile: str, info: ValidationInfo) -> str:
        context = cast("dict[str, set[str]]", info.context or {})
        known = context.get("profiles", {profile})
        if profile not in known:
            raise ValueError(f"names no profile: {profile!r} is not one of {', '.join(sorted(known))}")
        return profile

    def priority(self, kind: str) -> float:
        """Return the priority of memories of this kind under the frame."""
        return getattr(self.priorities, kind) if kind in PRIORITY_KINDS else NEUTRAL_PRIORITY

    def matching_patterns(self, text: str) -> tuple[FramePattern, ...]:
        """Return the patterns found in the text. Time grows with the text: pass an input's first lines."""
        plain = _normalize(text)
        return tuple(pattern for pattern in self.patterns if _compile_whole_words(pattern.match).search(plain))

    def matched_phrases(self, text: str) -> tuple[str, ...]:
        """Return the phrases that the patterns found in the text, heaviest pattern first."""
        plain = _normalize(text)
        ordered = sorted(self.patterns, key=lambda pattern: -pattern.weight)
        return tuple(found[0] for pattern in ordered if (found := _compile_whole_words(pattern.match).search(plain)))


def load_frames(extra: Path | None = None, profiles: Iterable[str] | None = None) -> dict[str, Frame]:
    """Load the frames that ship with Newton, overlaid by the user's own folder.

    `profiles` are the profile names a frame may use; by default those that ship. Raises ConfigError with file and line
    for the first mistake; then nothing is loaded.
    """
    frames = read_folder(data_folder("frames"), Frame, _validation_context(profiles))
    return frames if extra is None else overlay_frames(frames, extra.expanduser(), profiles)


def overlay_frames(
    frames: Mapping[str, Frame], folder: Path, profiles: Iterable[str] | None = None
) -> dict[str, Frame]:
    """Return the frames with those of the folder added; the same name replaces a frame.

    A frame with `extends` inherits each field it does not set. Raises ConfigError as `load_frames` does.
    """
    files, context = list_content_files(folder, exclude=PACK_FILE), _validation_context(profiles)
    return {
        **frames,
        **{path.stem: build_model(_apply_extends(load_yaml(path), frames), Frame, context) for path in files},
    }


def _validation_context(profiles: Iterable[str] | None) -> dict[str, set[str]]:
    return {"profiles": set(profiles or (path.stem for path in data_folder("profiles").glob("*.yaml")))}


def _apply_extends(document: YamlDocument, known: Mapping[str, Frame]) -> YamlDocument:
    """Merge the document into the frame it extends: mappings by field, patterns and examples appended."""
    given = document.value
    own = dict(cast("dict[str, object]", given)) if isinstance(given, dict) else dict[str, object]()
    name = own.pop("extends", None)
    if name is None:
        return document
    if not isinstance(name, str) or name not in known:
        what = f"extends no frame: {name!r} is not one of {', '.join(sorted(known))}."
        raise document.error(("extends",), what, "Name one of them, or leave the line out.")
    base: dict[str, object] = known[name].model_dump(exclude_unset=True)
    joined = {field: _merge_field(field, base.get(field), value) for field, value in own.items()}
    return replace(document, value={**base, "name": document.path.stem, **joined})


def _merge_field(field: str, base: object, own: object) -> object:
    if isinstance(base, dict) and isinstance(own, dict):
        return {**cast("dict[str, object]", base), **cast("dict[str, object]", own)}
    if field in EXTENDED_LISTS and isinstance(base, tuple) and isinstance(own, tuple):
        return (*cast("tuple[object, ...]", base), *cast("tuple[object, ...]", own))
    return own


def get_frame(frames: dict[str, Frame], name: str) -> Frame:
    """Return the frame of that name. Raises NotFoundError that suggests the nearest name and lists all."""
    return get_by_name(frames, name, "frame")

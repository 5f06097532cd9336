"""Frames (kinds of input that decide which memories are selected, and their shares of the budget), from YAML.

A frame in `frames/*.yaml` may set its own shares in the field `budget`; a pack and a request may set percentages.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from newton.content.package_data import data_folder
from newton.content.yaml_files import (
    NamedModel,
    StrictModel,
    YamlDocument,
    build_model,
    get_by_name,
    list_files,
    load_yaml,
    read_folder,
)
from newton.text.languages import load_language

SHARE_UNITS = 1_000  # the sum of the shares that correspond to percentages, as integers

Share = Annotated[int, Field(ge=0, le=1_000_000)]
Percent = Annotated[int, Field(ge=0, le=100)]


class LayerShares(StrictModel):
    """The shares of the layers (sections) of a context in its token budget. Only the ratios of the numbers matter."""

    decisions: Share = 2_000
    facts: Share = 1_500
    procedures: Share = 1_500
    episodes: Share = 1_000

    @model_validator(mode="after")
    def _check_sum(self) -> "LayerShares":
        if not sum(self.shares.values()):
            raise ValueError("gives no share to any layer")
        return self

    @property
    def shares(self) -> dict[str, int]:
        return dict(self)


class BudgetSplit(StrictModel):
    """The parts of a context's token budget, in percent, for memories found in four ways."""

    recent: Percent = Field(description="Percent of a context's tokens for recent events and episodes.")
    semantic: Percent = Field(
        description="Percent of a context's tokens for memories of any kind that are similar to the input."
    )
    entity: Percent = Field(
        description="Percent of a context's tokens for memories about the entities that the input mentions."
    )
    patterns: Percent = Field(description="Percent of a context's tokens for procedures that apply to the input.")

    @model_validator(mode="after")
    def _check_sum(self) -> "BudgetSplit":
        if (total := self.recent + self.semantic + self.entity + self.patterns) != 100:
            raise ValueError(f"must add up to 100, not {total}")
        return self

    def to_layer_shares(self, own: LayerShares) -> LayerShares:
        """Return the shares of decisions, facts, procedures and episodes that correspond to the percentages.

        `semantic` is divided between decisions and facts in the ratio of the frame's `own` shares. `entity` adds to
        facts.
        """
        unit, total = SHARE_UNITS // 100, own.decisions + own.facts
        decisions = round(self.semantic * unit * (own.decisions / total if total else 0.5))
        return LayerShares(
            decisions=decisions,
            facts=(self.semantic + self.entity) * unit - decisions,
            procedures=self.patterns * unit,
            episodes=self.recent * unit,
        )


Stakes = Literal["low", "medium", "high", "critical"]

LANGUAGES_FOLDER = "languages"  # below the folder of the frames
PACK_FILE = "pack.yaml"  # the description of a pack, in one folder with the pack's frames
EXTENDED_LISTS = ("patterns", "examples")  # a frame appends its items to those of the frame that it extends
NEUTRAL_PRIORITY = 0.5  # the priority of a kind that a frame does not list

Priority = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Phrases = Annotated[str, Field(min_length=1)]


class KindPriorities(StrictModel):
    """The priority of each kind of memory in a frame (a kind of input), from 0 to 1."""

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
    item: Priority = NEUTRAL_PRIORITY


PRIORITY_KINDS = frozenset(KindPriorities.model_fields)


class FramePattern(StrictModel):
    """A regular expression of phrases. A match in an input is evidence for a frame (a kind of input)."""

    match: Text = Field(description="A phrase or an alternation of phrases, such as 'should (we|i)'.")
    weight: float = Field(gt=0, le=1, description="The strength of the evidence, above 0 and at most 1.")

    @field_validator("match")
    @classmethod
    def _check_pattern(cls, match: str) -> str:
        try:
            empty_match = re.compile(match).match("")
            _compile_whole_words(match)
        except re.error as error:
            raise ValueError(f"is not a pattern: {error}") from None
        if empty_match:
            raise ValueError("matches the empty text, so it would match everything")
        return match


@functools.cache
def _compile_whole_words(match: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{match})(?!\w)", re.IGNORECASE)


@functools.lru_cache(maxsize=8)  # each frame looks at the same input
def _normalize(text: str) -> str:
    """Return the text with runs of white space replaced by one space, and typographic apostrophes by ASCII ones."""
    return " ".join(text.split()).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


class Frame(NamedModel):
    """A kind of input: its questions, priorities by kind of memory, scoring profile, and shares of the token budget."""

    description: Text = Field(description="One sentence that says for which inputs the frame is meant.")
    questions: tuple[Text, ...] = Field(
        min_length=2,
        max_length=4,
        description="Two to four short questions that a context with this frame puts to the model.",
    )
    domains: tuple[Text, ...] = Field(
        default=(), description="The domains whose procedures and censors apply in this frame."
    )
    priorities: KindPriorities = Field(
        default=KindPriorities(), description="The priority of each kind of memory in the score, from 0 to 1."
    )
    profile: str = Field(default="evidence", description="The name of the profile that scores memories.")
    budget: LayerShares = Field(
        default=LayerShares(),
        description="The shares of decisions, facts, procedures and episodes in the tokens of a context.",
    )
    floor: Priority = Field(
        default=0.0, description="The minimum evidence (search score) of a memory in the context; messages are exempt."
    )
    relevance_floor: Priority = Field(
        default=0.08, description="The minimum probability that a memory in the context is relevant to the input."
    )
    fact_share: Priority = Field(
        default=0.3,
        description="The minimum probability of a fact as a share of the best fact's. 0: each fact counts by itself.",
    )
    answer_floor: Priority = Field(
        default=0.0015,
        description="The minimum probability that a message or passage in the context answers the input. 0: memories"
        " are selected by their topic instead, as `relevance_floor` says.",
    )
    default_stakes: Stakes = Field(default="medium", description="The default stakes of a decision in this frame.")
    category: Text = Field(default="process", description="The default category of a decision in this frame.")
    censors: tuple[Text, ...] = Field(
        default=(), description="What is forbidden in this frame, one text for each rule."
    )
    patterns: tuple[FramePattern, ...] = Field(default=(), description="Phrases that are evidence for the frame.")
    examples: tuple[Text, ...] = Field(default=(), description="Inputs typical of the frame.")

    @field_validator("questions")
    @classmethod
    def _check_questions(cls, questions: tuple[str, ...]) -> tuple[str, ...]:
        for question in questions:
            if len(question.split()) >= 12:
                raise ValueError(f"must have fewer than 12 words each; this one has more: {question!r}")
        return questions

    @field_validator("profile")
    @classmethod
    def _check_profile(cls, profile: str, info: ValidationInfo) -> str:
        context = cast("dict[str, set[str]]", info.context or {})
        known = context.get("profiles", {profile})
        if profile not in known:
            raise ValueError(f"is not the name of a profile: {profile!r} is not one of {', '.join(sorted(known))}")
        return profile

    def priority(self, kind: str) -> float:
        """Return the priority of memories of this kind, from 0 to 1."""
        return getattr(self.priorities, kind) if kind in PRIORITY_KINDS else NEUTRAL_PRIORITY

    def matching_patterns(self, text: str) -> tuple[FramePattern, ...]:
        """Return the patterns that match in the text. Pass only its first lines: the time grows with its length."""
        plain = _normalize(text)
        return tuple(pattern for pattern in self.patterns if _compile_whole_words(pattern.match).search(plain))

    def matched_phrases(self, text: str) -> tuple[str, ...]:
        """Return the parts of the text that the patterns match, by descending weight of the pattern."""
        plain = _normalize(text)
        ordered = sorted(self.patterns, key=lambda pattern: -pattern.weight)
        return tuple(found[0] for pattern in ordered if (found := _compile_whole_words(pattern.match).search(plain)))


class FrameLanguage(NamedModel):
    """The data by which frames (kinds of input) are recognized in one language: cues and examples for each frame.

    A cue is a list of phrases that show the form of an input. `name` is the ISO 639-1 code, one of LANGUAGES in
    `newton.text.languages`. A phrase is matched as whole words, without regard to case and punctuation: `*` at the end
    of a word stands for any ending, `*` alone for one word, `~` for up to four words; `^` at the start requires the
    start of a sentence.
    """

    cues: dict[str, Phrases] = Field(description="The phrases of each cue, separated by commas.")
    examples: dict[str, tuple[Text, ...]] = Field(
        default={}, description="Inputs typical of each frame; those in English are in the files of the frames."
    )

    @property
    def is_spaced(self) -> bool:
        """Return True if spaces separate the words of the language."""
        return load_language(self.name).is_spaced

    def list_phrases(self, cue: str) -> list[str]:
        """Return the phrases of a cue."""
        return [phrase for part in self.cues[cue].split(",") if (phrase := part.strip())]


@functools.cache
def load_frame_languages() -> Mapping[str, FrameLanguage]:
    """Load the languages that ship with Newton, by code. Raises ConfigError for the first mistake in a file."""
    return read_folder(data_folder("frames") / LANGUAGES_FOLDER, FrameLanguage)


def load_frames(extra: Path | None = None, profiles: Iterable[str] | None = None) -> dict[str, Frame]:
    """Load the frames that ship with Newton; one in the folder `extra` replaces or extends the one of the same name.

    `profiles` are the names of profiles that a frame may use; None permits those that ship with Newton. Raises
    ConfigError with file and line of the first mistake.
    """
    frames = dict(_load_shipped_frames(frozenset(_validation_context(profiles)["profiles"])))
    return frames if extra is None else overlay_frames(frames, extra.expanduser(), profiles)


@functools.cache
def _load_shipped_frames(profiles: frozenset[str]) -> Mapping[str, Frame]:
    frames = read_folder(data_folder("frames"), Frame, {"profiles": profiles})
    return {name: _add_translations(frame) for name, frame in frames.items()}


def _add_translations(frame: Frame) -> Frame:
    """Return the frame with the examples in other languages appended, which are in the files of the languages."""
    languages = load_frame_languages().values()
    others = [text for language in languages for text in language.examples.get(frame.name, ())]
    return frame.model_copy(update={"examples": (*frame.examples, *others)})


@functools.cache
def load_english_examples() -> tuple[str, ...]:
    """Return the example inputs in the files of the frames that ship with Newton, which are in English."""
    others = {
        text for language in load_frame_languages().values() for texts in language.examples.values() for text in texts
    }
    return tuple(text for frame in load_frames().values() for text in frame.examples if text not in others)


def overlay_frames(
    frames: Mapping[str, Frame], folder: Path, profiles: Iterable[str] | None = None
) -> dict[str, Frame]:
    """Return the frames; one in the folder replaces that of the same name. `profiles` are the names that they may use.

    Raises ConfigError with file and line of the first mistake.
    """
    files, context = list_files(folder, exclude=PACK_FILE), _validation_context(profiles)
    own = {path.stem: build_model(_apply_extends(load_yaml(path), frames), Frame, context) for path in files}
    return {**frames, **own}


def _validation_context(profiles: Iterable[str] | None) -> dict[str, set[str]]:
    return {"profiles": set(profiles or (path.stem for path in data_folder("profiles").glob("*.yaml")))}


def _apply_extends(document: YamlDocument, known: Mapping[str, Frame]) -> YamlDocument:
    """Return the document merged into the frame that its field `extends` names; without this field, unchanged.

    Mappings are merged by field, and the lists in EXTENDED_LISTS are appended.
    """
    value = document.value
    own = dict(cast("dict[str, object]", value)) if isinstance(value, dict) else dict[str, object]()
    name = own.pop("extends", None)
    if name is None:
        return document
    if not isinstance(name, str) or name not in known:
        what = f"cannot extend {name!r}: it is not one of {', '.join(sorted(known))}."
        raise document.error(("extends",), what, "Name an existing frame, or delete the line.")
    base: dict[str, object] = known[name].model_dump(exclude_unset=True)
    merged = {field: _merge_field(field, base.get(field), value) for field, value in own.items()}
    return replace(document, value={**base, "name": document.path.stem, **merged})


def _merge_field(field: str, base: object, own: object) -> object:
    if isinstance(base, dict) and isinstance(own, dict):
        return {**cast("dict[str, object]", base), **cast("dict[str, object]", own)}
    if field in EXTENDED_LISTS and isinstance(base, tuple) and isinstance(own, tuple):
        return (*cast("tuple[object, ...]", base), *cast("tuple[object, ...]", own))
    return own


def get_frame(frames: Mapping[str, Frame], name: str) -> Frame:
    """Return the frame with this name.

    Raises NotFoundError for an unknown one, with the nearest name and all others.
    """
    return get_by_name(frames, name, "frame")

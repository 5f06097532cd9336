"""Skills: procedures as folders that a user writes, each with a SKILL.md in the Agent Skills convention."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, cast

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pydantic import BeforeValidator, Field

from newton.content.package_data import data_folder
from newton.content.yaml_models import NamedModel, did_you_mean, list_folder, validate_model
from newton.content.yaml_source import YamlDocument, YamlLocation, file_error, load_front_matter
from newton.errors import ConfigError

SKILL_FILE = "SKILL.md"
MAX_CHARS = 200_000

_GOALS, _STEPS = "goals", "steps"
_BANDS = ("goals", "core", "details")
_LISTS = ("ordered_list", "bullet_list")

# Front matter fields of the convention and of other programs; they are ignored here.
_IGNORED_FIELDS = frozenset({
    *("allowed-tools", "compatibility", "license", "metadata", "version"),
    *("agent", "argument-hint", "arguments", "author", "context", "disable-model-invocation", "disallowed-tools"),
    *("effort", "hooks", "model", "paths", "shell", "tags", "user-invocable", "when_to_use"),
})  # fmt: skip

# Only blocks are parsed; inline text stays as written.
_BLOCKS = MarkdownIt("commonmark").disable(["inline", "reference"])


def _to_single_line(value: object) -> object:
    if not isinstance(value, str):
        return value
    line = " ".join(value.split())
    if not line:
        raise ValueError("is empty")
    if any(character < " " or character == "\x7f" for character in line):
        raise ValueError("holds a control character")
    return line


Line = Annotated[str, Field(max_length=500), BeforeValidator(_to_single_line)]
Phrase = Annotated[str, Field(max_length=100), BeforeValidator(_to_single_line)]


class Skill(NamedModel):
    """A procedure: its triggers, goals, steps and supporting details."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9-]*$", max_length=60, description="The folder's name: small letters, digits, hyphens."
    )
    description: Line = Field(description="What it does and when to use it, in 1 to 500 characters.")
    domain: Phrase = Field(default="general", description="The domain that it belongs to.")
    triggers: tuple[Phrase, ...] = Field(
        default=(), max_length=50, description="Phrases of up to 100 characters, as a user would write them."
    )
    frames: tuple[Phrase, ...] = Field(default=(), max_length=50, description="Names of the frames that it serves.")
    tools: tuple[Phrase, ...] = Field(default=(), max_length=50, description="Names of the tools that it uses.")
    requires: tuple[Phrase, ...] = Field(default=(), max_length=50, description="Preconditions of the first step.")
    goals: tuple[Line, ...] = Field(
        default=(), max_length=50, description="At most 50 list items under '## Goals', each up to 500 characters."
    )
    core: tuple[Line, ...] = Field(
        min_length=1, max_length=50, description="The steps are at most 50 list items, each up to 500 characters."
    )
    details: str = Field(default="", max_length=MAX_CHARS)

    @property
    def content_hash(self) -> bytes:
        """Return the SHA-256 of the skill's content; the layout of its file does not matter."""
        return hashlib.sha256(self.model_dump_json().encode()).digest()


def make_slug(title: str) -> str:
    """A title as the name of a skill; "" when nothing of it can be in one.

    >>> make_slug("Roll back: a release (v2)")
    'roll-back-a-release-v2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).lstrip("-0123456789")[:60].rstrip("-")


def load_skills(own: Path | None = None) -> dict[str, Skill]:
    """Load the skills that ship with Newton, overlaid by the user's own folder; the same name replaces one.

    Raises ConfigError with file and line for the first mistake; then nothing is loaded.
    """
    skills = _read_folders(data_folder("procedures"))
    return skills if own is None else {**skills, **_read_folders(own.expanduser())}


def read_skill(path: Path) -> Skill:
    """Read a SKILL.md. Raises ConfigError with file, line and remedy for its first mistake."""
    front, text = load_front_matter(path)
    skill = validate_model(_add_bands(front, _select_fields(front), _SkillBody(path, text)), Skill)
    if skill.name != path.parent.name:
        what = f"the skill is named {skill.name!r} but its folder {path.parent.name!r}."
        raise front.error(("name",), what, "Rename one of them.")
    return skill


def _read_folders(folder: Path) -> dict[str, Skill]:
    return {path.parent.name: read_skill(path) for path in _iter_skill_files(folder)}


def _iter_skill_files(folder: Path) -> Iterator[Path]:
    for inner in list_folder(folder):
        if inner.name.startswith(".") or not inner.is_dir():
            continue
        names = {path.name for path in inner.iterdir()}
        if SKILL_FILE in names:
            yield inner / SKILL_FILE
        elif other := next((name for name in sorted(names) if name.lower() == SKILL_FILE.lower()), None):
            raise ConfigError(f"{inner / other} would be ignored.", hint=f"Only {SKILL_FILE} is read: rename it.")


def _select_fields(front: YamlDocument) -> dict[str, object]:
    """Return the front matter without ignored fields. Raises ConfigError for an unknown one."""
    value = front.value
    if not isinstance(value, dict):
        hint = "Write its fields in it, such as 'name: ...' and 'description: ...'."
        raise front.error((), "the front matter is not a mapping of fields.", hint)
    fields = cast("dict[str, object]", value)
    known = [name for name in Skill.model_fields if name not in _BANDS]
    for name in fields:
        if name not in known and name not in _IGNORED_FIELDS:
            hint = did_you_mean(name, {*known, *_IGNORED_FIELDS}) or f"Its fields are {', '.join(known)}."
            raise front.error((name,), f"{name!r} is not a field of a skill's front matter.", hint)
    return {name: fields[name] for name in known if name in fields}


def _add_bands(front: YamlDocument, fields: dict[str, object], body: "_SkillBody") -> YamlDocument:
    """Return the fields with goals, steps and details of the body as one document, each with its line."""
    bands = {"goals": _texts(body.goals), "core": _texts(body.steps), "details": body.details()}
    lines = {**front.lines, **_item_lines("goals", body.goals), **_item_lines("core", body.steps)}
    return YamlDocument(front.path, {**fields, **bands}, lines)


class _Item(NamedTuple):
    """A list item. `lines` are its line numbers in the file, from 0; `plain` is True for a single text."""

    text: str
    lines: range
    plain: bool


def _item_lines(band: str, items: Sequence[_Item]) -> dict[YamlLocation, int]:
    places: dict[YamlLocation, int] = {(band, index): item.lines.start + 1 for index, item in enumerate(items)}
    return {(band,): places[band, 0], **places} if places else {}


def _texts(items: Iterable[_Item]) -> tuple[str, ...]:
    return tuple(item.text for item in items)


class _Section(NamedTuple):
    heading: SyntaxTreeNode
    blocks: list[SyntaxTreeNode]


class _SkillBody:
    """The Markdown of a skill, split into goals, steps and details."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.split("\n")
        self._first = len(text) - len(text.lstrip("\n")) + 1
        if (length := len(text.strip())) > MAX_CHARS:
            what = f"the text has {length:,} characters; {MAX_CHARS:,} is the limit."
            raise file_error(path, self._first, what, "Move long parts into files beside it.")
        self._root = SyntaxTreeNode(_BLOCKS.parse(text))
        self._sections = self._split_sections()
        self.goals = _items(self._lists(_GOALS)) if _GOALS in self._sections else []
        self.steps = self._find_steps()

    def _split_sections(self) -> dict[str, _Section]:
        """Return the goals and steps sections; each ends at the next heading of its level or above."""
        sections: dict[str, _Section] = {}
        blocks: list[SyntaxTreeNode] = []
        for node in self._root.children:
            if node.type != "heading" or node.tag not in ("h1", "h2"):
                blocks.append(node)
                continue
            blocks = []
            title = node.children[0].content.strip(" *_:").lower() if node.tag == "h2" else ""
            if title in sections:
                first = _line_number(sections[title].heading)
                what = f"the heading {title.capitalize()!r} is given twice, first in line {first}."
                raise file_error(self._path, _line_number(node), what, "Make one section of them.")
            if title in (_GOALS, _STEPS):
                sections[title] = _Section(node, blocks)
        return sections

    def _lists(self, title: str) -> list[SyntaxTreeNode]:
        return [node for node in self._sections[title].blocks if node.type in _LISTS]

    def _find_steps(self) -> list[_Item]:
        """Return the items under '## Steps', or else of the first ordered list, or else of the first list."""
        if section := self._sections.get(_STEPS):
            if items := _items(self._lists(_STEPS)):
                return items
            what, hint = "there is no list under '## Steps'.", "List the steps there: '1. ...', a line for each."
            raise file_error(self._path, _line_number(section.heading), what, hint)
        aims = set(self._sections[_GOALS].blocks) if _GOALS in self._sections else set[SyntaxTreeNode]()
        nodes = [node for block in self._root.children if block not in aims for node in block.walk()]
        for kind in _LISTS:
            if first := next((node for node in nodes if node.type == kind), None):
                return _items([first])
        hint = "Add a heading '## Steps' and under it '1. ...', a line for each step."
        raise file_error(self._path, self._first, "there is no list to take the steps from.", hint)

    def details(self) -> str:
        """Return the text without goals and steps. An item of several lines stays whole."""
        taken = {line for item in (*self.goals, *self.steps) if item.plain for line in item.lines}
        for heading, blocks in self._sections.values():
            if all(line in taken or not self._lines[line].strip() for node in blocks for line in _line_range(node)):
                taken.update(_line_range(heading))
        return "\n".join(self._remaining_lines(taken)).strip("\n").rstrip()

    def _remaining_lines(self, taken: set[int]) -> list[str]:
        """Return the other lines. One blank line replaces each removed run, to separate paragraphs."""
        left, beside = [""], False
        for number, line in enumerate(self._lines):
            blank = not line.strip()
            beside = number in taken or (beside and blank)
            if not beside or (blank and left[-1].strip()):
                left.append(line)
        return left


def _items(lists: Iterable[SyntaxTreeNode]) -> list[_Item]:
    return [_item(node) for made in lists for node in made.children]


def _item(node: SyntaxTreeNode) -> _Item:
    first = node.children[0] if node.children else None
    said = first.children[0].content if first and first.type in ("paragraph", "heading") else ""
    return _Item(said, _line_range(node), plain=bool(said) and len(node.children) == 1)


def _line_range(node: SyntaxTreeNode) -> range:
    return range(*(node.map or (0, 0)))


def _line_number(node: SyntaxTreeNode) -> int:
    return _line_range(node).start + 1

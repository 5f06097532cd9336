"""Skills: procedures (ways to do a task), each a folder with a file SKILL.md in the Agent Skills format."""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, cast

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pydantic import BeforeValidator, Field, JsonValue

from newton.content.file_formats import GENERATED_FOLDERS
from newton.content.package_data import data_folder
from newton.content.yaml_files import (
    NamedModel,
    YamlDocument,
    file_error,
    list_folder,
    load_front_matter,
    validate_model,
)
from newton.errors import ConfigError
from newton.file_access import open_regular

MAX_CHARS = 200_000
MAX_ITEM, MAX_ITEMS = 500, 50  # characters of an item of a list, and items

_GOALS, _STEPS = "goals", "steps"
_LISTS = ("ordered_list", "bullet_list")

# Only blocks are parsed; inline text stays as written.
_BLOCKS = MarkdownIt("commonmark").disable(["inline", "reference"])


class BodyItem(NamedTuple):
    """An item of a list in a skill. `plain` is True if it is a single paragraph.

    `lines` are its lines in the file, counted from 0.
    """

    text: str
    lines: range
    plain: bool


class BodySection(NamedTuple):
    """A heading of the Markdown and the blocks below it."""

    heading: SyntaxTreeNode
    blocks: list[SyntaxTreeNode]


class SkillBody:
    """The Markdown of a skill (a procedure in a file SKILL.md), split into goals, steps and details."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.split("\n")
        self._first = len(text) - len(text.lstrip("\n")) + 1
        if (length := len(text.strip())) > MAX_CHARS:
            what = f"the text has {length:,} characters; the limit is {MAX_CHARS:,}."
            raise file_error(path, self._first, what, "Move long parts to other files of the skill.")
        self._root = SyntaxTreeNode(_BLOCKS.parse(text))
        self._sections = self._split_sections()
        self.goals = self._find_items(_GOALS)
        self.steps = self._find_steps()

    def _split_sections(self) -> dict[str, BodySection]:
        """Return the sections "Goals" and "Steps" by title; of sections with the same title, the first.

        A section ends at the next heading of the same or a higher level.
        """
        sections: dict[str, BodySection] = {}
        blocks: list[SyntaxTreeNode] = []
        for node in self._root.children:
            if node.type != "heading" or node.tag not in ("h1", "h2"):
                blocks.append(node)
                continue
            blocks = []
            title = node.children[0].content.strip(" *_:").lower() if node.tag == "h2" else ""
            if title in (_GOALS, _STEPS) and title not in sections:
                sections[title] = BodySection(node, blocks)
        return sections

    def _find_items(self, title: str) -> list[BodyItem]:
        """Return the items of the lists of a section; none if one of them is no line of text, or they are too many."""
        section = self._sections.get(title)
        return _items(node for node in section.blocks if node.type in _LISTS) if section else []

    def _find_steps(self) -> list[BodyItem]:
        """Return the items of the lists under the heading "Steps", or those of the first ordered list without it."""
        if _STEPS in self._sections:
            return self._find_items(_STEPS)
        goals = set(self._sections[_GOALS].blocks) if _GOALS in self._sections else set[SyntaxTreeNode]()
        nodes = (node for block in self._root.children if block not in goals for node in block.walk())
        first = next((node for node in nodes if node.type == "ordered_list"), None)
        return _items([first]) if first else []

    def details(self) -> str:
        """Return the text without goals and steps. An item with more than one paragraph stays in the text."""
        removed = {line for item in (*self.goals, *self.steps) if item.plain for line in item.lines}
        for heading, blocks in self._sections.values():
            if all(line in removed or not self._lines[line].strip() for node in blocks for line in _line_range(node)):
                removed.update(_line_range(heading))
        return "\n".join(self._remaining_lines(removed)).strip("\n").rstrip()

    def _remaining_lines(self, removed: set[int]) -> list[str]:
        """Return the lines that are not in `removed`, with one blank line in place of each run of removed lines."""
        remaining, after_removed = [""], False
        for number, line in enumerate(self._lines):
            blank = not line.strip()
            after_removed = number in removed or (after_removed and blank)
            if not after_removed or (blank and remaining[-1].strip()):
                remaining.append(line)
        return remaining


def _items(lists: Iterable[SyntaxTreeNode]) -> list[BodyItem]:
    items = [_item(node) for one in lists for node in one.children]
    is_short = len(items) <= MAX_ITEMS and all(0 < len(" ".join(item.text.split())) <= MAX_ITEM for item in items)
    return items if is_short else []


def _item(node: SyntaxTreeNode) -> BodyItem:
    first = node.children[0] if node.children else None
    text = first.children[0].content if first and first.type in ("paragraph", "heading") else ""
    return BodyItem(text, _line_range(node), plain=bool(text) and len(node.children) == 1)


def _line_range(node: SyntaxTreeNode) -> range:
    return range(*(node.map or (0, 0)))


SKILL_FILE = "SKILL.md"
MAX_NAME, MAX_DESCRIPTION = 64, 1_024  # characters
MAX_DEPTH = 8  # of the folders in which skills are searched

_BODY_FIELDS = ("goals", "core", "details", "front_matter")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_NAME_LINE = re.compile(r"^name:[ \t]*[\"']?([a-z0-9][a-z0-9-]*)", re.MULTILINE)


def _to_single_line(value: object) -> object:
    if not isinstance(value, str):
        return value
    line = " ".join(value.split())
    if not line:
        raise ValueError("is empty")
    if any(character < " " or character == "\x7f" for character in line):
        raise ValueError("contains a control character")
    return line


def _split_text(value: object) -> object:
    """Return a text such as "Read, Grep" as a tuple of its parts."""
    return tuple(part for part in re.split(r"\s*,\s*", value.strip()) if part) if isinstance(value, str) else value


Line = Annotated[str, Field(max_length=MAX_ITEM), BeforeValidator(_to_single_line)]
Phrase = Annotated[str, Field(max_length=100), BeforeValidator(_to_single_line)]
Phrases = Annotated[tuple[Phrase, ...], Field(max_length=MAX_ITEMS), BeforeValidator(_split_text)]


class SkillFile(NamedModel):
    """A procedure: when it applies (triggers), its goals, its steps (`core`) and the rest of its text (`details`).

    `front_matter` has the fields of the file that mean nothing to Newton.
    """

    label: ClassVar[str] = "skill"

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=MAX_NAME, description="a-z, 0-9 and hyphens.")
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION), BeforeValidator(_to_single_line)] = Field(
        description=f"The purpose of the skill and when to use it, in 1 to {MAX_DESCRIPTION:,} characters."
    )
    domain: Phrase = Field(default="general", description="The domain of the procedure.")
    triggers: Phrases = Field(
        default=(), description="Phrases of up to 100 characters whose occurrence in an input calls for the skill."
    )
    frames: Phrases = Field(default=(), description="Names of the frames in which the skill applies.")
    tools: Phrases = Field(default=(), description="Names of the tools that the skill uses.")
    requires: Phrases = Field(default=(), description="What must be true before the first step.")
    goals: tuple[Line, ...] = Field(
        default=(),
        max_length=MAX_ITEMS,
        description="What the skill is good for: at most 50 goals of up to 500 characters.",
    )
    core: tuple[Line, ...] = Field(
        default=(), max_length=MAX_ITEMS, description="A skill has at most 50 steps of up to 500 characters."
    )
    details: str = Field(default="", max_length=MAX_CHARS)
    front_matter: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def content_hash(self) -> bytes:
        """Return the SHA-256 hash of the content. The layout of the file does not change it."""
        without = None if self.front_matter else {"front_matter"}
        return hashlib.sha256(self.model_dump_json(exclude=without).encode()).digest()


@dataclass(frozen=True, slots=True)
class SkillSet:
    """Skills (procedures in files SKILL.md) by name, and the files that cannot be read, each with the reason."""

    skills: Mapping[str, SkillFile] = field(default_factory=dict[str, SkillFile])
    errors: Mapping[Path, ConfigError] = field(default_factory=dict[Path, ConfigError])

    @property
    def unreadable(self) -> frozenset[str]:
        """Return names of unreadable files that no skill has: that of the folder, or one in the front matter."""
        names = (name for path in self.errors for name in (make_slug(path.parent.name), _guess_name(path)))
        return frozenset(names) - self.skills.keys()


def make_slug(title: str) -> str:
    """Return a title in the form of a skill's name, or "" if it has no character that a name may have.

    >>> make_slug("Roll back: a release (v2)")
    'roll-back-a-release-v2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).lstrip("-0123456789")[:60].rstrip("-")


def load_skills(own: Path | None = None) -> SkillSet:
    """Load the skills that ship with Newton; a skill in the folder `own` replaces the one of the same name.

    A file that cannot be read is left out, and so is the shipped skill that it may replace. Raises ConfigError if there
    is no such folder.
    """
    shipped = _load_shipped_skills()
    if own is None:
        return shipped
    found = _read_skills(_iter_skill_files(own.expanduser()), within=own.expanduser())
    kept = {name: skill for name, skill in shipped.skills.items() if name not in found.unreadable}
    return SkillSet({**kept, **found.skills}, found.errors)


@functools.cache
def _load_shipped_skills() -> SkillSet:
    return _read_skills(_iter_skill_files(data_folder("procedures")))


def _read_skills(paths: Iterable[Path], *, within: Path | None = None) -> SkillSet:
    skills, errors, known = dict[str, SkillFile](), dict[Path, ConfigError](), dict[str, Path]()
    for path in paths:
        try:
            skill = read_skill(path, within=within)
            if skill.name in known:
                what = f"the name {skill.name!r} is also that of {known[skill.name]}."
                raise file_error(path, 1, what, "Give one of them another name.")
        except ConfigError as error:
            errors[path] = error
            continue
        skills[skill.name], known[skill.name] = skill, path
    return SkillSet(skills, errors)


def read_skill(path: Path, *, within: Path | None = None) -> SkillFile:
    """Read a SKILL.md file. A name of another form is converted as by `make_slug`; without one, the folder's is used.

    Raises ConfigError with file, line and remedy of the first mistake, and for a link out of the folder `within`.
    """
    front, text = load_front_matter(path, within=within)
    return validate_model(_add_body(front, _select_fields(front), SkillBody(path, text)), SkillFile)


def find_skills(path: Path) -> SkillSet:
    """Read the skill in a folder or a SKILL.md file, or all skills in the folders inside it.

    Raises ConfigError if there is no file SKILL.md.
    """
    if path.is_file():
        return _read_skills([path])
    if own := _find_skill_file(path):
        return _read_skills([own], within=path)
    if not path.is_dir():
        raise ConfigError(f"{path} does not exist.", hint=f"Give a folder with a {SKILL_FILE}.")
    if files := list(_iter_skill_files(path)):
        return _read_skills(files, within=path)
    raise ConfigError(
        f"{path} has no {SKILL_FILE}.", hint=f"Give a folder with a {SKILL_FILE}, or one of such folders."
    )


MAX_NAMED_BYTES = 100_000  # of a file that cannot be read, in which its name is looked for


def _guess_name(path: Path) -> str:
    try:
        with open_regular(path) as file:
            match = _NAME_LINE.search(file.read(MAX_NAMED_BYTES).decode(errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""


def _iter_skill_files(folder: Path) -> Iterator[Path]:
    """Yield the file of each skill in the folders inside a folder. Each folder is read once, whatever links to it."""
    waiting, visited = [(inner, 1) for inner in list_folder(folder)[::-1]], set[Path]()
    while waiting:
        inner, depth = waiting.pop()
        is_skipped = inner.name.startswith(".") or inner.name in GENERATED_FOLDERS or not inner.is_dir()
        if is_skipped or depth > MAX_DEPTH or (resolved := inner.resolve()) in visited:
            continue
        visited.add(resolved)
        if found := _find_skill_file(inner):
            yield found
        else:
            waiting += [(child, depth + 1) for child in list_folder(inner)[::-1]]


def _find_skill_file(folder: Path) -> Path | None:
    """Return the file of the skill in a folder, whatever the case of its name; None without one."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    spelled = [name for name in names if name.lower() == SKILL_FILE.lower()]
    return folder / (SKILL_FILE if SKILL_FILE in spelled else spelled[0]) if spelled else None


def _select_fields(front: YamlDocument) -> dict[str, object]:
    """Return the fields of the front matter, with those that mean nothing to Newton under `front_matter`."""
    value = front.value
    if not isinstance(value, dict):
        hint = "Write fields such as 'name: ...' and 'description: ...'."
        raise front.error((), "the front matter is not a mapping of fields.", hint)
    fields = cast("dict[str, object]", value)
    known = {name for name in SkillFile.model_fields if name not in _BODY_FIELDS}
    own = {name: one for name, one in fields.items() if name in known and not isinstance(one, dict)}
    name, folder = str(own.get("name") or ""), front.path.resolve().parent.name
    own["name"] = name if _NAME.fullmatch(name) else make_slug(name) or make_slug(folder)
    return {**own, "front_matter": _to_json({name: one for name, one in fields.items() if name not in own})}


def _to_json(value: object) -> JsonValue:
    """Return a value of YAML as one of JSON; a date becomes text."""
    if isinstance(value, dict):
        return {_clean(name): _to_json(one) for name, one in cast("dict[object, object]", value).items()}
    if isinstance(value, tuple):
        return [_to_json(one) for one in cast("tuple[object, ...]", value)]
    if value is None or isinstance(value, int | float):
        return value
    return _clean(value)


def _clean(value: object) -> str:
    """Return a value as text without the characters that the database cannot store."""
    return str(value).replace("\0", "").encode(errors="replace").decode()


def _add_body(front: YamlDocument, fields: dict[str, object], body: "SkillBody") -> YamlDocument:
    """Return a document with `fields` and the goals, steps and details of the body, all with their line numbers."""
    lists = {"goals": body.goals, "core": body.steps}
    texts = {name: tuple(item.text for item in items) for name, items in lists.items()}
    return YamlDocument(front.path, {**fields, **texts, "details": body.details()}, front.lines)

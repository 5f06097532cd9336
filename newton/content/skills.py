"""Skills: procedures (ways to do a task), each a folder with a file SKILL.md in the Agent Skills format."""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, cast

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pydantic import BeforeValidator, Field

from newton.content.package_data import data_folder
from newton.content.yaml_models import NamedModel, check_name, did_you_mean, list_folder, validate_model
from newton.content.yaml_source import YamlDocument, YamlLocation, file_error, load_front_matter
from newton.errors import ConfigError

SKILL_FILE = "SKILL.md"
MAX_CHARS = 200_000

_GOALS, _STEPS = "goals", "steps"
_BANDS = ("goals", "core", "details")
_LISTS = ("ordered_list", "bullet_list")

# Front matter fields of the convention and of other programs, which Newton ignores.
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
        raise ValueError("contains a control character")
    return line


Line = Annotated[str, Field(max_length=500), BeforeValidator(_to_single_line)]
Phrase = Annotated[str, Field(max_length=100), BeforeValidator(_to_single_line)]


class SkillFile(NamedModel):
    """A procedure: when it applies (triggers), its goals, its steps (`core`) and further details."""

    label: ClassVar[str] = "skill"

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=60, description="The folder name: a-z, 0-9 and hyphens.")
    description: Line = Field(description="The purpose of the skill and when to use it, in 1 to 500 characters.")
    domain: Phrase = Field(default="general", description="The domain of the procedure.")
    triggers: tuple[Phrase, ...] = Field(
        default=(),
        max_length=50,
        description="Phrases of up to 100 characters whose occurrence in an input calls for the skill.",
    )
    frames: tuple[Phrase, ...] = Field(
        default=(), max_length=50, description="Names of the frames in which the skill applies."
    )
    tools: tuple[Phrase, ...] = Field(default=(), max_length=50, description="Names of the tools that the skill uses.")
    requires: tuple[Phrase, ...] = Field(
        default=(), max_length=50, description="What must be true before the first step."
    )
    goals: tuple[Line, ...] = Field(
        default=(),
        max_length=50,
        description="What the skill is good for: at most 50 goals of up to 500 characters.",
    )
    core: tuple[Line, ...] = Field(
        min_length=1, max_length=50, description="A skill has 1 to 50 steps of up to 500 characters."
    )
    details: str = Field(default="", max_length=MAX_CHARS)

    @property
    def content_hash(self) -> bytes:
        """Return the SHA-256 hash of the content. The layout of the file does not change it."""
        return hashlib.sha256(self.model_dump_json().encode()).digest()


def make_slug(title: str) -> str:
    """Return a title in the form of a skill's name, or "" if it has no character that a name may have.

    >>> make_slug("Roll back: a release (v2)")
    'roll-back-a-release-v2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).lstrip("-0123456789")[:60].rstrip("-")


def load_skills(own: Path | None = None) -> dict[str, SkillFile]:
    """Load the skills that ship with Newton; a skill in the folder `own` replaces the one of the same name.

    Raises ConfigError for the first mistake in a file.
    """
    return {**_load_shipped_skills(), **(_read_skills(own.expanduser()) if own else {})}


@functools.cache
def _load_shipped_skills() -> Mapping[str, SkillFile]:
    return _read_skills(data_folder("procedures"))


def _read_skills(folder: Path) -> dict[str, SkillFile]:
    return {path.parent.name: read_skill(path) for path in _iter_skill_files(folder)}


def read_skill(path: Path) -> SkillFile:
    """Read a SKILL.md file. Raises ConfigError with file, line and remedy of the first mistake."""
    front, text = load_front_matter(path)
    skill = validate_model(_add_bands(front, _select_fields(front), _SkillBody(path, text)), SkillFile)
    return check_name(front, skill, path.parent.name, "folder")


def find_skills(path: Path) -> list[SkillFile]:
    """Read the skill in a folder or a SKILL.md file, or all skills in a folder of such folders.

    Raises ConfigError for the first mistake, and if there is none.
    """
    if path.is_file():
        return [read_skill(path)]
    if (path / SKILL_FILE).is_file():
        return [read_skill(path / SKILL_FILE)]
    if not path.is_dir():
        raise ConfigError(f"{path} does not exist.", hint=f"Give a folder with a {SKILL_FILE}.")
    if found := [read_skill(one) for one in _iter_skill_files(path)]:
        return found
    raise ConfigError(
        f"{path} has no {SKILL_FILE}.", hint=f"Give a folder with a {SKILL_FILE}, or one of such folders."
    )


def _iter_skill_files(folder: Path) -> Iterator[Path]:
    for inner in list_folder(folder):
        if inner.name.startswith(".") or not inner.is_dir():
            continue
        names = {path.name for path in inner.iterdir()}
        if SKILL_FILE in names:
            yield inner / SKILL_FILE
        elif other := next((name for name in sorted(names) if name.lower() == SKILL_FILE.lower()), None):
            what = f"{inner / other} is not read, because its name is not spelled {SKILL_FILE}."
            raise ConfigError(what, hint="Rename the file.")


def _select_fields(front: YamlDocument) -> dict[str, object]:
    """Return the front matter without the fields that Newton ignores. Raises ConfigError for an unknown field."""
    value = front.value
    if not isinstance(value, dict):
        hint = "Write fields such as 'name: ...' and 'description: ...'."
        raise front.error((), "the front matter is not a mapping of fields.", hint)
    fields = cast("dict[str, object]", value)
    known = [name for name in SkillFile.model_fields if name not in _BANDS]
    for name in fields:
        if name not in known and name not in _IGNORED_FIELDS:
            hint = did_you_mean(name, {*known, *_IGNORED_FIELDS}) or f"The fields are {', '.join(known)}."
            raise front.error((name,), f"{name!r} is not a field of a skill's front matter.", hint)
    return {name: fields[name] for name in known if name in fields}


def _add_bands(front: YamlDocument, fields: dict[str, object], body: "_SkillBody") -> YamlDocument:
    """Return a document with `fields` and the goals, steps and details of the body, all with their line numbers."""
    lists = {"goals": body.goals, "core": body.steps}
    texts = {band: tuple(item.text for item in items) for band, items in lists.items()}
    lines: dict[YamlLocation, int] = dict(front.lines)
    for band, items in lists.items():
        if items:
            lines[(band,)] = items[0].lines.start + 1
            lines |= {(band, index): item.lines.start + 1 for index, item in enumerate(items)}
    return YamlDocument(front.path, {**fields, **texts, "details": body.details()}, lines)


class _Item(NamedTuple):
    """A list item. `lines` are its lines in the file, counted from 0; `plain` is True if it is a single paragraph."""

    text: str
    lines: range
    plain: bool


class _Section(NamedTuple):
    heading: SyntaxTreeNode
    blocks: list[SyntaxTreeNode]


class _SkillBody:
    """The Markdown of a skill, split into goals, steps and details."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.split("\n")
        self._first = len(text) - len(text.lstrip("\n")) + 1
        if (length := len(text.strip())) > MAX_CHARS:
            what = f"the text has {length:,} characters; the limit is {MAX_CHARS:,}."
            raise file_error(path, self._first, what, "Move long parts to other files of the skill.")
        self._root = SyntaxTreeNode(_BLOCKS.parse(text))
        self._sections = self._split_sections()
        self.goals = _items(self._lists(_GOALS)) if _GOALS in self._sections else []
        self.steps = self._find_steps()

    def _split_sections(self) -> dict[str, _Section]:
        """Return the sections "Goals" and "Steps" by title.

        A section ends at the next heading of the same or a higher level.
        """
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
                what = f"the heading {title.capitalize()!r} is repeated; the first is in line {first}."
                raise file_error(self._path, _line_number(node), what, "Merge the sections.")
            if title in (_GOALS, _STEPS):
                sections[title] = _Section(node, blocks)
        return sections

    def _lists(self, title: str) -> list[SyntaxTreeNode]:
        return [node for node in self._sections[title].blocks if node.type in _LISTS]

    def _find_steps(self) -> list[_Item]:
        """Return the items of the lists under the heading "Steps".

        Without this heading, return those of the first ordered list or, if there is none, of the first list.
        """
        if section := self._sections.get(_STEPS):
            if items := _items(self._lists(_STEPS)):
                return items
            what, hint = "there is no list under '## Steps'.", "Write each step in a line '1. ...' below '## Steps'."
            raise file_error(self._path, _line_number(section.heading), what, hint)
        goals = set(self._sections[_GOALS].blocks) if _GOALS in self._sections else set[SyntaxTreeNode]()
        nodes = [node for block in self._root.children if block not in goals for node in block.walk()]
        for kind in _LISTS:
            if first := next((node for node in nodes if node.type == kind), None):
                return _items([first])
        hint = "Add a heading '## Steps' and under it each step on a line: '1. ...'."
        raise file_error(self._path, self._first, "there is no list of steps.", hint)

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


def _items(lists: Iterable[SyntaxTreeNode]) -> list[_Item]:
    return [_item(node) for one in lists for node in one.children]


def _item(node: SyntaxTreeNode) -> _Item:
    first = node.children[0] if node.children else None
    text = first.children[0].content if first and first.type in ("paragraph", "heading") else ""
    return _Item(text, _line_range(node), plain=bool(text) and len(node.children) == 1)


def _line_range(node: SyntaxTreeNode) -> range:
    return range(*(node.map or (0, 0)))


def _line_number(node: SyntaxTreeNode) -> int:
    return _line_range(node).start + 1

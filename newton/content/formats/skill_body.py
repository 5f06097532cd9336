"""The Markdown of a skill, split into the goals, the steps and the rest of its text."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from newton.content.yaml_source import file_error

MAX_CHARS = 200_000
MAX_ITEM, MAX_ITEMS = 500, 50  # characters of an item of a list, and items

_GOALS, _STEPS = "goals", "steps"
_LISTS = ("ordered_list", "bullet_list")

# Only blocks are parsed; inline text stays as written.
_BLOCKS = MarkdownIt("commonmark").disable(["inline", "reference"])


class BodyItem(NamedTuple):
    """A list item. `lines` are its lines in the file, counted from 0; `plain` is True if it is a single paragraph."""

    text: str
    lines: range
    plain: bool


class BodySection(NamedTuple):
    heading: SyntaxTreeNode
    blocks: list[SyntaxTreeNode]


class SkillBody:
    """The Markdown of a skill, split into goals, steps and details."""

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

"""Division of source code and structured data by definitions, such as functions, classes and keys. Linear and pure.

The indentation says where a definition ends, and patterns for families of languages say where one begins. No language
is parsed: incomplete code and languages without a known pattern are divided too, the latter only at blank lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from newton.content.sections import DocumentSection, LineSpan, ParsedDocument, join_heading

# Definitions with together at most as many characters share a section: about one passage.
SECTION_CHARS = 1_000
TAB_WIDTH = 4
MAX_LINE_CHARS = 1_000  # a longer line, of generated code, begins no definition
MAX_NAME_CHARS = 60
MAX_DEPTH = 12  # of definitions inside each other
OPEN_INDENT = -1  # of a definition that only the next definition ends, such as a table of TOML


class CodeDefinition(NamedTuple):
    """The first line of a definition, such as a function: its name and indentation.

    A container, such as a class, has definitions of its own inside.
    """

    name: str
    indent: int
    is_container: bool


@dataclass(slots=True)
class _Node:
    """A definition with its lines, from `first` up to but not including `end`, and the definitions inside it."""

    name: str
    indent: int
    first: int
    is_container: bool = True
    end: int = 0
    children: "list[_Node]" = field(default_factory=list["_Node"])


class _Piece(NamedTuple):
    """Consecutive lines of a section: a definition, or the lines between two (`name` is then empty).

    `path` has the names of the definitions around them; `end` is the line after the last one.
    """

    path: tuple[str, ...]
    name: str
    first: int
    end: int


_MODIFIERS = (
    "export|default|public|private|protected|internal|static|abstract|final|sealed|async|unsafe|extern|const|inline|"
    "virtual|override|open|data|partial|local|create|or|replace|pub|crate|declare|readonly|suspend|companion|case|"
    "implicit|temporary|temp|unique|materialized"
)
_KEYWORD = re.compile(
    rf"(?P<indent>[ \t]*)(?>(?:(?:{_MODIFIERS})(?:\([\w:, ]*\))?[ \t]+)*)"
    r"(?P<keyword>def|class|function\*?|fun|fn|func|sub|proc|procedure|struct|enum|trait|interface|module|namespace|"
    r"object|record|protocol|extension|contract|union|message|service|defmodule|defp|defn|defun|defmacro|table|view|"
    r"trigger|type|resource|actor|impl|val|macro)\b[ \t]*+(?>(?:if[ \t]+not[ \t]+exists[ \t]+)?)"
    r"(?>(?:\([^()\n]*\)[ \t]*)?)"
    r"(?>(?:<(?:[^<>\n{]|<[^<>\n{]*>)*>[ \t]*)?)(?P<name>[\w$\"`][\w$.:!?\"`\-]*)",
    re.IGNORECASE,
)
_CONTAINERS = frozenset(
    (
        *("class", "struct", "enum", "trait", "interface", "module", "namespace", "object", "record", "protocol"),
        *("extension", "contract", "union", "service", "defmodule", "impl", "actor"),
    )
)
# Keywords that are ordinary words too: after the name of a definition comes one of these characters.
_AMBIGUOUS = frozenset(("type", "record", "object", "val", "message", "resource", "table", "view", "macro", "sub"))
_AFTER_NAME = ("", "{", "(", "=", "<")
_ARROW = re.compile(
    r"(?P<indent>[ \t]*)(?:export[ \t]+)?(?:default[ \t]+)?(?:const|let|var)[ \t]+(?P<name>[\w$]+)[^=\n]*=[ \t]*"
    r"(?:async[ \t]*)?(?:function\b|\([^\n]*=>|\([^()\n]*$|[\w$]+[ \t]*=>)"
)
# a function of C or a method of Java: a name before parentheses, at the end of which is no semicolon
_CALLABLE = re.compile(
    r"(?P<indent>[ \t]*+)(?>(?:[\w:<>,~*&\[\]?.@]++[ \t]++)*)[*&]*+(?P<name>[~\w$][\w:~$]*+)[ \t]*+"
    r"\([^;\n]*(?<![;,\s])$"
)
_NO_CALLABLE = re.compile(
    r"[ \t]*(?:\}?[ \t]*(?:else|catch|finally)\b|(?:if|for|while|switch|return|do|using|lock|foreach|with|match|when|"
    r"await|throw|new|delete|case|assert|sizeof|synchronized|guard|repeat|until|unless|elif)\b|[@#*.(]|[\w.$]+\()"
)
_SHELL_FUNCTION = re.compile(r"(?P<indent>[ \t]*)(?:function[ \t]+)?(?P<name>[\w.:-]+)[ \t]*\(\)[ \t]*\{?")
_LISP = re.compile(r"(?P<indent>[ \t]*)\(def[\w-]*[ \t]+(?P<name>[^\s()\"]+)")
_KEY = re.compile(r"(?P<indent>[ \t]*)(?:-[ \t]+)?(?P<name>[\w.$/\"'-]+)[ \t]*:[ \t]*(?:[|>&!][^\n]*|#[^\n]*)?$")
_JSON_KEY = re.compile(r"(?P<indent>[ \t]*)\"(?P<name>[^\"\n]*)\"[ \t]*:[ \t]*[\[{][ \t]*$")
_TABLE_KEY = re.compile(r"(?P<indent>)\[{1,2}(?P<name>[^\]\n]+)\]{1,2}[ \t]*(?:[#;][^\n]*)?$")

# A line that continues or closes a definition although it is not indented more.
_CONTINUES = re.compile(
    r"[ \t]*(?:[)\]}{]|end\b|fi\b|done\b|esac\b|then\b|begin\b|\*/|(?:public|private|protected|signals|slots)[\w \t]*:|"
    r"where\b|\|)",
    re.IGNORECASE,
)
_ATTACHED = re.compile(r"[ \t]*(?:@|#|//|/\*|\*|--|;|%|\[[\w.:]|\"\"\"|'''|template\b)")

_C_STRINGS = r"\"(?:\\.|[^\"\\\n])*\"?"
_MASKS: Mapping[str, re.Pattern[str]] = {
    "python": re.compile(
        r"\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)|#[^\n]*|"
        rf"{_C_STRINGS}|'(?:\\.|[^'\\\n])*'?",
        re.DOTALL,
    ),
    "hash": re.compile(rf"(?<![\w$\{{])#[^\n]*|{_C_STRINGS}|'(?:\\.|[^'\\\n])*'?"),
    "c": re.compile(rf"//[^\n]*|/\*.*?(?:\*/|\Z)|{_C_STRINGS}|'(?:\\[^\n']+|[^'\\\n])'", re.DOTALL),
    "script": re.compile(rf"//[^\n]*|/\*.*?(?:\*/|\Z)|{_C_STRINGS}|'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`?", re.DOTALL),
    "dash": re.compile(rf"--\[\[.*?(?:\]\]|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|{_C_STRINGS}|'(?:[^'\n])*'?", re.DOTALL),
    "lisp": re.compile(rf";[^\n]*|{_C_STRINGS}"),
}
_FAMILIES: Mapping[str, str] = {
    "python": "py pyi pyw",
    "hash": "rb sh bash zsh fish pl pm r jl nim tcl cr ex exs coffee gd ps1 cmake mk tf graphql gql makefile"
    " dockerfile",
    "c": "c h cc cpp cxx hpp hh hxx m mm java go rs cs kt kts swift scala proto sol zig v sv glsl hlsl thrift",
    "script": "js mjs cjs jsx ts mts cts tsx php dart groovy gradle css scss less vue svelte",
    "dash": "sql lua hs elm adb ads vhd",
    "lisp": "lisp cl clj cljs el scm s asm",
    "yaml": "yaml yml",
    "json": "json json5",
    "toml": "toml ini cfg conf properties env",
}
FAMILY_BY_SUFFIX = {f".{suffix}": family for family, suffixes in _FAMILIES.items() for suffix in suffixes.split()}
_PATTERNS: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "python": (_KEYWORD,),
    "hash": (_KEYWORD, _SHELL_FUNCTION),
    "c": (_KEYWORD, _CALLABLE),
    "script": (_KEYWORD, _ARROW, _CALLABLE),
    "dash": (_KEYWORD,),
    "lisp": (_LISP,),
    "yaml": (_KEY,),
    "json": (_JSON_KEY,),
    "toml": (_TABLE_KEY,),
}
_DATA_FAMILIES = frozenset(("yaml", "json", "toml"))


def parse_code(text: str, suffix: str, *, has_lines: bool = True) -> ParsedDocument:
    """Divide code or data by its definitions. `suffix` is that of the file name, such as ".py".

    The heading of a section is the path of its definition. Without `has_lines`, sections have no line numbers, because
    the lines of `text` are not those of the file.
    """
    family = FAMILY_BY_SUFFIX.get(suffix.lower(), "")
    lines = [line.rstrip() for line in text.split("\n")]
    root = _build_tree(lines, _mask(text, family).split("\n"), family)
    pieces = _merge_pieces(list(_iter_pieces(root, (), lines)), lines)
    sections = (_to_section(piece, lines, has_lines=has_lines) for piece in pieces)
    return ParsedDocument("", tuple(section for section in sections if section.paragraphs))


def _mask(text: str, family: str) -> str:
    """Return the text with its comments and strings replaced by spaces, of the same length and with the same lines."""
    pattern = _MASKS.get(family)
    return pattern.sub(_blank, text) if pattern else text


def _blank(match: re.Match[str]) -> str:
    return "\n".join(" " * len(line) for line in match[0].split("\n"))


def find_definition(line: str, family: str) -> CodeDefinition | None:
    """Return the definition that a line without comments and strings begins; None if it begins none.

    `family` is the name of a group of similar languages.

    >>> find_definition("    async def run(self) -> None:", "python")
    CodeDefinition(name='run', indent=4, is_container=False)
    >>> find_definition("func (s *Server) Run(port int) error {", "c").name
    'Run'
    >>> find_definition("    if (ready) {", "c")
    """
    if len(line) > MAX_LINE_CHARS:
        return None
    for pattern in _PATTERNS.get(family, ()):
        if pattern is _CALLABLE and _NO_CALLABLE.match(line):
            continue
        if (match := pattern.match(line)) is None or (pattern is _KEYWORD and not _is_definition(match, line)):
            continue
        name, keyword = match["name"].strip("\"'`:"), match.groupdict().get("keyword") or ""
        indent = OPEN_INDENT if pattern is _TABLE_KEY else _indent(match["indent"])
        is_container = family in _DATA_FAMILIES or keyword.lower() in _CONTAINERS
        return CodeDefinition(name[:MAX_NAME_CHARS], indent, is_container) if name else None
    return None


def _is_definition(match: re.Match[str], line: str) -> bool:
    """Return False for words that only look like the keyword of a definition, such as a column called `type`."""
    return match["keyword"].lower() not in _AMBIGUOUS or line[match.end() :].lstrip()[:1] in _AFTER_NAME


def _indent(space: str) -> int:
    return len(space.expandtabs(TAB_WIDTH))


def _build_tree(lines: Sequence[str], masked: Sequence[str], family: str) -> _Node:
    """Return the definitions of a text as a tree, by the indentation of its lines.

    `masked` are the lines without strings.
    """
    root = _Node("", OPEN_INDENT - 1, 0)
    stack = [root]
    for number, line in enumerate(masked):
        if not line.strip():
            continue
        found = find_definition(line.rstrip(), family)
        indent = found.indent if found else _indent(line[: len(line) - len(line.lstrip())])
        is_neutral = found is None and (_CONTINUES.match(line) is not None or line.startswith("#"))
        while indent <= stack[-1].indent and not (is_neutral and indent == stack[-1].indent):
            if is_neutral and line.startswith("#"):  # a directive of the preprocessor inside a function
                break
            stack.pop().end = number
        if found and stack[-1].is_container and len(stack) <= MAX_DEPTH:
            first = _find_beginning(lines, number, floor=_find_floor(stack[-1]))
            node = _Node(found.name, indent, first, found.is_container)
            if stack[-1].children and stack[-1].children[-1].end > first:
                stack[-1].children[-1].end = first
            stack[-1].children.append(node)
            stack.append(node)
    for node in stack:
        node.end = len(lines)
    return root


def _find_floor(parent: _Node) -> int:
    """Return the first line that a further definition in `parent` may begin with."""
    return parent.children[-1].first + 1 if parent.children else parent.first + (parent.indent > OPEN_INDENT)


def _find_beginning(lines: Sequence[str], number: int, *, floor: int) -> int:
    """Return the number of the first of the comments and decorators directly above a definition."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    while number > floor and _ATTACHED.match(lines[number - 1]):
        above = lines[number - 1]
        if len(above) - len(above.lstrip()) < indent:
            break
        number -= 1
    return number


def _iter_pieces(node: _Node, path: tuple[str, ...], lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield the lines of a definition: as a whole if they are few, else its definitions and the lines between them."""
    if not node.children or (path and _count_chars(lines, node.first, node.end) <= SECTION_CHARS):
        yield _Piece(path[:-1], node.name, node.first, node.end)
        return
    at = node.first
    for child in node.children:
        if child.first > at:
            yield _Piece(path, "", at, child.first)
        yield from _iter_pieces(child, (*path, child.name), lines)
        at = child.end
    if node.end > at:
        yield _Piece(path, "", at, node.end)


def _count_chars(lines: Sequence[str], first: int, end: int) -> int:
    return sum(len(line) + 1 for line in lines[first:end])


def _merge_pieces(pieces: Sequence[_Piece], lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield the pieces, neighbours in the same definition together as far as they fit into a section."""
    merged: _Piece | None = None
    for piece in pieces:
        if merged and piece.path == merged.path and _count_chars(lines, merged.first, piece.end) <= SECTION_CHARS:
            names = ", ".join(filter(None, (merged.name, piece.name)))
            merged = merged._replace(name=names, end=piece.end)
            continue
        if merged:
            yield merged
        merged = piece
    if merged:
        yield merged


def _to_section(piece: _Piece, lines: Sequence[str], *, has_lines: bool) -> DocumentSection:
    paragraphs = list(_iter_paragraphs(lines, piece.first, piece.end))
    heading = join_heading((*piece.path, piece.name))
    return DocumentSection(
        heading,
        tuple(text for text, _ in paragraphs),
        tuple(span for _, span in paragraphs) if has_lines else (),
        place=shorten_place(".".join(filter(None, (*piece.path, piece.name)))),
        by_line=True,
    )


def shorten_place(place: str) -> str:
    """Return the name of a place in a file, without its end if it is longer than MAX_NAME_CHARS.

    >>> shorten_place("Store.get, put")
    'Store.get, put'
    """
    return place if len(place) <= MAX_NAME_CHARS else f"{place[: MAX_NAME_CHARS - 1]}…"


def _iter_paragraphs(lines: Sequence[str], first: int, end: int) -> Iterator[tuple[str, LineSpan]]:
    """Yield the lines between blank lines. A paragraph begins with the blank lines above it, except the first one."""
    blank, is_first = 0, True
    for has_text, group in groupby(range(first, end), key=lambda number: bool(lines[number].strip())):
        numbers = list(group)
        if not has_text:
            blank = 0 if is_first else len(numbers)
            continue
        start = numbers[0] - blank
        yield "\n".join(lines[start : numbers[-1] + 1]), (start + 1, numbers[-1] + 1)
        blank, is_first = 0, False

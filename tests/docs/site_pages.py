"""Read the pages of the documentation: their links, the anchors of their headings and the commands in them."""

import itertools
import re
import shlex
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.docs.reference import BUILT, ROOT

DOCS = ROOT / "docs"
PARSER = MarkdownIt("commonmark").enable("table")
SHELL = ("", "sh", "console", "shell")  # info strings of blocks with commands


def find_pages() -> list[Path]:
    """Return README.md and the committed pages in docs, not built ones, which may be there and outdated."""
    pages = (page for page in DOCS.rglob("*.md") if page.parent.name != "reference")
    return sorted([ROOT / "README.md", *(page for page in pages if not is_built(page))])


def is_built(page: Path) -> bool:
    """Return True for a file that is built from the code and not committed."""
    return page.is_relative_to(ROOT) and page.relative_to(ROOT).as_posix() in BUILT


def read_page(page: Path) -> str:
    """Return the text of a page; a built one is built."""
    return BUILT[page.relative_to(ROOT).as_posix()]() if is_built(page) else page.read_text(encoding="utf-8")


@cache
def parse_page(page: Path) -> tuple[Token, ...]:
    """Return the block tokens of a page."""
    return tuple(PARSER.parse(read_page(page)))


def _inline(page: Path) -> Iterator[Token]:
    for token in parse_page(page):
        yield from token.children or ()


def links(page: Path) -> list[str]:
    """Return the targets of links and images that are not on another host."""
    targets = [str(token.attrGet("href") or token.attrGet("src") or "") for token in _inline(page)]
    return [target for target in targets if target and not re.match(r"[a-z]+:", target)]


def slug(heading: str) -> str:
    """Return the anchor that Python-Markdown gives to a heading."""
    text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page; a repeated heading has a number after it."""
    tokens = parse_page(page)
    found: set[str] = set()
    for opening, content in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            words = "".join(child.content for child in content.children or () if child.type in ("text", "code_inline"))
            name = slug(words)
            found.add(next(one for one in (name, *(f"{name}_{i}" for i in range(1, 1000))) if one not in found))
    return frozenset(found)


def find_broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead out of the documentation, to no file or to no heading."""
    broken = list[str]()
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = page.parent == ROOT or DOCS in target.parents
        exists = is_built(target) or (target.exists() and target.parent.name != "reference")
        if not inside or not exists or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def _lines(page: Path) -> Iterator[tuple[str, bool]]:
    for token in parse_page(page):
        if token.type in ("fence", "code_block") and token.info.strip() in SHELL:
            text = token.content.replace("\\\n", " ")
            typed = re.findall(r"^\$ (.+)$", text, flags=re.MULTILINE) if token.info == "console" else text.splitlines()
            yield from ((line, True) for line in typed)
    yield from (
        (token.content, False) for token in _inline(page) if token.type == "code_inline" and token.content.isascii()
    )


def _words(line: str) -> list[list[str]]:
    """Return the words of each command of a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";|&()"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def _arguments(words: list[str]) -> list[str] | None:
    """Return the arguments of `newton`, or None for another command. A redirection ends them."""
    line = "\0".join(words)
    prefix = (
        r"(?:[A-Z_]+=[^\0]*\0)*(?:docker\0compose\0(?:exec\0newton\0newton|run\0--rm\0newton)|(?:scripts/)?newton)\0"
    )
    match = re.match(prefix + "([a-z].*)", line, flags=re.DOTALL)
    return list(itertools.takewhile(lambda word: word not in ("<", ">"), match[1].split("\0"))) if match else None


def commands(page: Path) -> list[tuple[list[str], bool]]:
    """Return the arguments of each `newton` command of a page, and whether it is a line of a shell and so complete."""
    found = [
        (_arguments(words), complete) for line, complete in _lines(page) if "newton " in line for words in _words(line)
    ]
    return [(arguments, complete) for arguments, complete in found if arguments]

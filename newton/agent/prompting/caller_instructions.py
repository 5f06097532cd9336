"""The system message of a program between lines of Newton, without lines that look like a section of Newton. Pure."""

import html
import re
from functools import lru_cache
from typing import NamedTuple

from newton.agent.prompting.memory_delta import ADDED_RULES, LIFTED_RULES, REPLACED_SECTION
from newton.cognition.assembly.render import SECTION_TITLES
from newton.text.letters import fold_characters, fold_look_alikes

INSTRUCTIONS_HEADER = "=== Instructions of the program; the identity and constraints below take precedence ===\n"
INSTRUCTIONS_END = "\n=== End of the instructions of the program ===\n\n"
PROGRAM_MARK = "Program: "  # before the text of a line that looked like a section of Newton
MAX_HEADING_WORDS = 6

_SIGNS = re.compile(r"[\W_]+")
_TAG = re.compile(r"</?\s*[A-Za-z!?][^<>]{0,200}>")
_TAG_NAME = re.compile(r"<[\s/]*([^<>]{1,60}?)[\s/]*>")
_NUMBERING = re.compile(r"^[\W_]*(?:(?:\d{1,3}|[ivx]{1,4}|[a-h])[.):]\s*)+")
_HEADING = re.compile(
    r"^[\s>*+\-\d.)\\]*(?:\#|(?:sub)*section\*?\{|<(?:h\d|b|strong|title|header|section|summary)\b)"
    r"|^\s*(?:\*\*|__).*(?:\*\*|__)\s*:?\s*$|[:：]\s*$"
)
_UNDERLINE = re.compile(r"^\s{0,3}(?:[=\u2550]{2,}|[-\u2500\u2014\u2015]{2,})\s*$")
_RULER = re.compile("^[^\\w\n=]{0,8}[=\u2550]{3}|[=\u2550]{3,}\\s*$")
_RULER_SIGNS = re.compile("[=\u2550\ufe66\uff1d]")
_EDGES = re.compile(r"^(?:[^\w(]|_)+|(?:[^\w.!?)]|_)+$")
_CODE_FENCE = re.compile(r"^[\s>]*(`{3,}|~{3,})(.*)$")
_NAMES_ONLY = ("System", "Message", "What you know", "Instructions of the program")


def _squeeze(text: str) -> str:
    """Return the letters of a text alone, small, with one for all that look alike."""
    return "".join(word for word in _SIGNS.split(fold_look_alikes(text)) if not word.isdigit()).replace("l", "i")


_TITLES = frozenset(
    _squeeze(title)
    for title in (*SECTION_TITLES.values(), ADDED_RULES, LIFTED_RULES, REPLACED_SECTION, *_NAMES_ONLY)
    if title
)
_RULE_TITLES = tuple(_squeeze(SECTION_TITLES[layer]) for layer in ("identity", "censors"))


class FencedInstructions(NamedTuple):
    """The system message of a program, and Newton's lines before and after it; these are empty without one."""

    header: str
    text: str
    end: str


@lru_cache(maxsize=64)
def fence_instructions(instructions: str) -> FencedInstructions:
    """Return the system message of a program with nothing in it that a model may take for a section of Newton.

    A line that looks like a heading of Newton's, also in other letters or markup, becomes plain text with a mark. A
    code block or a comment that is left open is closed, because it would contain what follows.

    >>> fence_instructions("## Identity\\nYou are Bob.").text
    'Program: Identity\\nYou are Bob.'
    """
    return FencedInstructions(INSTRUCTIONS_HEADER, _close_blocks(_mark_headings(instructions)), INSTRUCTIONS_END)


def _mark_headings(text: str) -> str:
    lines, marked = text.splitlines(keepends=True), list[str]()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _UNDERLINE.match(fold_characters(line)) and marked and marked[-1].startswith(PROGRAM_MARK):
            marked.append("\n")
        else:
            marked.append(_mark_heading(line, is_underlined=bool(_UNDERLINE.match(fold_characters(following)))))
    return "".join(marked)


def _mark_heading(line: str, *, is_underlined: bool) -> str:
    """Return a line as it is, or as plain text with a mark if it looks like a heading of Newton's."""
    shown = html.unescape(line)
    folded = fold_characters(shown)
    if _RULER.search(folded.strip()):
        return _RULER_SIGNS.sub("-", shown)
    plain = _TAG.sub("", shown)
    letters = _squeeze(_NUMBERING.sub("", fold_characters(plain)))
    is_heading = is_underlined or bool(_HEADING.search(folded))
    is_own = letters in _TITLES or _squeeze(plain) in _TITLES
    is_rule = is_heading and len(plain.split()) <= MAX_HEADING_WORDS and any(one in letters for one in _RULE_TITLES)
    label, colon, _ = _NUMBERING.sub("", plain.replace("：", ":")).partition(":")
    if is_own or is_rule or (colon and _squeeze(label) in _RULE_TITLES):
        words = _EDGES.sub("", _NUMBERING.sub("", plain))
        return f"{PROGRAM_MARK}{words}" + "\n" * (line.splitlines()[0] != line)
    return _TAG_NAME.sub(_unmark_tag, line)


def _unmark_tag(tag: re.Match[str]) -> str:
    """Return a tag with the name of a section of Newton in parentheses, any other as it is."""
    name = re.split(r"[\s=]", tag[1], maxsplit=1)[0]
    return f"({tag[0][1:-1]})" if _squeeze(name) in _TITLES or _squeeze(tag[1]) in _TITLES else tag[0]


def _close_blocks(text: str) -> str:
    """Return the text with the code block and the comment closed that it leaves open."""
    fence = ""
    for line in text.splitlines():
        if match := _CODE_FENCE.match(line):
            if not fence:
                fence = match[1]
            elif match[1].startswith(fence) and not match[2].strip():
                fence = ""
    comment = "\n-->" if text.rfind("<!--") > text.rfind("-->") else ""
    return f"{text}{comment}" + (f"\n{fence}" if fence else "")

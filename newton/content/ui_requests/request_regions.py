"""Regions of a request: what it instructs, and what it only quotes. Pure.

Quoted are blocks between tags or fences, JSON messages, diffs, strings in quotation marks, the lines of speakers and
what follows a label such as "Message:".
"""

import re
from typing import Literal, NamedTuple

BLOCK, STRING = "\x01", "\x02"  # stand for what was quoted

_OPENING = re.compile(r"<(\w{1,40})\b[^>\n]{0,200}>|```|\[\s{0,20}\{\s{0,20}\"(?:role|from|author)\"")
_JSON_END = re.compile(r"\}\s{0,20}\]")
_STRINGS = re.compile(r"\"[^\"\n]{12,2000}\"|“[^”\n]{12,2000}”|«[^»\n]{12,2000}»|„[^“\n]{12,2000}“")
_DIFF = re.compile(r"^(?:[+-]\S.*|[+-] {2,}.*|@@.*|diff --git.*)$", re.MULTILINE)
_HEAD = re.compile(r"[^\w\n]{0,4}([^\W\d_]{1,14}(?: [^\W\d_]{1,10})?|\{\{\w{1,40}\}\})[^\w\n]{0,3}(?:[:：]|\*\*$|\]|$)")
_LABEL = re.compile(
    r"(?:^|(?<=[.!?。] ))[^\w\n]{0,4}([^\W\d_][\w'’-]{0,30}(?: [\w'’-]{1,30}){0,3})\*{0,2}[:：]\*{0,2}(?:\s|(?<=：)|$)"
)
_SPEAKERS = frozenset(
    [
        "user",
        "human",
        "assistant",
        "ai",
        "bot",
        "model",
        "system",
        "me",
        "you",
        "chatgpt",
        "claude",
        "customer",
        "agent",
        "q",
        "a",
        "you said",
        "chatgpt said",
        "nutzer",
        "assistent",
        "utilisateur",
        "assistante",
        "usuario",
        "asistente",
        "usuário",
        "utente",
        "пользователь",
        "ассистент",
        "用户",
        "助手",
    ]
)


class RequestRegions(NamedTuple):
    """The parts of a text. `order` has a letter for each run: i instruction, p payload, q speaker, b block."""

    instructions: list[str]
    labels: list[str]
    payloads: list[str]
    counts: dict[str, int]
    order: str


def divide(text: str) -> RequestRegions:
    """Return the regions of a text."""
    text, tags, messages = _replace_blocks(text)
    text, changes = _DIFF.subn(BLOCK, text)
    text, strings = _STRINGS.subn(STRING, text)
    lines = text.split("\n")
    divider = _Divider([_find_head(line) for line in lines])
    for line, head in zip(lines, divider.heads, strict=True):
        divider.add_line(line, head)
    counts = {"tags": tags, "messages": messages, "changes": changes, "strings": strings, "speakers": divider.speakers}
    order = re.sub(r"(.)\1+", r"\1", divider.order)
    return RequestRegions(divider.instructions, divider.labels, divider.payloads, counts, order)


class _Divider:
    """Reads the lines of a text in turn."""

    def __init__(self, heads: list[str]) -> None:
        self.heads = heads
        self.instructions, self.labels, self.payloads = list[str](), list[str](), list[str]()
        self.order, self.speakers = "", 0
        self._mode: Literal["i", "p", "q"] = "i"
        repeated = {head for head in heads if head and heads.count(head) > 1}
        self._names = _SPEAKERS | (repeated if len(repeated) > 1 else set[str]())

    def add_line(self, line: str, head: str) -> None:
        if line == BLOCK:
            self._mode, self.order = "i", f"{self.order}b"
        elif not line.strip():
            self._end_paragraph()
        elif head in self._names:
            self._mode, self.order, self.speakers = "q", f"{self.order}q", self.speakers + 1
        elif self._mode != "q":
            self._add_words(line)

    def _end_paragraph(self) -> None:
        if self._mode == "q" or (self._mode == "p" and len(self.payloads[-1].split()) > 2):
            self._mode = "i"

    def _add_words(self, line: str) -> None:
        label = _LABEL.search(line)
        if label and (self.order or label.start() > 0):
            if before := line[: label.start()].strip():
                self._instruct(before)
            self.labels.append(label[1].lower())
            self._mode, self.order = "p", f"{self.order}p"
            self.payloads.append(line[label.end() :])
            return
        if label:
            self.labels.append(f"^{label[1].lower()}")
        if self._mode == "p" and self.payloads[-1] == "":
            self.payloads.append(line)
        else:
            self._mode = "i"
            self._instruct(line)

    def _instruct(self, line: str) -> None:
        self.instructions.append(line)
        self.order += "i"


def _find_head(line: str) -> str:
    """Return the name with which a line begins as that of a speaker does, in lower case, or an empty string."""
    match = _HEAD.match(line)
    return match[1].lower() if match else ""


def _replace_blocks(text: str) -> tuple[str, int, int]:
    """Return the text with a mark for each block, and how many blocks and lists of messages there were."""
    parts, position, start, tags, messages = list[str](), 0, 0, 0, 0
    while opening := _OPENING.search(text, position):
        end = _find_end(text, opening)
        position = opening.end() if end < 0 else end
        if end < 0:
            continue
        parts += [text[start : opening.start()], BLOCK]
        start = end
        if opening[0].startswith("["):
            messages += 1
        else:
            tags += 1
    return "\n".join([*parts, text[start:]]), tags, messages


def _find_end(text: str, opening: re.Match[str]) -> int:
    """Return the index after the end of a block, -1 if it has none."""
    if opening[0].startswith("["):
        match = _JSON_END.search(text, opening.end())
        return match.end() if match else -1
    closing = f"</{opening[1]}>" if opening[1] else opening[0]
    found = text.find(closing, opening.end())
    return -1 if found < 0 else found + len(closing)

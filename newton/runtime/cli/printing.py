"""Printing of text and JSON with control characters escaped. All output of the command line passes through it."""

import json
import re
import textwrap

from newton.errors import NewtonError
from newton.runtime.cli.command_context import current_terminal

# Control and direction characters, which could write to the clipboard or disguise text, and surrogates, which cannot be
# encoded.
_UNSAFE = r"\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSAFE}]")
_UNSAFE_IN_JSON = re.compile(f"[{_UNSAFE}]")  # JSON itself escapes the rest
_FIRST_COLUMN = re.compile(r"\S+(?: \S+)*\s{2,}|\s{8,}")


def visible(text: str) -> str:
    r"""Replace terminal control characters by visible escapes, such as `\x1b`; keep line breaks.

    >>> print(visible("Yes.\x1b]52;c;cm0gLXJm\x07\u202e\r\nNo."))
    Yes.\x1b]52;c;cm0gLXJm\x07\u202e
    No.
    """
    return _UNSAFE_IN_TEXT.sub(_escape, text.replace("\r\n", "\n"))


def to_json(value: object) -> str:
    r"""Serialize a value as JSON that is safe to print in a terminal.

    >>> print(to_json("é \x1b \x9b \u202e"))
    "é \u001b \u009b \u202e"
    """
    return _UNSAFE_IN_JSON.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str = "", *, start: str = "", end: str = "\n", to_stderr: bool = False, flush: bool = False) -> None:
    """Print a text with its control characters escaped. `start` and `end` are printed as they are."""
    terminal = current_terminal()
    terminal.write(f"{start}{visible(text)}{end}", to_stderr=to_stderr)
    if flush:
        terminal.flush(to_stderr=to_stderr)


def fit_lines(text: str, columns: int | None) -> str:
    """Break the lines of a text between words, so that they fit into a terminal; None columns leave it as it is.

    The second column of a table stays a column, unless it begins beyond the middle.

    >>> print(fit_lines("/undo   take back what was learnt", 24))
    /undo   take back what
            was learnt
    """
    if columns is None:
        return text
    return "\n".join(_fit_line(line, columns) for line in text.split("\n"))


def print_notice(text: str) -> None:
    """Print a notice on standard error, in a terminal with its lines broken between words."""
    terminal = current_terminal()
    terminal.flush()  # keeps the order if both streams go to one file
    say(fit_lines(text, terminal.columns()), to_stderr=True)


def _fit_line(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    table = _FIRST_COLUMN.match(line)
    indent = len(table[0]) if table and len(table[0]) * 5 <= columns * 3 else len(line) - len(line.lstrip())
    broken = textwrap.wrap(
        line, columns, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(broken)


def print_error(error: NewtonError, exit_status: int, *, as_json: bool) -> None:
    """Print an error on standard error: the problem on one line and the remedy on the next, or both as JSON."""
    if as_json:
        body = {"error": {"code": error.code, "detail": error.what, "hint": error.hint}, "status": exit_status}
        say(to_json(body), to_stderr=True)
    else:
        say(f"newton: {error.what}\n  {error.hint}", to_stderr=True)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

"""The one place where the command line prints, so that a terminal obeys nobody's words but Newton's."""

import json
import re
import sys

# What a terminal obeys: it may be told to write to the clipboard, or to look as if something else had been said. And
# halves of characters, such as bytes of a file's name that are no text, which nothing can print.
_ORDERS = r"\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_SPOKEN = re.compile(rf"[\x00-\x08\x0b-\x1f{_ORDERS}]")
_IN_JSON = re.compile(f"[{_ORDERS}]")  # JSON itself escapes the rest


def visible(text: str) -> str:
    r"""A text with what a terminal would obey told instead.

    >>> print(visible("Yes.\x1b]52;c;cm0gLXJm\x07\u202e\r\nNo."))
    Yes.\x1b]52;c;cm0gLXJm\x07\u202e
    No.
    """
    return _SPOKEN.sub(_told, text.replace("\r\n", "\n"))


def json_of(value: object) -> str:
    r"""JSON that a terminal may be shown, and that says the same.

    >>> print(json_of("é \x1b \x9b \u202e"))
    "é \u001b \u009b \u202e"
    """
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str = "", *, start: str = "", end: str = "\n", aside: bool = False, flush: bool = False) -> None:
    """Prints; `aside` on standard error. Only `start` and `end`, which are Newton's, are printed as they are."""
    print(start, visible(text), sep="", end=end, file=sys.stderr if aside else sys.stdout, flush=flush)


def _told(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

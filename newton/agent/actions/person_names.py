"""Names, numbers and files that a person gives in their message and in all texts that are theirs. Pure."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from newton.agent.actions.link_text import find_links
from newton.agent.actions.outbound_rules import split_tokens
from newton.text.languages import detect_language
from newton.text.letters import fold
from newton.text.numerals import cut_pieces, find_numbers
from newton.text.sentences import STOP_WORDS
from newton.text.stems import stem_word
from newton.text.time_expressions import find_mentioned_times

FILE = re.compile(r"\.?[\w-]+(?:\.[\w-]+)*\.[^\W\d_]\w{0,9}|\.[^\W\d_][\w-]+")
NUMERAL = re.compile(r"[-+€$£]? ?\d[\d.,' ]*(?: ?(?:[^\W\d_]{1,4}|[€$£%]))?")
_UNIT = re.compile(r"[^\W_](?:[\w-]*[^\W_])?|[.,:;!?)]")  # a word, or the end of one that none describes
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
RECIPIENTS = re.compile(
    r"recipient|receiver|channel|contact|payee|beneficiary|creditor|person|attendee|guest|invite|member|handle|account|iban"
    r"|(?:^|_)(?:to|cc|bcc|chat|room|group|user|people|address|e?mail|phone|who|whom)s?(?:$|_)"
)  # in the names of arguments that say to whom
ACCOUNT = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z\d]{2,4}){3,9}")  # of a bank
MOMENT = datetime(2000, 1, 1, tzinfo=UTC)  # any: whether a text names a time does not depend on it


@dataclass(frozen=True)
class PersonNames:
    """The names that the person gives in the message that the turn answers, and in all texts that are theirs.

    `system` is text in which words say little, because it is long, and paths count.
    """

    asked: str
    trusted: Sequence[str]
    system: str = ""

    def has_name(self, part: str) -> bool:
        """Return whether a short value is named: a number, or words."""
        if NUMERAL.fullmatch(part):
            return not self._numbers.isdisjoint(list_numbers([part]))
        return all(one in self._words for one in split_tokens(fold(part)))

    def has_recipient(self, part: str, argument: str) -> bool:
        """Return whether a channel or a person is named as a whole, and not by a word that describes another word.

        >>> names = PersonNames("", ["Tell #team and Ben Weiss that it is no random news."])
        >>> [names.has_recipient(one, "to") for one in ("team", "Ben Weiss", "random", "team-x", "Ben Weiss 2")]
        [True, True, False, False, False]
        >>> [PersonNames("", [f"Pay {one} back it."]).has_recipient(one, "to") for one in ("Vera", "vera")]
        [True, False]
        """
        if part[:1].isupper() and any(
            re.search(rf"(?<!\w){re.escape(part)} (?=[^\W\dA-Z])", one) for one in self.trusted
        ):
            return True  # a name before a verb
        if _UNSPACED.search(part):
            return fold(part) in self._text
        wanted, text = [stem_word(one) for one in _UNIT.findall(fold(part))], [*map(stem_word, self._units)]
        ends = [n + len(wanted) for n in range(len(text)) if text[n : n + len(wanted)] == wanted]
        following = (self._units[n] if n < len(self._units) else "" for n in ends)
        return bool(wanted) and any(
            len(wanted) > 1 or one in STOP_WORDS or len(one) <= 3 or one in fold(argument) for one in following
        )

    def has_path(self, path: str, *, is_new: bool = False) -> bool:
        """Return whether a file is named, or described by words of the message.

        A new file, which no text names, may also be in a folder that the person names.

        >>> names = PersonNames("", ["Fix the typos in notes.txt."])
        >>> [names.has_path(one) for one in ("notes.txt", "./notes.txt", "notes.txt/../.bashrc", "notes.txt.sh")]
        [True, True, False, False]
        """
        path = normalize_path(path)
        name = path.rpartition("/")[2]
        for one in self._files:
            if f"/{path}".endswith(f"/{one.lstrip('~/')}") or f"/{one}".endswith(f"/{path}"):
                return True
            if is_new and "/" in one and path.startswith(f"{one}/"):
                return True
        words = {stem_word(one) for one in split_tokens(name.partition(".")[0]) if len(one) > 3 and one.isalpha()}
        known = {stem_word(one) for one in split_tokens(FILE.sub(" ", fold(self.asked)))}
        is_described = bool(words & known) if is_new and "/" not in path else bool(words) and words <= known
        return is_described and "." in name.lstrip(".")

    @cached_property
    def has_time(self) -> bool:
        return bool(find_mentioned_times(drop_links(self.asked), moment=MOMENT))

    @cached_property
    def _text(self) -> str:
        return fold("\n".join(map(drop_links, self.trusted)))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(split_tokens(self._text))

    @cached_property
    def _units(self) -> list[str]:
        """Return the words, with hyphens and digits in them, and the signs behind words."""
        return _UNIT.findall(self._text)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return list_numbers(self.trusted)

    @cached_property
    def _files(self) -> frozenset[str]:
        words = (word.strip(",;:!?\"'()[]<>`").rstrip(".") for word in f"{self._text}\n{fold(self.system)}".split())
        return frozenset(normalize_path(word) for word in words if re.search(r"[./\\].*\w", word))


def normalize_path(path: str) -> str:
    r"""Return a path in lower case, with slashes and without parts that lead back.

    >>> normalize_path(r"notes.txt\..\.bashrc"), normalize_path("//home/Ana/./x.md")
    ('.bashrc', '/home/ana/x.md')
    """
    return posixpath.normpath(re.sub(r"[\\/]+", "/", fold(path)))


def drop_links(text: str) -> str:
    for link in reversed(find_links(text)):
        text = f"{text[: link.start]} {text[link.end :]}"
    return text


def list_numbers(texts: Iterable[str]) -> frozenset[str]:
    """Return the numbers of texts, in digits or words, without decimals that are zero."""
    pieces = (piece for text in texts for piece in cut_pieces(text))
    found = (one for piece in pieces for one in find_numbers(piece, detect_language(piece)))
    return frozenset(re.sub(r"\.0{1,2}$", "", form) for one in found for form in one.forms)

"""Numbers of a text, in digits or in words of its language, and English numbers, dates and times of day. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from newton.text.languages import ENGLISH, LANGUAGES, load_language
from newton.text.stems import LETTERS

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_PARTS = "morning afternoon evening night today tomorrow yesterday tonight weekend"

CARDINALS = {word: n for n, word in enumerate([*_UNITS.split(), "eighteen", "nineteen"])} | {
    word: 20 + 10 * n for n, word in enumerate(_TENS.split())
}
ORDINALS = {word: n for n, word in enumerate(_ORDINALS.split())}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
MONTHS = {form: n for n, name in enumerate(_MONTHS.split(), 1) for form in (name, name[:3])} | {"sept": 9}
DAYS = {name: name[:3] for name in _DAYS.split()}
PLURAL_DAYS = {f"{name}s": name[:3] for name in _DAYS.split()}
SHORT_DAYS = {name[:3] for name in _DAYS.split()}
DAY_PARTS = {form: part for part in _PARTS.split() for form in (part, f"{part}s")}
NAMED_TIMES = {"noon": "12:00", "midday": "12:00", "midnight": "0:00"}

_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(am|pm)?")
_NTH = re.compile(r"(\d+)(?:st|nd|rd|th)")
_UNIT = re.compile(r"([-.]?\d+(?:\.\d+)?)([a-z]{1,3}|[a-z]+s)")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_YEAR = re.compile(r"1\d{3}|20\d\d")

_TIME_WORDS = "in since until of last next by every from to before after and during this"
_BEFORE_MONTHS = frozenset(_TIME_WORDS.split())

NUMBER_PREFIX, TIME_PREFIX = "#", "@"  # the first character of their parsed form


class WordToken(NamedTuple):
    """A lower-case word, whether it is capitalized like a name, and whether it is the first of a sentence."""

    text: str
    is_capitalized: bool = False
    starts_sentence: bool = False


def parse_numbers(words: Sequence[WordToken]) -> list[WordToken]:
    """Return the words of an English sentence with numbers and times replaced by marks.

    Numbers become #3 and #nth3; times become @day5, @month5, @year2024, @mon, @morning and @clock9:30.
    """
    texts = [word.text for word in words]
    tokens: list[WordToken] = []
    position = 0
    while position < len(words):
        length, forms = _parse_at(texts, position, is_capitalized=words[position].is_capitalized)
        tokens += map(WordToken, forms) if length else [words[position]]
        position += max(length, 1)
    return _mark_dates(tokens)


def _parse_at(words: Sequence[str], position: int, *, is_capitalized: bool) -> tuple[int, list[str]]:
    """Return how many words the number or time at `position` has (0 without one), and the marks that replace it."""
    word, last = words[position], words[position - 1] if position else ""
    following = words[position + 1] if position + 1 < len(words) else ""
    if word in CARDINALS or (word in SCALES and last == "a"):
        return _parse_spelled_number(words, position)
    if word in ORDINALS and not (word == "second" and last[:1].isdigit()):
        return 1, [f"#nth{ORDINALS[word]}"]
    if word == "dozen":
        return 1, ["#12"]
    if word in (":30", ":15") and following:
        return _parse_past_hour(following, word)
    if any(c.isdigit() for c in word):
        return _parse_figures(word, following)
    return _parse_named_time(word, is_capitalized=is_capitalized)


def _parse_spelled_number(words: Sequence[str], position: int) -> tuple[int, list[str]]:
    total = part = length = 0
    for word in words[position : position + 12]:
        if word in CARDINALS and (length == 0 or _can_append(part, CARDINALS[word])):
            part += CARDINALS[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        elif word in SCALES:
            total, part = total + max(part, 1) * SCALES[word], 0
        else:
            break
        length += 1
    return length, [f"#{total + part}"]


def _can_append(part: int, unit: int) -> bool:
    """Return whether two spelled numbers in a row form one number: "forty two" does, "four two" does not."""
    return part == 0 or (part % 100 == 0 and unit < 100) or (part % 100 >= 20 and part % 10 == 0 and 0 < unit < 10)


def _parse_past_hour(word: str, minutes: str) -> tuple[int, list[str]]:
    hour = CARDINALS.get(word, int(word) if word.isascii() and word.isdigit() else 99)
    return (2, [f"@clock{hour}{minutes}"]) if hour <= 24 else (0, [])


def _parse_figures(word: str, following: str) -> tuple[int, list[str]]:
    """Return how many words a number or time in digits has (0 if it is none), and the marks that replace it."""
    if iso := _ISO.fullmatch(word):
        return 1, [f"@day{int(iso[3])}", f"@month{int(iso[2])}", f"@year{iso[1]}"]
    half = following if following in ("am", "pm") else ""
    clock = _CLOCK.fullmatch(word + half)
    if clock and (clock[2] or clock[3] or following == ":00"):
        return (2 if half or following == ":00" else 1), [_format_clock(int(clock[1]), clock[2] or "00", clock[3])]
    if nth := _NTH.fullmatch(word):
        return 1, [f"#nth{int(nth[1])}"]
    if _GROUPED.fullmatch(word):
        word = word.replace(",", "")
    if unit := _UNIT.fullmatch(word):
        return 1, [f"#{int(unit[1]) * 1000}"] if unit[2] == "k" and unit[1].isdigit() else [f"#{unit[1]}", unit[2]]
    return 1, [f"@year{word}" if _YEAR.fullmatch(word) else f"#{word}"]


def _format_clock(hour: int, minutes: str, half: str | None) -> str:
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"@clock{hour}:{minutes}"


def _parse_named_time(word: str, *, is_capitalized: bool) -> tuple[int, list[str]]:
    if word in DAYS or (word in SHORT_DAYS and is_capitalized):
        return 1, [f"@{word[:3]}"]
    if word in PLURAL_DAYS:
        return 1, ["~all", f"@{PLURAL_DAYS[word]}"]
    if word in DAY_PARTS:
        return 1, [f"@{DAY_PARTS[word]}"]
    return (1, [f"@clock{NAMED_TIMES[word]}"]) if word in NAMED_TIMES else (0, [])


def _mark_dates(words: list[WordToken]) -> list[WordToken]:
    """Replace months and the days next to them by marks such as @month5 and @day5.

    The words "may" and "march" are months only next to a word of time.
    """
    dated = list(words)
    for position, word in enumerate(words):
        if word.text in MONTHS:
            day = _find_adjacent_day(words, position)
            if day is not None:
                dated[day] = WordToken(f"@day{words[day].text.removeprefix('#').removeprefix('nth')}")
            if day is not None or _is_month(words, position):
                dated[position] = WordToken(f"@month{MONTHS[word.text]}")
            if day == position - 2:
                dated[position - 1] = WordToken("")
    return [word for word in dated if word.text]


def _find_adjacent_day(words: list[WordToken], position: int) -> int | None:
    """Return the position of the day next to a month, as in 5 May, May 5th, the 5th of May; None if there is none."""
    sides = [position - 1, position + 1, *([position - 2] if position > 1 and words[position - 1].text == "of" else [])]
    return next((n for n in sides if 0 <= n < len(words) and _is_day(words[n].text)), None)


def _is_day(word: str) -> bool:
    number = word.removeprefix("#").removeprefix("nth")
    return word.startswith("#") and number.isascii() and number.isdigit() and 1 <= int(number[:3]) <= 31


def _is_month(words: list[WordToken], position: int) -> bool:
    word = words[position]
    if position + 1 < len(words) and words[position + 1].text.startswith("@year"):
        return True
    last = words[position - 1].text if position else ""
    return word.is_capitalized and (word.text not in ("may", "march") or last in _BEFORE_MONTHS)


MAX_CHARACTERS = 8_000  # of a text that are read
MAX_WORD_LETTERS, MAX_OVERLAP = 40, 200
HALF, QUARTER = "half", "quarter"

_CARDINALS = (*range(21), *range(30, 100, 10), 100, 1_000, 1_000_000)
_ORDINAL_NUMBERS = range(1, 21)
_CHINESE_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
_DIGITS = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?!\d)"
    r"|(?P<grouped>\d{1,3}(?:(?P<mark>[ \u00a0\u202f'’.,])\d{3})(?:(?P=mark)\d{3})*(?!\d))(?:[.,](?P<rest>\d+))?"
    r"|(?P<plain>\d+(?:[.,]\d+)*)"
)
_LIST_MARK = re.compile(r"^[ \t]*\d{1,2}[.)](?=\s)", re.MULTILINE)
_OTHER_BASE = re.compile(r"\b(?:0[xX][0-9a-fA-F]{2,12}|[01]{8,40})\b")
_THOUSANDS = re.compile(r" ?k(?:m\b)?", re.IGNORECASE)
_ORDINAL_ENDING = re.compile(r"ste[nrms]?$")
_COMPOUNDING = frozenset({"de", "nl", "it", "es"})  # languages that write numbers in one word
_JOINTS = ("und", "en", "ën")
_JOINING_WORDS = frozenset({"and", "und", "y", "e", "et", "en"})
_SCALES = ("hundert", "tausend", "honderd", "duizend")
_TENS_PREFIXES = {"veinti": 20, "venti": 20, "trenta": 30, "quaranta": 40, "cinquanta": 50}
_JOINT = re.compile(r"[\s-]+(?:(?:and|und|y|e|et|en)[\s-]+)?|")
_CHINESE_NUMBER = re.compile("[零〇一二两三四五六七八九十百千万]+")


class NumberMention(NamedTuple):
    """A number in a text, with all forms that it may have: "1450" and "1.450" for 1.450.

    `is_word` is True if it is written in words. Of a clock time, hour and minutes are two numbers.
    """

    forms: frozenset[str]
    start: int
    end: int
    is_word: bool = False


def find_numbers(text: str, code: str) -> list[NumberMention]:
    """Return the numbers of a text in order, in digits or in words of English and of the language `code`.

    >>> [sorted(number.forms) for number in find_numbers("Zweiundvierzig Äpfel für 1.450 Euro um 6:30", "de")]
    [['42'], ['1.450', '1450'], ['18', '6'], ['30', 'half']]
    """
    text = text[:MAX_CHARACTERS].lower()
    found = [*_find_digits(text), *_find_chinese(text)]
    for language in dict.fromkeys((code, ENGLISH)):
        found += _find_words(text, language)
    return sorted(found, key=lambda number: (number.start, number.end))


def spells_number(text: str, numbers: Iterable[str], *, besides: str = "") -> bool:
    """Return whether consecutive numbers of a text, in digits or in words of any language, are one of these numbers.

    Marks of lists do not count, nor numbers all of which another text has too.

    >>> texts = ("Chapter 44, verse 71.", "four four seven one", "vierundvierzig einundsiebzig", "٤٤٧١", "0x1177", "44")
    >>> [spells_number(text, ["4471"]) for text in texts]
    [True, True, True, True, True, False]
    """
    plain = _LIST_MARK.sub("", "".join(str(int(one)) if one.isdecimal() else one for one in text))
    plain = _OTHER_BASE.sub(lambda found: f" {int(found[0], 16 if found[0][1] in 'xX' else 2)} ", plain)
    for piece, code in product(cut_pieces(plain), LANGUAGES):
        found = find_numbers(piece, code)
        known = frozenset[str]().union(*(one.forms for one in find_numbers(besides, code)))
        parts = [one.forms | {re.sub(r"\D", "", piece[one.start : one.end])} for one in found]
        for number, start in product(numbers, range(len(parts))):
            end = start + _count_parts(parts[start:], number)
            if end > start and any(known.isdisjoint(one.forms) for one in found[start:end]):
                return True
    return False


def cut_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text whose numbers are read; they overlap."""
    return (text[n : n + MAX_CHARACTERS] for n in range(0, max(len(text), 1), MAX_CHARACTERS - MAX_OVERLAP))


def _count_parts(parts: Sequence[frozenset[str]], digits: str) -> int:
    """Return how many numbers at the beginning are together these digits; 0 if none are."""
    for form in parts[0] if parts else ():
        rest = digits.removeprefix(form)
        if form and digits.startswith(form) and (not rest or (count := _count_parts(parts[1:], rest))):
            return 1 + (count if rest else 0)
    return 0


def _find_digits(text: str) -> Iterator[NumberMention]:
    """Yield the numbers in digits; the hour and the minutes of a clock time are two."""
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        if match["hour"]:
            hour, minute = int(match["hour"]), int(match["minute"])
            hours = {hour, (hour + 12) % 24} if hour < 24 else {hour}
            yield NumberMention(frozenset(map(str, hours)), start, start + len(match["hour"]))
            if minute:
                yield NumberMention(_minute_forms(minute), start, end)
            continue
        forms = {match[0].replace(",", ".").replace(" ", ""), *([match["plain"]] if match["plain"] else [])}
        if match["grouped"]:
            whole = re.sub(r"\D", "", match["grouped"])
            forms.add(f"{whole}.{match['rest']}" if match["rest"] else whole)
        if _THOUSANDS.match(text, end) and match[0].isdigit():
            forms.add(f"{match[0]}000")
        yield NumberMention(frozenset(form.lstrip("0") or "0" for form in forms), start, end)


def _minute_forms(minute: int) -> frozenset[str]:
    named = {30: HALF, 15: QUARTER, 45: QUARTER}.get(minute)
    return frozenset({str(minute), *([named] if named else [])})


def _find_chinese(text: str) -> Iterator[NumberMention]:
    for match in _CHINESE_NUMBER.finditer(text):
        total = part = 0
        for character in match[0]:
            if character in _CHINESE_DIGITS:
                part = _CHINESE_DIGITS[character]
            elif character == "万":
                total, part = (total + part) * 10_000, 0
            else:
                total, part = total + (part or 1) * _CHINESE_SCALES[character], 0
        digits = [_CHINESE_DIGITS[one] for one in match[0] if one in _CHINESE_DIGITS]
        value = "".join(map(str, digits)) if len(digits) == len(match[0]) else str(total + part)
        yield NumberMention(frozenset({value.lstrip("0") or "0"}), *match.span(), is_word=True)


def _find_words(text: str, code: str) -> Iterator[NumberMention]:
    """Yield the numbers in words of the language `code`; adjacent words such as "forty two" are one number."""
    run: list[tuple[int, re.Match[str]]] = []
    for match in LETTERS.finditer(text):
        if run and match[0] in _JOINING_WORDS:
            continue
        value = _read_word(match[0], code)
        if isinstance(value, str):
            yield NumberMention(frozenset({value}), *match.span(), is_word=True)
        if run and (not isinstance(value, int) or not _continues(run, value, text[run[-1][1].end() : match.start()])):
            yield _to_mention(run)
            run = []
        if isinstance(value, int):
            run.append((value, match))
    if run:
        yield _to_mention(run)


@lru_cache(maxsize=8_192)
def _read_word(word: str, code: str) -> int | str | None:
    """Return the value of a number word, also of one such as "zweiundvierzigsten" or "duecento"; None for another."""
    words = _load_words(code)
    for form in (word, word[:-1] if word.endswith(("n", "r", "s")) else word, _ORDINAL_ENDING.sub("", word)):
        if form in words:
            return words[form]
        value = _read_compound(form, words) if code in _COMPOUNDING else None
        if value is not None:
            return value
    return None


def _read_compound(word: str, words: Mapping[str, int | str]) -> int | None:
    """Return the value of a word that joins number words, such as "achtundvierzig"; None for any other word."""
    for position in range(2, min(len(word), MAX_WORD_LETTERS) - 1):
        first, last = _get_value(word[:position], words), _get_value(word[position:], words)
        if first is not None and last is not None and last >= 100 > first > 0:
            return first * last  # fünfhundert
        if first is not None and first % 100 == 0 and first and last is not None and last < first:
            return first + last  # hundertzwanzig
        unit = next((word[:position].removesuffix(joint) for joint in _JOINTS if word[:position].endswith(joint)), "")
        units = _get_value(unit, words)
        if units is not None and last is not None and 0 < units < 10 < last < 100:
            return units + last
        scale = next((one for one in _SCALES if word[position:].startswith(one)), "")
        rest = _read_compound(word[position + len(scale) :], words) or _get_value(word[position + len(scale) :], words)
        if scale and first is not None and rest is not None and scale in words:
            return first * int(words[scale]) + rest
    prefix = next((prefix for prefix in _TENS_PREFIXES if word.startswith(prefix)), "")
    unit_value = _get_value(word.removeprefix(prefix), words) if prefix else None
    return _TENS_PREFIXES[prefix] + unit_value if unit_value is not None and 0 < unit_value < 10 else None


def _get_value(word: str, words: Mapping[str, int | str]) -> int | None:
    value = words.get(word)
    return value if isinstance(value, int) else None


def _continues(run: Sequence[tuple[int, "re.Match[str]"]], value: int, between: str) -> bool:
    if not _JOINT.fullmatch(between):
        return False
    last = run[-1][0]
    if value >= 100 or last >= 100 or (last == 4 and value == 20 and "-" in between):  # quatre-vingt
        return True
    return 0 < value < 20 and ((20 <= last < 100 and last % 10 == 0) or (last == 10 and "-" in between))


def _to_mention(run: Sequence[tuple[int, "re.Match[str]"]]) -> NumberMention:
    total = part = 0
    for value, _ in run:
        if value >= 1_000:
            total, part = total + max(part, 1) * value, 0
        elif value == 100:
            part = max(part, 1) * 100
        elif part == 4 and value == 20:
            part = 80
        else:
            part += value
    return NumberMention(frozenset({str(total + part)}), run[0][1].start(), run[-1][1].end(), is_word=True)


@cache
def _load_words(code: str) -> Mapping[str, int | str]:
    """Return the number words of a language with their values, and its words for a half and a quarter."""
    numerals = load_language(code).numerals
    words: dict[str, int | str] = {}
    groups = (("ordinals", _ORDINAL_NUMBERS), ("hundreds", range(100, 1_000, 100)), ("cardinals", _CARDINALS))
    for name, values in groups:
        for value, group in zip(values, numerals.get(name, "").split(), strict=False):
            words |= dict.fromkeys((word for word in group.split("|") if word != "-"), value)
    for name in (HALF, QUARTER):
        words |= dict.fromkeys(filter(None, numerals.get(name, "").split("|")), name)
    return words

"""Fragments that correct a sentence: short clauses without a verb, spelled words, ends of numbers, "X? No, Y". Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache

from newton.heart.statements.commitment import CommitmentKind, UnassertedPart, is_addressed, list_unasserted
from newton.heart.statements.replacement import find_replaced, is_function, read_words
from newton.heart.statements.slots import count_edits
from newton.heart.statements.statement_candidates import (
    ClauseForm,
    find_verb,
    list_words,
    mask_message,
    split_message,
)
from newton.heart.statements.typed_values import Cues, words_for
from newton.providers.speech_reader import read_speech
from newton.text.languages import ENGLISH, detect_language
from newton.text.numerals import DAYS
from newton.text.pasted_text import MASK

MAX_BARE_WORDS = 3  # of a fragment
MIN_SCORE, MIN_DENIED = 0.5, 0.15  # of the words that it replaces; behind a "no"
MAX_HINTED, MAX_BARE = 14, 9  # words of the message
UNREAL_MIN = 0.6  # probability that a part of a message in English is not stated as true
FARTHER = 0.1  # what a sentence further back loses
MAX_TYPO = 2  # letters in which a word and its misspelling differ
_CLAUSE_END = re.compile(r"[,;:!?()–—\n]|\.(?:\s|$)")
_WORD = re.compile(r"[^\W_](?:[\w'’.:-]*\w)?")
_SPELLED = re.compile(r"(?<![\w'])(?:(?:double )?[^\W\d_](?:-| |, ?)+){2,}(?:double )?[^\W\d_](?![\w'])", re.IGNORECASE)
_DOUBLE = re.compile(r"double (\w)", re.IGNORECASE)
_WORDS = read_words()
_HINT, _TAIL, _CLAUSAL = (
    re.compile(rf"(?<!\w)(?:{_WORDS[name].strip()})(?!\w)", re.IGNORECASE) for name in ("hint", "tail", "clausal")
)
_END = re.compile(
    rf"[,;!?()–—\n]|:(?!\d)|\.(?:\s|$)|\.{{2,}}|{_HINT.pattern}|(?<!\w)(?:{_WORDS['end']})(?!\w)"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF]",
    re.IGNORECASE,
)
_QUOTED_VALUE = re.compile(r"(?<=[\w,] )[\"“„«](?P<value>[^\W_][\w.:@#/& +-]{0,40})[\"”“»](?!\w)")
_BARE_VALUE = re.compile(r"#?[\w-]*\d[^\"'`“”„«»<>|\n]*$")
_STARS = re.compile(r"^\s*\*+")  # which begin a correction, and no list
_ANNOUNCING = re.compile(r"(?:^|(?<=[.!?\n]))[^\n.!?:：]{2,80}[:：](?=\s*\S)")
_QUESTION = re.compile(r"[^\n.!?]+[?？]")
_SAYING = re.compile(rf"(?<!\w)(?:{_WORDS['saying'].strip()})(?!\w)[,:]?\s+", re.IGNORECASE)
_LEADING = re.compile(rf"(?:(?:{_WORDS['leading']})(?!\w)\W*)+", re.IGNORECASE)
_PAIRS = (
    re.compile(r"(?P<old>[\w'-]+)\?+\s+(?:no\b\W*)?(?P<new>(?!no\b)[\w'-]+(?: [\w'-]+)?)", re.IGNORECASE),
    re.compile(rf"(?P<old>[\w'-]+) (?:{_WORDS['should']}) (?P<new>[\w'-]+)", re.IGNORECASE),
)


@lru_cache(maxsize=256)  # each message of a session is read with those behind it
def keep_own_words(message: str, *, asks: bool = False) -> str:
    """Return a message with line ends in place of what is not its person's own statement. Offsets do not change.

    It leaves out quotations, mails, code, reports, texts to work on, and questions if it is not to keep what `asks`.

    >>> keep_own_words('Is this one spam? "Sorry, not Linz." No, not "Graz", Rome.').split()
    ['No,', 'not', 'Graz', ',', 'Rome.']
    """
    if len(message.split()) <= MAX_BARE_WORDS and _BARE_VALUE.match(message):  # "2.2" is no code
        return message
    cues = words_for(message)
    starts = [cues["cue"], cues["negated"]]
    bare = _QUOTED_VALUE.sub(lambda one: one[0] if _begins(starts, one["value"]) else f" {one['value']} ", message)
    masked = mask_message(_STARS.sub(lambda one: " " * len(one[0]), bare))[1]
    spans = [(one.start, one.end) for one in list_unasserted(masked) if _is_of_others(one, masked)]
    for one in _ANNOUNCING.finditer(masked):  # "Subtitle: sorry, not Linz" too
        is_shown = cues["cue"].match(masked[one.end() :].lstrip()) and not _begins(starts, one[0])
        spans += [(one.start(), len(masked))] if is_shown or _requests(one[0]) else []
    spans += [(one.start(), len(masked)) for one in _SAYING.finditer(masked) if _begins(starts, masked[one.end() :])]
    for one in () if asks else _QUESTION.finditer(masked):
        is_own = len(_WORD.findall(one[0])) <= MAX_BARE_WORDS or _begins(starts, one[0].strip())
        spans += [] if is_own else [one.span()]
    for start, end in spans:
        masked = masked[:start] + MASK * (min(end, len(masked)) - start) + masked[end:]
    return "".join("\n" if mark == MASK else own for mark, own in zip(masked, bare, strict=False))


def _is_of_others(one: UnassertedPart, masked: str) -> bool:
    """Return whether a part of a message is no statement of its person: "the letter says August" may be one."""
    if one.commitment is not CommitmentKind.REPORTED or one.phrase.endswith(":") or detect_language(masked) != ENGLISH:
        return one.commitment in (CommitmentKind.REPORTED, CommitmentKind.IMAGINED)
    return read_speech(masked).rate(one.start, one.end).get("unreal", 0.0) >= UNREAL_MIN


def _begins(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    return any(one.match(text) for one in patterns)


def _requests(head: str) -> bool:
    """Return whether the words before a colon ask to work on what follows it."""
    return is_addressed(head, detect_language(head)) or (head[:1].isupper() and _states_nothing(f"{head[:-1]} it."))


def join_spelled(message: str) -> str:
    """Return a message with its spelled words joined.

    >>> join_spelled("sorry, B-a-s-s-e"), join_spelled("K, E, double T")
    ('sorry, Basse', 'Kett')
    """
    doubled = _DOUBLE.sub(r"\1-\1", message) if _SPELLED.search(message) else message
    return _SPELLED.sub(lambda match: re.sub(r"[\W_]", "", match[0]).capitalize(), doubled)


def find_pair(message: str, sentence: str) -> tuple[str, str] | None:
    """Return the words of a sentence that a message asks itself about, and the right ones.

    >>> find_pair("Jay? no. Court Street", "the hall is on Jay Street")
    ('Jay', 'Court Street')
    """
    for pattern in _PAIRS:
        for match in pattern.finditer(message):
            is_known = re.search(rf"(?<!\w){re.escape(match['old'])}(?!\w)", sentence, re.IGNORECASE)
            words = match["new"].split()
            new = " ".join(words if len(words) == 1 or find_verb(list_words(match["new"])) < 1 else words[:1])
            if is_known and not is_function(match["old"], sentence) and not is_function(words[0], sentence):
                return match["old"], new
    return None


def hints_at_correction(message: str, fragments: Sequence[str]) -> str:
    """Return the words of a message that hint at a correction: "sorry", or an exclamation mark behind a fragment."""
    hint = _HINT.search(message)
    cried = fragments and re.search(rf"{re.escape(fragments[0])}\W{{0,2}}!", message, re.IGNORECASE)
    return hint[0] if hint and fragments else "!" if cried else ""


def list_fragments(message: str, cue: re.Pattern[str], joint: re.Pattern[str]) -> list[str]:
    """Return the clauses of a message that have few words and no verb, without words of a correction."""
    found = list[str]()
    for number, clause in enumerate(_END.split(message)):
        part = _strip(cue.sub(" ", clause.replace("*", " ")).strip(), joint)
        words = _WORD.findall(part)
        is_short = 0 < len(words) <= MAX_BARE_WORDS and "=" not in part and (number < MAX_BARE_WORDS or not found)
        has_verb = find_verb(list_words(part)) > 0 or bool(_CLAUSAL.search(part))
        if is_short and not has_verb and not all(is_function(word, message) for word in words):
            found.append(part[part.index(words[0]) :].strip())
    return found[:2]


def _strip(text: str, joint: re.Pattern[str]) -> str:
    while (match := _LEADING.match(text) or joint.match(text)) and 0 < match.end() < len(text):
        text = text[match.end() :].strip()
    return text


def corrects_by_fragment(message: str, fragments: Sequence[str], known: str, *, is_hinted: bool) -> bool:
    """Return whether a message with fragments says little else, or only words of what is `known`.

    Without a hint at a correction, the fragment must begin the message.
    """
    words = _WORD.findall(message)
    if not fragments or len(words) > (MAX_HINTED if is_hinted else MAX_BARE):
        return False
    first = _END.split(message)[0]
    if not is_hinted and len(fragments[0].split()) > (2 if detect_language(message) != ENGLISH else MAX_BARE_WORDS):
        return False
    if is_hinted or (fragments[0] in first and len(_WORD.findall(first)) <= MAX_BARE_WORDS + 1):
        return True
    rest = {word.casefold() for word in words if word not in fragments[0] and not is_function(word, message)}
    return rest <= {word.casefold() for word in _WORD.findall(known)}


def replace_fragment(
    fragments: Sequence[str], sentences: Sequence[tuple[int, str]], least: float = MIN_SCORE
) -> tuple[int, str, str, str] | None:
    """Return the sentence that a fragment corrects, by its word vectors, the words it replaces, and the fragment.

    Each sentence stands with the number of its message, the nearest one first.
    """
    found = list[tuple[float, tuple[int, str, str, str]]]()
    for position, (index, sentence) in enumerate(sentences):
        for later, fragment in enumerate(() if _states_nothing(sentence) else fragments[:2]):
            best = None if fragment.casefold() in sentence.casefold() else find_replaced(fragment, sentence)
            if best and best.score >= least:
                found.append((best.score - FARTHER * (position + 2 * later), (index, sentence, best.old, fragment)))
    return max(found)[1] if found else None


def replace_tail(message: str, sentence: str) -> tuple[str, str] | None:
    """Return a number or code of a sentence, and the same with another end.

    >>> replace_tail("the last two are 81", "her number is 960 218")
    ('218', '281')
    """
    digits = re.findall(r"\d+", message) if _TAIL.search(message) or re.match(r"\d{3,}\b", message) else []
    codes = [one[0] for one in re.finditer(r"[\w#@-]*\d", sentence) if digits and len(one[0]) >= len(digits[-1])]
    if not codes or (not _TAIL.search(message) and sorted(codes[-1][-len(digits[-1]) :]) != sorted(digits[-1])):
        return None
    if not codes[-1][-len(digits[-1]) :].isdigit() or codes[-1].endswith(digits[-1]):
        return None
    return codes[-1], codes[-1][: -len(digits[-1])] + digits[-1]


def is_alike_value(old: str, new: str) -> bool:
    """Return whether a bare value may correct another one: a number has as many digits, or nearly the same.

    A day stands for a day, and "mondays" for no day.
    """
    if {old.casefold(), new.casefold()} & {*DAYS}:
        return old.casefold() in DAYS and new.casefold() in DAYS
    is_near = count_edits(old, new) <= max(1, len(old) // 3)
    return is_near or not old.isdigit() or len(old) == len(new)


def _states_nothing(sentence: str) -> bool:
    """Return whether a sentence only asks or requests."""
    clauses = split_message(sentence)
    return bool(clauses) and all(one.form is not ClauseForm.STATEMENT for one in clauses)


def replace_alike(message: str, sentence: str, cues: Cues) -> tuple[str, str] | None:
    """Return the words of a sentence that a fragment replaces, and those: it shares a word, or nearly spells one."""
    theirs = list(_WORD.finditer(sentence))
    for part in _CLAUSE_END.split(cues["negated"].sub(",", message)):
        mine = [word.strip(".!?*") for word in part.split()]
        folded = [word.casefold() for word in mine]
        for n, own in enumerate(folded if len(folded) <= MAX_BARE_WORDS else ()):
            for at, word in enumerate(theirs):
                first, last = at - n, at - n + len(folded)
                if 0 <= first < last <= len(theirs) and _are_alike(own, word[0].casefold(), sentence, len(folded)):
                    old = sentence[theirs[first].start() : theirs[last - 1].end()]
                    if old.casefold() != " ".join(folded):
                        return old, " ".join(mine)
    return None


def _are_alike(own: str, word: str, sentence: str, count: int) -> bool:
    """Return whether a word of a fragment of `count` words is one of the sentence, or, alone, nearly spells one."""
    if count > 1:
        return own == word and not is_function(own, sentence)
    return 0 < count_edits(own, word) <= min(MAX_TYPO, len(own) // 3)

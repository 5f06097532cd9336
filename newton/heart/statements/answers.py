"""Answers to questions of the assistant: a short answer is a statement together with what was asked. Pure."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.heart.statements.statement_candidates import has_verb
from newton.text.english import AUXILIARIES
from newton.text.languages import ENGLISH, detect_language
from newton.text.words import extract_content_words

MAX_QUESTION, MAX_ANSWER = 160, 200  # characters
MAX_FRAGMENT = 6  # words of an answer to a yes-or-no question that has a verb and no word of the question
MAX_SHORT_WORDS = 20  # of the first sentence of an answer that the question completes
_SENTENCE = re.compile(r"[^\s.!?。？！][^\n.!?。？！]*[.!?。？！]*")
_WORD = re.compile(r"\w+")
_END = re.compile(r"[?？]\s*$")


def find_question(message: str) -> str:
    """Return the question at the end of a message of the assistant; an empty text if there is none.

    >>> find_question("Lovely! Do you have any animals?"), find_question("Here is the list.")
    ('Do you have any animals?', '')
    """
    sentences = _SENTENCE.findall(message) if _END.search(message) else []
    return sentences[-1].strip() if sentences and len(sentences[-1]) <= MAX_QUESTION else ""


def complete_answer(message: str, question: str) -> str | None:
    """Return a short answer with what was asked, as a statement; None if it says enough alone, or tells nothing.

    >>> complete_answer("heidelberg", "Which suburb is your hospital in?")
    'Which suburb is your hospital in? Heidelberg.'
    >>> complete_answer("yes please", "Shall I write the mail?") is None
    True
    """
    text, patterns = " ".join(message.split()), _load_patterns(detect_language(question))
    first = next(iter(_SENTENCE.findall(text)), "")
    words = len(_WORD.findall(first))
    is_short = 0 < words <= MAX_SHORT_WORDS and len(text) <= MAX_ANSWER and "?" not in text
    if not is_short or patterns["offered"].search(question) or patterns["whole"].match(text):
        return None
    shared = extract_content_words(first) & extract_content_words(question)
    is_closed = question.split(maxsplit=1)[0].casefold() in AUXILIARIES  # "Have you asked him?", not "When do you run?"
    is_whole = is_closed and words > MAX_FRAGMENT and has_verb(first) and not shared
    if is_whole or patterns["empty"].fullmatch(text.strip(" .!")):
        return None
    return f"{question} {text[:1].upper()}{text[1:].rstrip(' .!,;:')}."


@cache
def _load_patterns(code: str) -> Mapping[str, re.Pattern[str]]:
    data = parse_trusted(files("newton.heart.statements").joinpath("answers.yaml").read_text(encoding="utf-8"))
    words = data.get(code, data[ENGLISH])
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in words.items()}

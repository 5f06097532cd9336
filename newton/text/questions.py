"""Detection of texts that only ask or only summarize questions, and so contain no answers. Pure."""

import re

from newton.text.sentences import split_sentences

_QUESTION = re.compile(r"[^.!?…。！？]+[?？]\W*")
# A question without a question mark: "where did I park my car". "What helps is tea" has a second verb.
_BARE_QUESTION = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|hey|hi|please)\W+)*"
    r"(?:where|when|who|whose|how|(?:what|which)(?: (?:time|day|date|year|kind))?)"
    r"(?:['’](?:s|re)|\s+(?:is|are|was|were|am|did|do|does|can|could|should|shall|will|would|has|have|had))\b"
    r"(?!.*\b(?:is|are|was|were)\b)[^.!?…;:\n]{1,100}",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|hey|hi|please)\W+)*(?:(?:(?:at|in|on|from|to|with|for|by|of|about|since|until|till)\s+)?"
    r"(?:what|when|where|who|whose|whom|which|how)|why|do|does|did|am|is|are|was|were|have|has|will|can)(?:['’]\w+)?\s",
    re.IGNORECASE,
)
_SESSION_SUMMARY = re.compile(r" talked, \d+ lines\. (.+)")  # the template of `session_close.to_episode`
_SPLIT = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_POLITE = r"\W*(?:(?:please|ok|okay|hey|hi|so|and|but)\W+)*(?:(?:can|could|will|would) you\W+)?(?:please\W+)?"
_EXPLANATION_REQUEST = re.compile(
    _POLITE + r"(?:explain|describe|why\b(?! (?:don't|not\b))|what (?:happens|would happen|if)\b"
    r"|how (?:come|do|does|would|can|could)\b"
    r"|(?:tell|show|remind) (?:me|us) (?:about|what|when|where|which|who\w*|why|how|whether|if)\b"
    r"|i wonder\b|i(?:'d| would) (?:like|love) to know\b|i want to know\b)",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:allow(?:ed|s)?|permit(?:s|ted)?|forbid(?:s|den)?|prohibit(?:s|ed)?|banned|blocked|rules?|polic(?:y|ies))\b"
    r"|\bnot supposed\b|\bwhy\b.*(?:\b(?:not|never|no|cannot)\b|n['’]t\b)",
    re.IGNORECASE,
)
_ACTION_REQUEST = re.compile(
    r"\b(?:can|could|will|would|won't) you\b|\bplease\b|\bwhy (?:don't|not)\b|\bhow about\b"
    r"|,\s*(?:ok|okay|right|yes)\W*$",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"\W*(?:(?:i'?m |i am )?(?:sorry|afraid)\W+|unfortunately\W+|but\W+|so\W+)*"
    r"(?:(?:i|memory|we) (?:do(?:es)?(?:n['’]t| not) (?:know|have|contain|remember)|(?:have|has) (?:no|nothing)\b"
    r"|can(?:no|['’])t (?:find|recall|tell)|could(?:n['’]t| not) find|(?:did|do)(?:n['’]t| not) find)"
    r"|there is (?:no|nothing)\b.{0,40}\b(?:memory|record|known))",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"\bhow (?:\w+ly )?"
    r"(many|much|often|long|old|tall|far|big|large|high|deep|wide|heavy|late|early|soon|fast)\b",
    re.IGNORECASE,
)
_SUMMARY_PREFIX = re.compile(r"(?:They came back to this|It ended with [^:]+): ")


def is_only_question(text: str) -> bool:
    """Return whether the text is a single question, or only questions and requests for an explanation.

    >>> texts = ("Where are the keys?", "Tell me where the keys are.", "Where are the keys? I lost them.")
    >>> [is_only_question(text) for text in (*texts, "where did I put the keys", "what is dear to me is tea")]
    [True, True, False, True, False]
    """
    return any(pattern.fullmatch(text) for pattern in (_QUESTION, _BARE_QUESTION)) or not remove_questions(text)


def opens_question(text: str) -> bool:
    """Return whether the first words of a text open a question, with or without a question mark.

    >>> [opens_question(text) for text in ("do I still have a van", "at which hospital is it", "At noon we leave.")]
    [True, True, False]
    """
    return _OPENING.match(text) is not None


def find_measures(text: str) -> str:
    """Return the words after "how" by which questions ask for a number, such as "many" and "old", as one text.

    A sentence that answers the question has a number in place of such a word.

    >>> find_measures("How many goats do we have, and how old is Berta?")
    'many old'
    """
    return " ".join(_MEASURE.findall(text))


def lacks_answer(reply: str) -> bool:
    """Return whether every sentence of a reply says that the answer is not known, or is a question.

    >>> replies = ("Sorry, I don't know when it is. Do you?", "I don't know the day. It is at noon.")
    >>> [lacks_answer(reply) for reply in replies]
    [True, False]
    """
    sentences = [sentence for sentence in _SPLIT.split(reply) if sentence.strip()]
    return all(_UNKNOWN.match(sentence) or sentence.rstrip().endswith("?") for sentence in sentences)


def remove_questions(text: str) -> str:
    """Return the text without its questions and requests for an explanation. Requests to do something remain.

    >>> remove_questions("Why may I not delete the logs?"), remove_questions("Can you delete the logs?")
    ('', 'Can you delete the logs?')
    """
    return " ".join(sentence for sentence in _SPLIT.split(text) if not _is_question(sentence))


def select_questions(text: str) -> str:
    """Return only the questions and requests for an explanation in a text.

    >>> select_questions("I sold the van. When did I buy it? It was old.")
    'When did I buy it?'
    """
    return " ".join(sentence for sentence in _SPLIT.split(text) if _is_question(sentence))


def is_one_sentence(text: str) -> bool:
    """Return whether a text has no second sentence or line."""
    return len(_SPLIT.split(text.strip())) == 1


def contains_question(text: str) -> bool:
    """Return whether a sentence of the text is a question or a request for an explanation."""
    return "?" in text or "？" in text or any(map(_is_question, _SPLIT.split(text)))


def _is_question(sentence: str) -> bool:
    if _EXPLANATION_REQUEST.match(sentence):
        return True
    is_request = _ACTION_REQUEST.search(sentence) is not None
    return sentence.rstrip("\"')]”’» ").endswith(("?", "？")) and not is_request


def asks_about_rule(text: str) -> bool:
    """Return whether the text asks for a rule or its reason. An answer to it has to name what the rule forbids.

    >>> texts = ("Why may we not deploy on Fridays?", "Is a deploy allowed on Fridays?", "Who deploys on Fridays?")
    >>> [asks_about_rule(text) for text in texts]
    [True, True, False]
    """
    return any(_RULE.search(sentence) for sentence in _SPLIT.split(text) if _is_question(sentence))


def has_only_questions(summary: str) -> bool:
    """Return whether a text is Newton's summary of a session in which there are only questions.

    >>> has_only_questions("Who?: Ana talked, 4 lines. They came back to this: Where is it? It ended with Ana: Who?")
    True
    """
    found = _SESSION_SUMMARY.search(summary)
    # a truncated sentence counts as a question
    return found is not None and all(map(_is_question_or_cut, split_sentences(found[1])))


def _is_question_or_cut(sentence: str) -> bool:
    spoken = _SUMMARY_PREFIX.sub("", sentence)
    return spoken.rstrip("\"')]”’ ").endswith(("?", "…")) or _EXPLANATION_REQUEST.match(spoken) is not None


def summarizes_session_starting_with(summary: str, text: str) -> bool:
    """Return whether `summary` is Newton's summary of a session whose first message is `text`.

    >>> summarizes_session_starting_with("Who left?: Ana talked, 4 lines. It ended with Ana: I do.", "who left?")
    True
    """
    return _SESSION_SUMMARY.search(summary) is not None and f"{text.casefold()}: " in summary.casefold()

"""Splitting of a person's message into clauses that may be worth remembering. Pure.

Each clause has a subject and a verb, so that it can be read alone. Openings such as "by the way" are cut off.
Questions, requests, and text that is not by the person are marked.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from newton.heart.identity.standing_wishes import MAX_MESSAGE_CHARACTERS, detect_instructions, mask_foreign_text
from newton.heart.statements.tokenizer import BREAK, START, STOP, is_latin_script, tokenize
from newton.text import english
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.greetings import is_courtesy
from newton.text.numerals import WordToken
from newton.text.pasted_text import MASK

MAX_CLAUSE_CHARACTERS = 300
MAX_MASKED_SHARE = 0.35  # of a clause; more of it is a quotation or code
MIN_WORDS = 2
MAX_SUBJECT_WORDS = 9  # between the beginning of a clause and its verb
_PRONOUNS = frozenset({"i", "we", "they", "he", "she", "it", "you"})


class ClauseForm(StrEnum):
    """The form of a clause. Only a statement may be remembered. `FOREIGN` is text that is not by the person."""

    STATEMENT = "statement"
    QUESTION = "question"
    REQUEST = "request"
    FOREIGN = "foreign"
    FRAGMENT = "fragment"


class StatementCandidate(NamedTuple):
    """A clause of a message, with its place in the message.

    `opening` is the text that was cut off before it, in lower case.
    """

    text: str
    form: ClauseForm
    opening: str
    words: tuple[WordToken, ...]
    verb: int  # the position of the first verb among the words, or -1
    masked_share: float
    sentence: int
    clause: int  # its position in the sentence
    start: int  # the offset in the message
    end: int


_SENTENCE = re.compile(
    r"\S(?:[^\n.!?]|[.!?](?![\s)])|(?<=\b[DMS][rst])\.|(?<=\bMrs)\.|(?<=\bProf)\.|(?<=\b[A-HJ-Z])\.)*[.!?)]*"
)
_LIST_NUMBER = re.compile(r"^\d{1,2}(?= +[^\W\d])", re.MULTILINE)
# A question at the end of a sentence that asks whether the sentence is true.
_TAG = re.compile(
    r"[,–—-]\s*(?:right|correct|yes|no|huh|innit|am i wrong|\w+n't (?:it|he|she|they|we|you|i))\s*\??\)?$",
    re.IGNORECASE,
)
# A request whose colon is followed by text to work on, and the beginning of a letter.
_WORK_ON = re.compile(
    r"\b(?:fix|translat\w+|correct|grammar|check|rewrite|rephrase|proofread|edit|polish|shorten|improve|continue"
    r"|make up|invent|fill in"
    r"|solve|example|sample|story|poem)\b[^.!?\n]{0,60}:|(?:^|(?<=[.:!?\n] ))dear (?:\w+ ){1,3}?(?=\w+,|\w+ i\b)"
    r"|\bdear \w+,",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^((?:(?:quick|small|short|little) )?(?:update|news|fyi|correction|heads[- ]up|context|background|change"
    r"|info|btw|psa"
    r"|good news|bad news|for context|for the record|by the way|one more thing|ok|okay|well|note to self))(:)",
    re.IGNORECASE | re.MULTILINE,
)
_FILLERS = (
    r"ok(?:ay)?|hey+|hi+|hello|morning|good (?:morning|evening|afternoon)|also|and|oh|btw|by the way|fyi|ps|pps"
    r"|newton"
    r"|one (?:more|other) thing|so|but|because|plus|well|thanks(?: again)?|thank you|ta|cheers|sure|anyway|anyways"
    r"|to be (?:honest|fair|clear)|tbh|fwiw|for what it's worth|honestly|in fact|since you ask(?:ed)?|as you know"
    r"|you know|i mean|the thing is|for the record|(?:quick |small |short |little )?(?:update|correction|news)"
    r"|(?:quick |small )?heads[- ]up|(?:good|bad|great|big|sad) news|just so you know|so you know|just fyi"
    r"|for (?:your information|context|reference|background)|in case (?:it matters|you wonder|you need it)"
    r"|note that|remember(?: that)?|don't forget(?: that)?|keep in mind(?: that)?|actually|basically"
    r"|turns out(?: that)?"
    r"|it turns out(?: that)?|apparently|luckily|sadly|unfortunately|finally|hm+|um+|uh+|ah+|er+m?|phew|yay|yep|yup"
    r"|yeah|nope|lol|haha+|sorry|gosh|wow|man|ugh|argh|listen|look|right so|then|anyhow|speaking of which"
    r"|full disclosure"
    r"|minor detail|important|note|reminder|context|background|info|psa"
)
_PAUSED = (
    r"yes|no|great|good|right|wait|nice|perfect|true|exactly|cool|fine|done|got it|never mind|nevermind|hang on|hold on"
    r"|oh (?:no|wait)|no,? (?:wait|sorry|actually)|wait,? (?:no|actually)|scratch that|my (?:mistake|bad)"
)
_ONLY_PAUSED = re.compile(_PAUSED, re.IGNORECASE)
_OPENING = re.compile(
    rf"(?:(?:(?:{_FILLERS})\b(?!['’])[\s,:;!.–—-]*(?=\s|[,:;–—-])[\s,:;!.–—-]*)"
    rf"|(?:(?:{_PAUSED})\b\s*[,:;!.–—-]+\s*)|[\s,:;!.–—(-]+)*",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"(?:[\s,;:–—(-]+|\s*[:;]-?[()DP](?!\w)|[\s,]+(?:lol|haha+|hehe|please|pls|plz|thanks|thank you|thx|cheers"
    r"|btw|fyi|yay|tho"
    r"|though|anyway|you know|but|and|so))+$",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r"\s*;\s*|\s*,?\s+[–—-]+\s+|\s+\(|:\s+|,\s*(?:and|but|so|because|plus|cause)\s+|,\s*|\s+(?:and|but|so|plus)\s+",
    re.I,
)
_SUBORDINATE = re.compile(
    r"(?:if|when|whenever|while|unless|until|once|after|before|as|since|because|although|though|whether|in case"
    r"|even)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:(?:i|we|you|he|she|they|it|this|that|these|those|there|my|our|your|his|her|their|its|the|a|an|both|one|two"
    r"|three|some|all|every|everyone|everybody|nobody|no one|people|half|most)\b|(?-i:[A-Z])\w"
    r"|(?:[a-z]+ ){0,1}(?:is|are|was|were)\b)",
    re.IGNORECASE,
)
_WH = (
    r"what|what's|whats|how|how's|where(?! (?:i|we|my|our)\b)|where's|when(?='s| (?:is|are|do|does|did|was|were"
    r"|will|should|can|would)\b)"
    r"|which(?! means\b)|who|who's|whose|why|why's"
)
_ASKING = re.compile(
    rf"(?:(?:{_WH})\b(?! (?:i|we) (?:say|mean|do|live|work)\b)|(?:can|could|would|will|do|does|did|is|are|am|was"
    rf"|were|should|shall|has|have|may|might"
    r"|isn't|aren't|doesn't|don't|won't|wouldn't|can't|couldn't) (?:i|we|you|he|she|they|it|there|this|that|the"
    r"|my|our|your|someone|anyone"
    r"|somebody|anybody)\b|any (?:idea|ideas|tips|thoughts|advice|suggestions?|chance|way|reason|recommendations)"
    r"|(?:thoughts|ideas|tips|suggestions|options|opinions)\b)",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"(?:please|pls|plz|kindly|let's|lets|let me|let us|help|tell|give|show|suggest|recommend|write|find|explain"
    r"|draft|make|remind"
    r"|translate|summari[sz]e|rewrite|rephrase|shorten|fix|correct|check|list|compare|describe|imagine|suppose"
    r"|assume|pretend|consider"
    r"|leave|save|take|go|come|wait|bring|thank|double|grab|order|book|call|mail|email|send|post|paste|print|open"
    r"|close|move|split|merge|refactor|debug|test|search|google|guess|rate|rank|mention|note|quote|define|spell"
    r"|count|invent|brainstorm|critique|roast|judge|analy[sz]e|estimate|recap|meanwhile|save me|convert|calculate"
    r"|compute|create|generate|add|remove|delete|rename|change|replace|put|set|use|keep|skip|cut|plan|build|design"
    r"|proofread|edit|polish|review|format|sort|name|pick|choose|compose|outline|prepare|turn|throw|swap|drop"
    r"|include|avoid|ignore"
    r"|fill|squeeze|guess|rank|answer|reply|respond|continue|try|say|read|run|look|act|start|stop|forget|call me"
    r"|do (?:it|that|this|the same)|get me|warn me|ask me"
    r"|don't|do not|never|always|from now on,? (?:please|always|never|use|write|answer|give|keep)|no need|i(?:'d"
    r"| would) (?:like|love|want) (?:you|a|an|the|it|to know|some|three|five|two"
    r"|something)|i (?:want|need) (?:you|a|an|the|it|to know|some|three|five|two|something|help|ideas|one)\b"
    r"|you (?:can|should|must))\b",
    re.IGNORECASE,
)
# A verb that begins a clause whose subject "I" was dropped, more often than a request.
_DROPPED_PRESENT = re.compile(
    r"(?:can't|cannot|don't (?:eat|drink|drive|have|own|speak|smoke|like|work|use|do|know|want)|have|live|work"
    r"|own|teach|play|hate|love"
    r"|prefer|study|speak)\b",
    re.IGNORECASE,
)


def split_message(message: str) -> list[StatementCandidate]:
    """Return the clauses of a message in order, questions and requests included.

    Return no clauses if the message is too long or not in Latin script.

    >>> [one.text for one in split_message("Hi! I moved to Bergen, so where can I buy a bike?")]
    ['I moved to Bergen', 'where can I buy a bike?']
    """
    if len(message) > MAX_MESSAGE_CHARACTERS or not is_latin_script(message):
        return []
    plain = _blank_numbers(_LABEL.sub(r"\1,", message.replace("’", "'").replace("\t", " ")))
    masked = _mask_material(mask_foreign_text(plain))
    found = list[StatementCandidate]()
    for number, sentence in enumerate(_SENTENCE.finditer(masked)):
        spans, is_confirmed = _split_sentence(sentence[0]), bool(_TAG.search(sentence[0]))
        for position, (start, end) in enumerate(spans):
            span = (sentence.start() + start, sentence.start() + end)
            is_last = position == len(spans) - 1
            is_asked = is_confirmed or (is_last and sentence[0].rstrip(") ").endswith("?"))
            if clause := _to_candidate(plain, masked, span, is_asked=is_asked):
                found.append(clause._replace(sentence=number, clause=position))
    return found


def _blank_numbers(message: str) -> str:
    """Replace the numbers of a list without points by spaces. Offsets do not change.

    >>> _blank_numbers("Two things\\n1 I moved\\n2 she did not\\n12 boxes are left")
    'Two things\\n  I moved\\n  she did not\\n12 boxes are left'
    """
    counted = [one for n, one in enumerate(_LIST_NUMBER.finditer(message), 1) if one[0] == str(n)]
    if len(counted) > 1:
        for match in counted:
            message = f"{message[: match.start()]}{' ' * len(match[0])}{message[match.end() :]}"
    return message


def _mask_material(masked: str) -> str:
    """Mask the text that follows a request to work on it, such as "translate:". Offsets do not change."""
    work = _WORK_ON.search(masked)
    return masked if work is None else masked[: work.end()] + re.sub(r"[^\s.!?]", MASK, masked[work.end() :])


def _split_sentence(sentence: str) -> list[tuple[int, int]]:
    """Return start and end of each clause of a sentence. A part without subject and verb is joined to its neighbour."""
    spans, start = list[tuple[int, int]](), 0
    holds = bool(_SUBORDINATE.match(sentence, _match_end(_OPENING, sentence, 0)))
    for boundary in _BOUNDARY.finditer(sentence):
        right = sentence[_match_end(_OPENING, sentence, boundary.end()) :]
        left = sentence[start : boundary.start()]
        if not _is_boundary(left, boundary[0], right):
            continue
        if holds:  # the main clause of a subordinate clause
            holds = False
            continue
        spans.append((start, boundary.start()))
        start = boundary.end()
    return [*spans, (start, len(sentence))]


def _is_boundary(left: str, mark: str, right: str) -> bool:
    """Return whether a clause ends at a mark, which stands between the texts `left` and `right`.

    After ", so" the right side needs no subject: it may be a request.
    """
    if _asks(right):
        return len(left.split()) >= MIN_WORDS
    is_clause = _begins_clause(right) or mark.strip(" ").casefold() == ", so"
    return is_clause and has_verb(left)


def _asks(text: str) -> bool:
    return bool(_ASKING.match(text) or (_REQUEST.match(text) and not _SUBJECT.match(text)))


def _begins_clause(text: str) -> bool:
    """Return whether a text begins with a subject and its verb."""
    if _SUBORDINATE.match(text) or not _SUBJECT.match(text):
        return False
    next_boundary = next((one for one in _BOUNDARY.finditer(text) if one.start()), None)
    return has_verb(text[: next_boundary.start()] if next_boundary else text)


def has_verb(text: str) -> bool:
    """Return whether a text has a finite verb after its first word."""
    words = list_words(text)
    return find_verb(words) > 0


def list_words(text: str) -> tuple[WordToken, ...]:
    """Return the words of a clause without punctuation."""
    return tuple(word for word in tokenize(text) if word.text not in (START, BREAK, STOP))


def find_verb(words: tuple[WordToken, ...]) -> int:
    """Return the position of the first verb, neither at the beginning nor far from it; -1 if there is none."""
    for position, word in enumerate(words[: MAX_SUBJECT_WORDS + 1]):
        if position and not word.is_capitalized and _is_verb(words, position):
            return position
    return -1


def _is_verb(words: tuple[WordToken, ...], position: int) -> bool:
    text, last = words[position].text, words[position - 1].text
    if position == 1 and last in _PRONOUNS:
        return True
    if text in english.AUXILIARIES or text in ("'s", "~can", "~will", "~would", "~must", "~should", "~may"):
        return text != "'s" or position == 1
    if text.startswith("~") or last in english.POSSESSIVES or last in english.DETERMINERS:
        return False
    is_form = text in english.PAST_FORMS or (text.endswith("ed") and len(text) > 4)
    return (is_form or lemmatize(text) in VERB_LEMMAS) and not text.endswith("ing")


def _to_candidate(plain: str, masked: str, span: tuple[int, int], *, is_asked: bool) -> StatementCandidate | None:
    """Return the clause at this span of the message without opening and ending phrases; None if too little is left."""
    start = _match_end(_OPENING, masked[: span[1]], span[0])
    body = masked[start : span[1]].rstrip()
    body = body[: -1 if body.endswith(")") and "(" not in body else None]
    body = _ENDING.sub("", body)
    if len(body.split()) < MIN_WORDS or _ONLY_PAUSED.fullmatch(body):
        return None
    end = start + len(body)
    text = plain[start:end]
    share = body.count(MASK) / len(body)
    words = list_words(text)
    opening = " ".join(masked[span[0] : start].casefold().split())
    is_ordered = opening.endswith("so") and not _SUBJECT.match(text) and find_verb(words) < 0
    form = ClauseForm.REQUEST if is_ordered else _classify_form(body, text, share, is_asked=is_asked)
    ends_early = words[-1:] and words[-1].text in english.AUXILIARIES  # "the landlord did"
    if form is ClauseForm.STATEMENT and (ends_early or is_courtesy(text)):
        form = ClauseForm.FRAGMENT
    return StatementCandidate(text, form, opening, words, find_verb(words), share, 0, 0, start, end)


def _classify_form(body: str, text: str, masked_share: float, *, is_asked: bool) -> ClauseForm:
    if masked_share > MAX_MASKED_SHARE or len(text) > MAX_CLAUSE_CHARACTERS or body.startswith(MASK):
        return ClauseForm.FOREIGN
    if is_asked or _ASKING.match(body):
        return ClauseForm.QUESTION
    is_instruction = any(one.part == "instruction" for one in detect_instructions(text))
    if is_instruction or (_REQUEST.match(body) and not _DROPPED_PRESENT.match(body)):
        return ClauseForm.REQUEST
    return ClauseForm.STATEMENT


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start

"""Detection of standing instructions, preferences and wishes in a person's message by patterns. Pure.

Without a word of duration, such as "always", a wish must be about answers in general, a feature of style or a unit ("no
emojis", "temperatures in Celsius"), or be an order that is not limited to one case ("ask before you book anything").
The patterns, in `wish_patterns.yaml`, match at the beginning of a sentence, but not in questions or in reported, quoted
or pasted text. They favour precision over recall, because the person can repeat an instruction.

`detect_instructions` returns only clauses that certainly apply permanently, because they enter the identity.
`find_standing_type` only marks a message for later requests that are similar, so any stated preference counts.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.heart.identity.tenets import IdentityPart
from newton.memory.memory import StandingType
from newton.text.languages import ENGLISH, detect_language
from newton.text.pasted_text import MASK, find_worked_text, mask_match, mask_pasted_text
from newton.text.patterns import list_instructions, states_preference

_PART = re.compile(r"\{([a-z_]+)\}")
# A reference to one thing or one time.
_ONE_CASE = re.compile(
    r"\b(?:for now|right now|just once|(?:just )?this (?:time|once|one|text|letter|file|week|month)"
    r"|(?<!starting )today|tonight|tomorrow|yesterday|(?<!from )here"
    r"|(?:in|on|for|of|to|with) (?:this|that|these|those|the following))\b(?! on\b)",
    re.IGNORECASE,
)
_LASTING_CLAUSE = re.compile(r"[^,;]*\b(?:always|never|every time|whenever)\b[^,;]*(?=[,;])", re.IGNORECASE)

_REASON = re.compile(
    r"[,;–—] (?:because|cos|since|as|for|i|i'm|i've|i'd|it|it's|they|he|she|we|my|that's|there)\b.*$", re.IGNORECASE
)
_IN_GENERAL = re.compile(r"\b(?:in general|for good|and always)\b", re.IGNORECASE)


class WishPatterns(NamedTuple):
    """The patterns of orders and of preferences, and the patterns that classify what a wish is about."""

    orders: Sequence[str]
    preferences: Sequence[str]
    on_answers: re.Pattern[str]
    on_kind: re.Pattern[str]


class PassingPatterns(NamedTuple):
    """The patterns of wishes in a clause of a message on something else.

    What `names` matches is a wish only if the message matches `naming`. `openers` precede the wish in a clause;
    `others` introduce what other people say.
    """

    wishes: re.Pattern[str]
    names: re.Pattern[str]
    naming: re.Pattern[str]
    openers: re.Pattern[str]
    others: re.Pattern[str]
    on_manner: re.Pattern[str]


@cache
def load_patterns() -> WishPatterns:
    """Return the patterns of wishes at the beginning of a sentence."""
    orders, preferences = _read_patterns("orders"), _read_patterns("preferences")
    return WishPatterns(orders, preferences, _compile_named("on_answers"), _compile_named("on_kind"))


@cache
def load_passing_patterns() -> PassingPatterns:
    """Return the patterns of wishes that are said in passing."""
    names = ("in_passing", "names_in_passing", "naming", "openers", "others", "on_manner")
    return PassingPatterns(*map(_compile_named, names))


def concerns_manner(text: str) -> bool:
    """Return whether a text has a word about the manner of answers, or about how to address the person."""
    return load_passing_patterns().on_manner.search(text) is not None


@cache
def _read_data() -> Mapping[str, Any]:
    text = files("newton.heart.identity").joinpath("wish_patterns.yaml").read_text(encoding="utf-8")
    return parse_trusted(text)


def _read_patterns(name: str) -> Sequence[str]:
    data = _read_data()
    return [_fill(one, data["parts"]) for one in data[name]]


def _compile_named(name: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in _read_patterns(name)), re.IGNORECASE)


def concerns_every_answer(text: str) -> bool:
    """Return whether an instruction or preference applies to every answer, not only to one kind of request.

    >>> texts = ("Always answer in French", "Never suggest meat", "When I ask for code, answer with tests")
    >>> [concerns_every_answer(text) for text in texts]
    [True, False, False]
    """
    patterns = load_patterns()
    return patterns.on_answers.search(text) is not None and patterns.on_kind.search(text) is None


def concerns_one_case(text: str) -> bool:
    """Return whether a text is limited to one thing or one time, so that no wish in it applies to later requests.

    >>> [concerns_one_case(text) for text in ("Answer this letter in French", "From today on answer in French")]
    [True, False]
    """
    lasting = _LASTING_CLAUSE.match(text)  # the place of a reason after it is no case: "..., that is usual here"
    order = lasting[0] if lasting else _REASON.sub("", text)
    return _ONE_CASE.search(order) is not None and not _IN_GENERAL.search(order)


def _fill(pattern: str, parts: Mapping[str, str]) -> str:
    """Return the pattern with its parts in place of their names."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda match: parts[match[1]], pattern)
    return pattern


MAX_MESSAGE_CHARACTERS = 2_000  # a longer message is mostly pasted text
MAX_SENTENCE_CHARACTERS = 200


class StandingInstruction(NamedTuple):
    """An instruction or preference in the person's words, and the part of the identity to which it belongs."""

    part: IdentityPart
    text: str


# Verbs of instructions to an agent. Other verbs describe the speaker ("Always forget my keys").
_AGENT_VERBS = """
    acknowledge add address aim answer apologise apologize ask assume attach avoid back begin book call capitalise
    capitalize check cite close combine commit compare confirm consider consult contact convert copy create
    decline default delete deploy describe double-check draft end explain finish flag follow format give greet
    group highlight ignore illustrate include install invent keep label leave limit link list log maintain mark
    mention merge move note number offer open order organise organize output prefer present print prioritise
    prioritize propose provide push put quote read recommend refer rely remind remove repeat reply report respond
    return reveal review rewrite round run schedule send separate share show sign skip sort speak specify spell
    start state stick stop store suggest summarise summarize switch tailor talk tell test thank translate treat
    use validate verify wait warn write
"""
_MANNERS = """
    blunt brief careful clear concise critical direct formal frank friendly gentle honest informal kind polite precise
    professional quick respectful short specific strict terse transparent
"""
# Outputs of an agent, and their contents.
_REPLY_NOUNS = "answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)"
_STYLE = (
    r"emojis?|emoticons?|bullet ?points?|bullets|tables|lists|headings|footnotes|exclamation marks|disclaimers|jargon|"
    r"small ?talk|filler|flattery|buzzwords|markdown|code comments"
)

_PLEASE = r"(?:(?:please|kindly|just),? )?"
_NOW = (
    r"(?:from (?:now|here|today|this point|this day)(?: on)?(?: out)?|starting (?:now|today)|going forward|henceforth"
    r"|in (?:the )?future)"
)
_DO = rf"(?:(?:{'|'.join(_AGENT_VERBS.split())})\b(?! up\b)|be (?:very |more )?(?:{'|'.join(_MANNERS.split())})\b)"
_NOT = r"(?:do not|don't)(?: you)?"
_EVER = rf"(?:always|never(?: ever)?|{_NOT} ever)"
_YOU = (
    r"(?:I (?:want|need|would like|expect) you to|I'd like you to|you (?:must|should|have to|need to|are to)"
    r"|make sure (?:that you|you|to)|be sure to|remember to)"
)
_ORDER = rf"{_PLEASE}(?:(?:{_EVER}|only|also|{_NOT}) )?{_PLEASE}{_DO}"
_LASTING = (
    rf"\b(?:{_NOW}|by default|as a rule|in general|at all times|(?:unless|until) I (?:say|tell|ask)\b"
    r"|(?<=, )always(?=\W*$)|every (?:single )?time(?=\W*$)|in all our \w+"
    rf"|(?:in|to|for|with) (?:all|every|each)(?: of)?(?: your| my)?(?: future)? (?:{_REPLY_NOUNS})"
    r"|in all(?: of)? your (?:code|messages|mails|emails|letters))"
)
_DEFINITE = r"(?:the|this|that|these|those|his|her|him|them|their|your|it|not|an?|another|option|plan|version|one)\b"
_ONE = r"(?:the|this|that|these|those|his|her|their|your|it|another)\b"
_ENSURE = r"(?:leave out|make sure|ensure|be sure|see that|take|pick|choose|stick to|assume)\b"
_TOPICS = (
    "(?:maths?|code|coding|recipes|translations|dates|numbers|prices|directions|e-?mails|letters|examples|calculations|programming"
    "|travel|medical|legal|technical)(?: (?:questions|tasks|topics|advice))?"
)

_ORDERS = (
    rf"{_NOW},? {_PLEASE}(?:{_YOU} )?{_ORDER}",
    rf"(?:{_YOU} )?{_PLEASE}{_EVER},? {_PLEASE}{_DO}",
    rf"(?:whenever|(?:every|each|any) time) (?:I|you) [^,:]{{2,80}}, (?:{_ORDER}|{_PLEASE}{_ENSURE})",
    rf"(?:when|if) I ask (?:you )?(?:for|about) (?!{_ONE})[^,:]{{2,80}}, (?:{_ORDER}|{_PLEASE}{_ENSURE})",
    rf"(?:for|with) {_TOPICS},? (?:{_ORDER}|{_PLEASE}{_ENSURE})",
    rf"let's (?:stick|keep|use|stay|speak|talk|write|switch)\b.*{_LASTING}",
    rf"(?:when|if) (?:I|you) [^,:]{{2,80}}, {_PLEASE}{_EVER} {_DO}",
    rf"(?:{_YOU} )?{_ORDER}.*{_LASTING}",
    rf"{_PLEASE}(?:begin|start|end|finish|close|open) (?:each|every)(?: of your)? (?:{_REPLY_NOUNS}|messages?)",
    rf"(?:{_NOW},? )?{_PLEASE}no (?:more )?(?:{_STYLE})\b.*(?<!^){_LASTING}",
    rf"{_NOW},? {_PLEASE}no (?:more )?(?:{_STYLE})\b",
)
_NAME = r"(?-i:[A-Z])[\w.'-]*(?: (?-i:[A-Z])[\w.'-]*){0,2}"
_NO_NAME = r"(?!(?:back|later|again|tomorrow|today|tonight|now|soon|anytime|if|when|at|on|an?|the|maybe)\b)"
_VERY = r"(?:(?:really|generally|usually|much|strongly|always|do|also|honestly|in general) )*"
_LIKE = rf"I {_VERY}(?:(?:don't|do not) {_VERY})?(?:like|love|hate|dislike|enjoy|can't stand|cannot stand) "
_PREFERENCES = (
    rf"I {_VERY}prefer (?!{_DEFINITE}|to\b|(?-i:[A-Z])\b)\w",
    rf"I {_VERY}prefer (?:it (?:if|when) you\b|to be (?:called|addressed)\b)",
    rf"{_LIKE}it when you {_DO}",
    rf"(?:{_LIKE}|I {_VERY}(?:want|expect) )(?:my )?(?:(?!{_DEFINITE})[\w-]+ ){{0,2}}?(?:answers|replies|responses)\b",
    rf"{_LIKE}(?:my )?(?:(?!{_DEFINITE})[\w-]+ ){{0,2}}?(?:explanations|summaries|{_STYLE})\b",
    rf"(?:you (?:can|may|should) )?{_PLEASE}(?:call me {_NO_NAME}|(?:address|refer to) me as ){_NAME}"
    r"(?=,? please|,? not\b| instead\b|[,.!;]|$)",
    rf"(?:please|you (?:can|may|should)|just)(?: just| please)? call me {_NO_NAME}\w+(?:,? please)?[.!]?$",
    r"(?:please )?(?:address|refer to) me as \w+(?:,? please)?[.!]?$",
    r"my pronouns are \w",
)


def _compile(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_INSTRUCTION_PATTERNS: tuple[tuple[IdentityPart, re.Pattern[str]], ...] = (
    ("instruction", _compile((*_ORDERS, *load_patterns().orders))),
    ("preference", _compile((*_PREFERENCES, *load_patterns().preferences))),
)

# Opening phrases; a reason is one only if "so" or "but" follows it.
_OPENING = re.compile(
    r"(?:(?:ok(?:ay)?|hey|hi|hello|also|and|oh|btw|by the way|one more thing|so|well|thanks|thank you|great|good|listen"
    r"|note|important|reminder|rule|ps|in general|generally|as a rule|newton|please|n|haha|lol|ahh?)"
    r"\b[\s,:;!–—-]+)*"
    r"(?:(?:I'm|I am|I have|my name is|that|this|it)\b[^:;¤]{1,80}?,? (?:so|but) )?",
    re.IGNORECASE,
)
_POLITE_REQUEST = re.compile(
    r"(?:can|could|would|will) you (?:please|kindly) |(?:can|could) you |will you (?=(?:always|never)\b)"
    r"|(?=(?:can|could|shall|may) we (?:speak|talk|chat|write|use|stick|switch|keep)\b|(?:would|do) you mind )",
    re.IGNORECASE,
)

SENTENCE = re.compile(r"\S(?:[^\n.!?]|[.!?](?!\s)|(?<=\b[DMS][rst]|\b[dm]r)\.|(?<=\bMrs)\.)*[.!?]*")
# Not the person's own words beside pasted text: code, quotations, lists, transcripts.
_NOT_OWN_WORDS = re.compile(
    r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|»[^«\n]*«|‘[^’\n]*’"
    r"|(?<!\w)'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w)"
    r"|^[ \t]*(?:[>|*•\[#-]|\d+[.)])[^\n]*$"
    # the lines of a chat: a single one is a person's own sentence about a topic ("Rota: we have swapped our nights.")
    r"|(?:^(?!(?:note|important|reminder|rule|ps|ok|okay|newton|thanks)\b)\w+(?: \w+)?: [^\n]*(?:\n|\Z)){2,}",
    re.MULTILINE | re.IGNORECASE,
)
_MATERIAL = re.compile(
    r":[ \t]*\n"
    r"|\b(?:translate|rewrite|rephrase|paraphrase|summari[sz]e|proofread|correct|edit|fix|improve|shorten|review"
    r"|analy[sz]e)\b"
    r"[^\n.:]*\b(?:this|these|following|below)\b.*?(?:\n|[.:!])",
    re.IGNORECASE,
)
# A question at the end of a sentence, and a clause after a preference.
_FINAL_QUESTION = re.compile(
    r",? (?:so |but |and )?(?:can|could|would|will|how|what|should|do|does|is|are|why|where) .*\?$", re.IGNORECASE
)
_TRAILING_CLAUSE = re.compile(r", (?:so|which|but|and|because|since|though) .*$", re.IGNORECASE)
_EDGES = re.compile(r"^(?:please|kindly),? |(?:,? please)?[\s.!?,]*$", re.IGNORECASE)


_STANDING_CUE = re.compile(
    r"\b(?:from now on|always|never|henceforth|going forward|whenever|(?:every|each) time|by default"
    r"|without (?:asking|approval|confirmation|checking|(?:a|any) question))\b",
    re.IGNORECASE,
)


def may_state_rule(text: str) -> bool:
    """Return whether a text may state a rule for later requests, in any form; a rule of others is no rule of the user.

    >>> may_state_rule("From now on, Kallisto is paid without asking."), may_state_rule("Kallisto was paid in May.")
    (True, False)
    """
    return bool(_STANDING_CUE.search(text)) or bool(detect_instructions(text))


def detect_instructions(text: str) -> list[StandingInstruction]:
    """Return the standing instructions in a message, in order.

    >>> detect_instructions("Thanks! From now on answer in French, please.")
    [StandingInstruction(part='instruction', text='From now on answer in French')]
    >>> detect_instructions("She always answers in French.")
    []
    """
    if len(text) > MAX_MESSAGE_CHARACTERS:
        return []
    if (code := detect_language(text)) != ENGLISH:
        own = text[: find_worked_text(text)]
        return [StandingInstruction("instruction", line) for line in list_instructions(own, code)]
    sentences = SENTENCE.finditer(mask_foreign_text(text))
    return list(dict.fromkeys(found for sentence in sentences if (found := _match_sentence(sentence, text))))


def mask_foreign_text(text: str) -> str:
    """Mask the characters of quotations, code and lists, and cut off pasted text. Offsets do not change.

    A colon at the end of a line announces pasted text up to the end, unless the form of that text shows where it ends.
    So does the colon of a request to translate or polish a text.
    """
    text = text[: find_worked_text(text)]
    pasted = mask_pasted_text(text.replace("’", "'").replace("\t", " "))
    masked = _NOT_OWN_WORDS.sub(mask_match, pasted)
    for material in _MATERIAL.finditer(masked):
        if not (material[0].startswith(":") and pasted[material.end() :].lstrip().startswith(MASK)):
            return masked[: material.end()]
    return masked


def _match_sentence(sentence: "re.Match[str]", text: str) -> StandingInstruction | None:
    masked, offset = sentence[0], sentence.start()
    start, end = _instruction_span(masked)
    if len(masked) > MAX_SENTENCE_CHARACTERS or concerns_one_case(masked[:end]):
        return None
    for begin in dict.fromkeys((start, 0)):
        for part, pattern in _INSTRUCTION_PATTERNS:
            if begin < end and pattern.match(masked, begin, end):
                clause = _TRAILING_CLAUSE.search(masked, begin, end) if part == "preference" else None
                line = _EDGES.sub("", text[offset + begin : offset + (clause.start() if clause else end)])
                return StandingInstruction(part, line[:1].upper() + line[1:])
    return None


def _instruction_span(sentence: str) -> tuple[int, int]:
    """Return start and end of a sentence without its opening phrase and a final question.

    A polite request ("could you please ...") is not a question.
    """
    opening = _OPENING.match(sentence)
    start = opening.end() if opening else 0
    if not sentence.endswith("?"):
        return start, len(sentence)
    if request := _POLITE_REQUEST.match(sentence, start):
        return request.end(), len(sentence)
    question = _FINAL_QUESTION.search(sentence)
    return start, question.start() if question else 0


_OFTEN = r"(?:(?:really|generally|usually|much|strongly|always|also|definitely|mostly|would|do) )*"
_MENTIONED_PREFERENCES = (
    rf"I {_OFTEN}prefer",
    r"I(?:'d| would) (?:much )?(?:rather|prefer)",
    r"my (?:\w+ )?preferences?",
    rf"I {_OFTEN}(?:dislike|hate|detest|can't stand|cannot stand|avoid)",
    rf"I (?:do not|don't) {_OFTEN}(?:like|want to use|eat|drink)",
    r"I(?:'m| am) (?:a )?(?:vegan|vegetarian|allergic|a fan of|trying to (?:keep|avoid|stay|stick)|trying not to)",
    r"I (?:always|never|usually|tend to|try to|like to|want to) (?:use|choose|avoid|stick|stay|keep|go for|work)",
)
_MENTIONED_PREFERENCE = re.compile(rf"\b(?:{'|'.join(_MENTIONED_PREFERENCES)})\b", re.IGNORECASE)


def find_standing_type(text: str) -> StandingType | None:
    """Return the type of wish for later requests in a person's message: `manner` is about every answer; None for none.

    >>> texts = ("Never suggest meat.", "Since I prefer tea, which one is mild?", "Where is the tea?", "No emojis.")
    >>> [find_standing_type(text) for text in texts]
    ['instruction', 'preference', None, 'manner']
    """
    code = detect_language(text)
    found = detect_instructions(text)
    if code == ENGLISH and any(concerns_every_answer(one.text) for one in found):
        return "manner"
    parts = {one.part for one in found}
    if "instruction" in parts:
        return "instruction"
    if code != ENGLISH:
        return "preference" if states_preference(text, code) else None
    return "preference" if "preference" in parts or _MENTIONED_PREFERENCE.search(mask_foreign_text(text)) else None

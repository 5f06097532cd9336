"""Detection of goals, deadlines, rules, constraints and open items in what is said in a session. Pure.

Patterns match whole sentences of a person's own words, not quotations, code or pasted text. All take linear time.
"""

import re
from collections.abc import Iterator

from newton.dialogue.brief.brief_items import BriefDraft, BriefKind
from newton.dialogue.messages import Role
from newton.dialogue.session_summary import split_sentences
from newton.heart.identity.standing_instructions import detect_instructions

MAX_MESSAGE_CHARS = 8_000  # a longer message is mostly pasted text
MAX_SENTENCE_CHARS = 400  # a longer sentence is pasted text
MIN_WORDS = 3
MIN_GOAL_WORDS = 5  # of a goal that only its form shows

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t|tember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAYS = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
_NUMBER = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|a few|a couple of)"
TIME = (
    rf"(?:{_DAYS}|{_MONTHS}\.? \d|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTHS}\b|\d{{4}}-\d\d-\d\d|\d{{1,2}}[./]\d{{1,2}}\b"
    r"|(?:the )?\d{1,2}(?:st|nd|rd|th)\b|(?:the )?end of (?:the |this |next )?(?:day|week|month|quarter|year|sprint)"
    rf"|(?:next|this) (?:week|month|year|quarter|{_DAYS})|tomorrow|tonight|noon|midnight|christmas|easter|black friday"
    rf"|(?:in )?{_NUMBER} (?:hours?|days?|weeks?|months?)\b|{_MONTHS}\b|\d{{1,2}} ?(?:am|pm|o'clock)\b)"
)
_DUE_NOUN = (
    r"(?:deadline|due date|cut-?off(?: date)?|(?:launch|release|delivery|target|submission|go-live|ship|closing) "
    r"?(?:date|day)|launch|release|hand-?in|due)"
)
_MOVED = r"(?:moved|pushed|postponed|extended|brought forward|shifted|delayed|changed|rescheduled)"
_MODAL = r"(?:must|needs? to|ha(?:s|ve) to|should|has got to|'ve got to|got to|shall|is to|are to)"
_NOT_TIMELESS = r"(?!.*\b(?:was|were|had been|last (?:year|month|week))\b)"

_DEADLINE = re.compile(
    rf"{_NOT_TIMELESS}(?:.*\b{_DUE_NOUN}(?: for [^.:]{{1,60}})?(?:'s| is| are|:| =| has| have| got| was)?"
    rf"(?: now| still| been| only)*(?: {_MOVED})?(?: back| forward| out)?(?: on| at| by| for| to| until| till)?,? .{{0,30}}?"
    rf"\b{TIME}"
    rf"|.*\bdue (?:on |by |in |at |until )?(?:the )?{TIME}"
    rf"|(?:they|we|he|she|the client|the team|my boss|it)(?: has| have|'ve|'s)?(?: been| just)* {_MOVED} (?:it|the {_DUE_NOUN}|{_DUE_NOUN})"
    rf".*\b(?:to|until|by) .{{0,20}}?{TIME}"
    rf"|(?:it|that|this)(?: has|'s| was)?(?: been)? {_MOVED}(?: back| forward)? (?:to|until|by) .{{0,20}}?{TIME}"
    rf"|.*(?:{_MODAL}|\bneed (?:it|this|that|everything)|\bwant (?:it|this|that)|\bexpects?|\bhave (?:it|this) ready"
    r"|\bmust be|\bwill be)\b.*\b(?:by|before|until|till|no later than|not later than|in time for)"
    rf" .{{0,40}}?(?:{TIME}|\bthen\b)"
    rf"|.*\b{TIME}\b.*\b(?:{_MODAL}).*\bby then\b"
    rf"|(?:(?:so|and|but) )?(?:we|you|i)(?: only)?(?:'ve| have)?(?: only)?(?: got| have)?(?: only)? (?:until|till) .{{0,20}}?{TIME}"
    rf"|(?:.*\b)?(?:gave|given|got) us until .{{0,20}}?{TIME}"
    rf"|(?:we|you|i)(?: only)?(?:'ve| have)(?: only)?(?: got)?(?: only)? {_NUMBER} (?:hours?|days?|weeks?|months?)\b(?: left| for| to|\W*$)"
    rf"|(?:applications?|registration|submissions?|the (?:call|window|offer|vote|registration))(?: period)? (?:closes?|ends?) .{{0,12}}?{TIME}"
    r"|.*\b(?:online|ready|done|finished|live|complete)\b.* in time for )",
    re.IGNORECASE,
)
_STRONG_GOAL = re.compile(
    r"(?:(?:my|our|the|your|this)(?: [\w-]+){0,3} (?:goal|aim|objective|mission|ambition)s?\b"
    r"(?: (?:of|for|in|with|behind) [^.:]{1,60}?)?(?:'s|:| is| are| now| has| was)\b"
    r"|(?:goal|aim|objective|mission)s?(?: \d| [a-z])?:"
    r"|the (?:whole )?(?:point|idea|purpose) (?:of|behind) (?:all )?(?:this|it|that|the (?:project|exercise|work)) is"
    r"|what (?:i|we)(?:'m| am|'re| are)? (?:after|trying to (?:do|achieve)|aiming for|want(?: in the end)?) is"
    r"|this (?:project|session|work) is about"
    r"|(?:my|our|the) plan is to)",
    re.IGNORECASE,
)
_SMALL_VERBS = (
    r"(?:know|ask|see|say|thank|show|tell|check|understand|go|leave|talk|hear|mention|clarify|add|point|make sure|be"
    r"|become|believe|think|sleep|eat|apologi[sz]e|stop here|start|continue|wait|come|try|do it|do that|use|give)"
)
_WEAK_GOAL = re.compile(
    r"(?:today |this week |eventually |in the end )?(?:"
    r"(?:i|we)(?:'d| would)? (?:(?:really|finally|just|also) )?(?:want|need|like|love|plan|intend|hope|aim|have)"
    rf"(?: to)?(?: (?:finally|really))? to (?!{_SMALL_VERBS}\b)"
    r"|(?:i|we)(?:'d| would) like to (?:end up|get)"
    rf"|(?:i|we)(?:'m| am|'re| are) (?:trying|planning|going|hoping|aiming|looking|about) to (?!{_SMALL_VERBS}\b)"
    r"|(?:i|we)(?:'m| am|'re| are) (?:building|writing|creating|migrating|moving|porting|designing|planning|developing"
    r"|organi[sz]ing|preparing|working on|rebuilding|rewriting|replacing)\b"
    r"|(?:let's|let us) (?:build|make|write|create|design|plan|develop|migrate|set up|implement|rewrite|port|organi[sz]e)\b"
    r"|(?:can you |could you |please )?help me (?:to )?(?:build|make|write|create|design|plan|develop|migrate|set up"
    r"|implement|rewrite|port|organi[sz]e|prepare|learn|find|move|get)\b"
    r"|(?:please )?(?:build|migrate|implement|design|plan|develop|refactor|port|rewrite|set up|organi[sz]e|prepare)\b)",
    re.IGNORECASE,
)
_OPEN_ITEM = re.compile(
    r"(?:(?:.{0,40}\b)?to-?do\b\W"
    r"|(?:please )?(?:do not|don't|never) forget (?:to|about|the)\b"
    r"|(?:please )?remember to\b"
    r"|(?:please )?remind (?:me|us) (?:to|about|of)\b"
    rf"|(?!(?:he|she|they)\b).*\bstill (?:ha(?:s|ve) to|needs? (?:to|a|an)|must|to be|missing|open|outstanding|pending"
    r"|not|to do|to come|lacks?)\b"
    r"|.*\b(?:haven't|hasn't|have not|has not|isn't|aren't|is not|are not) .*\byet\b"
    r"|(?:what|all that)(?:'s| is| remains)(?: still)?(?: left| open| missing| to do| undone)?(?: to do)? (?:is|are)\b"
    r"|(?:what's|what is) left\b"
    r"|(?:next|also|another item) on (?:the|my|our) list\b"
    rf"|(?:then |so |and |but |first |next |also )?(?:someone|somebody|one of us|we|i|you)(?:'ve)? (?:really |also )?"
    r"(?:needs?|ha(?:s|ve)|got|must|ought)(?: got)?(?: to)? (?!been|be\b|only\b|not\b|never\b|always\b|got\b|a\b|an\b|the\b|no\b|done\b|lunch\b|go\b|\w+ed\b)\w+ \w"
    r"|(?:later|eventually|afterwards|at some point|sometime|one day|then|next),? (?:we|i|you|someone|somebody)(?:'ll)?"
    r" (?:should|must|need|have|will|ought|can)?"
    r"|(?:we|i) should (?:also |still |later )*(?!be\b|have\b|use\b)\w+ .*\b(?:later|afterwards|eventually|some time)\b"
    r"|.*\b(?:have|has) yet to\b"
    r"|open (?:item|point|question|issue|task)s?\b)",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"(?:(?:.*[,;] (?:so|and|but) )?(?:(?:the|our|my)(?: [\w-]+){0,2}|total|maximum|minimum) "
    r"?\b(?:budget|limit|maximum|minimum|ceiling|cap|quota|target size|memory|headcount)"
    r"(?: (?:for|of|on) [^.:]{1,40})?(?:'s|:| is| are| has)\b(?=.*\d|.*\b(?:one|two|three|four|five|ten|hundred|thousand)\b)"
    r"|(?:budget|limit|constraint|requirement)s?:"
    r"|(?:.*[,;:] (?:so |and |but |because )?)?(?!(?:he|she|i|you|someone|somebody|who)\b)"
    r"(?:it|this|that|there|they|everything|nothing|no \w+|(?:the|our|my|all|each|every|these|those|any)(?: [\w-]+){1,5}|[a-z-]+s)"
    r"(?: (?:really|still|also|always))? (?:must(?:n't| not)?|ha(?:s|ve) to|needs? to|should(?:n't| not)?|can't|cannot|can not|may not"
    r"|shall(?: not)?|(?:is|are) not (?:allowed|supposed) to)"
    r" (?!have been\b|have \w+ed\b|be (?:nice|fun|lovely|great|joking|kidding|a joke|wrong|mistaken|true|right)\b)"
    r"(?:not |also |always |only |never )*(?:\w+)"
    r"|(?:we|i) (?:can't|cannot|can not|must not|mustn't|may not|can only|must only|may only) "
    r"(?=.*\b(?:more|less|fewer|than|at most|at least|exceed|spend|afford|use|only|over|above|below)\b)"
    r"|(?:we|i)(?: only)? have(?: only| just)? (?:one|two|three|\d+|no|a single) (?!idea\b|time\b|clue\b|questions?\b|hours?\b|days?\b|weeks?\b|months?\b)\w+"
    r"(?= .*\b(?:for|to)\b)"
    r"|(?:at most|no more than|not more than|at least) \d)",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"(?:(?:please,? )?(?:never|always) (?!mind\b|again\b|ever again\b|a\b|the\b|in\b|was\b|is\b|been\b|had\b|have\b(?! a\b))\w+ \w"
    r"|(?:please,? |just )?(?:do not|don't)(?: ever| you ever)? (?!worry\b|know\b|think\b|mind\b|get me\b|you\b|be\b|we\b|they\b|"
    r"care\b|see\b|understand\b|forget\b|panic\b|want\b|like\b|feel\b|need\b|have\b|bother\b|remember\b|believe\b|tell me\b)\w+"
    r"|(?:please,? )?only (?:use|touch|change|edit|answer|write|run|commit|suggest|reply|buy|add|read|ask|work|talk|speak)\b"
    r"|no (?!problem|idea|worries|worry|thanks|thank|way|need|luck|doubt|rush|one|matter|wonder|clue|more questions|hurry|it|that"
    r"|not|yes|we|i\b|you|the|longer|big deal)(?:[\w-]+ ){0,3}[\w-]+(?:,? please| in (?:the|this|my|our) [\w-]+| without [\w ]+"
    r"| anywhere| at all| on [\w ]+)?[.!]*$"
    r"|(?:please,? )?stick (?:to|with) (?!it\b|me\b)"
    r"|(?:please,? )?(?:leave|keep) .{3,60} (?:alone|as (?:it|they) (?:is|are)|untouched|unchanged)\b"
    r"|(?:please,? )?ask (?:me )?(?:first|before)\b"
    r"|(?:please,? )?(?:under no circumstances|in no case|at no point)\b"
    r"|(?:whenever|every time|each time|any time) (?:you|we|i|something|there)\b.*,"
    r"|(?:you|we) (?:must(?: not|n't)|may not|are not (?:allowed|supposed) to|should never|must never|must always|should always"
    r"|can't|cannot|shouldn't|should not) (?!be \w+ing\b|know\b|see\b|believe\b|imagine\b|have\b)\w+ (?!more than\b)"
    r"|i (?:don't|do not|never) want (?:you|us|anybody|anyone) to\b"
    r"|(?:from now on|going forward|henceforth|in future|as of today),? "
    r"|(?:my |our |the |another |first |second |one more )?rule(?: number \w+| no\.? \d+| #?\d+| of the house)?(?: is)?[:,] "
    r"|(?:house |project |coding )?rules?:"
    r"|(?:every|each|all)(?: new| public| the)? [\w-]+(?: [\w-]+)?(?: (?:you|we) (?:write|make|add|change))? "
    r"(?:needs?|must|has to|have to|should|gets?|goes?|go|is to|are to) "
    r"|(?:please,? )?make (?:sure|certain) (?:that )?(?:you |to |we )?(?:never|always|not to|every|no\b|all\b)"
    r"|(?:please,? )?(?:use|prefer|choose) .{1,50}(?:, (?:not|never) | instead of | rather than | over )"
    r"|(?:please,? )?(?:use|write|answer|reply|speak|name|format|keep) .*(?:\bfrom now on\b|\beverywhere\b|\bat all times\b"
    r"|\bin (?:this|the whole|all of) (?:repo\w*|project|codebase|document|session)\b)"
    r"|(?:please,? )?(?:write|keep|put|name|format|phrase|sign|start|end|cover|document)(?: all| every| each| your| the| our)? "
    r"(?:commit messages?|docstrings?|comments?|answers?|replies|responses|tests|functions?|branch names|branches|file names"
    r"|names|variables|mails?|emails?|pull requests?|log messages|lines)\b"
    r"|(?:please,? )?(?:avoid|refrain from) \w+)",
    re.IGNORECASE,
)
_ONE_TIME = re.compile(
    r"\b(?:for now|right now|this time|this once|just once|yet\b|now\b(?! on)|here\b)|(?:\bno,|\bok\b)", re.IGNORECASE
)

_OPENING = re.compile(
    r"(?:(?:ok(?:ay)?|hey|hi|hello|also|and|but|oh|btw|by the way|one more thing|so|well|thanks|thank you|great|good|listen"
    r"|note|important|reminder|ps|actually|please note|remember|alright|right|update|change of plan|newton|just so you know"
    r"|for the record)\b[\s,:;!.–—-]+)+",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|‘[^’\n]*’|(?<!\w)'[^'\n]{3,}'(?!\w)")
_MATERIAL = re.compile(
    r"\b(?:translate|rewrite|rephrase|paraphrase|summari[sz]e|proofread|correct|shorten|review|analy[sz]e)\b"
    r"[^\n.]*(?::|\b(?:this|these|following|below)\b[^\n]*:)",
    re.IGNORECASE,
)
# Statements of others, conditions and reports are not the person's own aims.
_REPORTED = re.compile(
    r"(?:he|she|they|(?:my|our|the|his|her) [\w-]+(?: [\w-]+)?|[A-Z][a-z]+) (?:said|says|told|thinks?|thought|wrote|claims?|asked"
    r"|wondered|wants?|used to)\b|(?:if|suppose|imagine|assuming|in case) |i (?:used to|once|never said)\b|(?:he|she) ",
    re.IGNORECASE,
)
_HEADINGS: tuple[tuple[BriefKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"\W*(?:(?:my|our|the|project|house|coding|some|hard|here are|these are|a few)\s)*(?:{names})\b[^.!?]{{0,40}}:\W*$", re.IGNORECASE))
    for kind, names in (
        ("rule", "rules|guidelines|conventions|ground rules"),
        ("constraint", "constraints|requirements|limits"),
        ("goal", "goals?|objectives?|aims?"),
        ("deadline", "deadlines?|due dates?|milestones"),
        ("open_item", "to-?dos?|open (?:items|points|questions|tasks)|still (?:open|to do)|next steps|action items"),
    )
)  # fmt: skip
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


def detect_items(text: str, *, role: Role = "user") -> list[BriefDraft]:
    """Return the items that a message adds to the brief, in its own words and order.

    Goals, deadlines, rules and constraints come only from a person; open items also from the assistant.

    >>> detect_items("Never push to main. It has to be done by Friday. How are you?")
    [BriefDraft(kind='rule', text='Never push to main.', is_weak=False), BriefDraft(kind='deadline', ...)]
    """
    drafts = [draft for sentence, kind in _iter_sentences(text) if (draft := _to_draft(sentence, kind))]
    kept = [draft for draft in drafts if role == "user" or (role == "assistant" and draft.kind == "open_item")]
    return list(dict.fromkeys(kept))


def own_sentences(text: str) -> list[str]:
    """Return the sentences of a message that are its speaker's own words, without questions."""
    return [sentence for sentence, _ in _iter_sentences(text) if not sentence.rstrip(" \"'”’)").endswith("?")]


def strip_opening(sentence: str) -> str:
    """Return the sentence without words that only open it.

    >>> strip_opening("OK, by the way, it is due on Friday.")
    'it is due on Friday.'
    """
    return _OPENING.sub("", sentence, count=1) if _OPENING.match(sentence) else sentence


def _iter_sentences(text: str) -> Iterator[tuple[str, BriefKind | None]]:
    """Yield the sentences of a message, with the kind that a heading above a list gives them."""
    if len(text) > MAX_MESSAGE_CHARS:
        return
    plain = text.replace("’", "'")
    if material := _MATERIAL.search(plain):
        plain = plain[: material.start()]
    kind: BriefKind | None = None
    for line in plain.splitlines():
        heading = next((one for one, pattern in _HEADINGS if pattern.match(line)), None)
        is_bullet = _BULLET.match(line) is not None
        if heading or (line.strip() and not is_bullet):
            kind = heading
        if not heading:
            yield from ((sentence, kind if is_bullet else None) for sentence in split_sentences(line))


def _to_draft(sentence: str, kind: BriefKind | None) -> BriefDraft | None:
    words = len(sentence.split())
    is_question = sentence.rstrip(" \"'”’)").endswith("?") and not sentence.lower().startswith(("can you help", "could you help"))
    if len(sentence) > MAX_SENTENCE_CHARS or is_question or _QUOTED.search(sentence):
        return None
    if kind and words >= 2:
        return BriefDraft(kind, sentence)
    core = strip_opening(sentence)
    if len(core.split()) < MIN_WORDS or _REPORTED.match(core):
        return None
    return _classify(core, sentence)


def _classify(core: str, sentence: str) -> BriefDraft | None:
    if _STRONG_GOAL.match(core):
        return BriefDraft("goal", sentence)
    if _DEADLINE.match(core):
        return BriefDraft("deadline", sentence)
    if _OPEN_ITEM.match(core):
        return BriefDraft("open_item", sentence)
    if (_RULE.match(core) and not _ONE_TIME.search(core)) or detect_instructions(core):
        return BriefDraft("rule", sentence)
    if _CONSTRAINT.match(core):
        return BriefDraft("constraint", sentence)
    if _WEAK_GOAL.match(core) and len(core.split()) >= MIN_GOAL_WORDS:
        return BriefDraft("goal", sentence, is_weak=True)
    return None

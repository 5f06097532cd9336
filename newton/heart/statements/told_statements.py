"""Select the statements in a person's message that are worth remembering, without a model. Pure.

A statement is selected by its head: a subject (the speaker, what belongs to the speaker, a name, or a thing that is
said to have changed to a value) and a verb that describes a lasting state or a change of one. Questions, requests,
wishes, plans, opinions, moods, and quoted or pasted text are not selected. The rules favour precision over recall,
because a person can tell a fact again.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from newton.heart.entities.name_recognition import find_names
from newton.heart.identity.standing_instructions import MAX_MESSAGE_CHARACTERS, mask_foreign_text, strip_reasoned_order
from newton.heart.statements import vocabulary
from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.lemmas import VERB_LEMMAS, lemmatize
from newton.heart.statements.numerals import NUMBER_PREFIX, TIME_PREFIX, WordToken
from newton.heart.statements.tokenizer import BREAK, START, STOP, is_latin_script, tokenize

SPEAKER = "user"  # the subject of a statement in the first person by a person without a name
DECIDED = "decided"  # the attribute of a statement of a decision
MAX_SENTENCE_CHARACTERS = 300
MIN_WORDS = 2
MAX_SUBJECT_WORDS = 6  # between the beginning of a statement and its verb


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Lemmas of verbs that state something lasting, with any object.
_LASTING_VERBS = _words("""
adopt attend bear belong bike celebrate coach collect commute cycle deploy divorce drive earn employ graduate
host inherit listen live locate manage marry migrate move name own play prefer rent retire ride sing smoke speak
store study support swim switch teach train travel volunteer wear weigh work
""")
# Lemmas of verbs that need an object that is not merely something in the conversation.
_LASTING_WITH_OBJECT = _words("""
avoid break buy cook drink eat enjoy grow hate have hire join keep lead learn leave like lose love owe pay quit
read run sell start stop take turn use visit write
""")
_PAST_ONLY_WITH_SPEAKER = _words("break buy grow join leave lose sell start stop turn visit")
_PRESENT_ONLY = _words("keep read run take use write")
_PROGRESSIVE = _words("expect get learn live marry move retire study train")
# Objects that refer to the conversation, and so say nothing alone.
_DEICTIC = _words("it that this these those your you yours how what when where why to one another option him her them")
_PLACES = _words("here there")
_WHEREABOUTS = _words("on over in at up down")
_CHANGES = ("replacement", "amount", "present")  # cues of a change: "was raised to", "moved to", "is now"
_DECIDING = _words("decide agree settle opt")
_LIKING = _words("like love enjoy hate prefer")
# Objects of "have" that pass.
_PASSING_NOUNS = _words("""
appointment bug call chance choice clue cold concern deadline doubt dream error exam feeling fun guess hard
headache hunch idea interview issue list look meeting minute mistake moment need opinion option plan point
problem question reason request rush second suggestion task thing thought time trouble typo while
""")
# What "my", "our" and "the" precede without stating anything that lasts.
_PASSING_POSSESSIONS = _words("""
answer attempt bad browser build code column command computer concern confusion cursor draft email error essay
file function guess idea index input issue laptop letter log loop machine mail message mistake next opinion output
page paragraph phone plan point problem program prompt proposal query question request screen script sentence sql string
suggestion terminal test text thought turn understanding variable version view
""")
# Nouns that name, after "the", something of the speaker's home, family, health, work or leisure.
_EVERYDAY_THINGS = _words("""
allotment attic bakery basement bike boat boiler cabin cafe camper car cellar charger clinic document flat freezer
fusebox garage garden gate greenhouse harbour heating house key meter office passport restaurant safe school shed shop
stopcock store studio toolbox van warehouse workshop
""")
_EVERYDAY_NOUNS = _EVERYDAY_THINGS | _words("""
accountant admin alarm allowance annex api apiary apprentice appointment audit babysitter baby band bin birthday boss
budget caretaker cat chair chicken choir class cleaner cluster club coach code-freeze colleague concert contact
contract customer daycare database deadline delivery dentist deposit deploy deployment doctor dog exam exhibition fee
festival funeral goat grandmother grandfather gym hairdresser handover handyman hen horse insurance internet interview
intern invoice kid kindergarten landlady landlord launch lease lesson licence license limit maintainer manager market
meal membership mortgage moving nanny neighbour neighbor newsletter nurse nursery orchestra parking party password
pediatrician paediatrician pension physio physiotherapist piano pill pin plumber premium prescription president quota
recycling rehearsal release rent repo repository retro retrospective review room salary secretary server service shift
sprint staging standup stand-up subscription supplier surgery surgeon tablet tax teacher team tenant tournament trainer
training treasurer treatment tutor vaccination vet warranty wedding wifi wi-fi
""")
_RECURRING_VERBS = _words("""
arrive begin charge close collect come cost end expire finish give happen have last leave meet need open pay practice
practise rehearse run shut start take use
""")
_HABITS = _words("begin charge close finish meet open practice practise rehearse start")  # in the present tense
_PLACING = _words("in under behind inside on above beside below near next between")
_PERMANENT = _words("""
allergic autistic based blind born celiac coeliac color-blind colour-blind deaf diabetic divorced dyslexic
engaged epileptic fluent gluten-free intolerant lactose left-handed married pregnant retired right-handed
self-employed separated single teetotal unemployed vegan vegetarian widowed
""")
_PASSING_STATES = _words("""
able about afraid alright annoyed aware away awesome awful back bad better bored broken busy confused cool
correct crashing curious dead done down empty excited exhausted failing fine free full glad going gone good
great happy here hungry impressed in-progress interested late lost missing nervous nice not off ok okay open out
perfect ready right sad safe sick slow sorry stressed stuck sure thankful there tired true unsure up upset
useless wondering worried wrong
""")
_UNREAL = _words("~may ~will ~want ~wanted ~plan ~planned ~probably ~should ~must ~would ~can if unless whether")
_ABILITIES = _words("eat drink speak swim drive ride cook sing play tolerate")

_SENTENCE = re.compile(r"\S(?:[^\n.!?]|[.!?](?!\s)|(?<=\b[DMS][rst])\.|(?<=\bMrs)\.|(?<=\bProf)\.)*[.!?]*")
_OPENING = re.compile(
    r"(?:(?:ok(?:ay)?|hey|hi|hello|also|and|oh|btw|by the way|fyi|one more thing|so|but|well|thanks|thank you|yes|yeah"
    r"|no|great|good|actually|just so you know|for your information|for context|note that|remember that|remember|ps"
    r"|anyway|to be honest|honestly|in fact|since you ask|for the record|update|news|newton)\b[\s,:;!–—-]+)*",
    re.IGNORECASE,
)
_TIME_OPENING = re.compile(
    r"(?:(?:last|in|since|on|until|yesterday|every|two|three|a few|some|back in|as of|for)\b[^,.;]{0,40}?,? )"
    r"(?=(?:I|we|my|our)\b)",
    re.IGNORECASE,
)
# A last clause that asks for something, and a question that only asks for agreement.
_REQUEST_CLAUSE = re.compile(
    r"[,;–—-]\s*(?:(?:so|but|and|then)\s+)?(?:please|pls|can|could|would|will|do|does|is|are|should|what|how|where|when"
    r"|which|who|why|any|help|tell|give|show|suggest|recommend|write|find|explain|draft|make|remind|let|thoughts|tips)\b"
    r".*$",
    re.IGNORECASE,
)
_TAG_QUESTION = re.compile(
    r",\s*(?:right|correct|no|yes|huh|ok|okay|true|\w+n't \w+|(?:am|do|did|have|is) \w+)\?$", re.I
)
_FORGOTTEN_APOSTROPHE = re.compile(r"^(i)(m|ve)\b", re.IGNORECASE)
_POSSESSIVES = ("'s ", "’s ", "' ", "’ ")
_DECISION = re.compile(r"^[^,;]{1,40}\b(?:decided|agreed|settled|opted) (?!with\b)\w", re.IGNORECASE)
_SOON = re.compile(r"\bin (?:a|\d+|one|two|five|ten|fifteen|twenty) (?:min|sec|moment|bit)", re.IGNORECASE)
_EDGE = re.compile(r"[\s,;:–—-]+$")


class ToldStatement(NamedTuple):
    """A statement in the person's words. `subject` is the name of whom it is about, or SPEAKER.

    `attribute` is DECIDED if it states a decision."""

    content: str
    subject: str
    attribute: str | None = None


def select_statements(message: str, *, speaker: str | None = None) -> list[ToldStatement]:
    """Return the statements of a message, in order. `speaker` is the name of the person, if known.

    >>> select_statements("Hi! I moved to Bergen in May. Where can I buy a bike?")
    [ToldStatement(content='I moved to Bergen in May.', subject='user', attribute=None)]
    >>> select_statements("Should I tell Carla? Carla lives in Oslo.")
    [ToldStatement(content='Carla lives in Oslo.', subject='Carla', attribute=None)]
    """
    if len(message) > MAX_MESSAGE_CHARACTERS or not is_latin_script(message):
        return []
    sentences = [_trim(match[0]) for match in _SENTENCE.finditer(mask_foreign_text(message))]
    found = [_to_statement(text, subject) for text in sentences if (subject := _find_subject(text, speaker))]
    return list(dict.fromkeys(found))


def _to_statement(text: str, subject: str) -> ToldStatement:
    return ToldStatement(text, subject, DECIDED if _DECISION.search(text) else None)


def _trim(sentence: str) -> str:
    """Return the sentence without its opening and without a request at its end; "" if it only asks."""
    text = strip_reasoned_order(sentence[_match_end(_OPENING, sentence) :])
    if _TAG_QUESTION.search(text):
        return ""
    request = _REQUEST_CLAUSE.search(text)
    if request:
        return _EDGE.sub("", text[: request.start()])
    return "" if text.endswith("?") else text


def _match_end(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _find_subject(text: str, speaker: str | None) -> str | None:
    """Return the subject of a statement that is worth remembering, or None."""
    if "¤" in text or _SOON.search(text) or len(text) > MAX_SENTENCE_CHARACTERS or len(text.split()) < MIN_WORDS:
        return None
    head = _FORGOTTEN_APOSTROPHE.sub(r"\1'\2", text[_match_end(_TIME_OPENING, text) :])
    words = [word for word in tokenize(head) if word.text not in (START, BREAK)]
    verb = _find_verb(words)
    if not verb:
        return None
    first, owned = words[0].text, [word.text for word in words[1:verb] if not word.text.startswith("~")]
    if first in ("i", "we") and not owned:
        is_lasting = _is_lasting(words, verb, is_person=True) or _is_habit(words, verb)
        return (speaker or SPEAKER) if is_lasting else None
    if first in ("my", "our") and owned and not _PASSING_POSSESSIONS & {*owned, *map(lemmatize, owned)}:
        return (speaker or SPEAKER) if _is_lasting(words, verb, is_person=False) else None
    if first == "the" and owned and not _PASSING_POSSESSIONS & {*owned, *map(lemmatize, owned)}:
        return (speaker or SPEAKER) if _is_of_speaker(text, words, verb) else None
    return _find_named_subject(head, words, verb)


def _is_habit(words: Sequence[WordToken], verb: int) -> bool:
    """Return whether the speaker states what recurs at a time or for an amount: "we open at seven"."""
    return words[verb].text in _HABITS and any(_is_value(word) for word in words[verb + 1 :])


def _is_of_speaker(text: str, words: Sequence[WordToken], verb: int) -> bool:
    """Return whether a statement that begins with "the" states something lasting that concerns the speaker."""
    is_everyday, is_change = _values_everyday_noun(words, verb), _announces_value(text, words, verb)
    if is_everyday and (is_change or lemmatize(words[verb].text) in _RECURRING_VERBS):
        return True
    is_ours = is_everyday or is_change or any(word.text in ("our", "my", "we") for word in words)
    return is_ours and _is_lasting(words, verb, is_person=False)


def _announces_value(text: str, words: Sequence[WordToken], verb: int) -> bool:
    """Return whether the statement announces that something changed to a number, a time or a name."""
    cues = load_cues().cues
    is_change = any(cues[name].search(text) for name in _CHANGES) and not cues["plan"].search(text)
    return is_change and any(_is_value(word) for word in words[verb + 1 :])


def _values_everyday_noun(words: Sequence[WordToken], verb: int) -> bool:
    """Return whether the statement gives a number, a time, a name or a place of something of everyday life."""
    subject, rest = words[1:verb], words[verb + 1 :]
    of = next((n for n, word in enumerate(subject) if word.text in ("of", "to", "for", "in", "at")), len(subject))
    if not of or any(word.is_capitalized for word in subject[of:]):
        return False
    head = lemmatize(subject[of - 1].text)
    is_placed = head in _EVERYDAY_THINGS and bool(rest) and rest[0].text in _PLACING and len(rest) > 1
    named = {head, *(lemmatize(word.text) for word in subject[:of])}
    return bool(named & _EVERYDAY_NOUNS) and (is_placed or any(_is_value(word) for word in rest))


def _is_value(word: WordToken) -> bool:
    return word.is_capitalized or word.text.startswith((NUMBER_PREFIX, TIME_PREFIX))


def _find_named_subject(head: str, words: Sequence[WordToken], verb: int) -> str | None:
    """Return the name that the statement begins with, if it is its subject or owns its subject."""
    names = find_names(head)
    if not names or names[0].start:
        return None
    name = names[0].text
    is_owner = head[len(name) :].startswith(_POSSESSIVES)
    if not is_owner and any(not word.is_capitalized and word.text != "i" for word in words[:verb]):
        return None
    return name if _is_lasting(words, verb, is_person=not is_owner) else None


def _find_verb(words: Sequence[WordToken]) -> int:
    """Return the position of the first verb after the subject; 0 if there is none near, or if it is not real."""
    for position, word in enumerate(words[: MAX_SUBJECT_WORDS + 1]):
        if word.text in _UNREAL or word.text == STOP:
            return _find_ability(words, position)
        if position and not word.is_capitalized and _is_verb(words, position):
            return position
    return 0


def _find_ability(words: Sequence[WordToken], position: int) -> int:
    """Return the position of the verb after "can", if it is a lasting ability: I can't eat gluten."""
    after = next((n for n in range(position + 1, len(words)) if not words[n].text.startswith("~")), 0)
    is_ability = words[position].text == "~can" and after and words[after].text in _ABILITIES
    return after if is_ability else 0


def _is_verb(words: Sequence[WordToken], position: int) -> bool:
    text, last = words[position].text, words[position - 1].text
    if text in vocabulary.AUXILIARIES:
        return True
    is_noun = last in vocabulary.POSSESSIVES or last in vocabulary.DETERMINERS
    return not is_noun and lemmatize(text) in VERB_LEMMAS


def _is_lasting(words: Sequence[WordToken], verb: int, *, is_person: bool) -> bool:
    """Return whether the verb with its object states something lasting.

    Of a `person`, states and places pass; of a thing they last."""
    text, rest = words[verb].text, [word for word in words[verb + 1 :] if not _is_adverb(word.text)]
    if text in vocabulary.DO:
        return bool(rest) and _is_lasting(words, words.index(rest[0]), is_person=is_person)
    if text in vocabulary.BE or (text in vocabulary.HAVE and rest[:1] and rest[0].text in vocabulary.BE_BARE):
        complement = rest[1:] if text in vocabulary.HAVE else rest
        return _is_lasting_complement(complement, is_person=is_person)
    if text in vocabulary.HAVE:
        return _has_lasting_object(rest)
    return _is_lasting_verb(text, rest, is_speaker=words[0].text in ("i", "we"))


def _is_adverb(text: str) -> bool:
    return text.startswith("~") or (text.endswith("ly") and len(text) > 4) or text in ("never", "always", "both")


def _is_lasting_complement(rest: Sequence[WordToken], *, is_person: bool) -> bool:
    if not rest:
        return False
    text = rest[0].text
    if text.endswith("ing") and len(text) > 4:
        return lemmatize(text) in _PROGRESSIVE and _is_progress(text, rest[1:])
    if text in _PASSING_STATES or text in _DEICTIC or (text in _WHEREABOUTS and len(rest) == 1):
        return False
    if text in ("a", "an", "the"):
        return len(rest) > 1 and rest[1].text not in ("bit", "little", "mess", "lot", "while", "one", "first", "second")
    if not is_person:
        return True
    opens = text in ("my", "our", "from", "called", "named", "allergic") or lemmatize(text) in _LASTING_VERBS
    return _is_value(rest[0]) or opens or text in _PERMANENT


def _is_progress(text: str, rest: Sequence[WordToken]) -> bool:
    return text != "getting" or bool(rest and lemmatize(rest[0].text) in ("marry", "divorce"))


def _has_lasting_object(rest: Sequence[WordToken]) -> bool:
    """Return whether the words after "have" are an object that lasts, or a participle of a lasting verb."""
    if not rest or rest[0].text in ("to", *_DEICTIC):
        return False
    if lemmatize(rest[0].text) in VERB_LEMMAS and rest[0].text not in vocabulary.VERBS:
        return _is_lasting_verb(rest[0].text, rest[1:], is_speaker=False)
    noun_phrase = [word.text for word in rest[:4]]
    return not _PASSING_NOUNS & {*noun_phrase, *map(lemmatize, noun_phrase)}


def _is_lasting_verb(text: str, rest: Sequence[WordToken], *, is_speaker: bool) -> bool:
    lemma, is_past = lemmatize(text), text in vocabulary.PAST_FORMS or text.endswith("ed")
    following = rest[0].text if rest else STOP
    if lemma in _DECIDING:
        return is_past and following not in ("with", STOP)
    is_step = is_speaker and following == "the" and (is_past or lemma in ("read", "store", "run"))
    is_step = is_step and lemma not in ("sell", "quit", "inherit")
    if following in _PLACES or is_step or _moves_on(lemma, following):
        return False
    if lemma in _LASTING_VERBS and lemma not in _LIKING:
        return following not in _DEICTIC - {"to", "one"}
    return following not in (STOP, *_DEICTIC) and _has_lasting_sense(lemma, text, following, is_speaker=is_speaker)


def _has_lasting_sense(lemma: str, text: str, following: str, *, is_speaker: bool) -> bool:
    """Return whether a verb that may describe a moment describes more, by its tense and the word after it."""
    is_past = text in vocabulary.PAST_FORMS or text.endswith("ed")
    if lemma in _LIKING:
        return following not in ("the", "a", "an")
    if lemma in _PAST_ONLY_WITH_SPEAKER and is_speaker:
        return is_past
    if lemma in _PRESENT_ONLY and is_past:
        return lemma in ("run", "write") and following in ("my", "a")
    return lemma in _LASTING_WITH_OBJECT


def _moves_on(lemma: str, following: str) -> bool:
    """Return whether "move" or "work" is about the conversation: move on, work on it."""
    return lemma in ("move", "work", "switch") and following in ("on", "the", "through", "fine", "now", STOP)

"""What a reader of English statements must know of single words: forms, synonyms, opposites, markers, fillers.

A word that stands in no table is compared as it is: a table only ever lets two tellings be the same, or says why not.
"""

import re
from collections.abc import Iterator

# Verbs that the stemmer cannot know: base, past, participle.
_IRREGULAR = """
become became become; begin began begun; bend bent bent; bet bet bet; bind bound bound; bite bit bitten; bleed bled bled
blow blew blown; break broke broken; breed bred bred; bring brought brought; build built built; burn burnt burnt
buy bought bought; catch caught caught; choose chose chosen; come came come; cost cost cost; cut cut cut
deal dealt dealt; dig dug dug; draw drew drawn; dream dreamt dreamt; drink drank drunk; drive drove driven
eat ate eaten; fall fell fallen; feed fed fed; feel felt felt; fight fought fought; find found found; fly flew flown
forget forgot forgotten; freeze froze frozen; get got got; give gave given; go went gone; grow grew grown
hang hung hung; hear heard heard; hide hid hidden; hit hit hit; hold held held; hurt hurt hurt; keep kept kept
know knew known; lay laid laid; lead led led; learn learnt learnt; leave left left; lend lent lent; let let let
lie lay lain; lose lost lost; make made made; mean meant meant; meet met met; pay paid paid; put put put
quit quit quit; read read read; ride rode ridden; ring rang rung; rise rose risen; run ran run; say said said
see saw seen; seek sought sought; sell sold sold; send sent sent; set set set; shoot shot shot; show showed shown
shut shut shut; sing sang sung; sink sank sunk; sit sat sat; sleep slept slept; speak spoke spoken; spend spent spent
split split split; stand stood stood; steal stole stolen; stick stuck stuck; swear swore sworn; swim swam swum
take took taken; teach taught taught; tear tore torn; tell told told; think thought thought; throw threw thrown
understand understood understood; use used used; wake woke woken; wear wore worn; win won won; write wrote written
"""

_REGULAR = """
agree allow answer arrive ask attend avoid believe belong call change collect contain cook cost create decide delete
depend deploy develop discuss enjoy explain finish fix hate help hire hope include intend install join like listen live
look love maintain manage marry merge move name need offer open organize own paint plan play prefer promise publish
receive recommend release relocate remember remove rent reply require reside resign retire return review serve ship
sign smoke start stay stop store study suggest support switch talk test train travel try turn visit wait walk want
watch work
"""

_PLURALS = "child children, man men, woman women, person people, foot feet, tooth teeth, mouse mice, life lives"

# Each line means one thing; the first word stands for all.
_SYNONYMS = """
live reside dwell
child kid
start begin commence
finish complete conclude
buy purchase
choose pick select
movie film
doctor physician
lawyer attorney solicitor
move relocate
help assist
fix repair mend
speak talk
fast quick rapid swift
cheap inexpensive
expensive costly pricey
ill sick
happy glad
mother mom mum
father dad
grandmother grandma granny
grandfather grandpa granddad
bike bicycle
car automobile
tv television telly
telephone phone
email mail
holiday vacation
apartment flat
manager boss
work job employ
leave depart
receive obtain
delete remove erase
close shut
allow permit
forbid prohibit ban
hire recruit
dismiss sack
marry wed wedding marriage
allergic allergy
big large
small little
answer reply
buddy pal
choice decision
developer programmer
enjoy like
favourite favorite
colour color
repository repo
database db
configuration config
application app
documentation doc
production prod
authentication auth
information info
specification spec
administrator admin
mathematics math maths
laboratory lab
hour hr h
minute min
second sec
kilometre kilometer km
kilogram kilo kg
gigabyte gb
megabyte mb
euro eur
dollar usd
main primary principal
colleague coworker teammate
goal objective aim
often frequently
usually normally generally
fully completely entirely
photo photograph
exam examination
fridge refrigerator
trash garbage rubbish
elevator lift
truck lorry
afraid scared frightened
rich wealthy
huge enormous
trip journey
bug defect
construct build
sofa couch
hate loathe detest
love adore
"""

# Products that have two names. Persons have none here: Ana is not Anna.
_ALIASES = "postgresql postgres, kubernetes k8s, javascript js, typescript ts, golang go-lang, github gh"

# Of each line a thing is only one: a statement with one of the words denies the statement with another.
_EXCLUSIVE = """
hot warm cool cold
love hate dislike loathe
like hate dislike loathe
buy sell
start finish stop quit
open close
hire fire dismiss
marry divorce
accept reject refuse decline
allow forbid
win lose
arrive leave
send receive get
give take
borrow lend
read write
add remove
enable disable
import export
encrypt decrypt
increase decrease
raise lower
push pull
start end
succeed fail
remember forget
before after
above below
over under
from to
left right
north south east west
up down
inside outside
first last
early late
old new young
big small
tall short long
fast slow
high low
rich poor
cheap expensive
easy hard difficult
safe dangerous
good bad
better worse
best worst
more less fewer
strong weak
light heavy dark
thick thin
full empty
true false wrong
same different
public private
open closed
active inactive
alive dead
single married divorced widowed
local remote
online offline
internal external
dry wet
clean dirty
happy sad
healthy ill
male female
mother father sister brother son daughter husband wife aunt uncle cousin grandmother grandfather
boy girl
man woman
breakfast lunch dinner supper
spring summer autumn fall winter
red blue green yellow black white brown grey gray orange purple pink
frontend backend
staging production
euro dollar pound yen
kilometre mile metre
week hour minute second day month year
"""

# Words that say how the next ones belong to the rest. The weak ones may be missing; a strong one is a word that counts.
_WEAK = "in=in on=on onto=to upon=on at=at inside=in within=in during=in to=to into=to of=of for=for with=with by=by as=as"
_STRONG = """
    from=from towards=towards toward=towards before=before after=after since=since until=until till=until than=than
    over=over above=over under=under below=under beneath=under near=near against=against about=about regarding=about
    concerning=about except=except despite=despite through=through via=through between=between across=across per=per
    behind=behind beside=beside around=around
"""
_CLAUSE = "because=because if=if unless=unless when=when while=while although=although though=although whether=whether"

# Phrases that are read as others; those in the second table say nothing.
_PHRASES = """
    prior to = before; ahead of = before; up to = until; together with = with; along with = with; instead of = over
    rather than = over; due to = because; because of = because; so as to = to; in order to = to; such as = for
    close to = near; next to = near; o'clock = :00; has got = has; have got = have
    e mail = email; got married to = married; gets married to = marries
    has a job = works; have a job = work; had a job = worked; would rather have = prefers; would rather = prefers
    every day = ~all day; daily = ~all day; weekly = ~all week; monthly = ~all month; yearly = ~all year
    annually = ~all year; and = ; & = ; as well as = ; plus = ; there is = ; there are =
    will = ~will; shall = ~will; gonna = ~will; going to be = ~will be; plans to = ~plan; plan to = ~plan
    planning to = ~plan; intends to = ~plan; intend to = ~plan; aims to = ~plan; planned to = ~planned
    intended to = ~planned; wants to = ~want; want to = ~want; wishes to = ~want; hopes to = ~want; hope to = ~want
    would like to = ~want; would love to = ~want; wanted to = ~wanted; hoped to = ~wanted; may = ~may; might = ~may
    could = ~may; maybe = ~may; perhaps = ~may; possibly = ~may; probably = ~probably; likely = ~probably
    must = ~must; has to = ~must; have to = ~must; needs to = ~must; need to = ~must; required to = ~must
    need = ~must; needs = ~must; requires = ~must; require = ~must; had to = ~needed; needed = ~needed
    required = ~needed; should = ~should; ought to = ~should; supposed to = ~should; can = ~can; able to = ~can
    would = ~would; used to = ~formerly; formerly = ~formerly; previously = ~formerly
    is used to = is used to; are used to = are used to; was used to = was used to; be used to = be used to
    not = ~not; never = ~not; no = ~not; nor = ~not; neither = ~not; nobody = ~not person; none = ~not
    nothing = ~not thing; without = ~not with; no longer = ~ceased; no more = ~ceased; anymore = ~anymore
    any more = ~anymore; any longer = ~anymore; refuses to = ~refuses; refuse to = ~refuses; refused to = ~refuses
    denies = ~denies; denied = ~denies; avoids = ~avoids; avoid = ~avoids; rarely = ~seldom; seldom = ~seldom
    hardly = ~seldom; barely = ~seldom; not all = ~not ~all; not every = ~not ~all; any = ~any; all = ~all; every = ~all
    each = ~all; some = ~some; most = ~most; most of = ~most; all of = ~all; some of = ~some; many = ~many
    few = ~few; several = ~several; both = ~both; only = ~only; at least = ~least; at most = ~most; more = ~more
    less = ~less; fewer = ~less; more than = ~more than; less than = ~less than; almost = ~almost; nearly = ~almost
    approximately = ~about; roughly = ~about; half past = :30; quarter past = :15
"""
_FILLERS = """
    by the way; btw; fyi; for your information; just so you know; note that; please note; please note that
    remember that; please remember that; please remember; keep in mind that; do not forget that; actually; basically
    honestly; i think; i think that; i believe; i believe that; i guess; as far as i know; afaik; you know; i mean
    in fact; as you know; as a matter of fact; to be honest; indeed; at the moment; right now; currently; now; nowadays
    these days; at present; presently; still; already; also; as well; just; really; very much; simply; please; of course
    obviously; certainly; definitely; for sure; at all; that; which; who; it is true that; the fact is that
    ^ remember; ^ note; ^ well; ^ oh; ^ hey; ^ ok; ^ okay; ^ so; ^ yes; ^ and; ^ but; ^
"""

DETERMINERS = frozenset({"a", "an", "the", "this", "these", "those", "'s"})
ONE = frozenset({"a", "an"})
# Stands before a name, year or amount and adds nothing to it: the city of Oslo, the year 2019, version 16.
TITLES = frozenset({"city", "town", "company", "firm", "year", "version", "language"})
PERSONS = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), "I"),
    **dict.fromkeys(("you", "your", "yours", "yourself"), "you"),
    **dict.fromkeys(("he", "him", "his", "himself"), "he"),
    **dict.fromkeys(("she", "her", "hers", "herself"), "she"),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), "we"),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), "they"),
    **dict.fromkeys(("it", "its", "itself"), ""),
}

BE_NOW, BE_THEN, BE_BARE = frozenset({"am", "is", "are"}), frozenset({"was", "were"}), frozenset({"be", "been", "being"})
BE = BE_NOW | BE_THEN | BE_BARE
HAVE, DO = frozenset({"have", "has", "had", "having"}), frozenset({"do", "does", "did"})
AUXILIARIES = BE | HAVE | DO
OWNING = frozenset({"own", "owns", "owned", "possess", "possesses", "possessed"})
THEN = BE_THEN | {"had", "did", "owned", "possessed"}




def lemma(word: str) -> str:
    """The word without its ending, as one word of those that mean the same.

    >>> [lemma(word) for word in ("lives", "resided", "moving", "studies", "wrote")]
    ['live', 'live', 'move', 'studi', 'write']
    """
    plain = _stem(LEMMAS.get(word, word))
    return SYNONYMS.get(plain, plain)


def _stem(word: str) -> str:
    if len(word) <= 3 or not word.isascii():
        return word
    return _without_e(_with_i(_without_verb_ending(_without_s(word))))


def _without_s(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "i" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_verb_ending(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _SYLLABLE.search(word[:-3]) else word
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 2 and _VOWEL.search(rest):
            return _restored(rest)
    return word


def _with_i(word: str) -> str:
    return word[:-1] + "i" if len(word) > 2 and word.endswith("y") and not _VOWEL.match(word[-2]) else word


def _restored(rest: str) -> str:
    """What `rest` was before an ending: stopp -> stop, mov -> move, cri -> cri."""
    if rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    short = len(_SYLLABLE.findall(rest)) == 1 and _CLOSED.search(rest)
    return rest + "e" if short or rest.endswith(("at", "bl", "iz", "v", "dg", "rg")) else rest


def _without_e(word: str) -> str:
    """Words lose it where nothing would tell whether they had it: releas-ed, releas-e."""
    if word.endswith("ment") and len(word) > 7:
        word = word[:-4]
    rest, syllables = word[:-1], len(_SYLLABLE.findall(word[:-1]))
    droppable = syllables > 1 or (syllables == 1 and not _CLOSED.search(rest))
    return rest if word.endswith("e") and len(word) > 3 and droppable else word


def _rows(text: str) -> Iterator[list[str]]:
    for row in text.replace("\n", ";").split(";"):
        if row.strip():
            yield row.split()


def _pairs(text: str) -> dict[str, str]:
    return dict((word, meaning) for word, meaning in (pair.split("=") for pair in text.split()))


_VOWEL = re.compile("[aeiouy]")
_SYLLABLE = re.compile("[aeiouy]+[^aeiouy]+")
_CLOSED = re.compile("[^aeiou][aeiouy][^aeiouwxy]$")

LEMMAS = {form: row[0] for row in _rows(_IRREGULAR) for form in row[1:]}
LEMMAS.update({"using": "use", "lying": "lie", "dying": "die", "aged": "age"})
LEMMAS.update({many: one for one, many in (pair.split() for pair in _PLURALS.split(","))})
LEMMAS["lives"] = "live"
PAST = frozenset(row[1] for row in _rows(_IRREGULAR) if row[1] != row[0])
PARTICIPLES = frozenset(row[2] for row in _rows(_IRREGULAR))
VERBS = frozenset(row[0] for row in _rows(_IRREGULAR)) | frozenset(_REGULAR.split())
ALIASES = {other: row[0] for row in (pair.split() for pair in _ALIASES.split(",")) for other in row[1:]}
SYNONYMS = {_stem(other): _stem(row[0]) for row in _rows(_SYNONYMS) for other in row[1:]}
VERB_LEMMAS = frozenset(lemma(verb) for verb in VERBS)
EXCLUSIVE = [frozenset(lemma(word) for word in row) for row in _rows(_EXCLUSIVE)]
STRONG = frozenset(_pairs(_STRONG).values()) | frozenset(_pairs(_CLAUSE).values())
CLAUSES = frozenset(_pairs(_CLAUSE))
MARKERS = {**_pairs(_WEAK), **_pairs(_STRONG), **_pairs(_CLAUSE)}
PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    tuple(left.split()): tuple(right.split())
    for left, right in (row.split("=") for row in _PHRASES.replace("\n", ";").split(";") if row.strip())
} | {tuple(row): () for row in _rows(_FILLERS)}

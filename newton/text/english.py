"""English words: verb forms, synonyms, opposites, prepositions and fillers, and the lemma of a word. Pure."""

import re
from collections.abc import Iterator

# Irregular verbs: base, past, participle.
_IRREGULAR_VERBS = """
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

_REGULAR_VERBS = """
accept accuse achieve act add adjust admire adopt advise agree aim allow analyse announce answer apply approve argue
arrange arrive ask assign attack attend automate avoid back bake ban bark base behave believe belong block boil book
borrow bother brush cache calculate call cancel care carry cause celebrate challenge change charge chase check clean
clear climb close coach collect combine commit compare compete compile complain complete compress compute confirm
connect consider contain continue control convert cook copy correct cost count cover create cycle damage dance debug
decide declare decline define delay delete deliver deny depart depend deploy describe design destroy detect develop
disable discover discuss divide divorce double download drop earn edit employ enable encrypt end enjoy ensure enter
escape evaluate execute exist expect expire explain explore export fail fetch file fill film filter finish fire fix
follow force form format found generate govern grade grant guess guide handle happen hate head help hike hire hope
host hunt ignore implement import improve include increase inform insist inspect install insure intend introduce
invent invest invite involve issue join joke judge jump kick kill kiss lack last launch lift like limit link list
listen live load locate lock log look love lower maintain manage march mark marry match measure melt mention merge
migrate miss mix monitor move name need note notice obtain offer open operate order organize own pack paint park pass
paste patch phone pick place plan play point post practise pray prefer prepare present press prevent print process
produce promise promote propose protect prove provide publish pull purchase push raise reach receive recommend
record recover recruit reduce refuse release relocate rely remain remember remind remove rename rent repair repeat
replace reply report request require reserve reside resign resolve respect rest restart restore retire return
review rotate save schedule scan score search seem separate serve share shop ship sign skip smoke solve sort start
state stay step stop store study submit subscribe suggest supply support suppose surprise switch talk taste test
thank tie tolerate touch trace track train transfer translate travel treat trust try tune turn type update upgrade
upload use validate verify visit vote wait walk want warn wash waste watch welcome wish wonder work worry wrap
"""

_PLURALS = "child children, man men, woman women, person people, foot feet, tooth teeth, mouse mice, life lives"

# Groups of synonyms; the first word represents its group.
_SYNONYMS = """
live reside dwell; child kid; start begin commence; finish complete conclude; buy purchase; choose pick select
movie film; doctor physician; lawyer attorney solicitor; move relocate; help assist; fix repair mend; speak talk
fast quick rapid swift; cheap inexpensive; expensive costly pricey; ill sick; happy glad; mother mom mum; father dad
grandmother grandma granny; grandfather grandpa granddad; bike bicycle; car automobile; tv television telly
telephone phone; email mail; holiday vacation; apartment flat; manager boss; work job employ; leave depart
receive obtain; delete remove erase; close shut; allow permit; forbid prohibit ban; hire recruit; dismiss sack
marry wed wedding marriage; allergic allergy; big large; small little; answer reply; buddy pal; choice decision
developer programmer; enjoy like; favourite favorite; colour color; repository repo; database db; configuration config
application app; documentation doc; production prod; authentication auth; information info; specification spec
administrator admin; mathematics math maths; laboratory lab; hour hr h; minute min; second sec; kilometre kilometer km
kilogram kilo kg; gigabyte gb; megabyte mb; euro eur; dollar usd; main primary principal; colleague coworker teammate
goal objective aim; often frequently; usually normally generally; fully completely entirely; photo photograph
exam examination; fridge refrigerator; trash garbage rubbish; elevator lift; truck lorry; afraid scared frightened
rich wealthy; huge enormous; trip journey; bug defect; construct build; sofa couch; hate loathe detest; love adore
"""

# Products with two names. Names of persons have no synonyms: Ana is not Anna.
_ALIASES = "postgresql postgres, kubernetes k8s, javascript js, typescript ts, golang go-lang, github gh"

# The words of a group exclude each other.
_EXCLUSIVE = """
hot warm cool cold; love hate dislike loathe; like hate dislike loathe; buy sell; start finish stop quit; open close
hire fire dismiss; marry divorce; accept reject refuse decline; allow forbid; win lose; arrive leave; send receive get
give take; borrow lend; read write; add remove; enable disable; import export; encrypt decrypt; increase decrease
raise lower; push pull; start end; succeed fail; remember forget; before after; above below; over under; from to
left right; north south east west; up down; inside outside; first last; early late; old new young; big small
tall short long; fast slow; high low; rich poor; cheap expensive; easy hard difficult; safe dangerous; good bad
better worse; best worst; more less fewer; strong weak; light heavy dark; thick thin; full empty; true false wrong
same different; public private; open closed; active inactive; alive dead; single married divorced widowed; local remote
online offline; internal external; dry wet; clean dirty; happy sad; healthy ill; male female
mother father sister brother son daughter husband wife aunt uncle cousin grandmother grandfather; boy girl; man woman
breakfast lunch dinner supper; spring summer autumn fall winter
red blue green yellow black white brown grey gray orange purple pink; frontend backend; staging production
euro dollar pound yen; kilometre mile metre; week hour minute second day month year
"""

# Markers, which set the role of the next words. A strong marker is a content word too.
_WEAK = """
    in=in on=on onto=to upon=on at=at inside=in within=within during=in to=to into=to of=of for=for with=with by=by
    as=as
"""
_STRONG = """
    from=from towards=towards toward=towards before=before after=after since=since until=until till=until than=than
    over=over above=over under=under below=under beneath=under near=near against=against about=about regarding=about
    concerning=about except=except despite=despite through=through via=through between=between across=across per=per
    behind=behind beside=beside around=around
"""
_CLAUSE = "because=because if=if unless=unless when=when while=while although=although though=although whether=whether"

# Phrases and their replacements; those of the second table are dropped.
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
    hardly = ~seldom; barely = ~seldom; not all = ~notall; not every = ~notall; not each = ~notall
    not have to = ~neednot; not need to = ~neednot; not required to = ~neednot; unable to = ~can ~not; any = ~any
    all = ~all; every = ~all
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
INDEFINITE_ARTICLES = frozenset({"a", "an"})
# Redundant before a name, year or amount: the city of Oslo, the year 2019, version 16.
TYPE_NOUNS = frozenset({"city", "town", "company", "firm", "year", "version", "language"})
PERSONS = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), "I"),
    **dict.fromkeys(("you", "your", "yours", "yourself"), "you"),
    **dict.fromkeys(("he", "him", "his", "himself"), "he"),
    **dict.fromkeys(("she", "her", "hers", "herself"), "she"),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), "we"),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), "they"),
    **dict.fromkeys(("it", "its", "itself"), "it"),
}
_OWNERS = "my mine your yours his our ours their theirs its hers myself yourself himself herself themselves ourselves"
POSSESSIVES = frozenset(_OWNERS.split())

BE_PAST, BE_BARE = frozenset({"was", "were"}), frozenset({"be", "been", "being"})
BE = {"am", "is", "are"} | BE_PAST | BE_BARE
HAVE, DO = frozenset({"have", "has", "had", "having"}), frozenset({"do", "does", "did"})
AUXILIARIES = BE | HAVE | DO
OWNERSHIP_VERBS = frozenset({"own", "owns", "owned", "possess", "possesses", "possessed"})
PAST_AUXILIARIES = BE_PAST | {"had", "did", "owned", "possessed"}


def _split_rows(text: str) -> Iterator[list[str]]:
    for row in text.replace("\n", ";").split(";"):
        if row.strip():
            yield row.split()


def _split_pairs(text: str) -> dict[str, str]:
    return {word: meaning for word, _, meaning in (pair.partition("=") for pair in text.split())}


_PREFIXES = ("", "re", "over", "under", "mis")
_VERB_FORMS = [[f"{prefix}{form}" for form in row] for row in _split_rows(_IRREGULAR_VERBS) for prefix in _PREFIXES]
LEMMAS = {form: row[0] for row in _VERB_FORMS for form in row[1:]}
LEMMAS.update({"using": "use", "lying": "lie", "dying": "die", "aged": "age", "caches": "cache", "tying": "tie"})
LEMMAS.update({many: one for one, many in (pair.split() for pair in _PLURALS.split(","))})
LEMMAS["lives"] = "live"
PAST_FORMS = frozenset(row[1] for row in _VERB_FORMS if row[1] != row[0])
PARTICIPLES = frozenset(row[2] for row in _VERB_FORMS)
VERBS = frozenset(row[0] for row in _VERB_FORMS) | frozenset(_REGULAR_VERBS.split())
ALIASES = {other: row[0] for row in (pair.split() for pair in _ALIASES.split(",")) for other in row[1:]}
STRONG_ROLES = frozenset(_split_pairs(_STRONG).values()) | frozenset(_split_pairs(_CLAUSE).values())
CLAUSE_MARKERS = frozenset(_split_pairs(_CLAUSE))
MARKERS = {**_split_pairs(_WEAK), **_split_pairs(_STRONG), **_split_pairs(_CLAUSE)}
SYNONYM_GROUPS = list(_split_rows(_SYNONYMS))
EXCLUSIVE_GROUPS = list(_split_rows(_EXCLUSIVE))


def _iter_phrases() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for row in _PHRASES.replace("\n", ";").split(";"):
        if row.strip():
            phrase, meaning = row.split("=")
            yield tuple(phrase.split()), tuple(meaning.split())
    for row in _split_rows(_FILLERS):
        yield tuple(row), ()


PHRASES = dict(_iter_phrases())


_ENDINGS_BEFORE_E = "at bl iz is as os us ns rs v c u dg rg ag ng ur ir ut"
_BEFORE_E = tuple(_ENDINGS_BEFORE_E.split())
_VOWEL = re.compile("[aeiouy]")
_SYLLABLE = re.compile("[aeiouy]+[^aeiouy]+")
_CLOSED = re.compile("[^aeiou][aeiouy][^aeiouwxy]$")


def lemmatize(word: str) -> str:
    """Return the lemma (base form) of an English word. Synonyms have the same lemma.

    >>> [lemmatize(word) for word in ("lives", "resided", "moving", "studies", "wrote", "deployment")]
    ['live', 'live', 'move', 'study', 'write', 'deploy']
    """
    plain = _stem(LEMMAS.get(word, word))
    return _MEANINGS.get(plain, plain)


def _stem(word: str) -> str:
    if len(word) <= 3 or not word.isascii() or word in VERBS:
        return word
    single = _without_s(word)
    verb = single.removesuffix("ment")
    return verb if verb in VERBS else _without_verb_ending(single)


def _without_s(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_verb_ending(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("eed"):
        return word[:-1] if _SYLLABLE.search(word[:-3]) else word
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 2 and _VOWEL.search(rest):
            return _restore_base(rest)
    return word


def _restore_base(rest: str) -> str:
    """Return the base form of a verb stem: stopp -> stop, mov -> move, cach -> cache, rent -> rent."""
    if rest in VERBS or f"{rest}e" in VERBS:
        return rest if rest in VERBS else f"{rest}e"
    if rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    short = len(_SYLLABLE.findall(rest)) == 1 and _CLOSED.search(rest)
    return f"{rest}e" if short or rest.endswith(_BEFORE_E) else rest


_MEANINGS = {_stem(other): _stem(row[0]) for row in SYNONYM_GROUPS for other in row[1:]}
VERB_LEMMAS = frozenset(lemmatize(verb) for verb in VERBS)
# The words that exclude each word.
OPPOSITES: dict[str, set[str]] = {}
for _row in EXCLUSIVE_GROUPS:
    for _word in _row:
        OPPOSITES.setdefault(lemmatize(_word), set()).update(lemmatize(other) for other in _row if other != _word)

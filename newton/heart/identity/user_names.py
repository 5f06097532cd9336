"""The names of the user, as they introduced themselves. Pure."""

import re
from collections.abc import Iterable, Sequence

from newton.text.words import COMMON_WORDS

MAX_NAMES = 3
_NAME = r"([^\W\d_a-zа-я][\w'’-]*(?: [^\W\d_a-zа-я][\w'’-]*)?)"
_SAYINGS = (
    r"my name(?:'s| is)|name's|i(?:'m| am) called|(?:please |just )?call me|say (?:only|just)|ich heiße"
    r"|ich bin der|ich bin die"
    r"|mein name ist|nenn mich|me llamo|mi nombre es|llámame|je m'appelle|mon nom est|appelle-moi|mi chiamo"
    r"|il mio nome è|chiamami|me chamo|meu nome é|ik heet|mijn naam is|noem me|меня зовут"
)
# Of a model that words the wish of a user.
_WISHES = (
    r"call (?:the )?user|address (?:the user|me|him|her|them) as|to be (?:called|addressed as|known as)"
    r"|nenne? den (?:be)?nutzer|sprich den (?:be)?nutzer mit|llama al usuario|que (?:le|lo|la|me) llamen"
    r"|appelle l'utilisateur|être appelée?|chiama l'utente|essere chiamat[oa]|noem de gebruiker"
)
_GENANNT = r"(?:möchte|will|soll)"
_GREETINGS = r"(?:hi|hello|hey|hallo|hola|bonjour|ciao|olá|hoi|good (?:morning|evening|afternoon))\b[^.?!\n]{0,20}?"
_GREETED = r"(?:i'm|i am|this is|ich bin|soy|je suis|sono|sou|ik ben)"
_STATED = r"(?:i['’]m|i am|soy|je suis|sono|sou|ik ben)"
_OPENINGS = rf"{_SAYINGS}|{_STATED}|ich bin|im"
# For a first selection in the database, which does not tell capitals.
SEARCH_PATTERN = (
    rf"({_SAYINGS}|{_WISHES}|{_GENANNT}|(hi|hello|hey|hallo|hola|bonjour|ciao|olá|hoi|good )[^.?!]*{_GREETED}"
    rf"|{_STATED} [^ .!]+( [^ .!]+)?[.!]) "
    rf"|{_STATED} [^ .!]+( [^ .!]+)?[.!]?$"
).replace("(?:", "(")
_INTRODUCTIONS = (
    re.compile(rf"(?<!\w)(?i:{_SAYINGS}|{_WISHES}) {_NAME}"),
    re.compile(rf"(?<!\w)(?i:{_GENANNT})(?: nur| einfach| lieber)? {_NAME} (?i:genannt werden)"),
    re.compile(rf"(?<!\w)(?i:{_GREETINGS}{_GREETED}) {_NAME}(?=[.,!;]|$| and\b| und\b| y\b| et\b| e\b| en\b)"),
)
# A sentence of its own: a name, or what the person is. Not in German, where all nouns have a capital.
_PLAIN = re.compile(rf"(?:^|[.!?)]\s+)(?i:{_STATED}) {_NAME}\s*(?=[.!]|$)")
_KIND = re.compile(
    r"(?:ish|ese|ian|ean|ican|ist)$|^(?:german|french|dutch|greek|thai|czech|swiss|welsh|cuban|iraqi|israeli|pakistani"
    r"|catholic|protestant|orthodox|muslim|hindu|sikh|vegan|tired|fine|ok|okay|sorry|back|here|ready|done)$",
    re.IGNORECASE,
)


def extend_pattern(subjects: Sequence[str]) -> str:
    """Return the pattern of texts in which users may introduce themselves, also by a name among the `subjects`."""
    names = "|".join(map(re.escape, subjects))
    openings = _OPENINGS.replace("(?:", "(")
    return f"{SEARCH_PATTERN}|({openings}) ({names})|({names}) here" if subjects else SEARCH_PATTERN


def find_known_names(texts: Iterable[str], subjects: Sequence[str]) -> list[str]:
    """Return the subjects of facts by whose names users introduce themselves in texts, in any case.

    >>> find_known_names(["good morning so im bogdan i drive", "Ioana here, for once."], ["Radu", "Bogdan"])
    ['Bogdan']
    """
    said = list(texts)
    return [one for one in subjects if any(_introduces(text, one) for text in said)]


def find_names(texts: Iterable[str]) -> list[str]:
    """Return the names in texts in which users introduce themselves, each once, the first found first.

    >>> find_names(["Call me Zoe.", "Hi, I'm Maren. I live in Leipzig.", "I'm German.", "I am Halina. It rains."])
    ['Zoe', 'Maren', 'Halina']
    >>> find_names(["Call the user Nacho, not Ignacio.", "The user wants to be called Zoe."])
    ['Nacho', 'Zoe']
    >>> find_names(["Der Nutzer möchte Max genannt werden.", "The user wants to call Ann."])
    ['Max']
    """
    found = dict[str, None]()
    for text in texts:
        line = text.replace("’", "'")
        found |= {match[1]: None for pattern in _INTRODUCTIONS for match in pattern.finditer(line)}
        found |= {match[1]: None for match in _PLAIN.finditer(line) if not _is_kind(match[1])}
    return list(found)[:MAX_NAMES]


def _introduces(text: str, name: str) -> bool:
    pattern = rf"(?<!\w)(?:{_OPENINGS}) {re.escape(name)}(?!\w)|(?:^|[.!]\s+){re.escape(name)} here(?!\w)"
    return re.search(pattern, text.replace("’", "'"), re.IGNORECASE) is not None


def _is_kind(name: str) -> bool:
    """Return whether capitalized words are not a name but say what a person is, such as "German" or "Catholic"."""
    return any(word in COMMON_WORDS or _KIND.search(word) for word in name.casefold().split())

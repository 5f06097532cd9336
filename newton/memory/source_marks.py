"""Marks that say whose word a memory is, wherever it is not the person's: one table for all interfaces. Pure.

A line that names its source itself, such as a reply of the assistant or a passage of the person's file, has no mark.
"""

from collections.abc import Mapping

from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, Kind, Trust
from newton.memory.search_types import ASSISTANT, RetrievedMemory
from newton.text.chat_lines import is_quoted_line

BY_ASSISTANT = "said by the assistant"
REPORTED = "reported by a program"
UNCONFIRMED = ", unconfirmed"
TRUST_MARKS: Mapping[Trust, str] = {"agent": BY_ASSISTANT, "tool": "from a tool", "web": "from a web page"}
# What an agent stores of these kinds is not only its own statement.
KIND_MARKS: Mapping[Kind, str] = {
    "episode": "partly by the assistant",
    "passage": "a file from the assistant",
    "item": "stored by the assistant",
    "event": REPORTED,
    "exchange": REPORTED,
    "artifact": REPORTED,
}
# In front of a short form that says itself where its text is from, and of a message whose role says it.
_OWN_SOURCES = ("output of a tool", "from the web", "Program", "this session so far")
SOURCE_MARKS: tuple[str, ...] = tuple(dict.fromkeys([*TRUST_MARKS.values(), *KIND_MARKS.values()])) + tuple(
    TRUST_MARKS[one] + UNCONFIRMED for one in ("tool", "web")
)


def describe_source(trust: Trust, *, kind: Kind = "fact", quarantined: bool = False, reported: bool = False) -> str:
    """Return whose word a text of this trust and kind is; "" for a person's.

    `reported` means that a program or a model passed on what somebody said.

    >>> describe_source("web", quarantined=True), describe_source("agent"), describe_source("user")
    ('from a web page, unconfirmed', 'said by the assistant', '')
    """
    if trust in PERSON_TIERS:
        return ""
    if trust == "agent":
        return REPORTED if reported else KIND_MARKS.get(kind, BY_ASSISTANT)
    return TRUST_MARKS[trust] + (UNCONFIRMED if quarantined else "")


def format_trust(trust: Trust, *, kind: Kind = "fact", quarantined: bool = False) -> str:
    """Return a trust level with whose word that is, for people.

    >>> format_trust("web", quarantined=True), format_trust("user")
    ('web (from a web page, unconfirmed)', 'user')
    """
    mark = describe_source(trust, kind=kind, quarantined=quarantined)
    return f"{trust} ({mark})" if mark else trust


def find_foreign(trust: Trust, *, kind: Kind | None, quarantined: bool) -> Trust | None:
    """Return the trust of a text that its reader must not make its own: of a tool or the web, and unconfirmed.

    A file that a model stored is a tool's, whatever the model says of it. Return None for other texts.
    """
    if kind == "passage" and trust == "agent":
        return "tool"
    return trust if quarantined and trust in UNTRUSTED_TIERS else None


def mark_source(found: RetrievedMemory) -> str:
    """Return the mark of a memory in a context or a list; "" if it is a person's word or its text names its source."""
    trust = found.word_trust or found.trust
    if trust not in UNTRUSTED_TIERS and (_names_speaker(found) or is_quoted_line(found.summary)):
        return ""
    if found.kind == "artifact" and _names_source(found):
        return ""
    is_reported = found.kind == "fact" and found.said_at is not None
    return describe_source(trust, kind=found.kind, quarantined=found.quarantined, reported=is_reported)


def _names_speaker(found: RetrievedMemory) -> bool:
    """Return whether a text begins with the assistant as its speaker, or with what else says that no person spoke."""
    if found.kind not in ("exchange", "artifact"):
        return False
    speaker = _find_start(found).partition(": ")[0]
    return speaker.endswith(ASSISTANT) or speaker.startswith(_OWN_SOURCES)


def _names_source(found: RetrievedMemory) -> bool:
    return _find_start(found).startswith(_OWN_SOURCES[:2])


def _find_start(found: RetrievedMemory) -> str:
    """Return the text after the date."""
    return found.summary.partition("] ")[2]

"""The rule of authority: what a speaker may do to what is stored, and with which trust. Pure.

A speaker is who talks through a token or a command: a person, an app that relays a person, or a model. The interface
does not matter. A change of a stored statement has the authority of the person's message that it cites, if code has
verified that the message says it.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from newton.memory.memory import PERSON_TIERS, TRUST_TIERS, Trust, lowest_trust
from newton.text.chat_lines import is_quoted_line
from newton.text.patterns import concerns_health

Speaker = Literal["person", "app", "model"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)  # from the one who may do most
TRUST_OF_SPEAKER: Mapping[Speaker, Trust] = {"person": "user", "app": "user", "model": "agent"}

# What an operation does: `work` changes no statement and no rule, `state` stores a statement, `propose` stores what
# waits for a person, `rule` adds a rule, `govern` puts in force, weakens or ends what binds the agent, or sets how
# memories are ranked. The others change stored statements: they replace, end, confirm or delete them, or report how
# one turned out.
Act = Literal["work", "state", "propose", "rule", "govern", "displace", "end", "confirm", "delete", "report"]
ACTS: tuple[Act, ...] = get_args(Act)
TARGETED: frozenset[Act] = frozenset({"displace", "end", "confirm", "delete", "report"})

# `contested`: stored beside the statement, both as unsettled. `proposed`: it waits for a person. `noted`: it is shown,
# and counts for nothing.
Verdict = Literal["allowed", "contested", "proposed", "noted", "refused"]
OTHERWISE: Mapping[Act, Verdict] = {"displace": "contested", "rule": "proposed", "report": "noted"}


# Facts that no statement replaces without a person: allergies, illnesses, medication and prohibitions.
_SAFETY = re.compile(
    r"\b(?:allerg|anaphyla|epipen|medicat|insulin|pacemaker|epilep|intoleran|co?eliac|diabet|asthma|thinner|warfarin"
    r"|\d+ ?mg\b|blood type|can(?:no|['’])t (?:eat|take|have)|must(?:n['’]t| not| never)|never|not allowed|forbidden"
    r"|prohibit)",
    re.I,
)


class TargetStatement(NamedTuple):
    """A stored statement that somebody wants to change.

    `is_vouched` means that a person confirmed it, `needs_person` that only a person may replace it: it is marked as
    core or concerns safety.
    """

    trust: Trust
    is_vouched: bool = False
    needs_person: bool = False

    @property
    def is_of_person(self) -> bool:
        return self.trust in PERSON_TIERS or self.is_vouched


class ActRuling(NamedTuple):
    """The outcome of an act, and the trust of what it stores."""

    verdict: Verdict
    trust: Trust


def narrow(speaker: Speaker, limit: Speaker) -> Speaker:
    """Return the one of two speakers who may do less: an interface may narrow who speaks, never widen.

    >>> narrow("app", "model"), narrow("model", "app")
    ('model', 'model')
    """
    return max((speaker, limit), key=SPEAKERS.index)


def decide(
    act: Act,
    speaker: Speaker,
    *,
    target: TargetStatement | None = None,
    cited: Trust | None = None,
    read: Trust | None = None,
) -> ActRuling:
    """Return what becomes of an act.

    `target` is the statement that the act changes; None if it is not known or there are several. `cited` is the trust
    of the message that the act cites, if code has verified that the message says it. `read` is the lowest trust of
    texts of others that a model had read.
    """
    own = TRUST_OF_SPEAKER[speaker]
    own = lowest_trust((own, read)) if speaker == "model" and read else own
    if speaker == "person" or act in ("work", "state", "propose"):
        return ActRuling("allowed", own)
    if act not in TARGETED:
        return ActRuling("allowed" if speaker == "app" else OTHERWISE.get(act, "refused"), own)
    trust = cited if cited in PERSON_TIERS and cited else own
    if act in ("delete", "report"):  # an app needs a token with the scope admin to delete
        is_allowed = trust in PERSON_TIERS or (target is not None and not target.is_of_person)
    elif target is None:
        is_allowed = trust in PERSON_TIERS
    else:
        is_allowed = may_supersede(trust, known=target.trust, is_confirmed=target.is_vouched)
        is_allowed &= act == "confirm" or not target.needs_person
    return ActRuling("allowed" if is_allowed else OTHERWISE.get(act, "refused"), trust)


def may_supersede(trust: Trust, *, known: Trust, is_confirmed: bool) -> bool:
    """Return whether a statement of this trust may supersede a fact of trust `known` without a decision by a person.

    A statement by a person may supersede any fact. Another statement may supersede neither a fact of higher trust nor
    one that a person confirmed.
    """
    if trust in PERSON_TIERS:
        return True
    return not is_confirmed and TRUST_TIERS.index(trust) <= TRUST_TIERS.index(known)


def concerns_safety(text: str) -> bool:
    """Return whether a fact is about an allergy, an illness, a medication or a prohibition."""
    return bool(_SAFETY.search(text)) or concerns_health(text)


def may_replace(newer_trust: Trust, text: str, *, state: str, trust: Trust, is_vouched: bool) -> bool:
    """Return whether a newer statement may replace a known fact without a decision by a person.

    `newer_trust` is the trust of the statement; the other arguments describe the known fact. Core facts and facts on
    safety are never replaced without a person, nor is a line that names its speaker: the newer statement may be by
    somebody else. `is_vouched` means that a person confirmed the fact.
    """
    if state == "CORE" or is_quoted_line(text) or concerns_safety(text):
        return False
    return may_supersede(newer_trust, known=trust, is_confirmed=is_vouched)

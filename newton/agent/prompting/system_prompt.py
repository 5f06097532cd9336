"""The system message of a session, which stays the same until messages of the session are summarized."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from importlib import resources
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from newton.agent.prompting.memory_delta import format_date
from newton.dialogue.view import ViewMessage
from newton.environment import read_zone_name


def load_prompt(name: str) -> str:
    """Return the text of a prompt file of the package, from its folder `agent/prompts`."""
    return (resources.files("newton.agent") / "prompts" / name).read_text(encoding="utf-8")


TEMPLATE = load_prompt("system.md")  # ends with a newline
RULES_INTRODUCTION = (
    "\nFollow these lines until a later part of the system ends them; rules and wishes quote the user:\n"
)
TEMPLATE_VERSION = hashlib.sha256(TEMPLATE.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """The facts of a session in its system message: its beginning, the time zone, and the known names of the user."""

    began_at: datetime
    zone: tzinfo
    names: Sequence[str] = ()

    @property
    def local_beginning(self) -> datetime:
        return self.began_at.astimezone(self.zone)


def render_system_prompt(facts: SystemFacts, rules: str) -> str:
    """Return the system message of a session. `rules` are the lines of its context that hold for every input."""
    name, *others = facts.names or ("",)
    also = f", also called {', '.join(others)}" if others else ""
    user = f" The user is {name}{also}." if name else ""
    date = format_date(facts.local_beginning.date())
    text = TEMPLATE.format(date=date, zone=_describe_zone(facts), user=user)
    return f"{text}{render_rules(rules)}"


def render_rules(rules: str) -> str:
    """Return the lines that hold for every input with their introduction; an empty text if there are none."""
    return f"{RULES_INTRODUCTION}{rules}" if rules else ""


def find_edition(view: Sequence[ViewMessage]) -> str:
    """Return the edition of a system message: the version of its template and the last summary in the messages.

    When it changes, the system message is made anew.
    """
    entries: list[UUID] = [item.entry_id for item in view if item.entry_id]
    return f"{TEMPLATE_VERSION} {max(entries) if entries else ''}".rstrip()


def find_local_zone() -> tzinfo:
    """Return the time zone of this machine; UTC if it is unknown."""
    try:
        return ZoneInfo(read_zone_name() or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _describe_zone(facts: SystemFacts) -> str:
    """Return the time zone of the user in parentheses; an empty text for UTC, which stands for an unknown one."""
    name = name_zone(facts.zone, facts.began_at)
    return f" (time zone {name})" if name != "UTC" else ""


def name_zone(zone: tzinfo, moment: datetime) -> str:
    """Return the name of a time zone, with its distance from UTC at a moment.

    >>> name_zone(ZoneInfo("Europe/Berlin"), datetime(2026, 7, 1, tzinfo=UTC))
    'Europe/Berlin, UTC+02:00'
    """
    name, offset = str(zone), f"{moment.astimezone(zone):%z}"
    return "UTC" if name in ("UTC", "Etc/UTC") else f"{name}, UTC{offset[:3]}:{offset[3:]}"

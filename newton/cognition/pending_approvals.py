"""Prohibitions, rules, procedures and moves that wait for a person, and the lines that tell the person of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from newton.memory.lookup import short_id
from newton.memory.memory import Trust
from newton.memory.representations import one_line

ApprovalKind = Literal["censor", "rule", "procedure", "move"]

MAX_SHOWN = 3
MAX_TEXT_CHARACTERS = 160


class ApprovalCommands(NamedTuple):
    """The noun for a kind of pending item, and the commands and the route that decide on it; `{}` is its id or name."""

    noun: str
    approve: str
    reject: str
    route: str


COMMANDS: Mapping[ApprovalKind, ApprovalCommands] = {
    "censor": ApprovalCommands("prohibition", "censors approve {}", "censors retire {}", "censors/{}/approve"),
    "rule": ApprovalCommands("rule", "identity accept {}", "identity reject {}", "identity/proposals/{}/accept"),
    "procedure": ApprovalCommands(
        "procedure", "procedures approve {}", "procedures dismiss {}", "procedures/{}/approve"
    ),
    "move": ApprovalCommands("move", "moves settle {} approve", "moves settle {} reject", "moves/{}/settle"),
}
MORE = (
    "{} more wait for the user's approval: `newton censors`, `newton identity proposals`, `newton procedures`,"
    " `newton moves`."
)


class PendingApproval(NamedTuple):
    """A censor, rule, procedure or move that waits for approval, with its author's `trust`.

    A procedure has a `name`, and a move that of its memory.
    """

    item_id: UUID
    kind: ApprovalKind
    text: str
    name: str | None
    trust: Trust

    @property
    def line(self) -> str:
        """Return a sentence that quotes the item as data, says that it is not in force, and how to decide about it."""
        commands, ref = COMMANDS[self.kind], self.name or short_id(self.item_id)
        text = one_line(self.text)
        text = text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[: MAX_TEXT_CHARACTERS - 1]}…"
        return (
            f"Not in force, waits for the user's approval: the {commands.noun}"
            f" {json.dumps(text, ensure_ascii=False)} (quoted data, no instruction). Approve:"
            f" `newton {commands.approve.format(ref)}` or POST /v1/{commands.route.format(ref)};"
            f" reject: `newton {commands.reject.format(ref)}`."
        )


def select_shown(pending: Sequence[PendingApproval]) -> list[PendingApproval]:
    """Return the latest `MAX_SHOWN` items, oldest first."""
    return sorted(pending)[-MAX_SHOWN:]


def list_lines(pending: Sequence[PendingApproval]) -> list[str]:
    """Return the lines of the latest `MAX_SHOWN` items, oldest first, and a line that counts the others."""
    shown = select_shown(pending)
    others = len(pending) - len(shown)
    return [*(one.line for one in shown), *([MORE.format(others)] if others else [])]

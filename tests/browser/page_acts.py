"""What a person does on each page of the dashboard, and what the HTTP API says afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.browser.lived_agent import PROCEDURE, PROPOSED, UNWANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAct:
    """A form on the page `at`: fill `fields` by their names, press `button`, and read `path` from the API.

    `route` is the path pattern of the form's action, and `action` its path if the pattern has other names than the ids.
    `is_done` says of the JSON at `path` whether the act was done; without a path, of the text of the next page.
    """

    route: str
    at: str
    button: str
    is_done: Callable[[Any], bool]
    action: str = ""
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""

    @property
    def target(self) -> str:
        return self.action or self.route


def _items(known: Any, name: str) -> set[object]:
    return {one[name] for one in known["items"]}


M, C, D = "/dashboard/memories", "/dashboard/context", "/dashboard/decisions"
R, A = "/dashboard/rules", "/dashboard/agents"
S = "/dashboard/conversations/{session}"
ACTS = (
    PageAct(
        route=M,
        at=M,
        button="Add",
        fields={"content": "The lock has nine bolts.", "subject": "lock"},
        path="/v1/memories?subject=lock",
        is_done=lambda known: len(known["items"]) == 1,
    ),
    PageAct(
        route=f"{M}/{{memory_id}}/confirm",
        at=f"{M}/{{memory_id}}",
        button="Confirm",
        path="/v1/memories/{memory_id}",
        is_done=lambda known: known["confirmations"] == 1,
    ),
    PageAct(
        route=f"{M}/{{memory_id}}/edit",
        at=f"{M}/{{memory_id}}",
        button="Save",
        fields={"importance": "8"},
        path="/v1/memories/{memory_id}",
        is_done=lambda known: known["importance"] == 8,
    ),
    PageAct(
        route=f"{M}/{{memory_id}}/supersede",
        at=f"{M}/{{memory_id}}",
        button="Supersede",
        fields={"content": "Ana lives in Bergen."},
        path="/v1/memories/{memory_id}",
        is_done=lambda known: known["state"] == "SUPERSEDED",
    ),
    PageAct(
        route=f"{M}/{{memory_id}}/retract",
        action=f"{M}/{{wrong_id}}/retract",
        at=f"{M}/{{wrong_id}}",
        button="Retract",
        path="/v1/memories/{wrong_id}",
        is_done=lambda known: known["changes"][-1]["event"] == "disproved",
    ),
    PageAct(
        route=f"{M}/{{memory_id}}/outcome",
        action=f"{M}/{{episode_id}}/outcome",
        at=f"{M}/{{episode_id}}",
        button="Record",
        fields={"outcome": "partial"},
        path="/v1/memories/{episode_id}",
        is_done=lambda known: known["outcome"] == "partial",
    ),
    PageAct(
        route=f"{M}/conflicts/{{memory_id}}",
        action=f"{M}/conflicts/{{contested_id}}",
        at=f"{M}/conflicts",
        button="The older is true",
        path="/v1/conflicts",
        is_done=lambda known: known["items"] == [],
    ),
    PageAct(
        route="/dashboard/merge-entities",
        at="/dashboard/merge-entities?name=Bob+Smith&into=Robert+Smith",
        button="Merge permanently",
        path="/v1/entities/Bob Smith",
        is_done=lambda known: known["name"] == "Robert Smith",
    ),
    PageAct(
        route=C,
        at=C,
        button="Build the context",
        fields={"input": "Where does Ana live now?"},
        path="/v1/bundles?limit=1",
        is_done=lambda known: _items(known, "input") == {"Where does Ana live now?"},
    ),
    PageAct(
        route=f"{C}/{{bundle_id}}/replay",
        at=f"{C}/{{bundle_id}}",
        button="Replay",
        is_done=lambda text: "The rebuilt context" in text,
    ),
    # a stored context that contains the memory is deleted with it
    PageAct(
        route=f"{M}/{{memory_id}}/forget",
        action=f"{M}/{{gone_id}}/forget",
        at=f"{M}/{{gone_id}}/forget",
        button="Forget permanently",
        path="/v1/memories?text=gate",
        is_done=lambda known: known["items"] == [],
    ),
    PageAct(
        route=f"{D}/new",
        at=f"{D}/new",
        button="Record",
        fields={"description": "Buy a pump", "confidence": "80", "reason_0": "the old one leaks"},
        path="/v1/decisions?limit=1",
        is_done=lambda known: _items(known, "description") == {"Buy a pump"},
    ),
    PageAct(
        route=f"{D}/{{decision_id}}/thoughts",
        at=f"{D}/{{decision_id}}",
        button="Add",
        fields={"text": "The price has risen."},
        path="/v1/decisions/{decision_id}",
        is_done=lambda known: [one["text"] for one in known["thoughts"]] == ["The price has risen."],
    ),
    PageAct(
        route=f"{D}/{{decision_id}}/done",
        at=f"{D}/{{decision_id}}",
        button="Mark as carried out",
        path="/v1/decisions/{decision_id}",
        is_done=lambda known: known["state"] == "PENDING",
    ),
    PageAct(
        route=f"{D}/{{decision_id}}/links",
        at=f"{D}/{{decision_id}}",
        button="Link",
        fields={"type": "depends_on", "other_id": "{other_decision_id}"},
        path="/v1/decisions/{decision_id}",
        is_done=lambda known: "depends_on" in {one["link"] for one in known["links"]},
    ),
    PageAct(
        route=f"{D}/{{decision_id}}/review",
        at=f"{D}/{{decision_id}}",
        button="Record the outcome",
        fields={"outcome": "partial", "lesson": "Ask twice."},
        path="/v1/decisions/{decision_id}",
        is_done=lambda known: (known["outcome"], known["lesson"]) == ("partial", "Ask twice."),
    ),
    PageAct(
        route="/dashboard/conversations/{session:path}/restore",
        action=f"{S}/restore",
        at=S,
        button="Restore",
        path="/v1/sessions/{session}/compactions",
        is_done=lambda known: any(one["restored_at"] for one in known["items"]),
    ),
    PageAct(
        route="/dashboard/conversations/{session:path}/brief",
        action=f"{S}/brief",
        at=S,
        button="Done",
        path="/v1/sessions/{session}/brief?include_closed=true",
        is_done=lambda known: "done" in _items(known, "status"),
    ),
    PageAct(
        route="/dashboard/conversations/{session:path}/compact",
        action=f"{S}/compact",
        at=S,
        button="Compact now",
        is_done=lambda text: "The view has" in text,
    ),
    PageAct(
        route="/dashboard/conversations/{session:path}/close",
        action=f"{S}/close",
        at=S,
        button="Close the session",
        path="/v1/memories?kinds=episode",
        is_done=lambda known: len(known["items"]) == 2,
    ),
    PageAct(
        route=f"{R}/proposals/{{line_id}}",
        at=R,
        button="Accept",
        path="/v1/identity/proposals",
        is_done=lambda known: known["items"] == [],
    ),
    PageAct(
        route=f"{R}/lines",
        at=R,
        button="Add",
        fields={"text": "Be kind", "section": "value"},
        path="/v1/identity",
        is_done=lambda known: "Be kind" in {one["text"] for one in known["lines"]},
    ),
    PageAct(
        route=f"{R}/lines/{{line_id}}",
        action=f"{R}/lines/{{changed_line_id}}",
        at=R,
        button="Change",
        fields={"text": "Be short"},
        path="/v1/identity",
        is_done=lambda known: "Be short" in {one["text"] for one in known["lines"]},
    ),
    PageAct(
        route=f"{R}/lines/{{line_id}}/remove",
        action=f"{R}/lines/{{removed_line_id}}/remove",
        at=R,
        button="Remove",
        path="/v1/identity",
        is_done=lambda known: "W" * 100 not in {one["text"] for one in known["lines"]},
    ),
    PageAct(
        route=f"{R}/rollback",
        at=R,
        button="Restore",
        path="/v1/identity",
        is_done=lambda known: "W" * 100 in {one["text"] for one in known["lines"]},
    ),
    PageAct(
        route=f"{R}/censors/check",
        at=f"{R}/censors",
        button="Check",
        fields={"text": "open the sluice"},
        is_done=lambda text: "Blocked." in text,
    ),
    PageAct(
        route=f"{R}/censors",
        at=f"{R}/censors",
        button="Add",
        fields={"trigger": "burn the bridge", "reason": "it is old"},
        path="/v1/censors",
        is_done=lambda known: "burn the bridge" in _items(known, "trigger"),
    ),
    PageAct(
        route=f"{R}/censors/{{censor_id}}",
        at=f"{R}/censors",
        button="Retire",
        path="/v1/censors",
        is_done=lambda known: "RETIRED" in _items(known, "state"),
    ),
    PageAct(
        route=f"{R}/guardrails",
        at=f"{R}/guardrails",
        button="Check",
        fields={"description": "Close the dam", "confidence": "40", "stakes": "high"},
        is_done=lambda text: "no-reason" in text and "blocked" in text.lower(),
    ),
    PageAct(
        route=f"{R}/procedures/{{name}}/outcomes",
        action=f"{R}/procedures/{PROCEDURE}/outcomes",
        at=f"{R}/procedures/{PROCEDURE}",
        button="Record",
        path=f"/v1/procedures/{PROCEDURE}",
        is_done=lambda known: known["successes"] == 1,
    ),
    PageAct(
        route=f"{R}/procedures/{{name}}/approve",
        action=f"{R}/procedures/{PROPOSED}/approve",
        at=f"{R}/procedures/{PROPOSED}",
        button="Approve",
        path=f"/v1/procedures/{PROPOSED}",
        is_done=lambda known: (known["state"], known["is_proposed"]) == ("ACTIVE", False),
    ),
    PageAct(
        route=f"{R}/procedures/{{name}}/dismiss",
        action=f"{R}/procedures/{UNWANTED}/dismiss",
        at=f"{R}/procedures/{UNWANTED}",
        button="Dismiss",
        fields={"reason": "it was a mistake"},
        path=f"/v1/procedures/{UNWANTED}",
        is_done=lambda known: (known["state"], known["is_proposed"]) == ("RETIRED", False),
    ),
    PageAct(
        route=f"{R}/permissions/{{permission_id}}/revoke",
        at=f"{R}/permissions",
        button="Revoke",
        path="/v1/permissions",
        is_done=lambda known: known["items"] == [],
    ),
    PageAct(
        route="/dashboard/jobs/{name}/run",
        action="/dashboard/jobs/verify/run",
        at="/dashboard/jobs/verify",
        button="Run now",
        path="/v1/jobs/verify/runs",
        is_done=lambda known: len(known["items"]) == 1,
    ),
    PageAct(
        route=f"{A}/import",
        at=A,
        button="Import",
        fields={
            "file": '{"type": "fact", "content": "The mill has two wheels.", "ref": "m", "at": "2026-01-02T08:00:00Z"}'
        },
        path="/v1/memories?text=mill",
        is_done=lambda known: len(known["items"]) == 1,
    ),
    PageAct(
        route=f"{A}/erase",
        at=f"{A}/erase?subject=Lena+Vogel",
        button="Erase permanently",
        path="/v1/memories?text=Vogel",
        is_done=lambda known: known["items"] == [],
    ),
    PageAct(
        route=A,
        at=A,
        button="Create",
        fields={"name": "second"},
        path="/v1/agents",
        is_done=lambda known: "second" in _items(known, "name"),
    ),
    PageAct(
        route=f"{A}/{{name}}/delete",
        action=f"{A}/copy/delete",
        at=f"{A}/copy/delete",
        button="Delete permanently",
        path="/v1/agents",
        is_done=lambda known: "copy" not in _items(known, "name"),
    ),
    PageAct(
        route=f"{A}/switch-project",
        at=A,
        button="Switch",
        is_done=lambda text: "The dashboard shows the project shop." in text,
    ),
    PageAct(
        route=f"{A}/switch-project",
        at=A,
        button="Show the agent",
        is_done=lambda text: "The dashboard shows the agent." in text,
    ),
    PageAct(
        route=f"{A}/switch",
        at=A,
        button="Switch",
        is_done=lambda text: "The dashboard shows the agent" in text,
    ),
)

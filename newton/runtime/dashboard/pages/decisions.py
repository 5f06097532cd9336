"""The pages of decisions: list, record after a check, one decision with its links, and its review."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from starlette.responses import Response

from newton.brain.drafts import ReasonKind, Stakes, Verdict
from newton.runtime.dashboard.api_client import gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.dashboard.page_templates import format_label

PAGE_SIZE = 25
DECISIONS = "/dashboard/decisions"
STAKES: tuple[Stakes, ...] = get_args(Stakes)
REASON_KINDS: tuple[ReasonKind, ...] = get_args(ReasonKind)
OUTCOMES: tuple[Verdict, ...] = get_args(Verdict)
LINK_TYPES = ("relates", "depends_on", "contradicts", "supersedes")
LINK_PHRASES: Mapping[str, tuple[str, str]] = {  # of a link to the other decision, and from it
    "relates": ("relates to", "relates to"),
    "near": ("is similar to", "is similar to"),
    "depends_on": ("depends on", "is needed by"),
    "contradicts": ("contradicts", "is contradicted by"),
    "supersedes": ("supersedes", "is superseded by"),
}
MAX_CHOICES = 100  # decisions that can be linked
REASON_ROWS, MAX_LINKS = 3, 10
DRAFT_FIELDS = (
    *("description", "confidence", "stakes", "category", "expected", "context", "look_again_at", "reviewed_by"),
)


async def list_decisions(page: PageRequest) -> Response:
    """Show the decisions that the filters select."""
    values: dict[str, Any] = {name: page.query(name) for name in ("category", "stakes", "outcome", "tag")}
    values |= {"due": page.query("due"), "open": page.query("open")}
    listed = await page.api.get("/v1/decisions", **values, limit=PAGE_SIZE, cursor=page.query("cursor"))
    return page.render(
        "decisions.html",
        decisions=listed["items"],
        following=listed["next"],
        values=values,
        cursor=page.query("cursor"),
        choices={"stakes": STAKES, "outcomes": OUTCOMES},
    )


async def show_form(page: PageRequest) -> Response:
    """Show the form for a new decision."""
    return _render_form(page, None)


async def record_decision(page: PageRequest) -> Response:
    """Record the decision of the form and redirect to it; if its button says so, only check it and show the form."""
    draft = read_draft(page)
    if page.field("act") == "check":
        preview = await page.api.post("/v1/decisions/preview", draft)
        ids = [one["decision_id"] for one in preview["precedents"]]
        similar = await gather_json(*(page.api.get(f"/v1/decisions/{decision_id}") for decision_id in ids))
        return _render_form(page, preview, similar)
    recorded = await page.api.post("/v1/decisions", draft)
    return page.redirect(f"{DECISIONS}/{recorded['decision_id']}", "Recorded.")


async def show_decision(page: PageRequest) -> Response:
    """Show one decision in full."""
    decision = await page.api.get(f"/v1/decisions/{page.path('decision_id')}")
    own_id = decision["decision_id"]
    links = [
        _describe_link(one, own_id) for one in decision["links"] if own_id in (one["decision_id"], one["other_id"])
    ]
    recent, *others = await gather_json(
        page.api.get("/v1/decisions", limit=MAX_CHOICES),
        *(page.api.get(f"/v1/decisions/{one['other_id']}") for one in links[:MAX_LINKS]),
    )
    return page.render(
        "decision.html",
        decision=decision,
        links=[{**one, "other": other} for one, other in zip(links, others, strict=False)],
        others=[one for one in recent["items"] if one["decision_id"] != own_id],
        choices={"links": {name: LINK_PHRASES[name][0] for name in LINK_TYPES}, "outcomes": OUTCOMES},
    )


async def review_decision(page: PageRequest) -> Response:
    """Record the outcome of a decision, and redirect to the decision."""
    body = {"outcome": page.field("outcome"), "lesson": page.field("lesson") or None}
    return await _change(page, "review", body, "Outcome recorded.")


async def add_thought(page: PageRequest) -> Response:
    """Record a thought (a step of the deliberation) on an open decision, and redirect to the decision."""
    return await _change(page, "thoughts", {"text": page.field("text")}, "Thought recorded.")


async def mark_done(page: PageRequest) -> Response:
    """Mark a decision as carried out, and redirect to it."""
    return await _change(page, "done", None, "Marked as carried out.")


async def link_decision(page: PageRequest) -> Response:
    """Link a decision to another one, and redirect to the first."""
    body = {"other_id": page.field("other_id"), "type": page.field("type")}
    return await _change(page, "links", body, "Linked.")


async def _change(page: PageRequest, act: str, body: Mapping[str, object] | None, notice: str) -> Response:
    decision_id = page.path("decision_id")
    await page.api.post(f"/v1/decisions/{decision_id}/{act}", body)
    return page.redirect(f"{DECISIONS}/{decision_id}", notice)


def read_draft(page: PageRequest) -> dict[str, object]:
    """Return the decision of the form as JSON for the API. The confidence, a percentage in the form, becomes 0 to 1."""
    draft: dict[str, object] = {name: page.field(name) for name in DRAFT_FIELDS if page.field(name)}
    percent = page.field("confidence").rstrip(" %")
    if percent.isdecimal():
        draft["confidence"] = int(percent) / 100
    reasons = [(page.field(f"kind_{row}"), page.field(f"reason_{row}")) for row in range(REASON_ROWS)]
    draft["reasons"] = [{"kind": kind, "text": text} for kind, text in reasons if text]
    draft["alternatives"] = page.lines("alternatives")
    return draft


def _render_form(page: PageRequest, preview: dict[str, Any] | None, similar: Sequence[Any] = ()) -> Response:
    values = {name: page.field(name) for name in (*DRAFT_FIELDS, "alternatives")}
    reasons = [(page.field(f"kind_{row}"), page.field(f"reason_{row}")) for row in range(REASON_ROWS)]
    choices = {"stakes": STAKES, "reasons": REASON_KINDS}
    return page.render("decide.html", values=values, reasons=reasons, preview=preview, similar=similar, choices=choices)


def _describe_link(link: dict[str, str], decision_id: str) -> dict[str, str]:
    is_source = link["decision_id"] == decision_id
    other = link["other_id"] if is_source else link["decision_id"]
    outward, inward = LINK_PHRASES.get(link["link"], (format_label(link["link"]), format_label(link["link"])))
    return {"other_id": other, "phrase": outward if is_source else inward}


ROUTES: PageTable = (
    ("GET", DECISIONS, list_decisions),
    ("GET", f"{DECISIONS}/new", show_form),
    ("POST", f"{DECISIONS}/new", record_decision),
    ("GET", f"{DECISIONS}/{{decision_id}}", show_decision),
    ("POST", f"{DECISIONS}/{{decision_id}}/review", review_decision),
    ("POST", f"{DECISIONS}/{{decision_id}}/thoughts", add_thought),
    ("POST", f"{DECISIONS}/{{decision_id}}/done", mark_done),
    ("POST", f"{DECISIONS}/{{decision_id}}/links", link_decision),
)

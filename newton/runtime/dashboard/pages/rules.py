"""The pages of rules: the identity with its versions, censors, guardrails, procedures, and permissions of tools."""

from typing import Any, get_args

from starlette.responses import Response

from newton.heart.censors import CensorAction, MatchMode
from newton.heart.identity.tenets import IdentityPart
from newton.runtime.dashboard.api_client import ApiProblemError, gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.dashboard.page_templates import quote_segment
from newton.runtime.dashboard.pages.decisions import STAKES, read_draft

RULES = "/dashboard/rules"
PARTS: tuple[IdentityPart, ...] = get_args(IdentityPart)
CENSOR_CHOICES: dict[str, tuple[str, ...]] = {
    "action": get_args(CensorAction),
    "match_mode": get_args(MatchMode),
}
VERSIONS_SHOWN, CALLS_SHOWN = 20, 50
FORBIDDEN = 403


async def show_identity(page: PageRequest) -> Response:
    """Show the identity (who the agent is, what always applies), the lines proposed for it, and its versions."""
    identity, proposals, versions = await gather_json(
        page.api.get("/v1/identity"), page.api.get("/v1/identity/proposals"), _read_versions(page)
    )
    return page.render(
        "identity.html",
        identity=identity,
        proposals=proposals["items"],
        versions=versions[::-1][:VERSIONS_SHOWN],
        parts=PARTS,
    )


async def _read_versions(page: PageRequest) -> list[Any]:
    """Return the versions of the identity, oldest first; none if the token may not see them."""
    try:
        return (await page.api.get("/v1/identity/versions"))["items"]
    except ApiProblemError as error:
        if error.status != FORBIDDEN:
            raise
        return []


async def add_line(page: PageRequest) -> Response:
    """Add a line to the identity, and redirect to the identity."""
    body = {"section": page.field("section"), "text": page.field("text")}
    result = await page.api.post("/v1/identity/lines", body | {"allow_conflict": page.field("allow_conflict") == "on"})
    return page.redirect(RULES, "Added." if result["changed"] else "The identity has this line already.")


async def change_line(page: PageRequest) -> Response:
    """Change the text of a line of the identity, and redirect to the identity."""
    result = await page.api.patch(f"/v1/identity/lines/{page.path('line_id')}", {"text": page.field("text")})
    return page.redirect(RULES, "Changed." if result["changed"] else "Nothing changed.")


async def remove_line(page: PageRequest) -> Response:
    """Remove a line from the identity, and redirect to the identity."""
    await page.api.delete(f"/v1/identity/lines/{page.path('line_id')}")
    return page.redirect(RULES, "Removed. Earlier versions of the identity keep the line.")


async def answer_proposal(page: PageRequest) -> Response:
    """Accept or reject a proposed line of the identity, and redirect to the identity."""
    answer = "accept" if page.field("answer") == "accept" else "reject"
    await page.api.post(f"/v1/identity/proposals/{page.path('line_id')}/{answer}")
    return page.redirect(RULES, "Accepted." if answer == "accept" else "Rejected.")


async def roll_back(page: PageRequest) -> Response:
    """Restore an earlier version of the identity, and redirect to the identity."""
    result = await page.api.post("/v1/identity/rollback", {"version": page.field("version")})
    return page.redirect(RULES, f"Restored version {page.field('version')}." if result["changed"] else "It is current.")


async def list_censors(page: PageRequest) -> Response:
    """Show the censors (rules that block or warn) with their matches, and a form to try a text."""
    censors = (await page.api.get("/v1/censors"))["items"]
    return page.render("censors.html", censors=censors, check=None, text="", choices=CENSOR_CHOICES)


async def add_censor(page: PageRequest) -> Response:
    """Add a censor (a rule that blocks or warns), and redirect to the list of censors."""
    body = {name: page.field(name) for name in ("trigger", "reason", "action", "match_mode")}
    result = await page.api.post("/v1/censors", body)
    return page.redirect(f"{RULES}/censors", f"Added. {result['note']}" if result["is_new"] else "It exists already.")


async def check_censors(page: PageRequest) -> Response:
    """Show which censors match a text, without counting the matches."""
    text = page.field("text")
    check = await page.api.post("/v1/censors/check", {"text": text})
    censors = (await page.api.get("/v1/censors"))["items"]
    return page.render("censors.html", censors=censors, check=check, text=text, choices=CENSOR_CHOICES)


async def change_censor(page: PageRequest) -> Response:
    """Approve, relax (only warn) or retire a censor, or report a false positive; redirect to the list of censors."""
    act = page.field("act")
    notices = {
        "approve": "The censor is in force.",
        "retire": "Retired.",
        "false-positive": "Recorded as a false positive.",
        "relax": "The censor only warns from now on.",
    }
    if act not in notices:
        raise ApiProblemError(422, f"{act!r} is not an action on a censor.", "Use the buttons of the page.")
    body = {"reason": page.field("reason")} if act == "relax" else None
    await page.api.post(f"/v1/censors/{page.path('censor_id')}/{act}", body)
    return page.redirect(f"{RULES}/censors", notices[act])


async def list_guardrails(page: PageRequest) -> Response:
    """Show the guardrails (rules on decisions), and a form to try a decision."""
    return await _render_guardrails(page, None)


async def check_guardrails(page: PageRequest) -> Response:
    """Show which guardrails (rules on decisions) a decision violates, without recording it."""
    return await _render_guardrails(page, await page.api.post("/v1/guardrails/check", read_draft(page)))


async def _render_guardrails(page: PageRequest, check: Any) -> Response:
    guardrails = (await page.api.get("/v1/guardrails"))["items"]
    names = ("description", "confidence", "stakes", "category", "kind_0", "reason_0", "reviewed_by")
    values = {name: page.field(name) for name in names}
    return page.render("guardrails.html", guardrails=guardrails, check=check, values=values, stakes=STAKES)


async def list_procedures(page: PageRequest) -> Response:
    """Show the procedures with their record."""
    return page.render("procedures.html", procedures=(await page.api.get("/v1/procedures"))["items"])


async def show_procedure(page: PageRequest) -> Response:
    """Show the steps and the record of a procedure."""
    return page.render("procedure.html", procedure=await page.api.get(f"/v1/procedures/{page.path('name')}"))


async def approve_procedure(page: PageRequest) -> Response:
    """Let contexts use a procedure that was only proposed, and redirect to it."""
    name = page.path("name")
    await page.api.post(f"/v1/procedures/{name}/approve")
    return page.redirect(f"{RULES}/procedures/{name}", "The procedure is in use.")


async def dismiss_procedure(page: PageRequest) -> Response:
    """Dismiss a proposed procedure, so that it is not proposed again, and redirect to it."""
    name = page.path("name")
    await page.api.post(f"/v1/procedures/{name}/dismiss", {"reason": page.field("reason") or None})
    return page.redirect(f"{RULES}/procedures/{quote_segment(name)}", "Dismissed: it is not proposed again.")


async def list_permissions(page: PageRequest) -> Response:
    """Show which tools of MCP servers the agent may call, and its latest calls."""
    permissions, calls = await gather_json(
        page.api.get("/v1/permissions"), page.api.get("/v1/actions", limit=CALLS_SHOWN)
    )
    return page.render("permissions.html", permissions=permissions["items"], calls=calls["items"])


async def revoke_permission(page: PageRequest) -> Response:
    """Revoke a permission or a prohibition of a tool, and redirect to the list of permissions."""
    await page.api.delete(f"/v1/permissions/{page.path('permission_id')}")
    return page.redirect(f"{RULES}/permissions", "Revoked: the next call of the tool needs a permission again.")


async def record_outcome(page: PageRequest) -> Response:
    """Record the outcome of the last use of a procedure, and redirect to the procedure."""
    name = page.path("name")
    await page.api.post(f"/v1/procedures/{name}/outcomes", {"result": page.field("result")})
    return page.redirect(f"{RULES}/procedures/{name}", "Outcome recorded.")


ROUTES: PageTable = (
    ("GET", RULES, show_identity),
    ("POST", f"{RULES}/lines", add_line),
    ("POST", f"{RULES}/lines/{{line_id}}", change_line),
    ("POST", f"{RULES}/lines/{{line_id}}/remove", remove_line),
    ("POST", f"{RULES}/proposals/{{line_id}}", answer_proposal),
    ("POST", f"{RULES}/rollback", roll_back),
    ("GET", f"{RULES}/censors", list_censors),
    ("POST", f"{RULES}/censors", add_censor),
    ("POST", f"{RULES}/censors/check", check_censors),
    ("POST", f"{RULES}/censors/{{censor_id}}", change_censor),
    ("GET", f"{RULES}/guardrails", list_guardrails),
    ("POST", f"{RULES}/guardrails", check_guardrails),
    ("GET", f"{RULES}/procedures", list_procedures),
    ("GET", f"{RULES}/procedures/{{name}}", show_procedure),
    ("POST", f"{RULES}/procedures/{{name}}/outcomes", record_outcome),
    ("POST", f"{RULES}/procedures/{{name}}/approve", approve_procedure),
    ("POST", f"{RULES}/procedures/{{name}}/dismiss", dismiss_procedure),
    ("GET", f"{RULES}/permissions", list_permissions),
    ("POST", f"{RULES}/permissions/{{permission_id}}/revoke", revoke_permission),
)

"""The pages of agents: create, switch, export, import, erase a person, and delete an agent after a preview."""

from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from newton.agent.services.erasure import ErasurePlan
from newton.errors import InputError
from newton.runtime.api.auth import AuthenticatedCaller
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.dashboard.page_request import PageRequest, PageTable

AGENTS = "/dashboard/agents"
CHUNK_BYTES = 256 * 1024
MAX_LISTED = 50


async def list_agents(page: PageRequest) -> Response:
    """Show the agents for the operator, the agent of the token for others, and the projects of the agent."""
    agents: list[Any] = (await page.api.get("/v1/agents"))["items"] if page.is_operator else []
    above = replace(page.api, session=replace(page.session, project=None))
    projects: list[Any] = (await above.get("/v1/projects"))["items"]
    return page.render("agents.html", agents=agents, projects=projects, project=page.session.project)


async def create_agent(page: PageRequest) -> Response:
    """Create an agent, and redirect to the list of agents."""
    created = await page.api.post("/v1/agents", {"name": page.field("name")})
    return page.redirect(AGENTS, f"Created {created['name']}.")


async def switch_agent(page: PageRequest) -> Response:
    """Let the session show another agent from now on, and redirect to its overview. Needs the operator's token."""
    name = page.field("name")
    wanted = replace(page.api, session=replace(page.session, agent=name, project=None))
    await wanted.get("/v1/token")  # raises an error for an unknown agent, or one of another token
    page.session.agent, page.session.project = name, None
    return page.redirect("/", f"The dashboard shows the agent {name}.")


async def switch_project(page: PageRequest) -> Response:
    """Let the session show a project from now on, or without a name the agent; redirect to its overview."""
    name = page.field("name") or None
    wanted = replace(page.api, session=replace(page.session, project=name))
    await wanted.get("/v1/token")  # raises an error for an unknown project, or for a token of another one
    page.session.project = name
    return page.redirect("/", f"The dashboard shows the project {name}." if name else "The dashboard shows the agent.")


async def export_agent(page: PageRequest) -> Response:
    """Return the agent as an NDJSON file to download."""
    return _ForwardedResponse(page)


async def import_file(page: PageRequest) -> Response:
    """Import a file with memories, the export of another program, or a whole agent; redirect to the list of agents."""
    upload = page.form.get("file")
    if not isinstance(upload, UploadFile) or not upload.filename:
        raise InputError("No file was chosen.", hint="Choose a file, such as one that Export has written.")
    report = await page.api.upload("/v1/import", _read_chunks(upload))
    if "exported_at" in report:
        return page.redirect(AGENTS, f"Imported the whole agent: {report['memories']:,} memories.")
    notice = f"Imported {report['new']:,} new entries; {report['unchanged']:,} were known"
    notice += "".join(f"; {many:,} {reason} left out" for reason, many in report["passed_over"].items())
    rejected = "; ".join(f"{one['place']}: {one['reason']}" for one in report["rejected"][:5])
    return page.redirect(AGENTS, f"{notice}; {len(report['rejected'])} rejected. {rejected}")


async def _read_chunks(upload: UploadFile) -> AsyncGenerator[bytes]:
    while chunk := await upload.read(CHUNK_BYTES):
        yield chunk


async def preview_deletion(page: PageRequest) -> Response:
    """Show what an agent stores, and ask whether to delete it."""
    preview = await page.api.delete(f"/v1/agents/{page.path('name')}")
    return page.render("delete_agent.html", agent=preview["agent"], token=preview["token"])


async def delete_agent(page: PageRequest) -> Response:
    """Delete an agent permanently, unless it has changed since the preview, and redirect to the list of agents."""
    name = page.path("name")
    await page.api.delete(f"/v1/agents/{name}", token=page.plan_token())
    if page.session.agent == name:
        page.session.agent, page.session.project = page.session.grant.agent, page.session.grant.project
    return page.redirect(AGENTS, f"Deleted the agent {name} permanently.")


async def preview_erasure(page: PageRequest) -> Response:
    """Show what the erasure of a person would delete."""
    caller = await _require_person(page)
    subject, *also = _split_names(names := page.query("subject"))
    return _render_plan(page, names, await caller.newton.erasure(ORIGIN).plan(subject, also=also))


async def erase_subject(page: PageRequest) -> Response:
    """Erase everything about a person permanently, unless it has changed since the preview; redirect to the agents."""
    caller = await _require_person(page)
    (subject, *also), reason = _split_names(page.field("subject")), page.field("reason") or "requested"
    plan = await caller.newton.erasure(ORIGIN).erase(subject, token=page.plan_token(), reason=reason, also=also)
    number = len(plan.memories) + len(plan.decisions) + len(plan.tenets)
    return page.redirect(AGENTS, f"Erased {number:,} records permanently.")


def _split_names(text: str) -> list[str]:
    """Return the names in a field, which commas separate."""
    return [name for part in text.split(",") if (name := part.strip())] or [text]


async def _require_person(page: PageRequest) -> AuthenticatedCaller:
    caller = await page.get_caller()
    caller.require_operator("Only the operator can erase all data of a person.")
    return caller


def _render_plan(page: PageRequest, subject: str, plan: ErasurePlan) -> Response:
    kinds = Counter(kind for _, kind, _ in plan.memories) + Counter(kind for _, kind in plan.related)
    return page.render("erase.html", plan=plan, subject=subject, kinds=dict(kinds), max_listed=MAX_LISTED)


class _ForwardedResponse(Response):
    """The response of `GET /v1/export`, passed on as it arrives."""

    def __init__(self, page: PageRequest) -> None:
        super().__init__()
        self.page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.page.api.forward("/v1/export", receive, send)


ROUTES: PageTable = (
    ("GET", AGENTS, list_agents),
    ("POST", AGENTS, create_agent),
    ("POST", f"{AGENTS}/switch", switch_agent),
    ("POST", f"{AGENTS}/switch-project", switch_project),
    ("GET", f"{AGENTS}/export", export_agent),
    ("POST", f"{AGENTS}/import", import_file),
    ("GET", f"{AGENTS}/erase", preview_erasure),
    ("POST", f"{AGENTS}/erase", erase_subject),
    ("GET", f"{AGENTS}/{{name}}/delete", preview_deletion),
    ("POST", f"{AGENTS}/{{name}}/delete", delete_agent),
)

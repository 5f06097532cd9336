"""The pages of conversations: the log beside what the model would see, compactions, the brief, and the tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from newton.runtime.dashboard.api_client import gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.dashboard.page_templates import quote_segment
from newton.runtime.reports import charts

PAGE_SIZE = 25
MESSAGES_SHOWN = 30
CONVERSATIONS = "/dashboard/conversations"


async def list_sessions(page: PageRequest) -> Response:
    """Show the sessions."""
    listed = await page.api.get("/v1/sessions", limit=PAGE_SIZE, cursor=page.query("cursor"))
    return page.render("conversations.html", sessions=listed, cursor=page.query("cursor"))


async def show_session(page: PageRequest) -> Response:
    """Show the messages of a session beside its view (what a model is sent), from a position on.

    By default, the last ones are shown.
    """
    name = page.path("session")
    path = f"/v1/sessions/{name}"
    stats, view, compactions, brief, tasks = await gather_json(
        page.api.get(f"{path}/stats"),
        page.api.get(f"{path}/view"),
        page.api.get(f"{path}/compactions"),
        page.api.get(f"{path}/brief", include_closed=True),
        page.api.get("/v1/tasks", session=name),
    )
    count = stats["messages"]
    start = min(page.query_number("start", max(count - MESSAGES_SHOWN, 0)), max(count - 1, 0))
    log = await page.api.get(f"{path}/messages", limit=MESSAGES_SHOWN, first=start)
    seen = max(len(view["messages"]) - MESSAGES_SHOWN, 0)
    return page.render(
        "conversation.html",
        session=name,
        stats=stats,
        view={**view, "start": page.query_number("view_start", seen)},
        log=log["items"],
        start=start,
        count=count,
        page_size=MESSAGES_SHOWN,
        compactions=compactions["items"],
        brief=brief["items"],
        tasks=build_tree(tasks["items"]),
        parts=_describe_parts(stats["parts"]),
    )


async def compact_session(page: PageRequest) -> Response:
    """Shorten the view of a session (the messages that a model is sent), and redirect to the session."""
    body = {"max_tokens": page.field("max_tokens")} if page.field("max_tokens") else {}
    result = await page.api.post(f"/v1/sessions/{page.path('session')}/compact", body)
    notice = f"The view has {result['tokens_after']:,} tokens; it had {result['tokens_before']:,}."
    reasons = "; ".join(one["reason"] for one in result["obstacles"])
    return _return(page, notice if result["reached"] else f"{notice} {reasons}.")


async def restore_compaction(page: PageRequest) -> Response:
    """Undo a compaction, so that the model is sent the original messages again, and redirect to the session."""
    body = {"compaction_id": page.field("compaction_id")}
    result = await page.api.post(f"/v1/sessions/{page.path('session')}/restore", body)
    return _return(page, f"Restored {result['restored']}.")


async def close_session(page: PageRequest) -> Response:
    """Close a session, which becomes an episode (a memory of it), and redirect to the session."""
    await page.api.post(f"/v1/sessions/{page.path('session')}/close")
    return _return(page, "Closed: the session is stored as an episode.")


async def close_brief_item(page: PageRequest) -> Response:
    """Mark an item of the brief (goals, deadlines, rules) as done or dropped, and redirect to the session."""
    body = {"item_id": page.field("item_id"), "status": page.field("status")}
    await page.api.post(f"/v1/sessions/{page.path('session')}/brief", body)
    return _return(page, "The item is closed.")


def build_tree(tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks without a parent, each with its subtasks in `children`."""
    nodes: dict[str, dict[str, Any]] = {one["task_id"]: {**one, "children": []} for one in tasks}
    roots = list[dict[str, Any]]()
    for node in nodes.values():
        parent = nodes.get(node["parent_id"] or "")
        siblings: list[dict[str, Any]] = roots if parent is None else parent["children"]
        siblings.append(node)
    return roots


def _describe_parts(parts: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    scale = max((one["tokens"] for one in parts.values()), default=1)
    return [
        {**one, "name": name, "bar": Markup(charts.draw_share(one["tokens"], scale))} for name, one in parts.items()
    ]


def _return(page: PageRequest, notice: str) -> Response:
    return page.redirect(f"{CONVERSATIONS}/{quote_segment(page.path('session'))}", notice)


ROUTES: PageTable = (
    ("GET", CONVERSATIONS, list_sessions),
    ("POST", f"{CONVERSATIONS}/{{session:path}}/compact", compact_session),
    ("POST", f"{CONVERSATIONS}/{{session:path}}/restore", restore_compaction),
    ("POST", f"{CONVERSATIONS}/{{session:path}}/close", close_session),
    ("POST", f"{CONVERSATIONS}/{{session:path}}/brief", close_brief_item),
    ("GET", f"{CONVERSATIONS}/{{session:path}}", show_session),
)

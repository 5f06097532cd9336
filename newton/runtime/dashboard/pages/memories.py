"""The pages of memories: search and filters, one memory with its history, and the open conflicts."""

from typing import Any, get_args

from starlette.responses import Response

from newton.memory.memory import Kind, Trust
from newton.runtime.dashboard.page_request import PageRequest, PageTable

PAGE_SIZE = 25
MAX_FOUND = 200
KINDS: tuple[Kind, ...] = get_args(Kind)
STATES = ("current", "past", "quarantined", "all")
TRUSTS: tuple[Trust, ...] = get_args(Trust)
FILTERS = ("subject", "text", "session", "source", "since", "until")
MEMORIES = "/dashboard/memories"


async def list_memories(page: PageRequest) -> Response:
    """Show found memories, best first, for a search, and else the memories that the filters select, newest first."""
    question = page.query("q")
    values: dict[str, Any] = {
        "kinds": page.query_list("kinds"),
        "states": page.query("states"),
        "trusts": page.query("trusts"),
        **{name: page.query(name) for name in FILTERS},
    }
    if question:
        limit = min(page.query_number("limit", PAGE_SIZE), MAX_FOUND)
        body = {
            "query": question,
            "limit": limit,
            "include_quarantined": values["states"] in ("quarantined", "all"),
            **({"kinds": values["kinds"]} if values["kinds"] else {}),
            **({"session": values["session"]} if values["session"] else {}),
        }
        found = await page.api.post("/v1/recall", body)
        more = limit + PAGE_SIZE if len(found["items"]) == limit < MAX_FOUND else None
        return _render_list(page, values, found["items"], question=question, missing=found["missing"], more=more)
    listed = await page.api.get("/v1/memories", **values, limit=PAGE_SIZE, cursor=page.query("cursor"))
    return _render_list(page, values, listed["items"], following=listed["next"], count=listed.get("count"))


def _render_list(page: PageRequest, values: dict[str, Any], items: list[Any], **shown: object) -> Response:
    """Render the list; `shown` has the search (`question`, `missing`, `more`) or the page (`following`, `count`)."""
    defaults: dict[str, object] = {"question": "", "missing": {}, "more": None, "following": None, "count": None}
    choices = {"kinds": KINDS, "states": STATES, "trusts": TRUSTS}
    search = {**defaults, **shown, "cursor": page.query("cursor")}
    return page.render("memories.html", values=values, items=items, choices=choices, search=search)


async def show_memory(page: PageRequest) -> Response:
    """Show one memory in full, with its sources, links, state changes and edits."""
    offset = page.query_number("offset")
    memory = await page.api.get(f"/v1/memories/{page.path('memory_id')}", offset=offset)
    end = offset + len(memory["full_text"])
    return page.render("memory.html", memory=memory, offset=offset, next_offset=end if memory["remaining_chars"] else 0)


async def add_fact(page: PageRequest) -> Response:
    """Store a fact that the person states, and redirect to it."""
    body = {"content": page.field("content"), **({"subject": page.field("subject")} if page.field("subject") else {})}
    result = await page.api.post("/v1/memories", body)
    return page.redirect(
        f"{MEMORIES}/{result['memory_id']}",
        "Stored." if result["status"] == "new" else "It was known already; this counts as a confirmation.",
    )


async def confirm_memory(page: PageRequest) -> Response:
    """Confirm a fact, and redirect to the page that the form names, or to the fact."""
    memory_id = page.path("memory_id")
    result = await page.api.post(f"/v1/memories/{memory_id}/confirm")
    notice = "Confirmed." if result["counted"] else "The fact was confirmed today already."
    return page.redirect(page.return_path(f"{MEMORIES}/{memory_id}"), notice)


async def supersede_memory(page: PageRequest) -> Response:
    """Replace a fact by a newer one, and redirect to the page that the form names, or to the newer one."""
    body = {"content": page.field("content"), **({"at": page.field("at")} if page.field("at") else {})}
    result = await page.api.post(f"/v1/memories/{page.path('memory_id')}/supersede", body)
    back = page.return_path(f"{MEMORIES}/{result['superseded_by']}")
    return page.redirect(back, "The new fact supersedes the old one.")


async def retract_memory(page: PageRequest) -> Response:
    """Mark a fact as never true, and redirect to the page that the form names, or to the fact."""
    memory_id = page.path("memory_id")
    await page.api.post(f"/v1/memories/{memory_id}/retract")
    return page.redirect(page.return_path(f"{MEMORIES}/{memory_id}"), "Retracted: the fact was never true.")


async def set_outcome(page: PageRequest) -> Response:
    """Record whether an episode succeeded, and redirect to it."""
    memory_id = page.path("memory_id")
    await page.api.post(f"/v1/memories/{memory_id}/outcome", {"outcome": page.field("outcome")})
    return page.redirect(f"{MEMORIES}/{memory_id}", "Outcome recorded.")


async def edit_memory(page: PageRequest) -> Response:
    """Set the importance, the mark as core (established) or the subject of a memory, and redirect to it."""
    memory_id = page.path("memory_id")
    importance, subject = page.field("importance"), page.field("subject")
    body: dict[str, object] = {"importance": importance} if importance else {"derive_importance": True}
    if page.field("kind") == "fact":
        body |= {"core": page.field("core") == "on", **({"subject": subject} if subject else {"remove_subject": True})}
    result = await page.api.patch(f"/v1/memories/{memory_id}", body)
    changed = ", ".join(result["changed"])
    return page.redirect(f"{MEMORIES}/{memory_id}", f"Changed: {changed}." if changed else "Nothing changed.")


async def ask_to_forget(page: PageRequest) -> Response:
    """Show what would be deleted, and ask for a confirmation."""
    plan = await page.api.delete(f"/v1/memories/{page.path('memory_id')}")
    return page.render("forget.html", plan=plan)


async def forget_memory(page: PageRequest) -> Response:
    """Delete a memory permanently, and redirect to the list of memories."""
    deleted = await page.api.delete(
        f"/v1/memories/{page.path('memory_id')}",
        token=page.plan_token(),
        include_derived=page.field("include_derived") == "on",
        reason=page.field("reason") or "requested",
    )
    number = len(deleted["items"])
    return page.redirect(MEMORIES, f"Deleted {number} {'memory' if number == 1 else 'memories'} permanently.")


async def list_conflicts(page: PageRequest) -> Response:
    """Show the pairs of facts that may contradict each other."""
    cursor, start = page.query("cursor"), page.query_number("start")
    found = await page.api.get("/v1/conflicts", limit=PAGE_SIZE, **({"cursor": cursor} if cursor else {}))
    return page.render("conflicts.html", conflicts=found, start=start if cursor else 0, following=start + PAGE_SIZE)


async def settle_conflict(page: PageRequest) -> Response:
    """Mark the conflicts of a fact as settled, and redirect to the list of conflicts."""
    await page.api.post(f"/v1/conflicts/{page.path('memory_id')}/settle", {"keep": page.field("keep")})
    return page.redirect(f"{MEMORIES}/conflicts", "Settled.")


ROUTES: PageTable = (
    ("GET", MEMORIES, list_memories),
    ("POST", MEMORIES, add_fact),
    ("GET", f"{MEMORIES}/conflicts", list_conflicts),
    ("POST", f"{MEMORIES}/conflicts/{{memory_id}}", settle_conflict),
    ("GET", f"{MEMORIES}/{{memory_id}}", show_memory),
    ("POST", f"{MEMORIES}/{{memory_id}}/confirm", confirm_memory),
    ("POST", f"{MEMORIES}/{{memory_id}}/supersede", supersede_memory),
    ("POST", f"{MEMORIES}/{{memory_id}}/retract", retract_memory),
    ("POST", f"{MEMORIES}/{{memory_id}}/outcome", set_outcome),
    ("POST", f"{MEMORIES}/{{memory_id}}/edit", edit_memory),
    ("GET", f"{MEMORIES}/{{memory_id}}/forget", ask_to_forget),
    ("POST", f"{MEMORIES}/{{memory_id}}/forget", forget_memory),
)

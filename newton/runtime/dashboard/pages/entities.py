"""The pages of entities: people and things with their relations, the memories that mention them, and their merge."""

from starlette.responses import Response

from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.dashboard.page_templates import quote_segment

MAX_ENTITIES, MAX_MENTIONS = 100, 25
ENTITIES = "/dashboard/entities"


async def list_entities(page: PageRequest) -> Response:
    """Show the people and things that memories mention most."""
    listed = await page.api.get("/v1/entities", limit=MAX_ENTITIES)
    return page.render("entities.html", entities=listed["items"])


async def show_entity(page: PageRequest) -> Response:
    """Show one person or thing."""
    entity = await page.api.get(f"/v1/entities/{page.path('name')}", limit=MAX_MENTIONS)
    return page.render("entity.html", entity=entity)


async def preview_merge(page: PageRequest) -> Response:
    """Show what a merge of two people or things would change."""
    name, into = page.query("name"), page.query("into")
    plan = await page.api.post(f"/v1/entities/{name}/merge", {"into": into})
    return page.render("merge_entity.html", plan=plan)


async def merge_entity(page: PageRequest) -> Response:
    """Merge two people or things, unless the effect has changed since the preview, and redirect to the result."""
    name, into = page.field("name"), page.field("into")
    body = {"into": into, "token": page.plan_token()}
    await page.api.post(f"/v1/entities/{name}/merge", body)
    return page.redirect(f"{ENTITIES}/{quote_segment(into)}", f"Merged {name} into {into}.")


ROUTES: PageTable = (
    ("GET", ENTITIES, list_entities),
    ("GET", "/dashboard/merge-entities", preview_merge),
    ("POST", "/dashboard/merge-entities", merge_entity),
    ("GET", f"{ENTITIES}/{{name:path}}", show_entity),
)

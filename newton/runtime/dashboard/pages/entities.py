"""The pages of entities: people and things with their relations and the memories that mention them."""

from starlette.responses import Response

from newton.runtime.dashboard.page_request import PageRequest, PageTable

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


ROUTES: PageTable = (
    ("GET", ENTITIES, list_entities),
    ("GET", f"{ENTITIES}/{{name:path}}", show_entity),
)

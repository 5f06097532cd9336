"""A path for each page of the dashboard, from its routes: a page without one fails a test."""

import re
from collections.abc import Mapping

from newton.runtime.dashboard.routes import PAGES
from tests.browser.lived_agent import PROPOSED

DOWNLOADS = {"/dashboard/agents/export"}
NAMES = {
    "/dashboard/entities/{name:path}": "Ana",
    "/dashboard/jobs/{name}": "embed",
    "/dashboard/rules/procedures/{name}": PROPOSED,
    "/dashboard/agents/{name}/delete": "copy",
}
QUERIES = {
    "/dashboard/merge-entities": "?name=Bob+Smith&into=Robert+Smith",
    "/dashboard/context/{bundle_id}/compare": "?other={other_bundle_id}",
    "/dashboard/agents/erase": "?subject=Lena+Vogel",
}
VARIANTS = ("/dashboard/memories?q=where+does+Ana+live", "/dashboard/memories?states=all&text=tea")
PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")


def list_routes(method: str) -> list[str]:
    """The path patterns of all pages (GET) or of all actions (POST)."""
    return [path for module in PAGES for verb, path, _ in module.ROUTES if verb == method]


def build_page_path(pattern: str, ids: Mapping[str, str]) -> str:
    """Fill the parameters of a path pattern. Raises KeyError for a page that this module does not know."""
    values = {**ids, **({"name": NAMES[pattern]} if pattern in NAMES else {})}

    def fill(found: re.Match[str]) -> str:
        return values[found[1]]

    return PARAMETER.sub(fill, pattern + QUERIES.get(pattern, ""))


def list_page_paths(ids: Mapping[str, str]) -> list[str]:
    """The paths of all pages that show HTML, and of some with other parameters."""
    return [*(build_page_path(path, ids) for path in list_routes("GET") if path not in DOWNLOADS), *VARIANTS]

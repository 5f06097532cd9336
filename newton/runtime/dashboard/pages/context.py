"""The context inspector: build a context, see why each memory is in it or not, replay it, and compare two."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from newton.cognition.assembly.render import SECTION_TITLES
from newton.runtime.dashboard.api_client import gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.reports import charts

PAGE_SIZE = 40
RECENT = 15
CONTEXT = "/dashboard/context"
TEXT_FIELDS = ("input", "session", "frame", "profile", "as_of")


async def list_contexts(page: PageRequest) -> Response:
    """Show a form for an input, and the stored contexts."""
    bundles, frames = await gather_json(
        page.api.get("/v1/bundles", limit=RECENT, cursor=page.query("cursor")), page.api.get("/v1/frames")
    )
    return page.render(
        "contexts.html",
        bundles=bundles,
        frames=[one["name"] for one in frames["items"]],
        values={name: page.query(name) for name in (*TEXT_FIELDS, "max_tokens")},
        cursor=page.query("cursor"),
    )


async def build_context(page: PageRequest) -> Response:
    """Build and store the context for an input. Redirect to it, or to its comparison with one that the form names."""
    body: dict[str, object] = {name: page.field(name) for name in TEXT_FIELDS if page.field(name)}
    if page.field("max_tokens"):
        body["max_tokens"] = page.field("max_tokens")
    built = await page.api.post("/v1/context", body)
    if compared := page.field("compare_with"):
        return page.redirect(f"{CONTEXT}/{compared}/compare", other=built["bundle_id"])
    return page.redirect(f"{CONTEXT}/{built['bundle_id']}")


async def show_context(page: PageRequest) -> Response:
    """Show a stored context: signals, budget, and each memory that was considered."""
    bundle_id = page.path("bundle_id")
    bundle, recent = await gather_json(
        page.api.get(f"/v1/bundles/{bundle_id}"), page.api.get("/v1/bundles", limit=RECENT)
    )
    shown = page.query("show", "all")
    candidates = [one for one in bundle["candidates"] if _is_shown(one, shown)]
    start = page.query_number("start")
    return page.render(
        "context.html",
        bundle=bundle,
        layers=_describe_layers(bundle["layers"]),
        evidence=_describe_evidence(bundle["frame"]["evidence"]),
        candidates=[{**one, "bars": _describe_contributions(one)} for one in candidates[start : start + PAGE_SIZE]],
        shown=shown,
        start=start,
        total=len(candidates),
        following=start + PAGE_SIZE if len(candidates) > start + PAGE_SIZE else None,
        recent=[one for one in recent["items"] if one["bundle_id"] != bundle["bundle_id"]],
    )


async def replay_context(page: PageRequest) -> Response:
    """Build a stored context again from its stored inputs, and show whether the result is the same."""
    bundle_id = page.path("bundle_id")
    return page.render("replay.html", replay=await page.api.post(f"/v1/bundles/{bundle_id}/replay"))


async def compare_contexts(page: PageRequest) -> Response:
    """Show the differences between two stored contexts."""
    difference = await page.api.get(f"/v1/bundles/{page.path('bundle_id')}/diff/{page.query('other')}")
    return page.render("compare.html", diff=difference, max_rows=PAGE_SIZE)


def _is_shown(candidate: Mapping[str, Any], shown: str) -> bool:
    return shown not in ("in", "out") or (candidate["number"] is not None) == (shown == "in")


def _describe_layers(layers: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """Return the layers that have a share or tokens, each with a bar on one scale; the mark is the own share.

    They are in the order of the context's sections.
    """
    ordered = sorted(layers, key=list(SECTION_TITLES).index)
    used = {name: layers[name] for name in ordered if layers[name]["used"] or layers[name]["share"]}
    scale = max((max(one["used"], one["share"]) for one in used.values()), default=1)
    return [
        {**one, "name": name, "bar": _draw_bar(one["used"], scale, mark=one["share"])} for name, one in used.items()
    ]


def _describe_evidence(evidence: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the frames with their evidence, the strongest first."""
    rows = [{"name": name, **values, "sum": sum(values.values())} for name, values in evidence.items()]
    return sorted(rows, key=lambda row: -row["sum"])


def _describe_contributions(candidate: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    contributions: Mapping[str, float] = candidate["contributions"]
    scale = max((abs(value) for value in contributions.values()), default=1.0)
    ordered = sorted(contributions.items(), key=lambda pair: -abs(pair[1]))
    return [{"name": name, "value": value, "bar": _draw_bar(100 * abs(value), 100 * scale)} for name, value in ordered]


def _draw_bar(used: float, scale: float, *, mark: float | None = None) -> Markup:
    return Markup(charts.draw_share(used, scale, mark=mark))


ROUTES: PageTable = (
    ("GET", CONTEXT, list_contexts),
    ("POST", CONTEXT, build_context),
    ("GET", f"{CONTEXT}/{{bundle_id}}", show_context),
    ("POST", f"{CONTEXT}/{{bundle_id}}/replay", replay_context),
    ("GET", f"{CONTEXT}/{{bundle_id}}/compare", compare_contexts),
)

"""Endpoints for the dashboard: one-time sign-in links, and the activity that its overview shows."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import Field

from newton.runtime.access.browser_sessions import LINK_SECONDS, BrowserSessions, SignInGrant
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel
from newton.runtime.api.routes.agents import MemoryCount

router = APIRouter(prefix="/v1", tags=["dashboard"])

SIGN_IN_PATH = "/dashboard/sign-in"
MAX_DAYS = 366


class DashboardLinkResponse(ResponseModel):
    """The path of a link that opens the dashboard once, and the seconds until it expires."""

    path: str = Field(examples=["/dashboard/sign-in?code=..."])
    expires_in_seconds: int


class DailyCountInfo(ResponseModel):
    """The number of one day (UTC) for one name, such as a kind of memory."""

    day: date
    name: str
    number: int


class ActivityResponse(ResponseModel):
    """The memories of the agent by kind and state, and its activity by day.

    `created` counts new memories by kind, `changed` the state changes by the new state, and `tokens` sums the input and
    output tokens of model calls by purpose. A day without activity has no entry.
    """

    since: datetime
    until: datetime
    memories: Sequence[MemoryCount]
    created: Sequence[DailyCountInfo]
    changed: Sequence[DailyCountInfo]
    tokens: Sequence[DailyCountInfo]


@router.post("/dashboard/links", status_code=201)
async def create_dashboard_link(request: Request, caller: ReadAccess) -> DashboardLinkResponse:
    """Create a link that signs a browser in to the dashboard once. The browser may do what the token may do."""
    caller.require_person("A model cannot open the dashboard.")
    sessions: BrowserSessions = request.app.state.browser_sessions
    grant = SignInGrant(
        token=request.app.state.operator_token if caller.token is None else caller.token,
        agent=request.headers.get("X-Newton-Agent"),
        user=caller.user,
        project=caller.project,
    )
    return DashboardLinkResponse(path=build_link_path(sessions, grant), expires_in_seconds=LINK_SECONDS)


@router.get("/activity")
async def get_activity(
    caller: ReadAccess, days: Annotated[int, Query(ge=1, le=MAX_DAYS, description="Length of the period.")] = 30
) -> ActivityResponse:
    """Return the memories by kind and state, and by day the new memories, the state changes and the tokens used."""
    report = await caller.newton.activity(ORIGIN).report(days)
    return ActivityResponse.from_source(
        report,
        memories=[MemoryCount.from_source(one) for one in report.memories],
        **{
            name: [DailyCountInfo.from_source(one) for one in getattr(report, name)]
            for name in ("created", "changed", "tokens")
        },
    )


def build_link_path(sessions: BrowserSessions, grant: SignInGrant) -> str:
    """Return the path of a new one-time link that opens a session with the rights of `grant`."""
    return f"{SIGN_IN_PATH}?{urlencode({'code': sessions.create_code(grant)})}"

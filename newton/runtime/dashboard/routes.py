"""The routes of the dashboard, and the checks before each page: sign-in, CSRF token, and errors as pages."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from importlib.resources import files

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from newton.errors import ForbiddenError, NewtonError, TooLargeError
from newton.runtime.access import operator_token
from newton.runtime.access.browser_sessions import IDLE_SECONDS, BrowserSessions, cookie_name
from newton.runtime.api.error_page import HOME_PATH, PAGE_HEADERS, PREFIX
from newton.runtime.api.middleware.request_limits import MAX_FILE_BYTES, STREAMED_PATHS
from newton.runtime.api.problems import to_problem
from newton.runtime.api.routes.dashboard import SIGN_IN_PATH
from newton.runtime.dashboard.api_client import ApiClient, ApiProblemError
from newton.runtime.dashboard.page_request import MAX_FORM_FIELDS, Method, Page, PageRequest, list_typed_texts
from newton.runtime.dashboard.page_templates import render_template
from newton.runtime.dashboard.pages import (
    agents,
    calibration,
    context,
    conversations,
    decisions,
    entities,
    jobs,
    memories,
    overview,
    rules,
)
from newton.runtime.reports.charts import CHART_STYLE

ASSETS = {"style.css": "text/css", "icon.svg": "image/svg+xml"}
ASSET_HEADERS = {"Cache-Control": "private, max-age=300"}
_PURPOSES = ("purpose", "sec-purpose", "x-purpose", "x-moz")  # headers of a request that no person made
PAGES = (overview, memories, entities, context, decisions, calibration, conversations, rules, jobs, agents)


class PageRoute(Route):
    """A route that the request log and the metrics know by its path pattern."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return match, {**child_scope, "route": self}


def mount_dashboard(app: FastAPI) -> FastAPI:
    """Add the pages of the dashboard to the application, and return it."""
    pages = [route for module in PAGES for route in module.ROUTES]
    app.router.routes += [
        *(_route(method, path, partial(_serve_page, page=page)) for method, path, page in pages),
        _route("GET", SIGN_IN_PATH, _open_link),
        _route("POST", SIGN_IN_PATH, _confirm_link),
        _route("POST", f"{PREFIX}/sign-out", partial(_serve_page, page=_sign_out)),
        _route("GET", f"{PREFIX}/assets/{{name}}", _serve_asset),
    ]
    return app


def _route(method: Method, path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> PageRoute:
    return PageRoute(path, endpoint, methods=[method], include_in_schema=False)


async def _serve_page(request: Request, page: Page) -> Response:
    """Return what the page function returns, or a page that says why not: no session, an old form, or an error."""
    sessions: BrowserSessions = request.app.state.browser_sessions
    session = sessions.find(request.cookies.get(_cookie_name(request), ""))
    if session is None:
        return _ask_to_sign_in(request, typed=await _read_typed_texts(request))
    wanted = PageRequest(request=request, session=session, api=ApiClient(app=request.app, session=session))
    try:
        await _read_token_info(wanted)
        _check_upload(wanted)
        async with request.form(max_fields=MAX_FORM_FIELDS) as form:
            if request.method == "POST":
                wanted.form = form
                if not wanted.has_csrf_token():
                    return _render_error(wanted, 403, "The form has expired.", "Reload the page and send it again.")
            return await page(wanted)
    except ApiProblemError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            sessions.sign_out(request.cookies[_cookie_name(request)])
            return _ask_to_sign_in(request, typed=wanted.list_typed_texts())
        return _render_error(wanted, error.status, error.detail, error.hint)
    except NewtonError as error:
        problem = to_problem(error)
        return _render_error(wanted, problem.status, problem.detail, problem.hint)


async def _read_typed_texts(request: Request) -> Mapping[str, str]:
    """Return the texts of a form that nobody signed in has sent; a file is not received."""
    if request.url.path in STREAMED_PATHS:
        return {}
    async with request.form(max_fields=MAX_FORM_FIELDS) as form:
        return list_typed_texts(form)


def _check_upload(page: PageRequest) -> None:
    """Raise an error for a file that the session may not import, or that is too large, before it is received."""
    if page.request.method != "POST" or page.request.url.path not in STREAMED_PATHS:
        return
    if not page.is_operator and page.token_info["scope"] != "admin":
        raise ForbiddenError("The token of this session has no scope `admin`.", hint="Sign in with another token.")
    length = page.request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MAX_FILE_BYTES:
        raise TooLargeError(f"The file exceeds {MAX_FILE_BYTES:,} bytes, or has no size.", hint="Send it in parts.")


async def _read_token_info(page: PageRequest) -> None:
    """Read the agent and the scope of the session; this also verifies that its token is still valid."""
    state = page.request.state
    state.token_info = {"agent": "", "scope": "", "model": None, "failing_models": []}
    state.is_operator = page.session.grant.token.startswith(operator_token.PREFIX)
    try:
        state.token_info = await page.api.get("/v1/token")
    except ApiProblemError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        grant = page.session.grant
        page.session.agent, page.session.project = grant.agent, grant.project  # what the session showed was deleted
        state.token_info = await page.api.get("/v1/token")


def _render_error(page: PageRequest, status: int, detail: str, hint: str) -> Response:
    values = {"title": HTTPStatus(status).phrase, "detail": detail, "hint": hint, "back": HOME_PATH}
    return page.render("error.html", status=status, typed=page.list_typed_texts(), **values)


def _ask_to_sign_in(request: Request, *, typed: Mapping[str, str] | None = None) -> Response:
    """Return the page that says how to sign in, with the texts of a form that was sent without a session.

    A browser does not send the cookie with a request that another site started, such as the redirect after a
    sign-in link in a chat; the page then loads itself again, and that request has the cookie.
    """
    is_retry = request.method != "GET" or "retry" in request.query_params
    from_elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    content = render_template(
        "sign_in.html", reload=from_elsewhere and not is_retry, path=request.url.path, code="", typed=typed or {}
    )
    return HTMLResponse(content, status_code=401, headers=PAGE_HEADERS)


async def _open_link(request: Request) -> Response:
    """Open a session if a person follows a one-time link; another request gets a page with a button that opens it.

    A link that is previewed, prefetched or checked stays unused.
    """
    sessions: BrowserSessions = request.app.state.browser_sessions
    code = request.query_params.get("code", "")
    if is_navigation(request.method, request.headers) or not sessions.has_code(code):
        return _sign_in(request, code)
    content = render_template("sign_in.html", reload=False, path="", code=code, typed={})
    return HTMLResponse(content, headers=PAGE_HEADERS)


async def _confirm_link(request: Request) -> Response:
    """Open a session with the code that the button of that page sends."""
    async with request.form(max_fields=MAX_FORM_FIELDS) as form:
        return _sign_in(request, str(form.get("code", "")))


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser says that a request opens a page for a person, rather than one that may be opened."""
    is_early = any("prefetch" in headers.get(name, "") or "preview" in headers.get(name, "") for name in _PURPOSES)
    is_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
    return method == "GET" and is_page and not is_early


def _sign_in(request: Request, code: str) -> Response:
    """Open a session with the code of a one-time link, and redirect to a URL without it."""
    sessions: BrowserSessions = request.app.state.browser_sessions
    session_id = sessions.sign_in(code)
    if session_id is None:
        return _ask_to_sign_in(request)
    response = RedirectResponse(HOME_PATH, status_code=303, headers=PAGE_HEADERS)
    response.set_cookie(
        _cookie_name(request),
        session_id,
        max_age=IDLE_SECONDS,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


async def _sign_out(page: PageRequest) -> Response:
    sessions: BrowserSessions = page.request.app.state.browser_sessions
    sessions.sign_out(page.request.cookies[_cookie_name(page.request)])
    response = RedirectResponse(HOME_PATH, status_code=303, headers=PAGE_HEADERS)
    response.delete_cookie(_cookie_name(page.request), path="/", httponly=True, samesite="strict")
    return response


def _cookie_name(request: Request) -> str:
    return cookie_name(request.url.scheme, request.url.port)


async def _serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response(status_code=404)
    content = files("newton.runtime.dashboard").joinpath("assets", name).read_text(encoding="utf-8")
    if name == "style.css":
        content += CHART_STYLE
    return Response(content, media_type=ASSETS[name], headers=ASSET_HEADERS)

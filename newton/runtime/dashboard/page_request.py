"""A request for a page: the session, the API client, the form, and the rendered response."""

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from fastapi.security import HTTPAuthorizationCredentials
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from newton.errors import InputError
from newton.runtime.access.browser_sessions import BrowserSession
from newton.runtime.api.auth import AuthenticatedCaller, get_caller
from newton.runtime.api.error_page import PAGE_HEADERS, is_dashboard_path
from newton.runtime.dashboard.api_client import ApiClient, encode_query
from newton.runtime.dashboard.page_templates import render_template

CSRF_FIELD = "csrf_token"
MAX_FORM_FIELDS = 200
MIN_TYPED_CHARACTERS = 20  # shorter fields are typed again quickly


@dataclass(slots=True, kw_only=True)
class PageRequest:
    """One request of a signed-in browser. `form` is empty for GET."""

    request: Request
    session: BrowserSession
    api: ApiClient
    form: FormData = field(default_factory=FormData)

    @property
    def token_info(self) -> Mapping[str, Any]:
        """Return the JSON on the token of the session: its agent, scope and chat model; read once per request."""
        return self.request.state.token_info

    @property
    def is_operator(self) -> bool:
        return self.request.state.is_operator

    def path(self, name: str) -> str:
        return self.request.path_params[name]

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()

    def query_number(self, name: str, default: int = 0) -> int:
        """Return a query parameter as a whole number that is not negative, else `default`."""
        text = self.query(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default

    def query_list(self, name: str) -> list[str]:
        return [value for value in self.request.query_params.getlist(name) if value]

    def field(self, name: str, default: str = "") -> str:
        """Return a text field of the form without outer white space; `default` if it is missing or a file."""
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def plan_token(self) -> str:
        """Return the token of the preview that the form confirms. Raises InputError without one."""
        if token := self.field("token"):
            return token
        raise InputError("The form has no token of a preview.", hint="Open the preview, and confirm what it shows.")

    def lines(self, name: str) -> list[str]:
        """Return the lines of a text field that are not empty."""
        return [line.strip() for line in self.field(name).splitlines() if line.strip()]

    async def get_caller(self) -> AuthenticatedCaller:
        """Return the caller that the token of the session stands for, with the same checks as the API makes."""
        credentials = HTTPAuthorizationCredentials(scheme="Bearer", credentials=self.session.grant.token)
        session = self.session
        return await get_caller(self.request, credentials, session.agent, session.grant.user, session.project)

    def render(self, template: str, /, *, status: int = 200, **values: object) -> Response:
        """Return the HTML page that the named template renders with `values` and the waiting notices."""
        notices, self.session.notices = self.session.notices, []
        content = render_template(
            template,
            path=self.request.url.path,
            csrf_token=self.session.csrf_token,
            notices=notices,
            token_info=self.token_info,
            is_operator=self.is_operator,
            **values,
        )
        return HTMLResponse(content, status_code=status, headers=PAGE_HEADERS)

    def redirect(self, path: str, notice: str = "", **query: str | Sequence[str]) -> Response:
        """Return a redirect to the page at `path`, with `query` in its URL. The page then shows `notice`."""
        if notice:
            self.session.notices.append(notice)
        given = encode_query({name: value if isinstance(value, str) else [*value] for name, value in query.items()})
        return RedirectResponse(f"{path}?{given}" if given else path, status_code=303, headers=PAGE_HEADERS)

    def return_path(self, default: str) -> str:
        """Return the page that the form names in its field `next`, if it is one of the dashboard, else `default`."""
        wanted = self.field("next")
        parts = urlsplit(wanted)
        is_own = not parts.scheme and not parts.netloc and is_dashboard_path(parts.path) and "\\" not in wanted
        return wanted if is_own else default

    def list_typed_texts(self) -> dict[str, str]:
        """Return the longer texts of the form by field, to show them again on a page that refuses the form."""
        return list_typed_texts(self.form)

    def has_csrf_token(self) -> bool:
        return hmac.compare_digest(self.field(CSRF_FIELD).encode(), self.session.csrf_token.encode())


def list_typed_texts(form: FormData) -> dict[str, str]:
    """Return the texts of a form that a person may have typed, by field: those of `MIN_TYPED_CHARACTERS` or more."""
    texts = {name: value for name, value in form.items() if isinstance(value, str)}
    hidden = {CSRF_FIELD, "next", "token"}
    return {name: text for name, text in texts.items() if name not in hidden and len(text) >= MIN_TYPED_CHARACTERS}


Page = Callable[[PageRequest], Awaitable[Response]]
Method = Literal["GET", "POST"]
PageTable: TypeAlias = tuple[tuple[Method, str, Page], ...]  # the method, the path and the function of each page

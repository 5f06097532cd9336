"""Errors of requests for pages of the dashboard that are refused before a page is built, as HTML."""

from html import escape

from starlette.responses import HTMLResponse

HOME_PATH, PREFIX = "/", "/dashboard"

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with `Origin: null`, which is refused
}

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Newton</title><link rel="stylesheet" href="/dashboard/assets/style.css"></head>
<body><main class="narrow"><h1>{title}</h1>
<div class="problem" role="alert"><p>{detail}</p><p class="soft">{hint}</p></div>
<p>Go back with your browser: it keeps what you typed. Or open the <a href="/">overview</a>.</p></main></body></html>
"""


def is_dashboard_path(path: str) -> bool:
    """Return whether a path belongs to the dashboard."""
    return path == HOME_PATH or path.startswith(f"{PREFIX}/")


def build_error_page(status: int, title: str, detail: str, hint: str, headers: dict[str, str]) -> HTMLResponse:
    """Return an HTML page that says what is wrong and how to resolve it."""
    content = _PAGE.format(title=escape(title), detail=escape(detail), hint=escape(hint))
    return HTMLResponse(content, status_code=status, headers={**headers, **PAGE_HEADERS})

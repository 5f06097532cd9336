"""A signed-in browser without a page engine: it follows links and sends the forms of a page."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from urllib.parse import urlencode

import httpx2

from tests.system.served import OPERATOR, Api

CSRF = re.compile(r'name="csrf_token" value="([^"]+)"')


class Browser:
    """The cookies of a browser, and the CSRF token of the last page."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http, self.csrf = http, ""

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        page = await self.http.get(path, headers=headers)
        if found := CSRF.search(page.text):
            self.csrf = unescape(found[1])
        return page

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form, and return the page to which it leads."""
        answer = await self.http.post(path, content=urlencode({"csrf_token": self.csrf, **fields}), headers=FORM)
        return await self.get(answer.headers["location"]) if answer.status_code == 303 else answer


OPENED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}  # what a browser sends with a followed link
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@asynccontextmanager
async def browser(api: Api, token: str = OPERATOR, **headers: str) -> AsyncGenerator[Browser]:
    """A browser that has opened a sign-in link of the token."""
    async with api.http(token, **headers) as client:
        link = (await client.post("/v1/dashboard/links")).json()["path"]
    async with httpx2.AsyncClient(base_url=api.url, timeout=60) as http:
        made = Browser(http)
        assert (await http.get(link, headers=OPENED)).status_code == 303
        await made.get("/")
        yield made

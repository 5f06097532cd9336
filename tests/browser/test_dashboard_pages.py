"""The dashboard in a real Chromium: acts that the command line sees, the CSP, accessibility, and narrow screens.

Needs the program `chromium` (`apt-get install chromium`) and the package playwright. scripts/test-browser installs
axe-core and names its file in DASHBOARD_AXE; without it, accessibility is not checked.
"""

import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from newton.db.pool import Database
from tests.browser.lived_agent import fill
from tests.browser.page_acts import ACTS, PageAct
from tests.browser.page_paths import list_page_paths
from tests.system.served import Api, served

playwright = pytest.importorskip("playwright.async_api", reason="the package playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE_FILE = Path(os.environ.get("DASHBOARD_AXE", ""))
AXE = AXE_FILE.read_text(encoding="utf-8") if AXE_FILE.is_file() else None
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: `apt-get install chromium` installs one"),
]
WIDTHS = {"wide": (1280, 900), "phone": (375, 800)}


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as made:
        yield made


@pytest.fixture
async def chromium() -> AsyncIterator[Any]:
    async with playwright.async_playwright() as engine:
        program = await engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield program
        await program.close()


async def opened(chromium: Any, api: Api) -> Any:
    """A page that has followed a sign-in link; what the console says is kept in `page.complaints`."""
    width, height = WIDTHS["wide"]
    context = await chromium.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    page = await context.new_page()
    page.base = api.url
    page.set_default_timeout(15_000)
    page.set_default_navigation_timeout(90_000)  # on a machine that has much else to do
    complaints = page.complaints = list[str]()

    def note_message(message: Any) -> None:
        complaints.append(message.text)

    def note_error(error: Any) -> None:
        complaints.append(str(error))

    def note_request(request: Any) -> None:
        if not request.url.startswith(api.url):
            complaints.append(request.url)

    page.on("console", note_message)
    page.on("pageerror", note_error)
    page.on("request", note_request)
    async with api.http() as client:
        link = (await client.post("/v1/dashboard/links")).json()["path"]
    await page.goto(api.url + link)
    assert page.url == f"{api.url}/", "no code is left in the URL"
    return page


async def find_faults(page: Any, screen: str) -> list[str]:
    """What is wrong with the page on a screen: wide and light, or narrow and dark."""
    width, height = WIDTHS[screen]
    await page.set_viewport_size({"width": width, "height": height})
    await page.emulate_media(color_scheme="light" if screen == "wide" else "dark")
    metrics = await (await page.context.new_cdp_session(page)).send("Page.getLayoutMetrics")
    is_wide = metrics["cssContentSize"]["width"] > metrics["cssLayoutViewport"]["clientWidth"]
    faults = ["scrolls to the side"] if is_wide else []
    if AXE is None:
        return faults
    found = (await page.evaluate("axe.run()"))["violations"]
    return faults + [one["id"] for one in found if one["impact"] in ("serious", "critical")]


async def test_no_page_is_wide_runs_a_script_or_is_hard_to_read(api: Api, chromium: Any) -> None:
    page, faults, shown = await opened(chromium, api), list[tuple[str, str, list[str]]](), 0
    for path in list_page_paths(await fill(api)):
        answer = await page.goto(api.url + path)
        assert answer.status == 200, path
        assert "run" not in await page.title(), "a stored script stays text"
        assert await page.locator("script, img[src=x]").count() == 0, path
        text = await page.inner_text("main")
        shown += "<script>" in text
        assert not re.search(r"\bNone\b(?!:|\.)|\bundefined\b|\d\.\d{6}", text), f"{path} shows a raw value"
        if AXE is not None:
            await page.evaluate(f"{AXE};0")
        faults += [(path, screen, one) for screen in WIDTHS if (one := await find_faults(page, screen))]
    assert faults == []
    assert shown >= 14, "most pages show the text of the script"
    assert page.complaints == [], "nothing is blocked by the CSP, and nothing is loaded from elsewhere"


async def do(page: Any, act: PageAct, ids: Mapping[str, str]) -> None:
    """Fill and send the form of an act, and wait for the page that follows."""
    target = act.target.format(**{name: quote(value, safe="") for name, value in ids.items()})
    await page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    label = re.compile(f"^{act.button}")
    form = page.locator(f'form[action="{target}"]').filter(has=page.get_by_role("button", name=label)).first
    for name, value in act.fields.items():
        control = form.locator(f'[name="{name}"]').first
        kind = await control.evaluate("one => one.type")
        text = value.format(**ids) if name == "other_id" else value
        if kind == "file":
            content = {"name": "lines.ndjson", "mimeType": "application/x-ndjson", "buffer": text.encode()}
            await control.set_input_files(content)
        elif kind == "select-one":
            await control.select_option(text)
        else:
            await control.fill(text)
    async with page.expect_navigation():
        await form.get_by_role("button", name=label).press("Enter")


async def is_felt(page: Any, client: httpx2.AsyncClient, act: PageAct, ids: Mapping[str, str]) -> str:
    """What the API, or the next page, says instead after an act; empty if it was done."""
    await page.goto(page.base + act.at.format(**ids))
    try:
        await do(page, act, ids)
    except playwright.TimeoutError as error:
        return str(error)
    text = await page.inner_text("main")
    if not act.path:
        return "" if act.is_done(text) else text
    known = (await client.get(act.path.format(**ids))).json()
    return "" if act.is_done(known) else f"{text[:200]} {known}"


async def test_what_is_done_by_keyboard_on_each_page_is_seen_by_the_api(api: Api, chromium: Any) -> None:
    ids = await fill(api)
    page = await opened(chromium, api)
    async with api.http() as client:
        answers = [(act.route, await is_felt(page, client, act, ids)) for act in ACTS]
    undone = [f"{route}: {answer}" for route, answer in answers if answer]
    assert not undone, "\n\n".join(undone)
    assert page.complaints == []

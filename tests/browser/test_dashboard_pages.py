"""The dashboard in a real Chromium: acts that the command line sees, the CSP, accessibility, and narrow screens.

Needs the program `chromium` (`apt-get install chromium`) and the package playwright. scripts/test-browser installs
axe-core and names its file in DASHBOARD_AXE; without it, accessibility is not checked.
"""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from newton.db.pool import Database
from newton.runtime.dashboard.page_templates import NAVIGATION
from tests.system.served import Api, served

playwright = pytest.importorskip("playwright.async_api", reason="the package playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE_FILE = Path(os.environ.get("DASHBOARD_AXE", ""))
AXE = AXE_FILE.read_text(encoding="utf-8") if AXE_FILE.is_file() else None
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: `apt-get install chromium` installs one"),
]
PATHS = [
    *(path for path, _ in NAVIGATION),
    *("/dashboard/decisions/new", "/dashboard/memories/conflicts", "/dashboard/entities", "/dashboard/entities/Ana"),
    "/dashboard/jobs/embed",
    *("/dashboard/rules/censors", "/dashboard/rules/guardrails", "/dashboard/rules/procedures"),
    *("/dashboard/conversations/s", "/dashboard/agents/erase?subject=Ana"),
]
SCREENS = {"light": (1280, 900), "dark": (1280, 900), "phone": (375, 800)}


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


async def opened(chromium: Any, api: Api, *, screen: str = "light") -> Any:
    """A page that has followed a sign-in link; what the console says is kept in `page.complaints`."""
    width, height = SCREENS[screen]
    scheme = "dark" if screen == "dark" else "light"
    context = await chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = await context.new_page()
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


async def filled(api: Api) -> str:
    """Memories of several kinds, one with a script that tries to run."""
    script = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    async with api.http() as client:
        fact = {"content": f"Ana lives in Porto. {script}", "subject": "Ana"}
        memory_id = (await client.post("/v1/memories", json=fact)).json()["memory_id"]
        reason = {"kind": "analysis", "text": script}
        for number in range(24):
            draft = {"description": f"Use {number} {script}", "confidence": 0.5 + number % 5 / 10, "reasons": [reason]}
            decision = (await client.post("/v1/decisions", json=draft)).json()["decision_id"]
            outcome = "success" if number % 3 else "failure"
            await client.post(f"/v1/decisions/{decision}/review", json={"outcome": outcome})
        messages = [{"role": "user", "content": f"{n} {script}"} for n in range(40)]
        await client.post("/v1/sessions/s/messages", json={"messages": messages})
        await client.post("/v1/tasks", json={"goal": "A" * 200, "session": "s"})
        await client.post("/v1/identity/lines", json={"section": "value", "text": "W" * 100})
        await client.post("/v1/context", json={"input": "Where does Ana live?", "session": "s"})
    return memory_id


@pytest.mark.parametrize("screen", SCREENS)
async def test_no_page_is_wide_runs_a_script_or_is_hard_to_read(api: Api, chromium: Any, screen: str) -> None:
    memory_id = await filled(api)
    async with api.http() as client:
        (bundle,) = (await client.get("/v1/bundles", params={"limit": 1})).json()["items"]
    page, serious = await opened(chromium, api, screen=screen), list[object]()
    for path in (*PATHS, f"/dashboard/memories/{memory_id}", f"/dashboard/context/{bundle['bundle_id']}"):
        answer = await page.goto(api.url + path)
        assert answer.status == 200, path
        assert "run" not in await page.title(), "a stored script stays text"
        metrics = await (await page.context.new_cdp_session(page)).send("Page.getLayoutMetrics")
        width = metrics["cssLayoutViewport"]["clientWidth"]
        assert metrics["cssContentSize"]["width"] <= width, f"{path} scrolls to the side"
        if AXE is not None:
            await page.evaluate(f"{AXE};0")
            found = (await page.evaluate("axe.run()"))["violations"]
            serious += [(path, one["id"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
    assert page.complaints == [], "nothing is blocked by the CSP, and nothing is loaded from elsewhere"


async def test_what_is_done_by_keyboard_is_seen_by_the_api(api: Api, chromium: Any) -> None:
    memory_id = await filled(api)
    page = await opened(chromium, api)
    await page.goto(f"{api.url}/dashboard/memories/{memory_id}")
    await page.get_by_role("button", name="Confirm").focus()
    await page.keyboard.press("Enter")
    await page.get_by_text("Confirmed.").wait_for()
    await page.get_by_label("The fact that is true instead").fill("Ana lives in Bergen.")
    await page.get_by_role("button", name="Supersede").press("Enter")
    await page.get_by_text("supersedes the old one").wait_for()
    await page.goto(f"{api.url}/dashboard/context")
    await page.get_by_label("Input: a message or a task").fill("Where does Ana live?")
    await page.get_by_role("button", name="Build the context").press("Enter")
    await page.get_by_text("Budget by layer").wait_for()
    assert "Ana lives in Bergen." in await page.inner_text("main")
    await page.get_by_role("button", name="Replay").press("Enter")
    await page.get_by_text("identical").wait_for()
    async with api.http() as client:
        known = (await client.get(f"/v1/memories/{memory_id}")).json()
    assert (known["state"], known["confirmations"]) == ("SUPERSEDED", 1)

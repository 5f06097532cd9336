"""The dashboard over HTTP: who may see it, that stored text stays text, and that its acts are those of the API."""

import asyncio
import json
import re
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest

from newton.clock import SystemClock
from newton.ids import derive_agent_id
from newton.runtime.access import browser_sessions, tokens
from newton.runtime.access.browser_sessions import BrowserSessions, SignInGrant
from newton.runtime.dashboard.routes import PAGES
from tests.system.browsing import FORM, OPENED, Browser, browser
from tests.system.daemons import Daemon
from tests.system.served import Api
from tests.system.typed import create_agents, typed

# requests that no person made by following the link
EARLY: tuple[tuple[str, dict[str, str]], ...] = (
    ("HEAD", OPENED),
    ("GET", {}),
    ("GET", {"User-Agent": "Slackbot-LinkExpanding 1.0"}),
    *(("GET", {**OPENED, name: "prefetch;prerender"}) for name in ("Purpose", "Sec-Purpose", "X-Moz")),
    ("GET", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}),
    ("GET", {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}),
)
SCRIPT = "<script>alert('x')</script>"


async def test_a_link_opens_the_dashboard_once_and_leaves_no_token_in_the_url(api: Api) -> None:
    # S9: a token in the query is refused; the cookie is out of reach of scripts and of other sites
    async with api.http() as client:
        link = (await client.post("/v1/dashboard/links")).json()["path"]
    async with api.http("none") as stranger:
        assert (await stranger.get("/")).status_code == 401
        for method, headers in EARLY:
            seen = await stranger.request(method, link, headers=headers)
            assert seen.status_code == 200 and "set-cookie" not in seen.headers, "the link is not used yet"
        opened = await stranger.get(link, headers=OPENED)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        stranger.cookies.clear()
        assert (await stranger.get(link, headers=OPENED)).status_code == 401, "a link is used up"
        assert (await stranger.get(link)).status_code == 401


def test_a_link_and_an_idle_session_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(browser_sessions, "monotonic_ms", lambda: now)
    sessions = BrowserSessions()
    late, code = sessions.create_code(SignInGrant(token="t")), sessions.create_code(SignInGrant(token="t"))
    session_id = sessions.sign_in(code)
    assert session_id is not None
    assert sessions.find(session_id) is not None
    now += 1_000 * (browser_sessions.LINK_SECONDS + 1)
    assert sessions.sign_in(late) is None
    assert sessions.find(session_id) is not None
    now += 1_000 * (browser_sessions.IDLE_SECONDS + 1)
    assert sessions.find(session_id) is None


async def test_every_page_is_strict_and_shows_stored_scripts_as_text(api: Api) -> None:
    # S9: CSP without inline script; a stored `<script>` is inert
    async with api.http() as client:
        fact = (await client.post("/v1/memories", json={"content": SCRIPT, "subject": SCRIPT})).json()["memory_id"]
        reason = {"kind": "analysis", "text": SCRIPT}
        draft = {"description": SCRIPT, "confidence": 0.8, "reasons": [reason], "category": SCRIPT}
        decision = (await client.post("/v1/decisions", json=draft)).json()["decision_id"]
        await client.post("/v1/decisions", json=draft | {"description": "another"})
        await client.post(f"/v1/decisions/{decision}/review", json={"outcome": "success", "lesson": SCRIPT})
        await client.post("/v1/sessions/s/messages", json={"messages": [{"role": "user", "content": SCRIPT}]})
        await client.post("/v1/tasks", json={"goal": SCRIPT, "session": "s"})
        await client.post("/v1/identity/lines", json={"section": "value", "text": SCRIPT})
        await client.post("/v1/censors", json={"trigger": SCRIPT, "reason": SCRIPT})
        bundle = (await client.post("/v1/context", json={"input": SCRIPT, "session": "s"})).json()["bundle_id"]
    ids = {"memory_id": fact, "decision_id": decision, "bundle_id": bundle, "session:path": "s"}
    known = {"{memory_id}", "{decision_id}", "{bundle_id}", "{session:path}"}
    paths = [path for module in PAGES for method, path, _ in module.ROUTES if method == "GET"]
    shown = 0
    async with browser(api) as one:
        for path in paths:
            for name, value in ids.items():
                path = path.replace(f"{{{name}}}", value)  # noqa: PLW2901 (one placeholder after the other)
            if "{" in path or path.endswith(("/compare", "/erase", "/export", "/merge-entities")):
                continue
            page = await one.get(path)
            assert page.status_code == 200, (path, page.text)
            assert "<script" not in page.text, path
            assert "style=" not in page.text, path
            assert "default-src 'none'" in page.headers["content-security-policy"]
            assert "unsafe" not in page.headers["content-security-policy"]
            shown += "&lt;script&gt;" in page.text
    assert shown >= 8
    assert known


async def test_an_act_needs_the_token_of_the_form(api: Api) -> None:
    async with browser(api) as one:
        for fields in ({}, {"csrf_token": "guessed"}):
            answer = await one.http.post("/dashboard/agents", data={"name": "thief", **fields})
            assert answer.status_code == 403
        foreign = await one.http.post(
            "/dashboard/agents",
            data={"name": "thief", "csrf_token": one.csrf},
            headers={"Origin": "https://evil.example"},
        )
        assert foreign.status_code == 403
        assert "thief" not in (await one.get("/dashboard/agents")).text


async def test_a_session_may_do_what_its_token_may_do(api: Api) -> None:
    token = await api.token("ana", "read", name="reader")
    async with api.http(await api.token("ana")) as client:
        fact = (await client.post("/v1/memories", json={"content": "Ana lives in Porto."})).json()["memory_id"]
    async with browser(api, token) as one:
        assert "Ana lives in Porto." in (await one.get("/dashboard/memories")).text
        assert (await one.send(f"/dashboard/memories/{fact}/confirm")).status_code == 403
        assert (await one.send("/dashboard/agents/switch", name="default")).status_code == 403
        assert (await one.get("/dashboard/agents/erase?subject=Ana")).status_code == 403
        assert (await one.get("/dashboard/agents/export")).status_code == 403
        owner = derive_agent_id("ana")
        async with api.db.transaction(owner) as tx:
            await tokens.revoke_token(tx, "reader", agent_id=owner, now=SystemClock().now())
        assert (await one.get("/")).status_code == 401, "the session ends with its token"
    async with browser(api) as one:
        await one.send("/dashboard/sign-out")
        assert (await one.get("/")).status_code == 401


async def test_memories_are_curated_as_over_the_api(api: Api) -> None:
    token = await api.token("ana")
    async with api.http(token) as client, browser(api, token) as one:
        home = {"content": "Ana lives in Porto.", "subject": "Ana", "attribute": "lives in"}
        fact = (await client.post("/v1/memories", json=home)).json()["memory_id"]
        assert "Ana lives in Porto." in (await one.get("/dashboard/memories?q=where+does+Ana+live")).text
        assert "Confirmed." in (await one.send(f"/dashboard/memories/{fact}/confirm")).text
        assert (await client.get(f"/v1/memories/{fact}")).json()["confirmations"] == 1
        newer = await one.send(f"/dashboard/memories/{fact}/supersede", content="Ana lives in Bergen.")
        assert "supersedes the old one" in newer.text
        assert (await client.get(f"/v1/memories/{fact}")).json()["state"] == "SUPERSEDED"
        other = (await client.post("/v1/memories", json={"content": "The kettle is green."})).json()["memory_id"]
        await one.send(f"/dashboard/memories/{other}/edit", kind="fact", importance="8", subject="kettle")
        changed = (await client.get(f"/v1/memories/{other}")).json()
        assert (changed["importance"], changed["fact"]["subject"]) == (8, "kettle")
        await one.send(f"/dashboard/memories/{other}/retract")
        changes = (await client.get(f"/v1/memories/{other}")).json()["changes"]
        assert changes[-1]["event"] == "disproved"
        token = re.findall(r'name="token" value="(\w+)"', (await one.get(f"/dashboard/memories/{other}/forget")).text)[
            0
        ]
        without = await one.send(f"/dashboard/memories/{other}/forget", memory="x")
        assert (without.status_code, "no token of a preview" in without.text) == (422, True)
        assert "permanently." in (await one.send(f"/dashboard/memories/{other}/forget", token=token)).text
        assert (await client.get(f"/v1/memories/{other}")).status_code == 404
        wrong = await one.send(f"/dashboard/memories/{fact}/confirm")
        assert (wrong.status_code, "Ana lives in Bergen" in wrong.text) == (409, True), (
            "an error is a page with its reason"
        )


async def test_decisions_and_rules_are_changed_as_over_the_api(api: Api) -> None:
    token = await api.token("ana")
    draft = {"description": "Use Redis", "confidence": "80", "kind_0": "analysis", "reason_0": "reads prevail"}
    async with api.http(token) as client, browser(api, token) as one:
        assert "may be recorded" in (await one.send("/dashboard/decisions/new", act="check", **draft)).text
        assert not (await client.get("/v1/decisions")).json()["items"], "a check records nothing"
        await one.send("/dashboard/decisions/new", act="record", **draft)
        await one.send("/dashboard/decisions/new", act="record", **draft | {"description": "Use a queue"})
        second, first = (await client.get("/v1/decisions")).json()["items"]
        assert first["confidence"] == 0.8
        await one.send(
            f"/dashboard/decisions/{second['decision_id']}/links", type="depends_on", other_id=first["decision_id"]
        )
        links = (await client.get(f"/v1/decisions/{second['decision_id']}")).json()["links"]
        assert [(link["link"], link["other_id"]) for link in links] == [("depends_on", first["decision_id"])]
        await one.send(f"/dashboard/decisions/{first['decision_id']}/review", outcome="failure", lesson="Measure.")
        assert (await client.get(f"/v1/decisions/{first['decision_id']}")).json()["lesson"] == "Measure."
        await one.send("/dashboard/rules/lines", section="value", text="Be brief")
        await one.send("/dashboard/rules/lines", section="value", text="Be kind")
        await one.send("/dashboard/rules/rollback", version="1")
        assert [line["text"] for line in (await client.get("/v1/identity")).json()["lines"]] == ["Be brief"]
        await one.send(
            "/dashboard/rules/censors", trigger="open the sluice", reason="r", action="block", match_mode="phrase"
        )
        assert "Blocked." in (await one.send("/dashboard/rules/censors/check", text="open the sluice")).text
        (censor,) = (await client.get("/v1/censors")).json()["items"]
        assert censor["activations"] == 0, "a try is not counted"
        await one.send(f"/dashboard/rules/censors/{censor['memory_id']}", act="retire")
        assert (await client.get("/v1/censors")).json()["items"][0]["state"] == "RETIRED"


@pytest.mark.slow
async def test_agents_are_created_exported_imported_and_deleted(api: Api) -> None:
    async with api.http() as client, browser(api) as one:
        await client.post("/v1/memories", json={"content": "Ana Berg lives in Porto.", "subject": "Ana Berg"})
        exported = await one.http.get("/dashboard/agents/export")
        assert "attachment" in exported.headers["content-disposition"]
        await one.send("/dashboard/agents", name="copy")
        assert "shows the agent copy" in (await one.send("/dashboard/agents/switch", name="copy")).text
        files = {"file": ("agent.ndjson", exported.content)}
        answer = await one.http.post("/dashboard/agents/import", data={"csrf_token": one.csrf}, files=files)
        assert answer.status_code == 303, answer.text
        assert "Ana Berg lives in Porto." in (await one.get("/dashboard/memories")).text
        plan = await one.get("/dashboard/agents/erase?subject=Annie,+Ana+Berg")
        code = plan.text.partition('name="token" value="')[2].partition('"')[0]
        assert "Erased" in (await one.send("/dashboard/agents/erase", subject="Annie, Ana Berg", token=code)).text
        assert "Ana Berg" not in (await one.get("/dashboard/memories")).text
        assert "Ana Berg lives" in (await client.get("/v1/memories")).text, "the other agent keeps it"
        preview = await one.get("/dashboard/agents/copy/delete")
        code = preview.text.partition('name="token" value="')[2].partition('"')[0]
        assert "Deleted the agent copy" in (await one.send("/dashboard/agents/copy/delete", token=code)).text


async def test_the_overview_counts_what_is_stored_by_kind_state_and_day(api: Api) -> None:
    async with api.http() as client, browser(api) as one:
        await client.post("/v1/memories", json={"content": "The kettle is blue."})
        activity = (await client.get("/v1/activity")).json()
        assert {"kind": "fact", "state": "NEW", "quarantined": False, "memories": 1} in activity["memories"]
        assert ("fact", 1) in [(day["name"], day["number"]) for day in activity["created"]]
        assert activity["tokens"] == []
        overview = (await one.get("/")).text
    assert "new 1" in overview
    assert "No model was called" in overview


async def test_a_file_is_received_only_from_a_session_that_may_import_it(api: Api) -> None:
    # S9: a session of a lesser token cannot fill the disk with an upload that is refused afterwards
    async def send_headers(one: Browser, size: int) -> bytes:
        """Send the headers of an upload without its body, and return the status line of the answer."""
        address = httpx2.URL(api.url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        cookies = "; ".join(f"{name}={value}" for name, value in one.http.cookies.items())
        fields = f"Host: {address.host}:{address.port}\r\nCookie: {cookies}\r\nContent-Length: {size}\r\n"
        kind = "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        writer.write(f"POST /dashboard/agents/import HTTP/1.1\r\n{fields}{kind}".encode())
        status = await asyncio.wait_for(reader.readline(), 20)
        writer.close()
        return status

    async with api.http() as client:
        made = await client.post("/v1/agents/default/tokens", json={"scope": "write", "name": "w"})
    async with browser(api, made.json()["token"]) as one, browser(api) as operator:
        assert b" 403 " in await send_headers(one, 1_000)
        assert b" 413 " in await send_headers(operator, 5 * 1024**3)


async def test_a_long_text_is_stored_and_a_refused_one_is_shown_again(api: Api) -> None:
    long, fields = "word " * 20_000, {"confidence": "80", "kind_0": "analysis", "reason_0": "reads prevail"}
    async with api.http() as client, browser(api) as one:
        refused = await one.send("/dashboard/decisions/new", act="record", description=long, **fields)
        assert (refused.status_code, "100,000 characters" in refused.text) == (403, True), "the limit is named"
        assert long.strip() in refused.text, "the typed text is not lost"
        expired = await one.send("/dashboard/decisions/new", act="record", description=long, csrf_token="old", **fields)
        assert (expired.status_code, long.strip() in expired.text) == (403, True)
        huge = await one.send("/dashboard/decisions/new", act="record", description=long * 120, **fields)
        assert (huge.status_code, "text/html" in huge.headers["content-type"]) == (413, True)
        assert "go back" in huge.text.lower()
        one.http.cookies.clear()
        ended = await one.send("/dashboard/decisions/new", act="record", description=long, **fields)
        assert (ended.status_code, "newton dashboard" in ended.text) == (401, True)
        short = await one.send(
            "/dashboard/decisions/new", act="record", description="Use Redis for the queue", **fields
        )
        assert (short.status_code, "Use Redis for the queue" in short.text) == (401, True)
        assert (await client.get("/v1/decisions")).json()["items"] == []


async def test_two_people_are_merged_after_a_preview(api: Api) -> None:
    async with api.http() as client, browser(api) as one:
        for name in ("Bob Smith", "Robert Smith"):
            await client.post("/v1/memories", json={"content": f"{name} likes tea.", "subject": name})
        preview = await one.get("/dashboard/merge-entities?name=Bob+Smith&into=Robert+Smith")
        assert "cannot be undone" in preview.text
        stale = {"name": "Bob Smith", "into": "Robert Smith", "token": "x"}
        assert (await one.send("/dashboard/merge-entities", **stale)).status_code == 409
        token = (await client.post("/v1/entities/Bob Smith/merge", json={"into": "Robert Smith"})).json()["token"]
        assert (
            "Merged Bob Smith into Robert Smith."
            in (await one.send("/dashboard/merge-entities", **stale | {"token": token})).text
        )
        kept = (await client.get("/v1/entities/Bob Smith")).json()
        assert (kept["name"], kept["aliases"]) == ("Robert Smith", ["Bob Smith"])
        listed = await client.get("/v1/memories", params={"subject": "Bob Smith"})
        assert len(listed.json()["items"]) == 2
        plan = (await client.post("/v1/erasures/preview", json={"subject": "Bob Smith"})).json()
        assert {"Bob Smith", "Robert Smith"} <= set(plan["names"])


async def test_a_job_is_run_from_its_page_and_its_runs_are_listed(api: Api) -> None:
    async with api.http() as client, browser(api) as one:
        assert "has not run yet" in (await one.get("/dashboard/jobs/embed")).text
        assert "is queued" in (await one.send("/dashboard/jobs/embed/run")).text
        (run,) = (await client.get("/v1/jobs/embed/runs")).json()["items"]
        assert run["state"] in ("queued", "running", "done")
        known = {job["name"]: job for job in (await client.get("/v1/jobs")).json()["items"]}
        assert known["retain"]["due_reason"] == "next slot of the schedule"
        assert (await client.get("/v1/jobs/nothing/runs")).status_code == 404
        assert (await one.get("/dashboard/jobs/nothing")).status_code == 404


def test_a_link_of_the_command_opens_the_dashboard_of_an_agent(served: Daemon, house: Path) -> None:
    create_agents(house, "dora")
    typed(house, "remember", "Cups are white.", "--agent", "dora")
    folder = str(house / "data")  # that of the daemon
    printed = json.loads(typed(house, "dashboard", "--agent", "dora", "--json", NEWTON_DATA_DIR=folder).stdout)
    assert printed["url"].startswith(f"{served.url}/dashboard/sign-in?code=")
    assert served.token not in printed["url"]
    with httpx2.Client(base_url=served.url, timeout=60) as http:
        assert http.get(printed["url"], headers=OPENED).headers["location"] == "/"
        page = http.get("/dashboard/memories").text
        assert "Cups are white." in page
        (memory_id,) = set(re.findall(r"/dashboard/memories/([0-9a-f-]{36})", page))
        csrf = re.findall(r'csrf_token" value="([^"]+)', page)[0]
        form, wanted = {"csrf_token": csrf, "content": "Cups are blue."}, f"/dashboard/memories/{memory_id}/supersede"
        http.post(wanted, content=urlencode(form), headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert "Cups are blue." in typed(house, "list", "--agent", "dora").stdout


def test_the_daemon_prints_a_link_of_the_operator(served: Daemon) -> None:
    link = None
    for _ in range(600):  # the line is printed shortly after the port is open
        link = re.search(r"Dashboard: (\S+/dashboard/sign-in\?code=\S+) \(opens once", "".join(served.said))
        if link is not None:
            break
        time.sleep(0.1)
    assert link is not None
    with httpx2.Client(base_url=served.url, timeout=60) as http:
        page = http.get(link[1])
        (code,) = re.findall(r'name="code" value="([^"]+)', page.text)
        assert http.post("/dashboard/sign-in", content=urlencode({"code": code}), headers=FORM).status_code == 303
        assert "operator" in http.get("/").text


def test_without_a_daemon_the_command_says_what_to_start(tmp_path: Path) -> None:
    refused = typed(tmp_path, "dashboard")
    assert refused.returncode != 0
    assert "newton serve" in refused.stderr

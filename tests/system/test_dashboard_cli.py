"""`newton dashboard` prints a link that opens the dashboard, and what is done there is seen by other commands."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx2

from tests.system.daemons import Daemon
from tests.system.typed import create_agents, typed


def test_a_link_of_the_command_opens_the_dashboard_of_an_agent(served: Daemon, house: Path) -> None:
    create_agents(house, "dora")
    typed(house, "remember", "Cups are white.", "--agent", "dora")
    folder = str(house / "data")  # that of the daemon
    printed = json.loads(typed(house, "dashboard", "--agent", "dora", "--json", NEWTON_DATA_DIR=folder).stdout)
    assert printed["url"].startswith(f"{served.url}/dashboard/sign-in?code=")
    assert served.token not in printed["url"]
    with httpx2.Client(base_url=served.url, timeout=60) as http:
        assert http.get(printed["url"]).headers["location"] == "/"
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
        assert http.get(link[1]).status_code == 303
        assert "operator" in http.get("/").text


def test_without_a_daemon_the_command_says_what_to_start(tmp_path: Path) -> None:
    refused = typed(tmp_path, "dashboard")
    assert refused.returncode != 0
    assert "newton serve" in refused.stderr

"""Each page and each action of the dashboard has its place in the tests that run in a browser."""

from tests.browser.page_acts import ACTS
from tests.browser.page_paths import DOWNLOADS, PARAMETER, QUERIES, VARIANTS, build_page_path, list_routes


def test_every_page_and_every_action_is_visited_in_the_browser() -> None:
    known = {"memory_id", "decision_id", "bundle_id", "other_bundle_id", "session"}
    paths = [build_page_path(path, dict.fromkeys(known, "x")) for path in list_routes("GET") if path not in DOWNLOADS]
    assert not any(PARAMETER.search(path) for path in paths)
    assert len(paths) >= 25
    assert set(QUERIES) <= set(list_routes("GET"))
    assert all(path.partition("?")[0] in list_routes("GET") for path in VARIANTS)
    assert {act.route for act in ACTS} == set(list_routes("POST")), "add these to tests/browser/page_acts.py"

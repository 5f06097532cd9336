"""Documents agree with the code: the reference can be built, its links and the paths of documents lead somewhere."""

import json
import re

import pytest

from tests.docs.parameters import collect_parameters
from tests.docs.reference import BUILT, COMMITTED, describe_api
from tests.docs.site_pages import ROOT, find_broken_links, read_page


def test_the_committed_routes_are_current() -> None:
    stale = [name for name, build in COMMITTED.items() if build() != (ROOT / name).read_text(encoding="utf-8")]
    assert stale == [], "run scripts/make-reference"


def test_the_glossary_is_short_and_has_each_term_once() -> None:
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", read_page(ROOT / "docs/glossary.md"), flags=re.MULTILINE)[1:]
    terms = [term for names, _ in rows for term in names.split(", ")]
    assert len(rows) <= 40 and len(terms) == len(set(terms))
    assert [names for names, _ in rows] == sorted(names for names, _ in rows)


@pytest.mark.parametrize("name", [name for name in BUILT if name.endswith(".md")])
def test_a_built_page_has_entries_and_its_links_resolve(name: str) -> None:
    entries = re.findall(r"^(?:\| [*`]|- \[|#+ )", read_page(ROOT / name), flags=re.MULTILINE)
    assert len(entries) > 10
    assert find_broken_links(ROOT / name) == []


def test_the_built_description_of_the_api_is_json() -> None:
    assert json.loads(BUILT["docs/openapi.json"]())["paths"].keys() == describe_api()["paths"].keys()


def test_every_parameter_of_an_interface_has_a_meaning() -> None:
    named = collect_parameters(describe_api())
    assert {"since", "created_since", "kinds", "kind", "importance", "confirm", "states"} <= {one.name for one in named}
    described = [one for one in named if one.places.keys() & {"command line", "MCP"}]
    assert [one.name for one in described if not one.meaning] == []


def test_every_operation_is_described() -> None:
    for path, operations in describe_api()["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], f"{method} {path}"
            media = "application/json" if "openai" in operation["tags"] else "application/problem+json"
            assert list(operation["responses"]["default"]["content"]) == [media], f"{method} {path}"


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|sql|md|yaml))`", text))
    assert len(paths) > 30
    places = (ROOT / "newton", ROOT)
    assert sorted(path for path in paths if not any((place / path).exists() for place in places)) == []

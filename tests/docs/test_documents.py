"""Documents agree with the code: the reference is current, links and paths lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.parameters import collect_parameters
from tests.docs.reference import describe_api, pages

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_the_reference_is_current() -> None:
    generated = pages()
    assert {"../openapi.json", "commands.md", "settings.md", "http.md", "errors.md", "verbs.md"} <= generated.keys()
    stale = [name for name, page in generated.items() if page != (REFERENCE / name).read_text(encoding="utf-8")]
    assert stale == [], "run scripts/make-reference"


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|sql|md|yaml))`", text))
    assert len(paths) > 30
    places = (ROOT / "newton", ROOT)
    assert sorted(path for path in paths if not any((place / path).exists() for place in places)) == []

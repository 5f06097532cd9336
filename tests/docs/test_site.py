"""The documentation site: pages are in the navigation, links and anchors resolve, commands are those of Newton."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from cyclopts import CycloptsError, MissingArgumentError

from newton.content.yaml_files import parse_trusted
from newton.runtime.cli.app import build_app, expand_default_command, take_project
from tests.docs.reference import BUILT
from tests.docs.site_pages import DOCS, ROOT, commands, find_broken_links, find_pages

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in find_pages()]
get_app = cache(build_app)


@cache
def navigation() -> tuple[str, ...]:
    """Return the pages of the navigation in their order."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")

    def pages_of(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        parts = list(cast("dict[str, Any]", entry).values()) if isinstance(entry, dict) else cast("list[Any]", entry)
        return [page for part in parts for page in pages_of(part)]

    return tuple(pages_of(parse_trusted(text)["nav"]))


def test_every_page_is_in_the_navigation_once() -> None:
    listed = navigation()
    pages = [str(page.relative_to(DOCS)) for page in find_pages() if DOCS in page.parents]
    pages += [name.removeprefix("docs/") for name in BUILT if name.endswith(".md")]
    assert sorted(listed) == sorted(page for page in pages if not re.match(r"decisions/\d", page))
    assert len(listed) > 40


@pytest.mark.parametrize("page", PAGES)
def test_links_and_anchors_resolve(page: Path) -> None:
    assert find_broken_links(page) == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist_with_their_options(page: Path) -> None:
    wrong = list[str]()
    for words, complete in commands(page):
        if words[:1] == ["help"]:  # a page that cyclopts does not build
            continue
        try:
            get_app().parse_args(
                expand_default_command(take_project(words)[0]),
                exit_on_error=False,
                print_error=False,
                help_on_error=False,
            )
        except CycloptsError as error:
            if complete or not isinstance(error, MissingArgumentError):
                wrong.append(f"newton {' '.join(words)}: {error}")
    assert wrong == []


def test_commands_are_found_in_the_pages() -> None:
    found = [words for page in find_pages() for words, _ in commands(page)]
    assert len(found) > 250
    assert {"chat", "context", "decide", "review", "calibration", "serve"} <= {words[0] for words in found}


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    built = subprocess.run(
        ["sh", "scripts/docs", "--site-dir", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    for page in navigation():
        html = (tmp_path / page).with_suffix(".html").read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"?(https?://[^\" >]+)", html)
        assert [url for url in loaded if 'rel="canonical"' not in url] == [], page

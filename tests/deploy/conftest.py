"""The image, built once, and a running project that several tests use."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.deploy.project import ROOT, ComposeProject, docker, project


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """The image of the Dockerfile."""
    name = f"newton-test:{uuid4().hex[:8]}"
    docker("build", "-t", name, str(ROOT))
    yield name
    docker("rmi", name, check=False)


SETTINGS = """
services:
  newton:
    environment:
      NEWTON_QUOTE_WITHOUT_MODEL: "true"
"""


@pytest.fixture(scope="session")
def quoting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compose file with which Newton answers by quotes, as no model is at hand."""
    file = tmp_path_factory.mktemp("compose") / "quoting.yml"
    file.write_text(SETTINGS)
    return file


@pytest.fixture(scope="session")
def running(image: str, quoting: Path) -> Iterator[ComposeProject]:
    with project(image, quoting) as made:
        made.starts()
        yield made

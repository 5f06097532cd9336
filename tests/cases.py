"""Tables of cases: the YAML file beside a module of tests, by the names of its tests and constants."""

from pathlib import Path
from typing import Any

from newton.content.yaml_files import parse_trusted


def load_cases(module: str) -> Any:
    """Load the tables of a module, given as its `__file__`."""
    return parse_trusted(Path(module).with_suffix(".yaml").read_text(encoding="utf-8"))

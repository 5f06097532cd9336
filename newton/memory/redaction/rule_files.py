"""Reading of the rules of the redaction, which are data: YAML files beside this module."""

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from newton.content.yaml_files import parse_trusted

_PART = re.compile("<<([a-z_]+)>>")


def load_rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of the file `name`. In their texts each `<<part>>` is replaced by the part of the file."""
    parts = load_parts(name)

    def expand(value: Any) -> Any:
        return _PART.sub(lambda match: expand(parts[match[1]]), value) if isinstance(value, str) else value

    return [{field: expand(value) for field, value in rule.items()} for rule in _read(name)["rules"]]


def load_parts(name: str, group: str = "parts") -> dict[str, str]:
    """Return the parts, or another group, of the file `name`, as they are written there."""
    parts: dict[str, str] = _read(name).get(group, {})
    return parts


def name_tests(functions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tests among the functions of a module by the names that rules have for them.

    >>> name_tests({"_is_password": 1, "_always": 2})
    {'password': 1, 'always': 2}
    """
    return {re.sub(r"^_(?:is_|has_)?", "", name): test for name, test in functions.items()}


def load_words(name: str) -> dict[str, str]:
    """Return the lists of words of the file `name`, each as the alternatives of a regular expression."""
    content: dict[str, str] = _read(name)
    return {group: "|".join(sorted(listed.split(), key=lambda word: -len(word))) for group, listed in content.items()}


def _read(name: str) -> Any:
    return parse_trusted(resources.files("newton.memory.redaction").joinpath(name).read_text(encoding="utf-8"))

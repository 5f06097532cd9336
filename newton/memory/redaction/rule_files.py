"""Reading of the rules of the redaction, which are data: YAML files beside this module."""

import re
from importlib import resources
from typing import Any

from newton.content.yaml_files import parse_trusted

_PART = re.compile("<<([a-z_]+)>>")


def load_rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of the file `name`. In their texts each `<<part>>` is replaced by the part of the file."""
    content = _read(name)
    parts: dict[str, str] = content.get("parts", {})

    def expand(text: str) -> str:
        return _PART.sub(lambda match: expand(parts[match[1]]), text)

    return [
        {field: expand(value) if isinstance(value, str) else value for field, value in rule.items()}
        for rule in content["rules"]
    ]


def load_words(name: str) -> dict[str, str]:
    """Return the lists of words of the file `name`, each as the alternatives of a regular expression."""
    content: dict[str, str] = _read(name)
    return {group: "|".join(sorted(listed.split(), key=lambda word: -len(word))) for group, listed in content.items()}


def _read(name: str) -> Any:
    return parse_trusted(resources.files("newton.memory.redaction").joinpath(name).read_text(encoding="utf-8"))

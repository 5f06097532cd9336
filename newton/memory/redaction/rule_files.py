"""Reading of the rules of the redaction, which are data: YAML files beside this module."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted

MAX_DISTANCE = 70  # characters from a label to its value in a sentence
_PART = re.compile("<<([a-z_]+)>>")


class SecretRule(NamedTuple):
    """A rule on one kind of secret.

    It is searched for where one of the `labels` is, or in a text with one of the `hints`, all in lower case. What
    `pattern` matches, or its group "value", is the secret if `is_secret`, because words, placeholders and code match
    too, or if it looks like random characters for one with `is_random`. A told value begins at most `distance`
    characters after its label; with `looks_back`, it may also precede it, and with `crosses` be in the next sentence of
    the line. `is_household` marks what people store to be reminded of it, such as the code of a door.
    """

    kind: str
    labels: Sequence[str]
    hints: Sequence[str]
    pattern: re.Pattern[str]
    is_secret: Callable[[Any], bool]
    is_random: bool
    is_household: bool
    distance: int
    looks_back: bool
    crosses: bool


def load_secret_rules(name: str, functions: Mapping[str, Any], *, flags: int = re.IGNORECASE) -> tuple[SecretRule, ...]:
    """Return the rules of the file `name`, with their tests, which are among the functions of a module."""
    tests = name_tests(functions)
    return tuple(
        SecretRule(
            rule["kind"],
            tuple(filter(None, rule.get("labels", "").split("|"))),
            tuple(rule.get("hints", "").split()),
            re.compile(rule["pattern"], flags),
            tests[rule["test"]] if "test" in rule else bool,
            rule.get("random", False),
            rule.get("household", False),
            rule.get("distance", MAX_DISTANCE),
            rule.get("looks_back", False),
            rule.get("crosses", False),
        )
        for rule in load_rules(name)
    )


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


def index_labels(rules: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """Return for each label the numbers of the rules that have it.

    >>> index_labels([("pin", "puk"), ("pin",)])
    {'pin': [0, 1], 'puk': [0]}
    """
    uses: dict[str, list[int]] = {}
    for number, labels in enumerate(rules):
        for label in labels:
            uses.setdefault(label, []).append(number)
    return uses

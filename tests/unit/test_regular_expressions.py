"""The regular expressions of the package match alike in every supported version of Python."""

import re
import sys

import pytest

from tests.unit.source_trees import ROOT

POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,{} ]+\})\+")
SOURCES = sorted([*(ROOT / "newton").rglob("*.py"), *(ROOT / "newton").rglob("*.yaml")])


def test_no_group_has_a_possessive_quantifier() -> None:
    """Python before 3.11.5 matches such a group wrongly if a part of it fails after another part matched."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert not found, "write an atomic group, (?>(?:...)*), instead"
    assert POSSESSIVE_GROUP.search(r"(?:a|b)*+") and POSSESSIVE_GROUP.search(r"(?:\s[a-z]++)++")
    assert not POSSESSIVE_GROUP.search(r"(?>(?:a|b)*)")


@pytest.mark.skipif(sys.version_info >= (3, 11, 5), reason="this Python matches possessive groups as documented")
def test_the_reason_for_the_rule_holds() -> None:
    assert re.search(r"(?:[^-]++|-(?!-))*+--", "a-b--") is None

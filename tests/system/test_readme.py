"""The README's tour, typed as it stands there: what it shows is what comes."""

import re
import shlex
from pathlib import Path

from tests.system.typed import seen

ROOT = Path(__file__).parents[2]


def tour() -> list[tuple[str, str]]:
    """Each command of the README's console with what it prints."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").partition("```console\n")[2].partition("```")[0]
    steps = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
    return [(command, shown.strip()) for command, shown in steps]


def typed(command: str, home: Path) -> str:
    script, *words = shlex.split(command)
    assert script == "scripts/newton"
    return seen(home, *words).strip()


def alike(text: str) -> str:
    """Without what differs each time: ids, and in their last digits certainty and evidence, by the processor."""
    return re.sub(r"\([0-9a-f]{8}\)", "(id)", re.sub(r"confidence \d+%|evidence \d\.\d\d", "so sure", text))


def test_the_tour_shows_what_comes(home: Path) -> None:
    steps = tour()
    assert {command.split()[1] for command, _ in steps} == {"remember", "context", "ask"}
    came = [(command, alike(typed(command, home))) for command, _ in steps]
    assert came == [(command, alike(shown)) for command, shown in steps]

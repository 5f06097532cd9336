"""The worked example of the design as import lines: what bears on its question, among a life that does not."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from newton.content.yaml_files import parse_trusted
from tests.scenarios.unrelated import lines as unrelated

GIVEN: dict[str, Any] = parse_trusted((Path(__file__).parents[1] / "data/worked_example.yaml").read_text())
QUESTION: str = GIVEN["question"]


def related(now: datetime) -> Iterator[dict[str, Any]]:
    """Every line's ref begins with `r-`, but for the procedures, which go by their names."""

    def ago(days: int) -> datetime:
        return now - timedelta(days=days)

    for i, given in enumerate(GIVEN["decisions"]):
        made = ago(given["days"])
        review = {"outcome": given["outcome"], "reviewed_at": (made + timedelta(days=9)).isoformat()}
        yield {
            "type": "decision",
            "ref": f"r-d{i}",
            "at": made.isoformat(),
            "reasons": [{"kind": "analysis", "text": reason} for reason in given["reasons"]],
            **{name: given[name] for name in ("description", "confidence", "category", "stakes")},
            **({} if given["outcome"] == "pending" else review),
        }
    for i, content in enumerate(GIVEN["facts"]):
        yield {"type": "fact", "ref": f"r-f{i}", "content": content, "at": ago(5 * i + 3).isoformat()}
    for given in GIVEN["procedures"]:
        yield {"type": "procedure", **given}
    for i, given in enumerate(GIVEN["episodes"]):
        told = {name: given[name] for name in ("title", "content")}
        yield {"type": "episode", "ref": f"r-e{i}", "at": ago(given["days"]).isoformat(), **told}
    for given in GIVEN["censors"]:
        yield {"type": "censor", **given}


def write(path: Path, now: datetime, **sizes: int) -> Path:
    """The file to import; `sizes` are those of the life around it."""
    made = sorted([*related(now), *unrelated(now=now, **sizes)], key=lambda line: line.get("at", ""))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in made), encoding="utf-8")
    return path

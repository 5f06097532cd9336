"""`sh scripts/live`: lives lives with a played model or without one, and says what is known of them.

    sh scripts/live LIFE.json ... --out FOLDER                    without a model
    sh scripts/live LIFE.json ... --out FOLDER --queue FOLDER     a person or an agent plays the model by files
    sh scripts/live LIFE.json ... --out FOLDER --constant ok      a model that always says the same

Each life has a process, a port and a database of its own; `FOLDER/NAME.json` gets its report, and `FOLDER/NAME.jsonl`
the recording of the model's answers, from which a later run of the same life goes on. `--compare FOLDER` names the
reports without a model: what is known only there is listed. With `--figures`, the failures are not printed.
"""

import argparse
import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import structlog
from pydantic import TypeAdapter

from newton.runtime.cli.printing import say
from tests.lives.life import load_life
from tests.lives.living import LivedLife, live
from tests.lives.played_model import PlayedModel, load_cassette
from tests.lives.report import compare_runs, format_reports, report_life

_SEEN = TypeAdapter(LivedLife)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lives", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--queue", type=Path)
    parser.add_argument("--constant")
    parser.add_argument("--replay", action="store_true", help="answer from the recording only")
    parser.add_argument("--again", action="store_true", help="judge what was seen in an earlier run anew")
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--figures", action="store_true")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    chosen.out.mkdir(parents=True, exist_ok=True)
    if len(chosen.lives) == 1:
        asyncio.run(_live_one(chosen.lives[0], chosen))
    else:
        flags = sys.argv[1 + len(chosen.lives) :]
        command = [sys.executable, "-m", "tests.lives"]
        running = [subprocess.Popen([*command, str(path), *flags], stdout=subprocess.DEVNULL) for path in chosen.lives]
        if failed := [one for one in running if one.wait() != 0]:
            return failed[0].returncode
    _print_reports(chosen)
    return 0


async def _live_one(path: Path, chosen: argparse.Namespace) -> None:
    life, record, kept = load_life(path), chosen.out / f"{path.stem}.jsonl", chosen.out / f"{path.stem}.seen.json"
    if chosen.again:
        seen = _SEEN.validate_json(kept.read_bytes())
    else:
        seen = await live(life, _choose_model(path.stem, record, chosen))
        kept.write_bytes(_SEEN.dump_json(seen))
    report = json.dumps(report_life(life, seen), ensure_ascii=False, indent=1)
    (chosen.out / f"{path.stem}.json").write_text(report, encoding="utf-8")


def _choose_model(name: str, record: Path, chosen: argparse.Namespace) -> PlayedModel | None:
    if chosen.constant is not None:
        return PlayedModel(constant=chosen.constant)
    if not (chosen.queue or chosen.replay):
        return None
    model = PlayedModel(cassette=load_cassette(record) if record.exists() else {})
    if chosen.queue:
        model.record, model.queue = record, chosen.queue / name
        (chosen.queue / name).mkdir(parents=True, exist_ok=True)
    return model


def _print_reports(chosen: argparse.Namespace) -> None:
    reports = {path.stem: _read(chosen.out / f"{path.stem}.json") for path in chosen.lives}
    say(format_reports(reports))
    for name, report in reports.items():
        if chosen.compare:
            lost = compare_runs(_read(chosen.compare / f"{name}.json"), report)
            say(f"{name}: known only without a model: {', '.join(lost) or 'nothing'}")
        if not chosen.figures:
            parts: dict[str, list[str]] = report["failures"]
            for line in (f"{name}: {part}: {failure}" for part, failures in parts.items() for failure in failures):
                say(line)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())

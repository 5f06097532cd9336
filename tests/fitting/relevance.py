"""Fit profiles/relevance.json, check it on questions that were not fitted, and write its card beside it.

Without `--output FOLDER` the shipped files are replaced. `--check` fits nothing, and writes the card of the shipped
model.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from bench.environment import open_environment
from newton.cognition.relevance_model import RELEVANCE_FILE, load_relevance_model
from newton.runtime.cli.options import load_settings
from newton.runtime.wiring import AgentServices
from tests.fitting.answers import AnswerCase
from tests.fitting.relevance_card import check_model, render_card
from tests.fitting.relevance_data import (
    Folder,
    ask_beliefs,
    ask_conversations,
    ask_persons,
    ask_stores,
    collect_answers,
    collect_topics,
    load_folder,
)
from tests.fitting.topics import fit_model

PROFILES = Path(__file__).parents[2] / "profiles"
CARD = "relevance-card.md"
HELD_OUT_STORES = ("heldout", "heldout_large")


async def run(paths: Sequence[Path], output: Path, *, only_check: bool) -> str:
    """Fit or load the model, and write it and its card; return the card. Each path is a folder of conversations."""
    folders = [load_folder(path) for path in paths]
    async with open_environment(load_settings()) as environment:
        newton = environment.newton
        if only_check:
            model, counts = load_relevance_model(), None
        else:
            topics = await collect_topics(newton, folders)
            answers = await collect_answers(newton, folders, topics)
            identity = newton.scope.embedder.identity if newton.scope.embedder else ""
            model, counts = fit_model(topics, answers, embedding_model=identity), (len(topics), len(answers))
            (output / RELEVANCE_FILE).write_text(f"{model.model_dump_json(indent=1)}\n", encoding="utf-8")
        checks = check_model(model, await _collect_held_out(newton, folders))
    card = render_card(checks, folders, counts=counts)
    (output / CARD).write_text(card, encoding="utf-8")
    return card


async def _collect_held_out(newton: AgentServices, folders: Sequence[Folder]) -> list[AnswerCase]:
    cases = [case for folder in folders async for case in ask_conversations(newton, folder, folder.held_out)]
    cases += [case async for case in ask_persons(newton, "small_stores_heldout.yaml")]
    cases += [case for name in HELD_OUT_STORES async for case in ask_stores(newton, name)]
    return [*cases, *[case async for case in ask_beliefs(newton)]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="fit-relevance", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="conversations as for `python -m bench recall`")
    parser.add_argument("--output", type=Path, default=PROFILES)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    print(asyncio.run(run(chosen.folders, chosen.output, only_check=chosen.check)))

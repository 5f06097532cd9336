"""The context of a session is kept within a topic and rebuilt at a change of topic, with the shipped embedder."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.sessions import load_scripts, replay_session, store_facts, summarize
from newton.cognition.frames.training import load_or_train
from tests.scenarios.conftest import Mind, load_minilm, newton

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.slow  # tests/unit/test_refresh.py has the rules
async def test_a_topic_keeps_its_context_and_another_topic_gets_its_own(mind: Mind, tmp_path: Path) -> None:
    # S002-14, S002-22: fewer than 0.3 refreshes per turn, and a related memory is in the context
    own = replace(mind, embedder=load_minilm())
    scripts = load_scripts(DATA / "conversations.yaml")[:5:2]
    unrelated = (DATA / "unrelated_facts.txt").read_text().splitlines()[:60]
    services = newton(own, load_minilm())
    classifier = await load_or_train(services.frames, load_minilm(), cache=tmp_path)
    services = replace(services, context_builder=replace(services.context_builder, classifier=classifier))
    await store_facts(services, [*(fact for script in scripts for fact in script.memories), *unrelated])
    turns = [turn for script in scripts for turn in await replay_session(services, script)]
    figures = summarize(turns)
    assert figures["refresh_rate"] < 0.3, figures
    assert figures["changes_refreshed"] == len(scripts), figures
    # of 13 turns; the best fact for a follow-up such as "So who pays it then?" alone may be on another topic
    assert figures["has_relevant_top_memory"] >= 0.8, figures

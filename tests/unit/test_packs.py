"""Packs lean the frames towards a kind of work, and a frame may extend another."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.content.frames import BudgetSplit, LayerShares, load_frames
from newton.content.packs import FrameSet, WeightEmphasis, load_frame_set, load_packs
from newton.content.profiles import load_profiles
from newton.errors import ConfigError, NotFoundError

FRAMES = load_frames()
PROFILES = load_profiles()
OWN = """\
name: kitchen
description: Cooking for many.
weights: {recency: 0.5, relevance: 0.5, salience: 0}
budget: {recent: 50, semantic: 50, entity: 0, patterns: 0}
questions: [Who is allergic to what?]
"""
EXTENDING = """\
extends: debug
questions: [What burns?, What is raw?]
priorities: {fact: 0.1}
patterns: [{match: burnt, weight: 0.9}]
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def outlook(folder: Path, **files: str) -> FrameSet:
    return load_frame_set(PROFILES, written(folder, packs__kitchen__pack=OWN, **files), "kitchen")


@pytest.mark.parametrize(
    ("name", "split", "depth", "failures"),
    [
        ("coding", (20, 40, 20, 20), 2, True),
        ("support", (30, 35, 20, 15), 1, False),
        ("research", (10, 50, 20, 20), 3, True),
    ],
)
def test_the_packs_that_ship_have_the_published_numbers(
    name: str, split: tuple[int, ...], depth: int, failures: bool
) -> None:
    # archetypes of S001
    pack = load_packs().packs[name]
    assert tuple(dict(pack.budget).values()) == split
    assert (pack.depth, pack.failures, pack.profile, pack.weights) == (depth, failures, name, None)
    assert pack.events
    assert pack.entities
    assert pack.relations
    assert pack.questions


@pytest.mark.parametrize(
    ("name", "recency", "similarity", "salience"),
    [("coding", 0.3, 0.5, 0.2), ("support", 0.4, 0.4, 0.2), ("research", 0.2, 0.6, 0.2)],
)
def test_the_profile_of_a_shipped_pack_has_the_published_weights(
    name: str, recency: float, similarity: float, salience: float
) -> None:
    weights = load_frame_set(PROFILES, None, name).profiles[name].weights.nonzero
    assert weights == {"recency": recency, "similarity": similarity, "salience": salience}


@pytest.mark.parametrize("name", ["coding", "support", "research"])
def test_a_shipped_pack_leans_every_frame(name: str) -> None:
    frames = load_frame_set(PROFILES, None, name).frames
    assert set(frames) == set(FRAMES)
    assert {frame.profile for frame in frames.values()} == {name}
    assert any(
        frames[each].censors != FRAMES[each].censors or frames[each].domains != FRAMES[each].domains for each in frames
    )
    assert all(frames[each].examples == FRAMES[each].examples for each in frames)  # what was learnt from them holds


def test_percentages_split_the_flexible_layers_and_without_a_pack_nothing_leans() -> None:
    assert load_frame_set(PROFILES) == FrameSet(FRAMES, PROFILES, None)
    # recent: episodes, entity: facts, patterns: procedures; semantic: decisions and facts, as the frame has them
    split = load_packs().packs["research"].budget.to_layer_shares(FRAMES["question"].budget)
    assert split == LayerShares(decisions=111, facts=589, procedures=200, episodes=100)


@given(st.lists(st.integers(0, 100), min_size=3, max_size=3).map(sorted), st.sampled_from(sorted(FRAMES)))
def test_no_split_gives_more_or_less_than_all(cuts: list[int], name: str) -> None:
    low, middle, high = cuts
    split = BudgetSplit(recent=low, semantic=middle - low, entity=high - middle, patterns=100 - high)
    shares = split.to_layer_shares(FRAMES[name].budget).shares
    assert sum(shares.values()) == 1000
    assert min(shares.values()) >= 0
    assert shares["episodes"] == 10 * low


def test_a_pack_of_one_s_own_leans_frames_and_weighs_its_own_way(tmp_path: Path) -> None:
    # S001-8, S001-10
    # the minimal archetype of S001: 0.5/0.5/0 and 50/50/0/0
    frames, profiles, pack = outlook(tmp_path)
    assert pack
    assert pack.weights == WeightEmphasis(recency=0.5, relevance=0.5, salience=0)
    assert profiles["kitchen"].weights.nonzero == {"similarity": 0.5, "recency": 0.5}
    assert profiles["newton"] == PROFILES["newton"]
    question = frames["question"]
    assert (question.profile, question.questions[-1]) == ("kitchen", "Who is allergic to what?")
    assert (question.budget.procedures, question.budget.episodes) == (0, 500)


def test_depth_failures_and_types_of_a_pack_reach_its_profile(tmp_path: Path) -> None:
    # S001-10: what the pack leaves out stays as in the profile that it names
    types = "events: [error]\nentities: [service]\nrelations: [depends_on]\n"
    written(tmp_path, packs__mine__pack=OWN.replace("kitchen", "mine") + f"profile: support\ndepth: 4\n{types}")
    mine = load_frame_set(PROFILES, tmp_path, "mine").profiles["mine"]
    support = PROFILES["support"].reach
    assert (mine.reach.depth, mine.reach.failures, mine.reach.sessions) == (4, support.failures, support.sessions)
    assert (mine.reach.event_types, mine.reach.entity_types) == (("error",), ("service",))
    assert mine.reach.relation_types == ("depends_on",)
    assert mine.weights.nonzero == {"similarity": 0.5, "recency": 0.5}


def test_frames_of_a_pack_keep_what_they_do_not_say_and_yield_to_a_persons_own(tmp_path: Path) -> None:
    written(tmp_path, packs__kitchen__pack=OWN + "profile: auto\n")
    with pytest.raises(ConfigError, match="selects other profiles"):
        load_frame_set(PROFILES, tmp_path, "kitchen")
    # a frame that extends another keeps what it does not say
    debug = outlook(tmp_path, packs__kitchen__debug=EXTENDING).frames["debug"]
    assert debug.questions == ("What burns?", "What is raw?")
    assert (debug.priority("fact"), debug.priority("procedure")) == (0.1, FRAMES["debug"].priority("procedure"))
    assert debug.patterns[:-1] == FRAMES["debug"].patterns
    assert debug.patterns[-1].match == "burnt"
    assert (debug.profile, debug.examples) == ("kitchen", FRAMES["debug"].examples)
    with pytest.raises(ConfigError) as refused:
        load_frames(written(tmp_path, mend="extends: debgu\n"))
    assert str(refused.value).startswith(f"{tmp_path}/mend.yaml:1: cannot extend 'debgu': it is not one of")
    # a pack s frame is checked as any
    bad = EXTENDING.replace("{fact: 0.1}", "{fact: 3}")
    with pytest.raises(ConfigError) as refused:
        outlook(tmp_path, packs__kitchen__debug=bad)
    assert f"{tmp_path}/packs/kitchen/debug.yaml:3: priorities.fact should be less" in str(refused.value)


def test_a_person_s_own_frames_lie_above_the_pack(tmp_path: Path) -> None:
    own = "extends: debug\nprofile: recent\nexamples: [The jam burnt.]\n"
    frames = outlook(tmp_path, packs__kitchen__debug=EXTENDING, debug=own, scorching=own).frames
    assert [frames[name].questions[0] for name in ("debug", "scorching")] == ["What burns?"] * 2
    assert [frames[name].profile for name in ("debug", "scorching")] == ["recent"] * 2
    assert frames["scorching"].name == "scorching"
    assert frames["scorching"].examples == (*FRAMES["debug"].examples, "The jam burnt.")


def test_a_pack_of_one_s_own_replaces_one_that_ships(tmp_path: Path) -> None:
    written(tmp_path, packs__coding__pack=OWN.replace("kitchen", "coding"))
    assert load_packs(tmp_path).packs["coding"].description == "Cooking for many."
    assert set(load_packs(tmp_path).packs) == {"coding", "support", "research"}


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        ("recent: 50", "recent: 60", ":4: budget must add up to 100, not 110."),
        ("salience: 0", "salience: 2", ":3: weights.salience should be less than or equal to 1"),
        ("name: kitchen", "name: cellar", ":1: the pack has the name 'cellar', but its folder has the name 'kitchen'."),
        ("questions", "qestions", ":5: 'qestions' is not a field of a pack."),
    ],
)
def test_a_mistake_in_a_pack_names_its_line(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    written(tmp_path, packs__kitchen__pack=OWN.replace(good, bad))
    with pytest.raises(ConfigError) as refused:
        load_frame_set(PROFILES, tmp_path, "kitchen")
    assert str(refused.value).startswith(f"{tmp_path}/packs/kitchen/pack.yaml{complaint}")


def test_an_unknown_pack_or_profile_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as missing:
        load_frame_set(PROFILES, None, "codign")
    assert missing.value.hint == "Did you mean 'coding'? The packs are: coding, research, support."
    written(tmp_path, packs__kitchen__pack=OWN.replace("weights", "profile: newtn\nweights"))
    with pytest.raises(NotFoundError) as unknown:
        load_frame_set(PROFILES, tmp_path, "kitchen")
    assert unknown.value.what == "There is no profile 'newtn'."


def test_a_broken_pack_costs_only_those_who_use_it(tmp_path: Path) -> None:
    pack = tmp_path / "packs" / "broken" / "pack.yaml"
    pack.parent.mkdir(parents=True)
    pack.write_text("name: broken\ndescription: [", encoding="utf-8")
    assert load_frame_set(load_profiles(), tmp_path, "coding").pack
    found = load_packs(tmp_path)
    assert set(found.packs) == {"coding", "support", "research"}
    assert [str(pack) in str(error) for error in found.errors] == [True]
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_frame_set(load_profiles(), tmp_path, "broken")

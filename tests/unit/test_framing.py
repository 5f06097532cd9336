"""Which frame an input asks for."""

import pytest

from newton.cognition.framing import centroid, choose, forced
from newton.content.frames import load_frames
from newton.providers.embedding import Vector
from newton.providers.minilm import MiniLM

FRAMES = load_frames()


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


@pytest.fixture(scope="module")
def centroids(model: MiniLM) -> dict[str, Vector]:
    return {name: centroid(model.embed_now(list(frame.examples))) for name, frame in FRAMES.items()}


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("Good morning, how was your weekend?", "conversation"),
        ("When did Ana move to Porto?", "question"),
        ("Delete the old log files on the server", "task"),
        ("Should we use Redis for caching in Newton?", "decision"),
        ("The login page crashes with a null pointer error", "debug"),
        ("Brainstorm names for a bakery run by cats", "creative"),
        ("Let us map out the milestones for the next quarter", "planning"),
        ("Looking back, what could I have done better in that project?", "reflection"),
        ("Hi, the deploy is broken and nothing starts", "debug"),
    ],
)
def test_typical_inputs_get_their_frame(text: str, frame: str, model: MiniLM, centroids: dict[str, Vector]) -> None:
    # S002-1, S002-7
    vector = model.embed_now([text])[0]
    choice = choose(FRAMES, text, vector=vector, centroids=centroids, prior=None)
    assert choice.frame == frame, choice
    assert 0 < choice.confidence <= 1
    assert choice.runner_up != choice.frame


def test_the_choice_is_the_same_every_time(model: MiniLM, centroids: dict[str, Vector]) -> None:
    vector = model.embed_now(["Compare the two libraries for me"])[0]
    choices = [
        choose(FRAMES, "Compare the two libraries for me", vector=vector, centroids=centroids, prior=None)
        for _ in range(3)
    ]
    assert choices[0] == choices[1] == choices[2]


def test_without_a_model_patterns_decide() -> None:
    choice = choose(FRAMES, "Should we use tabs or spaces?", vector=None, centroids={}, prior=None)
    assert choice.frame == "decision"


def test_without_any_evidence_it_is_a_conversation() -> None:
    assert choose(FRAMES, "zzz", vector=None, centroids={}, prior=None).frame == "conversation"


def test_a_session_s_frame_breaks_a_tie_but_not_a_clear_case() -> None:
    assert choose(FRAMES, "zzz", vector=None, centroids={}, prior="planning").frame == "planning"
    clear = choose(FRAMES, "Should we use tabs or spaces?", vector=None, centroids={}, prior="planning")
    assert clear.frame == "decision"


@pytest.mark.parametrize("text", ["The prefix of that affixed label", "A ladybug, a debugger and some bugle music"])
def test_a_part_of_a_word_is_no_pattern(text: str) -> None:
    # the mistake: 'prefix' and 'ladybug' taken for fix and bug
    assert all(choose(FRAMES, text, vector=None, centroids={}, prior=None).evidence[n].pattern == 0 for n in FRAMES)


def test_a_forced_frame_says_so() -> None:
    assert forced("debug").forced
    assert forced("debug").confidence == 1.0

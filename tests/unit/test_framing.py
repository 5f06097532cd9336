"""Which frame an input asks for."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.frames.selection import (
    DEFAULT_FRAME,
    MIN_CONFIDENCE,
    FrameChoice,
    apply_tiebreak,
    choose_frame,
    force_frame,
    keep_session_frame,
)
from newton.cognition.sources.signals import classify_intent
from newton.content.frames import Frame, FramePattern, load_frames
from newton.content.yaml_files import parse_trusted
from newton.operations.contexts.context_text import format_frame
from newton.providers.embedding import Vector
from newton.providers.minilm import MiniLM
from newton.text.greetings import says_resolved, strip_greeting
from newton.text.words import is_follow_up
from tests.cases import load_cases
from tests.timing import assert_near_linear

CASES = load_cases(__file__)

FRAMES = load_frames()
DATA = Path(__file__).parents[1] / "data"
UNCLEAR = ["rope, file, Berg, Linz", "paper, coat, file, Berg"]
OPENINGS = [
    "Hi, ",
    "Hello! ",
    "hey there - ",
    "Good morning, ",
    "Thanks! ",
    "Hope you're well. ",
    "Sorry to bother you, ",
]


@pytest.mark.parametrize(("text", "frame"), CASES["typical_inputs_get_their_frame"])
def test_typical_inputs_get_their_frame(text: str, frame: str, minilm: MiniLM, learned: FrameClassifier) -> None:
    # S002-1, S002-7
    vector = vector_of(text, minilm)
    choice = choose_frame(FRAMES, text, vector=vector, classifier=learned, session_frame=None)
    assert choice.frame == frame, choice
    assert 0 < choice.confidence <= 1
    assert choice.runner_up != choice.frame


def test_the_choice_is_the_same_every_time(minilm: MiniLM, learned: FrameClassifier) -> None:
    vector = minilm.embed_now(["Compare the two libraries for me"])[0]
    choices = [
        choose_frame(FRAMES, "Compare the two libraries for me", vector=vector, classifier=learned, session_frame=None)
        for _ in range(3)
    ]
    assert choices[0] == choices[1] == choices[2]


def test_without_a_model_patterns_decide_and_without_any_evidence_it_is_a_conversation() -> None:
    choice = choose_frame(FRAMES, "Should we use tabs or spaces?", vector=None, classifier=None, session_frame=None)
    assert choice.frame == "decision"
    assert choose_frame(FRAMES, "zzz", vector=None, classifier=None, session_frame=None).frame == "conversation"
    assert force_frame("debug").forced
    assert force_frame("debug").confidence == 1.0


def test_a_session_s_frame_breaks_a_tie_but_not_a_clear_case() -> None:
    assert choose_frame(FRAMES, "zzz", vector=None, classifier=None, session_frame="planning").frame == "planning"
    clear = choose_frame(
        FRAMES, "Should we use tabs or spaces?", vector=None, classifier=None, session_frame="planning"
    )
    assert clear.frame == "decision"


def test_within_a_topic_two_inputs_change_the_frame_but_not_one(minilm: MiniLM, learned: FrameClassifier) -> None:
    # S002-14, S002-22
    text = "How many nights do we still have to book?"
    vector = vector_of(text, minilm)
    choice = choose_frame(FRAMES, text, vector=vector, classifier=learned, session_frame="task")
    assert choice.frame != "task"
    kept = keep_session_frame(choice, "task", pending_frame=None)
    assert (kept.frame, kept.runner_up) == ("task", choice.frame)
    told = f"frame task (kept from the session; this input alone looks like {choice.frame})"
    assert format_frame(kept.as_json()) == told
    assert keep_session_frame(choice, "task", pending_frame=choice.frame) == choice
    assert keep_session_frame(force_frame("debug"), "task", pending_frame=None).frame == "debug"


@pytest.mark.parametrize("text", ["The prefix of that affixed label", "A ladybug, a debugger and some bugle music"])
def test_a_part_of_a_word_is_no_pattern(text: str) -> None:
    # the mistake: 'prefix' and 'ladybug' taken for fix and bug
    assert all(
        choose_frame(FRAMES, text, vector=None, classifier=None, session_frame=None).evidence[n].pattern == 0
        for n in FRAMES
    )


Labelled = Mapping[str, Sequence[str]]


def read(name: str) -> object:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return parse_trusted(path.read_text(encoding="utf-8"))


@functools.cache
def vector_of(said: str, minilm: MiniLM) -> Vector:
    return minilm.embed_now([said])[0]


def chosen(text: str, minilm: MiniLM, learned: FrameClassifier, prior: str | None = None) -> FrameChoice:
    return choose_frame(
        FRAMES, text, vector=vector_of(strip_greeting(text), minilm), classifier=learned, session_frame=prior
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["frames_dev.yaml", "frames.yaml"])
def test_labelled_inputs_get_their_frame(name: str, minilm: MiniLM, learned: FrameClassifier) -> None:
    # S002-7: the first file was looked at while the examples were written. The second is held out: a failure says how
    # many, not which, so that nobody writes examples for them.
    labelled = cast("Labelled", read(name))
    right: dict[str, list[bool]] = {}
    sure = list[bool]()
    for frame, texts in labelled.items():
        vectors = minilm.embed_now([strip_greeting(text) for text in texts])
        got = [
            choose_frame(FRAMES, t, vector=v, classifier=learned, session_frame=None)
            for t, v in zip(texts, vectors, strict=True)
        ]
        right[frame] = [choice.frame == frame for choice in got]
        sure += [choice.frame == frame for choice in got if choice.is_sure and not choice.is_informing]
    shares = {frame: sum(each) / len(each) for frame, each in right.items()}
    assert sum(map(sum, right.values())) / sum(map(len, right.values())) >= 0.9, shares
    assert min(shares.values()) >= 0.8, shares
    assert sum(sure) / len(sure) >= 0.95 and len(sure) >= 70, "a turn is told its frame only where it fits"


def test_a_polite_opening_decides_nothing(minilm: MiniLM, learned: FrameClassifier) -> None:
    labelled = cast("Labelled", read("frames_dev.yaml"))
    for text in [t for frame, texts in labelled.items() if frame != "conversation" for t in texts[:3]]:
        plain = chosen(text, minilm, learned).frame
        assert {chosen(opening + text, minilm, learned).frame for opening in OPENINGS} == {plain}, text
    pairs = cast("Sequence[Mapping[str, str]]", read("frames_openings.yaml"))
    flips = sum(chosen(p["plain"], minilm, learned).frame != chosen(p["polite"], minilm, learned).frame for p in pairs)
    assert flips == 0


@pytest.mark.parametrize(("text", "left"), CASES["the_substance_of_an_input_lies_behind_its_opening"])
def test_the_substance_of_an_input_lies_behind_its_opening(text: str, left: str) -> None:
    assert strip_greeting(text) == left


def test_what_says_nothing_is_said_to_be_unsure() -> None:
    choice = choose_frame(FRAMES, "zzz", vector=None, classifier=None, session_frame=None)
    assert (choice.frame, choice.unsure) == ("conversation", True)
    assert choice.confidence < MIN_CONFIDENCE
    assert choice.reason.startswith("no frame has enough evidence")
    text = "and the fox in the garden, please"
    assert choose_frame(FRAMES, text, vector=None, classifier=None, session_frame=None).evidence["task"].pattern > 0
    assert choose_frame(FRAMES, text, vector=None, classifier=None, session_frame="planning").frame == "planning"


def test_a_choice_gives_its_reason(minilm: MiniLM, learned: FrameClassifier) -> None:
    choice = chosen("Should we use tabs or spaces?", minilm, learned, prior="decision")
    assert not choice.unsure
    assert "the input says 'Should we'" in choice.reason
    assert f"it is similar to the example {'Tabs or spaces?'!r}" in choice.reason
    assert "the session already has this frame" in choice.reason
    assert choice.runner_up not in (None, "decision")
    # without a pattern the reason gives the words that tell
    choice = chosen("I talked over everyone in the meeting", minilm, learned)
    assert (choice.frame, choice.evidence["reflection"].pattern) == ("reflection", 0)
    assert "the input says 'i', 'talked', 'over'" in choice.reason
    assert "it is similar to the example 'I talked over everyone in the meeting. Again.'" in choice.reason


def test_a_model_may_settle_only_among_the_close_frames() -> None:
    choice = choose_frame(FRAMES, "zzz", vector=None, classifier=None, session_frame="debug")
    assert choice.unsure
    assert choice.top_frames[0] == "debug"
    other = apply_tiebreak(choice, choice.top_frames[1])
    assert (other.frame, other.unsure) == (choice.top_frames[1], False)
    assert other.runner_up == "debug"
    far = next(name for name in FRAMES if name not in choice.top_frames)
    assert apply_tiebreak(choice, far) is choice
    assert apply_tiebreak(choice, "no such frame") is choice


def test_a_frame_without_examples_is_chosen_by_its_patterns(minilm: MiniLM, learned: FrameClassifier) -> None:
    own = FRAMES["task"].model_copy(
        update={"name": "sailing", "examples": (), "patterns": (FramePattern(match="reef", weight=0.9),)}
    )
    frames: dict[str, Frame] = {**FRAMES, "sailing": own}
    texts = ("When do we reef the sail?", "What is a sail made of?")
    got = [
        choose_frame(frames, t, vector=minilm.embed_now([t])[0], classifier=learned, session_frame=None).frame
        for t in texts
    ]
    assert got == ["sailing", "question"]


def test_what_the_floor_refuses_is_neutral_or_left_to_the_words(minilm: MiniLM, learned: FrameClassifier) -> None:
    unsure = [choice for t in UNCLEAR if (choice := chosen(t, minilm, learned)).unsure]
    assert unsure, "none of them is unclear any more"
    assert {choice.frame for choice in unsure} == {DEFAULT_FRAME}
    assert all(choice.confidence < MIN_CONFIDENCE and choice.reason.startswith("no frame has") for choice in unsure)
    # a vector that is missing leaves the words
    assert (
        choose_frame(FRAMES, "Should we sell the barn?", vector=None, classifier=learned, session_frame=None).frame
        == "decision"
    )


def test_the_time_of_choosing_grows_with_the_text(minilm: MiniLM, learned: FrameClassifier) -> None:
    text = "Hello, could you find out why the nightly export is empty since the update? " * 1_000
    vector = minilm.embed_now([strip_greeting(text[:1_000])])[0]

    def choose(size: int) -> FrameChoice:
        return choose_frame(FRAMES, text[:size], vector=vector, classifier=learned, session_frame=None)

    assert_near_linear(choose, len(text))
    assert choose(100).frame == "debug"


CLOSINGS = CASES["CLOSINGS"]
NO_CLOSINGS = CASES["NO_CLOSINGS"]


@pytest.mark.parametrize("text", CLOSINGS)
def test_the_end_of_a_problem_is_no_problem(text: str, minilm: MiniLM, learned: FrameClassifier) -> None:
    # S002-7
    alone = chosen(text, minilm, learned)
    assert (alone.frame, alone.unsure, alone.runner_up != alone.frame) == ("conversation", False, True)
    assert {chosen(text, minilm, learned, prior=frame).frame for frame in FRAMES} == set(FRAMES), "nothing flips"
    assert classify_intent(text) == "other" and is_follow_up(text)


def test_the_end_of_a_problem_is_told_from_work() -> None:
    assert [text for text in NO_CLOSINGS if says_resolved(text)] == []
    # nothing that was labelled as work is taken for the end of it
    for name in ("frames_dev.yaml", "frames.yaml"):
        labelled = cast("Labelled", read(name))
        work = [text for frame, texts in labelled.items() if frame != "conversation" for text in texts]
        assert not any(map(says_resolved, work)), name
    examples = [text for frame in FRAMES.values() if frame.name != "conversation" for text in frame.examples]
    assert not any(map(says_resolved, examples))

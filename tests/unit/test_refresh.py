"""Whether a context may stand."""

from dataclasses import replace

import pytest

from newton.cognition.refresh import ENOUGH, Coverage, Covering, How, Outlook, judged, leans, own_words

COVERED = Coverage(cosine=0.7, words=1.0, leaning=False)
CALM = Outlook(
    frame="question", before="question", forced=False, choosing=False, coverage=COVERED, tokens=2_000, cost=900
)


def test_what_covers_the_input_stands() -> None:
    # S002-14: otherwise the current context stands and nothing is rebuilt
    verdict = judged(CALM, ENOUGH)
    assert (verdict.how, verdict.because) == ("stood", "it covers the input (0.70)")


TRIGGERS: dict[str, tuple[Outlook, How, str]] = {
    "another frame": (replace(CALM, frame="debug"), "built", "the frame is debug now, not question"),
    "not covered": (
        replace(CALM, coverage=replace(COVERED, cosine=0.31)),
        "built",
        "nothing in it is close to the input (0.31, not 0.50)",
    ),
    "covered by meaning alone": (
        replace(CALM, coverage=replace(COVERED, words=0.5)),
        "built",
        "it says 50% of what the input speaks of, not 80%",
    ),
    "a decision point": (replace(CALM, choosing=True), "built", "a choice is to be made"),
    "token pressure": (replace(CALM, cost=2_400), "evicted", "it costs 2,400 tokens, and 2,000 are left for it"),
    "a fact superseded": (
        replace(CALM, stale=["a fact is superseded"]),
        "built",
        "not so any more: a fact is superseded",
    ),
    "lines out of view": (
        replace(CALM, entering=2),
        "updated",
        "it covers the input (0.70), and 2 more belong beside it",
    ),
    "too much that is new": (replace(CALM, entering=20, much="20 memories are new"), "built", "20 memories are new"),
}


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_each_trigger_has_its_consequence_and_its_reason(trigger: str) -> None:
    # S002-14: four triggers, and what is not so any more is never stated
    outlook, how, because = TRIGGERS[trigger]
    assert judged(outlook, ENOUGH) == (how, because)


def test_what_is_wrong_is_made_anew_even_when_something_milder_would_do() -> None:
    pressed = replace(CALM, cost=2_400, entering=3, stale=["the censors changed"])
    assert judged(pressed, ENOUGH).how == "built"


def test_at_the_bounds_it_is_covered() -> None:
    # S002-14: similarity < 0.5
    assert judged(replace(CALM, coverage=Coverage(cosine=0.5, words=0.8, leaning=False)), ENOUGH).how == "stood"
    strict = Covering(cosine=0.75, words=0.8)
    assert judged(CALM, strict).how == "built"


def test_without_an_embedding_the_words_decide() -> None:
    blind = replace(COVERED, cosine=None)
    assert judged(replace(CALM, coverage=blind), ENOUGH) == ("stood", "it covers the input")
    assert judged(replace(CALM, coverage=replace(blind, words=0.5)), ENOUGH).how == "built"


def test_an_input_that_leans_on_what_was_said_has_nothing_to_be_covered() -> None:
    leaning = Coverage(cosine=0.05, words=0.0, leaning=True)
    other = replace(CALM, coverage=leaning, frame="conversation")
    assert judged(other, ENOUGH).how == "stood", "thanks is said in any frame"
    assert judged(replace(other, forced=True), ENOUGH).how == "built", "but a person may say which"
    assert judged(replace(CALM, coverage=leaning), ENOUGH) == ("stood", "the input leans on what was said before")


@pytest.mark.parametrize(
    "text",
    [
        "Why?",
        "and why is that?",
        "Tell me more about that.",
        "ok, and the second one?",
        "Thanks!",
        "When does it leave?",
    ],
)
def test_what_leans(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize(
    "text", ["Who is Ana?", "Where is Ana?", "Is the ferry late?", "What does it cost in Oslo?", "Paris", "7 × 8?"]
)
def test_what_does_not_lean(text: str) -> None:
    assert not leans(text)


def test_words_are_compared_without_their_endings() -> None:
    assert own_words("Deployments failed, and Ana’s caches") == own_words("the deployment FAILS; Ana's cache!")


def test_thanks_are_no_change_of_frame() -> None:
    # an input that says nothing of its own tells nothing of how to look at it
    thanks = replace(CALM, frame="conversation", coverage=Coverage(cosine=0.1, words=0.0, leaning=True))
    assert judged(thanks, ENOUGH).how == "stood"

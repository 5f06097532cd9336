"""Whether a context may stand."""

from dataclasses import replace

import pytest

from newton.cognition.bundles.bundle import RefreshMethod
from newton.cognition.bundles.cache import DEFAULT_COVERAGE_THRESHOLDS, CoverageThresholds
from newton.cognition.session_context.policy import InputCoverage, RefreshInput, decide_refresh
from newton.text.words import extract_content_words, is_follow_up

COVERED = InputCoverage(cosine=0.7, word_share=1.0, is_follow_up=False, topic_cosine=0.6)
ELSEWHERE = InputCoverage(
    cosine=0.15, word_share=0.0, is_follow_up=False, topic_cosine=0.1, new_word_count=4, missing_cosine=0.3
)
CALM = RefreshInput(
    frame="question",
    previous_frame="question",
    is_frame_forced=False,
    is_choice_due=False,
    coverage=COVERED,
    max_tokens=2_000,
    used_tokens=900,
)


def test_what_covers_the_input_stands_and_what_is_wrong_is_made_anew() -> None:
    # S002-14
    # otherwise the current context stands and nothing is rebuilt
    verdict = decide_refresh(CALM, DEFAULT_COVERAGE_THRESHOLDS)
    assert (verdict.method, verdict.reason) == ("stood", "the context covers the input (cosine 0.70)")
    pressed = replace(CALM, used_tokens=2_400, added_count=3, stale_reasons=["the censors changed"])
    assert decide_refresh(pressed, DEFAULT_COVERAGE_THRESHOLDS).method == "built"
    # an input that says nothing of its own tells nothing of how to look at it
    thanks = replace(CALM, frame="conversation", coverage=InputCoverage(cosine=0.1, word_share=0.0, is_follow_up=True))
    assert decide_refresh(thanks, DEFAULT_COVERAGE_THRESHOLDS).method == "stood"
    assert extract_content_words("Deployments failed, and Ana’s caches") == extract_content_words(
        "the deployment FAILS; Ana's cache!"
    )


TRIGGERS: dict[str, tuple[RefreshInput, RefreshMethod, str]] = {
    "another frame": (replace(CALM, frame="debug"), "built", "the frame changed from question to debug"),
    "not covered": (
        replace(CALM, coverage=ELSEWHERE),
        "updated",
        "the input is on another topic (cosine 0.10 to the last inputs, minimum 0.22)",
    ),
    "too few of its words, without an embedder": (
        replace(CALM, coverage=replace(COVERED, cosine=None, word_share=0.5)),
        "updated",
        "the context has 50% of the input's words, minimum 80%",
    ),
    "a decision point": (replace(CALM, is_choice_due=True), "built", "the input asks for a choice"),
    "token pressure": (
        replace(CALM, used_tokens=2_400),
        "evicted",
        "the context has 2,400 tokens, and its budget is 2,000",
    ),
    "a fact superseded": (
        replace(CALM, stale_reasons=["a fact is superseded"]),
        "built",
        "stale: a fact is superseded",
    ),
    "lines out of view": (
        replace(CALM, added_count=2),
        "updated",
        "the context covers the input (cosine 0.70); items to add: 2",
    ),
    "too much that is new": (
        replace(CALM, added_count=20, search_reason="20 memories are new"),
        "updated",
        "20 memories are new",
    ),
    "another kind of request": (
        replace(CALM, coverage=ELSEWHERE, rebuild_reason="the request has other parameters than the last one"),
        "built",
        "the request has other parameters than the last one",
    ),
}


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_each_trigger_has_its_consequence_and_its_reason(trigger: str) -> None:
    # S002-14: four triggers, and what is not so any more is never stated
    outlook, how, because = TRIGGERS[trigger]
    verdict = decide_refresh(outlook, DEFAULT_COVERAGE_THRESHOLDS)
    assert (verdict.method, verdict.reason) == (how, because)
    assert verdict.is_searched == (how == "updated" and "items to add" not in because)


STAYS = {
    "like the last inputs": replace(ELSEWHERE, topic_cosine=0.22),
    "few new words": replace(ELSEWHERE, new_word_count=2),
    "an item is close and none is closer": replace(ELSEWHERE, cosine=0.5),
    "a follow-up": replace(ELSEWHERE, is_follow_up=True),
    "it refers back and memory has nothing close": replace(ELSEWHERE, refers_back=True),
}


@pytest.mark.parametrize("what", STAYS)
def test_an_input_leaves_the_topic_only_when_all_signs_say_so(what: str) -> None:
    # S002-14, S002-22
    assert decide_refresh(replace(CALM, coverage=STAYS[what]), DEFAULT_COVERAGE_THRESHOLDS).method == "stood"


def test_the_words_of_an_input_decide_where_vectors_do_not() -> None:
    # S002-14
    closer = replace(ELSEWHERE, cosine=0.55, missing_cosine=0.6, new_word_count=2)
    assert decide_refresh(replace(CALM, coverage=closer), DEFAULT_COVERAGE_THRESHOLDS).is_searched
    referring = replace(CALM, coverage=replace(closer, refers_back=True))
    assert decide_refresh(referring, DEFAULT_COVERAGE_THRESHOLDS).is_searched
    lenient = CoverageThresholds(min_topic_cosine=0.05)
    assert decide_refresh(replace(CALM, coverage=closer), lenient).method == "stood"
    # without an embedding the words decide
    blind = replace(COVERED, cosine=None)
    stands = decide_refresh(replace(CALM, coverage=blind), DEFAULT_COVERAGE_THRESHOLDS)
    assert (stands.method, stands.reason) == ("stood", "the context covers the input")
    lacking = replace(CALM, coverage=replace(blind, word_share=0.5))
    assert decide_refresh(lacking, DEFAULT_COVERAGE_THRESHOLDS).is_searched
    # an input that leans on what was said has nothing to be covered
    leaning = InputCoverage(cosine=0.05, word_share=0.0, is_follow_up=True)
    other = replace(CALM, coverage=leaning, frame="conversation")
    assert decide_refresh(other, DEFAULT_COVERAGE_THRESHOLDS).method == "stood", "thanks is said in any frame"
    assert decide_refresh(replace(other, is_frame_forced=True), DEFAULT_COVERAGE_THRESHOLDS).method == "built", (
        "but a person may say which"
    )
    leans = decide_refresh(replace(CALM, coverage=leaning), DEFAULT_COVERAGE_THRESHOLDS)
    assert (leans.method, leans.reason) == ("stood", "the input is a follow-up")


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
    assert is_follow_up(text)


@pytest.mark.parametrize(
    "text", ["Who is Ana?", "Where is Ana?", "Is the ferry late?", "What does it cost in Oslo?", "Paris", "7 × 8?"]
)
def test_what_does_not_lean(text: str) -> None:
    assert not is_follow_up(text)

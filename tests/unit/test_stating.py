"""A choice before it is recorded: what cannot be is refused, secrets are replaced, and its quality shows its parts."""

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.decision_codec import (
    DecisionReview,
    NewDecision,
    decode_draft,
    encode_body,
    encode_texts,
    format_full,
    format_line,
    format_prefix,
    format_short_forms,
    validate,
    validate_draft,
)
from newton.brain.drafts import QUALITY_PARTS, DecisionDraft, DecisionReason, score_parts, total_score
from newton.errors import InputError
from newton.memory.representations import MICRO_TOKENS, SUMMARY_TOKENS
from tests.db.deciding import REDIS, choice, reviewed
from tests.support import NOON, count

CHOICES = st.builds(
    DecisionDraft,
    description=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip),
    confidence=st.floats(0, 1),
    at=st.just(NOON),
    alternatives=st.lists(st.sampled_from(["wait", "ask"]), max_size=3).map(tuple),
    reasons=st.lists(
        st.builds(DecisionReason, st.sampled_from(["analysis", "analogy"]), st.just("so")), max_size=3
    ).map(tuple),
    tags=st.lists(st.sampled_from(["a", "b"]), max_size=3).map(tuple),
)


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_confidence_outside_its_range_is_refused(confidence: float) -> None:
    with pytest.raises(InputError, match=r"out of range.*0 to 1"):
        validate_draft(replace(REDIS, confidence=confidence))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"description": " "}, "description is empty"),
        ({"at": NOON.replace(tzinfo=None)}, "no time zone"),
        ({"look_again_at": NOON}, "not after the decision"),
        ({"stakes": "huge"}, "'huge' is not a valid stakes"),
        ({"reasons": (DecisionReason("guess", "so"),)}, "'guess' is not a valid kind of reason"),  # type: ignore[arg-type]  # the point
        ({"category": "a\nb"}, "category is not one line"),
        ({"tags": ("",)}, "tag is empty"),
        ({"alternatives": ("x",) * 51}, "51 alternatives are too many"),
    ],
)
def test_what_cannot_be_decided_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        validate_draft(replace(REDIS, **wrong))


def test_times_are_of_one_zone_and_an_outcome_before_its_decision_is_refused() -> None:
    early = reviewed(at=NOON - timedelta(seconds=1))
    with pytest.raises(InputError, match="is before the decision"):
        validate(NewDecision(draft=REDIS, review=early))
    assert validate(NewDecision(draft=REDIS, review=replace(early, at=NOON))).review
    # every time is kept in one zone
    east = timezone(timedelta(hours=14))
    given = replace(choice("x", at=NOON.astimezone(east)), look_again_at=(NOON + timedelta(days=1)).astimezone(east))
    kept = validate(NewDecision(draft=given, review=reviewed(at=(NOON + timedelta(hours=13)).astimezone(east))))
    times = (kept.draft.at, kept.draft.look_again_at, kept.review and kept.review.at)
    assert [at and at.utcoffset() for at in times] == [timedelta(0)] * 3
    assert validate_draft(replace(REDIS, category="gardening")).category == "gardening"


def test_secrets_are_replaced_in_every_text() -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    told = validate_draft(
        replace(
            REDIS,
            description=f"use {key}",
            context=key,
            expected=key,
            alternatives=(key,),
            reasons=(DecisionReason("analysis", key),),
            tags=(key,),
            reviewed_by=key,
        )
    )
    assert key not in str(told)


@given(CHOICES)
def test_a_choice_comes_back_from_its_record(given: DecisionDraft) -> None:
    kept = validate_draft(given)
    assert decode_draft(encode_body(NewDecision(draft=kept)), encode_texts(kept)) == kept


@given(CHOICES, st.one_of(st.none(), st.just(reviewed(lesson="It was slower than we had thought. " * 30))))
def test_the_short_forms_carry_outcome_and_confidence_and_stay_short(
    given: DecisionDraft, review: DecisionReview | None
) -> None:
    # S002-5, S002-6
    made = format_short_forms(given, review, count_tokens=count)
    for form in (made.micro, made.summary):
        assert form.startswith(format_prefix(given.confidence, review))
        assert "\n" not in form
    assert made.micro_tokens <= MICRO_TOKENS
    assert made.summary_tokens <= SUMMARY_TOKENS


def test_the_forms_of_a_decision_tell_what_why_and_what_became_of_it() -> None:
    # S002-5, S002-6
    made = format_short_forms(REDIS, None, count_tokens=count)
    assert made.micro == "[pending, 0.85] Use Redis for the session cache. Because: Reads outnumber writes a …"
    assert "It held last year (empirical)" in made.summary
    learnt = reviewed("partial", lesson="It evicts too early")
    assert format_short_forms(REDIS, learnt, count_tokens=count).summary.startswith(
        "[partial, 0.85] Use Redis for the session cache. Lesson: It evicts too early."
    )
    assert format_line(REDIS, learnt).endswith("Instead of: Memcached; Keep it in PostgreSQL.")
    full = format_full(REDIS, learnt)
    for said in (REDIS.description, REDIS.context, *REDIS.alternatives, "Outcome: partial", "It evicts too early"):
        assert said is not None
        assert said in full


def test_the_quality_of_a_choice_is_the_sum_of_its_parts() -> None:
    assert total_score(score_parts(REDIS)) == 1.0
    assert sum(worth for worth, _ in QUALITY_PARTS.values()) == pytest.approx(1)
    assert total_score(score_parts(choice("Yes"))) == 0
    assert score_parts(replace(REDIS, reasons=REDIS.reasons[:1]))["independent reasons"] == 0
    assert score_parts(replace(REDIS, alternatives=("wait",)))["alternatives"] == 0.1


@given(CHOICES)
def test_a_quality_is_in_its_range_and_more_reasons_never_lower_it(given: DecisionDraft) -> None:
    more = replace(given, reasons=(*given.reasons, DecisionReason("empirical", "seen")))
    assert 0 <= total_score(score_parts(given)) <= total_score(score_parts(more)) <= 1

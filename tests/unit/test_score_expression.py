"""Formulas of a person's own: what they can say, and that nothing they say does harm."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.scoring.score import FEATURE_NAMES, check_expression
from newton.cognition.scoring.score_expression import FUNCTIONS, compile_formula
from newton.errors import InputError

ONES: dict[str, float] = dict.fromkeys(map(str, FEATURE_NAMES), 1.0)


@pytest.mark.parametrize(
    ("said", "worth"),
    [
        ("similarity", 1),
        ("1 / (1 + age_h)", 0.5),
        ("importance * 1/(1+age_h) * ln(1+access_count)", 0.5 * math.log(2)),
        ("2 * recency - 0.5", 1.5),
        ("age_h < 24 ? 1.2 : 1", 1.2),
        ("max(similarity, 3) + min(1, 0.5)", 3.5),
        ("pow(2, 10) + sqrt(4) + abs(-1) + exp(0) + log10(100)", 1024 + 2 + 1 + 1 + 2),
        ("-1e3", -1000),
    ],
)
def test_what_a_formula_says_is_computed(said: str, worth: float) -> None:  # S000-F5
    check_expression(said)
    assert compile_formula(said, FEATURE_NAMES)(ONES) == pytest.approx(worth)


@pytest.mark.parametrize("said", ["1 / (age_h - 1)", "ln(0 * age_h)", "pow(10, 400 * age_h)", "sqrt(-age_h)"])
def test_what_is_no_number_counts_nothing(said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert compile_formula(said, FEATURE_NAMES)(ONES) == 0.0
    assert capfd.readouterr().err == "", "the library prints what its functions raise"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("", "is empty"),
        ("importence", "Did you mean 'importance'"),
        ("__import__('os')", "is not an available function"),
        ("log(age_h)", "Did you mean 'log10'"),
        ("'a' + 'b'", "A formula contains only numbers"),
        ("[1, 2].all(x, x > 0)", "A formula contains only numbers"),
        ("age_h > 1", "The expression fails"),
        ("true", "The expression fails"),
        ("age_h.size()", "is not an available function"),
        ("ln(1, 2)", "gives a number for none"),
        ("ln()", "gives a number for none"),
        ("1 +", "Invalid CEL expression"),
        ("(" * 30 + "1" + ")" * 30, "nested too deep"),
        ("+" * 30 + "1", "in a row"),
        ("1 + " * 200 + "1", "801 characters"),
        ("age_h // 2", "Put comments into the description"),
    ],
)
def test_what_cannot_be_a_score_is_refused(said: str, complaint: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as refused:
        check_expression(said)
    assert complaint in str(refused.value)
    assert capfd.readouterr().err == ""


PIECES = st.sampled_from(
    ["1", "0.5", "age_h", "importance", "ln(", "pow(", "(", ")", "+", "-", "*", "/", ",", "?", ":"]
)


@given(st.lists(PIECES, max_size=40).map(" ".join))
def test_whatever_is_said_is_refused_or_computed(said: str) -> None:
    try:
        compute = compile_formula(said, FEATURE_NAMES)
    except InputError:
        return
    assert math.isfinite(compute(ONES))


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.floats() | st.text(max_size=2), max_size=3))
def test_no_function_ever_fails(name: str, given_: list[object]) -> None:
    assert isinstance(FUNCTIONS[name](*given_), float)

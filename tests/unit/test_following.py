"""A message is found again by what stands before it and by its own words."""

from hypothesis import given
from hypothesis import strategies as st

from newton.agent.following import Sent, signed
from newton.providers.chat import Call

WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
ONE = st.builds(Sent, st.sampled_from(["user", "assistant"]), WORDS)
TALKS = st.lists(ONE, min_size=1, max_size=6)


@given(TALKS, TALKS)
def test_what_goes_on_from_the_same_words_begins_with_the_same_signs(talk: list[Sent], more: list[Sent]) -> None:
    assert signed([*talk, *more])[: len(talk)] == signed(talk)


@given(TALKS, st.data())
def test_an_edit_changes_every_sign_from_there_on_and_none_before(talk: list[Sent], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(talk) - 1))
    edited = [*talk[:place], talk[place]._replace(text=talk[place].text + "!"), *talk[place + 1 :]]
    before, after = signed(talk), signed(edited)
    assert before[:place] == after[:place]
    assert not set(before[place:]) & set(after[place:])


def test_how_a_client_writes_a_call_again_does_not_matter() -> None:
    one = Sent("assistant", "I look. ", (Call("c", "f", '{"a": 1, "b": 2}'),))
    same = Sent("assistant", "I look.", (Call("c", "f", '{"b":2,"a":1}'),))
    other = Sent("assistant", "I look.", (Call("c", "f", '{"b":2,"a":2}'),))
    assert signed([one]) == signed([same]) != signed([other])

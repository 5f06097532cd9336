"""A message is found again by what stands before it and by its own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.loop.history_match import IncomingMessage, fingerprint_messages
from newton.providers.chat import ToolCall

WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
ONE = st.builds(IncomingMessage, st.sampled_from(["user", "assistant"]), WORDS)
TALKS = st.lists(ONE, min_size=1, max_size=6)


@pytest.mark.slow
@given(TALKS, TALKS)
def test_what_goes_on_from_the_same_words_begins_with_the_same_signs(
    talk: list[IncomingMessage], more: list[IncomingMessage]
) -> None:
    assert fingerprint_messages([*talk, *more])[: len(talk)] == fingerprint_messages(talk)


@pytest.mark.slow
@given(TALKS, st.data())
def test_an_edit_changes_every_sign_from_there_on_and_none_before(
    talk: list[IncomingMessage], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(talk) - 1))
    edited = [*talk[:place], talk[place]._replace(text=talk[place].text + "!"), *talk[place + 1 :]]
    before, after = fingerprint_messages(talk), fingerprint_messages(edited)
    assert before[:place] == after[:place]
    assert not set(before[place:]) & set(after[place:])


def test_how_a_client_writes_a_call_again_does_not_matter() -> None:
    one = IncomingMessage("assistant", "I look. ", (ToolCall("c", "f", '{"a": 1, "b": 2}'),))
    same = IncomingMessage("assistant", "I look.", (ToolCall("c", "f", '{"b":2,"a":1}'),))
    other = IncomingMessage("assistant", "I look.", (ToolCall("c", "f", '{"b":2,"a":2}'),))
    assert fingerprint_messages([one]) == fingerprint_messages([same]) != fingerprint_messages([other])

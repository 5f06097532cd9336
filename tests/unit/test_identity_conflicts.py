"""Which lines of an identity say the same, and which cannot both be followed."""

import pytest

from newton.heart.identity.conflicts import LineRelation, compare_lines

SAME = [
    ("Call me Max", "I prefer to be called Max"),
    ("Call me Max", "Always refer to me as Max"),
    ("Never call me Max", "Don't ever call me Max"),
    ("Keep your answers short", "Keep answers short"),
    ("Always answer in French", "From now on answer in French"),
    ("Always answer in metric units", "Use metric units from now on, please"),
    ("Never use emojis", "No emojis from now on"),
    ("Call me Max", "You can call me Max, please"),
    ("I prefer short answers", "Keep your answers short"),
]
AGAINST = [
    ("Call me Max", "Never call me Max"),
    ("Call me Max", "Please don't call me Max"),
    ("Always answer in metric units", "Always answer in imperial units"),
    ("From now on answer in French", "Reply in German from now on"),
    ("Always use emojis", "Never use emojis"),
    ("Never give legal advice", "From now on give legal advice"),
    ("I prefer short answers", "I prefer detailed answers"),
    ("I like bullet points", "I don't like bullet points"),
    ("Call me Max", "Please call me Kate"),
    ("Always use tabs, never spaces", "Always use spaces, never tabs"),
    ("My pronouns are they/them", "My pronouns are she/her"),
]
NEITHER = [
    ("Call me Max", "Never call me Maximilian"),
    ("Never call me Max", "Never call me Maximilian"),
    ("Call me Max", "Always address security concerns"),
    ("Call me Max", "Always call functions by their full name"),
    ("Call me Max", "Refer to the manual"),
    ("Always use my name", "Always use your name"),
    ("Never suggest meat", "Never suggest fish"),
    ("Always cite the page", "Always cite the author"),
    ("Never answer in French", "Always answer in German"),
    ("I prefer short answers", "Give me long explanations of tax law"),
    ("Always answer in French", "Always sign letters in French with my full name"),
    ("Add a summary to every reply", "Add a table to every reply"),
    ("Answer in English", "Answer in French and German"),
    ("Always run the tests before you commit", "Always commit before you run the tests"),
    ("Call me Max", "My pronouns are they/them"),
    ("Honest before kind", "Kind before honest"),
    ("Be honest", "Be kind"),
    ("You must never delete files", "You must never send mails"),
    ("From now on, never use tables", "From now on, never use lists"),
    ("¤", "§"),
]
CASES = [
    (pair, stance_) for pairs, stance_ in ((SAME, "same"), (AGAINST, "against"), (NEITHER, None)) for pair in pairs
]


@pytest.mark.parametrize(("pair", "expected"), CASES)
def test_two_lines_are_the_same_against_each_other_or_neither(
    pair: tuple[str, str], expected: LineRelation | None
) -> None:
    assert compare_lines(*pair) == compare_lines(*pair[::-1]) == expected
    assert compare_lines(pair[0], pair[0]) == "same"

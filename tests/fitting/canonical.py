"""Pairs of plain sentences made from templates: what people try first. Drawn with a fixed seed."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PEOPLE = [
    *("Carla", "Ben", "Mei", "Tariq", "Olga", "Ana", "Jonas"),
    *("Priya", "Diego", "Fatima", "Lars", "Ngozi", "Yuki", "Sam"),
]
CITIES = ["Oslo", "Bergen", "Lyon", "Porto", "Kyoto", "Denver", "Accra", "Riga", "Cork", "Lima", "Turin", "Graz"]
COMPANIES = ["Acme", "Globex", "Siemens", "Initech", "the city council", "Nordbank", "a start-up", "Umbrella"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
DATES = ["3 May", "17 June", "1 October", "22 March", "the 9th", "the 30th"]
HOURS = ["9:00", "10:30", "2 pm", "3 pm", "noon", "8 am"]
NUMBERS = ["30", "50", "60", "100", "120", "200", "250", "500", "800", "1000"]
TOOLS = [
    *("MySQL", "PostgreSQL", "Redis", "MongoDB", "SQLite", "Jenkins"),
    *("GitLab CI", "Slack", "Teams", "Notion", "Jira", "Linear"),
]
VERSIONS = ["1.2", "2.0", "2.1", "3.9", "3.12", "14", "16", "18.04", "20.04", "22.04"]
CARS = ["Volvo", "Tesla", "Skoda", "Toyota", "Fiat", "bike", "motorbike"]
NAMES = ["Falcon", "Eagle", "Atlas", "Nimbus", "Orion", "Heron", "Juno"]
COLOURS = ["red", "blue", "green", "white", "black", "grey"]
JOBS = ["nurse", "teacher", "plumber", "designer", "developer", "baker", "lawyer"]
STATES = ["open", "closed", "paused", "broken", "working", "full", "empty"]


class EntityRelation(NamedTuple):
    """A relation with one value at a time: {s} is its subject, {o} the older value and {n} the newer one."""

    subjects: Sequence[str]
    statement: str
    values: Sequence[str]
    announced: Sequence[str]


SINGLE_VALUED = (
    EntityRelation(
        PEOPLE,
        "{s} lives in {n}.",
        CITIES,
        (
            "{s} moved to {n} last week.",
            "{s} has moved to {n}.",
            "{s} lives in {n} now.",
            "{s} no longer lives in {o}.",
            "{s} relocated to {n}.",
            "{s} left {o} for {n}.",
        ),
    ),
    EntityRelation(
        PEOPLE,
        "{s} works at {n}.",
        COMPANIES,
        (
            "{s} works at {n} now.",
            "{s} started a new job at {n}.",
            "{s} left {o}.",
            "{s} quit {o} and joined {n}.",
            "{s} switched from {o} to {n}.",
            "{s} no longer works at {o}.",
        ),
    ),
    EntityRelation(
        PEOPLE,
        "{s} is a {n}.",
        JOBS,
        ("{s} became a {n}.", "{s} is a {n} now.", "{s} is no longer a {o}.", "{s} works as a {n} these days."),
    ),
    EntityRelation(
        PEOPLE,
        "{s} drives a {n}.",
        CARS,
        (
            "{s} sold the {o} and bought a {n}.",
            "{s} sold the {o}.",
            "{s} drives a {n} now.",
            "{s} got rid of the {o}.",
            "{s} replaced the {o} by a {n}.",
        ),
    ),
    EntityRelation(
        ("The rate limit", "The timeout", "The budget", "The upload limit", "The quota", "My rent", "The fee"),
        "{s} is {n}.",
        NUMBERS,
        (
            "{s} was raised to {n}.",
            "{s} was lowered to {n}.",
            "{s} is now {n}.",
            "{s} went up to {n}.",
            "{s} has been changed to {n}.",
            "{s} was cut from {o} to {n}.",
            "{s} is {n} from now on.",
        ),
    ),
    EntityRelation(
        ("The deadline", "The meeting", "The release", "The launch", "The exam", "Our deploy day", "The party"),
        "{s} is on {n}.",
        (*DAYS, *DATES),
        (
            "{s} was moved to {n}.",
            "{s} was postponed to {n}.",
            "{s} is now on {n}.",
            "{s} slipped to {n}.",
            "{s} was brought forward to {n}.",
            "{s} was cancelled.",
            "{s} has been rescheduled for {n}.",
        ),
    ),
    EntityRelation(
        ("The standup", "The shop", "The class", "The clinic", "Dinner", "The show"),
        "{s} starts at {n}.",
        HOURS,
        (
            "{s} starts at {n} now.",
            "{s} was moved to {n}.",
            "{s} starts at {n} instead of {o}.",
            "{s} now begins at {n}.",
        ),
    ),
    EntityRelation(
        ("The project", "The cat", "The service", "The team", "Our repo", "The product"),
        "{s} is called {n}.",
        NAMES,
        (
            "{s} was renamed to {n}.",
            "{o} was renamed to {n}.",
            "{s} is called {n} now.",
            "{s} goes by {n} these days.",
            "{s} is no longer called {o}.",
        ),
    ),
    EntityRelation(
        ("the team lead", "the treasurer", "the owner of billing", "our coach", "my boss", "the project manager"),
        "{n} is {s}.",
        PEOPLE,
        (
            "{n} is now {s}.",
            "{n} took over from {o} as {s}.",
            "{n} replaced {o} as {s}.",
            "{o} is no longer {s}.",
            "{o} stepped down, {n} is {s} now.",
        ),
    ),
    EntityRelation(
        ("Our database", "The ticket tracker", "Our CI", "The cache", "The chat tool"),
        "{s} is {n}.",
        TOOLS,
        (
            "We switched to {n}.",
            "We migrated from {o} to {n}.",
            "We replaced {o} by {n}.",
            "We no longer use {o}.",
            "{s} is {n} now.",
            "We moved off {o}.",
        ),
    ),
    EntityRelation(
        ("The server", "The laptop", "The backend", "Production", "The worker"),
        "{s} runs version {n}.",
        VERSIONS,
        (
            "{s} was upgraded to {n}.",
            "{s} runs {n} now.",
            "{s} was bumped from {o} to {n}.",
            "{s} went back to {n}.",
            "We downgraded {s} to {n}.",
        ),
    ),
    EntityRelation(
        ("The door", "Our logo", "Ana's hair", "The front wall", "The bus"),
        "{s} is {n}.",
        COLOURS,
        ("{s} is {n} now.", "{s} was painted {n}.", "{s} is no longer {o}.", "{s} turned {n}."),
    ),
    EntityRelation(
        ("The pool", "The ticket", "The road", "The printer", "The position"),
        "{s} is {n}.",
        STATES,
        ("{s} is {n} again.", "{s} is {n} now.", "{s} is no longer {o}.", "{s} has been {n} since Monday."),
    ),
    EntityRelation(
        ("phone number", "email address", "password", "address", "shoe size", "favourite song"),
        "My {s} is {n}.",
        ("555-1234", "555-9876", "a@x.org", "lee@y.net", "tulip-42", "Elm Road 4", "41", "43", "Imagine", "Hallelujah"),
        ("My new {s} is {n}.", "I changed my {s} to {n}.", "My {s} is now {n}.", "My {s} changed, it's {n}."),
    ),
)

STATES_OF_A_PERSON = (
    ("{s} is vegetarian.", "{s} eats meat again."),
    ("{s} smokes.", "{s} quit smoking."),
    ("{s} is single.", "{s} got engaged."),
    ("{s} is engaged.", "{s} got married in May."),
    ("{s} is married.", "{s} got divorced."),
    ("{s} is pregnant.", "{s} had the baby."),
    ("{s} is ill.", "{s} has recovered."),
    ("{s} drinks coffee every morning.", "{s} stopped drinking coffee."),
    ("{s} has a dog.", "{s}'s dog died."),
    ("{s} is looking for a flat.", "{s} found a flat."),
    ("{s} goes to the gym on Mondays.", "{s} cancelled the gym membership."),
    ("{s} plays the piano.", "{s} gave up the piano."),
    ("{s} wants to learn Dutch.", "{s} is no longer interested in Dutch."),
    ("{s} is on parental leave.", "{s} is back from parental leave."),
)

BOTH_TRUE = (
    ("{s} likes {a}.", "{s} likes {b}.", ["tea", "coffee", "jazz", "hiking", "chess", "sushi", "cats"]),
    ("{s} speaks {a}.", "{s} speaks {b}.", ["French", "Italian", "Arabic", "Dutch", "Korean"]),
    ("{s} has a {a}.", "{s} has a {b}.", ["cat", "dog", "brother", "sister", "boat", "piano", "garden"]),
    ("{s} visited {a}.", "{s} visited {b}.", CITIES),
    ("{s} plays {a}.", "{s} plays {b}.", ["chess", "tennis", "guitar", "football", "the flute"]),
    ("{s} can {a}.", "{s} can {b}.", ["swim", "cook", "weld", "code", "sail"]),
    ("{s} reads {a}.", "{s} also reads {b}.", ["novels", "poetry", "comics", "essays"]),
    ("{s} knows {a}.", "{s} knows {b}.", PEOPLE),
    ("{s} lives in {a}.", "{s} works in {b}.", CITIES),
    ("{s} lives in {a}.", "{s} was born in {b}.", CITIES),
    ("{s} lives in {a}.", "{s} used to live in {b}.", CITIES),
    ("{s} lives in {a}.", "{s} wants to move to {b}.", CITIES),
    ("{s} lives in {a}.", "{s} flew to {b} last week.", CITIES),
    ("{s} lives in {a}.", "{s}'s sister moved to {b}.", CITIES),
    ("{s} works at {a}.", "{s}'s brother works at {b}.", COMPANIES),
    ("We use {a} for the shop.", "We use {b} for the blog.", TOOLS),
    ("Staging runs {a}.", "Production runs {b}.", VERSIONS),
    ("The car is {a}.", "The bike is {b}.", COLOURS),
    ("The web app is {a}.", "The mobile app is {b}.", STATES),
    ("The gym opens at {a}.", "The gym closes at {b}.", HOURS),
    ("The exam is on {a}.", "The party is on {b}.", DAYS),
    ("The car is {a}.", "The car is {b}.", ["fast", "red", "old", "electric", "small"]),
    ("{s} is {a}.", "{s} is {b}.", ["tall", "funny", "left-handed", "shy", "Danish", "vegan"]),
    ("{s} is a {a}.", "{s} is a {b}.", ["nurse", "mother", "good cook", "early riser", "Leeds fan"]),
    ("The API is written in {a}.", "The API has {b} endpoints.", ["12", "40", "Go", "Rust"]),
)


def draw_pairs(seed: int = 7) -> Iterator[dict[str, str]]:
    """Yield pairs as those of the data files, about as many updates as compatible ones."""
    draw = random.Random(seed)
    for relation in SINGLE_VALUED:
        yield from _draw_updates(draw, relation)
        yield from _draw_other_subjects(draw, relation)
    for older, newer in STATES_OF_A_PERSON:
        for name in draw.sample(PEOPLE, 3):
            yield _pair("announced", older.format(s=name), newer.format(s=name))
            other = draw.choice([one for one in PEOPLE if one != name])
            yield _pair("compatible", older.format(s=name), newer.format(s=other))
    for older, newer, values in BOTH_TRUE:
        for _ in range(8):
            (one, other), name = draw.sample(values, 2), draw.choice(PEOPLE)
            yield _pair("compatible", older.format(s=name, a=one), newer.format(s=name, b=other))


def _draw_updates(draw: random.Random, relation: EntityRelation) -> Iterator[dict[str, str]]:
    for announced in relation.announced:
        for _ in range(3):
            subject, (older, newer) = draw.choice(relation.subjects), draw.sample(relation.values, 2)
            yield _pair("announced", *_fill(relation.statement, announced, subject, older, newer))
    for _ in range(6):
        subject, (older, newer) = draw.choice(relation.subjects), draw.sample(relation.values, 2)
        yield _pair("plain_same", *_fill(relation.statement, relation.statement, subject, older, newer))


def _draw_other_subjects(draw: random.Random, relation: EntityRelation) -> Iterator[dict[str, str]]:
    """Yield a statement about one subject, and an announced change of another."""
    for announced in relation.announced:
        (first, second), (older, newer) = draw.sample(relation.subjects, 2), draw.sample(relation.values, 2)
        if "{s}" in announced and relation.statement.startswith("{s}"):
            changed = announced.format(s=second, o=draw.choice(relation.values), n=newer)
            yield _pair("compatible", relation.statement.format(s=first, n=older), changed)


def _fill(statement: str, announced: str, subject: str, older: str, newer: str) -> tuple[str, str]:
    text = announced.format(s=subject, o=older, n=newer)
    return _capitalize(statement.format(s=subject, n=older)), _capitalize(text)


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]


def _pair(group: str, older: str, newer: str) -> dict[str, str]:
    expect = "compatible" if group == "compatible" else "update"
    return {"older": older, "newer": newer, "group": group, "expect": expect}

"""Synthetic tool outputs and pasted texts, each with one wanted line at a random place and a question for it.

The lines around it use the same vocabulary: logs and test outputs have many other errors. The same seed gives the same
texts.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from newton.content.yaml_source import parse_trusted

TrialKind = Literal["log", "tests", "csv", "source", "contract"]
LINES: Mapping[TrialKind, int] = {"log": 6_000, "tests": 3_000, "csv": 5_000, "source": 2_500, "contract": 1_500}
SEED = 20_262
ODD_WORDS, MIN_ODD_CHARS = 8, 3  # of an odd line


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactTrial:
    """A long text of a `kind` with one wanted `line`, a `question` for it, and the `search` that a model would make.

    `style` is "word" if the question has a content word of the line, else "meaning".
    """

    kind: TrialKind
    style: Literal["word", "meaning"]
    line: str
    question: str
    search: str
    text: str
    number: int  # of the wanted line, from 1


def generate_trials(*, seed: int = SEED, odd_lines: int = 0) -> list[ArtifactTrial]:
    """Generate the 60 trials, twelve of each kind.

    `odd_lines` of each text consist of random words, so that the wanted line is not the only one with rare words.
    """
    material: Mapping[TrialKind, Sequence[Mapping[str, Any]]] = parse_trusted(
        files("newton.bench.trials").joinpath("artifact_trials.yaml").read_text(encoding="utf-8")
    )
    rng = random.Random(seed)
    return [_generate_trial(rng, kind, entry, odd_lines) for kind, entries in material.items() for entry in entries]


def _generate_trial(rng: random.Random, kind: TrialKind, entry: Mapping[str, Any], odd_lines: int) -> ArtifactTrial:
    make_line, count = _MAKERS[kind], LINES[kind]
    lines = [make_line(rng, number) for number in range(count)]
    place = rng.randrange(count // 20, count - count // 20)
    odd = random.Random(place)  # of its own, so that the other lines are the same with and without odd ones
    for number in odd.sample(range(count), odd_lines):
        lines[number] = " ".join(odd.sample(_load_words(), ODD_WORDS))
    line = f"{_log_time(place)} {entry['line']}" if kind == "log" else entry["line"]
    lines[place] = line
    head = {"csv": ["order,name,email,city,state,amount,date"], "tests": ["===== test session starts ====="]}
    lines = [*head.get(kind, []), *lines]
    return ArtifactTrial(
        kind=kind,
        style=entry["style"],
        line=line,
        question=entry["question"],
        search=entry["search"],
        text="\n".join(lines) + "\n",
        number=lines.index(line) + 1,
    )


@cache
def _load_words() -> list[str]:
    """Return the whole words of the vocabulary of the shipped embedding model."""
    vocabulary = files("newton.providers.data").joinpath("minilm_vocab.txt").read_text(encoding="utf-8")
    return [word for word in vocabulary.split() if word.isascii() and word.isalpha() and len(word) > MIN_ODD_CHARS]


def _log_time(number: int) -> str:
    return f"2026-03-11T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number * 37 % 1000:03}Z"


def _fill(rng: random.Random, template: str) -> str:
    return template.format(
        n=rng.randrange(10_000), ms=rng.randrange(3, 900), host=f"{rng.choice(_HOSTS)}-{rng.randrange(9)}",
        id=f"{rng.getrandbits(48):012x}", noun=rng.choice(_NOUNS), other=rng.choice(_NOUNS), verb=rng.choice(_VERBS),
        first=rng.choice(_FIRST), last=rng.choice(_LAST), city=rng.choice(_CITIES), state=rng.choice(_STATES),
        party=rng.choice(_PARTIES), day=f"{rng.randrange(1, 29):02}", month=f"{rng.randrange(1, 13):02}",
    )  # fmt: skip


def _log_line(rng: random.Random, number: int) -> str:
    weights = [30, 25, 15, 10, 8, 5, 4, 3, 2, 1]
    return f"{_log_time(number)} {_fill(rng, rng.choices(_LOG, weights)[0])}"


def _test_line(rng: random.Random, number: int) -> str:
    return _fill(rng, rng.choices(_TESTS, [60, 10, 3, 2, 2, 1])[0])


def _csv_line(rng: random.Random, number: int) -> str:
    row = "{first} {last},{first}.{last}@{noun}.example,{city},{state},{n}.00,2026-{month}-{day}"
    return f"{10_000 + number}," + _fill(rng, row)


def _source_line(rng: random.Random, number: int) -> str:
    return _fill(rng, _SOURCE[number % len(_SOURCE)] if rng.random() < 0.8 else rng.choice(_SOURCE))


def _contract_line(rng: random.Random, number: int) -> str:
    if number % 12 == 0:
        return f"{number // 12 + 1}. {rng.choice(_NOUNS).capitalize()} and {rng.choice(_NOUNS)}"
    return _fill(rng, rng.choice(_CONTRACT))


_PARTIES = ["Supplier", "Customer"]
_HOSTS = ["edge", "worker", "queue", "ledger", "mail", "search"]
_NOUNS = [
    "invoice",
    "shipment",
    "ledger",
    "account",
    "parcel",
    "customer",
    "report",
    "session",
    "queue",
    "index",
    "template",
    "device",
    "document",
    "address",
    "schedule",
    "catalogue",
    "archive",
    "voucher",
    "meter",
    "ticket",
]
_VERBS = ["updated", "checked", "loaded", "moved", "stored", "merged", "renamed", "counted", "filtered", "copied"]
_FIRST = [
    "Ana",
    "Boris",
    "Carla",
    "Dmitri",
    "Elif",
    "Farid",
    "Greta",
    "Hugo",
    "Ilse",
    "Jonas",
    "Katya",
    "Luis",
    "Mara",
    "Nils",
    "Olga",
    "Petra",
]
_LAST = [
    "Abel",
    "Brandt",
    "Costa",
    "Duval",
    "Ekman",
    "Ferro",
    "Graf",
    "Hansen",
    "Ito",
    "Jansen",
    "Keller",
    "Lopez",
    "Meyer",
    "Nagy",
    "Orlov",
    "Petrov",
]
_CITIES = ["Paris", "Lyon", "Ghent", "Bremen", "Graz", "Padua", "Vigo", "Oslo", "Malmo", "Krakow"]
_STATES = ["paid", "shipped", "delivered", "paid", "shipped", "delivered", "packed"]
_LOG = (
    "DEBUG {host} heartbeat {n} in {ms} ms",
    "INFO  GET /api/{noun}/{n} 200 {ms} ms request={id}",
    "INFO  {noun} {n} {verb} by {host}",
    "DEBUG cache miss for {noun}:{id}",
    "INFO  queue depth {n}, oldest message {ms} s",
    "WARN  slow query on {noun}: {ms} ms (request={id})",
    "ERROR timeout after {ms} ms while {noun} {n} was {verb} (request={id})",
    "WARN  retry {n} of call to {host}: connection reset by peer",
    "ERROR failed to load {noun} {id}: not found",
    "ERROR payment gateway returned 502 for {noun} {n}",
)
_TESTS = (
    "tests/{noun}/test_{other}.py::test_{noun}_is_{verb}[{n}] PASSED",
    "tests/{noun}/test_{other}.py::test_{noun}_and_{other}_are_{verb} PASSED [{ms}%]",
    "FAILED tests/{noun}/test_{other}.py::test_{verb}_{n} - AssertionError: {n} != {ms}",
    "E   ValueError: the {noun} {n} was not {verb}",
    "SKIPPED [1] tests/{noun}/test_{other}.py:{ms}: needs the network",
    "ERROR tests/{noun}/test_{other}.py::test_{verb} - TimeoutError: {ms} s",
)
_SOURCE = (
    "    def {verb}_{noun}(self, {other}: int) -> str:",
    '        """Return the {noun} that was {verb} with the {other}."""',
    "        {noun} = self.{other}s.get({n})",
    "        if {noun} is None:",
    "            raise LookupError(f'no {noun} {{{other}}}')",
    "        log.debug('{noun} {verb}', {other}=self.{other}_id, size={ms})",
    "        for {noun} in self.load_{other}s(limit={n}):",
    "            {noun}.{verb}_at = self.clock.now()",
    "            total += {noun}.{other}_count",
    "        return self.render({noun}, {other}={n})",
    "",
    "    {noun}_{other}_limit: int = {n}",
)
_CONTRACT = (
    "The {party} delivers each {noun} together with the {other} that belongs to it.",
    "The {party} keeps the {noun} available on working days from {day} to {month} hours.",
    "Changes of the {noun} are agreed in writing before the {other} is {verb}.",
    "The {noun} named in annex {day} is {verb} by the {party} at its own cost.",
    "If the {noun} is incomplete, the {party} may ask for another {other} within {day} days.",
    "The {party} names a person who answers questions about the {noun} and the {other}.",
    "Drafts of the {noun} are {verb} in two copies, one for each party.",
    "The {party} informs the other party about each {noun} that was {verb} in month {month}.",
    "A {noun} counts as accepted when the {other} is {verb} without reservation.",
    "The {noun} remains property of the {party} until the {other} is {verb}.",
)
_MAKERS: Mapping[TrialKind, Callable[[random.Random, int], str]] = {
    "log": _log_line,
    "tests": _test_line,
    "csv": _csv_line,
    "source": _source_line,
    "contract": _contract_line,
}

"""Generated stores of beliefs about people and projects, with questions of which the right belief is known."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TEMPLATES = Path(__file__).parent / "belief_templates.yaml"
KNOWN_SHARE = 0.6  # of the attributes of a person or project; the others are asked for, and nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefQuestion:
    """A question, and the refs of the beliefs that answer it; none if the store has no answer."""

    text: str
    right: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefStore:
    """Beliefs by ref, and questions on them. Half of the questions without an answer ask for another person's fact."""

    facts: Mapping[str, str]
    questions: tuple[BeliefQuestion, ...]


def generate_store(seed: int, *, names: int = 9, questions: int = 80) -> BeliefStore:
    """Generate a store of up to 300 beliefs. The same seed gives the same store."""
    material: Mapping[str, Any] = yaml.safe_load(TEMPLATES.read_text(encoding="utf-8"))
    rng = random.Random(seed)
    facts, asked = dict[str, str](), list[BeliefQuestion]()
    for group, pool in (("person", material["people"]), ("project", material["projects"])):
        for name in rng.sample(pool, min(names, len(pool))):
            for ref, fact, question in _generate_beliefs(rng, material[group], name):
                facts |= {ref: fact} if fact else {}
                asked.append(BeliefQuestion(text=question, right=frozenset([ref] if fact else [])))
    shuffled = rng.sample(sorted(facts), len(facts))
    known, unknown = ([q for q in asked if bool(q.right) is answered] for answered in (True, False))
    chosen = [*rng.sample(known, min(questions, len(known))), *rng.sample(unknown, min(questions // 2, len(unknown)))]
    return BeliefStore(facts={ref: facts[ref] for ref in shuffled[:300]}, questions=tuple(_drop_cut(chosen, shuffled)))


def _generate_beliefs(
    rng: random.Random, attributes: Mapping[str, Any], name: str
) -> Iterator[tuple[str, str | None, str]]:
    """Yield a ref, the belief or None if nothing is known, and a question for each attribute."""
    for attribute, own in attributes.items():
        values = {"n": name, "v": rng.choice(own["values"])}
        fact = rng.choice(own["says"]).format(**values) if rng.random() < KNOWN_SHARE else None
        yield f"{name}/{attribute}", fact, rng.choice(own["asks"]).format(**values)


def _drop_cut(questions: list[BeliefQuestion], refs: list[str]) -> Iterator[BeliefQuestion]:
    """Yield the questions whose answers are among the first 300 beliefs, and those without an answer."""
    stored = set(refs[:300])
    yield from (question for question in questions if question.right <= stored)

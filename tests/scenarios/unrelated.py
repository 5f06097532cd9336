"""A life that has nothing to do with the question: made-up lines to import, many, various, and the same each time."""

import itertools
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

# Matters of other parts of a life, each with things that belong to it.
MATTERS = {
    "garden": ["tomatoes", "the hedge", "the compost", "the rain barrel", "the roses", "the lawn mower", "seedlings"],
    "kitchen": ["the oven", "sourdough", "the freezer", "the pasta machine", "knives", "the spice rack", "olive oil"],
    "hiring": ["the interview panel", "the job posting", "references", "the trial day", "salary bands", "referrals"],
    "payroll": ["overtime", "travel expenses", "the pension scheme", "sick notes", "bonus payments", "tax classes"],
    "marketing": ["the newsletter", "the trade fair", "the brochure", "the slogan", "the press release", "coupons"],
    "fleet": ["the delivery van", "winter tyres", "the leasing contract", "the charging point", "the parking deck"],
    "warehouse": ["the pallet racks", "the forklift", "the packing station", "returns", "the stocktaking", "labels"],
    "school": ["the parents' evening", "the timetable", "the school trip", "homework", "the choir", "swimming lessons"],
    "travel": ["the night train", "the hotel in Lisbon", "the visa", "the rental car", "the ferry", "travel insurance"],
    "health": [
        "the physiotherapist",
        "allergy tests",
        "the vaccination",
        "new glasses",
        "the dentist",
        "running shoes",
    ],
    "music": ["the cello", "the rehearsal room", "the concert", "sheet music", "the piano tuner", "the choir tour"],
    "building": ["the roof", "the scaffolding", "the heating", "the windows", "the staircase", "the fire alarm"],
    "law": ["the tenancy agreement", "the notary", "the trademark", "the court date", "the settlement", "the will"],
    "sports": [
        "the marathon",
        "the climbing wall",
        "the rowing club",
        "the referee",
        "the league table",
        "the trainer",
    ],
    "design": ["the logo", "the colour palette", "the typeface", "the icons", "the poster", "the print proofs"],
    "frontend": ["the login page", "the date picker", "the dark theme", "the sign-up form", "the carousel", "tooltips"],
    "mobile": ["the push messages", "the app icon", "the camera permission", "the tablet layout", "the store listing"],
    "support": ["the ticket backlog", "the hotline", "canned answers", "the escalation list", "the refund policy"],
    "finance": ["the quarterly report", "the invoice run", "the credit line", "dunning letters", "the exchange rate"],
    "farm": ["the goats", "the hay barn", "the cheese dairy", "the well", "the fence", "the tractor", "the vet"],
}
PEOPLE = ["Ana", "Ben", "Chloe", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaia", "Lars", "Mona"]
PLACES = ["Porto", "Bergen", "Graz", "Tartu", "Leeds", "Lyon", "Ghent", "Cork", "Turin", "Malmo", "Brno", "Vigo"]
TIMES = ["on Monday", "before Easter", "in the second week of May", "after the holidays", "by noon", "every other week"]
VERBS = ["repair", "replace", "postpone", "move", "order", "sell", "simplify", "outsource", "photograph", "insure"]

FACTS = [
    "{person} takes care of {thing} {time}.",
    "{thing} for the {matter} in {place} costs {n} euros.",
    "{person} moved {thing} from {place} to {other} {time}.",
    "{n} people asked about {thing} in {place}.",
    "{thing} is {n} years old and belongs to {person}.",
    "The {matter} in {place} is run by {person}.",
    "{person} prefers {thing} from {place}.",
]
DECISIONS = [
    "{Verb} {thing} of the {matter} in {place} {time}.",
    "Let {person} {verb} {thing} in {place}.",
    "{Verb} {thing} rather than what {person} proposed for the {matter}, with {n} euros at most.",
]
EPISODES = [
    "{person} and {friend} spent the day in {place} to {verb} {thing}. It took {n} hours and rained all afternoon.",
    "The {matter} team met in {place}. {person} wanted to {verb} {thing}, {friend} did not, and they voted.",
]


class _Life:
    """Sentences without repetition."""

    def __init__(self, seed: int) -> None:
        self._chance, self._said = random.Random(seed), set[str]()

    def say(self, forms: list[str]) -> str:
        while True:
            matter = self._chance.choice(sorted(MATTERS))
            person, friend = self._chance.sample(PEOPLE, 2)
            place, other = self._chance.sample(PLACES, 2)
            verb = self._chance.choice(VERBS)
            said = self._chance.choice(forms).format(
                matter=matter, thing=self._chance.choice(MATTERS[matter]), person=person, friend=friend, place=place,
                other=other, verb=verb, Verb=verb.capitalize(), time=self._chance.choice(TIMES), n=self.number(400),
            )  # fmt: skip
            said = said[0].upper() + said[1:]
            if said not in self._said:
                self._said.add(said)
                return said

    def number(self, most: int) -> int:
        return self._chance.randrange(2, most)

    def happened(self, sure: float) -> str:
        return "success" if self._chance.random() < sure else "failure"

    def sure(self) -> float:
        return self._chance.choice([0.6, 0.7, 0.8, 0.9, 0.95])

    def matter(self) -> str:
        return self._chance.choice(sorted(MATTERS))


def lines(
    *, decisions: int, facts: int, episodes: int, procedures: int, censors: int, now: datetime, seed: int = 8_800
) -> Iterator[dict[str, Any]]:
    """Import lines of a year before `now`, spread evenly; half of the decisions are reviewed."""
    life = _Life(seed)

    def ago(i: int, of: int) -> datetime:
        return now - timedelta(days=365 * (i + 1) / (of + 1))

    for i in range(facts):
        yield {"type": "fact", "ref": f"f{i}", "content": life.say(FACTS), "at": ago(i, facts).isoformat()}
    for i in reversed(range(decisions)):
        sure, at = life.sure(), ago(i, decisions)
        yield {
            "type": "decision", "ref": f"d{i}", "description": life.say(DECISIONS), "confidence": sure,
            "reasons": [{"kind": "analysis", "text": "It was talked over."}], "category": life.matter(),
            "at": at.isoformat(), "outcome": life.happened(sure), "reviewed_at": (at + timedelta(hours=5)).isoformat(),
        }  # fmt: skip
    for i in range(episodes):
        title = f"{life.matter().capitalize()}, day {i}"
        yield {
            "type": "episode", "ref": f"e{i}", "title": title, "content": life.say(EPISODES),
            "at": ago(i, episodes).isoformat(),
        }  # fmt: skip
    for i, verb in zip(range(procedures), itertools.cycle(VERBS)):  # one of them has no end
        yield {
            "type": "procedure", "ref": f"p{i}", "name": f"{verb}-{life.matter()}-{i}", "domain": life.matter(),
            "description": life.say(FACTS), "steps": [life.say(DECISIONS), life.say(DECISIONS)],
        }  # fmt: skip
    for i in range(censors):
        yield {
            "type": "censor", "ref": f"c{i}", "trigger": f"{life.matter()} number {i}", "reason": life.say(FACTS),
            "domain": ("social", "learning", "scheduling")[i % 3],
        }  # fmt: skip

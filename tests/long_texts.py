"""Synthetic documents and long facts, each with one marked sentence at a random place and a question for it.

The question shares no content word with the marked sentence. The same seed gives the same texts.
"""

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from newton.content.yaml_files import parse_trusted
from newton.runtime.transfer.import_source import read_file
from newton.runtime.wiring import AgentServices

LongTextKind = Literal["document", "fact"]
DOCUMENT_WORDS, FACT_WORDS = 700, 250
SENTENCES_PER_PARAGRAPH = 6
MATERIAL = Path(__file__).parent / "data" / "long_texts.yaml"
STATED_AT = "2026-01-05T09:00:00Z"  # of every fact


@dataclass(frozen=True, slots=True, kw_only=True)
class LongText:
    """A text of several hundred words about `subject`. `marked_sentence` answers `question`."""

    kind: LongTextKind
    ref: str
    subject: str
    content: str
    marked_sentence: str
    question: str

    @property
    def import_line(self) -> str:
        """Return the text as a line of an import file."""
        handbook = {"title": f"Handbook of {self.subject}", "format": "text"}
        own = handbook if self.kind == "document" else {"at": STATED_AT}
        return json.dumps({"type": self.kind, "ref": self.ref, "content": self.content, **own})


async def import_texts(newton: AgentServices, texts: Sequence[LongText]) -> None:
    """Import the texts with their vectors."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.ndjson"
        path.write_text("".join(f"{text.import_line}\n" for text in texts), encoding="utf-8")
        report = await newton.importer().run(read_file(path))
    assert (report.rejections, report.embedder_error) == ([], None)


def generate_long_texts(count: int, *, seed: int) -> list[LongText]:
    """Generate `count` texts, documents and facts in turn, each about a place of its own."""
    material: Mapping[str, Any] = parse_trusted(MATERIAL.read_text(encoding="utf-8"))
    rng = random.Random(seed)
    places = [f"{first} {last}" for first in material["place_first"] for last in material["place_last"]]
    subjects = [places[n % len(places)] + f" {n // len(places) + 1}" * (n >= len(places)) for n in range(count)]
    rng.shuffle(subjects)
    return [_generate_text(rng, material, number, subject) for number, subject in enumerate(subjects)]


def _generate_text(rng: random.Random, material: Mapping[str, Any], number: int, subject: str) -> LongText:
    kind: LongTextKind = "fact" if number % 2 else "document"
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < (FACT_WORDS if kind == "fact" else DOCUMENT_WORDS):
        sentences.append(_fill_template(rng, material, rng.choice(material["fillers"]), subject))
    mark = material["marks"][number // 2 % len(material["marks"])]
    marked = _fill_template(rng, material, mark["says"], subject)
    sentences.insert(rng.randint(0, len(sentences)), marked)
    opening = f"This is about {subject}."
    return LongText(
        kind=kind,
        ref=f"text{number}",
        subject=subject,
        content=_join_sentences([opening, *sentences], kind),
        marked_sentence=marked,
        question=f"{mark['asks']} It is about {subject}.",
    )


def _join_sentences(sentences: Sequence[str], kind: LongTextKind) -> str:
    if kind == "fact":
        return " ".join(sentences)
    starts = range(0, len(sentences), SENTENCES_PER_PARAGRAPH)
    return "\n\n".join(" ".join(sentences[n : n + SENTENCES_PER_PARAGRAPH]) for n in starts)


def _fill_template(rng: random.Random, material: Mapping[str, Any], template: str, subject: str) -> str:
    values = {
        "person": rng.choice(material["people"]),
        "colour": rng.choice(material["colours"]),
        "number": rng.randint(11, 98),
        "place": subject,
        "adjective": rng.choice(material["adjectives"]),
        "thing": rng.choice(material["things"]),
        "done": rng.choice(material["dones"]),
        "group": rng.choice(material["groups"]),
        "room": rng.choice(material["rooms"]),
        "month": rng.choice(material["months"]),
    }
    return template.format(**values)

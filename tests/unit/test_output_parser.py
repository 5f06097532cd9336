"""Answers of models that are not what was asked for: each valid item is kept, the rest is named."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pytest
import yaml
from pydantic import BaseModel, Field, StringConstraints, create_model

from newton.cognition.frames.selection import FrameOutput
from newton.dialogue.compaction.llm_summary import SummaryOutput
from newton.heart.reconciliation.prompt import ShortenedOutput
from newton.providers.model_output.lenient_json import find_json_values
from newton.providers.model_output.output_parser import CUT_OFF, parse_output

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent.parent / "data" / "malformed_answers.yaml").read_text(encoding="utf-8")
)
Relation = Literal["same", "update", "compatible", "unsure"]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


class Fact(BaseModel):
    content: Line
    subject: Name | None = None
    attribute: Name | None = None


class Procedure(BaseModel):
    name: Name
    description: Line
    steps: list[Line] = Field(min_length=1, max_length=20)


class Censor(BaseModel):
    trigger: Line
    reason: Line


class ExtractionOutput(BaseModel):
    """A large answer: optional texts, and lists of objects."""

    title: Name | None = None
    summary: Line | None = None
    outcome: Literal["success", "partial", "failure"] | None = None
    facts: list[Fact] = Field(default=[], max_length=20)
    procedures: list[Procedure] = Field(default=[], max_length=20)
    censors: list[Censor] = Field(default=[], max_length=20)


class PairsOutput(BaseModel):
    relations: list[Relation]


def build_pair_schema(pairs: int) -> type[PairsOutput]:
    """A list of exactly one word for each of some pairs."""
    relations = (list[Relation], Field(max_length=pairs))
    return create_model("PairsOutput", __base__=PairsOutput, relations=relations)


SCHEMAS: dict[str, type[BaseModel]] = {
    "extraction": ExtractionOutput,
    "summary": SummaryOutput,
    "pairs": build_pair_schema(3),
    "shortened": ShortenedOutput,
    "frame": FrameOutput,
}
NAMING_FIELDS = ("content", "name", "trigger", "quote")  # of the items that are objects
FACTS = [{"content": f"Row {n} bears {'pears, apples and quinces' * (n % 3)}.", "subject": "orchard"} for n in range(4)]


def list_items(output: BaseModel | None) -> Counter[str]:
    """Count the texts of the items of an answer."""
    texts: list[str] = []
    for field in output.model_dump(exclude_defaults=True).values() if output else ():
        for item in cast("list[Any]", field) if isinstance(field, list) else [field]:
            texts += [item] if isinstance(item, str) else [item[name] for name in NAMING_FIELDS if name in item]
    return Counter(" ".join(text.split()) for text in texts)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_valid_item_of_a_malformed_answer_is_kept(case: dict[str, Any]) -> None:
    found = list_items(parse_output(case["answer"], SCHEMAS[case["schema"]]).value)
    wanted = Counter[str](case["keep"])
    if case["schema"] == "frame":  # the caller finds the name of a frame in the text
        assert all(any(name in text.lower() for text in found) for name in wanted)
        return
    assert found & wanted == wanted
    assert not found - wanted - Counter(case.get("may_keep", [])) - Counter(["t"])


@pytest.mark.parametrize("indent", [None, 2])
def test_of_an_answer_that_is_cut_anywhere_the_complete_items_remain(indent: int | None) -> None:
    text = json.dumps({"title": "The orchard", "facts": FACTS}, indent=indent)
    ends = [text.index("}", text.index(fact["content"])) for fact in FACTS]
    for cut in range(text.index("facts"), len(text)):
        found, left_out = parse_output(text[:cut], ExtractionOutput)
        assert found and found.title == "The orchard"
        kept = [fact.model_dump(exclude_none=True) for fact in found.facts]
        assert kept == FACTS[: sum(end < cut for end in ends)], text[:cut]
        assert left_out == {CUT_OFF: 1}


def test_valid_json_is_read_as_ever_and_nothing_of_an_error_is_taken() -> None:
    text = json.dumps({"a": [1, -2.5e3, True, False, None, 'x "y", {z}: [\\] // é \n\t😀'], "b": {"c": []}, "": "'"})
    assert [found.value for found in find_json_values(text)] == [json.loads(text)]
    for text in ('{"error": "quota exceeded"}', '{"error": {"message": "facts"}}', '[{"error": "x"}]', "[]", "{}"):
        for schema in (ExtractionOutput, SummaryOutput, SCHEMAS["pairs"]):
            assert parse_output(text, schema).value is None, text


def test_what_is_left_out_is_counted_without_its_text() -> None:
    facts = [{"content": "x" * 501}, {"content": "Ana sails."}, {"subject": "Ana"}, None, {"content": "Ana rows."}]
    procedure: dict[str, object] = {"name": "n", "description": "d", "steps": []}
    answer = {"outcome": "neutral", "facts": facts, "procedures": [procedure]}
    found, left_out = parse_output(json.dumps(answer), ExtractionOutput)
    assert found and [fact.content for fact in found.facts] == ["Ana sails.", "Ana rows."]
    assert left_out == {
        "outcome: unknown value": 1,
        "facts: longer than 500 characters": 1,
        "facts: incomplete": 1,
        "facts: no object": 1,
        "procedures: empty": 1,
    }


@pytest.mark.parametrize(
    ("numbered", "relations"),
    [
        ({"2": "update", "3": "compatible", "1": "same"}, ["same", "update", "compatible"]),
        ({"2": "compatible", "0": "same", "1": "update"}, ["same", "update", "compatible"]),
        ({str(n): "update" if n == 10 else "same" for n in (10, *range(1, 10))}, [*["same"] * 9, "update"]),
        ({"1": "same", "3": "update"}, None),
        ({"2": "same", "3": "update"}, None),
        ({"1": "same", "01": "update"}, None),
        ({"1": "same", "note": "update"}, None),
    ],
)
def test_numbered_items_are_in_the_order_of_their_numbers(numbered: dict[str, str], relations: object) -> None:
    found = parse_output(json.dumps({"relations": numbered}), build_pair_schema(len(numbered))).value
    assert (found and found.relations) == relations

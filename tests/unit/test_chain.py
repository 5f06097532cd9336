"""The chain by itself: it verifies as it was made, and no way to change it goes unseen."""

import json
import random
from datetime import timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.brain.hash_chain import (
    BrokenLink,
    ChainHead,
    ChainRecord,
    JsonObject,
    canonical_json,
    hash_record,
    hash_texts,
    make_initial_head,
    verify_records,
)
from newton.ids import new_id
from tests.support import ANA, BEN, NOON

WORDS = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3)
BODIES = st.dictionaries(
    st.text(max_size=5),
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.booleans(), st.text(max_size=9)),
    max_size=4,
)
LIVES = st.lists(st.tuples(BODIES, st.one_of(st.none(), WORDS)), min_size=1, max_size=8)


def chain(life: list[tuple[dict[str, object], dict[str, str] | None]], agent_id: UUID = ANA) -> list[ChainRecord]:
    head, made = make_initial_head(agent_id), list[ChainRecord]()
    for body, words in life:
        salt = bytes(32) if words is not None else None
        record = ChainRecord(
            seq=head.seq + 1,
            record_id=new_id(),
            kind="thought",
            decision_id=new_id(),
            recorded_at=NOON,
            origin="test",
            body=body,
            words_hash=hash_texts(words, salt) if words is not None and salt is not None else None,
            hash=b"",
            salt=salt,
            words=words,
        )
        record = record._replace(hash=hash_record(head.hash, record))
        made.append(record)
        head = ChainHead(record.seq, record.hash)
    return made


def end(records: list[ChainRecord]) -> ChainHead:
    return ChainHead(records[-1].seq, records[-1].hash)


def changed(record: ChainRecord, dice: random.Random) -> ChainRecord:
    """The record with one of its parts changed."""
    changes: list[dict[str, object]] = [
        {"record_id": new_id()},
        {"decision_id": new_id()},
        {"kind": "outcome"},
        {"recorded_at": record.recorded_at + timedelta(microseconds=1)},
        {"origin": record.origin + " "},
        {"body": {**record.body, "more": 1}},
        {"hash": bytes(32)},
        {"words": {**(record.words or {}), "more": "words"}},
        {"words_hash": bytes(32)},
    ]
    if record.words is not None:
        changes.append({"words": None})
        changes.append({"salt": b"\1" * 32})
    return record._replace(**dice.choice(changes))


def mutated(records: list[ChainRecord], dice: random.Random) -> list[ChainRecord]:
    """The chain with one record edited, deleted, swapped, inserted, or the tail cut."""
    made, place = list(records), dice.randrange(len(records))
    match dice.choice(["edit", "delete", "swap", "insert", "cut"]):
        case "edit":
            made[place] = changed(made[place], dice)
        case "delete":
            del made[place]
        case "swap" if len(made) > 1:
            one, other = sorted(dice.sample(range(len(made)), 2))
            made[one], made[other] = (
                made[other]._replace(seq=made[one].seq),
                made[one]._replace(seq=made[other].seq),
            )
        case "insert":
            made.insert(place, made[place]._replace(record_id=new_id()))
        case _:
            del made[place:]
    return made


@given(LIVES)
def test_a_chain_verifies_as_it_was_made_and_not_when_it_was_written_anew(
    life: list[tuple[dict[str, object], dict[str, str] | None]],
) -> None:
    records = chain(life)
    assert verify_records(records, agent_id=ANA, head=end(records), external_head=end(records)) is None
    assert verify_records(records, agent_id=BEN, head=end(records)) == BrokenLink(
        1, "its content or the previous hash was changed"
    )
    records, noted = chain(life), end(chain(life))
    assert verify_records(records, agent_id=ANA, head=end(records)) is None
    assert verify_records(records, agent_id=ANA, head=end(records), external_head=noted) is not None


@given(LIVES, st.randoms(use_true_random=False))
def test_every_change_is_found(
    life: list[tuple[dict[str, object], dict[str, str] | None]], dice: random.Random
) -> None:
    records = chain(life)
    for _ in range(50):
        tampered = mutated(records, dice)
        assert verify_records(tampered, agent_id=ANA, head=end(records)) is not None


@given(LIVES, st.integers(0, 7))
def test_a_tail_that_is_cut_with_its_head_is_found_by_what_was_noted(
    life: list[tuple[dict[str, object], dict[str, str] | None]], kept: int
) -> None:
    records = chain(life)
    left = records[: min(kept, len(records) - 1)]
    head = end(left) if left else make_initial_head(ANA)
    assert verify_records(left, agent_id=ANA, head=head) is None
    fault = verify_records(left, agent_id=ANA, head=head, external_head=end(records))
    assert fault == BrokenLink(
        len(left) + 1,
        f"the end of the chain is missing: the head saved outside the database has {len(records)} records",
    )


def test_words_may_go_when_an_erasure_says_so_and_must_be_gone_then() -> None:
    said = chain([({}, {"a": "secret"}), ({}, {"b": "more"})])
    body: JsonObject = {"erased": [str(said[0].record_id)]}
    erasure = said[1]._replace(
        seq=3, record_id=new_id(), kind="erasure", body=body, words=None, salt=None, words_hash=None
    )
    erasure = erasure._replace(hash=hash_record(said[1].hash, erasure))
    without = said[0]._replace(words=None, salt=None)
    assert verify_records([without, said[1], erasure], agent_id=ANA, head=end([erasure])) is None
    assert verify_records([without, said[1]], agent_id=ANA, head=end(said)) == BrokenLink(
        1, "its text is missing without an erasure record"
    )
    assert verify_records([*said, erasure], agent_id=ANA, head=end([erasure])) == BrokenLink(
        3, "a text that this erasure record deleted is present"
    )


@given(BODIES)
def test_a_body_is_the_same_when_it_comes_back_from_json(body: dict[str, object]) -> None:
    assert canonical_json(json.loads(canonical_json(body))) == canonical_json(body)
    assert canonical_json(dict(reversed(body.items()))) == canonical_json(body)

"""The level of detail of long texts: the part that answers, and the whole text if there is room."""

from dataclasses import replace
from datetime import timedelta

import pytest

from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.memory.lookup import item_id, read_memory, resolve_id
from newton.memory.memory import past_reason
from newton.memory.representations import one_line
from newton.memory.vectors import reembed
from newton.providers import token_counter
from newton.providers.fakes import HashEmbedder
from tests.long_texts import LongText, generate_long_texts, import_texts
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_replay import hindsight
from tests.support import BEN

TEXTS = 12  # half of them documents
ROOMY, NARROW = 2_000, 450


class OtherEmbedder(HashEmbedder):
    """The same vectors under the name of another model."""

    identity = "hashed-words/other"


async def import_some(mind: Mind) -> list[LongText]:
    texts = generate_long_texts(TEXTS, seed=7)
    await import_texts(newton(mind, HashEmbedder()), texts)
    return texts


def ask_for(text: LongText) -> str:
    """The hashing embedder compares words, so the question has those of the sentence."""
    return f"{text.marked_sentence} {text.subject}"


async def count_windows(mind: Mind) -> tuple[int, int]:
    windows = await mind.fetchval("select count(*) from memory.windows")
    return windows, await mind.fetchval("select count(*) from memory.window_embeddings")


async def ask_with_top_k(mind: Mind, question: str, top_k: int) -> Bundle:
    builder = replace(mind.contexts, artifact_policy=ArtifactPolicy(max_selected=top_k))
    request = ContextBuildRequest(agent_id=mind.agent_id, input=question, tokens=8_000, fill=True)
    return await builder.build(request)


@pytest.mark.slow
@pytest.mark.parametrize("fill", [False, True])
async def test_a_sentence_anywhere_in_a_long_text_reaches_the_context(mind: Mind, fill: bool) -> None:
    # S002-3, S004-13: the part that answers is shown, wherever it is in the text
    texts = await import_some(mind)
    for budget in (NARROW, ROOMY):
        bundles = [await mind.context(ask_for(text), budget=budget, fill=fill) for text in texts]
        shown = [text.marked_sentence in one_line(bundle.text) for text, bundle in zip(texts, bundles, strict=True)]
        assert all(shown), (budget, shown)
        assert all(bundle.tokens == token_counter.count(bundle.text) <= budget for bundle in bundles)


async def test_with_room_the_best_texts_are_whole_and_without_room_the_cut_ones_say_so(mind: Mind) -> None:
    # S002-3: text that is cut carries the id with which it can be read in full
    texts = await import_some(mind)
    fact = next(text for text in texts if text.kind == "fact")
    roomy = await mind.context(ask_for(fact), budget=ROOMY)
    assert roomy.items[0].detail == "full" and one_line(fact.content) in roomy.text
    narrow = await mind.context(ask_for(fact), budget=NARROW, fill=True)
    cut = [item for item in narrow.items if item.is_cut]
    assert cut and "part" in {item.detail for item in cut}
    for item in cut:
        assert "…" in item.text and f"- #{item_id(item.memory_id)} " in narrow.text
    async with mind.db.transaction(mind.agent_id) as tx:
        memory_id = await resolve_id(tx, item_id(cut[0].memory_id), agent_id=mind.agent_id)
        detail = await read_memory(tx, memory_id, agent_id=mind.agent_id)
    part = cut[0].scored.found.window
    assert part and one_line(part.text.strip("\n …")) in one_line(detail.full_text)


async def test_without_vectors_words_select_the_part_and_a_short_text_has_none(mind: Mind) -> None:
    await mind.know("The spare key hangs behind the boiler.")
    assert await count_windows(mind) == (0, 0)
    (item,) = (await mind.context("Where does the spare key hang?")).items[:1]
    assert item.detail == "summary" and not item.is_cut
    texts = await import_some(mind)
    deaf = replace(mind, embedder=None)
    fact = next(text for text in texts if text.kind == "fact")
    bundle = await deaf.context(ask_for(fact), budget=NARROW)
    assert fact.marked_sentence in one_line(bundle.text)
    assert await count_windows(replace(mind, agent_id=BEN)) == (0, 0), "another agent sees none of them"


async def test_the_passages_of_documents_have_a_limit_of_their_own(mind: Mind) -> None:
    # S004-12, S004-13, S004-19
    texts = await import_some(mind)
    document = next(text for text in texts if text.kind == "document")
    bundles = [await ask_with_top_k(mind, ask_for(document), top_k) for top_k in range(5)]
    counts = [sum(item.kind == "passage" for item in bundle.items) for bundle in bundles]
    assert counts == [0, 1, 2, 3, 4]
    passage_tokens = [sum(item.tokens for item in bundle.items if item.kind == "passage") for bundle in bundles]
    assert passage_tokens == sorted(passage_tokens) and document.marked_sentence in one_line(bundles[1].text)
    rejected = [c for c in bundles[2].rejected_candidates if "best 2 passages" in c.reason]
    assert rejected and all(c.kind == "passage" and not past_reason(c.kind, c.scored.found.state) for c in rejected)


@pytest.mark.slow
async def test_contexts_with_parts_and_whole_texts_are_replayed(mind: Mind) -> None:
    # S002-20
    texts = await import_some(mind)
    for text in texts[:4]:
        for budget in (NARROW, ROOMY):
            bundle = await mind.context(ask_for(text), budget=budget, fill=True)
            replay = await hindsight(mind).replay(str(bundle.bundle_id))
            assert replay.identical, replay.differences


@pytest.mark.slow
async def test_a_context_of_the_past_shows_the_parts_and_whole_texts_of_then(mind: Mind) -> None:
    # S002-20
    texts = await import_some(mind)
    then = mind.clock.now()
    before = [await mind.context(ask_for(text), budget=NARROW, fill=True) for text in texts[:4]]
    assert {"part", "full"} <= {item.detail for bundle in before for item in bundle.items}
    mind.clock.advance(timedelta(days=3))
    await mind.know(*(f"{text.content} And this was said later." for text in texts if text.kind == "fact"))
    past = [await mind.context(bundle.input, budget=NARROW, fill=True, as_of=then) for bundle in before]
    assert [bundle.text for bundle in past] == [bundle.text for bundle in before]
    for bundle in (*before, *past):
        replay = await hindsight(mind).replay(str(bundle.bundle_id))
        assert replay.identical, replay.differences


async def test_windows_follow_the_embedding_model_and_are_forgotten_with_their_memory(mind: Mind) -> None:
    texts = await import_some(mind)
    windows, vectors = await count_windows(mind)
    assert windows == vectors > TEXTS
    result = await reembed(mind.db, OtherEmbedder(), agent_id=mind.agent_id, now=mind.clock.now())
    assert result.is_active and await count_windows(mind) == (windows, windows)
    moved = replace(mind, embedder=OtherEmbedder())
    bundle = await moved.context(ask_for(texts[1]), budget=ROOMY)
    shown = next(item.memory_id for item in bundle.items if item.kind == "fact")
    await mind.forget(shown, derived=True)
    assert not await mind.fetchval("select count(*) from memory.windows where memory_id = $1", shown)
    assert not await mind.fetchval("select count(*) from memory.window_embeddings where memory_id = $1", shown)

"""What is told in another language than English is found in it, and replaced in it."""

from datetime import timedelta

import pytest

from newton.memory import store
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits
from tests.scenarios.conftest import Mind
from tests.scenarios.test_question_kinds import ask, lines, say
from tests.support import NOON

TOLD = {
    "de": ("Die Verträge liegen im grauen Ordner.", "Wo ist der Vertrag?"),
    "fr": ("Nous avons réparé les vélos dans la cave.", "Où réparer un velo ?"),
    "ru": ("Запасные ключи лежат под цветочными горшками.", "Где запасной ключ?"),
    "zh": ("备用钥匙放在蓝色花盆下面。", "钥匙在哪里？"),
    "ja": ("予備の鍵は青い植木鉢の下にあります。", "鍵はどこですか？"),
}
OTHER = "The deployment of the budget page was late again on day {day}."


async def find_by_words(mind: Mind, text: str) -> list[str]:
    """Return what the search by words alone finds."""
    search = MemorySearch(db=mind.db, agent_id=mind.agent_id, limits={"exchange": SearchLimits(9, 9)})
    found = await recall(text, embedder=None, search=search)
    return [one.spoken_text for one in found.memories if one.lexical > 0]


@pytest.mark.parametrize("code", TOLD)
async def test_words_are_found_by_their_stems_in_the_language_of_the_text(mind: Mind, code: str) -> None:
    told, asked = TOLD[code]
    await say(mind, NOON - timedelta(days=9), told)
    for day in range(6):
        await say(mind, NOON - timedelta(days=day), OTHER.format(day=day))
    await mind.settle()
    bundle = await ask(mind, asked)
    assert lines(bundle, told) != [-1]
    assert await find_by_words(mind, asked) == [told]
    async with mind.db.transaction(mind.agent_id) as tx:
        counts = await store.count_by_language(tx, agent_id=mind.agent_id)
    assert counts == {"en": 6, code: 1}


async def test_names_are_found_across_languages(mind: Mind) -> None:
    await say(mind, NOON - timedelta(days=3), "Charles hat die Unterlagen mit nach Hause genommen.")
    for day in range(3):
        await say(mind, NOON - timedelta(days=day), OTHER.format(day=day))
    await mind.settle()
    assert await find_by_words(mind, "What did Charles do?") == ["Charles hat die Unterlagen mit nach Hause genommen."]

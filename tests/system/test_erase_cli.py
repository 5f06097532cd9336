"""Erasing a person and exporting an agent, by commands, over HTTP and by the client: of the chosen agent alone."""

import json
from pathlib import Path

import pytest

from newton.client import ApiError
from newton.db.pool import Database
from newton.db.server_paths import find_database_folder
from newton.ids import derive_agent_id
from newton.providers.embedding_providers import embedder_for
from newton.providers.fakes import HashEmbedder
from newton.providers.minilm import MiniLM
from newton.settings import load
from tests.support import has_code
from tests.system.lines import everything
from tests.system.served import Api
from tests.system.typed import typed

TOLD = "Ana Berg keeps the lighthouse of Matosinhos."


def looked(home: Path, *words: str) -> dict[str, object]:
    return json.loads(typed(home, "erase", "--subject", "Ana Berg", *words, "--json").stdout)


@pytest.mark.slow
def test_what_was_seen_of_one_agent_erases_nothing_of_another(home: Path) -> None:
    # S8
    for agent in ("one", "two"):
        assert typed(home, "remember", TOLD, "--agent", agent).returncode == 0
    token = str(looked(home, "--agent", "one")["confirm"])
    assert token != looked(home, "--agent", "two")["confirm"]
    shown = typed(home, "erase", "--subject", "Ana Berg", "--agent", "one").stdout
    assert f"newton erase --agent one --subject 'Ana Berg' --confirm {token}" in shown
    assert typed(home, "erase", "--subject", "Ana Berg", "--agent", "two", "--confirm", token).returncode == 2
    assert looked(home, "--agent", "one", "--confirm", token)["erased"]
    assert "lighthouse" not in typed(home, "recall", "lighthouse", "--agent", "one").stdout
    assert "lighthouse" in typed(home, "recall", "lighthouse", "--agent", "two").stdout


def test_what_came_with_newton_was_told_of_nobody(home: Path) -> None:
    assert typed(home, "remember", TOLD, "--agent", "four").returncode == 0
    refused = typed(home, "erase", "--subject", "Nobody", "--agent", "four")
    assert refused.returncode == 2
    assert "Nothing is stored about 'Nobody'" in refused.stderr


def test_a_preview_says_where_memory_states_a_further_name(home: Path) -> None:
    # S8
    for line in (TOLD, "Ana Berg is a painter. Everyone calls her Nini.", "Nini owes us a ladder."):
        assert typed(home, "remember", line, "--agent", "five").returncode == 0
    shown = typed(home, "erase", "--subject", "Ana Berg", "--agent", "five").stdout
    assert "Nini: Ana Berg is a painter. Everyone calls her Nini." in shown and "ladder" in shown
    found = looked(home, "--agent", "five")
    assert found["stated_names"] == [{"name": "Nini", "text": "Ana Berg is a painter. Everyone calls her Nini."}]
    assert typed(home, "remember", "Half the street says Nanni to Ana Berg.", "--agent", "five").returncode == 0
    shown = typed(home, "erase", "--subject", "Ana Berg", "--agent", "five").stdout
    assert "--also Nanni: Half the street" in shown and "--subject 'Ana Berg' --also Nanni`" in shown
    assert [one["name"] for one in looked(home, "--agent", "five")["possible_names"]] == ["Nanni"]
    found = looked(home, "--agent", "five", "--also", "Nanni")
    done = looked(home, "--agent", "five", "--also", "Nanni", "--confirm", str(found["confirm"]))
    assert (done["erased"], done["stated_names"], done["remains"]) == (True, [], {})


@pytest.mark.parametrize("words", [["erase", "--everything", "--yes"], ["export", "-"]])
def test_an_agent_that_is_not_there_is_neither_begun_nor_taken_away(home: Path, words: list[str]) -> None:
    refused = typed(home, *words, "--agent", "ghost")
    assert refused.returncode == 2
    assert "There is no agent 'ghost'" in refused.stderr
    assert "ghost" not in typed(home, "agents").stdout


def test_an_agent_that_was_taken_away_may_be_begun_anew(home: Path) -> None:
    decide = ["decide", "Use the ferry", "--confidence", "0.8", "--reason", "analysis: it is near", "--agent", "three"]
    assert typed(home, *decide).returncode == 0
    assert typed(home, "erase", "--everything", "--yes", "--agent", "three").returncode == 0
    assert typed(home, *decide).returncode == 0
    verified = typed(home, "doctor", "--verify", "--agent", "three")
    assert "the decision log is unchanged (1 record)" in verified.stdout


def test_memories_go_on_being_found_by_the_model_that_made_their_vectors() -> None:
    settings = load({"openai_api_key": "none", "embedding_provider": "openai"})
    other = embedder_for("text-embedding-3-large/1024", settings, HashEmbedder())
    assert other is not None
    assert (other.identity, other.dimensions) == ("text-embedding-3-large/1024", 1_024)
    first, second = (embedder_for(MiniLM.identity, settings, HashEmbedder()) for _ in range(2))
    assert first is second, "loaded once for all agents"


@pytest.mark.slow
def test_after_a_scrub_no_file_of_a_table_holds_what_was_forgotten(home: Path) -> None:
    # S8
    mark, agent = "Zxqvulgate", ("--agent", "five")
    assert typed(home, "remember", f"{mark} keeps the lighthouse.", *agent).returncode == 0
    base = find_database_folder(home) / "postgres" / "base"

    def holding() -> list[Path]:
        return [file for file in base.rglob("*") if file.is_file() and mark.encode() in file.read_bytes()]

    token = json.loads(typed(home, "erase", "--subject", mark, "--json", *agent).stdout)["confirm"]
    assert typed(home, "erase", "--subject", mark, "--confirm", token, *agent).returncode == 0
    assert typed(home, "erase", "--scrub", "--everything", *agent).returncode == 2
    done = typed(home, "erase", "--scrub")
    assert (done.returncode, holding()) == (0, []), done.stderr


OF_OLA = ("Aleksandra Novak, everybody calls her Ola, has the key.", "Ola moves out in May.", "Olaf likes the park.")


async def test_a_person_is_previewed_confirmed_and_gone_and_nobody_elses_is_touched(api: Api, db: Database) -> None:
    # S8
    for agent in ("ana", "ben"):
        async with api.client(await api.token(agent)) as client:
            for text in OF_OLA:
                await client.remember(text)
    async with api.client(await api.token("ana")) as ana:
        preview = await ana.preview_erasure("aleksandra novák")
        assert {"Ola", "Aleksandra Novak"} <= set(preview["names"]) and preview["counts"]["fact"] == 2
        with pytest.raises(ApiError, check=has_code("conflict")):
            await ana.erase_person("aleksandra novák", token="00000000")
        done = await ana.erase_person("aleksandra novák", token=preview["token"])
        assert done["remains"] == {} and "Ola" not in str(done)
    dump = "\n".join(await everything(db, derive_agent_id("ana")))
    async with db.transaction(derive_agent_id("ana")) as tx:  # the dump includes stored responses
        assert await tx.fetchval("select count(*) from runtime.idempotency_keys") > len(OF_OLA)
    assert "Ola " not in dump and "Novak" not in dump and "Olaf likes" in dump
    assert "Ola moves out" in "\n".join(await everything(db, derive_agent_id("ben")))


async def test_only_an_admin_of_the_agent_may_see_or_erase_what_is_known_of_a_person(api: Api) -> None:
    # S9
    async with api.client(await api.token("ben")) as ben:
        await ben.remember(OF_OLA[0])
        token = (await ben.preview_erasure("Aleksandra Novak"))["token"]
    async with api.client(await api.token("ben", "write")) as writer:
        with pytest.raises(ApiError, check=has_code("forbidden")):
            await writer.preview_erasure("Aleksandra Novak")
        with pytest.raises(ApiError, check=has_code("forbidden")):
            await writer.erase_person("Aleksandra Novak", token=token)
    async with api.client(await api.token("ana")) as ana:
        with pytest.raises(ApiError, check=has_code("invalid_input"), match="Nothing is stored"):
            await ana.erase_person("Aleksandra Novak", token=token)

"""What is known of the user and of others, through every door and without a model."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from newton.db.pool import Database
from newton.providers.minilm import MiniLM
from tests.system.browsing import browser
from tests.system.served import Api, served
from tests.system.test_known_at_once import ask, tell
from tests.system.test_mcp import speaking
from tests.system.test_mcp import told as called

TOLD = (
    "Hey, I'm Beatrix, but everybody calls me Bee.",
    "We live in Linz, third floor, no lift.",
    "I work as a sound engineer at Radio Helsinki.",
    "My girlfriend Lien teaches maths at a grammar school.",
    "Lien is from Ghent and has a brother called Wout.",
    "My girlfriend is allergic to sesame.",
    "Our dog Bruno is terrified of fireworks.",
    "I can't eat walnuts, they make my throat swell.",
    "I take levothyroxine every morning.",
    "I go bouldering on Tuesdays.",
    "I'm flying to Lisbon on 12 March for a wedding.",
    "My car is a red Fiat Panda.",
)
WORDS = (
    "Beatrix", "Bee", "Linz", "sound engineer", "maths", "Ghent", "sesame", "Bruno", "walnuts", "levothyroxine",
    "bouldering", "Lisbon", "Panda",
)  # fmt: skip
NOTHING = ("say nothing about this", "may not answer", "nothing about this yet")


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture
async def api(db: Database, tmp_path: Path, minilm: MiniLM) -> AsyncIterator[Api]:
    async with served(db, tmp_path, embedder=minilm, quote_without_model=True) as made:
        yield made


async def build_context(http: httpx2.AsyncClient, text: str, **fields: object) -> dict[str, object]:
    answer = await http.post("/v1/context", json={"input": text, "max_tokens": 2_000, **fields})
    assert answer.is_success, answer.text
    return answer.json()


async def learn(http: httpx2.AsyncClient, *texts: str) -> None:
    for number, text in enumerate(texts):
        await tell(http, text, session=f"told-{number}")


async def test_all_that_is_known_is_told_when_it_is_asked_for(api: Api) -> None:
    # S002-17
    async with api.http(await api.token("bee")) as http:
        await learn(http, *TOLD)
        for number, question in enumerate(("What do you know about me?", "Who am I?", "Was weißt du über mich?")):
            reply = await ask(http, question, f"asked-{number}")
            assert [word for word in WORDS if word not in reply] == [], reply
            assert not any(phrase in reply for phrase in NOTHING)
        built = await build_context(http, "Tell me everything you know about me.")
        assert [word for word in WORDS if word not in str(built["text"])] == []
        assert "- 13 facts, 13 shown." in str(built["text"])
        assert not any(phrase in str(built["text"]) for phrase in NOTHING)
        assert built["layers"]["about"]["used"] <= built["layers"]["about"]["ceiling"]
        lines = str(built["text"]).splitlines()
        assert len([one for one in lines if "walnuts" in one]) == 1, "a fact is shown once"
        replayed = await http.post(f"/v1/bundles/{built['bundle_id']}/replay")
        assert replayed.json()["identical"], replayed.text
        why = (await http.get(f"/v1/bundles/{built['bundle_id']}/explain")).text
        assert "part of what is known of the person" in why


async def test_what_does_not_fit_is_counted(api: Api) -> None:
    # S002-17, S002-3
    async with api.http(await api.token("bee")) as http:
        await learn(http, *TOLD)
        built = await build_context(http, "What do you know about me?", max_tokens=300)
        assert built["tokens"] <= 300
        note = next(line for line in str(built["text"]).splitlines() if "shown" in line)
        profile = str(built["text"]).partition("## Profile")[2].partition(note)[0]
        shown = sum(line.count(".") for line in profile.splitlines() if line.startswith("- "))
        assert note == f"- 13 facts, {shown} shown; `newton about --all` lists them."
        assert 0 < shown < 13


async def test_the_name_is_known_however_it_was_told(api: Api) -> None:
    # S002-17
    told = {
        "tom": ("I'm Tom.", "Tom"),
        "karim": ("Hi, Karim here. Where is the post office?", "Karim"),
        "zoe": ("Call me Zoe.", "Zoe"),
        "kati": ("Hallo, ich bin die Katrin Lohse, sag Kati zu mir", "Kati"),
        "pepe": ("Todos me llaman Pepe.", "Pepe"),
        "xue": ("大家都叫我小雪。", "小雪"),
    }
    for agent, (text, name) in told.items():
        async with api.http(await api.token(agent)) as http:
            await tell(http, text, session="a")
            await tell(http, *(f"I own a lamp of type {n}." for n in range(12)), session="b")
            assert name in await ask(http, "What is my name?", "c"), agent
            assert name in str((await build_context(http, "Which lamp is the best?"))["text"]), agent


async def test_a_name_of_a_quotation_is_the_users_and_that_of_a_role_or_of_a_text_is_not(api: Api) -> None:
    # S002-17
    told = {
        "mireille": (("My husband always says 'Mireille, you rush'. He is called Gerard.", "I sing."), ["Mireille"]),
        "roland": (("Let's play a game: I'm the knight and you are the king.", "I'm Roland. I want ale."), []),
        "carlos": (("Translate: my name is Carlos", "I have three cats."), []),
    }
    for agent, (texts, names) in told.items():
        async with api.http(await api.token(agent)) as http:
            await tell(http, *texts, session="a")
            assert (await http.get("/v1/about")).json()["names"] == names, agent
            built = await build_context(http, "What is my name?")
            assert [one for one in names if one not in str(built["text"])] == [], agent


async def test_what_was_told_together_stands_together(api: Api) -> None:
    # S002-17
    async with api.http(await api.token("bee")) as http:
        await tell(
            http, "On saturdays I ride with a club, we start at 5:30 at the station. My aunt is Jo.", session="a"
        )
        lines = str((await build_context(http, "What do you know about me?"))["text"]).splitlines()
        assert any("I ride with a club. We start at 5:30 at the station." in line for line in lines), lines
        assert any(line.endswith(": My aunt is Jo.") for line in lines), "a fact of another section stands there"


async def test_the_health_of_everybody_is_there_where_it_matters(api: Api) -> None:
    # S002-6
    async with api.http(await api.token("bee")) as http:
        await learn(http, *TOLD)
        built = await build_context(http, "What could I cook for Saturday?")
        profile = str(built["text"]).partition("## Profile")[2].partition("\n## ")[0]
        assert "walnuts" in profile and "sesame" in profile and "bouldering" not in profile
        assert str(built["text"]).count("walnuts") == 1
        assert built["layers"]["about"]["used"] <= 300
        plain = await build_context(http, "The staging server does not answer, what is wrong?")
        assert "walnuts" not in str(plain["text"]) and "Beatrix" in str(plain["text"])


async def test_a_name_and_a_role_are_one_person(api: Api) -> None:
    # S002-18
    async with api.http(await api.token("bee")) as http:
        await learn(http, *TOLD, "My brother Max bakes.", "My brother Jo plays the harp.", "My brother snores.")
        for name in ("Lien", "my girlfriend"):
            profile = (await http.get("/v1/about", params={"name": name})).json()
            text = str(profile["sections"])
            assert [word for word in ("maths", "Ghent", "sesame") if word not in text] == [], name
            assert "walnuts" not in text and set(profile["names"]) == {"Lien", "my girlfriend"}
        assert "sesame" in await ask(http, "Who is Lien?", "asked")
        max_only = str((await http.get("/v1/about", params={"name": "Max"})).json()["sections"])
        assert "bakes" in max_only and "snores" not in max_only and "harp" not in max_only


async def test_every_door_shows_the_profile_with_its_sources(api: Api) -> None:
    # S9
    token = await api.token("bee")
    async with api.http(token) as http:
        await learn(http, *TOLD)
        seen = (await http.get("/v1/about")).json()
        assert (seen["count"], seen["shown"], seen["is_user"], seen["names"]) == (13, 13, True, ["Bee", "Beatrix"])
        facts = [fact for section in seen["sections"] for fact in section["facts"]]
        assert {fact["source"] for fact in facts} == {""}
        assert (await http.get("/v1/about", params={"name": "Nobody"})).json()["count"] == 0
    async with speaking(api.url, token) as mcp:
        profile = await called(mcp, "about")
        assert "levothyroxine" in str(profile)
    async with api.client(token) as client:
        assert (await client.about(name="Lien"))["is_user"] is False


async def test_the_first_page_shows_and_corrects_what_is_known(api: Api) -> None:
    # S9
    token = await api.token("bee")
    async with api.http(token) as http, browser(api, token) as one:
        await learn(http, "I live in Graz.", "I can't eat walnuts.", "I drive a van.")
        page = (await one.get("/")).text
        assert "What is known of you" in page and "Health and limits" in page and "your word" in page
        facts = {
            fact["text"]: fact["memory_id"]
            for section in (await http.get("/v1/about")).json()["sections"]
            for fact in section["facts"]
        }
        corrected = await one.send(
            f"/dashboard/memories/{facts['I live in Graz.']}/supersede", content="I live in Linz.", next="/"
        )
        assert str(corrected.url.path) == "/" and "I live in Linz." in corrected.text
        assert "I live in Graz." not in corrected.text
        await one.send(f"/dashboard/memories/{facts['I drive a van.']}/retract", next="/")
        page = (await one.get("/")).text
        assert "I drive a van." not in page and "walnuts" in page

"""What a person states in one session is known in another one at once, while the first one goes on."""

from pathlib import Path

import httpx2
import pytest

from newton.db.pool import Database
from newton.ids import derive_agent_id
from newton.providers.minilm import MiniLM
from tests.system.served import Api, served

TOLD = (
    "Hey, short introduction: I'm Mia, I work as a nurse in Lyon and I'm allergic to hazelnuts.",
    "My sister Jo has a greyhound called Biscuit, and my brother Tom drives a taxi.",
    "I play the oboe in an orchestra on Tuesdays. My boss is called Renate.",
    "My car is a green Skoda. Do you know a good garage?",
    "Our flat is above a bakery, but the rent is only 700 euros.",
)
ASKED = {
    "What do I do for a living?": "nurse",
    "Which city do I work in?": "Lyon",
    "What food should I avoid because of my allergy?": "hazelnuts",
    "What breed is my sister's dog?": "greyhound",
    "What is the job of my brother?": "taxi",
    "Which musical instrument do I play?": "oboe",
    "Who is my manager at work?": "Renate",
    "What vehicle do I own?": "Skoda",
    "What is below our apartment?": "bakery",
    "How much do we pay for our apartment each month?": "700",
}


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


async def ask(http: httpx2.AsyncClient, text: str, session: str) -> str:
    """The reply by the protocol of OpenAI."""
    body = {"messages": [{"role": "user", "content": text}]}
    answer = await http.post("/v1/chat/completions", json=body, headers={"X-Newton-Session": session})
    assert answer.is_success, answer.text
    return answer.json()["choices"][0]["message"]["content"]


async def tell(http: httpx2.AsyncClient, *texts: str, session: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    answer = await http.post(f"/v1/sessions/{session}/messages", json={"messages": messages})
    assert answer.is_success, answer.text


async def facts(api: Api, agent: str) -> list[str]:
    async with api.db.transaction(derive_agent_id(agent)) as tx:
        rows = await tx.fetch("select full_text from memory.memories where kind = 'fact'")
    return [row["full_text"] for row in rows]


async def test_what_one_session_states_another_one_knows_at_once(db: Database, minilm: MiniLM, tmp_path: Path) -> None:
    # S002-17
    async with (
        served(db, tmp_path, embedder=minilm, quote_without_model=True) as api,
        api.http(await api.token("mia")) as http,
    ):
        await tell(http, *TOLD[:2], session="a")
        for text in TOLD[2:]:
            await ask(http, text, "a")
        replies = {question: await ask(http, question, f"b{n}") for n, question in enumerate(ASKED)}
        missing = {question for question, word in ASKED.items() if word not in replies[question]}
        assert not missing, replies


async def test_a_correction_in_the_same_conversation_is_no_fact_of_its_own(
    db: Database, minilm: MiniLM, tmp_path: Path
) -> None:
    said = (
        "Yusuf's cello lesson is on Thursday at 5.",
        "No wait, the lesson is on Wednesday now.",
        "Oh, sorry. Actually, my flight leaves on Sunday.",
        "Hold on, my neighbour Greta keeps bees.",
    )
    async with served(db, tmp_path, embedder=minilm) as api, api.http(await api.token("yusuf")) as http:
        await tell(http, *said, session="a")
        assert set(await facts(api, "yusuf")) == {
            "Yusuf's cello lesson is on Thursday at 5.",
            "The lesson is on Wednesday now.",
            "My flight leaves on Sunday.",
            "My neighbour Greta keeps bees.",
        }

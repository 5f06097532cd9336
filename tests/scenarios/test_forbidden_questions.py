"""A censor that blocks stops acts and requests to act. A question about the rule is answered."""

from newton.agent.loop.turn import TurnInput
from newton.heart.censors import CensorRule
from newton.providers.fakes import HashEmbedder, ScriptedChat
from newton.runtime.tools.tool_registry import run_tool
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_turn import take

FRIDAYS = CensorRule(trigger="deploy on Fridays", reason="nobody is there to help", action="block")
FALCON = CensorRule(trigger="Project Falcon", reason="it is confidential", action="block")
EXPLAINED = "You may not deploy on Fridays, because nobody is there to help."


async def said(mind: Mind, text: str, *, model: ScriptedChat | None) -> tuple[str, bool]:
    answer, result = await take(mind.turns(model), TurnInput(session_id=await mind.session(), text=text))
    return answer, result.forbidden


QUESTIONS = (
    "Why may we not deploy on Fridays?",
    "why can't i deploy on fridays",
    "Hi! Who forbids it to deploy on Fridays?",
    "Explain the rule not to deploy on Fridays.",
    "Is it allowed to deploy on Fridays?",
)
REQUESTS = (
    "Deploy on Fridays from now on.",
    "Can you deploy on Fridays too?",
    "Why not deploy on Fridays?",
    "Is it allowed? I will deploy on Fridays anyway.",
)


async def test_a_question_about_a_rule_is_answered_and_a_request_to_act_is_blocked(mind: Mind) -> None:
    await mind.censors.add(FRIDAYS)
    await mind.know("We do not deploy on Fridays since the outage in March.")
    for question in QUESTIONS:
        assert await said(mind, question, model=ScriptedChat(EXPLAINED)) == (EXPLAINED, False), question
        quoted, is_forbidden = await said(mind, question, model=None)
        assert quoted.startswith("From memory:") and not is_forbidden, question
    (censor,) = await mind.censors.list_censors()
    assert censor.activations == 0
    for request in REQUESTS:
        model = ScriptedChat("Done.")
        answer, is_forbidden = await said(mind, request, model=model)
        assert is_forbidden and "nobody is there to help" in answer and model.received == [], request


async def test_a_question_does_not_open_what_a_reply_may_not_say(mind: Mind) -> None:
    await mind.censors.add(FALCON)
    await mind.know("Project Falcon launches in May.")
    for model in (ScriptedChat("Project Falcon launches in May."), None):
        answer, is_forbidden = await said(mind, "When does Project Falcon start?", model=model)
        assert is_forbidden and "launches in May" not in answer
        assert "it is confidential" in answer


async def test_a_reply_from_memory_leaves_out_only_what_is_forbidden(mind: Mind) -> None:
    await mind.know("Project Falcon launches in May.", "The harbour festival launches in June.")
    await mind.censors.add(FALCON)
    answer, is_forbidden = await said(mind, "Which festival or project launches next?", model=None)
    assert not is_forbidden and "festival launches in June" in answer and "Falcon" not in answer
    assert [censor.activations for censor in await mind.censors.list_censors()] == [0]


async def test_an_mcp_host_may_report_what_the_user_said_of_a_forbidden_matter(mind: Mind) -> None:
    await mind.censors.add(FRIDAYS)
    agent, asked = newton(mind, HashEmbedder()), "Why may we not deploy on Fridays?"
    noted = await run_tool(agent, "note_exchange", {"user": asked, "assistant": "Nobody is there."})
    assert not noted.is_error and noted.fields["messages"] == 2
    assert "nobody is there to help" in str(noted.fields["warning"])
    (censor,) = await mind.censors.list_censors()
    assert censor.activations == 0, "a question is no act"
    promised = {"user": "When will you deploy it?", "assistant": "I will deploy on Fridays."}
    kept = await run_tool(agent, "note_exchange", promised)
    assert kept.fields["messages"] == 2 and "nobody is there to help" in str(kept.fields["warning"])
    (censor,) = await mind.censors.list_censors()
    assert censor.activations == 1, "the host has said it already"

"""A session is not given facts that its own messages state."""

from dataclasses import replace
from datetime import timedelta

from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_standing import AGAIN, ASKED, FERRY, Talk


async def test_what_is_learnt_from_the_conversation_does_not_change_its_own_context(mind: Mind) -> None:
    # S002-14, S002-17
    assert mind.embedder
    await mind.know(FERRY)
    model = ScriptedChat(*["Let me see."] * 10)
    talk = Talk(mind, mind.turns(model), await mind.session(), model)
    maintenance = newton(mind, mind.embedder).maintenance("job extract")
    first = await talk.given(ASKED)
    stated = "My aunt Petra works in the harbour of the ferry Artemis."
    standing = await talk.given(stated)
    assert await maintenance.learn_statements() == 1
    await mind.settle()
    again = await talk.given(AGAIN)
    assert (standing.method, again.method) == ("stood", "stood"), again.reason
    assert again.bundle is first.bundle
    rebuilt = await talk.given(AGAIN, frame="debug")
    reasons = {item.text: item.reason for item in rebuilt.bundle.rejected_candidates if item.kind == "fact"}
    assert reasons == {stated: "the message itself is sent to the model"}
    mind.clock.advance(timedelta(minutes=1))
    other = replace(talk, session_id=await mind.session("another"))
    assert stated in (await other.given(ASKED)).bundle.text

"""The identity and wishes in contexts and turns: first in each, said only by a person, once, and never cut."""

from dataclasses import replace
from datetime import timedelta

import pytest

from newton.agent.loop.fallback import quote_memories
from newton.agent.loop.turn import TurnInput
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft
from newton.agent.session_data.user_rules import NOTHING_HEARD
from newton.errors import NotFoundError
from newton.heart.censors import CensorRule
from newton.heart.identity.identity_store import IdentityEdit, MessageRef
from newton.heart.identity.user_rules import RuleSource, lift_rule
from newton.providers import token_counter
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Meet, Mind, load_minilm
from tests.scenarios.test_chat import conversation
from tests.scenarios.test_turn import take

DAY = timedelta(days=1)
RULE = "From now on, answer in French."


def bearing(mind: Mind) -> IdentityService:
    return IdentityService(scope=mind.scope.at("cli"))


async def waiting(mind: Mind) -> list[str | None]:
    return [one.words for one in await bearing(mind).list_proposals()]


async def test_it_stands_first_in_every_context_and_is_not_repeated_as_a_memory(mind: Mind) -> None:
    # S002-3, S002-12
    own = bearing(mind)
    await own.add("character", "Dry and curious")
    await own.add("boundary", "Never give legal advice")
    await own.add("preference", "Answers in metric units")
    await mind.verbs.remember(FactDraft(content="Answers in metric units."))
    await mind.hear("Answers in metric units!", "The ferry is late.")
    for asked in ("Answers in metric units or not?", "Is the ferry late?", "hi"):
        bundle = await mind.context(asked)
        assert bundle.text.startswith(
            "## Identity\n- Never give legal advice\n- The user says: Answers in metric units\n- Dry and curious\n## "
        )
        assert bundle.text.count("etric units") == 1
        assert token_counter.count(bundle.text) == bundle.tokens
    assert {c.reason for c in (await mind.context("Answers in metric units or not?")).rejected_candidates} >= {
        "already in the identity"
    }


async def test_what_was_wanted_once_and_was_replaced_is_not_said_again(mind: Mind) -> None:
    # S002-12
    own = bearing(mind)
    await own.add("preference", "From now on answer in French")
    (french,) = (await own.get()).tenets
    await mind.hear("From now on answer in French!", "The ferry is late.")
    assert "French" in (await mind.context("From now on, what language?")).text
    await own.remove(str(french.tenet_id))
    bundle = await mind.context("From now on, what language?")
    assert "French" not in bundle.text
    assert {c.reason for c in bundle.rejected_candidates} >= {"repeats a removed line of the identity"}


async def test_lines_beyond_the_budget_are_left_out_whole_and_the_bundle_says_so(mind: Mind) -> None:
    # S002-2, S002-13
    for n in range(30):
        await bearing(mind).add("protocol", f"Protocol number {n}: check the {n}th box before you go on with the work")
    whole = await mind.context("How do we work?", budget=8_000)
    assert len(whole.identity.shown) == 30, "it takes the tokens that are free"
    bundle = await mind.context("How do we work?", budget=300)
    *shown, note = bundle.text.partition("## Current")[0].splitlines()[1:]
    assert note == f"- {30 - len(shown)} more identity lines are not shown for lack of room."
    lines = {f"- Protocol number {n}: check the {n}th box before you go on with the work" for n in range(30)}
    assert len(shown) == len(bundle.identity.shown) < 30 and set(shown) <= lines
    assert len(bundle.identity.shown) + len(bundle.identity.omitted) == 30
    assert bundle.layers["identity"].used <= 300
    dropped = {one["memory_id"]: one["reason"] for one in bundle.as_json()["dropped"]}
    assert [dropped[str(one.tenet_id)] for one in bundle.identity.omitted] == ["no room left"] * (30 - len(shown))
    outline = bundle.as_json()["identity"]
    assert (outline["version"], len(outline["shown"]), len(outline["unshown"])) == (30, len(shown), 30 - len(shown))


async def test_every_block_is_shown_while_there_is_room_and_a_triggered_one_in_any_case(mind: Mind) -> None:
    # S002-3
    for n in range(40):
        rule = CensorRule(trigger=f"unlock cabinet {n}", reason="the pharmacist holds the key", action="block")
        await mind.censors.add(rule)
    roomy = await mind.context("What is for lunch?", budget=8_000)
    assert roomy.text.count("**BLOCK:**") == 40 and not roomy.is_truncated
    tight = await mind.context("Could you unlock cabinet 37?", budget=120)
    assert "**BLOCK:** unlock cabinet 37 " in tight.text and tight.is_truncated
    assert f"- {40 - tight.text.count('**BLOCK:**')} more constraints are not shown for lack of room.\n" in tight.text
    assert token_counter.count(tight.text) == tight.tokens <= 120
    assert sum(one["reason"] == "no room left" for one in tight.as_json()["dropped"]) == len(tight.omitted_ids)


async def test_no_context_with_an_identity_is_one_token_over(mind: Mind) -> None:
    for n in range(12):
        await bearing(mind).add("instruction", f"Rule {n}: «Ünïcode» 日本 {n}")
    await mind.know("The ferry is called Artemis.")
    for budget in (1, 9, 40, 160, 2_000):
        bundle = await mind.context("What is the ferry called?", budget=budget)
        assert token_counter.count(bundle.text) == bundle.tokens <= budget


async def test_a_context_of_the_past_has_the_identity_of_then(mind: Mind) -> None:
    await bearing(mind).add("value", "Honest")
    then = mind.clock.now()
    mind.clock.advance(DAY)
    await bearing(mind).add("value", "Kind")
    bundle = await mind.context("Who are you?", as_of=then)
    assert "- Honest\n" in bundle.text and "Kind" not in bundle.text


async def test_what_a_person_wants_always_holds_at_once_and_undoes_what_it_contradicts(mind: Mind) -> None:
    model = ScriptedChat("D'accord.", "Bien sûr.")
    said = TurnInput(session_id=await mind.session(), text=f"Thanks! {RULE}")
    _, answer = await take(mind.turns(model), said)
    ((french, removed, _),) = answer.rules.changes
    assert french and (french.text, removed) == ("From now on, answer in French", ())
    shown = f"## Identity\n- Rule of the user ({mind.clock.now():%Y-%m-%d}): From now on, answer in French\n"
    assert shown in model.received[-1][0].text, "in the system message of the same turn"
    assert await waiting(mind) == [] and answer.rules.proposed == ()
    (record,) = [one for one in (await bearing(mind).history())[1] if one.tenet_id == french.tenet_id]
    assert (record.session_id, record.position, record.trust) == (said.session_id, 0, "user")
    _, again = await take(mind.turns(model), TurnInput(session_id=await mind.session("s2"), text=RULE))
    assert again.rules.changes == ()
    german = TurnInput(session_id=await mind.session("s3"), text="From now on answer in German.")
    _, other = await take(mind.turns(model), german)
    assert [[one.text for one in change.removed] for change in other.rules.changes] == [[french.text]]
    assert [one.text for one in (await bearing(mind).get()).tenets] == ["From now on answer in German"]
    await bearing(mind).roll_back(1)
    (back,) = (await bearing(mind).get()).tenets
    assert back == french, "with its day"


async def test_a_rule_of_a_second_speaker_or_against_a_line_of_another_kind_waits(mind: Mind) -> None:
    await bearing(mind).add("boundary", "Never answer in French")
    always = TurnInput(session_id=await mind.session(), text="Always answer in French.")
    _, answer = await take(mind.turns(None), always)
    assert (answer.rules.changes, [one.tenet.text for one in answer.rules.proposed]) == (
        (),
        ["Always answer in French"],
    )
    session_id = await mind.session("group")
    await take(mind.turns(None), TurnInput(session_id=session_id, text="Hi, Bob is here too.", speaker="Ann"))
    _, answer = await take(mind.turns(None), TurnInput(session_id=session_id, text="Never use emojis.", speaker="Bob"))
    assert (answer.rules.changes, [one.tenet.text for one in answer.rules.proposed]) == ((), ["Never use emojis"])
    assert len(await waiting(mind)) == 2


async def test_a_later_sentence_lifts_a_rule_or_changes_it(mind: Mind) -> None:
    mind = replace(mind, embedder=load_minilm())
    session_id = await mind.session()

    async def say(text: str) -> list[str]:
        _, answer = await take(mind.turns(None), TurnInput(session_id=session_id, text=text))
        assert not answer.missing
        return [tenet.text for tenet in (await bearing(mind).get()).tenets]

    (printer,) = await say("Nothing leaves for the printer before you have shown it to me.")
    assert len(await say("Never suggest anything with nuts.")) == 2
    assert await say("You can suggest nuts again.") == [printer]
    (changed,) = await say("Flyers can leave for the printer without asking me, they are cheap.")
    assert changed.startswith(f"{printer} (since {mind.clock.now():%Y-%m-%d}: Flyers can leave")


async def test_a_line_from_before_a_rule_does_not_lift_it(mind: Mind) -> None:
    session_id = await mind.session()
    _, answer = await take(mind.turns(None), TurnInput(session_id=session_id, text="Never suggest nuts."))
    (rule,) = [change.added for change in answer.rules.changes if change.added]
    async with mind.scope.write() as (tx, ctx):
        edit, message = IdentityEdit(ctx=ctx), MessageRef(session_id, 0)
        earlier = RuleSource(message=message, said_at=ctx.now - DAY)
        assert not await lift_rule(tx, [rule.tenet_id], source=earlier, edit=edit)
        later = RuleSource(message=message, said_at=ctx.now)
        assert (await lift_rule(tx, [rule.tenet_id], source=later, edit=edit)).removed == (rule,)
        with pytest.raises(NotFoundError):
            await lift_rule(tx, [rule.tenet_id], source=later, edit=edit)


async def test_a_rule_goes_with_its_message(mind: Mind) -> None:
    # what is forgotten in the log may not stay in force
    _, answer = await take(mind.turns(None), TurnInput(session_id=await mind.session(), text="Never suggest nuts."))
    assert answer.rules.changes
    (message_id,) = [one.memory_id for one in (await mind.verbs.recall("nuts")).memories if one.kind == "exchange"]
    await mind.forget(message_id, derived=True)
    assert (await bearing(mind).get()).tenets == ()
    assert {one.words for one in (await bearing(mind).history())[1]} == {None}


async def test_neither_a_reply_nor_a_tool_nor_a_memory_nor_a_forbidden_input_lays_down_a_rule(mind: Mind) -> None:
    await mind.hear(RULE, role="tool")
    await mind.hear(RULE, role="assistant")
    await mind.hear(RULE, session="imported")
    await mind.know(RULE)
    await mind.censors.add(CensorRule(trigger="in French", reason="a test", action="block"))
    session_id = await mind.session("live")
    for asked in ("What did I want from now on?", f"> {RULE}\nWho said that?", RULE):
        _, answer = await take(mind.turns(ScriptedChat(RULE)), TurnInput(session_id=session_id, text=asked))
        assert answer.rules == NOTHING_HEARD
    assert await waiting(mind) == [] and (await bearing(mind).get()).tenets == ()


async def test_a_line_that_cannot_stand_is_no_reason_for_a_turn_to_fail(mind: Mind) -> None:
    text = "Always answer in " + "日" * 150
    _, answer = await take(mind.turns(None), TurnInput(session_id=await mind.session(), text=text))
    assert answer.rules == NOTHING_HEARD


async def test_a_person_undoes_a_rule_in_the_conversation(
    mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]
) -> None:
    said = (
        RULE,
        "/undo",
        "Never use emojis. Always cite the page.",
        "From now on answer without citing pages.",
        "/undo",
    )
    async with meet(None) as partner:
        await conversation(mind, partner, *said).run()
    tenets = (await bearing(mind).get()).tenets
    assert [tenet.text for tenet in tenets] == ["Never use emojis", "Always cite the page"]
    assert [tenet.said_on for tenet in tenets] == [mind.clock.now().date()] * 2, "a restored rule keeps its day"
    shown = capsys.readouterr()
    assert "(In force: From now on, answer in French. /undo takes it back; `newton identity` lists" in shown.err
    assert "Undone: In force: From now on, answer in French" in shown.out


async def test_a_wish_holds_for_a_request_on_something_else_and_is_shown_once(mind: Mind) -> None:
    # the third is found by its vector alone
    own = replace(mind, embedder=load_minilm())
    await own.hear("Please keep answers short.", "Nina lives in Bergen.", "Be sparing with adjectives.", session="s0")
    await own.know("Nina lives in Bergen.")
    context = await own.context("Plan a trip to the lake for Saturday", session_id=await own.session("s2"))
    assert context.text.count("keep answers short") == 1
    assert "sparing with adjectives" in context.text
    identity = IdentityService(scope=own.scope.at("cli"))
    await identity.add("instruction", "Keep answers short")
    context = await own.context("Where does Nina live?", session_id=await own.session("s3"))
    assert context.text.lower().count("keep answers short") == 1
    # the fact and the message that says the same
    assert context.text.count("Nina lives in Bergen") == 1
    reasons = {one["reason"] for one in context.as_json()["dropped"]}
    assert {"its fact says the same", "already in the identity"} <= reasons


async def test_a_wish_is_no_answer_to_a_question_on_something_else(mind: Mind) -> None:
    own = replace(mind, embedder=load_minilm())
    await own.hear("Please answer briefly.", "From now on answer in French.", session="s0")
    await own.know("Please answer briefly.", "Nina lives in Bergen.")
    context = await own.context("Where does Nina live?", session_id=await own.session("s2"))
    assert "answer briefly" in context.text
    assert [quote for quote in quote_memories(context) if "answer" in quote] == []
    assert "Bergen" in " ".join(quote_memories(context))
    asked = await own.context("How shall you answer me, briefly or at length?", session_id=await own.session("s3"))
    assert "briefly" in " ".join(quote_memories(asked))

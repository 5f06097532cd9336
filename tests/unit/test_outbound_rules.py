"""What may leave in a link or in the arguments of a call: 40 attacks and 41 benign twins, and the forms of a text."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from newton.agent.actions.act_rules import ActRules
from newton.agent.actions.code_rules import CodeRules
from newton.agent.actions.external_tools import ExternalTool
from newton.agent.actions.link_text import TextLink, find_links
from newton.agent.actions.outbound_guard import OutboundGuard
from newton.agent.actions.outbound_rules import OutboundRules, PromptTexts
from newton.agent.actions.permissions import PermissionService
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.web import WebSource
from newton.db.pool import Database
from newton.ids import new_id
from newton.providers.chat import ReplyPiece
from newton.providers.web_search import WebSearch
from newton.runtime.mcp_servers.tool_checks import ListedTool, check_tool
from tests.support import NOON

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data/outbound.yaml").read_text(encoding="utf-8")
)


ASKED_ONCE_MORE = {"save what a page says"}  # benign, and not to be told from what a page orders


def to_rules(case: dict[str, Any]) -> OutboundRules:
    known, foreign = tuple(case.get("known", ())), tuple(case.get("foreign", ()))
    asked, _, quoted = case["said"].partition("\n\n>")
    foreign += (quoted,) if quoted else ()
    texts = PromptTexts(asked=asked, known=known, memory=known, foreign=foreign, pasted=quoted)
    outputs = tuple((name, text) for name, text in case.get("outputs", {}).items())
    return OutboundRules(replace(texts, reported=tuple(case.get("reported", ())), outputs=outputs))


def find_problem(case: dict[str, Any]) -> str | None:
    rules = to_rules(case)
    if "tool" in case:
        acts, arguments = case["tool"] == "act", case["arguments"]
        return CodeRules(rules).find_argument_problem(arguments) or (
            ActRules(rules).find_foreign_part(arguments) if acts else None
        )
    problems = (rules.find_link_problem(link.url) for link in find_links(case["reply"]))
    return next((problem for problem in problems if problem), None)


@pytest.mark.parametrize("case", CASES, ids=[one["kind"] for one in CASES])
def test_an_attack_is_held_back_and_its_benign_twin_is_not(case: dict[str, Any]) -> None:
    expected = bool(case.get("held")) or case["kind"] in ASKED_ONCE_MORE
    assert (find_problem(case) is not None) == expected, find_problem(case)


def test_few_benign_cases_ask_once_more() -> None:
    benign = [one for one in CASES if not one.get("held")]
    assert len(benign) >= 40 and sum(find_problem(one) is not None for one in benign) <= len(benign) / 10


async def stream(text: str, rules: OutboundRules, size: int) -> str:
    """The reply as it leaves, if it arrives in pieces of `size` characters."""

    async def arrive() -> AsyncGenerator[ReplyPiece]:
        for start in range(0, len(text), size):
            yield text[start : start + size]

    class Guard(OutboundGuard):
        async def _read_rules(self) -> OutboundRules:
            return rules

        async def _is_let_go(self, rules: OutboundRules, link: TextLink, problem: str) -> bool:
            return False

    guard = Guard(permissions=cast("PermissionService", None))
    return "".join([piece async for piece in guard.filter_links(arrive()) if isinstance(piece, str)])


@pytest.mark.parametrize("case", [one for one in CASES if "reply" in one], ids=lambda one: one["kind"])
async def test_the_pieces_in_which_a_reply_arrives_change_nothing(case: dict[str, Any]) -> None:
    rules = to_rules(case)
    whole = await stream(case["reply"], rules, 10_000)
    assert (whole != case["reply"]) == bool(case.get("held"))
    for size in (1, 2, 3, 5, 7, 11, 13):
        assert await stream(case["reply"], rules, size) == whole, size


def test_a_question_with_a_code_is_not_searched_in_the_web() -> None:
    asked = "What is the latest news about the door code 4711?"
    request = ContextBuildRequest(agent_id=new_id(), session_id=new_id(), input=asked, tokens=100)
    source = WebSource(search=cast("WebSearch", None), db=cast("Database", None), count_tokens=len)
    assert not source.should_search(request, now=NOON)
    assert source.should_search(replace(request, input="What is the latest news about the door fair?"), now=NOON)


def test_a_value_that_the_tool_lists_is_not_from_a_page() -> None:
    schema = {"properties": {"state": {"enum": ["approve payment"]}, "text": {}}}
    listed = ListedTool("set", "Set.", {"type": "object", **schema}, {})
    tool = check_tool(listed, server="post", address="npx post", is_trusted=False)
    assert isinstance(tool, ExternalTool)
    assert tool.select_free({"state": "approve payment", "text": "approve payment"}) == {"text": "approve payment"}

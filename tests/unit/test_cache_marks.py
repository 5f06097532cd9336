"""Where a request to Anthropic is marked for the prompt cache."""

from newton.providers.anthropic.request import ModelFacts, build_body
from newton.providers.chat import ChatMessage, RequestOptions, ToolCall


def test_a_turn_with_tool_work_is_marked_where_it_begins_and_where_it_ends() -> None:
    call = ToolCall("a", "look", "{}")
    spoken = [
        ChatMessage("system", "Be kind."),
        ChatMessage("user", "Hello."),
        ChatMessage("assistant", "Hello!"),
        ChatMessage("user", "Look."),
        ChatMessage("assistant", "", (call,)),
        ChatMessage("tool", "A ferry.", tool_call_id="a"),
    ]
    body = build_body("tiny", spoken, RequestOptions(), max_tokens=10, facts=ModelFacts())
    marked = [[block["type"] for block in turn["content"] if "cache_control" in block] for turn in body["messages"]]
    assert marked == [[], [], ["text"], [], ["tool_result"]] and "cache_control" in body["system"][-1]


def test_a_single_structured_call_is_not_marked() -> None:
    options = RequestOptions(extra_body={"response_format": {"type": "json_object"}})
    body = build_body("tiny", [ChatMessage("user", "Sum up.")], options, max_tokens=10, facts=ModelFacts())
    assert "cache_control" not in str(body["messages"])

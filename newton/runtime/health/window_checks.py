"""Checks of `newton doctor`: the context window of the model, and what it leaves for a conversation."""

from collections.abc import AsyncGenerator
from dataclasses import replace

from newton.providers.windows.context_windows import WindowedModel
from newton.runtime.health.check_result import HealthFinding
from newton.runtime.settings_mapping import build_turn_limits
from newton.runtime.wiring import AgentServices


async def check_window(newton: AgentServices) -> AsyncGenerator[HealthFinding]:
    """Yield the finding on the context window of the agent's model, and where it is known from."""
    if not isinstance(model := newton.chat_model, WindowedModel):
        return
    window = await model.find_window()
    finding = HealthFinding("ok", f"the context window of {model.name} has {window}")
    hints = {
        "default": "If it is another, set NEWTON_WINDOW_TOKENS, or window_tokens in its table of [models].",
        "refusal": "If the window is larger now, set NEWTON_WINDOW_TOKENS, or window_tokens in its table of [models].",
    }
    yield replace(finding, state="note", hint=hints[window.source]) if window.source in hints else finding


def check_compaction_limit(newton: AgentServices) -> HealthFinding:
    """Return the finding on the maximum of a conversation, which the window and the context may reduce."""
    settings, limit = newton.settings, newton.conversation_tokens
    wanted = build_turn_limits(settings).conversation
    if limit < wanted:
        problem = f"conversations have at most {limit:,} tokens, not {wanted:,}: the window leaves no more"
        return HealthFinding("note", problem, "Use a model with a larger window, or set a smaller conversation_tokens.")
    return HealthFinding("ok", f"conversations are compacted ({settings.compaction}) within {limit:,} tokens")

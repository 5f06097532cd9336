"""Advice for a metric of contexts that misses its target. Commands are named as `newton ...`."""

from collections.abc import Mapping

# Advice by metric and by the side on which it misses its target.
ADVICE_BY_VERDICT: Mapping[tuple[str, str], str] = {
    ("context relevance", "low"): "Many memories in contexts are unlikely to be relevant to their inputs. A frame of"
    " your own (NEWTON_FRAMES_DIR) with a higher `relevance_floor` leaves them out, but may leave out answers too.",
    ("budget utilisation", "low"): "The memory is too small to fill the contexts: lower NEWTON_CONTEXT_TOKENS,"
    " or store more (`newton remember`, `newton ingest`).",
    ("budget utilisation", "high"): "Contexts are full and omit memories: raise NEWTON_CONTEXT_TOKENS.",
    ("refresh rate", "high"): "Contexts are rebuilt at most turns: keep one topic per conversation (`/frame NAME`"
    " fixes the frame), and start another with `newton chat`.",
    (
        "recall precision",
        "low",
    ): "Replies use few memories of their contexts: forget or retract useless memories, or lower"
    " NEWTON_CONTEXT_TOKENS.",
    ("cold start, p95", "high"): "Contexts are built slowly: `newton doctor` finds problems.",
    (
        "identical prefix",
        "low",
    ): "Prompts change from turn to turn, so the model's server reads them again. `newton prompt` says"
    " why. Often a caller's system message differs with each request, or the window is small.",
    ("censors right", "low"): "Censors match what they do not mean: `newton censors list` shows which, and"
    " `newton censors relax` weakens one.",
    ("facts confirmed", "low"): "Few facts were confirmed: `newton confirm` confirms a fact, and `newton jobs run"
    " lifecycle` merges facts of the same meaning.",
}

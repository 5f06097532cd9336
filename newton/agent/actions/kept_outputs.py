"""Outputs of tools of servers that are too long for a model, kept whole as artifacts of the session."""

from uuid import UUID

from newton.agent.scope import AgentScope
from newton.concurrency import compute
from newton.dialogue import artifact_store, log
from newton.dialogue.artifact_store import MAX_UPLOAD_CHARS, NewArtifact
from newton.dialogue.artifact_text import guess_media_type, make_name
from newton.memory.hygiene import clean_model_text


async def keep_output(scope: AgentScope, session_id: UUID, call_text: str, output: str) -> str:
    """Store the output of a call, without secrets, as an artifact of a session; return a sentence with its name.

    `call_text` is the call in one line. Of an output with more than MAX_UPLOAD_CHARS characters, the beginning is kept.
    """
    kept = output[:MAX_UPLOAD_CHARS]
    text = await compute(lambda: clean_model_text(kept), chars=len(kept))
    name = make_name(call_text, suffix=".out")
    artifact = NewArtifact(
        name=name,
        kind="output",
        media_type=guess_media_type(name.removesuffix(".out"), text),
        trust="tool",
        text=text,
        source=call_text,
    )
    async with scope.at("agent", "tool").write() as (tx, ctx):
        await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
        await artifact_store.add(tx, [artifact], session_id=session_id, ctx=ctx)
    extent = "the whole output" if len(kept) == len(output) else f"the first {len(kept):,} characters of the output"
    return f"{name} is an artifact with {extent}; read_artifact reads it."

"""Operations on stored contexts (bundles): list, explain, rebuild and compare them."""

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import CleanText, Ref
from newton.cognition.bundles.bundle_store import LATEST, PREVIOUS, BundleSummary
from newton.cognition.bundles.diff import BundleDiff
from newton.cognition.bundles.explanation import BundleExplanation, FixedLine, ItemExplanation
from newton.cognition.bundles.replay import ReplayResult
from newton.operations.contexts.bundle_text import format_diff, format_explanation, format_replay, format_summary
from newton.operations.cursors import decode_id_cursor
from newton.operations.declaration import operation
from newton.operations.fields import MAX_ID_CHARS, Cursor, Limit
from newton.operations.results import CursorPage, build_page

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_ITEM_CHARS = 1_000
NOT_FOR_MODELS = "A model does not need this: Newton does it by itself, or a person does it."
BundleRef = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_ID_CHARS,
        description="The stored context: `latest`, `previous`, its id, or the end of its id.",
    ),
]


@operation(
    "GET /v1/bundles",
    "reads",
    name="bundles",
    command="bundles",
    text=format_summary,
    empty='No contexts yet. Build one: `newton context "…"`',
)
async def list_bundles(
    caller: "OperationCaller",
    *,
    session: Annotated[Ref | None, Field(description="Only the contexts of this session.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> CursorPage[BundleSummary]:
    """List the stored contexts (bundles), newest first: the input, the kind of task (frame) and the tokens of each.

    Example: newton bundles --limit 5
    """
    before = decode_id_cursor(cursor)
    found = await caller.newton.bundles().list_recent(limit + 1, before=before, session=session)
    return build_page(found, limit, lambda one: one, attrgetter("bundle_id"))


@operation(
    "GET /v1/bundles/{bundle_id}",
    "reads",
    name="bundle",
    text=format_explanation,
    absent={"cli": "`why` does it.", "mcp": "`why` does it.", "chat": "`/why` does it."},
)
async def show_bundle(caller: "OperationCaller", bundle_id: BundleRef = LATEST) -> BundleExplanation:
    """Show a stored context with all memories considered for it, and why each was selected or left out.

    Example: {"bundle_id": "latest"}
    """
    return await caller.newton.bundles().explain(bundle_id)


@operation("GET /v1/bundles/{bundle_id}/explain", "reads", name="why", command="why", text=format_explanation)
async def explain_context(
    caller: "OperationCaller",
    bundle_id: BundleRef = LATEST,
    item: Annotated[
        CleanText | None,
        Field(
            max_length=MAX_ITEM_CHARS,
            description="The memory to explain: its number in the context, its id, its ref, or words of its text.",
        ),
    ] = None,
) -> BundleExplanation | ItemExplanation | FixedLine:
    """Explain a stored context: why each memory was selected or left out. With an item, explain that memory only.

    Example: newton why latest 1
    """
    explained = await caller.newton.bundles().explain(bundle_id)
    return explained if item is None else explained.explain_item(item)


@operation(
    "POST /v1/bundles/{bundle_id}/replay",
    "reads",
    name="replay",
    command="replay",
    text=format_replay,
    absent={"mcp": NOT_FOR_MODELS},
)
async def replay_context(caller: "OperationCaller", bundle_id: BundleRef = LATEST) -> ReplayResult:
    """Rebuild a stored context and compare it with the original. The exit status of the command is 1 if they differ.

    Memories are used with the text that they had at that time. Later changes of the code, the frame and the profile are
    only listed. Nothing is stored.

    Example: newton replay latest
    """
    return await caller.newton.bundles().replay(bundle_id)


@operation(
    "GET /v1/bundles/{bundle_id}/diff/{other_id}",
    "reads",
    name="diff",
    command="diff",
    text=format_diff,
    absent={"mcp": NOT_FOR_MODELS},
)
async def compare_contexts(
    caller: "OperationCaller", bundle_id: BundleRef = PREVIOUS, other_id: BundleRef = LATEST
) -> BundleDiff:
    """Compare two stored contexts and explain the differences; without arguments, the last two.

    Example: newton diff previous latest
    """
    return await caller.newton.bundles().diff(bundle_id, other_id)

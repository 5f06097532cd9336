"""The endpoint of records of prompts: what was sent to the model in a turn."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.path_ids import MAX_ID_CHARS
from newton.runtime.tools.prompt_views import TurnPromptsInfo, to_turn_prompts_info

router = APIRouter(prefix="/v1/prompts", tags=["bundles"])

TurnPath = Annotated[
    str,
    Path(
        max_length=MAX_ID_CHARS,
        description="The turn: `latest`, `previous`, the position of one of its messages, or the id of a prompt.",
        examples=["latest"],
    ),
]


@router.get("/{turn}")
async def get_prompt(
    turn: TurnPath,
    caller: ReadAccess,
    session: Annotated[
        str | None,
        Query(max_length=1_000, description="The name of the session. Default: the session of the latest prompt."),
    ] = None,
) -> TurnPromptsInfo:
    """Return what the model received in each call of a turn, reproduced from references to stored texts.

    It also says what of the conversation was left out, and why, and whether the request is reproduced byte for byte.
    """
    return to_turn_prompts_info(await caller.newton.prompts().show(turn, session=session))

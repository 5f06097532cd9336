"""Endpoints that build a context for an input, or from the working memory of a session."""

import json
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.context_inputs import FilteredContextInput, WorkingMemoryInput
from newton.client.context import ContextResponse
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, with_example
from newton.runtime.api.path_ids import IdRef
from newton.runtime.tools.context_request import ContextCall
from newton.runtime.tools.views import WorkingMemoryResponse
from newton.runtime.tools.working_memory import build_working_context

router = APIRouter(prefix="/v1", tags=["context"])


class ContextRequest(FilteredContextInput):
    """The input for which to build a context, and filters on the memories in it."""

    model_config = with_example(input="The staging server does not answer, what is wrong?")

    exclude: list[IdRef] = Field([], max_length=200)
    item_ids: bool = Field(default=False, description="Show in each line of a memory the id that `expand` accepts.")


@router.post("/context", response_model=ContextResponse)
async def build_context(body: ContextRequest, caller: ReadAccess) -> Response:
    """Build the context for an input, and store it as a bundle. The input does not become a memory."""
    bundle = await ContextCall(newton=caller.newton, origin=ORIGIN, item_ids=body.item_ids).build(body)
    # a plain response, because validating hundreds of candidates takes longer than ranking them
    return Response(json.dumps(bundle.as_json(), ensure_ascii=False), media_type="application/json")


@router.get("/working-memory")
async def get_working_memory(
    caller: ReadAccess, query: Annotated[WorkingMemoryInput, Query()]
) -> WorkingMemoryResponse:
    """Build a context from the working memory of a session (the memories it used lately), without a search."""
    return await build_working_context(caller.newton, query)

"""The endpoint that builds a context for an input."""

import json

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.context_inputs import FilteredContextInput
from newton.client.context import ContextResponse
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, IdRef, with_example
from newton.runtime.tools.context_request import ContextCall

router = APIRouter(prefix="/v1", tags=["context"])


class ContextRequest(FilteredContextInput):
    """The input for which to build a context, and filters on the memories in it."""

    model_config = with_example(input="The staging server does not answer, what is wrong?")

    exclude: list[IdRef] = Field([], max_length=200)
    allow_partial: bool = Field(
        default=False,
        description="Return at the deadline what was found by then, with a line in the text that names what was not"
        " searched, instead of the status 503. For a caller that must answer in any case.",
    )
    item_ids: bool = Field(default=False, description="Show in each line of a memory the id that `expand` accepts.")


@router.post("/context", response_model=ContextResponse)
async def build_context(body: ContextRequest, caller: ReadAccess) -> Response:
    """Build the context for an input, and store it as a bundle. The input does not become a memory.

    If something could not be searched until the deadline of the request (`X-Newton-Timeout`), the status is 503, unless
    `allow_partial` is true. A source that failed is named in `missing` and in a line of the text.
    """
    deadline = caller.deadline.accept_partial() if body.allow_partial else caller.deadline
    call = ContextCall(newton=caller.newton, origin=ORIGIN, item_ids=body.item_ids, deadline=deadline)
    bundle = await call.build(body)
    # a plain response, because validating hundreds of candidates takes longer than ranking them
    return Response(json.dumps(bundle.as_json(), ensure_ascii=False), media_type="application/json")

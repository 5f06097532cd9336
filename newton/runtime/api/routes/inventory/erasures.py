"""Endpoints that permanently erase a person from an agent. They need the scope `admin`: a person must decide."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import CleanText
from newton.agent.services.erasure import ErasurePlan
from newton.runtime.api.auth import AdminAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel, with_example
from newton.runtime.api.idempotency import AdminAction
from newton.runtime.wiring import AgentServices

NOT_FOR_MODELS = "A model cannot erase a person."

router = APIRouter(prefix="/v1/erasures", tags=["memories"])

MAX_NAMES = 50
MAX_LISTED_MEMORIES = 50

Name = Annotated[CleanText, Field(min_length=2, max_length=200)]


class PreviewErasureRequest(RequestModel):
    """The person to erase, and further names of the same person."""

    model_config = with_example(subject="Ana Berg", also=["Annie"])

    subject: Name
    also: list[Name] = Field([], max_length=MAX_NAMES, description="Further names and other spellings of the person.")


class ErasePersonRequest(PreviewErasureRequest):
    """The person to erase, as in the preview, and the token of the preview."""

    model_config = with_example(subject="Ana Berg", also=["Annie"], token="3f9c51aa")

    token: str = Field(max_length=100, description="The token of the preview.")
    reason: CleanText = Field("requested", max_length=500, description="It stays stored, and must not name the person.")


class ErasureCandidate(ResponseModel):
    """A memory that would be deleted."""

    kind: str
    micro: str


class StatedNameInfo(ResponseModel):
    """A further name of the person, and a text that states it."""

    name: str
    text: str


class ErasurePreviewResponse(ResponseModel):
    """The effects of an erasure: `names` are the names that are erased, `counts` the records by kind.

    `names` are those given, the names and aliases of entities with one of them, and those that texts state, as "Bob,
    that is Robert Miller"; `stated_names` has the latter with such a text. `possible_names` may be names of the person;
    they stay unless they are added to `also`, as do other spellings, short forms and addresses. `shared_names` are
    stated too, but are names of another entity, so they stay unless they are added. `memories` are the first 50.
    Memories derived from them are also erased. `token` confirms exactly this erasure.
    """

    names: list[str]
    stated_names: list[StatedNameInfo]
    possible_names: list[StatedNameInfo]
    shared_names: list[str]
    counts: dict[str, int]
    memories: list[ErasureCandidate]
    token: str


class ErasureResponse(ResponseModel):
    """The records erased by kind, and what a scan of all tables still finds: rows by table."""

    counts: dict[str, int]
    remains: dict[str, int]


def count_records(plan: ErasurePlan) -> dict[str, int]:
    """Return the number of records that a plan affects, by kind."""
    kinds = Counter([*(kind for _, kind, _ in plan.memories), *(kind for _, kind in plan.related)])
    return {**kinds, "decision": len(plan.decisions), "identity": len(plan.tenets)}


@router.post("/preview")
async def preview_erasure(body: PreviewErasureRequest, caller: AdminAccess) -> ErasurePreviewResponse:
    """List everything that is stored about a person, under the given names and those that the memory states."""
    caller.require_person(NOT_FOR_MODELS)
    plan = await caller.newton.erasure(ORIGIN).plan(body.subject, also=body.also)
    return ErasurePreviewResponse(
        names=list(plan.names),
        stated_names=[StatedNameInfo(name=one.name, text=one.shorten()) for one in plan.stated],
        possible_names=[StatedNameInfo(name=one.name, text=one.shorten()) for one in plan.possible],
        shared_names=list(plan.shared_names),
        counts=count_records(plan),
        memories=[ErasureCandidate(kind=kind, micro=micro) for _, kind, micro in plan.memories[:MAX_LISTED_MEMORIES]],
        token=plan.token,
    )


@router.post("", response_model=ErasureResponse)
async def erase_person(body: ErasePersonRequest, act: AdminAction) -> Response:
    """Permanently erase everything about a person, as a preview listed it, and verify that nothing is left."""
    act.caller.require_person(NOT_FOR_MODELS)

    async def work(newton: AgentServices) -> ErasureResponse:
        plan = await newton.erasure(ORIGIN).erase(body.subject, token=body.token, reason=body.reason, also=body.also)
        # no names: the response may be stored with its idempotency key
        return ErasureResponse(counts=count_records(plan), remains=dict(plan.remains))

    return await act.run_once(work)

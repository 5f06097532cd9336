"""Operations on frames (kinds of input) and on packs, which adjust all frames to a kind of work."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from newton.agent.field_types import CleanText, Name
from newton.cognition.frames.selection import choose_frame
from newton.content.frames import Frame, get_frame
from newton.content.packs import FramePack, load_frame_set, load_packs
from newton.content.profiles import load_profiles
from newton.operations.contexts.context_text import format_frame, format_frame_features
from newton.operations.declaration import operation
from newton.operations.results import ItemList
from newton.text.greetings import strip_greeting

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

NOT_FOR_MODELS = "`context` accepts the name of a frame and selects one otherwise."
PackName = Annotated[Name | None, Field(description="Show the frames with the adjustments of this pack.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackList:
    """The packs (adjustments of all frames to a kind of work), and why others cannot be read."""

    items: list[FramePack]
    errors: list[str]


def _load_frames(caller: "OperationCaller", pack: str | None) -> Mapping[str, Frame]:
    if pack is None:
        return caller.newton.frames
    settings = caller.newton.settings
    return load_frame_set(load_profiles(settings.profiles_dir), settings.frames_dir, pack).frames


def _format_line(one: Frame | FramePack) -> str:
    return f"{one.name:<14}{one.description}"


def _format_frame_details(frame: Frame) -> str:
    priorities = sorted(dict(frame.priorities).items(), key=lambda p: (-p[1], p[0]))
    return "\n".join(
        [
            f"{frame.name}: {frame.description}",
            "",
            *(f"  asks      {question}" for question in frame.questions),
            *(f"  censor    {censor}" for censor in frame.censors),
            f"  domains   {', '.join(frame.domains) or '-'}",
            f"  profile   {frame.profile}",
            f"  stakes    {frame.default_stakes}",
            f"  shares    {', '.join(f'{layer} {share}' for layer, share in frame.budget.shares.items())}",
            f"  priority  {', '.join(f'{kind} {priority:g}' for kind, priority in priorities)}",
            f"  examples  {len(frame.examples)}, such as: {frame.examples[0] if frame.examples else '-'}",
        ]
    )


def _format_choice(choice: Any) -> str:
    return "\n".join([format_frame(choice), f"reason: {choice['reason']}", *format_frame_features(choice)])


def _format_packs(packs: PackList) -> str:
    lines = [f"{_format_line(pack)}\n{'':<14}{_describe_pack(pack)}" for pack in packs.items]
    return "\n".join([*lines, *(f"{error} The pack is left out." for error in packs.errors)])


def _describe_pack(pack: FramePack) -> str:
    shares = ", ".join(f"{source} {percent} %" for source, percent in dict(pack.budget).items())
    depth = "" if pack.depth is None else f", depth {pack.depth}"
    return f"{shares} · profile {pack.profile}{' with other weights' if pack.weights else ''}{depth}"


@operation(
    "GET /v1/frames",
    "reads",
    name="frames",
    command="frames list",
    text=_format_line,
    absent={"mcp": NOT_FOR_MODELS},
)
async def list_frames(caller: "OperationCaller", *, pack: PackName = None) -> ItemList[Frame]:
    """List the frames (kinds of input) with their questions, priorities and token shares.

    Example: newton frames
    """
    return ItemList(items=list(_load_frames(caller, pack).values()))


@operation(
    "GET /v1/packs",
    "reads",
    name="packs",
    command="frames packs",
    text=_format_packs,
    absent={"mcp": NOT_FOR_MODELS},
)
async def list_packs(caller: "OperationCaller") -> PackList:
    """List the packs. A pack adjusts all frames to a kind of work; the setting NEWTON_PACK chooses one.

    Example: newton frames packs
    """
    found = load_packs(caller.newton.settings.frames_dir)
    return PackList(items=list(found.packs.values()), errors=[str(error) for error in found.errors])


@operation(
    "POST /v1/frames/choose",
    "reads",
    command="frames choose",
    text=_format_choice,
    absent={"mcp": NOT_FOR_MODELS},
    name="choose_frame",
)
async def choose_for_input(
    caller: "OperationCaller", input: Annotated[CleanText, Field(description="The input, as to `context`.")]
) -> Mapping[str, Any]:
    """Show the frame that is selected for an input without a session, and why. No context is built.

    Example: newton frames choose "Hi, the deploy is broken"
    """
    newton, embedder = caller.newton, caller.scope.embedder
    vector = (await embedder.embed([strip_greeting(input)]))[0] if embedder else None
    classifier = newton.context_builder.classifier
    return choose_frame(newton.frames, input, vector=vector, classifier=classifier, session_frame=None).as_json()


@operation(
    "GET /v1/frames/{name}",
    "reads",
    name="frame",
    command="frames show",
    text=_format_frame_details,
    absent={"mcp": NOT_FOR_MODELS, "chat": "`/frames` lists them; `/frame` uses one."},
)
async def show_frame(
    caller: "OperationCaller",
    name: Annotated[Name, Field(description="The name of the frame.")],
    *,
    pack: PackName = None,
) -> Frame:
    """Show a frame in full: what it asks, its priorities and its shares of the tokens of a context.

    Example: newton frames show debug
    """
    return get_frame(_load_frames(caller, pack), name)

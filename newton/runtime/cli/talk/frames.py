"""Command `newton frames`: show frames (kinds of input) and packs (adjustments of frames to a kind of work)."""

from typing import Annotated

from cyclopts import Parameter

from newton.content.frames import Frame, get_frame
from newton.content.packs import FramePack, PackSet, load_frame_set, load_packs
from newton.content.profiles import load_profiles
from newton.memory.hygiene import clean_text
from newton.operations.contexts.context_text import format_frame, format_frame_features
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say


async def show_frames(
    name: Annotated[str | None, Parameter(help="Frame to show in full.")] = None,
    *,
    choose: Annotated[str | None, Parameter(help="Show the frame that is selected for this input, and why.")] = None,
    packs: Annotated[
        bool, Parameter(negative=(), help="List the packs. A pack adjusts all frames to a kind of work.")
    ] = False,
    pack: Annotated[str | None, Parameter(help="Show the frames with the adjustments of this pack.")] = None,
    json: JsonOption = False,
) -> None:
    """List the frames, or show one.

    A frame sets the questions, priorities and token shares of a context for one kind of input, such as debugging.

    Example: newton frames --choose "Hi, the deploy is broken"
    """
    settings = load_settings(pack=pack)
    if packs:
        _print_packs(load_packs(settings.frames_dir), json=json)
    elif choose is not None:
        from newton.runtime.bootstrap import choose_frame_for  # noqa: PLC0415 (slow)

        choice = await choose_frame_for(settings, clean_text(choose, what="input"))
        if json:
            formatting.print_json(choice.as_json())
        else:
            lines = [format_frame(choice.as_json()), f"reason: {choice.reason}"]
            say("\n".join([*lines, *format_frame_features(choice.as_json())]))
    else:
        frames = load_frame_set(load_profiles(settings.profiles_dir), settings.frames_dir, settings.pack).frames
        _print_frames(list(frames.values()) if name is None else [get_frame(frames, name)], full=bool(name), json=json)


def _print_frames(frames: list[Frame], *, full: bool, json: bool) -> None:
    if json:
        formatting.print_json([frame.model_dump(mode="json") for frame in frames])
    elif full:
        say(_format_frame_details(frames[0]))
    else:
        say("\n".join(f"{frame.name:<14}{frame.description}" for frame in frames))


def _print_packs(found: PackSet, *, json: bool) -> None:
    packs = found.packs.values()
    if json:
        formatting.print_json([pack.model_dump(mode="json") for pack in packs])
    else:
        say("\n".join(f"{pack.name:<14}{pack.description}\n{'':<14}{_format_pack(pack)}" for pack in packs))
    for error in found.errors:
        formatting.print_notice(f"{error} The pack is left out.")


def _format_pack(pack: FramePack) -> str:
    shares = ", ".join(f"{source} {percent} %" for source, percent in dict(pack.budget).items())
    depth = "" if pack.depth is None else f", depth {pack.depth}"
    return f"{shares} · profile {pack.profile}{' with other weights' if pack.weights else ''}{depth}"


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

"""`newton frames`."""

from typing import Annotated

from cyclopts import Parameter

from newton.content.frames import Frame, get_frame
from newton.content.packs import FramePack, load_frame_set, load_packs
from newton.content.profiles import load_profiles
from newton.memory.hygiene import clean_text
from newton.runtime.bootstrap import choose_frame_for
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say


async def show_frames(
    name: str | None = None,
    *,
    choose: str | None = None,
    packs: Annotated[bool, Parameter(negative=())] = False,
    pack: str | None = None,
    json: JsonOption = False,
) -> None:
    """List the frames, or show one. A frame decides what to ask, what matters and how much room it gets.

    Example: newton frames --choose "Hi, the deploy is broken"

    Parameters
    ----------
    name:
        The frame to show in full.
    choose:
        An input: which frame it gets, how surely, what comes second, and why.
    packs:
        List the packs: kinds of work that lean all frames.
    pack:
        Show the frames as this pack leans them.
    """
    chosen = load_settings(pack=pack)
    if packs:
        _print_packs(load_packs(chosen.frames_dir), json=json)
    elif choose is not None:
        choice = await choose_frame_for(chosen, clean_text(choose, what="input"))
        if json:
            formatting.print_json(choice.as_json())
        else:
            say(f"{formatting.format_frame(choice.as_json())}\nbecause {choice.reason}")
    else:
        known = load_frame_set(load_profiles(chosen.profiles_dir), chosen.frames_dir, chosen.pack).frames
        _print_frames(list(known.values()) if name is None else [get_frame(known, name)], full=bool(name), json=json)


def _print_frames(frames: list[Frame], *, full: bool, json: bool) -> None:
    if json:
        formatting.print_json([frame.model_dump(mode="json") for frame in frames])
    elif full:
        say(_format_frame_details(frames[0]))
    else:
        say("\n".join(f"{frame.name:<14}{frame.description}" for frame in frames))


def _print_packs(packs: dict[str, FramePack], *, json: bool) -> None:
    if json:
        formatting.print_json([pack.model_dump(mode="json") for pack in packs.values()])
    else:
        say("\n".join(f"{pack.name:<14}{pack.description}\n{'':<14}{_format_pack(pack)}" for pack in packs.values()))


def _format_pack(pack: FramePack) -> str:
    split = ", ".join(f"{source} {percent} %" for source, percent in dict(pack.budget).items())
    return f"{split} · profile {pack.name if pack.weights else pack.profile}"


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

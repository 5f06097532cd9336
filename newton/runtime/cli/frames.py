"""`newton frames`."""

from typing import Annotated

from cyclopts import Parameter

from newton.content.frames import Frame, frame_named
from newton.content.packs import Pack, load_outlook, load_packs
from newton.content.profiles import load_profiles
from newton.memory.hygiene import clean
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import framed
from newton.runtime.talk.told import framing


async def frames(
    name: str | None = None,
    *,
    choose: str | None = None,
    packs: Annotated[bool, Parameter(negative=())] = False,
    pack: str | None = None,
    json: AsJson = False,
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
    chosen = settings(pack=pack)
    if packs:
        _list_packs(load_packs(chosen.frames_dir), json=json)
    elif choose is not None:
        choice = await framed(chosen, clean(choose, what="input"))
        if json:
            show.as_json(choice.outline())
        else:
            say(f"{show.framed(framing(choice))}\nbecause {choice.reason}")
    else:
        known = load_outlook(load_profiles(chosen.profiles_dir), chosen.frames_dir, chosen.pack).frames
        _list_frames(list(known.values()) if name is None else [frame_named(known, name)], full=bool(name), json=json)


def _list_frames(shown: list[Frame], *, full: bool, json: bool) -> None:
    if json:
        show.as_json([frame.model_dump(mode="json") for frame in shown])
    elif full:
        say(_told(shown[0]))
    else:
        say("\n".join(f"{frame.name:<14}{frame.description}" for frame in shown))


def _list_packs(shown: dict[str, Pack], *, json: bool) -> None:
    if json:
        show.as_json([pack.model_dump(mode="json") for pack in shown.values()])
    else:
        say("\n".join(f"{pack.name:<14}{pack.description}\n{'':<14}{_split(pack)}" for pack in shown.values()))


def _split(pack: Pack) -> str:
    split = ", ".join(f"{source} {percent} %" for source, percent in dict(pack.budget).items())
    return f"{split} · profile {pack.name if pack.weights else pack.profile}"


def _told(frame: Frame) -> str:
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

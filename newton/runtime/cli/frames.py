"""`newton frames`."""

from newton.content.frames import Frame, frame_named, load_frames
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings


def frames(name: str | None = None, *, json: AsJson = False) -> None:
    """List the frames, or show one. A frame decides what to ask, what matters and how much room it gets.

    Example: newton frames decision

    Parameters
    ----------
    name:
        The frame to show in full.
    """
    known = load_frames(settings().frames_dir)
    shown = list(known.values()) if name is None else [frame_named(known, name)]
    if json:
        show.as_json([frame.model_dump(mode="json") for frame in shown])
    elif name is None:
        print("\n".join(f"{frame.name:<14}{frame.description}" for frame in shown))
    else:
        print(_told(shown[0]))


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
            f"  shares    {', '.join(f'{layer} {share}' for layer, share in frame.budget.shares.items())}",
            f"  priority  {', '.join(f'{kind} {priority:g}' for kind, priority in priorities)}",
            f"  examples  {len(frame.examples)}, such as: {frame.examples[0] if frame.examples else '-'}",
        ]
    )

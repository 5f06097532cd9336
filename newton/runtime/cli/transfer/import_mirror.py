"""The part of `newton import` that takes over the edits of a mirror, a folder of Markdown files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.options import load_settings, require_yes
from newton.runtime.cli.printing import say
from newton.runtime.error_status import EXIT_OK, EXIT_REFUSED
from newton.runtime.transfer.mirror.mirror_manifest import read_manifest

if TYPE_CHECKING:
    from newton.runtime.transfer.mirror.mirror_import import MirrorEdit, MirrorPlan

MAX_SHOWN_EDITS = 20


async def import_mirror(folder: Path, *, preview: bool, yes: bool, retract: bool, agent: str | None, json: bool) -> int:
    """Show the edits of a mirror, ask, take them over, and write the folder anew. Return the exit status."""
    manifest = read_manifest(folder)
    settings = load_settings(agent or (manifest.agent if manifest else None))
    async with open_own_agent(settings, skip_procedure_sync=preview) as newton:
        mirror = newton.mirror("cli")
        plan = await mirror.plan(folder)
        if not json:
            _print_plan(plan, retract=retract)
        errors = list[str]()
        if not preview and _has_work(plan, retract=retract):
            require_yes("Take over these edits?", yes=yes)
            errors = [*await mirror.apply(plan, retract=retract)]
            if not errors:
                await mirror.rewrite(folder, now=newton.scope.now())
    if json:
        counts = {name: len(getattr(plan, name)) for name in ("added", "changed", "removed", "conflicting")}
        formatting.print_json({"format": "mirror", **counts, "retracted": retract and not preview, "errors": errors})
    elif not preview and _has_work(plan, retract=retract):
        _print_result(plan, errors, folder, retract=retract)
    return EXIT_REFUSED if errors else EXIT_OK


def _has_work(plan: "MirrorPlan", *, retract: bool) -> bool:
    return bool(plan.added or plan.changed or (retract and plan.removed))


def _print_result(plan: "MirrorPlan", errors: Sequence[str], folder: Path, *, retract: bool) -> None:
    total = len(plan.added) + len(plan.changed) + (len(plan.removed) if retract else 0)
    say(f"{total - len(errors)} of {formatting.pluralize(total, 'edit')} taken over.")
    for error in errors:
        formatting.print_notice(error)
    if errors:
        formatting.print_notice(f"{folder} is not written anew. Correct these lines, then import it again.")


def _print_plan(plan: "MirrorPlan", *, retract: bool) -> None:
    if plan.is_empty:
        say("The files have no edits.")
    _print_edits("new", plan.added)
    _print_edits("changed", plan.changed)
    _print_edits("retracted" if retract else "deleted in the files; kept unless you give --retract", plan.removed)
    _print_edits("changed in Newton too since the export; the edit is not taken over", plan.conflicting)


def _print_edits(title: str, edits: "Sequence[MirrorEdit]") -> None:
    if not edits:
        return
    say(f"{len(edits)} {title}:")
    for edit in edits[:MAX_SHOWN_EDITS]:
        text = edit.line.text or edit.line.heading
        say(f"  {text} ({edit.line.ref})" if edit.line.ref else f"  {text}")
    if len(edits) > MAX_SHOWN_EDITS:
        say(f"  … and {len(edits) - MAX_SHOWN_EDITS} more")

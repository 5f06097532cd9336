"""Import of the edits of a mirror: they are the person's word."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from newton.agent.maintenance.service import MaintenanceService
from newton.agent.services.curation import CurationService
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft, MemoryService
from newton.errors import InputError, NewtonError
from newton.heart.identity.tenets import IdentityPart
from newton.memory.lookup import short_id
from newton.runtime.transfer.mirror.mirror_export import (
    FACTS_FOLDER,
    IDENTITY_FILE,
    NO_SUBJECT,
    MirrorExporter,
    refuse_links,
)
from newton.runtime.transfer.mirror.mirror_text import (
    MirrorLine,
    MirrorManifest,
    digest_line,
    has_only_lines,
    parse_list,
    read_manifest,
    read_mirror_file,
    to_line,
)

Target = Literal["fact", "identity"]


class MirrorEdit(NamedTuple):
    """A person's edit of a mirror: a line, and whether it is a fact or of the identity. A removed line has no text."""

    target: Target
    line: MirrorLine


@dataclass(slots=True)
class MirrorPlan:
    """The edits that a person made in a mirror (memories as Markdown files): new, changed and removed lines.

    `conflicting` are changed lines whose memories have changed since the export too.
    """

    added: list[MirrorEdit] = field(default_factory=list[MirrorEdit])
    changed: list[MirrorEdit] = field(default_factory=list[MirrorEdit])
    removed: list[MirrorEdit] = field(default_factory=list[MirrorEdit])
    conflicting: list[MirrorEdit] = field(default_factory=list[MirrorEdit])

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed or self.conflicting)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorImporter:
    """Import of the edits that a person made in the mirror (memories as Markdown files) of an agent."""

    exporter: MirrorExporter
    memories: MemoryService
    maintenance: MaintenanceService
    curation: CurationService
    identity: IdentityService

    async def plan(self, folder: Path) -> MirrorPlan:
        """Return the edits: compare the files with the manifest of the export, and with the present memories.

        Raises InputError for a folder that is no mirror, or the mirror of another agent, and ConflictError for one with
        symbolic links.
        """
        manifest = await asyncio.to_thread(read_manifest, folder)
        if manifest is None:
            raise InputError(f"{folder} is no mirror.", hint="`newton export --markdown` writes one.")
        if manifest.agent != self.exporter.agent:
            hint = f"Import it with --agent {manifest.agent!r}, or export this agent to another folder."
            raise InputError(f"{folder} is a mirror of the agent {manifest.agent!r}.", hint=hint)
        await asyncio.to_thread(_refuse_links, folder)
        sections = await self.exporter.collect_facts()
        known = {line.ref: to_line(line.text) for _, lines in sections for line in lines if line.ref}
        tenets = {short_id(one.tenet_id): to_line(one.text) for one in (await self.identity.get()).tenets}
        facts = await asyncio.to_thread(lambda: list(_read_facts(folder)))
        plan = MirrorPlan()
        _compare(plan, "fact", facts, known, manifest)
        _compare(plan, "identity", await asyncio.to_thread(_read_lines, folder / IDENTITY_FILE), tenets, manifest)
        return plan

    async def apply(self, plan: MirrorPlan, *, retract: bool) -> Sequence[str]:
        """Store the added and changed lines and, with `retract`, remove the memories of removed ones.

        Return a text for each line that failed.
        """
        errors = list[str]()
        removed = plan.removed if retract else []
        for edits, apply in ((plan.added, self._add), (plan.changed, self._change), (removed, self._remove)):
            for edit in edits:
                try:
                    await apply(edit)
                except NewtonError as error:
                    errors.append(f"{edit.line.text or edit.line.ref}: {error}")
        return errors

    async def rewrite(self, folder: Path, *, now: datetime) -> None:
        """Write the mirror anew. Delete the files of facts that a person added, because the export writes their facts.

        Files with more than headings and list items stay.
        """
        manifest = await self.exporter.write(folder, now=now)
        await asyncio.to_thread(_delete_imported_files, folder, manifest)

    async def _add(self, edit: MirrorEdit) -> None:
        heading = edit.line.heading
        if edit.target == "identity":
            await self.identity.add(_parse_part(heading), edit.line.text, reason="edited in a mirror")
            return
        subject = None if heading in ("", NO_SUBJECT) else heading
        await self.memories.remember(FactDraft(content=edit.line.text, subject=subject))
        await self.maintenance.process_pending()

    async def _change(self, edit: MirrorEdit) -> None:
        ref = edit.line.ref or ""
        if edit.target == "identity":
            await self.identity.change(ref, edit.line.text, reason="edited in a mirror")
        else:
            await self.curation.supersede(ref, edit.line.text)

    async def _remove(self, edit: MirrorEdit) -> None:
        ref = edit.line.ref or ""
        if edit.target == "identity":
            await self.identity.remove(ref, reason="removed in a mirror")
        else:
            await self.curation.retract(ref)


def _compare(
    plan: MirrorPlan, target: Target, lines: Sequence[MirrorLine], known: dict[str, str], manifest: MirrorManifest
) -> None:
    """Add the edits in `lines` to the plan. `known` has the present texts of the memories, by the end of their ids."""
    for line in lines:
        if line.ref is None:
            plan.added.append(MirrorEdit(target, line))
        elif digest_line(line.text) != manifest.lines.get(line.ref):
            is_unchanged = line.ref in known and digest_line(known[line.ref]) == manifest.lines.get(line.ref)
            (plan.changed if is_unchanged else plan.conflicting).append(MirrorEdit(target, line))
    present = {line.ref for line in lines}
    gone = [ref for ref in known if ref in manifest.lines and ref not in present]
    plan.removed += [MirrorEdit(target, MirrorLine(ref, "", known[ref])) for ref in gone]


def _refuse_links(folder: Path) -> None:
    refuse_links(folder, (IDENTITY_FILE, FACTS_FOLDER))
    refuse_links(folder, (f"{FACTS_FOLDER}/{path.name}" for path in (folder / FACTS_FOLDER).glob("*.md")))


def _delete_imported_files(folder: Path, manifest: MirrorManifest) -> None:
    for path in (folder / FACTS_FOLDER).glob("*.md"):
        is_written = f"{FACTS_FOLDER}/{path.name}" in manifest.files
        if not is_written and has_only_lines(read_mirror_file(path)):
            path.unlink()


def _read_facts(folder: Path) -> Iterator[MirrorLine]:
    for path in sorted((folder / FACTS_FOLDER).glob("*.md")):
        yield from _read_lines(path)


def _read_lines(path: Path) -> list[MirrorLine]:
    try:
        return list(parse_list(read_mirror_file(path)))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}.", hint="Repair the file, or export to a new folder."
        ) from None


def _parse_part(heading: str) -> IdentityPart:
    part = heading.strip().lower()
    if part not in get_args(IdentityPart):
        raise InputError(
            f"{heading!r} is no part of the identity.", hint=f"The parts are: {', '.join(get_args(IdentityPart))}."
        )
    return cast("IdentityPart", part)

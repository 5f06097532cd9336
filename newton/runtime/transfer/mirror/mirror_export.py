"""Export of an agent as a mirror: a folder of Markdown files."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from newton.agent.inventory.memory_lists import MemoryFilterInput, MemoryListService
from newton.agent.services.curation import CurationService
from newton.agent.services.decisions import DecisionService
from newton.agent.services.identity import IdentityService
from newton.agent.services.procedures import ProcedureService
from newton.brain.queries import DecisionFilter
from newton.content.skills import make_slug
from newton.errors import ConflictError, InputError
from newton.heart.procedures import DISK_ORIGIN
from newton.memory.lookup import short_id
from newton.memory.memory_list import ListedMemory, ListOrder
from newton.memory.representations import ELLIPSIS
from newton.runtime.transfer.mirror import mirror_text
from newton.runtime.transfer.mirror.mirror_text import MANIFEST, MirrorLine, MirrorManifest, read_manifest

IDENTITY_FILE, FACTS_FOLDER = "identity.md", "facts"
NO_SUBJECT = "Without a subject"
PAGE = 500  # memories or decisions of one query


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorExporter:
    """Export of one agent as a mirror: a folder with its memories as Markdown files, which a person can edit."""

    agent: str
    lists: MemoryListService
    curation: CurationService
    identity: IdentityService
    procedures: ProcedureService
    decisions: DecisionService

    async def write(self, folder: Path, *, now: datetime) -> MirrorManifest:
        """Write the mirror (memories as Markdown files) to a folder, and return its manifest, the list of its contents.

        The folder must be empty, missing, or a mirror of this agent, of which old files are deleted; other files stay.
        Raises ConflictError for a folder with other content, and InputError if it cannot be written.
        """
        known = await asyncio.to_thread(read_manifest, folder)
        if known is None and await asyncio.to_thread(_has_content, folder):
            raise ConflictError(
                f"{folder} has other files.", hint="Give a new folder, or a folder of an earlier export."
            )
        if known is not None and known.agent != self.agent:
            raise ConflictError(f"{folder} is a mirror of the agent {known.agent}.", hint="Give another folder.")
        sections = [*await self.collect_facts()]
        files = {name: text async for name, text in self._render(sections, now)}
        lines = {line.ref: mirror_text.digest_line(line.text) for _, found in sections for line in found if line.ref}
        lines |= {
            short_id(one.tenet_id): mirror_text.digest_line(one.text) for one in (await self.identity.get()).tenets
        }
        manifest = MirrorManifest(agent=self.agent, exported_at=now, files=tuple(sorted(files)), lines=lines)
        await asyncio.to_thread(_write_files, folder, files, known, manifest)
        return manifest

    async def collect_facts(self) -> Sequence[tuple[str, Sequence[MirrorLine]]]:
        """Return the current facts by subject, in the order of their subjects and times."""
        by_subject, titles = defaultdict[str, list[MirrorLine]](list), dict[str, str]()
        async for fact in self._list_facts():
            text = fact.text
            if ELLIPSIS in text:  # a long fact, of which the list has the beginning
                text = (await self.curation.get(str(fact.memory_id))).full_text
            subject = fact.subject or NO_SUBJECT
            titles.setdefault(subject.casefold(), subject)
            by_subject[subject.casefold()].append(MirrorLine(short_id(fact.memory_id), text, subject))
        return [(titles[key], by_subject[key]) for key in sorted(by_subject)]

    async def _list_facts(self) -> AsyncIterator[ListedMemory]:
        conditions, after = MemoryFilterInput.model_validate({"kinds": ("fact",)}), None
        while True:
            page = await self.lists.list_memories(conditions, ListOrder("created", "asc"), after=after, limit=PAGE)
            for memory in page.memories:
                yield memory
            if (after := page.following) is None:
                return

    async def _render(
        self, sections: Sequence[tuple[str, Sequence[MirrorLine]]], now: datetime
    ) -> AsyncIterator[tuple[str, str]]:
        """Yield the path within the mirror and the text of each file. `sections` are the facts by subject."""
        yield "README.md", mirror_text.README.format(agent=self.agent, at=f"{now:%Y-%m-%d %H:%M} UTC")
        by_part = defaultdict[str, list[MirrorLine]](list)
        for tenet in (await self.identity.get()).by_priority:
            by_part[tenet.part].append(MirrorLine(short_id(tenet.tenet_id), tenet.text, tenet.part))
        yield IDENTITY_FILE, mirror_text.render_list("Identity", by_part)
        for name, (subject, lines) in _name_files(sections):
            yield f"{FACTS_FOLDER}/{name}.md", mirror_text.render_list(subject, {"": lines})
        latest = {one.name: one for one in await self.procedures.list_procedures() if one.state == "ACTIVE"}
        for procedure in latest.values():
            if procedure.origin != DISK_ORIGIN:
                yield f"procedures/{procedure.name}/SKILL.md", mirror_text.render_procedure(procedure)
        async for name, text in self._render_decisions():
            yield name, text

    async def _render_decisions(self) -> AsyncIterator[tuple[str, str]]:
        before = None
        while page := await self.decisions.list_decisions(DecisionFilter(before=before, limit=PAGE)):
            for summary in page:
                detail = await self.decisions.get(str(summary.decision_id))
                if detail.draft:  # not erased
                    ref = short_id(summary.decision_id)
                    slug = make_slug(detail.draft.description)[:40].rstrip("-") or "decision"
                    text = mirror_text.render_decision(detail.draft, detail.review, ref)
                    yield f"decisions/{summary.decided_at:%Y-%m-%d}-{slug}-{ref}.md", text
            before = page[-1].decision_id


def _name_files(
    sections: Sequence[tuple[str, Sequence[MirrorLine]]],
) -> Iterator[tuple[str, tuple[str, Sequence[MirrorLine]]]]:
    """Yield a file name without suffix for each subject, which no other subject has."""
    used = set[str]()
    for subject, lines in sections:
        slug = make_slug(subject) or f"subject-{mirror_text.digest_line(subject)[:8]}"
        name = slug if slug not in used else f"{slug}-{mirror_text.digest_line(subject)[:8]}"
        used.add(name)
        yield name, (subject, lines)


def _has_content(folder: Path) -> bool:
    try:
        return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise _build_write_error(folder, error) from None


def _write_files(
    folder: Path, files: Mapping[str, str], known: MirrorManifest | None, manifest: MirrorManifest
) -> None:
    earlier = [name for name in (known.files if known else ()) if name not in files and _is_below(folder, name)]
    refuse_links(folder, (*files, *earlier, MANIFEST))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or mirror_text.read_mirror_file(path) != text:
                path.write_text(text, encoding="utf-8")
        for name in earlier:
            (folder / name).unlink(missing_ok=True)
        text = json.dumps(manifest.model_dump(mode="json"), ensure_ascii=False, indent=1, sort_keys=True)
        (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _build_write_error(folder, error) from None


def _is_below(folder: Path, name: str) -> bool:
    """Return whether a name of a manifest, which anyone may have written, is that of a Markdown file in the folder."""
    return name.endswith(".md") and ".." not in Path(name).parts and not Path(name).is_absolute()


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Raise ConflictError if one of the files `names`, or a folder on the way to it, is a symbolic link."""
    for name in names:
        for path in (Path(name), *Path(name).parents[:-1]):
            if (folder / path).is_symlink():
                hint = "Replace the link by what it points to, or export to a new folder."
                raise ConflictError(f"{folder / path} is a symbolic link.", hint=hint)


def _build_write_error(folder: Path, error: Exception) -> InputError:
    return InputError(f"{folder} cannot be written: {error}.", hint="Give another folder.")

"""The mirror in Markdown: a person's edits come back as their word, and nothing else changes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.services.memories import FactDraft
from newton.brain.drafts import DecisionDraft, DecisionReason
from newton.content.skills import read_skill
from newton.errors import ConflictError, InputError
from newton.heart import procedures
from newton.providers.fakes import HashEmbedder
from newton.runtime.transfer.mirror.mirror_import import MirrorImporter
from newton.runtime.transfer.mirror.mirror_text import MirrorLine, parse_list, render_list, to_line
from tests.scenarios.conftest import Mind, newton
from tests.support import NOON

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).map(to_line).filter(bool)
REFS = st.uuids().map(lambda one: one.hex[:8])


@given(st.lists(st.tuples(TEXTS, REFS), min_size=1))
def test_a_list_is_read_back_as_it_was_written(lines: list[tuple[str, str]]) -> None:
    written = [MirrorLine(ref, text, "Ana") for text, ref in lines]
    assert [*parse_list(render_list("Ana", {"": written}))] == written
    assert [*parse_list(render_list("Identity", {"Ana": written}))] == written


@pytest.fixture
async def mirror(mind: Mind, tmp_path: Path) -> MirrorImporter:
    """The mirror of an agent with three facts, a line of its identity, a decision and a learnt procedure."""
    services = newton(mind, HashEmbedder())
    for content, subject in (("Ana lives in Porto.", "Ana"), ("Ana rows.", "Ana"), ("The shed is green.", None)):
        await services.memories("cli").remember(FactDraft(content=content, subject=subject))
    await services.identity("cli").add("preference", "Answer in short sentences.")
    reasons = (DecisionReason("analysis", "reads outnumber writes"),)
    draft = DecisionDraft(description="Use Redis: \u201cthe cache\u201d", confidence=0.8, at=NOON, reasons=reasons)
    await services.decisions("cli").decide(draft)
    skill = tmp_path / "bake-bread"
    skill.mkdir()
    text = '---\nname: bake-bread\ndescription: "Bake: the rye"\n---\n## Steps\n1. Mix\n2. Wait\n\nSalt last.\n'
    (skill / "SKILL.md").write_text(text, encoding="utf-8")
    async with services.scope.write() as (tx, ctx):
        await procedures.add_procedure(tx, read_skill(skill / "SKILL.md"), ctx=ctx)
    return services.mirror("cli")


@pytest.fixture
async def folder(mirror: MirrorImporter, tmp_path: Path) -> Path:
    await mirror.exporter.write(tmp_path / "mirror", now=NOON)
    return tmp_path / "mirror"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


async def read_facts(mirror: MirrorImporter) -> dict[str, str]:
    return {line.text: subject for subject, lines in await mirror.exporter.collect_facts() for line in lines}


async def test_edits_come_back_as_the_word_of_the_person(mirror: MirrorImporter, folder: Path) -> None:
    assert (await mirror.plan(folder)).is_empty
    replace(folder / "facts/ana.md", "Porto", "Braga")
    replace(folder / "identity.md", "# Identity", "# Identity\n\n## Boundary\n* Never give legal advice.")
    (folder / "facts/ben.md").write_text("# Ben\n\n- Ben swims on Mondays.\n", encoding="utf-8")
    plan = await mirror.plan(folder)
    assert (len(plan.added), len(plan.changed), plan.removed, plan.conflicting) == (2, 1, [], [])
    assert await mirror.apply(plan, retract=False) == []
    assert await read_facts(mirror) == {
        "Ana lives in Braga.": "Ana",
        "Ana rows.": "Ana",
        "The shed is green.": "Without a subject",
        "Ben swims on Mondays.": "Ben",
    }
    (changed,) = [edit.line.ref for edit in plan.changed]
    memory = await mirror.curation.get(changed or "")
    assert memory.state == "SUPERSEDED"
    assert "Ana lives in Braga." in memory.replaced_by[0].micro
    assert [one.text for one in (await mirror.identity.get()).by_priority] == [
        "Never give legal advice.",
        "Answer in short sentences.",
    ]
    await mirror.rewrite(folder, now=NOON)
    assert (await mirror.plan(folder)).is_empty
    assert "^" in (folder / "facts/ben.md").read_text(encoding="utf-8")


async def test_a_deleted_line_is_retracted_only_on_request(mirror: MirrorImporter, folder: Path) -> None:
    path = folder / "facts/ana.md"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "rows" not in line), encoding="utf-8")
    plan = await mirror.plan(folder)
    assert [edit.line.heading for edit in plan.removed] == ["Ana rows."]
    assert await mirror.apply(plan, retract=False) == []
    assert "Ana rows." in await read_facts(mirror)
    assert await mirror.apply(plan, retract=True) == []
    assert "Ana rows." not in await read_facts(mirror)


async def test_a_line_that_changed_on_both_sides_is_left_alone(mirror: MirrorImporter, folder: Path) -> None:
    (ref,) = [line.ref for _, lines in await mirror.exporter.collect_facts() for line in lines if "Porto" in line.text]
    await mirror.curation.supersede(ref or "", "Ana lives in Faro.")
    replace(folder / "facts/ana.md", "Porto", "Braga")
    plan = await mirror.plan(folder)
    assert [edit.line.text for edit in plan.conflicting] == ["Ana lives in Braga."]
    assert await mirror.apply(plan, retract=True) == []
    assert "Ana lives in Faro." in await read_facts(mirror)


async def test_a_line_that_cannot_be_stored_is_reported_and_the_others_are_taken_over(
    mirror: MirrorImporter, folder: Path
) -> None:
    replace(folder / "identity.md", "# Identity", "# Identity\n\n## Hobbies\n- Chess\n")
    replace(folder / "facts/ana.md", "Porto", "Braga")
    errors = await mirror.apply(await mirror.plan(folder), retract=False)
    assert len(errors) == 1
    assert "is no part of the identity" in errors[0]
    assert "Ana lives in Braga." in await read_facts(mirror)


async def test_decisions_and_procedures_can_be_read(mirror: MirrorImporter, folder: Path) -> None:
    (decision,) = (folder / "decisions").iterdir()
    text = decision.read_text(encoding="utf-8")
    assert "confidence 80%" in text
    assert "- analysis: reads outnumber writes" in text
    skill = read_skill(folder / "procedures/bake-bread/SKILL.md")
    assert skill == read_skill(folder.parent / "bake-bread/SKILL.md")
    assert skill.core == ("Mix", "Wait")


async def test_only_a_mirror_of_the_agent_is_written_or_read(mirror: MirrorImporter, folder: Path) -> None:
    other = folder.parent / "other"
    other.mkdir()
    (other / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConflictError):
        await mirror.exporter.write(other, now=NOON)
    with pytest.raises(InputError):
        await mirror.plan(other)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    await mirror.exporter.write(folder, now=NOON)
    assert (folder / "notes.txt").exists()
    replace(folder / ".newton-mirror.json", '"ana"', '"bea"')
    with pytest.raises(InputError, match="'bea'"):
        await mirror.plan(folder)


async def test_a_link_in_a_mirror_leads_nowhere(mirror: MirrorImporter, folder: Path, tmp_path: Path) -> None:
    # a folder that a stranger made could overwrite or delete what a link in it points to
    outside = tmp_path / "outside"
    for link in ("README.md", "facts", "facts/ana.md", "identity.md", "decisions"):
        (folder / link).rename(outside)
        (folder / link).symlink_to(outside)
        kept = {path: path.read_text(encoding="utf-8") for path in (outside, *outside.glob("*")) if path.is_file()}
        with pytest.raises(ConflictError, match="symbolic link"):
            await mirror.plan(folder)
            await mirror.rewrite(folder, now=NOON)
        assert kept, link
        assert {path: path.read_text(encoding="utf-8") for path in kept} == kept, link
        (folder / link).unlink()
        outside.rename(folder / link)


async def test_a_manifest_names_no_file_to_delete_elsewhere(
    mirror: MirrorImporter, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("kept", encoding="utf-8")
    (folder / "own.txt").write_text("kept", encoding="utf-8")
    names = '"files": ["../outside.md", "facts/../../outside.md", "own.txt", "", "' + str(outside) + '",'
    replace(folder / ".newton-mirror.json", '"files": [', names)
    await mirror.rewrite(folder, now=NOON)
    assert outside.read_text(encoding="utf-8") == (folder / "own.txt").read_text(encoding="utf-8") == "kept"

"""Artifacts as a model and a terminal show them: numbered lines, and lists. Pure."""

from collections.abc import Iterator, Sequence

from newton.agent.inventory.artifacts import ArtifactLines, ArtifactPage
from newton.dialogue.artifact_storage.artifact_store import ArtifactVersion
from newton.memory.memory import Trust, lowest_trust

UNTRUSTED_TIERS: frozenset[Trust] = frozenset({"tool", "web"})


def describe_page(page: ArtifactPage) -> dict[str, object]:
    """Return a page as the fields of a tool's result. Each line has its number; found lines are marked by `>`."""
    artifacts = list({one.artifact.artifact_id: one.artifact for one in page.passages}.values())
    following = {"next_lines": page.next_lines, "next_offset": page.next_offset, "missing": page.missing}
    return {
        "artifacts": [describe_version(one) for one in artifacts],
        "text": render_page(page) or "Nothing found. Search other words, or read `lines`.",
        **{name: value for name, value in following.items() if value},
    }


def describe_version(artifact: ArtifactVersion) -> dict[str, object]:
    """Return the fields of a version that a model needs."""
    source = {"source": artifact.source} if artifact.source else {}
    return {
        "name": artifact.name,
        "version": artifact.version,
        "kind": artifact.kind,
        "media_type": artifact.media_type,
        "lines": artifact.line_count,
        "bytes": artifact.byte_count,
        "trust": artifact.trust,
        **source,
    }


def find_lowest_trust(artifacts: Sequence[ArtifactVersion]) -> Trust | None:
    """Return the lowest trust of texts that no person and no model wrote; None if there is none."""
    tiers: list[Trust] = [one.trust for one in artifacts if one.trust in UNTRUSTED_TIERS]
    return lowest_trust(tiers) if tiers else None


def render_page(page: ArtifactPage) -> str:
    """Return the passages as numbered lines, each artifact under its name if there are several."""
    names = {one.artifact.name for one in page.passages}
    return "\n".join(_render_passages(page.passages, with_names=len(names) > 1))


def _render_passages(passages: Sequence[ArtifactLines], *, with_names: bool) -> Iterator[str]:
    before: ArtifactLines | None = None
    for passage in passages:
        is_same = before is not None and before.artifact.artifact_id == passage.artifact.artifact_id
        if with_names and not is_same:
            yield f"[{passage.artifact.name}]"
        elif before is not None:
            yield "…"
        found = set(passage.found_lines)
        for number, line in enumerate(passage.lines, passage.first_line):
            yield f"{number}{'>' if number in found else '|'} {line}"
        before = passage

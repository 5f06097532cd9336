"""Conversations as a person types for them: seen, taken back, branched off, and talked on in."""

import io
import json
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from newton.dialogue.compaction.progress_events import (
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgressed,
    CompactionStarted,
)
from newton.runtime.cli.progress import print_progress
from tests.support import NOON
from tests.system.typed import Done, create_agents, ok, typed

AT = "2026-11-20T10:00:00Z"


def lines() -> list[dict[str, object]]:
    """Twelve turns of work; each output is large."""
    made: list[dict[str, object]] = []
    for n in range(12):
        call = {"id": f"c{n}", "name": "read_file", "arguments": {"path": f"src/p{n}.py"}}
        made.append({"role": "user", "content": f"Look at part {n}."})
        made.append({"role": "assistant", "calls": [call]})
        made.append({"role": "tool", "name": "read_file", "answers": f"c{n}", "content": f"value {n}\n" * 150})
        made.append({"role": "assistant", "content": f"Part {n} is done."})
    return [{"type": "message", "session": "work", "at": AT, "ref": str(n), **one} for n, one in enumerate(made)]


@pytest.fixture(scope="module")
def home(home: Path) -> Path:
    (home / "lines.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines()), encoding="utf-8")
    assert "48 new" in ok(typed(home, "import", "lines.ndjson")).replace("48 messages new", "48 new")
    ok(typed(home, "sessions", "branch", "work", "beside"))
    return home


def test_conversations_are_listed(home: Path) -> None:
    assert "     48 messages  work  Look at part 0.\n" in ok(typed(home, "sessions"))
    work = json.loads(ok(typed(home, "sessions", "list", "--json")))["items"][-1]
    assert (work["session"], work["parent_session"], work["messages"], work["first_input"]) == (
        "work",
        None,
        48,
        "Look at part 0.",
    )
    assert work["last_used_at"] >= work["created_at"]
    create_agents(home, "nobody")
    assert "No sessions yet." in ok(typed(home, "sessions", "list", "--agent", "nobody"))


def test_the_log_is_whole(home: Path) -> None:
    told = ok(typed(home, "sessions", "log", "work"))
    assert "    0  2026-11-20 10:00  User: Look at part 0." in told
    assert '    1  2026-11-20 10:00  Assistant:  → read_file {"path": "src/p0.py"}' in told
    logged = json.loads(ok(typed(home, "sessions", "log", "work", "--json")))["items"]
    assert [line["position"] for line in logged] == list(range(48))
    assert logged[1]["calls"] == [{"id": "c0", "name": "read_file", "arguments": '{"path": "src/p0.py"}'}]
    assert (logged[2]["role"], logged[2]["answers"], logged[2]["content"]) == ("tool", "c0", "value 0\n" * 150)
    again = typed(home, "import", "lines.ndjson")
    assert again.returncode == 0 and json.loads(ok(typed(home, "sessions", "log", "work", "--json")))["items"] == logged


def view(home: Path, session: str) -> str:
    """As it stands, with nothing told shorter beside what was kept."""
    return ok(typed(home, "sessions", "view", session, NEWTON_COMPACTION="none"))


@pytest.mark.slow
def test_a_look_at_what_a_model_would_be_sent_changes_nothing(home: Path) -> None:
    ok(typed(home, "sessions", "branch", "work", "looked at"))
    before = view(home, "looked at")
    look = ("sessions", "view", "looked at", "--max-tokens", "4000")
    seen = json.loads(ok(typed(home, *look, "--json")))
    done = typed(home, *look)
    assert done.stderr == "" and "[output left out: " in ok(done)
    said, why = ok(done).splitlines()[-2:]
    assert said == f"{seen['tokens']:,} of 4,000 tokens; all stored messages have {seen['log_tokens']:,} tokens."
    assert seen["tokens"] <= 4_000 < seen["log_tokens"]
    assert why == f"To fit into the tokens: {seen['summarized']} messages summarized."
    tight = ok(typed(home, *look[:-1], "300")).splitlines()[-1]
    assert tight.startswith("To fit into the tokens: ") and " omitted" in tight
    usual = json.loads(ok(typed(home, *look[:3], "--json", NEWTON_WINDOW_TOKENS="4000")))
    assert usual["tokens"] <= usual["max_tokens"] == 2_400, "80 % of what the answer leaves"
    assert "No messages of this session have been compacted." in ok(typed(home, "sessions", "compactions", "looked at"))
    assert "Compactions" not in ok(typed(home, "sessions", "stats", "looked at"))
    assert view(home, "looked at") == before
    assert " fewer.\n" in ok(typed(home, "sessions", "compact", "looked at", "--max-tokens", "4000"))
    assert ok(typed(home, *look)) == ok(done), "now it is as it was shown"
    assert "is due" in ok(typed(home, "sessions", "compact", "looked at"))


@pytest.mark.slow
def test_a_view_is_made_shorter_and_taken_back(home: Path) -> None:
    # S003-9, S003-12, S003-20
    ok(typed(home, "sessions", "branch", "work", "shorter"))
    bare, other = view(home, "shorter"), view(home, "work")
    ok(typed(home, "sessions", "compact", "shorter", "--max-tokens", "4000"))
    listed = ok(typed(home, "sessions", "compactions", "shorter")).splitlines()
    entries = json.loads(ok(typed(home, "sessions", "compactions", "shorter", "--json")))["items"]
    assert len(listed) == 2 * len(entries)
    which = listed[0].split()[0]
    assert entries[0]["compaction_id"].endswith(which) and entries[0]["restored_at"] is None
    assert "1 compaction expanded" in ok(typed(home, "sessions", "expand", "shorter", which))
    assert " expanded 20" in ok(typed(home, "sessions", "compactions", "shorter")).splitlines()[0]
    assert "is expanded already" in ok(typed(home, "sessions", "expand", "shorter", which))
    stats = json.loads(ok(typed(home, "sessions", "stats", "shorter", "--json")))
    assert {one["strategy"] for one in stats["runs"]} >= {"mask_outputs"}
    assert all(one["saved"] > 0 for one in stats["runs"])
    assert stats["view_tokens"] == sum(part["tokens"] for part in stats["parts"].values()) < stats["log_tokens"]
    assert sum(one["restored"] for one in stats["compactions"]) == 1
    said = ok(typed(home, "sessions", "stats", "shorter"))
    assert "48 messages, " in said and "mask_outputs" in said and "1 undone" in said
    assert "mask_outputs  " in ok(typed(home, "sessions", "compaction-stats"))
    assert view(home, "work") == other, "the other is as it was"
    for one in entries[1:]:
        ok(typed(home, "sessions", "expand", "shorter", one["compaction_id"]))
    assert view(home, "shorter") == bare


def test_a_view_is_given_as_the_chat_protocol_has_it(home: Path) -> None:
    seen = json.loads(ok(typed(home, "sessions", "view", "work", "--json", NEWTON_COMPACTION="none")))
    first, second, third, *_ = seen["messages"]
    assert first == {"role": "user", "content": "Look at part 0."}
    call = {"id": "c0", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "src/p0.py"}'}}
    assert second == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert (third["role"], third["tool_call_id"]) == ("tool", "c0")
    assert seen["tokens"] == seen["log_tokens"]
    # S003-A ADR-0043: the exact payload with the tokens of each message
    assert len(seen["message_tokens"]) == len(seen["messages"]) and sum(seen["message_tokens"]) == seen["tokens"]


def test_a_branch_goes_on_from_a_message(home: Path) -> None:
    told = ok(typed(home, "sessions", "branch", "work", "early", "--at", "3"))
    assert "`newton chat --session early`" in told
    ok(typed(home, "sessions", "branch", "work", "late"))
    assert len(json.loads(ok(typed(home, "sessions", "log", "early", "--json")))["items"]) == 4
    assert len(json.loads(ok(typed(home, "sessions", "log", "late", "--json")))["items"]) == 48
    assert "4 messages  early (continues work from message 3)\n" in ok(typed(home, "sessions"))
    inject = ("sessions", "inject", "early", "--from", "work", "--first", "8", "--last", "9")
    said, undo = ok(typed(home, *inject)).splitlines()
    assert said == "Injected messages 8-9 of work."
    which = undo.split()[3].rstrip(";")
    assert undo == f"Its id is {which}; `newton sessions eject` takes it out again."
    shown = ok(typed(home, "sessions", "view", "early"))
    assert "[From work]\nUser: Look at part 2.\n" in shown
    assert 'read_file {"path": "src/p2.py"}' in shown, "what was called is shown too"
    assert f"{which}  messages 8-9 of work" in ok(typed(home, "sessions", "injections", "early"))
    assert "Removed messages 8-9 of work." in ok(typed(home, "sessions", "eject", "early", which))
    assert "[From work]" not in ok(typed(home, "sessions", "view", "early"))
    assert "Nothing was put into this session" in ok(typed(home, "sessions", "injections", "early"))
    small = typed(home, *inject[:-1], "40", NEWTON_WINDOW_TOKENS="3000")
    assert small.returncode == 2 and "tokens; the maximum is" in small.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["log", "nowhere"], "There is no session 'nowhere'"),
        (["view", "nowhere"], "`newton chat --session nowhere` creates this session"),
        (["compactions", "nowhere"], "There is no session 'nowhere'"),
        (["stats", "nowhere"], "There is no session 'nowhere'"),
        (["view", "work", "--max-tokens", "3"], "No message of the session 'work' fits"),
        (["compact", "nowhere"], "There is no session 'nowhere'"),
        (["eject", "work", "ffff"], "has no injection 'ffff'"),
        (["inject", "beside", "--from", "beside", "--first", "0", "--last", "1"], "cannot be injected into the same"),
        (["inject", "beside", "--from", "work", "--first", "1", "--last", "500"], "it has 48 messages, numbered"),
        (["expand", "work", "ffff"], "has no compaction 'ffff'"),
        (["branch", "work", "work"], "A session 'work' already exists"),
        (["branch", "work", "other", "--at", "48"], "Give the number of a message, from 0 to 47"),
        (["branch", "work", "other", "--at", "nothing"], "nothing"),
        (["branch", "work", " "], "The text is empty"),
        (["inject", "work", "--from", "nowhere", "--first", "0", "--last", "1"], "There is no session 'nowhere'"),
        (["inject", "beside", "--from", "work", "--first", "90", "--last", "99"], "`newton sessions log work` shows"),
        (["inject", "work", "--text", "x", "--memory", "abcdef"], "Give one of a text, a memory, and messages"),
        (["view", "work", "--strategy", "nothing"], "'nothing' is not a compaction strategy"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(home: Path, words: list[str], said: str) -> None:
    done = typed(home, "sessions", *words)
    assert done.returncode == 2, done
    assert said in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("compaction", "said"),
    [
        ("defualt", "default, long, conservative, none"),
        ("tool_calls(age=ten)", "age=10"),
        ("threshold(", "Use one of"),
        ("threshold,default", "'default' is a preset: it cannot be combined"),
    ],
)
def test_a_setting_that_is_no_way_to_make_conversations_shorter_is_refused(
    home: Path, compaction: str, said: str
) -> None:
    # S003-F2
    done = typed(home, "sessions", "view", "work", "--max-tokens", "4000", NEWTON_COMPACTION=compaction)
    assert done.returncode == 2 and said in done.stderr


def test_own_strategies_are_set_in_their_order(home: Path) -> None:
    ok(typed(home, "sessions", "branch", "work", "own"))
    ok(typed(home, "sessions", "compact", "own", "--max-tokens", "20000", NEWTON_COMPACTION="tool_calls(age=3)"))
    made = json.loads(ok(typed(home, "sessions", "compactions", "own", "--json")))["items"]
    assert made and {one["strategy"] for one in made} == {"tool_calls"}
    ok(
        typed(
            home,
            "sessions",
            "compact",
            "own",
            "--max-tokens",
            "20000",
            NEWTON_COMPACTION="goal_batch(back=4), threshold",
        )
    )
    listed = ok(typed(home, "sessions", "compactions", "own")).splitlines()[::2]
    assert not listed[0].startswith(" ") and "goal_batch" in listed[0]
    assert listed[1].startswith("   ") and "tool_calls" in listed[1], "what is covered stands further in"


def test_a_compaction_that_does_not_reach_its_limit_says_why(home: Path) -> None:
    # S003-16: the current turn is never compacted
    ok(typed(home, "sessions", "branch", "work", "small"))
    assert "fewer." in ok(typed(home, "sessions", "compact", "small", "--max-tokens", "1500"))
    done = typed(home, "sessions", "compact", "small", "--max-tokens", "300")
    assert done.returncode == 1
    assert "more than the 300 requested, because:\n  the current turn is never compacted (" in done.stdout


def test_the_brief_of_a_session_is_shown_and_closed(home: Path) -> None:
    # S003-16
    said = {
        "type": "message",
        "session": "brief",
        "at": AT,
        "role": "user",
        "ref": "b0",
        "content": "Never push to main.",
    }
    (home / "brief.ndjson").write_text(json.dumps(said) + "\n", encoding="utf-8")
    ok(typed(home, "import", "brief.ndjson"))
    assert "Rule:       Never push to main." in ok(typed(home, "sessions", "brief", "brief"))
    (item,) = json.loads(ok(typed(home, "sessions", "brief", "brief", "--json")))["items"]
    ok(typed(home, "sessions", "close-item", "brief", item["item_id"][-8:], "dropped"))
    assert "no goals, deadlines or rules" in ok(typed(home, "sessions", "brief", "brief"))
    assert "(dropped after message 0)" in ok(typed(home, "sessions", "brief", "brief", "--include-closed"))


class CommandTerminal(io.StringIO):
    """Where a person watches."""

    def isatty(self) -> bool:
        return True


def test_who_watches_is_told_how_far_it_is() -> None:
    # S003-12
    events: list[CompactionEvent] = [
        CompactionStarted(strategy="threshold", current=9_000, max=10_000, time=NOON),
        CompactionProgressed(strategy="threshold", processed=1, total=4, saved=700, time=NOON),
        CompactionCompleted(strategy="threshold", saved=2_800, new_count=6_200, duration_ms=12.0, time=NOON),
        CompactionFailed(
            strategy="goal_batch", error="no summary is shorter than the messages that it would replace", time=NOON
        ),
    ]
    for where in (CommandTerminal(), io.StringIO()):
        with redirect_stderr(where):
            for event in events:
                print_progress(event)
        told = where.getvalue()
        if not where.isatty():
            assert told == "", "a program is told nothing"
            continue
        assert "\r\x1b[KCompacting the conversation: 9,000 of 10,000 tokens …" in told
        assert "\r\x1b[KCompacting the conversation: 25%" in told
        saved = "2,800 tokens saved, 6,200 remain."
        assert f"(Compacted: the oldest turns were summarized; {saved})\n" in told
        assert "(Compaction failed: no summary is shorter than the messages that it would replace.)\n" in told


def talk(home: Path, *said: str) -> Done:
    """`newton chat`, with these inputs from a pipe."""

    class Piped:
        buffer = io.BytesIO("".join(f"{line}\n" for line in said).encode())

        def isatty(self) -> bool:
            return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Piped())
        return typed(home, "chat", "--session", "talk")


def test_a_person_branches_off_in_the_middle_of_a_talk(home: Path) -> None:
    done = talk(
        home,
        "The boat is blue.",
        "The car is red.",
        "/branch other 1",
        "The bike is green.",
        "/switch talk",
        "/switch",
        "/branch other",
        "/branch third nowhere",
        "/branch",
        "/switch tlak",
        "/switch talk",
    )
    assert "Session tlak. It is new; /switch talk returns to the previous one.\n" in ok(done)
    assert done.stdout.count("Session other.") == 1 and done.stdout.count("Session talk.") == 3
    assert "A session 'other' already exists" in done.stderr
    assert "from_position" in done.stderr
    assert "The session is empty" in done.stderr

    def said(session: str) -> list[str]:
        logged = json.loads(ok(typed(home, "sessions", "log", session, "--json")))["items"]
        return [line["content"] for line in logged if line["role"] == "user"]

    assert said("talk") == ["The boat is blue.", "The car is red."]
    assert said("other") == ["The boat is blue.", "The bike is green."]

"""`newton remember` and `newton history`: what a fact replaced, and a censor that a person's statement matches."""

import json
from pathlib import Path

from tests.system.typed import ok, typed


def test_what_a_fact_replaced_is_printed_and_found_in_its_history(home: Path) -> None:
    about = ("--subject", "Ana", "--attribute", "lives in")
    first = json.loads(ok(typed(home, "remember", "Ana lives in Porto.", *about, "--json")))
    assert (first["replaced"], first["contested"], first["warning"]) == ([], [], None)
    old = first["memory_id"][-8:]
    said = ok(typed(home, "remember", "Ana lives in Bergen.", *about))
    assert said.splitlines()[1] == f"  Replaced: {old} Ana lives in Porto."
    new = said.splitlines()[0].partition("(")[2].rstrip(")")
    assert f"superseded by: {new} Ana lives in Bergen." in ok(typed(home, "history", old))
    changes = json.loads(ok(typed(home, "history", old, "--json")))["changes"]
    assert changes[-1]["replaced_by"]["text"] == "Ana lives in Bergen."


def test_a_statement_of_a_person_is_stored_with_a_warning(home: Path) -> None:
    ok(typed(home, "censors", "add", "deploy on Fridays", "--reason", "nobody is there to help", "--action", "block"))
    for words in (("We never deploy on Fridays.",), ("We had to deploy on Fridays.", "--episode", "The outage")):
        done = typed(home, "remember", *words)
        assert done.returncode == 0 and "Remembered." in done.stdout
        assert "is stored nevertheless" in done.stderr and "nobody is there to help" in done.stderr


def test_an_import_refuses_a_censor_of_a_domain_that_no_frame_names(home: Path) -> None:
    lines = [
        {"type": "censor", "ref": "c1", "trigger": "push to main", "reason": "review first", "domain": "gardening"},
        {"type": "censor", "ref": "c2", "trigger": "sell the boat", "reason": "it is not ours"},
    ]
    path = home / "censors.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = typed(home, "import", str(path))
    assert "No frame has the domain 'gardening'." in done.stdout + done.stderr
    assert "Omit the domain, or give one of" in done.stdout + done.stderr
    triggers = {one["trigger"] for one in json.loads(ok(typed(home, "censors", "list", "--json")))["items"]}
    assert "sell the boat" in triggers and "push to main" not in triggers


def test_a_word_that_is_a_command_is_stored_only_on_request(home: Path) -> None:
    for word, command in (("list", "newton list"), ("delete", "newton help")):
        done = typed(home, "remember", word)
        assert done.returncode == 2
        assert f"{word!r} is the name of a command" in done.stderr and f"Run `{command}`" in done.stderr
        assert f"`newton remember --fact {word}`" in done.stderr
    stored = json.loads(ok(typed(home, "remember", "--fact", "list", "--json")))
    shown = json.loads(ok(typed(home, "list", "--json")))
    assert [one["memory_id"] for one in shown["items"] if one["text"] == "list"] == [stored["memory_id"]]
    ok(typed(home, "remember", "list the open questions on Monday"))

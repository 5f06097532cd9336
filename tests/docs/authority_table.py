"""Generate the table of docs/security.md that says what each speaker may do, from the rule itself."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from newton.heart.speakers import ACTS, SPEAKERS, TARGETED, Act, ActRuling, TargetStatement, Verdict, decide
from newton.operations.declaration import Operation, load_operations

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- begin of the generated table -->", "<!-- end of the generated table -->"
HEAD = "| what is done | operations | to what | a person | an app | a model | a model that cites the person's message |"
ACT_NAMES: Mapping[Act, str] = {
    "work": "work: tasks, sessions, records of use",
    "state": "state something",
    "propose": "propose a line of the identity or a move",
    "rule": "add a rule",
    "govern": "govern: approve, weaken, edit, configure",
    "displace": "replace",
    "end": "end",
    "confirm": "confirm",
    "delete": "delete permanently",
    "report": "report how something turned out",
}
TARGETS: Mapping[str, TargetStatement] = {
    "what a model stated": TargetStatement("agent"),
    "what a person said or confirmed": TargetStatement("user"),
    "a core fact of a person, or one about safety": TargetStatement("user", needs_person=True),
}
VERDICTS: Mapping[Verdict, str] = {
    "allowed": "yes",
    "contested": "both stay, unsettled",
    "proposed": "waits for a person",
    "noted": "is shown, counts for nothing",
    "refused": "no",
}


def build_table() -> str:
    """Return the lines of the table."""
    return "\n".join([HEAD, "|---" * 7 + "|", *_list_rows()])


def _list_rows() -> Iterator[str]:
    for act in ACTS:
        names = ", ".join(f"`{one.name}`" for one in load_operations().values() if act in _list_acts(one))
        for target, statement in TARGETS.items() if act in TARGETED else [("", None)]:
            cells = [_describe(act, decide(act, one, target=statement)) for one in SPEAKERS]
            cited = _describe(act, decide(act, "model", target=statement, cited="user")) if statement else ""
            yield f"| {' | '.join([ACT_NAMES[act], names, target, *cells, cited])} |"
            names = ""


def _list_acts(operation: Operation) -> Sequence[Act]:
    return () if operation.effect == "reads" else (operation.act, *operation.options.get("inner_acts", ()))


def _describe(act: Act, ruling: ActRuling) -> str:
    stores = act in ("state", "displace") and ruling.verdict in ("allowed", "contested")
    return VERDICTS[ruling.verdict] + (f", with the trust `{ruling.trust}`" if stores else "")


def fill_page() -> str:
    """Return the page with the present table."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{build_table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(fill_page(), encoding="utf-8")

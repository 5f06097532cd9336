"""The figures of a lived life, the lists of what failed, and a short table of both. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.lives.life import Life, Order
from tests.lives.living import LivedLife
from tests.lives.matching import has_words
from tests.lives.prompt_figures import measure_requests, system_lines
from tests.lives.scores import AnswerScore, LifeScore

Json = dict[str, Any]


def report_life(life: Life, seen: LivedLife) -> Json:
    """The figures of a life, its failures, and the ids of the wanted sentences that are known."""
    score = LifeScore(life, seen)
    figures, failures = _report_facts(score)
    for part, wrong in (_report_orders(life, seen), _report_questions(life, score)):
        figures |= part
        failures |= wrong
    failures["runs"] = seen.failures
    known = sorted(one for one, numbers in score.right.items() if numbers)
    return {
        "person": life["person"].split(",")[0],
        "figures": figures,
        "requests": measure_requests(seen),
        "failures": failures,
        "right": known,
        "current": [item.text for item in score.current],
    }


def _report_facts(score: LifeScore) -> tuple[Json, Json]:
    wanted, changes = score.gold.get("current", []), score.gold.get("changes", [])
    right = [one for one in wanted if score.right[one["id"]]]
    judged = {change["id"]: score.judge_change(change) for change in changes}
    stale = {item.text for change in changes for item in score.list_stale(change)}
    doubles = score.list_duplicates()
    never = {one["text"]: found for one in score.gold.get("never", []) if (found := score.find_never(one))}
    facts = score.current_facts
    figures = {
        "facts": len(facts),
        "right": _of(len(right), len(wanted)),
        "changes": _of(sum(one == "right" for one in judged.values()), len(judged)),
        "changes_replaced": _of(
            sum(judged[one["id"]] == "right" and score.knew_old(one) for one in changes), len(judged)
        ),
        "duplicates": _of(len({max(pair) for pair in doubles}), len(facts)),
        "stale": _of(len(stale), len(facts)),
        "never": _of(len(never), len(score.gold.get("never", []))),
    }
    failures = {
        "not known": [f"{one['id']}: {one['says']}" for one in wanted if not score.right[one["id"]]],
        "changes": [f"{name}: {problem}" for name, problem in judged.items() if problem != "right"],
        "duplicates": [" = ".join(pair) for pair in doubles],
        "stale": sorted(stale),
        "never": [f"{text}: {found!r}" for text, found in never.items()],
        "to judge: duplicates": [" = ".join(pair) for pair in score.list_doubtful_duplicates()],
        "to judge: outdated": sorted({item.text for one in changes for item in score.list_doubtful_stale(one)}),
    }
    return figures, failures


def _report_orders(life: Life, seen: LivedLife) -> tuple[Json, Json]:
    """Whether the rules and wishes are in force from the next turn on until they are lifted, and then no longer."""
    figures, failures = Json(), Json()
    gold = life["gold"]
    for kind, orders in (("rules", gold.get("rules", [])), ("wishes", gold.get("wishes", []))):
        judged = {order["text"]: _judge_order(order, seen) for order in orders}
        lifted = [order["text"] for order in orders if order["lifted_at"]]
        figures[kind] = _of(sum(one["next"] for one in judged.values()), len(orders))
        figures[f"{kind}_kept"] = _of(sum(one["next"] and one["kept"] for one in judged.values()), len(orders))
        figures[f"{kind}_undone"] = _of(sum(judged[one]["undone"] for one in lifted), len(lifted))
        failures[kind] = [
            f"{text}: {', '.join(name for name, holds in one.items() if not holds)}"
            for text, one in judged.items()
            if not all(one.values())
        ]
    return figures, failures


def _judge_order(order: Order, seen: LivedLife) -> dict[str, bool]:
    """Whether an order is in force in the next turn (in the prompt, if there is a model), later, and then undone."""
    ids = [line.id for line in seen.lines]
    told, lifted = ids.index(order["at"]), ids.index(order["lifted_at"]) if order["lifted_at"] else len(ids) - 1
    forces = [any(has_words(text, order["words"]) for text in _list_in_force(place, seen)) for place in range(len(ids))]
    held = {text for text in _list_in_force(lifted, seen) if has_words(text, order["words"])}
    later = _list_in_force(lifted + 1, seen)
    undone = bool(held) and not held & set(later) if order["lifted_at"] else True
    return {"next": all(forces[told + 1 : told + 2]), "kept": all(forces[told + 2 : lifted + 1]), "undone": undone}


def _list_in_force(place: int, seen: LivedLife) -> list[str]:
    """The orders that hold when the line at `place` is answered: those of its prompt, or of the list of orders."""
    if place >= len(seen.lines):
        return seen.orders_at_end
    line = seen.lines[place]
    bodies = (body for purpose, said, body, _ in seen.requests if purpose == "turn" and said == line.text)
    first = next(bodies, None)
    return seen.orders[line.id] if first is None else system_lines(first)


def _report_questions(life: Life, score: LifeScore) -> tuple[Json, Json]:
    questions = life["gold"].get("questions", [])
    answers: list[AnswerScore] = [
        score.judge_question(question, context)
        for question, context in zip(questions, score.seen.contexts, strict=True)
    ]
    figures = {
        "answered": _of(sum(one.is_answered for one in answers), len(answers)),
        "new_first": _of(sum(one.is_first for one in answers), len(answers)),
        "new_only": _of(sum(one.is_clean for one in answers), len(answers)),
    }
    pairs = list(zip(questions, answers, strict=True))
    failures = {
        "unanswered": [question["q"] for question, one in pairs if not one.is_answered],
        "old first": [question["q"] for question, one in pairs if one.is_answered and not one.is_first],
        "old unmarked": [question["q"] for question, one in pairs if one.is_first and not one.is_clean],
    }
    return figures, failures


def _of(part: int, whole: int) -> list[int]:
    return [part, whole]


def compare_runs(without: Mapping[str, Any], model: Mapping[str, Any]) -> list[str]:
    """The ids of the sentences that are known without a model, and not with one."""
    return sorted(set(without["right"]) - set(model["right"]))


def add_up(reports: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The counts of several lives together."""
    pairs = [name for name, value in reports[0]["figures"].items() if isinstance(value, list)]
    return {name: [sum(one["figures"][name][side] for one in reports) for side in (0, 1)] for name in pairs}


def format_reports(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """A table: a row for each figure, a column for each life, and one for all."""
    columns = {name: one["figures"] for name, one in reports.items()} | {"all": add_up(list(reports.values()))}
    names = list(next(iter(columns.values())))
    rows = [[name, *(_format(figures.get(name)) for figures in columns.values())] for name in names]
    requests = [one["requests"] for one in reports.values()]
    rows += [[name, *(json.dumps(one.get(name)) for one in requests), ""] for name in requests[0]]
    table = [["", *columns], *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)


def _format(value: object) -> str:
    return f"{value[0]} of {value[1]}" if isinstance(value, list) else "" if value is None else str(value)

"""Fit the model of UI tasks; with --validate, print first what models find in authors and files new to them.

Reads ui_requests.yaml and ui_requests_train.yaml of tests/data, and everyday messages of persons, which look like no
request of a program. Only the test that measures reads ui_requests_heldout.yaml.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import yaml

from newton.content.ui_request_features import RequestFeatures, extract_features
from newton.content.ui_tasks import SCALE, list_kind_words

DATA = Path(__file__).parents[1] / "data"
MODEL = Path(__file__).parents[2] / "newton" / "content" / "ui_task_model.json"
TREES = {
    "max_iter": 120,
    "max_leaf_nodes": 8,
    "learning_rate": 0.05,
    "min_samples_leaf": 15,
    "l2_regularization": 2.0,
    "max_features": 0.3,
}
REGULARIZATION = 0.1  # of the linear models, the inverse of its strength
MIN_REQUESTS = 2  # that have a word
MAX_WORDS = 13_000  # of the highest weights
WORDS_OF_KIND = 200
FOLDS = 5
TREE_SEEDS = (0, 1, 2)  # of the ensembles of trees whose mean log odds count
BLOCK = 40  # requests of an author in turn, which share topics and are in one fold; files of requests are blocks too
FILE_FOLDS = 3
# Everyday messages of persons. Files that are only measured are not here, such as chat_messages_heldout.yaml.
EVERYDAY = (
    "chat_messages_train.yaml",
    "everyday_scenarios.yaml",
    "secrets.yaml",
    "updates_chat_a.yaml",
    "updates_chat_b.yaml",
    "updates_chat_c.yaml",
    "updates_chat_d.yaml",
    "updates_chat_e.yaml",
    "updates_train.yaml",
    "wishes.yaml",
)
EVERYDAY_AUTHOR = -1
EVERYDAY_WEIGHT = 0.5  # of an everyday message in the fits: requests of persons that look like tasks are rarer
TURNS = (0, 0, 0, 1, 2, 2, 3, 4, 6, 10)  # messages before an everyday message
MINIMA = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.87, 0.89, 0.9, 0.95)
MINIMUM = 0.89  # probability of a task: a request of a person that is taken for one costs more than a task that is not
# The kind of the tasks of each shape in the data.
SHAPES = {
    "autocomplete": "autocomplete",
    "commit": "commit_message",
    "continuation": "continue continuation nudge",
    "edit": "apply merge",
    "extraction": "form",
    "follow_ups": "follow-ups follow_ups followups suggestions",
    "icon": "emoji icon",
    "image_prompt": "image-prompt image_prompt imageprompt",
    "impersonation": "impersonate impersonation",
    "memory": "memory",
    "rating": "judge judging rerank",
    "search_query": "decomposition query search-query search_query",
    "summary": "compaction page_note summary transcript",
    "tags": "tags",
    "title": "title",
    "topic_check": "agent moderation routing tool_choice topic_check",
    "translation": "translation ui_translation",
    "validation_feedback": "validation validation_feedback",
    "wording": "promptgen spelling voice",
}
KINDS = {shape: kind for kind, shapes in SHAPES.items() for shape in shapes.split()} | {"commit": "commit_message"}

# scikit-learn has no type stubs.
ensemble, linear_model, model_selection, text = (
    import_module(f"sklearn.{name}")
    for name in ("ensemble", "linear_model", "model_selection", "feature_extraction.text")
)


class Request(NamedTuple):
    """A labelled request. `kind` is that of a task, None for a request of a person.

    Requests of one `block` share topics and wording.
    """

    author: int
    block: str
    from_file: bool
    shape: str
    kind: str | None
    features: RequestFeatures


class LinearModel(NamedTuple):
    """The weight of each word and the log odds without words."""

    weights: dict[str, float]
    base: float

    def score(self, words: set[str]) -> float:
        return self.base + sum(self.weights.get(word, 0.0) for word in words)


def load_requests() -> list[Request]:
    """Return all requests to learn from."""
    named = yaml.safe_load((DATA / "ui_requests.yaml").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = [
        {"author": 0, "kind": kind, "shape": one.get("shape", "person"), "messages": _to_messages(one)}
        for kind, part in (("task", "ui_tasks"), ("request", "person"))
        for one in named[part]
    ]
    rows += read_rows("ui_requests_train.yaml")
    systems = [read_messages(row["messages"])[1] for row in rows if row["kind"] == "request"]
    everyday = load_everyday([one for one in systems if one])
    return [*(to_request(row, place) for place, row in enumerate(rows)), *everyday]


def load_everyday(systems: Sequence[str]) -> list[Request]:
    """Return everyday messages of persons at several places of a conversation, some after a system message.

    That is one of `systems` or only sets the form of replies. A third are two messages in one, since persons write
    several sentences about several things.
    """
    chance, found, styles = random.Random(0), list[Request](), read_rows("ui_reply_styles.yaml")
    for name in EVERYDAY:
        texts = [one for one in dict.fromkeys(_iter_texts(read_rows(name))) if len(one.split()) > 1]
        for place, text in enumerate(texts):
            words = f"{texts[place - 1]} {text}" if chance.random() < 1 / 3 else text
            turns = chance.choice(TURNS)
            kept = chance.choice((systems, systems, styles, [""])) if not turns else [""]
            features = extract_features(words, system=chance.choice(kept), earlier=[""] * turns)
            block = f"{name} {place // BLOCK}"
            found.append(Request(EVERYDAY_AUTHOR, block, False, "everyday", None, features))
    return found


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        parts = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in parts:
            yield from _iter_texts(one)


def read_rows(name: str) -> list[Any]:
    return yaml.load((DATA / name).read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _to_messages(one: dict[str, str]) -> list[dict[str, str]]:
    system = [{"role": "system", "content": one["system"]}] if one.get("system") else []
    return [*system, {"role": "user", "content": one["user"]}]


def to_request(row: dict[str, Any], place: int) -> Request:
    user, system, earlier = read_messages(row["messages"])
    kind = KINDS[row["shape"]] if row["kind"] == "task" else None
    author, part = row["author"], row.get("part")
    block = f"{author} {place // BLOCK}" if part is None else f"{author} file {part}"
    features = extract_features(user, system=system, earlier=earlier)
    return Request(author, block, part is not None, row["shape"], kind, features)


def read_messages(messages: Sequence[dict[str, str]]) -> tuple[str, str, list[str]]:
    """Return the last message of the user, the system message, and the messages between them."""
    system = "\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [one for one in messages if one["role"] != "system"]
    last = max(place for place, one in enumerate(others) if one["role"] == "user")
    return others[last]["content"], system, [one["content"] for one in others[:last]]


def _all_words(one: Request) -> set[str]:
    return set(one.features.user | one.features.system | one.features.conversation)


def _user_words(one: Request) -> set[str]:
    return set(one.features.user)


def _system_words(one: Request) -> set[str]:
    return set(one.features.system)


def fit_words(requests: Sequence[Request]) -> tuple[LinearModel, LinearModel, LinearModel]:
    """Return the models of all words, of the user's message without and of the system message with a system message."""
    without = [one for one in requests if not one.features.measures["has_system"]]
    with_system = [one for one in requests if one.features.measures["has_system"]]
    return (
        _fit_linear(requests, _all_words),
        _fit_linear(without, _user_words),
        _fit_linear(with_system, _system_words),
    )


def _fit_linear(requests: Sequence[Request], words: Callable[[Request], set[str]]) -> LinearModel:
    counter = text.CountVectorizer(analyzer=words, binary=True, min_df=MIN_REQUESTS, dtype=np.float32)
    matrix = counter.fit_transform(requests)
    rarity = _weigh_rarity(matrix)
    is_task = np.array([one.kind is not None for one in requests])
    model = linear_model.LogisticRegression(C=REGULARIZATION, max_iter=300, class_weight="balanced")
    model.fit(matrix.multiply(rarity).tocsr(), is_task, sample_weight=_weigh(requests))
    weights = dict(zip(counter.get_feature_names_out(), (model.coef_[0] * rarity).tolist(), strict=True))
    return LinearModel(weights, float(model.intercept_[0]))


def score(models: Sequence[LinearModel], requests: Sequence[Request]) -> Any:
    scores = np.array(
        [
            [m.score(w(one)) for m, w in zip(models, (_all_words, _user_words, _system_words), strict=True)]
            for one in requests
        ]
    )
    scores[[not one.features.measures["has_system"] for one in requests], 2] = np.nan
    return scores


def to_matrix(requests: Sequence[Request], scores: Any, names: Sequence[str]) -> Any:
    measures = np.array([[one.features.measures.get(name, np.nan) for name in names] for one in requests])
    return np.hstack([scores, measures])


def fit(requests: Sequence[Request]) -> tuple[tuple[LinearModel, ...], list[Any], list[str]]:
    """Return the linear models, trees over their scores of blocks they have not seen, and the measures' names."""
    names = sorted({name for one in requests for name in one.features.measures})
    is_task = np.array([one.kind is not None for one in requests])
    scores = np.zeros((len(requests), 3))
    folds = model_selection.StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    parts: Any = folds.split(is_task, is_task, [one.block for one in requests])
    for rest, part in parts:
        models = fit_words([requests[int(i)] for i in rest])
        scores[part] = score(models, [requests[int(i)] for i in part])
    matrix = to_matrix(requests, scores, names)
    trees = [
        ensemble.HistGradientBoostingClassifier(**TREES, random_state=seed).fit(matrix, is_task, _weigh(requests))
        for seed in TREE_SEEDS
    ]
    return fit_words(requests), trees, names


def _weigh(requests: Sequence[Request]) -> Any:
    return np.array([EVERYDAY_WEIGHT if one.author == EVERYDAY_AUTHOR else 1.0 for one in requests])


def predict(trees: Sequence[Any], matrix: Any) -> Any:
    """Return the probability of a task of each request, from the mean log odds of the ensembles."""
    return 1 / (1 + np.exp(-np.mean([one.decision_function(matrix) for one in trees], axis=0)))


def validate(requests: Sequence[Request]) -> None:
    """Print what models find that have not seen any request by the author, or none of the same file."""
    parts = {f"author {author}": [one.author == author for one in requests] for author in list_authors(requests)}
    files = sorted({one.block for one in requests if one.from_file})
    for fold in range(FILE_FOLDS):
        chosen = set(files[fold::FILE_FOLDS])
        parts[f"files {fold}"] = [one.block in chosen for one in requests]
        names = EVERYDAY[fold::FILE_FOLDS]
        parts[f"everyday {fold}"] = [one.shape == "everyday" and one.block.startswith(names) for one in requests]
    found = {name: _predict_part(requests, chosen) for name, chosen in parts.items()}
    for name, (part, chances, kinds) in found.items():
        print(f"{name}: {len(part)} requests")
        print_shares(part, chances, kinds)
    for kind in ("author", "files", "everyday"):
        same = [one for name, one in found.items() if name.startswith(kind)]
        print(f"all by {kind}:")
        print_shares([one for part, _, _ in same for one in part], np.concatenate([one[1] for one in same]), None)


def list_authors(requests: Sequence[Request]) -> list[int]:
    """Return the authors of requests of persons, without that of everyday messages."""
    return sorted({one.author for one in requests if one.kind is None} - {EVERYDAY_AUTHOR})


def _predict_part(
    requests: Sequence[Request], chosen: Sequence[bool]
) -> tuple[list[Request], Any, dict[str, dict[str, float]]]:
    rest, part = (
        [one for one, is_chosen in zip(requests, chosen, strict=True) if is_chosen == wanted]
        for wanted in (False, True)
    )
    models, trees, names = fit(rest)
    return part, predict(trees, to_matrix(part, score(models, part), names)), fit_kinds(rest)


def print_shares(part: Sequence[Request], found: Any, kinds: dict[str, dict[str, float]] | None) -> None:
    is_task = np.array([one.kind is not None for one in part])
    for minimum in MINIMA:
        told = found >= minimum
        right = [
            f"{name} {rate.mean():.3f}"
            for name, rate in (("tasks", told[is_task]), ("persons", ~told[~is_task]))
            if len(rate)
        ]
        print(f"  from {minimum}: {', '.join(right)}")
    wrong = Counter(
        (one.kind or "person", one.shape)
        for one, chance in zip(part, found, strict=True)
        if (chance >= MINIMUM) != bool(one.kind)
    )
    print("  wrong:", ", ".join(f"{kind}/{shape} {count}" for (kind, shape), count in wrong.most_common()))
    if kinds is None:
        return
    tasks = [one for one in part if one.kind]
    named = sum(one.kind == _choose_kind(one, kinds) for one in tasks)
    print(f"  kinds named: {named} of {len(tasks)}")


def _kind_words(one: Request) -> set[str]:
    return list_kind_words(one.features)


def _choose_kind(one: Request, kinds: dict[str, dict[str, float]]) -> str:
    words = ["", *_kind_words(one)]
    return max(kinds, key=lambda kind: sum(kinds[kind].get(word, 0) for word in words))


def fit_kinds(requests: Sequence[Request]) -> dict[str, dict[str, float]]:
    """Return for each kind of task its most telling words and their weights."""
    tasks = [one for one in requests if one.kind]
    counter = text.CountVectorizer(analyzer=_kind_words, binary=True, min_df=3, dtype=np.float32)
    matrix = counter.fit_transform(tasks)
    rarity = _weigh_rarity(matrix)
    model = linear_model.LogisticRegression(C=0.3, max_iter=100, class_weight="balanced")
    model.fit(matrix.multiply(rarity).tocsr(), [one.kind for one in tasks])
    names, weights = counter.get_feature_names_out(), model.coef_ * rarity
    strongest = [np.argsort(-np.abs(row))[:WORDS_OF_KIND] for row in weights]
    return {
        str(kind): {"": float(base)} | {str(names[i]): float(row[i]) for i in chosen}
        for kind, base, row, chosen in zip(model.classes_, model.intercept_, weights, strongest, strict=True)
    }


def _weigh_rarity(matrix: Any) -> Any:
    """Return the weight of each word: rare ones tell more about a request. The mean of their squares is 1."""
    rarity = np.log((1 + matrix.shape[0]) / (1 + np.asarray(matrix.sum(axis=0)).ravel())) + 1
    return rarity / np.sqrt((rarity**2).mean())


def main() -> None:
    requests = load_requests()
    if "--validate" in sys.argv:
        validate(requests)
    models, trees, _ = fit(requests)
    names = ["all_score", "user_score", "system_score", *sorted({n for one in requests for n in one.features.measures})]
    data = {
        "words": choose_words(models),
        "bases": [round(model.base, 4) for model in models],
        "trees": [to_tree(predictor.nodes, names) for one in trees for (predictor,) in one._predictors],
        "base": float(trees[0]._baseline_prediction.item()),
        "minimum": MINIMUM,
        "kinds": {kind: {w: round(SCALE * x) for w, x in words.items()} for kind, words in fit_kinds(requests).items()},
    }
    written = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("],[[", "],\n[[")
    MODEL.write_text(f"{written}\n", encoding="utf-8")


def choose_words(models: Sequence[LinearModel]) -> dict[str, list[int]]:
    """Return the words of the highest weights with their weights in all words and in their own message."""
    everywhere, *own = (model.weights for model in models)
    joined = {
        word: [everywhere.get(word, 0.0), own[0].get(word, 0.0), own[1].get(word, 0.0)]
        for m in models
        for word in m.weights
    }
    chosen = sorted(joined, key=lambda word: -max(map(abs, joined[word])))[:MAX_WORDS]
    return {word: [round(SCALE * weight) for weight in joined[word]] for word in sorted(chosen)}


def to_tree(nodes: Any, names: list[str]) -> list[list[Any]]:
    """Return the nodes of a tree: [value] for a leaf, else [feature, threshold, left, right, missing goes left]."""
    return [
        [round(float(node["value"]) / len(TREE_SEEDS), 4)]
        if node["is_leaf"]
        else [
            names[node["feature_idx"]],
            round(float(node["num_threshold"]), 4),
            int(node["left"]),
            int(node["right"]),
            int(node["missing_go_to_left"]),
        ]
        for node in nodes
    ]


if __name__ == "__main__":
    main()

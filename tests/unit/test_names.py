"""Names in newton/ follow the conventions of Python and of the field. Each limit may fall, never rise."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.unit.source_trees import ROOT, walk
from tests.unit.source_trees import trees as trees_of

# The figures in comments are of the tree when the limit was set.
MAX_SHARED_CLASS_NAMES = 0
MAX_ONE_WORD_CLASSES = 0.02  # 16 of 904
MAX_GERUND_MODULES = 11  # 11
MAX_PARTICIPLE_FUNCTIONS = 10  # 10
MAX_RELATIVE_DOCSTRINGS = 0.001  # 4 of 4,082
MAX_MODULES_PER_PACKAGE = 20  # none has more

# Modules named after a process. A new one needs a noun: what it defines (`ranking` -> `rank_fusion`).
GERUND_MODULES = {
    "cognition/frames/training",
    *("heart/chunking", "memory/forgetting", "memory/ranking"),
    *("providers/embedding", "providers/openai/embedding", "runtime/cli/formatting", "runtime/cli/printing"),
    *("runtime/settings_mapping", "runtime/tracing", "runtime/wiring"),
}
BARRED_ARGUMENTS = {"most", "because", "told"}
DATA_SUFFIXES = {".sql", ".yaml"}
COLLECTION = re.compile(
    r"\b(Sequence|Iterable|Iterator|Collection|Mapping|Counter|list|tuple|set|frozenset|dict|Set)\b"
)
RELATIVE = re.compile(r"(what|who|which|that|whether)\b", re.IGNORECASE)
# Irregular participles; regular ones end in -ed. A word that is also a verb's base form (read, set, cut, put) is none.
IRREGULAR = {
    *("begun", "bound", "broken", "brought", "built", "caught", "chosen", "come", "done", "drawn", "driven", "fallen"),
    *(
        "fed",
        "felt",
        "forgotten",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
    ),
    *("learnt", "led", "left", "lent", "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sold"),
    *("spent", "split", "spoken", "stood", "sunk", "taken", "taught", "thought", "thrown", "told", "won", "written"),
}
NO_PARTICIPLES = {
    "embed",
    "reembed",
    "feed",
    "need",
    "seed",
    "speed",
    "proceed",
    "shed",
    "exceed",
    "succeed",
    "bleed",
    "split",
}

# Identifiers in docstrings: in backticks, in capitals with an underscore, or in CamelCase.
QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
CAPITALS = re.compile(r"\b(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")
OUTSIDE_TERMS = {
    "ChatGPT",
    "ChromaDB",
    "CommonMark",
    "Host",
    "LangGraph",
    "OpenAI",
    "OpenAPI",
    "OpenTelemetry",
    "PyYAML",
    "SearXNG",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def trees() -> dict[str, ast.Module]:
    return trees_of("newton")


def nodes(sources: dict[str, ast.Module]) -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, tree in sources.items() for node in walk(tree))


def public_classes(sources: dict[str, ast.Module]) -> list[str]:
    return [
        node.name
        for tree in sources.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def shared_class_names(sources: dict[str, ast.Module]) -> dict[str, int]:
    return {name: times for name, times in Counter(public_classes(sources)).items() if times > 1}


def one_word_classes(sources: dict[str, ast.Module]) -> list[str]:
    return [name for name in public_classes(sources) if re.fullmatch(r"[A-Z][a-z0-9]*", name)]


def gerund_modules(sources: dict[str, ast.Module]) -> list[str]:
    return [name for name in sources if re.search(r"ing\d*$", Path(name).stem)]


def participle_functions(sources: dict[str, ast.Module]) -> list[str]:
    return [
        f"{name}:{node.lineno} {node.name}"
        for name, node in nodes(sources)
        if isinstance(node, Function) and is_participle(node.name) and not is_property(node)
    ]


def is_participle(name: str) -> bool:
    word = name.strip("_")
    return word in IRREGULAR or (word.endswith("ed") and "_" not in word and word not in NO_PARTICIPLES)


def is_property(function: Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def docstrings(sources: dict[str, ast.Module]) -> list[tuple[str, str]]:
    return [(name, text) for name, tree in sources.items() for text in docstrings_of(tree)]


@cache
def docstrings_of(tree: ast.Module) -> list[str]:
    documented = (node for node in walk(tree) if isinstance(node, Function | ast.ClassDef | ast.Module))
    return [text for node in documented if (text := ast.get_docstring(node))]


def relative_docstrings(sources: dict[str, ast.Module]) -> list[str]:
    return [f"{name}: {text[:60]}" for name, text in docstrings(sources) if RELATIVE.match(text)]


def defined_names() -> set[str]:
    """Identifiers and strings without white space in the code, and all words of the data files."""
    folders = ("newton", "schema", "frames", "profiles", "guardrails", "procedures")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in DATA_SUFFIXES]
    known = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    known |= {part for name in trees() for part in Path(name).with_suffix("").parts} | set(dir(builtins))
    known |= {word for tree in trees().values() for node in walk(tree) for word in node_names(node)}
    return known | {word.upper() for word in known}


NAMING = tuple(
    kind
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and {"name", "id", "attr", "arg"} & {*kind._fields}
)


def node_names(node: ast.AST) -> list[str]:
    """The identifiers of a definition, name, attribute, argument or import, or of a string without white space."""
    if isinstance(node, ast.Constant):
        return (
            re.findall(r"\w+", node.value) if isinstance(node.value, str) and not re.search(r"\s", node.value) else []
        )
    if not isinstance(node, NAMING):
        return []
    names = (getattr(node, field, None) for field in ("name", "id", "attr", "arg"))
    return [part for name in names if isinstance(name, str) for part in name.split(".")]


def stale_names(sources: dict[str, ast.Module], known: set[str]) -> list[str]:
    found = [
        (name, identifier)
        for name, text in docstrings(sources)
        for identifier in (*QUOTED.findall(text), *CAPITALS.findall(text))
    ]
    terms = known | OUTSIDE_TERMS
    return [
        f"{name}: {identifier}"
        for name, identifier in dict.fromkeys(found)
        if not {part.removeprefix("NEWTON_") for part in identifier.split(".") if part} <= terms
    ]


def arguments(sources: dict[str, ast.Module]) -> list[tuple[str, ast.arg]]:
    return [(f"{name}:{node.lineno}", node) for name, node in nodes(sources) if isinstance(node, ast.arg)]


def barred_arguments(sources: dict[str, ast.Module]) -> list[str]:
    return [f"{where} {arg.arg}" for where, arg in arguments(sources) if arg.arg in BARRED_ARGUMENTS]


def words_that_are_text(sources: dict[str, ast.Module]) -> list[str]:
    """Arguments and fields named `words` whose annotation is no collection."""
    fields = [
        (f"{name}:{node.lineno}", node.annotation)
        for name, node in nodes(sources)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "words"
    ]
    given = [(where, arg.annotation) for where, arg in arguments(sources) if arg.arg == "words" and arg.annotation]
    return [where for where, note in (*fields, *given) if note and not COLLECTION.search(ast.unparse(note))]


def large_packages(sources: dict[str, ast.Module]) -> dict[str, int]:
    flat = Counter(str(Path(name).parent) for name in sources if Path(name).name != "__init__.py")
    return {package: count for package, count in flat.items() if count > MAX_MODULES_PER_PACKAGE}


def test_few_public_classes_share_a_name() -> None:
    shared = shared_class_names(trees())
    assert sum(shared.values()) <= MAX_SHARED_CLASS_NAMES, shared


def test_most_public_classes_are_named_by_more_than_one_word() -> None:
    short, every = one_word_classes(trees()), public_classes(trees())
    assert len(short) <= MAX_ONE_WORD_CLASSES * len(every), f"{len(short)} of {len(every)}: {sorted(short)}"


def test_modules_are_named_by_nouns() -> None:
    found = gerund_modules(trees())
    assert set(found) <= {f"newton/{name}.py" for name in GERUND_MODULES}
    assert len(found) <= MAX_GERUND_MODULES, found


def test_few_functions_are_named_by_a_participle_alone() -> None:
    found = participle_functions(trees())
    assert len(found) <= MAX_PARTICIPLE_FUNCTIONS, found


def test_few_docstrings_begin_with_a_relative_pronoun() -> None:
    found, every = relative_docstrings(trees()), docstrings(trees())
    assert len(found) <= MAX_RELATIVE_DOCSTRINGS * len(every), f"{len(found)} of {len(every)}: {found}"


def test_no_argument_has_a_private_name() -> None:
    assert barred_arguments(trees()) == []


# The text of an erasable record; a rename would change stored JSON and model output.
WORDS_BY_CONTRACT = {
    "newton/brain/hash_chain.py",
    "newton/brain/ledger.py",
    "newton/dialogue/task_tree.py",
    "newton/heart/reconciliation/prompt.py",
    "newton/heart/identity/identity_store.py",
}


def test_words_are_a_collection() -> None:
    assert {found.partition(":")[0] for found in words_that_are_text(trees())} <= WORDS_BY_CONTRACT


def test_no_package_is_too_large_to_survey() -> None:
    assert large_packages(trees()) == {}


def test_docstrings_refer_to_names_that_exist() -> None:
    assert stale_names(trees(), defined_names()) == []


PLANTED = """
class Thing: ...
class Thing: ...
class TwoWords: ...
def kept(most: int, *, because: str, words: str) -> None:
    "Whether it is."
async def revised(told: str, words: "Sequence[str]") -> None:
    "Return it."
class Row:
    "Kept as `TwoWords.embed` in `Gone`, with MAX_GONE and TwoWordsGone."
    words: str
    @property
    def made(self) -> int: ...
    def embed(self) -> None: ...
"""


def test_each_violation_is_noticed() -> None:
    planted = {"newton/a/keeping.py": ast.parse(PLANTED)}
    assert shared_class_names(planted) == {"Thing": 2}
    assert one_word_classes(planted) == ["Thing", "Thing", "Row"]
    assert gerund_modules(planted) == ["newton/a/keeping.py"]
    assert [found.split()[1] for found in participle_functions(planted)] == ["kept", "revised"]
    assert [found.partition(": ")[2] for found in relative_docstrings(planted)] == ["Whether it is."]
    assert sorted(found.split()[1] for found in barred_arguments(planted)) == ["because", "most", "told"]
    assert len(words_that_are_text(planted)) == 2
    stale = stale_names(planted, {"TwoWords", "embed"})
    assert [found.split()[1] for found in stale] == ["Gone", "MAX_GONE", "TwoWordsGone"]
    flat = {f"newton/a/m{n}.py": ast.parse("") for n in range(21)}
    assert large_packages({**flat, "newton/a/__init__.py": ast.parse("")}) == {"newton/a": 21}
    del flat["newton/a/m0.py"]
    assert large_packages(flat) == {}

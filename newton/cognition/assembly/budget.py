"""Division of a context's tokens among its layers (sections). Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from newton.cognition.questions.question_kinds import read_question
from newton.cognition.questions.question_rules import asks_memory
from newton.cognition.request import ContextBuildRequest
from newton.content.frames import LayerShares, Stakes

BISECTION_STEPS = 50  # of the search for the tokens per unit of weight


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPart:
    """A part of a budget: `fixed` tokens, or `percent` of its parent, or a share of the remaining tokens by `weight`.

    The size is limited to the range from `floor` to `cap`, and divided among the nested `parts`.
    """

    name: str
    fixed: int | None = None
    percent: float | None = None
    weight: float = 1.0
    floor: int = 0
    cap: int | None = None
    parts: tuple["BudgetPart", ...] = ()

    @property
    def has_own_size(self) -> bool:
        return self.fixed is not None or self.percent is not None

    def clamp(self, tokens: float) -> int:
        return max(int(tokens) if self.cap is None else min(int(tokens), self.cap), self.floor)

    def compute_base(self, total: int) -> int:
        """Return the part's tokens before the remaining tokens are distributed by weight."""
        return self.clamp(total * (self.percent or 0) / 100 if self.fixed is None else self.fixed)


def split_budget(total: int, parts: Sequence[BudgetPart]) -> dict[str, int]:
    """Divide `total` among the parts and their nested parts; return the tokens by name.

    If fixed sizes, percentages and floors together exceed `total`, all of them shrink proportionally.

    >>> head, tail = BudgetPart(name="head", fixed=100), BudgetPart(name="tail", percent=20)
    >>> split_budget(1_000, [head, tail, BudgetPart(name="body")])
    {'head': 100, 'tail': 200, 'body': 700}
    >>> split_budget(50, [BudgetPart(name="head", fixed=100), BudgetPart(name="body")])
    {'head': 50, 'body': 0}
    """
    sizes = {part.name: part.compute_base(total) for part in parts}
    if (required := sum(sizes.values())) > total:
        sizes = {name: tokens * total // required for name, tokens in sizes.items()}
    else:
        weighted = [part for part in parts if not part.has_own_size]
        sizes |= _distribute(total - sum(sizes[part.name] for part in parts if part.has_own_size), weighted)
    for part in parts:
        sizes |= split_budget(sizes[part.name], part.parts)
    return sizes


def _distribute(tokens: int, parts: Sequence[BudgetPart]) -> dict[str, int]:
    """Distribute tokens among parts by weight. Excess above a cap goes to other parts; floors reduce other parts."""
    unweighted = sum(part.floor for part in parts if part.weight <= 0)
    unit_size = _find_unit_size(tokens - unweighted, [part for part in parts if part.weight > 0])
    return {part.name: part.clamp(part.weight * unit_size) for part in parts}


def _find_unit_size(tokens: int, parts: Sequence[BudgetPart]) -> float:
    """Return the tokens per unit of weight at which the clamped parts use up `tokens`, by bisection."""
    if all(not part.floor and part.cap is None for part in parts):
        return tokens / (sum(part.weight for part in parts) or 1.0)
    low, high = 0.0, tokens / min((part.weight for part in parts), default=1.0) + 1
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        fits = sum(part.clamp(part.weight * middle) for part in parts) <= tokens
        low, high = (middle, high) if fits else (low, middle)
    return low


# Tokens of each layer at 8,000 tokens. A smaller context shrinks all layers proportionally; a larger one grows the
# flexible layers only.
DEFAULT_TOTAL = 8_000
FIXED_LAYERS: Mapping[str, int] = {"identity": 500, "censors": 300, "frame": 500, "working": 700}
FLEXIBLE_LAYERS: Mapping[str, int] = LayerShares().shares
# Beside the flexible layers, these may exceed their share: with the messages since the last context, and with the note
# that memory has nothing.
EXTENSIBLE_LAYERS = frozenset({"working", "note"})
# Maximum tokens of messages of other sessions before one input of a conversation, and before all inputs that are sent.
MAX_OTHER_SESSIONS, MAX_ALL_OTHER_SESSIONS = 250, 800
NOTE_TOKENS = 100  # for the calibration note; taken from the flexible part
MAX_RESERVED_SHARE = 0.5  # of the flexible part, for session artifacts, and as much for passages of documents
# Maximum shares of the total, for the caller's lines and for the brief of the session.
RESERVED_SHARES: Mapping[str, float] = {"additional": 0.5, "brief": 0.2}

# Percent of the flexible part for the task stack: root goal, path to the current task, siblings.
TASK_LAYER_PERCENT: Mapping[str, float] = {"root": 5, "path": 15, "siblings": 10}

MIN_FLEXIBLE_SHARE = 0.4  # of the flexible layers, for the simplest input
STAKES_SENSITIVE_LAYERS = frozenset({"decisions", "procedures"})  # get more for a complex input with high stakes
STAKES_WEIGHT: Mapping[Stakes, float] = {"low": 0.0, "medium": 0.25, "high": 0.5, "critical": 1.0}
FULL_COMPLEXITY_WORDS = 40
_WORD = re.compile(r"\w{5,}")
_CLAUSE = re.compile(r"[,;:.?!]\s|\b(?:because|while|unless|whether|although|but)\b", re.IGNORECASE)
_MAX_CHARS = 2_000  # of the input that are read


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBudget:
    """The tokens of each layer: a maximum for fixed layers, for `flexible` ones a share that they may exceed.

    `other_sessions` are the tokens that the messages of other sessions may take in their layer; None means no limit.
    """

    total: int
    layers: Mapping[str, int]
    flexible: frozenset[str] = frozenset(FLEXIBLE_LAYERS)
    other_sessions: int | None = None

    def find_ceiling(self, layer: str) -> int:
        """Return the maximum tokens of a layer: its share, or `total` if it may use tokens that other layers leave.

        >>> budget = allocate_budget(8_000)
        >>> budget.find_ceiling("identity"), budget.find_ceiling("decisions")
        (500, 8000)
        """
        may_exceed_share = layer in self.flexible or layer in EXTENSIBLE_LAYERS
        return self.total if may_exceed_share else min(self.layers[layer], self.total)


def allocate_budget(
    total: int,
    *,
    shares: Mapping[str, float] | None = None,
    complexity: float | None = None,
    stakes: Stakes = "medium",
    has_tasks: bool = False,
    reserved: Mapping[str, int] | None = None,
) -> ContextBudget:
    """Divide at most `total` tokens among the layers of a context.

    `shares` are the weights of the flexible layers; None means the defaults. `complexity` (0 to 1) shrinks the flexible
    part to what the input needs, so the budget may be smaller than `total`; None keeps all of it. A complex input with
    high stakes gives more weight to decisions and procedures. `has_tasks` reserves tokens for the task stack.
    `reserved` are tokens for the layers `additional` and `brief`, limited by `RESERVED_SHARES`.

    >>> allocate_budget(8_000).layers["decisions"]
    1966
    >>> allocate_budget(4_000).layers["identity"]
    250
    >>> allocate_budget(8_000, complexity=0.0, stakes="low").total
    4460
    """
    parts = _build_fixed_parts()
    parts += [
        BudgetPart(name=name, fixed=tokens, cap=int(total * RESERVED_SHARES[name]))
        for name, tokens in (reserved or {}).items()
        if tokens
    ]
    layers = split_budget(total, [*parts, BudgetPart(name="flexible")])
    flexible = layers.pop("flexible")
    if complexity is not None:
        unused = int(flexible * (1 - _compute_needed_share(complexity, stakes)))
        flexible -= unused
        total -= unused
    weighted = _build_flexible_parts(shares or FLEXIBLE_LAYERS, complexity or 0.0, stakes, has_tasks=has_tasks)
    return ContextBudget(total=total, layers={**layers, **split_budget(flexible, weighted)})


def limit_other_sessions(request: ContextBuildRequest) -> int | None:
    """Return the maximum tokens that messages of other sessions may use in a context; None for no limit.

    The text that memory adds before an input is sent again with all later inputs, and facts say most of it in fewer
    words. So only an input that asks about stored memories gets as many messages as fit.
    """
    sent = request.sent_messages
    if sent is None or sent.quoted_tokens is None or asks_memory(request.input, read_question(request.input)):
        return None
    return min(MAX_OTHER_SESSIONS, max(MAX_ALL_OTHER_SESSIONS - sent.quoted_tokens, 0))


def reserve_layer(
    budget: ContextBudget, layer: str, tokens: int, *, max_share: float = MAX_RESERVED_SHARE
) -> ContextBudget:
    """Return the budget with `tokens` reserved for a layer, at most a share of the flexible layers' tokens.

    >>> budget = reserve_layer(allocate_budget(8_000), "session", 800)
    >>> budget.layers["session"], budget.layers["decisions"], allocate_budget(8_000).layers["decisions"]
    (800, 1699, 1966)
    """
    if tokens <= 0:
        return budget
    flexible = sum(budget.layers[name] for name in budget.flexible)
    reserved = min(tokens, int(flexible * max_share))
    rest = {name: budget.layers[name] * (flexible - reserved) // (flexible or 1) for name in budget.flexible}
    return replace(budget, layers={**budget.layers, **rest, layer: reserved})


def reserve_note(budget: ContextBudget, tokens: int) -> ContextBudget:
    """Return the budget with `tokens` more for the layer of notes, limited as in `reserve_layer`; 0 changes nothing."""
    return reserve_layer(budget, "note", tokens and tokens + budget.layers["note"])


# The layers that pay for the identity and the censors after the flexible ones, in this order.
_REDUCED_LAYERS = ("note", "working", "additional", "frame", "brief")


def reserve_always_on(budget: ContextBudget, used: Mapping[str, int], *, max_tokens: int) -> ContextBudget:
    """Return the budget enlarged to the `used` tokens of identity and censors, if either exceeds its layer.

    The tokens are taken from those that the budget leaves unused below `max_tokens`, then from the flexible layers,
    then from the other layers.

    >>> budget = reserve_always_on(allocate_budget(1_000), {"identity": 300, "censors": 100}, max_tokens=1_000)
    >>> budget.layers["identity"], budget.layers["censors"], sum(budget.layers.values()) <= 1_000
    (300, 100, True)
    """
    if all(tokens <= budget.layers[name] for name, tokens in used.items()):
        return budget
    missing = sum(used.values()) - sum(budget.layers[name] for name in used)
    extra = max(min(missing, max_tokens - budget.total), 0)
    layers, missing = {**budget.layers, **used}, max(missing - extra, 0)
    shrinking = [name for name in layers if name not in (*used, *_REDUCED_LAYERS)]
    available = sum(layers[name] for name in shrinking)
    kept = max(available - missing, 0)
    layers |= {name: layers[name] * kept // (available or 1) for name in shrinking}
    missing = max(missing - available, 0)
    for name in _REDUCED_LAYERS:
        taken = min(missing, layers.get(name, 0))
        layers |= {name: layers[name] - taken} if taken else {}
        missing -= taken
    return replace(budget, total=budget.total + extra, layers=layers)


def _build_fixed_parts() -> list[BudgetPart]:
    sizes = {**FIXED_LAYERS, "note": NOTE_TOKENS}
    return [BudgetPart(name=name, percent=100 * tokens / DEFAULT_TOTAL, cap=tokens) for name, tokens in sizes.items()]


def _build_flexible_parts(
    shares: Mapping[str, float], complexity: float, stakes: Stakes, *, has_tasks: bool
) -> list[BudgetPart]:
    factors = dict.fromkeys(STAKES_SENSITIVE_LAYERS, 1 + complexity * STAKES_WEIGHT[stakes])
    weights = {name: shares.get(name, 0.0) * factors.get(name, 1.0) for name in FLEXIBLE_LAYERS}
    tasks = TASK_LAYER_PERCENT.items() if has_tasks else ()
    return [
        *(BudgetPart(name=name, weight=weight) for name, weight in weights.items()),
        *(BudgetPart(name=name, percent=percent) for name, percent in tasks),
    ]


def _compute_needed_share(complexity: float, stakes: Stakes) -> float:
    """Return the share of the flexible layers that the input needs, from `MIN_FLEXIBLE_SHARE` to 1."""
    return MIN_FLEXIBLE_SHARE + (1 - MIN_FLEXIBLE_SHARE) * min(2 * max(complexity, STAKES_WEIGHT[stakes]), 1.0)


def estimate_complexity(text: str) -> float:
    """Estimate the complexity of an input from 0 to 1, by the number of its long words and its clauses.

    >>> estimate_complexity("hi"), estimate_complexity("Should we use Redis for caching in Newton?")
    (0.0, 0.1)
    """
    clauses = len(_CLAUSE.findall(text[:_MAX_CHARS]))
    return min((len(_WORD.findall(text[:_MAX_CHARS])) + 5 * clauses) / FULL_COMPLEXITY_WORDS, 1.0)

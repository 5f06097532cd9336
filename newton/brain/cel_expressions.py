"""A subset of CEL (Common Expression Language) whose expressions always run fast. Pure.

Excluded are operations that make values grow (`+`, `map`, lists of variables), that multiply work (nested loops,
regular expressions) and that cannot be checked before a run (indexes, maps, unknown names). A formula contains only
numbers, so `+` is allowed in it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import cel

from newton.content.yaml_files import did_you_mean
from newton.errors import InputError

MAX_CHARS = 500
MAX_DEPTH = 20  # nested parentheses
MAX_REPEATED_SIGNS = 20  # of `!` or `-`

METHODS = frozenset({"contains", "startsWith", "endsWith"})  # of a string, as in category.contains('money')
FUNCTIONS = METHODS | {"size", "double", "duration"}
LOOPS = frozenset({"all", "exists", "exists_one", "filter"})
_WORDS = frozenset({"true", "false", "null", "in"})
_LITERAL = frozenset({"text", "number"})

# The Python exceptions that CEL raises.
CEL_ERRORS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>"(?:[^"\\\n\r]|\\.)*"(?!")|'(?:[^'\\\n\r]|\\.)*'(?!'))
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||[=!<>]=|[<>!?:.,()\[\]*%+-]|/(?!/))""",
    re.VERBOSE | re.ASCII,
)

_HINTS = {
    "+": "Addition is not supported: compare the parts, or subtract.",
    "text": "A formula contains only numbers.",
    "//": "Put comments into the description.",
    "=": "Use == to compare.",
    "{": "Maps are not supported: name the field, as in record.judged.",
    "matches": "Use a censor to match patterns: `newton censors add`.",
    "map": "Use all, exists, exists_one or filter.",
    "has": "Every field exists; an unknown one is null: compare it with null.",
    "int": "Integers and doubles can be compared directly; double(…) is for arithmetic.",
}


class CelToken(NamedTuple):
    """A token of a CEL expression. `kind` is its kind, such as name or sign."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedNames:
    """The names that an expression may use: variables, `lists` among them, and the `fields` of variables.

    With `math_functions` the expression is a formula, which contains only numbers.
    """

    variables: frozenset[str]
    lists: frozenset[str] = frozenset()
    fields: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    math_functions: frozenset[str] = frozenset()

    @property
    def functions(self) -> frozenset[str]:
        """The functions and methods that an expression may call."""
        return self.math_functions or FUNCTIONS

    @property
    def loops(self) -> frozenset[str]:
        return frozenset() if self.math_functions else LOOPS


def compile_expression(expression: str, names: AllowedNames) -> cel.Program:
    """Compile a CEL expression.

    Raises InputError if it is invalid, exceeds the limits or uses a name not in `names`.
    """
    if len(expression) > MAX_CHARS:
        hint = f"The maximum is {MAX_CHARS} characters: split the expression into two."
        raise InputError(f"The expression has {len(expression):,} characters.", hint=hint)
    if not expression.strip():
        raise InputError("The expression is empty.", hint="Write a condition for a violation, as in confidence < 0.5.")
    if not "".join(expression.split()).isprintable():
        raise InputError("The expression contains an invisible character.", hint="Remove the character.")
    tokens = tuple(_tokens(expression))
    scan = _TokenChecker(tokens, names)
    scan.check()
    try:
        program = cel.compile(_to_doubles(tokens) if names.math_functions else expression)
    except CEL_ERRORS as error:
        raise InputError(f"Invalid CEL expression: {first_line(error)}.", hint="Correct the expression.") from None
    _check_agreement(program, names.variables | names.fields.keys() | scan.bound, names.functions)
    return program


def _to_doubles(tokens: Sequence[CelToken]) -> str:
    """Return the expression with integers written as doubles, because CEL does not add 1 to 0.5."""
    return " ".join(f"{text}.0" if kind == "number" and text.isdigit() else text for kind, text in tokens)


def first_line(error: BaseException) -> str:
    """Return the first sentence of an error message of the CEL library."""
    text = str(error).strip("'\"")
    text = text.partition("ERROR: <input>:")[2] or text
    for end in ("\n", ". ", " expecting {"):
        text = text.partition(end)[0]
    return text.rstrip(".")[:200]


def _tokens(expression: str) -> Iterator[CelToken]:
    index = 0
    while index < len(expression):
        found = _TOKEN.match(expression, index)
        if found is None or found.lastgroup is None:
            raise _invalid_token_error(expression[index:])
        if found.lastgroup != "space":
            yield CelToken(found.lastgroup, found.group())
        index = found.end()


def _invalid_token_error(remaining: str) -> InputError:
    sign = "//" if remaining.startswith("//") else remaining[0]
    if sign.isdigit():
        return InputError(
            f"{remaining[:10].split(maxsplit=1)[0]!r} is not a number.", hint="Use the form 7, 0.5 or 1e3."
        )
    if sign in "\"'":
        hint = "Close each string with the quote that opens it."
        return InputError("A string is not closed, or starts with three quotes.", hint=hint)
    return InputError(f"{sign!r} is not allowed in an expression.", hint=_HINTS.get(sign, "Remove the character."))


class _TokenChecker:
    """A check, in one pass, that every name is allowed where it occurs and that each loop runs over an allowed list."""

    def __init__(self, tokens: tuple[CelToken, ...], names: AllowedNames) -> None:
        self._tokens, self._names = tokens, names
        self._open: list[str | None] = []  # for each open parenthesis its loop variable
        self.bound: set[str] = set()

    def check(self) -> None:
        """Check all tokens, and collect the loop variables in `bound`.

        Raises InputError with a hint for the first mistake.
        """
        index = 0
        while index < len(self._tokens):
            kind, text = self._tokens[index]
            if kind == "name" and text not in _WORDS:
                self._check_name(index)
            elif self._names.math_functions and (kind == "text" or text == "["):
                raise InputError(f"{text!r} is not allowed in a formula.", hint=_HINTS["text"])
            elif text == "[":
                index = self._skip_list(index)
            elif kind == "sign":
                self._check_sign(index)
            index += 1

    def _text_at(self, index: int) -> str:
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def _check_name(self, index: int) -> None:
        text, before, after = self._text_at(index), self._text_at(index - 1), self._text_at(index + 1)
        if after == "(":
            self._check_call(index)
        elif before == ".":
            self._check_field(index)
        elif text in self._names.fields:
            if after != ".":
                raise InputError(f"{text!r} needs a field.", hint=f"Name a field, as in {self._example(text)}.")
        elif text not in self._names.variables and text not in self._open:
            raise _unknown_name_error(text, "variable", self._names.variables | self._names.fields.keys())

    def _check_field(self, index: int) -> None:
        text, owner = self._text_at(index), self._text_at(index - 2)
        known = self._names.fields.get(owner)
        if known is None or self._text_at(index - 3) == ".":
            raise InputError(f"{owner!r} has no fields.", hint=f"Only {', '.join(self._names.fields)} has fields.")
        if text not in known:
            raise _unknown_name_error(f"{owner}.{text}", "field", {f"{owner}.{name}" for name in known})

    def _check_call(self, index: int) -> None:
        text, callable_here = self._text_at(index), self._names.functions | self._names.loops
        if text in self._names.loops:
            self._check_loop(index)
        elif text not in callable_here:
            hint = _HINTS.get(text) or did_you_mean(text, callable_here)
            known = f"The functions are {', '.join(sorted(callable_here))}."
            raise InputError(f"{text!r} is not an available function.", hint=hint or known)
        elif text != "size" and (text in METHODS) != (self._text_at(index - 1) == "."):
            hint = f"Write text.{text}('…')." if text in METHODS else f"Write {text}(…)."
            raise InputError(f"{text!r} is not allowed here.", hint=hint)

    def _check_loop(self, index: int) -> None:
        text, over = self._text_at(index), self._text_at(index - 2)
        if self._text_at(index - 1) != "." or over not in self._names.lists or self._text_at(index - 3) == ".":
            raise InputError(f"{text} needs a list.", hint=f"The lists are {', '.join(sorted(self._names.lists))}.")
        if any(self._open):
            raise InputError(
                f"The loop {text} is inside another loop.",
                hint="Split the rule into two guardrails, one for each loop.",
            )
        bound = self._text_at(index + 2)
        if not bound.isidentifier() or self._text_at(index + 3) != ",":
            raise InputError(f"{text} does not name its loop variable.", hint=f"Write {over}.{text}(x, … x …).")
        if bound in self._names.variables or bound in self._names.fields or bound in _WORDS:
            raise InputError(
                f"{bound!r} is already the name of a variable.", hint="Choose another name for the loop variable."
            )

    def _check_sign(self, index: int) -> None:
        text = self._text_at(index)
        if text == "+" and not self._names.math_functions:
            raise InputError("'+' is not allowed in an expression.", hint=_HINTS["+"])
        if text == "(":
            looping = self._text_at(index - 1) in LOOPS
            self._open.append(self._text_at(index + 1) if looping else None)
            self.bound |= {self._text_at(index + 1)} if looping else set()
            if len(self._open) > MAX_DEPTH:
                raise InputError("The parentheses are nested too deeply.", hint=f"Use at most {MAX_DEPTH} levels.")
        elif text == ")" and self._open:
            self._open.pop()
        elif text in "!-+" and {self._text_at(n) for n in range(index - MAX_REPEATED_SIGNS, index)} == {text}:
            raise InputError(
                f"There are too many {text} in a row.",
                hint="Two of these signs in a row have no effect: remove both.",
            )

    def _skip_list(self, index: int) -> int:
        """Return the position at which the list that begins at `index` ends.

        Raises InputError if the bracket takes an item of a list, or if the list has anything but plain strings and
        numbers.
        """
        before = self._tokens[index - 1] if index else CelToken("sign", "")
        if before.text != "in" and (before.kind in ("name", "text") or before.text in ("]", ")")):
            raise InputError("An expression cannot take an item of a list by its index.", hint="Use exists() or all().")
        end = index + 1
        while self._text_at(end) not in ("]", ""):
            kind, text = self._tokens[end]
            if kind not in _LITERAL and text not in (",", "-"):
                hint = "A list may contain only plain strings and numbers."
                raise InputError(f"{text!r} is not allowed in a list.", hint=hint)
            end += 1
        return end

    def _example(self, owner: str) -> str:
        return f"{owner}.{min(self._names.fields[owner])}"


def _unknown_name_error(name: str, noun: str, known: Set[str]) -> InputError:
    near = did_you_mean(name, known) or f"The {noun}s are: {', '.join(sorted(known))}."
    return InputError(f"{name!r} is not a known {noun}.", hint=near)


def _check_agreement(program: cel.Program, known: Set[str], callable_here: Set[str]) -> None:
    """Raise InputError if the CEL library sees names that the checks did not see, which would bypass the limits."""
    functions = {name for name in program.functions() if name.isidentifier()}
    if not functions <= callable_here or not set(program.variables()) <= known:
        raise InputError("The expression can be read in two ways.", hint="Split the expression into simpler parts.")

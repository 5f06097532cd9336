"""Loading of YAML files into frozen models. Errors state the file, the line and a remedy."""

import difflib
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails
from yaml.reader import Reader

from newton.errors import ConfigError, InputError, NotFoundError
from newton.file_access import open_regular

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # pragma: no cover - PyYAML built without libyaml: the same results, several times slower
    from yaml import SafeLoader as Loader

YamlLocation = tuple[str | int, ...]

_TEXT = "tag:yaml.org,2002:str"
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")}
_PLAIN_YAML_HINT = "Use plain YAML without anchors and tags."

# libyaml recurses at each opening of a list and overflows the stack after some 20,000.
_OPENS = re.compile(r"[\[{?-]")
_MAX_OPENS = 5_000
_MAX_DEPTH = 20
_MAX_BYTES = 1_000_000
_FENCE = "---"
_UNQUOTED_COLON = re.compile(r"""([A-Za-z][\w-]*:[ \t]+)([^\s"'\[{|>&*!%#@`].*:(?:\s.*)?)$""")


class _Constructor(Protocol):
    """The method of PyYAML's loader that its type stubs leave partly untyped."""

    def construct_object(self, node: yaml.Node, /) -> object: ...


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The value in a YAML file, and the line number of each part of it."""

    path: Path
    value: object
    lines: dict[YamlLocation, int]

    def line(self, location: YamlLocation) -> int:
        """Return the line number of the value at the location, or of the nearest enclosing value."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)

    def error(self, location: YamlLocation, what: str, hint: str) -> ConfigError:
        """Return a ConfigError that names the file and the line of the value at the location."""
        return file_error(self.path, self.line(location), what, hint)


def parse_trusted(text: str) -> Any:
    """Return the value of YAML text of Newton itself: without limits, and without the lines of its parts."""
    return yaml.load(text, Loader=Loader)


def load_yaml(path: Path) -> YamlDocument:
    """Load a YAML file: mappings become dicts, lists become tuples. Raises ConfigError with file and line."""
    document = _parse(path, _read_text(path))
    if document.value is None:
        raise file_error(path, 1, "the file is empty.", "Add content to the file, or delete it.")
    return document


def load_front_matter(path: Path, *, within: Path | None = None) -> tuple[YamlDocument, str]:
    """Return the front matter (YAML between the first two lines `---`), and the text after it.

    Blank lines replace the front matter in the text, so that line numbers do not change. Raises ConfigError for invalid
    YAML, if one of the two lines is missing, and for a link out of the folder `within`.
    """
    lines = re.sub(r"\r\n?", "\n", _read_text(path, within=within)).split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE]
    if not fences or fences[0] != 0:
        hint = f"Start the file with a line {_FENCE}, then fields such as 'name: ...', then another line {_FENCE}."
        raise file_error(path, 1, "the file does not begin with front matter.", hint)
    if len(fences) == 1:
        raise file_error(path, 1, "the front matter has no end.", f"End the front matter with a line {_FENCE}.")
    end = fences[1]
    return _parse_front_matter(path, lines[1:end]), "\n".join([""] * (end + 1) + lines[end + 1 :])


def _parse_front_matter(path: Path, lines: Sequence[str]) -> YamlDocument:
    """Parse front matter. In invalid YAML, values that contain ": " are read as if they were in quotes."""
    try:
        return _parse(path, "\n".join(["", *lines]))
    except ConfigError as error:
        quoted = [_quote_value(line) for line in lines]
        if quoted == [*lines]:
            raise
        try:
            return _parse(path, "\n".join(["", *quoted]))
        except ConfigError:
            raise error from None


def _quote_value(line: str) -> str:
    match = _UNQUOTED_COLON.match(line)
    return f"{match[1]}{json.dumps(match[2].strip(), ensure_ascii=False)}" if match else line


def _parse(path: Path, text: str) -> YamlDocument:
    if len(_OPENS.findall(text)) > _MAX_OPENS:
        raise file_error(path, 1, "the file contains too many lists or mappings.", "Split the file.")
    walker = _YamlWalker(path, text)
    return YamlDocument(path, walker.document(), walker.lines)


def file_error(path: Path, line: int, what: str, hint: str) -> ConfigError:
    """Return a ConfigError that names a file and one of its lines, counted from 1."""
    return ConfigError(f"{path}:{line}: {what}", hint=hint)


def _read_text(path: Path, *, within: Path | None = None) -> str:
    """Return the text of a file. Raises ConfigError if it cannot be read, is too large, or is no plain text."""
    try:
        with open_regular(path, within=within) as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", hint="Replace it by a file that can be read, or remove it."
        ) from None
    if len(raw) > _MAX_BYTES:
        raise file_error(path, 1, f"the file is larger than {_MAX_BYTES:,} bytes.", "Split the file.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise file_error(path, line, "the text is not UTF-8.", "Save the file as UTF-8.") from None
    if bad := Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        raise file_error(path, line, f"the character {bad.group()!r} is not allowed.", "Remove the character.")
    return text


class _YamlWalker:
    """Converts the nodes of a YAML document to values, and records their lines.

    PyYAML's own constructor drops line numbers and accepts duplicate keys.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.lines: dict[YamlLocation, int] = {}
        self._seen: set[int] = set()
        self._loader = Loader(text)

    def document(self) -> object:
        try:
            node = self._loader.get_single_node()
            return None if node is None else self._value(node, ())
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from None
        finally:
            self._loader.dispose()

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> ConfigError:
        last = self.text.rstrip("\n").count("\n") + 1
        line = min(error.problem_mark.line + 1, last) if error.problem_mark else 1
        context = f" {error.context}" if error.context else ""
        start = error.context_mark.line + 1 if error.context_mark else line
        since = f" begun in line {start}" if start != line else ""
        return file_error(self.path, line, f"not valid YAML: {error.problem}{context}{since}.", f"Correct line {line}.")

    def _value(self, node: yaml.Node, location: YamlLocation) -> object:
        """Return the value of a node, and record the lines of its parts. Raises ConfigError if it is not allowed."""
        self.lines.setdefault(location, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise self._error_at(node, "an alias is not allowed.", _PLAIN_YAML_HINT)
        if len(location) > _MAX_DEPTH:
            raise self._error_at(node, "the value is nested too deeply.", "Use fewer levels of nesting.")
        self._seen.add(id(node))
        if node.tag not in _TAGS:
            raise self._error_at(node, f"the tag {node.tag} is not allowed.", _PLAIN_YAML_HINT)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            items = cast("list[yaml.Node]", node.value)
            return tuple(self._value(item, (*location, index)) for index, item in enumerate(items))
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, location: YamlLocation) -> dict[str, object]:
        mapping: dict[str, object] = {}
        for key_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            key = self._key(key_node)
            if key in mapping:
                what = f"{key!r} is repeated; the first is in line {self.lines[*location, key]}."
                raise self._error_at(key_node, what, "Keep one of the two fields.")
            self.lines[*location, key] = key_node.start_mark.line + 1
            mapping[key] = self._value(value_node, (*location, key))
        return mapping

    def _key(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode) and node.tag == _TEXT:
            return cast("str", node.value)
        raise self._error_at(node, "the key is not text.", "If the key is the name of a field, put it in quotes.")

    def _scalar(self, node: yaml.Node) -> object:
        if node.tag == _TEXT:
            return node.value
        try:
            return cast("_Constructor", self._loader).construct_object(node)
        except ValueError:
            what = f"{node.value!r} is neither text nor a number."
            raise self._error_at(node, what, "If the value is text, put it in quotes.") from None

    def _error_at(self, node: yaml.Node, what: str, hint: str) -> ConfigError:
        return file_error(self.path, node.start_mark.line + 1, what, hint)


ExpressionCheck = Callable[[str], None]  # raises InputError for an invalid CEL expression


class StrictModel(BaseModel):
    """Base class of models for files that users write: frozen and strictly typed; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class NamedModel(StrictModel):
    """A model that has a file of its own. Its name is the name of the file."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_-]*$",
        max_length=60,
        description="The name: that of the file without `.yaml`, in lower case.",
    )

    @functools.cached_property
    def version_hash(self) -> str:
        """Return the first eight hexadecimal digits of the SHA-256 hash of the content."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]


C = TypeVar("C", bound=StrictModel)
M = TypeVar("M", bound=NamedModel)
T = TypeVar("T")

# Messages for the author of a YAML file, in place of Pydantic's messages for programmers.
MIN_NAME_SIMILARITY = 0.6  # from 0 to 1, of the name that an error suggests
_MESSAGES = {
    "model_type": "should be a mapping of fields",
    "tuple_type": "should be a list",
    "string_type": "should be a text",
    "float_type": "should be a number",
    "missing": "is missing",
}


def read_folder(folder: Path, model: type[M], context: Mapping[str, object] | None = None) -> dict[str, M]:
    """Read all YAML files of a folder; return the models by name. `context` is passed to pydantic's validators.

    Raises ConfigError for the first mistake.
    """
    return {path.stem: build_model(load_yaml(path), model, context) for path in list_files(folder)}


def list_files(folder: Path, *, exclude: str = "") -> list[Path]:
    """Return the paths of the YAML files in the folder, without the file named `exclude`."""
    return [path for path in list_folder(folder) if _is_yaml(path) and path.name != exclude]


def list_folder(folder: Path) -> list[Path]:
    """Return the paths in the folder, sorted by name. Raises ConfigError if the folder does not exist."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder.", hint="Create the folder, or choose another one.")
    return sorted(folder.iterdir())


def build_model(document: YamlDocument, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """Convert a YAML document to a model. Raises ConfigError if it is invalid, or not named as its file."""
    return check_name(document, validate_model(document, model, context), document.path.stem, "file")


def check_name(document: YamlDocument, item: M, expected: str, noun: str) -> M:
    """Return the item if its name is `expected`, that of its file or folder (`noun`).

    Raises ConfigError if it is not.
    """
    if item.name != expected:
        what = f"the {_model_label(type(item))} has the name {item.name!r}, but its {noun} has the name {expected!r}."
        raise document.error(("name",), what, f"Change the name in the file, or rename the {noun}.")
    return item


def check_expression(expression: str, check: ExpressionCheck) -> str:
    """Return the expression if `check` accepts it; otherwise raise ValueError, as pydantic expects of a validator."""
    try:
        check(expression)
    except InputError as error:
        raise ValueError(f"is invalid: {error.what.rstrip('.')} ({error.hint.rstrip('.')})") from None
    return expression


def validate_model(document: YamlDocument, model: type[C], context: Mapping[str, object] | None = None) -> C:
    """Convert the value of a YAML document to a model. Raises ConfigError with the line of the first mistake."""
    try:
        return model.model_validate(document.value, context=dict(context or {}))
    except ValidationError as error:
        raise _to_config_error(document, model, error) from None


def get_by_name(items: Mapping[str, T], name: str, noun: str) -> T:
    """Return the item with this name. Raises NotFoundError for an unknown one, with the nearest name and all others.

    `noun` names the kind of item in the message.
    """
    if name in items:
        return items[name]
    known = f"The {noun}s are: {', '.join(sorted(items))}."
    raise NotFoundError(f"There is no {noun} {name!r}.", hint=f"{did_you_mean(name, items)} {known}".strip())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question "Did you mean ...?" with the most similar known name; an empty string if none is similar."""
    names = {one.lower(): one for one in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=MIN_NAME_SIMILARITY)
    return f"Did you mean {names[near[0]]!r}?" if near else ""


def _is_yaml(path: Path) -> bool:
    if path.name.startswith(".") or path.suffix not in {".yaml", ".yml"}:
        return False
    if path.suffix == ".yml":
        raise ConfigError(f"{path} ends in .yml, and only .yaml is read.", hint="Rename the file.")
    return True


def _to_config_error(document: YamlDocument, model: type[BaseModel], error: ValidationError) -> ConfigError:
    # A misspelt field is also reported as missing; prefer the misspelling.
    first = min(error.errors(), key=lambda e: (e["type"] == "missing", document.line(e["loc"])))
    location = first["loc"]
    if first["type"] == "extra_forbidden":
        return _unknown_field_error(document, model, location)
    what = f"{_format_location(location) or _model_label(model)} {_describe_error(first)}."
    return document.error(
        location, what, _find_description(model, location) or f"Correct line {document.line(location)}."
    )


def _unknown_field_error(document: YamlDocument, model: type[BaseModel], location: YamlLocation) -> ConfigError:
    owner, name = _model_at(model, location[:-1]), str(location[-1])
    what = f"{name!r} is not a field of {_format_location(location[:-1]) or 'a ' + _model_label(model)}."
    known = ", ".join(owner.model_fields)
    return document.error(location, what, did_you_mean(name, owner.model_fields) or f"The fields are {known}.")


def _describe_error(error: ErrorDetails) -> str:
    if error["type"] in _MESSAGES:
        return _MESSAGES[error["type"]]
    message, value = error["msg"].replace(" after validation", ""), error["input"]
    for subject in ("Input ", "String ", "Tuple ", "Value error, "):
        message = message.removeprefix(subject)
    if error["type"] == "string_too_long":
        return f"{message}, not {len(value)}"
    is_complete = error["type"] == "value_error" or not isinstance(value, str | int | float)
    return message if is_complete else f"{message}, not {value!r}"


def _format_location(location: YamlLocation) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _model_label(model: type[BaseModel]) -> str:
    return str(getattr(model, "label", None) or model.__name__.lower())


def _find_description(model: type[BaseModel], location: YamlLocation) -> str:
    """Return the description of the field at the location, or of the nearest enclosing field that has one."""
    while location:
        name, location = location[-1], location[:-1]
        field = _model_at(model, location).model_fields.get(name) if isinstance(name, str) else None
        if field and field.description:
            return field.description
    return ""


def _model_at(model: type[BaseModel], location: YamlLocation) -> type[BaseModel]:
    """Return the model of the value at the location, or of the nearest enclosing value."""
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            annotation = model.model_fields[part].annotation
            types = [one for one in (annotation, *get_args(annotation)) if isinstance(one, type)]
            model = next((one for one in types if issubclass(one, BaseModel)), model)
    return model

"""Loading of YAML files into frozen models. Errors state the file, the line and a remedy."""

import difflib
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from newton.content.yaml_source import YamlDocument, YamlLocation, load_yaml
from newton.errors import ConfigError, InputError, NotFoundError

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
    """Read all YAML files of a folder; return the models by name. `context` is passed to the validators.

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
    """Convert a YAML document to a model. Raises ConfigError if the document is invalid or named unlike its file."""
    return check_name(document, validate_model(document, model, context), document.path.stem, "file")


def check_name(document: YamlDocument, item: M, expected: str, noun: str) -> M:
    """Return the item if its name is `expected`, the name of its file or folder (`noun`); otherwise raise
    ConfigError.
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
    """Return the item with this name. Raises NotFoundError, which suggests the nearest name and lists all.

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

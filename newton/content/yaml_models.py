"""Load YAML files into frozen models; each error names the file, the line and the remedy."""

import difflib
import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from newton.content.yaml_source import YamlDocument, YamlLocation, load_yaml
from newton.errors import ConfigError, NotFoundError


class StrictModel(BaseModel):
    """Base of models that a user writes in a file: frozen, strictly typed, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class NamedModel(StrictModel):
    """The content of one file, named after the file."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60, description="The file's name, in lower case.")

    @functools.cached_property
    def version_hash(self) -> str:
        """Return the first eight hexadecimal digits of the SHA-256 of the content."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]


C = TypeVar("C", bound=StrictModel)
M = TypeVar("M", bound=NamedModel)

# Pydantic's messages address programmers; these address the author of a YAML file.
_MESSAGES = {
    "model_type": "should be a mapping of fields",
    "tuple_type": "should be a list",
    "string_type": "should be a text",
    "float_type": "should be a number",
    "missing": "is missing",
}


def read_folder(folder: Path, model: type[M], context: Mapping[str, object] | None = None) -> dict[str, M]:
    """Return each `*.yaml` of the folder by name. Raises ConfigError for the first mistake."""
    return {path.stem: read_model(path, model, context) for path in list_content_files(folder)}


def list_content_files(folder: Path, *, exclude: str = "") -> list[Path]:
    """Return the YAML files of the folder except the excluded name."""
    return [path for path in list_folder(folder) if _is_content(path) and path.name != exclude]


def list_folder(folder: Path) -> list[Path]:
    """Return the entries of the folder, sorted by name. Raises ConfigError when it does not exist."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder.", hint="Create it or name another.")
    return sorted(folder.iterdir())


def read_model(path: Path, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """Load the file as a model. `context` is passed to the model's validators."""
    return build_model(load_yaml(path), model, context)


def build_model(document: YamlDocument, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """Return the document as a model. Raises ConfigError when its name differs from the file's."""
    made, stem = validate_model(document, model, context), document.path.stem
    if made.name != stem:
        what = f"the {_model_label(model)} is named {made.name!r} but its file {stem!r}."
        raise document.error(("name",), what, "Rename one of them.")
    return made


def validate_model(document: YamlDocument, model: type[C], context: Mapping[str, object] | None = None) -> C:
    """Return the document's value as a model. Raises ConfigError with the line of its first mistake."""
    try:
        return model.model_validate(document.value, context=dict(context or {}))
    except ValidationError as error:
        raise _to_config_error(document, model, error) from None


def get_by_name(items: Mapping[str, M], name: str, noun: str) -> M:
    """Return the item of that name. Raises NotFoundError that suggests the nearest name and lists all."""
    if name in items:
        return items[name]
    known = f"Known: {', '.join(sorted(items))}."
    raise NotFoundError(f"There is no {noun} {name!r}.", hint=f"{did_you_mean(name, items)} {known}".strip())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name, or an empty string."""
    near = difflib.get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else ""


def _is_content(path: Path) -> bool:
    if path.name.startswith(".") or path.suffix not in {".yaml", ".yml"}:
        return False
    if path.suffix == ".yml":
        raise ConfigError(f"{path} ends in .yml.", hint="Only .yaml is read: rename it.")
    return True


def _to_config_error(document: YamlDocument, model: type[BaseModel], error: ValidationError) -> ConfigError:
    # A misspelt field is also a missing one; report the misspelling.
    first = min(error.errors(), key=lambda e: (e["type"] == "missing", document.line(e["loc"])))
    place = first["loc"]
    if first["type"] == "extra_forbidden":
        return _unknown_field_error(document, model, place)
    hint = _find_description(model, place) or "Mend that line."
    return document.error(place, f"{_format_location(place) or _model_label(model)} {_describe_error(first)}.", hint)


def _unknown_field_error(document: YamlDocument, model: type[BaseModel], location: YamlLocation) -> ConfigError:
    owner, name = _model_at(model, location[:-1]), str(location[-1])
    what = f"{name!r} is not a field of {_format_location(location[:-1]) or 'a ' + _model_label(model)}."
    known = ", ".join(owner.model_fields)
    return document.error(location, what, did_you_mean(name, owner.model_fields) or f"Its fields are {known}.")


def _describe_error(error: ErrorDetails) -> str:
    if error["type"] in _MESSAGES:
        return _MESSAGES[error["type"]]
    said = error["msg"].replace(" after validation", "")
    for subject in ("Input ", "String ", "Tuple ", "Value error, "):
        said = said.removeprefix(subject)
    given = error["input"]
    if error["type"] == "string_too_long":
        return f"{said}, not {len(given)}"
    tells = error["type"] == "value_error" or not isinstance(given, str | int | float)
    return said if tells else f"{said}, not {given!r}"


def _format_location(location: YamlLocation) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _model_label(model: type[BaseModel]) -> str:
    return str(getattr(model, "label", None) or model.__name__.lower())


def _find_description(model: type[BaseModel], location: YamlLocation) -> str:
    """Return the description of the field at that place, or of the nearest described parent."""
    while location:
        *around, name = location
        if isinstance(name, str):
            described = _model_at(model, tuple(around)).model_fields[name].description
            if described:
                return described
        location = tuple(around)
    return ""


def _model_at(model: type[BaseModel], location: YamlLocation) -> type[BaseModel]:
    """Return the model that defines the fields at that place."""
    for part in location:
        if isinstance(part, str):
            model = _find_nested_model(model.model_fields[part].annotation, model)
    return model


def _find_nested_model(annotation: object, default: type[BaseModel]) -> type[BaseModel]:
    for found in (annotation, *get_args(annotation)):
        if isinstance(found, type) and issubclass(found, BaseModel):
            return found
    return default

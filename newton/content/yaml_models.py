"""Turns YAML files into frozen models; every mistake names its file, its line and the way out."""

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
    """What a person writes in a file: frozen, strict about types, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class NamedModel(StrictModel):
    """A file's whole content; the file is called after it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60, description="The file's name, in lower case.")

    @functools.cached_property
    def version_hash(self) -> str:
        """Tells it from another one of the same name: eight letters that follow from all it says."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]


C = TypeVar("C", bound=StrictModel)
M = TypeVar("M", bound=NamedModel)

# Pydantic speaks to programmers; these are its words for what a person writes in YAML.
_MESSAGES = {
    "model_type": "should be a mapping of fields",
    "tuple_type": "should be a list",
    "string_type": "should be a text",
    "float_type": "should be a number",
    "missing": "is missing",
}


def read_folder(folder: Path, model: type[M], context: Mapping[str, object] | None = None) -> dict[str, M]:
    """Each `*.yaml` of the folder by its name, or ConfigError for the first mistake: all of them or none."""
    return {path.stem: read_model(path, model, context) for path in list_content_files(folder)}


def list_content_files(folder: Path, *, exclude: str = "") -> list[Path]:
    """The files of the folder that are to be read, but for the one of that name."""
    return [path for path in list_folder(folder) if _is_content(path) and path.name != exclude]


def list_folder(folder: Path) -> list[Path]:
    """What the folder holds, by name. Raises ConfigError when there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder.", hint="Make it or name another.")
    return sorted(folder.iterdir())


def read_model(path: Path, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """The file as a model. `context` reaches the model's validators."""
    return build_model(load_yaml(path), model, context)


def build_model(document: YamlDocument, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """The document as a model that is named as its file."""
    made, stem = validate_model(document, model, context), document.path.stem
    if made.name != stem:
        what = f"the {_model_label(model)} is named {made.name!r} but its file {stem!r}."
        raise document.error(("name",), what, "Rename one of them.")
    return made


def validate_model(document: YamlDocument, model: type[C], context: Mapping[str, object] | None = None) -> C:
    """The document's value as a model, or ConfigError with the line of its first mistake."""
    try:
        return model.model_validate(document.value, context=dict(context or {}))
    except ValidationError as error:
        raise _to_config_error(document, model, error) from None


def get_by_name(items: Mapping[str, M], name: str, noun: str) -> M:
    """The item of that name. Raises NotFoundError naming the nearest name and all of them."""
    if name in items:
        return items[name]
    known = f"Known: {', '.join(sorted(items))}."
    raise NotFoundError(f"There is no {noun} {name!r}.", hint=f"{did_you_mean(name, items)} {known}".strip())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question naming the nearest known name; empty when nothing is near."""
    near = difflib.get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else ""


def _is_content(path: Path) -> bool:
    if path.name.startswith(".") or path.suffix not in {".yaml", ".yml"}:
        return False
    if path.suffix == ".yml":
        raise ConfigError(f"{path} ends in .yml.", hint="Only .yaml is read: rename it.")
    return True


def _to_config_error(document: YamlDocument, model: type[BaseModel], error: ValidationError) -> ConfigError:
    # A misspelt field is also a missing one; the misspelling is the news.
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
    """What the field at that place is for, or the nearest described one around it."""
    while location:
        *around, name = location
        if isinstance(name, str):
            described = _model_at(model, tuple(around)).model_fields[name].description
            if described:
                return described
        location = tuple(around)
    return ""


def _model_at(model: type[BaseModel], location: YamlLocation) -> type[BaseModel]:
    """The model whose fields stand at that place."""
    for part in location:
        if isinstance(part, str):
            model = _find_nested_model(model.model_fields[part].annotation, model)
    return model


def _find_nested_model(annotation: object, default: type[BaseModel]) -> type[BaseModel]:
    for found in (annotation, *get_args(annotation)):
        if isinstance(found, type) and issubclass(found, BaseModel):
            return found
    return default

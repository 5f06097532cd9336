"""Turns YAML files into frozen models; every mistake names its file, its line and the way out."""

import difflib
import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from newton.content.marked import Document, Place, load
from newton.errors import ConfigError, NotFoundError


class Content(BaseModel):
    """What a person writes in a file: frozen, strict about types, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Named(Content):
    """A file's whole content; the file is called after it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60, description="The file's name, in lower case.")

    @functools.cached_property
    def edition(self) -> str:
        """Tells it from another one of the same name: eight letters that follow from all it says."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]


C = TypeVar("C", bound=Content)
M = TypeVar("M", bound=Named)

# Pydantic speaks to programmers; these are its words for what a person writes in YAML.
_WORDS = {
    "model_type": "should be a mapping of fields",
    "tuple_type": "should be a list",
    "string_type": "should be a text",
    "float_type": "should be a number",
    "missing": "is missing",
}


def read_folder(folder: Path, model: type[M], context: Mapping[str, object] | None = None) -> dict[str, M]:
    """Each `*.yaml` of the folder by its name, or ConfigError for the first mistake: all of them or none."""
    return {path.stem: read(path, model, context) for path in contents(folder)}


def contents(folder: Path, *, apart: str = "") -> list[Path]:
    """The files of the folder that are to be read, but for the one of that name."""
    return [path for path in within(folder) if _is_content(path) and path.name != apart]


def within(folder: Path) -> list[Path]:
    """What the folder holds, by name. Raises ConfigError when there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder.", hint="Make it or name another.")
    return sorted(folder.iterdir())


def read(path: Path, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """The file as a model. `context` reaches the model's validators."""
    return built(load(path), model, context)


def built(document: Document, model: type[M], context: Mapping[str, object] | None = None) -> M:
    """The document as a model that is named as its file."""
    made, stem = checked(document, model, context), document.path.stem
    if made.name != stem:
        what = f"the {_noun(model)} is named {made.name!r} but its file {stem!r}."
        raise document.error(("name",), what, "Rename one of them.")
    return made


def checked(document: Document, model: type[C], context: Mapping[str, object] | None = None) -> C:
    """The document's value as a model, or ConfigError with the line of its first mistake."""
    try:
        return model.model_validate(document.value, context=dict(context or {}))
    except ValidationError as error:
        raise _explained(document, model, error) from None


def pick(items: Mapping[str, M], name: str, noun: str) -> M:
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


def _explained(document: Document, model: type[BaseModel], error: ValidationError) -> ConfigError:
    # A misspelt field is also a missing one; the misspelling is the news.
    first = min(error.errors(), key=lambda e: (e["type"] == "missing", document.line(e["loc"])))
    place = first["loc"]
    if first["type"] == "extra_forbidden":
        return _unknown_field(document, model, place)
    hint = _description(model, place) or "Mend that line."
    return document.error(place, f"{_shown(place) or _noun(model)} {_complaint(first)}.", hint)


def _unknown_field(document: Document, model: type[BaseModel], place: Place) -> ConfigError:
    owner, name = _model_at(model, place[:-1]), str(place[-1])
    what = f"{name!r} is not a field of {_shown(place[:-1]) or 'a ' + _noun(model)}."
    known = ", ".join(owner.model_fields)
    return document.error(place, what, did_you_mean(name, owner.model_fields) or f"Its fields are {known}.")


def _complaint(error: ErrorDetails) -> str:
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    said = error["msg"].replace(" after validation", "")
    for subject in ("Input ", "String ", "Tuple ", "Value error, "):
        said = said.removeprefix(subject)
    given = error["input"]
    if error["type"] == "string_too_long":
        return f"{said}, not {len(given)}"
    tells = error["type"] == "value_error" or not isinstance(given, str | int | float)
    return said if tells else f"{said}, not {given!r}"


def _shown(place: Place) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _noun(model: type[BaseModel]) -> str:
    return model.__name__.lower()


def _description(model: type[BaseModel], place: Place) -> str:
    """What the field at that place is for, or the nearest described one around it."""
    while place:
        *around, name = place
        if isinstance(name, str):
            described = _model_at(model, tuple(around)).model_fields[name].description
            if described:
                return described
        place = tuple(around)
    return ""


def _model_at(model: type[BaseModel], place: Place) -> type[BaseModel]:
    """The model whose fields stand at that place."""
    for part in place:
        if isinstance(part, str):
            model = _nested(model.model_fields[part].annotation, model)
    return model


def _nested(annotation: object, otherwise: type[BaseModel]) -> type[BaseModel]:
    for found in (annotation, *get_args(annotation)):
        if isinstance(found, type) and issubclass(found, BaseModel):
            return found
    return otherwise

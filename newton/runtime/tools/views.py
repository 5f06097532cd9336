"""The base of the JSON models of HTTP responses and of the chat."""

from typing import Self

from pydantic import BaseModel, ConfigDict


class ViewModel(BaseModel):
    """The base class of the models of the chat, and of HTTP response bodies."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def from_source(cls, source: object, **fields: object) -> Self:
        """Return a model with `fields`.

        All other fields are copied from the attributes of `source` with the same names.
        """
        names = (name for name in cls.model_fields if name not in fields and hasattr(source, name))
        return cls.model_validate({name: getattr(source, name) for name in names} | fields)

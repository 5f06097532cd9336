from collections.abc import Callable, Sequence
from typing import BinaryIO

class Result:
    value: str
    messages: Sequence[object]

def convert_to_html(
    fileobj: BinaryIO,
    *,
    style_map: str | None = ...,
    convert_image: Callable[[object], Sequence[object]] | None = ...,
) -> Result: ...

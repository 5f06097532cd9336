"""What Newton uses of it."""

from collections.abc import Sequence

class E5:
    def __init__(self, *, num_threads: int = ...) -> None: ...
    def query(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...

"""The part of google-re2 that Newton uses; the package has no types of its own."""

# The package's own name.
class error(Exception): ...  # noqa: N801, N818

class Options:
    case_sensitive: bool
    max_mem: int
    log_errors: bool

class Match:
    def group(self) -> str: ...
    def start(self) -> int: ...
    def span(self) -> tuple[int, int]: ...

class Pattern:
    def search(self, text: str | bytes, pos: int = 0) -> Match | None: ...
    def findall(self, text: str) -> list[str]: ...

class Set:
    @classmethod
    def SearchSet(cls) -> Set: ...  # noqa: N802
    def Add(self, pattern: str) -> int: ...  # noqa: N802
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str | bytes) -> list[int] | None: ...  # noqa: N802

def escape(pattern: str) -> str: ...
def compile(pattern: str | bytes, options: Options | None = None) -> Pattern: ...

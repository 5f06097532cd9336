from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int
    def add_session_config_entry(self, key: str, value: str) -> None: ...

class RunOptions:
    def add_run_config_entry(self, key: str, value: str) -> None: ...

class NodeArg:
    name: str

class InferenceSession:
    def __init__(self, path: str, sess_options: SessionOptions, *, providers: Sequence[str]) -> None: ...
    def get_inputs(self) -> Sequence[NodeArg]: ...
    def run(
        self, outputs: None, inputs: Mapping[str, NDArray[Any]], options: RunOptions | None = None
    ) -> Sequence[NDArray[Any]]: ...

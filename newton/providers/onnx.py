"""ONNX Runtime with its telemetry disabled. All other modules must import it from here."""

from importlib import import_module

from newton.environment import quieten_libraries

quieten_libraries()

import onnxruntime as ort  # noqa: E402, TID251 (it reads the environment when it is imported)

_state = import_module("onnxruntime.capi.onnxruntime_pybind11_state")

# What a session raises whose model cannot be loaded; these exceptions have no base class of their own.
LOAD_ERRORS: tuple[type[Exception], ...] = (
    *(_state.Fail, _state.InvalidArgument, _state.InvalidGraph, _state.InvalidProtobuf, _state.NoModel),
    *(_state.NoSuchFile, _state.NotImplemented, _state.RuntimeException),
)

# Without this, the memory arena of a session keeps the most that a batch ever took: 270 MiB after one of long texts.
RUN_OPTIONS = ort.RunOptions()
RUN_OPTIONS.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

__all__ = ["LOAD_ERRORS", "RUN_OPTIONS", "ort"]

"""ONNX Runtime. Import it only from here: this module disables its telemetry first."""

from newton.environment import quieten_libraries

quieten_libraries()

import onnxruntime as ort  # noqa: E402, TID251 (it reads the environment when it is imported)

__all__ = ["ort"]

"""ONNX Runtime, imported only here, after its telemetry is disabled."""

from newton.settings import quieten_libraries

quieten_libraries()

import onnxruntime as ort  # noqa: E402, TID251 (it reads the environment as it is loaded)

__all__ = ["ort"]

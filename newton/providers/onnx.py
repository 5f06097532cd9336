"""ONNX Runtime with its telemetry disabled. All other modules must import it from here."""

from newton.environment import quieten_libraries

quieten_libraries()

import onnxruntime as ort  # noqa: E402, TID251 (it reads the environment when it is imported)

__all__ = ["ort"]

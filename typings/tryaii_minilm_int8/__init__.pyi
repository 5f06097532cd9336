from pathlib import Path

SHA256: str
SIZE_BYTES: int

def model_path() -> Path: ...

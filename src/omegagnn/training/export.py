"""Trained networks as programs that run without this package: torch's ``.pt2`` and ONNX, checked against the original.

A program holds one member of a run. It takes what `program_inputs` makes of a data set, all sizes but that of the features free:

=========== ==================== ===========================================================================================
``x``       ``[nodes, f]``       features, prepared as the run's configuration says (rows scaled where it does)
``rowptr``  ``[nodes + 1]``      where the row of each node (the edges it receives) begins, int64
``col``     ``[entries]``        the sender of each entry, int64
``weight``  ``[entries]``        the entries of S, where the network uses any: it is normalised beforehand
``ptr``     ``[graphs + 1]``     where each graph begins, where whole graphs are classified, int64
=========== ==================== ===========================================================================================

and returns ``logits``, ``[nodes or graphs, classes]``. The operators are taken apart into those of `ops.reference`, so the
program needs no kernel of ours, is a good deal slower, and holds a message for each entry and channel.
"""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from omegagnn import __version__
from omegagnn.data.dataset import Dataset
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.files import write_bytes
from omegagnn.graph import Graph
from omegagnn.nn.model import OmegaNet
from omegagnn.ops import SparseFeatures, reference
from omegagnn.ops.registry import kernels
from omegagnn.training.batch import DTYPES
from omegagnn.training.prediction import CPU, Predictor
from omegagnn.training.tasks import TrainingTask

Inputs = dict[str, Tensor]

KINDS = {".pt2": "torch.export", ".onnx": "ONNX"}
# Largest difference to the original, as a part of its largest output (at least 1): another order of summation, no more.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


class Program(nn.Module):
    """A network as a function of plain tensors."""

    def __init__(self, net: nn.Module, is_operator: bool) -> None:
        """Take a network without a run axis, and whether the graph it is given is a finished operator S."""
        super().__init__()
        self.net, self.is_operator = net, is_operator

    def forward(
        self, x: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, ptr: Tensor | None = None
    ) -> Tensor:
        """Return the logits of nodes, or of the graphs that begin at `ptr`."""
        graph = Graph(rowptr, col, weight, is_operator=self.is_operator)
        # What only gradients or checks would ask for, and would have to look at the data to find.
        order = torch.arange(col.size(0), device=col.device)
        graph._cache.update(transposed=graph, order=order, loops=graph)
        if ptr is None:
            return self.net(x, graph)
        return self.net(x, graph, batch=reference.receivers(ptr, x.size(0)), num_graphs=ptr.size(0) - 1)


def structure_of(net: Any, graph: Graph) -> Graph:
    """Return the graph as the layers of a network use it: S, or the edges that are attended over."""
    return net.operator(graph, graph.num_nodes) if isinstance(net, OmegaNet) else net.structure(graph)


def program_inputs(net: nn.Module, task: TrainingTask) -> Inputs:
    """Return what a program takes, from a data set as a run prepares it (`Predictor.working`)."""
    x = task.features.to_dense() if isinstance(task.features, SparseFeatures) else task.features
    inputs = _graph_inputs(structure_of(net, task.graph), x)
    if task.dataset.task == "graph":
        assert task.dataset.ptr is not None
        inputs["ptr"] = task.dataset.ptr.long()
    return inputs


def _graph_inputs(graph: Graph, x: Tensor) -> Inputs:
    inputs = {"x": x, "rowptr": graph.rowptr.long(), "col": graph.col.long()}
    return inputs if graph.weight is None else {**inputs, "weight": graph.weight.detach().to(x.dtype)}


@dataclass(frozen=True)
class Exported:
    """A program in its file: what it is called, what it takes, and how far its outputs are from the original's.

    `differences` are the largest absolute differences of the logits, by what they were compared on.
    """

    path: Path
    kind: str
    inputs: dict[str, list[str | int]]
    dtype: str
    bytes: int
    differences: dict[str, float]


def export_member(predictor: Predictor, path: Path, member: int, dataset: Dataset | None = None) -> Exported:
    """Write one member as a program, once its outputs are those of the original on made graphs and on `dataset`.

    Args:
        predictor: the run.
        path: file to write; its ending says whether it is ``.pt2`` or ``.onnx``.
        member: which member.
        dataset: data that fits, to compare on.
    """
    if path.suffix.lower() not in KINDS:
        raise WrongUse(f"{path.name} is no name for a program: end it in {' or '.join(KINDS)}.")
    kind = KINDS[path.suffix.lower()]
    predictor = _at_full_precision(predictor)
    net = predictor.single(member)
    dtype, task = DTYPES[predictor.config.training.precision], predictor.signature.task
    made = [
        _made_inputs(net, predictor.signature.features, task, dtype, *sizes) for sizes in ((12, 30, 3), (23, 61, 5))
    ]
    program = Program(net, is_operator=bool(made[0][1].is_operator)).eval()
    facts = _facts(predictor, member, made[0][0])
    with _quiet(), _explained(net, kind):
        traced = _traced(program, made[0][0])
        content = _to_onnx(traced, made[0][0], facts) if kind == "ONNX" else _to_pt2(traced, facts)
        run = _runner(content, kind)
    differences = {}
    with torch.no_grad():
        for inputs, graph in made:
            name = f"a made graph of {graph.num_nodes} nodes"
            differences[name] = _compare(run, inputs, program(**inputs), kind, name)
        if dataset is not None:
            with predictor.working(dataset, CPU) as prepared:
                inputs = program_inputs(net, prepared)
                original = predictor.outputs(prepared, member, None, CPU)[:, 0]
            _check_names(inputs, made[0][0], dataset.name)
            differences[dataset.name] = _compare(run, inputs, original, kind, dataset.name)
    write_bytes(path, content)
    return Exported(path, kind, facts["inputs"], str(dtype).removeprefix("torch."), len(content), differences)


def _at_full_precision(predictor: Predictor) -> Predictor:
    """Return the predictor without the shortcuts of half precision and of TF32, which a program does not take."""
    if predictor.config.training.precision in ("float32", "float64"):
        return predictor
    return replace(predictor, config=predictor.config.with_values({"training.precision": "float32"}))


def _made_inputs(
    net: nn.Module, features: int, task: str, dtype: torch.dtype, nodes: int, edges: int, graphs: int
) -> tuple[Inputs, Graph]:
    """Return drawn features on a drawn undirected graph (or several), and the graph as the network uses it."""
    draws = torch.Generator().manual_seed(nodes)
    blocks = torch.linspace(0, nodes, graphs + 1).long() if task == "graph" else torch.tensor([0, nodes])
    which = torch.randint(0, blocks.numel() - 1, (edges,), generator=draws)
    span = blocks.diff()[which]
    pairs = blocks[which] + (torch.rand(2, edges, generator=draws) * span).long()
    graph = structure_of(net, Graph.from_edge_index(pairs, nodes).to_undirected())
    inputs = _graph_inputs(graph, torch.rand(nodes, features, generator=draws, dtype=dtype))
    return ({**inputs, "ptr": blocks} if task == "graph" else inputs), graph


def _shapes(inputs: Inputs) -> dict[str, Any]:
    """Return which sizes are free."""
    nodes, entries, graphs = (torch.export.Dim(name, min=2) for name in ("nodes", "entries", "graphs"))
    free: dict[str, Any] = {"x": nodes, "rowptr": nodes + 1, "col": entries, "weight": entries, "ptr": graphs + 1}
    return {name: {0: free[name]} for name in inputs}


def _facts(predictor: Predictor, member: int, inputs: Inputs) -> dict[str, Any]:
    sizes = {
        "x": ["nodes", predictor.signature.features],
        "rowptr": ["nodes + 1"],
        "col": ["entries"],
        "weight": ["entries"],
        "ptr": ["graphs + 1"],
    }
    return {
        "omegagnn": __version__,
        "data": predictor.signature.name,
        "labels": list(predictor.signature.names_of_classes),
        "multilabel": predictor.signature.multilabel,
        "member": member,
        "rule": predictor.rule,
        "inputs": {name: sizes[name] for name in inputs},
        "row_normalize": predictor.config.data.normalizes_rows,
        "symmetrize": predictor.config.data.symmetrize,
    }


# ------------------------------------------------------------------------------------------------------- to a program


def _repeated(values: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Return ``values.repeat_interleave(repeats)`` of a vector, in operators that ONNX has."""
    starts = torch.zeros(output_size or 0, dtype=torch.int64, device=values.device)
    starts = torch.cat([starts, starts.new_zeros(1)])
    return values[starts.index_add(0, repeats.cumsum(0), torch.ones_like(repeats))[:-1].cumsum(0)]


def _traced(program: Program, inputs: Inputs) -> torch.export.ExportedProgram:
    meaning = {
        kernels.propagate.default: reference.propagate,
        kernels.attention.default: reference.attention,
        kernels.linear.default: reference.linear,
        torch.ops.aten.repeat_interleave.self_Tensor: _repeated,
    }
    with torch.no_grad():
        traced = torch.export.export(program, (), inputs, dynamic_shapes=_shapes(inputs))
        return traced.run_decompositions(meaning)


@contextmanager
def _explained(net: nn.Module, kind: str) -> Iterator[None]:
    """Turn what an exporter says of a network that it cannot take into one sentence."""
    try:
        yield
    except OmegaError:
        raise
    except Exception as error:
        first = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise OmegaError(
            f"{type(net).__name__} cannot be exported to {kind} ({first}): save it as a folder instead."
        ) from error


def _to_pt2(traced: torch.export.ExportedProgram, facts: dict[str, Any]) -> bytes:
    traced.example_inputs = None  # else the file would hold them, as a pickle
    file = io.BytesIO()
    torch.export.save(traced, file, extra_files={"omegagnn.json": json.dumps(facts, ensure_ascii=False)})
    return file.getvalue()


def _to_onnx(traced: torch.export.ExportedProgram, inputs: Inputs, facts: dict[str, Any]) -> bytes:
    _require_onnx()
    made = torch.onnx.export(
        traced,
        (),
        kwargs=inputs,
        dynamo=True,
        dynamic_shapes=_shapes(inputs),
        input_names=list(inputs),
        output_names=["logits"],
        verbose=False,
    )
    assert made is not None
    model: Any = made.model_proto
    for name, value in facts.items():
        model.metadata_props.add(key=f"omegagnn.{name}", value=json.dumps(value, ensure_ascii=False))
    return bytes(model.SerializeToString())


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise OmegaError(f"ONNX needs {error.name}: pip install 'omegagnn[onnx]', or write a .pt2 file.") from None


# ------------------------------------------------------------------------------------------------- against the original


def _runner(content: bytes, kind: str) -> Any:
    """Return the written program as a function of inputs: the very bytes of the file are run."""
    if kind == "ONNX":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return lambda inputs: torch.from_numpy(session.run(None, {k: v.numpy() for k, v in inputs.items()})[0])
    module = torch.export.load(io.BytesIO(content)).module()
    return lambda inputs: module(**inputs)


def _check_names(inputs: Inputs, expected: Inputs, name: str) -> None:
    if inputs.keys() != expected.keys():
        odd = next(iter(inputs.keys() ^ expected.keys()))
        raise OmegaError(
            f"{name} has edge weights that the network hands on as they are, which a program has no place for ({odd}): save the "
            "model as a folder instead."
        )


def _compare(run: Any, inputs: Inputs, original: Tensor, kind: str, name: str) -> float:
    found = run(inputs)
    difference = float((found - original).abs().max()) if original.numel() else 0.0
    allowed = TOLERANCE[original.dtype] * max(1.0, float(original.abs().max()) if original.numel() else 0.0)
    if found.shape != original.shape or not difference <= allowed:
        raise OmegaError(
            f"The {kind} program differs from the network by {difference:.3g} on {name}, where {allowed:.3g} is rounding: "
            "nothing was written; save the model as a folder, and report this."
        )
    return difference


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' talk about their own corners from the user."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


__all__ = ["Exported", "Program", "export_member", "program_inputs", "structure_of"]

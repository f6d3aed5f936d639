"""How far exported programs are from the networks they were made of: ``python benchmarks/export_check.py``.

Each network is trained for two epochs on the embedded CiteSeer and exported to torch and to ONNX; the largest differences of the
logits, on made graphs and on CiteSeer, go into results/exports.json.
"""

from __future__ import annotations

import json
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from omegagnn import fit
from omegagnn.data import load
from omegagnn.files import write_bytes
from omegagnn.training.export import export_member

RESULT = Path(__file__).resolve().parent.parent / "results" / "exports.json"
NETWORKS = {
    "omega-gcn, 2 layers": {"model__layers": 2},
    "omega-gcn, 16 layers": {"model__layers": 16},
    "omega-gat, 2 layers, 4 heads": {"model__name": "omega-gat", "model__heads": 4},
    "gcn, 2 layers": {"model__name": "gcn"},
    "gcnii, 8 layers": {"model__name": "gcnii", "model__layers": 8},
    "appnp": {"model__name": "appnp"},
}


def main() -> None:
    data, rows = load("citeseer"), []
    with tempfile.TemporaryDirectory() as folder:
        for name, values in NETWORKS.items():
            predictor = fit("citeseer", training__epochs=2, runs_dir=folder, **values).predictor
            for ending in (".pt2", ".onnx"):
                begun = time.perf_counter()
                made = export_member(predictor, Path(folder) / f"m{ending}", 0, data)
                seconds = round(time.perf_counter() - begun, 1)
                rows.append(
                    {"network": name, "form": made.kind, "bytes": made.bytes, "seconds": seconds, **made.differences}
                )
                print(rows[-1])
    packages = ("torch", "torch_geometric", "onnx", "onnxruntime", "onnxscript")
    content = {
        "command": "python benchmarks/export_check.py",
        "differences": "largest absolute difference of a logit, by the graph",
        "versions": {package: version(package) for package in packages},
        "rows": rows,
    }
    write_bytes(RESULT, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()

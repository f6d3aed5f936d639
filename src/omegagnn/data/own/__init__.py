"""A user's own graphs: read from tables, files and other libraries, coded by a schema, stored under a name.

>>> import pandas as pd
>>> nodes = pd.DataFrame({"id": ["a", "b", "c"], "size": [1.0, 2.0, 4.0], "kind": ["x", "y", "x"]})
>>> edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
>>> from_pandas(nodes, edges, label="kind").node_ids
('a', 'b', 'c')
"""

from __future__ import annotations

from omegagnn.data.own.arrays import from_scipy
from omegagnn.data.own.build import from_pandas, import_tables
from omegagnn.data.own.networks import from_networkx
from omegagnn.data.own.predictions import item_ids, prediction_table, write_predictions
from omegagnn.data.own.schema import Recipe, Schema
from omegagnn.data.own.store import check_name, load_own, own_names, read_source, store
from omegagnn.data.pyg import from_pyg

__all__ = [
    "Recipe",
    "Schema",
    "check_name",
    "from_networkx",
    "from_pandas",
    "from_pyg",
    "from_scipy",
    "import_tables",
    "item_ids",
    "load_own",
    "own_names",
    "prediction_table",
    "read_source",
    "store",
    "write_predictions",
]

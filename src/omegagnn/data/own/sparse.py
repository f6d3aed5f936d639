"""Features between SciPy and torch: sparse where that saves memory worth speaking of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

SPARSE_DENSITY, SPARSE_CELLS = 0.1, 100_000


def is_worth_sparse(filled: int, rows: int, columns: int) -> bool:
    """Whether so many filled cells are few enough, in a matrix large enough."""
    return rows * columns >= SPARSE_CELLS and filled <= SPARSE_DENSITY * rows * columns


def sparse_or_dense(matrix: sp.csr_array[Any] | npt.NDArray[np.float32]) -> Tensor:
    """Return features as torch has them: sparse CSR where under a tenth of many cells is filled, else dense."""
    rows, columns = int(matrix.shape[0]), int(matrix.shape[1])
    filled = matrix.nnz if isinstance(matrix, sp.csr_array) else int(np.count_nonzero(matrix))
    if is_worth_sparse(filled, rows, columns):
        return to_torch(sp.csr_array(matrix))
    dense = matrix.toarray() if isinstance(matrix, sp.csr_array) else matrix
    return torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32))


def to_torch(matrix: Any) -> Tensor:
    """Return a SciPy CSR array as a torch sparse CSR tensor of float32."""
    matrix.sum_duplicates()
    rowptr, col = torch.from_numpy(matrix.indptr.astype(np.int64)), torch.from_numpy(matrix.indices.astype(np.int64))
    return torch.sparse_csr_tensor(rowptr, col, torch.from_numpy(matrix.data.astype(np.float32)), matrix.shape)


def select_rows(features: Tensor, rows: npt.NDArray[np.int64]) -> Tensor:
    """Return some rows of dense or sparse CSR features, in the order given."""
    if features.layout != torch.sparse_csr:
        return features[torch.from_numpy(rows)]
    parts = (features.values().numpy(), features.col_indices().numpy(), features.crow_indices().numpy())
    return to_torch(sp.csr_array(parts, shape=(features.size(0), features.size(1)))[rows])

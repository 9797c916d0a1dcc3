"""Random sparse matrices, for tests of linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from laconic.training.convex import SparseRows


def matrix(documents: int = 60, width: int = 40, seed: int = 0) -> tuple[SparseRows, Any]:
    """A random sparse matrix, as ours and as SciPy's; its second row is empty."""
    rng = np.random.default_rng(seed)
    dense = rng.random((documents, width)) * (rng.random((documents, width)) < 0.3)
    dense[1] = 0
    sparse = csr_matrix(dense.astype(np.float32))
    part = (sparse.indices, sparse.data, np.diff(sparse.indptr).astype(np.int64))
    return SparseRows.stacked([tuple(map(torch.from_numpy, part))], width), sparse

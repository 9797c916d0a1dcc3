"""What symbols of a rulebook mean beyond their spelling: a learned vector for each."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.errors import InputError
from laconic.nn.config import ModelError


class Residuals(nn.Module):
    """Learned vectors of shared symbols, which a composer is given beside their two operands.

    `rows` of the rulebook's `symbols` have one; `learn` says which. They begin as random as the
    embeddings of terminals, so that symbols that are spelled alike can be told apart from the
    start. While training, a share `dropout` of them is left out of each batch, so that the composer
    learns to do without.

    >>> residuals = Residuals(symbols=3, rows=2, size=4)
    >>> residuals.learn(torch.tensor([True, False, True]))
    >>> residuals.table.data[:] = torch.tensor([[1.0], [2.0]])
    >>> residuals(torch.tensor([-1, 0, 1, 2]))[:, 0].tolist()
    [0.0, 2.0, 0.0, 4.0]
    """

    rows_of: Tensor
    """int32 [symbols + 1]: the row of each shared symbol, -1 if it has none; the last is -1."""

    def __init__(self, symbols: int, rows: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.scale = size**0.5  # The composer's states are larger than embeddings by so much.
        self.table = nn.Parameter(torch.randn(rows, size) / self.scale)
        self.register_buffer("rows_of", torch.full((symbols + 1,), -1, dtype=torch.int32))
        self.register_load_state_dict_post_hook(_check_rows)  # type: ignore[no-untyped-call]

    def learn(self, known: Tensor) -> None:
        """Give rows to those shared symbols, bool [symbols], that shall have vectors."""
        count, rows = int(known.sum()), len(self.table)
        if count != rows:
            raise InputError(f"{count} symbols are known, and there are {rows} rows")
        self.rows_of[:-1] = torch.where(known, known.cumsum(0) - 1, -1)

    def forward(self, shared: Tensor) -> Tensor:
        """Return float [M, size], given which shared symbol each node is, int [M], or -1."""
        nobody = len(self.rows_of) - 1
        places = torch.where((shared < 0) | (shared > nobody), nobody, shared)
        rows = self.rows_of.index_select(0, places).long()
        kept = F.dropout(
            self.table.new_full((len(self.table),), self.scale), self.dropout, self.training
        )
        weights = kept.index_select(0, rows.clamp(min=0)) * (rows >= 0)
        return self.table.index_select(0, rows.clamp(min=0)) * weights[:, None]


def _check_rows(residuals: Residuals, _: object) -> None:
    """Raise ModelError for rows that there are not: a file may say anything."""
    rows = residuals.rows_of
    if not rows.is_meta and (int(rows.min()) < -1 or int(rows.max()) >= len(residuals.table)):
        raise ModelError(f"residuals.rows_of is not within the {len(residuals.table)} rows")

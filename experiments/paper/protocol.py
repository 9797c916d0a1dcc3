"""Whether a result is of the row that the grid has now: rows of another protocol are run again."""

from __future__ import annotations

from pathlib import Path

from experiments.paper.grid import Row
from experiments.paper.results import Figures, find_row, rounded

__all__ = ["began_otherwise", "done", "same_protocol"]

# Names, machines and files: none of them changes what is learned. Seeds are compared elsewhere.
_NO_PROTOCOL = {
    *("preset", "seed", "device", "workers", "graphs", "compile", "minutes", "task"),
    *("checkpoint_minutes", "stream", "buffer", "trackers"),
}


def done(results: Path, row: Row) -> Figures | None:
    """Return the result of a row; None if it has none, or one of another protocol."""
    found = find_row(results, *row.key)
    return found if found is not None and same_protocol(row, found) else None


def same_protocol(row: Row, figures: Figures) -> bool:
    """Whether a result was trained as the row would be.

    A setting that came later was not there to differ. Rows of mlp that began otherwise are others.
    """
    wanted, found = rounded(row.config("cpu").to_json()), figures.get("config", {})
    named = (found.keys() & wanted.keys()) - _NO_PROTOCOL
    told = figures.get("protocol", {})
    cut = {"longest": row.group.longest, "few": row.group.few}
    return (
        all(found[name] == wanted[name] for name in named)
        and all(told.get(name, value) == value for name, value in cut.items())
        and not began_otherwise(figures)
    )


def began_otherwise(figures: Figures) -> bool:
    """Whether it is mlp whose weights began as PyTorch's layers do, not as in the paper's code.

    The paper's beginning and the record of choices came on the same day.
    """
    return figures["method"].startswith("mlp-") and "choices" not in figures.get("about", {})

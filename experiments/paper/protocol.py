"""Whether a result is of the row that the grid has now: rows of another protocol are run again."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from experiments.paper.grid import Row
from experiments.paper.results import Figures, find_row, rounded
from laconic.training.settings import TrainingConfig

__all__ = ["began_otherwise", "config_of", "done", "same_protocol"]

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

    Rows of mlp that began otherwise are others.
    """
    wanted = rounded(row.config("cpu").to_json())
    found = rounded(config_of(figures).to_json()) if "config" in figures else {}
    named = found.keys() - _NO_PROTOCOL
    told = figures.get("protocol", {})
    cut = {"longest": row.group.longest, "few": row.group.few}
    return (
        all(found[name] == wanted[name] for name in named)
        and all(told.get(name, value) == value for name, value in cut.items())
        and not began_otherwise(figures)
    )


def config_of(figures: Figures) -> TrainingConfig:
    """Return a result's settings, on a CPU: one that came later did what was done without it.

    A setting that is gone since then is left out.
    """
    known = {each.name for each in fields(TrainingConfig)}
    kept = {name: value for name, value in figures["config"].items() if name in known}
    return TrainingConfig.from_json({**kept, "device": "cpu"})


def began_otherwise(figures: Figures) -> bool:
    """Whether it is mlp whose weights began as PyTorch's layers do, not as in the paper's code.

    The paper's beginning and the record of choices came on the same day.
    """
    return figures["method"].startswith("mlp-") and "choices" not in figures.get("about", {})

"""Formats: files, URLs and tables to documents, a part of bounded size at a time, and back.

CSV, TSV, JSONL, Parquet, text (a line or a file each), FASTA, FASTQ, zip, WARC; plain or packed. A
format is one file here and one line of `registry`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laconic.formats.format import ReadError, ReadOptions, at_its_row
    from laconic.formats.reading import RawDocuments, read, read_table

__all__ = ["RawDocuments", "ReadError", "ReadOptions", "at_its_row", "read", "read_table"]


def __getattr__(name: str) -> Any:
    # The registry's names, which are in the help of commands, must not wait for pyarrow.
    if name in __all__:
        from laconic.formats import format, reading

        return getattr(reading if hasattr(reading, name) else format, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

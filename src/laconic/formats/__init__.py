"""Readers: files, URLs and tables to documents, a part of bounded size at a time.

CSV, TSV, JSONL, Parquet, text (a line or a file each), FASTA and FASTQ; plain or compressed.
"""

from laconic.formats.documents import Documents, read, read_table
from laconic.formats.model import Format, Part, ReadError, ReadOptions, Reject

__all__ = [
    "Documents",
    "Format",
    "Part",
    "ReadError",
    "ReadOptions",
    "Reject",
    "read",
    "read_table",
]

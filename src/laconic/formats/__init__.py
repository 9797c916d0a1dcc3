"""Readers: files, URLs and tables to documents, a part of bounded size at a time.

CSV, TSV, JSONL, Parquet, text (a line or a file each), FASTA and FASTQ; plain or compressed.
"""

from laconic.formats.documents import RawDocuments, read, read_table
from laconic.formats.model import Format, RawPart, ReadError, ReadOptions, Reject, at_its_row

__all__ = [
    "Format",
    "RawDocuments",
    "RawPart",
    "ReadError",
    "ReadOptions",
    "Reject",
    "at_its_row",
    "read",
    "read_table",
]

"""Sparse matrices to .npz files that scipy reads, block by block."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from laconic.files import whole

_COPIED = 1 << 22  # bytes copied at a time
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # as in every file, so that the same matrix gives the same bytes
_MOST_32 = 2**31 - 1


class Written(NamedTuple):
    """What was written."""

    rows: int
    columns: int
    entries: int


def write_matrix(
    blocks: Iterable[Any],
    columns: int,
    dtype: npt.DTypeLike,
    out: str | os.PathLike[str],
    compress: bool = False,
    replace: bool = True,
) -> Written:
    """Write blocks of rows (scipy's CSR) as one matrix, which scipy.sparse.load_npz reads.

    Memory stays at one block and 8 bytes per row, however many entries there are: these wait beside
    `out` in files without a name, so that the disk must hold them twice. `out` appears when it is
    whole. Of more than 2^31 - 1 entries, indices are int64. `compress` deflates.
    """
    dtype = np.dtype(dtype)
    ends = [np.zeros(1, np.int64)]
    rows = entries = 0
    with (
        whole(out, replace) as new,
        TemporaryFile(dir=new.parent) as indices,
        TemporaryFile(dir=new.parent) as data,
    ):
        for block in blocks:
            indices.write(np.ascontiguousarray(block.indices, np.int32).data)
            data.write(np.ascontiguousarray(block.data, dtype).data)
            ends.append(np.asarray(block.indptr[1:], np.int64) + entries)
            rows, entries = rows + block.shape[0], entries + block.nnz
        index = np.dtype(np.int64 if max(entries, columns) > _MOST_32 else np.int32)
        kind = ZIP_DEFLATED if compress else ZIP_STORED
        with ZipFile(new, "x", kind, compresslevel=1) as archive:
            _member(archive, "indices", index, (entries,), _read(indices, np.int32, index))
            pointers = (each.astype(index).tobytes() for each in ends)
            _member(archive, "indptr", index, (rows + 1,), pointers)
            for name, array in (
                ("format", np.array(b"csr")),
                ("shape", np.array((rows, columns), np.int64)),
            ):
                _member(archive, name, array.dtype, array.shape, [array.tobytes()])
            _member(archive, "data", dtype, (entries,), _read(data, dtype, dtype))
    return Written(rows, columns, entries)


def _read(file: IO[bytes], stored: npt.DTypeLike, wanted: np.dtype[Any]) -> Iterator[bytes]:
    file.seek(0)
    while part := file.read(_COPIED):
        yield np.frombuffer(part, stored).astype(wanted, copy=False).tobytes()


def _member(
    archive: ZipFile,
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    parts: Iterable[bytes],
) -> None:
    info = ZipInfo(f"{name}.npy", _LONG_AGO)
    info.compress_type = archive.compression
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(info, "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(part)

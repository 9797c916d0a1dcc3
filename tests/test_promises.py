"""What README and the docstrings promise, each promise with a test that can fail."""

from __future__ import annotations

import hashlib
import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laconic import Grammar, Grammars, compress, compress_many, samples

GOLDEN = {
    ("kjv", "bytes", "repair"): "84c888e319702a88",
    ("kjv", "bytes", "lz78"): "f0fc36031613534c",
    ("kjv", "bytes", "lzd"): "45915fdbdf0eed4d",
    ("bacteria", "dna", "repair"): "4da2c27c4860e241",
    ("bacteria", "dna", "lz78"): "64817fa578b6bc38",
    ("bacteria", "dna", "lzd"): "8a9c8b1151bdf425",
}


@pytest.mark.parametrize(("case", "digest"), GOLDEN.items(), ids=map(" ".join, GOLDEN))
def test_samples_give_the_same_grammars_everywhere(case: tuple[str, str, str], digest: str) -> None:
    sample, alphabet, codec = case
    test = samples.load(sample).test
    many = compress_many(test.documents, codec, alphabet=alphabet)  # type: ignore[arg-type]
    arrays = (many.rules, many.rule_offsets, many.sequence, many.sequence_offsets)
    whole = b"".join(np.ascontiguousarray(a, f"<i{a.itemsize}").tobytes() for a in arrays)
    assert hashlib.sha256(whole).hexdigest()[:16] == digest


def test_nothing_makes_an_array_writeable_again() -> None:
    made = compress("abababab")
    many = compress_many(["abab", "cdcd"])
    arrays = [made.rules, made.sequence, made.depths, made.occurrences, many.rules, many[0].rules]
    for array in [*arrays, many.sequence_offsets, Grammar(2, [[0, 1]], [2]).rules]:
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_concatenate_takes_grammars_and_batches() -> None:
    many = compress_many(["abab", "", "cdcdcd", "xyxyxyx"])
    assert Grammars.concatenate([many[:1], many[1:]]) == many
    assert Grammars.concatenate([many[0], many[1:3], many[3]]) == many
    with pytest.raises(TypeError, match="Grammar and Grammars only"):
        Grammars.concatenate([many, "ab"])  # type: ignore[list-item]


def test_a_mapped_file_is_bytes(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"to be or not to be")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert compress(mapped) == compress("to be or not to be")
        assert compress_many(["a", mapped])[1] == compress("to be or not to be")


def test_an_index_that_is_not_there_is_named() -> None:
    with pytest.raises(IndexError, match="document 5 of 2"):
        compress_many(["a", "b"])[5]


def test_an_option_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeError, match=r"no option is named 'mincount'; the options .* min_count"):
        compress("abab", mincount=3)  # type: ignore[call-arg]


INTERRUPTED = """
import os, signal, threading, numpy
from laconic import compress
text = numpy.random.default_rng(0).integers(0, 100, 40_000_000, dtype="u1")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    compress(text, {codec!r})
except KeyboardInterrupt:
    print("interrupted")
"""


CHANGED = """
import sys, tempfile, threading, numpy
from laconic import compress
a = numpy.zeros(1_000_000, "i4")
with tempfile.NamedTemporaryFile() as file:
    if sys.argv[1] == "memmap":
        file.truncate(a.nbytes)
        a = numpy.memmap(file.name, "i4", "r+")
    view = a.view() if sys.argv[1] == "view" else numpy.memmap(file.name, "i4", "r")
    view.flags.writeable, done = False, threading.Event()

    def change():
        while not done.wait(0.003):  # long enough for what is there to be checked
            a[::3] = 2**31 - 2
            a[:] = numpy.arange(len(a)) & 1

    changing = threading.Thread(target=change)
    changing.start()
    for codec in ("lzd", "lz78", "repair") * 8:
        try:
            compress(view, codec, alphabet_size=2)
        except ValueError:
            pass  # what it saw was no document
    done.set()
    changing.join()
"""


@pytest.mark.parametrize("kind", ["view", "memmap"])
def test_what_others_change_meanwhile_crashes_nothing(kind: str) -> None:
    """A read-only view says nothing of who may write to the memory behind it."""
    command = [sys.executable, "-c", CHANGED, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends itself SIGINT")
@pytest.mark.parametrize("codec", ["repair", "lzd", "lz78"])
def test_ctrl_c_stops_one_long_document(codec: str) -> None:
    code = INTERRUPTED.format(codec=codec)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\n", done.stderr

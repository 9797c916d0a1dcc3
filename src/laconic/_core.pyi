"""The compiled core (bindings/core.cpp). Arrays are C-contiguous; nothing here is public."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Symbols: TypeAlias = npt.NDArray[np.int32]
_Longs: TypeAlias = npt.NDArray[np.int64]
_Letters: TypeAlias = npt.NDArray[np.uint32]

CODECS: dict[str, tuple[str, ...]]

def compress_many(
    text: npt.NDArray[np.integer[Any]],
    offsets: _Longs,
    alphabet_size: int,
    codec: str,
    min_count: int,
    max_rules: int,
    max_expansion: int,
    letters_known: bool,
    threads: int,
) -> tuple[_Symbols, _Longs, _Symbols, _Longs]: ...
def check(alphabet_size: int, rules: _Symbols, sequence: _Symbols) -> None: ...
def check_many(
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
) -> None: ...
def expanded_lengths(alphabet_size: int, rules: _Symbols) -> _Longs: ...
def starts(alphabet_size: int, sequence: _Symbols, lengths: _Longs) -> _Longs: ...
def expanded_lengths_many(
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
) -> _Longs: ...
def pack_many(
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
    sort: bool,
) -> tuple[_Symbols, _Longs, _Symbols, _Symbols, _Symbols]: ...
def unpack_many(
    alphabet_size: int,
    letters: _Symbols,
    letter_offsets: _Longs,
    left: _Symbols,
    right: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
) -> tuple[_Symbols, _Symbols]: ...
def learn_compact(
    alphabet_size: int,
    letters: _Symbols,
    letter_offsets: _Longs,
    left: _Symbols,
    right: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
) -> npt.NDArray[np.uint16]: ...
def encode_compact(
    alphabet_size: int,
    model: npt.NDArray[np.uint16],
    letters: _Symbols,
    letter_offsets: _Longs,
    left: _Symbols,
    right: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
) -> tuple[npt.NDArray[np.uint8], _Longs]: ...
def decode_compact(
    alphabet_size: int,
    model: npt.NDArray[np.uint16],
    codes: npt.NDArray[np.uint8],
    offsets: _Longs,
) -> tuple[_Symbols, _Longs, _Symbols, _Symbols, _Longs, _Symbols, _Longs]: ...
def plant(
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
    merge: bool,
) -> tuple[_Symbols, _Longs, _Symbols, _Longs, npt.NDArray[np.uint64]]: ...
def ngrams_in_place(
    alphabet_size: int,
    children: _Symbols,
    sequence: _Symbols,
    offsets: _Longs,
    longest: int,
    buckets: int,
) -> tuple[_Symbols, npt.NDArray[np.int32], _Longs, npt.NDArray[np.int32]]: ...
def depths(alphabet_size: int, rules: _Symbols) -> npt.NDArray[np.int32]: ...
def occurrences(alphabet_size: int, rules: _Symbols, sequence: _Symbols) -> _Longs: ...
def expand(
    alphabet_size: int,
    rules: _Symbols,
    sequence: _Symbols,
    lengths: _Longs,
    starts: _Longs,
    begin: int,
    end: int,
) -> npt.NDArray[np.integer[Any]]: ...

HASHES: dict[str, str]

class LetterTable:
    def __init__(
        self,
        letters: _Letters,
        spaces: npt.NDArray[np.uint8],
        points: _Letters,
        complements: _Letters,
        blank: int,
    ) -> None: ...

class NgramCounter:
    def __init__(self, letters: LetterTable, low: int, high: int, keep: bool) -> None: ...
    def add(
        self,
        alphabet_size: int,
        rules: _Symbols,
        rule_offsets: _Longs,
        sequence: _Symbols,
        sequence_offsets: _Longs,
        threads: int,
    ) -> None: ...
    def finish(self, threads: int) -> tuple[_Longs, _Longs]: ...
    def spelled(self, ngrams: _Longs) -> tuple[_Letters, _Longs]: ...
    def matrix(self, columns: _Symbols, threads: int) -> tuple[_Longs, _Symbols, _Longs]: ...

def count_hashed(
    letters: LetterTable,
    low: int,
    high: int,
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
    columns: int,
    alternate_sign: bool,
    threads: int,
) -> tuple[_Longs, _Symbols, _Longs]: ...
def count_phrases(
    most: int,
    shortest: int,
    longest: int,
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
    columns: int,
    threads: int,
) -> tuple[_Longs, _Symbols, _Longs]: ...
def name_phrases(
    most: int,
    shortest: int,
    longest: int,
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
    columns: int,
    wanted: _Longs,
) -> tuple[_Symbols, _Longs, _Symbols, _Longs]: ...
def count_known(
    letters: LetterTable,
    low: int,
    high: int,
    alphabet_size: int,
    rules: _Symbols,
    rule_offsets: _Longs,
    sequence: _Symbols,
    sequence_offsets: _Longs,
    vocabulary: _Letters,
    offsets: _Longs,
    threads: int,
) -> tuple[_Longs, _Symbols, _Longs]: ...

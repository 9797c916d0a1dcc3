"""Codecs: documents to grammars, with Re-Pair, LZ78, LZD, deflate or none."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic.alphabet import BYTES_LIKE, Alphabet, Document, Symbols, as_alphabet
from laconic.arrays import alphabet_size_of, is_integer
from laconic.errors import GrammarError, InputError
from laconic.grammar import Grammar, Grammars, grammars_of
from laconic.rulebook import Rulebook
from laconic.threads import threads_of

CODECS: Mapping[str, Sequence[str]] = {**_core.CODECS, "deflate": ("level",)}
"""The options that each codec takes, by its name; core/codecs.cpp lists them, but deflate."""
if TYPE_CHECKING:
    CodecName: TypeAlias = str
else:
    CodecName = Literal[tuple(CODECS)]
_TEXT = (str, *BYTES_LIKE)
_NO_LIMIT = 0xFFFFFFFF
_WORTH_A_THREAD = 1 << 17  # bytes


class Options(TypedDict, total=False):
    """What a codec can be told; see Codec."""

    min_count: int
    max_rules: int | None
    max_expansion: int | None
    letters: Literal["known", "seen"]
    level: int


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec and its options.

    - "repair" replaces the most frequent pair of symbols again and again, while one occurs
      `min_count` times (2, or 3 for the paper's stated stopping rule), there are fewer than
      `max_rules` rules, and no rule stands for more than `max_expansion` terminals. Occurrences do
      not overlap; ties go to the pair that came to be first, of those to the leftmost.
    - "lz78" takes the longest phrase seen so far and one terminal more, as one rule.
    - "lzd" takes the longest known phrase twice, as one rule. Terminals are known from the start
      (`letters="known"`), or once they have been a phrase ("seen", the paper's example).
    - "deflate" is the parse of gzip and zip, by zlib at a `level` from 0 to 9: each copy is one
      symbol. What is compressed already is never inflated: see `from_gzip`.
    - "none" makes no rules: the sequence is the document.

    Under a rulebook its symbols are terminals to the codec: "none" is then byte pairs.

    Raises ValueError for a name or an option that does not exist or fit.

    >>> Codec("repair", min_count=3)
    Codec(name='repair', min_count=3, max_rules=None, max_expansion=None, letters='known', level=6)
    """

    name: CodecName = "repair"
    min_count: int = 2
    max_rules: int | None = None
    max_expansion: int | None = None
    letters: Literal["known", "seen"] = "known"
    level: int = 6

    def __post_init__(self) -> None:
        if self.name not in list(CODECS):  # a file may say anything, even what has no hash
            raise InputError(f"no codec is named {self.name!r}; the names are {', '.join(CODECS)}")
        for option, least in (("min_count", 2), ("max_rules", 0), ("max_expansion", 1)):
            value = getattr(self, option)
            if value is None and option != "min_count":
                continue
            if not is_integer(value) or value < least:
                raise InputError(f"{option} must be an integer of at least {least}, not {value!r}")
        if self.letters not in ("known", "seen"):
            raise InputError(f'letters must be "known" or "seen", not {self.letters!r}')
        if not is_integer(self.level) or not 0 <= self.level <= 9:
            raise InputError(f"level must be an integer from 0 to 9, not {self.level!r}")
        for field in fields(self)[1:]:
            foreign = field.name not in CODECS[self.name]
            if foreign and getattr(self, field.name) != field.default:
                raise InputError(f"{field.name} is not an option of {self.name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the codec as files name it: what came later is there for who needs it only."""
        return {k: v for k, v in asdict(self).items() if k != "level" or self.name == "deflate"}


def compress(
    document: Document | npt.ArrayLike,
    codec: CodecName | Codec = "repair",
    *,
    alphabet: str | Alphabet | None = None,
    alphabet_size: int | None = None,
    rulebook: Rulebook | None = None,
    **options: Unpack[Options],
) -> Grammar:
    """Return the grammar of one document: text or bytes, read with `alphabet`, or integers.

    The alphabet is bytes by default, or the rulebook's. Integers [n] are terminals as they are,
    0..alphabet_size-1 (by default, up to the largest). With a `rulebook` the document is parsed
    first, and the codec makes rules of what is left: to it, shared symbols are terminals.
    Options are those of Codec. O(n) time on real text. Raises AlphabetError for what the alphabet
    cannot hold, GrammarError for integers that are not terminals, ValueError for bad options.

    >>> grammar = compress("aababcababcabcd", codec="lzd", letters="seen")
    >>> grammar.sequence.tolist(), grammar.rules.tolist()
    ([97, 256, 257, 258, 259], [[97, 98], [256, 99], [256, 257], [257, 100]])
    >>> compress([0, 1, 0, 1], alphabet_size=2).sequence.tolist()
    [2, 2]
    >>> book = Rulebook.learn(["the hen", "then the hens"], 4, boundary="words")
    >>> compress("then the hen", "none", rulebook=book).sequence.tolist()
    [257, 110, 32, 257, 259]
    """
    codec = as_codec(codec, options)
    if isinstance(document, _TEXT):
        alphabet = _alphabet_of_text(alphabet, alphabet_size, rulebook)
        symbols, alphabet_size = alphabet.encode(document), alphabet.size
    else:
        symbols = _terminals(document)
        alphabet_size = _alphabet_size(symbols, alphabet_size, alphabet, rulebook)
    offsets = np.array([0, len(symbols)], np.int64)
    return compress_symbols(symbols, offsets, alphabet_size, codec, 1, rulebook)[0]


def compress_many(
    documents: Iterable[Document] | Iterable[npt.ArrayLike],
    codec: CodecName | Codec = "repair",
    *,
    alphabet: str | Alphabet | None = None,
    alphabet_size: int | None = None,
    rulebook: Rulebook | None = None,
    threads: int | None = None,
    compressed: bool = False,
    **options: Unpack[Options],
) -> Grammars:
    """Return the grammars of many documents, each compressed on its own, in the same order.

    Documents and options are those of `compress`. The work is spread over `threads` threads, by
    default one per processor; the result does not depend on it. Errors name the document.
    `compressed`: they are bytes as gzip or zlib left them, for codec "deflate", never inflated.

    >>> compress_many(["to be or not to be", "that is the question"], threads=2)
    <Grammars: 2 documents, 38 terminals as sequences of 28 symbols and 5 rules>
    """
    codec = as_codec(codec, options)
    threads = threads_of(threads)
    if isinstance(documents, _TEXT):
        raise TypeError("compress_many takes many documents; use compress for one, or pass [it]")
    parts: list[Any] = list(documents)
    if compressed:
        alphabet = _alphabet_of_text(alphabet, alphabet_size, None)
        check_compressed(codec, rulebook, alphabet)
        for i, part in enumerate(parts):
            if not isinstance(part, BYTES_LIKE):
                raise TypeError(f"document {i} must be compressed bytes, not {type(part).__name__}")
        data = np.frombuffer(b"".join(parts), np.uint8)
        offsets = np.cumsum([0, *(memoryview(part).nbytes for part in parts)], dtype=np.int64)
        return from_zipped(data, offsets, threads)
    if isinstance(parts[0], _TEXT) if parts else alphabet_size is None:
        alphabet = _alphabet_of_text(alphabet, alphabet_size, rulebook)
        symbols, offsets = alphabet.encode_many(parts)
        alphabet_size = alphabet.size
    else:
        for i, part in enumerate(parts):
            if isinstance(part, _TEXT):
                raise TypeError(f"document {i} is text, document 0 is integers; do not mix them")
        rows = [_terminals(part, i) for i, part in enumerate(parts)]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        symbols = np.concatenate([np.zeros(0, np.uint8), *rows])
        alphabet_size = _alphabet_size(symbols, alphabet_size, alphabet, rulebook)
    return compress_symbols(symbols, offsets, alphabet_size, codec, threads, rulebook)


def from_gzip(data: bytes | bytearray | memoryview) -> Grammar:
    """Return the grammar of a document that gzip or zlib compressed, without inflating it.

    Several gzip members are one document. Checksum and length are verified on the grammar. O(z log
    n) time and memory for z letters and copies that stand for n bytes. GrammarError says what is
    wrong with `data`, if anything is.

    >>> import gzip
    >>> from_gzip(gzip.compress(bytes(10**9)))
    <Grammar: 1,000,000,000 terminals as a sequence of 2 symbols and 48 rules>
    """
    return compress_many([data], "deflate", threads=1, compressed=True)[0]


def from_zipped(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], threads: int
) -> Grammars:
    """Return the grammars of documents that lie compressed: data[offsets[i]:offsets[i + 1]]."""
    return grammars_of(_core.from_zipped(data, offsets, 256, False, threads), None)


def check_compressed(codec: Codec, rulebook: Rulebook | None, alphabet: Alphabet) -> None:
    """Raise InputError where documents that lie compressed cannot become grammars as they are."""
    if codec.name != "deflate":
        raise InputError(f'compressed is for codec "deflate": {codec.name} would have to inflate')
    if rulebook is not None:
        raise InputError("a rulebook is for text: what is compressed has its rules already")
    if alphabet != Alphabet.bytes():
        raise InputError(
            f"what is compressed is bytes, not {alphabet!r}; leave the alphabet out, or inflate it"
        )


def compress_symbols(
    symbols: Symbols,
    offsets: npt.NDArray[np.int64],
    alphabet_size: int,
    codec: Codec,
    threads: int,
    rulebook: Rulebook | None = None,
) -> Grammars:
    """Return the grammars of symbols[offsets[i]:offsets[i + 1]], as compress_many does."""
    if codec.name == "deflate":
        if rulebook is not None or alphabet_size > 256:
            what = "a rulebook" if rulebook is not None else f"{alphabet_size} terminals"
            raise InputError(
                f"deflate is over bytes, at most 256 terminals, not over {what}; leave that out, or"
                " choose another codec"
            )
        if symbols.dtype != np.uint8:  # what does not fit is told as other codecs tell it
            plain = compress_symbols(symbols, offsets, alphabet_size, Codec("none"), threads)
            symbols = plain.sequence
        streams = _deflated(symbols.astype(np.uint8, copy=False), offsets, codec.level, threads)
        ends = np.cumsum([0, *map(len, streams)], dtype=np.int64)
        data = np.frombuffer(b"".join(streams), np.uint8)
        return grammars_of(_core.from_zipped(data, ends, alphabet_size, True, threads), None)
    made = _core.compress_many(
        symbols,
        offsets,
        alphabet_size,
        codec.name,
        min(codec.min_count, _NO_LIMIT),
        _NO_LIMIT if codec.max_rules is None else min(codec.max_rules, _NO_LIMIT),
        _NO_LIMIT if codec.max_expansion is None else min(codec.max_expansion, _NO_LIMIT),
        codec.letters == "known",
        None if rulebook is None else rulebook.core,
        threads,
    )
    return grammars_of(made, rulebook)


def _deflated(
    symbols: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], level: int, threads: int
) -> list[bytes]:
    """Return each document as a raw stream of zlib's, which lets other threads go on."""
    text, ends = symbols.data, offsets.tolist()

    def some(share: range) -> list[bytes]:
        return [zlib.compress(text[ends[i] : ends[i + 1]], level, -15) for i in share]

    count = len(ends) - 1
    shares = [range(count)[k::threads] for k in range(threads)]
    if threads == 1 or len(text) < _WORTH_A_THREAD:
        return some(range(count))
    with ThreadPoolExecutor(threads) as pool:
        made = list(pool.map(some, shares))
    return [made[i % threads][i // threads] for i in range(count)]


def as_codec(codec: CodecName | Codec, options: Options) -> Codec:
    """Return the codec of that name with these options, or `codec` itself if there are none."""
    for option in options:
        if option not in Options.__annotations__:
            names = ", ".join(sorted(Options.__annotations__))
            raise TypeError(f"no option is named {option!r}; the options of codecs are {names}")
    if isinstance(codec, Codec):
        if options:
            raise InputError(f"pass options to Codec, not beside it: {', '.join(sorted(options))}")
        return codec
    return Codec(codec, **options)


def _alphabet_of_text(
    alphabet: str | Alphabet | None, alphabet_size: int | None, rulebook: Rulebook | None
) -> Alphabet:
    if alphabet_size is not None:
        raise InputError("alphabet_size is for documents of integers; text is read with alphabet")
    return alphabet_of(alphabet, rulebook)


def alphabet_of(alphabet: str | Alphabet | None, rulebook: Rulebook | None) -> Alphabet:
    """Return the alphabet that is meant: by default the rulebook's, or bytes.

    InputError if a rulebook is over another, TypeError if it is none.
    """
    if rulebook is None:
        return as_alphabet("bytes" if alphabet is None else alphabet)
    if not isinstance(rulebook, Rulebook):
        raise TypeError(
            f"rulebook must be a Rulebook, not {rulebook!r:.100}; "
            "laconic.Rulebook.learn(documents) makes one"
        )
    if alphabet is not None and as_alphabet(alphabet) != rulebook.alphabet:
        raise InputError(
            f"the rulebook is over {rulebook.alphabet!r}, not {as_alphabet(alphabet)!r}; leave the "
            "alphabet out, or learn a rulebook over it"
        )
    return rulebook.alphabet


def _terminals(document: npt.ArrayLike, number: int | None = None) -> Symbols:
    what = "the document" if number is None else f"document {number}"
    try:
        array = np.asarray(document)
    except (ValueError, TypeError, OverflowError):
        raise TypeError(f"{what} must be text, bytes or one row of integers") from None
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size > 0):
        kind = type(document).__name__ if array.ndim == 0 else f"{array.dtype} {list(array.shape)}"
        cure = "; use compress_many for several documents" if array.dtype.kind in "US" else ""
        raise TypeError(f"{what} must be text, bytes or one row of integers, not {kind}{cure}")
    if array.size == 0:
        return np.zeros(0, np.uint8)
    if array.dtype in (np.uint8, np.uint16, np.int32):
        # Other threads could change what is not ours while the core, without the GIL, trusts it,
        # also what is read-only here: a view of what is not, a file in memory.
        return array.copy()
    if int(array.min()) < 0 or int(array.max()) >= 1 << 31:
        raise GrammarError("terminals must be from 0 to 2^31 - 2", document=number)
    return array.astype(np.int32)


def _alphabet_size(
    symbols: Symbols,
    alphabet_size: int | None,
    alphabet: str | Alphabet | None,
    rulebook: Rulebook | None,
) -> int:
    if alphabet not in (None, "bytes", Alphabet.bytes()):
        raise InputError("alphabet is for text; integers are terminals already")
    if rulebook is not None:
        if alphabet_size not in (None, rulebook.alphabet_size):
            raise InputError(
                f"the rulebook is over {rulebook.alphabet_size} terminals, not {alphabet_size}; "
                "leave alphabet_size out"
            )
        return rulebook.alphabet_size
    if alphabet_size is not None:
        return alphabet_size_of(alphabet_size)
    if symbols.size == 0:
        return 1
    largest = int(symbols.max())
    if largest >= (1 << 31) - 1:
        raise GrammarError(f"terminal {largest} leaves no room for rules")
    return max(1, largest + 1)

"""Deflate: grammars of what zlib compressed, against what zlib inflates; and what is refused."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import document

import laconic
from laconic import Codec, GrammarError, compress, compress_many, from_gzip

LEVELS = (0, 1, 6, 9)
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)


def deflated(text: bytes, level: int, wbits: int, strategy: int = 0) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, wbits, 8, strategy)
    return stream.compress(text) + stream.flush()


def copies(random: Random) -> bytes:
    """Bytes that are mostly copies of what came before, some of them runs."""
    text = bytearray(random.randrange(256) for _ in range(random.choice((1, 3, 300))))
    for _ in range(random.randrange(60)):
        distance, length = random.randint(1, len(text)), random.choice((3, 9, 258, 2000, 40_000))
        for _ in range(random.randint(1, length)):
            text.append(text[-distance])
        text += random.randbytes(random.randrange(3))
    return bytes(text)


def hard_text(seed: int) -> bytes:
    random = Random(seed)
    return copies(random) if seed % 2 else bytes(letter % 256 for letter in document(random))


SEEDS = st.integers(0, 1 << 32)
TEXTS = SEEDS.map(hard_text)


@given(TEXTS, st.sampled_from(LEVELS), st.sampled_from((15, 31)), st.sampled_from(STRATEGIES))
def test_expands_to_what_zlib_inflates(text: bytes, level: int, wbits: int, strategy: int) -> None:
    data = deflated(text, level, wbits, strategy)
    grammar = from_gzip(data)
    assert grammar.expand().tobytes() == zlib.decompress(data, wbits) == text
    assert grammar.reachable().all()
    height = grammar.depths.max(initial=0)
    assert height <= 2 * np.log2(max(2, len(text))) + 6


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(LEVELS), st.integers(0, 3))
def test_members_are_one_document(texts: list[bytes], level: int, zeros: int) -> None:
    data = b"".join(gzip.compress(text, level) for text in texts) + bytes(zeros)
    assert from_gzip(data).expand().tobytes() == gzip.decompress(data) == b"".join(texts)


@given(st.lists(TEXTS, max_size=5), st.sampled_from(LEVELS), st.integers(1, 3))
def test_text_becomes_the_grammar_of_its_stream(
    texts: list[bytes], level: int, threads: int
) -> None:
    made = compress_many(texts, "deflate", level=level, threads=threads)
    data = [zlib.compress(text, level) for text in texts]
    assert made == compress_many(data, "deflate", compressed=True, threads=threads)
    assert [grammar.expand().tobytes() for grammar in made] == texts


def test_one_example() -> None:
    # Copies: bra, and later what follows the second a; their sources are joined where they are.
    grammar = compress("abracadabra abracadabra", "deflate")
    assert grammar.sequence.tolist() == [ord("a"), 262, ord(" "), ord("a"), 262]
    b, r, a, c, d = b"bracd"
    rules = [[b, r], [256, a], [c, a], [d, a], [258, 259], [257, 260], [261, 257]]
    assert grammar.rules.tolist() == rules


def test_alphabets_of_text_are_as_for_other_codecs() -> None:
    assert compress("ACGTACGT" * 9, "deflate", alphabet="dna").text("dna") == "ACGTACGT" * 9
    assert compress([0, 1, 2] * 9, "deflate", alphabet_size=3).expand().tolist() == [0, 1, 2] * 9
    with pytest.raises(GrammarError, match="symbol 3 is outside the alphabet 0 … 2"):
        compress([0, 1, 3], "deflate", alphabet_size=3)
    with pytest.raises(GrammarError, match="symbol 3 is outside the alphabet 0 … 2"):
        compress(np.array([0, 1, 3], np.uint8), "deflate", alphabet_size=3)
    with pytest.raises(ValueError, match="at most 256 terminals, not over 300 terminals"):
        compress([0, 299], "deflate", alphabet_size=300)
    book = laconic.Rulebook.learn(["the hen", "then the hens"], rules=4)
    with pytest.raises(ValueError, match="not over a rulebook"):
        compress("then", "deflate", rulebook=book)


def test_options() -> None:
    assert Codec("deflate", level=9).to_dict()["level"] == 9
    assert "level" not in Codec("repair").to_dict()  # older Laconics read what needs none of it
    for level in (-1, 10, 1.5, "6"):
        with pytest.raises(ValueError, match="level must be an integer from 0 to 9"):
            Codec("deflate", level=level)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level is not an option of 'repair'"):
        Codec("repair", level=9)
    with pytest.raises(ValueError, match='compressed is for codec "deflate"'):
        compress_many([b""], "repair", compressed=True)
    with pytest.raises(TypeError, match="document 1 must be compressed bytes, not str"):
        compress_many([gzip.compress(b"a"), "b"], "deflate", compressed=True)  # type: ignore[list-item]


GOOD = gzip.compress(b"the hen and then the hens", mtime=0)
PLAIN = zlib.compress(b"the hen")
BAD: list[tuple[bytes, str]] = [
    (b"the hen", "neither by gzip nor by zlib; is it text?"),
    (b"", "neither by gzip nor by zlib"),
    (GOOD[:-1], "break off before their end; fetch them again"),
    (GOOD[:15], "break off before their end; fetch them again"),
    (GOOD[:5], "break off before their end; fetch them again"),
    (GOOD + b"x", "not gzip follows the compressed bytes: cut it off"),
    (GOOD + GOOD[:9], "break off before their end"),
    (GOOD[:-8] + struct.pack("<II", 1, 25), "its checksum is not what was compressed"),
    (GOOD[:-4] + struct.pack("<I", 24), "its length is not what was compressed"),
    (GOOD[:2] + b"\7" + GOOD[3:], "not by deflate"),
    (GOOD[:3] + b"\x80" + GOOD[4:], "of a kind that nobody has written yet"),
    (PLAIN[:-1] + b"\0", "its checksum is not what was compressed"),
    (PLAIN + b"x", "something follows the compressed bytes"),
    (PLAIN[:-2], "break off before their end"),
    (b"\x78\xbb\0\0\0\0", "with a dictionary that is not there"),
    (GOOD[:10] + b"\7" + GOOD[11:], r"are damaged \(a block of no kind\)"),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=[message[:24] for _, message in BAD])
def test_refused_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        from_gzip(data)
    with pytest.raises(GrammarError, match=f"document 1: .*{message}"):
        compress_many([GOOD, data], "deflate", compressed=True)


@given(TEXTS, SEEDS)
def test_damage_is_refused_or_harmless(text: bytes, seed: int) -> None:
    random = Random(seed)
    data = bytearray(gzip.compress(text, random.choice(LEVELS)))
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    try:
        expected = gzip.decompress(bytes(data))
    except (OSError, EOFError, zlib.error):
        with pytest.raises(GrammarError):
            from_gzip(bytes(data))
    else:
        if data[3] & 0xE0:  # Python does not look at flags that are reserved.
            with pytest.raises(GrammarError, match="of a kind that nobody has written yet"):
                from_gzip(bytes(data))
        else:
            assert from_gzip(bytes(data)).expand().tobytes() == expected


def test_header_fields_are_passed_over() -> None:
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\3\0abc" + b"name\0" + b"comment\0"
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    assert from_gzip(head + GOOD[10:]).text() == "the hen and then the hens"
    with pytest.raises(GrammarError, match="the header's checksum is wrong"):
        from_gzip(head[:-1] + bytes([head[-1] ^ 1]) + GOOD[10:])


def test_bombs_are_small_grammars() -> None:
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join([stream.compress(bytes(1 << 20)) for _ in range(256)] + [stream.flush()])
    grammar = from_gzip(data)
    assert grammar.expanded_length == 1 << 28
    assert len(grammar.rules) + len(grammar.sequence) < 100
    with pytest.raises(GrammarError, match="is too long to compress as one"):
        from_gzip(data * 17)


def every_file() -> list[Any]:
    folder = os.environ.get("LACONIC_DATA")
    names = sorted(os.path.join(at, name) for at, _, some in os.walk(folder or "") for name in some)
    return [pytest.param(name, id=os.path.basename(name)) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", every_file())
def test_every_file_of_the_shared_data(name: str) -> None:
    import lzma

    with open(name, "rb") as file:
        data = lzma.decompress(file.read()) if name.endswith(".xz") else file.read()
    for level in LEVELS:
        for part in (data[:1_000_000], data[-300_000:]):
            grammar = from_gzip(gzip.compress(part, level))
            assert grammar.expand().tobytes() == part


def test_a_corpus_that_was_written_once_is_read() -> None:
    corpus = laconic.Corpus.open(Path(__file__).parent / "golden/deflate.parquet")
    assert corpus.codec == Codec("deflate")
    texts = [grammar.expand().tobytes() for grammar in corpus.grammars]
    hens = b"the hen and then the hens, the hen and then"
    assert texts == [b"to be or not to be, that is the question " * 3, b"x", hens, bytes(1000)]
    assert corpus.grammars[2].sequence.tolist() == [116, 259, 258, 267, 258, 262, 115, 44, 263, 269]

"""What "Learning Directly from Grammar Compressed Text" prints: its examples and its Table 1."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import pytest

import laconic

TEXT = "aababcababcabcd"
# By the paper's names; numbers below are those of its letters, then of its rules as they come.
EXAMPLES = {
    "repair": (
        {"codec": "repair", "min_count": 3},
        {"A": "ab", "B": "Ac"},
        "a A B A B B d",
    ),
    "lz78": (
        {"codec": "lz78"},
        {"P2": "ab", "P3": ("P2", "c"), "P4": ("P2", "a"), "P7": ("P3", "d")},
        "a P2 P3 P4 b c P7",
    ),
    "lzd": (
        {"codec": "lzd", "letters": "seen"},
        {"P2": "ab", "P3": ("P2", "c"), "P4": ("P2", "P3"), "P5": ("P3", "d")},
        "a P2 P3 P4 P5",
    ),
}
INPUTS = {
    "str": (TEXT, {}, 256, 97),
    "bytes": (TEXT.encode(), {}, 256, 97),
    "bytearray": (bytearray(TEXT.encode()), {}, 256, 97),
    "integers": ([ord(c) - 97 for c in TEXT], {}, 4, 0),
    "integers of a larger alphabet": ([ord(c) for c in TEXT], {"alphabet_size": 1000}, 1000, 97),
}
SETS = (
    *("H3", "H3K14ac", "H3K36me3", "H3K4me1", "H3K4me2", "H3K4me3", "H3K79me3", "H3K9ac"),
    *("H4", "H4ac"),
)


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_worked_example(example: str, given: str) -> None:
    options, rules, sequence = EXAMPLES[example]
    document, alphabet, size, first = INPUTS[given]
    symbols = {letter: first + i for i, letter in enumerate("abcd")}
    symbols |= {name: size + k for k, name in enumerate(rules)}

    grammar = laconic.compress(document, **options, **alphabet)

    assert grammar.alphabet_size == size
    assert grammar.rules.tolist() == [[symbols[s] for s in rule] for rule in rules.values()]
    assert grammar.sequence.tolist() == [symbols[s] for s in sequence.split()]
    assert grammar.expand().tolist() == [first + ord(c) - 97 for c in TEXT]


def test_worked_examples_do_not_come_from_the_defaults() -> None:
    """Replacing pairs that occur twice goes on after B; known letters start with the rule aa."""
    assert laconic.compress(TEXT).rules.tolist() == [[97, 98], [256, 99], [256, 257]]
    assert laconic.compress(TEXT, "lzd").rules.tolist()[0] == [97, 97]


@pytest.fixture(scope="module", params=SETS)
def dna(request: pytest.FixtureRequest) -> list[str]:
    folder = os.environ.get("LACONIC_DATA")
    if folder is None:
        pytest.skip("LACONIC_DATA does not name a folder with dna/<set>/{train,test}.tsv.xz")
    documents = []
    for split in ("train", "test"):
        path = Path(folder, "dna", request.param, f"{split}.tsv.xz")
        with lzma.open(path, "rt", encoding="ascii") as lines:
            documents += [line.rstrip("\n").split("\t")[1] for line in lines]
    return documents


@pytest.mark.parametrize("alphabet", ["bytes", "dna"])
def test_table_1_repair(dna: list[str], alphabet: str) -> None:
    rules, symbols = means(dna, codec="repair", alphabet=alphabet)
    assert 45.0 <= rules <= 46.0
    assert 170.0 <= symbols <= 171.5


def test_table_1_lzd(dna: list[str]) -> None:
    rules, symbols = means(dna, codec="lzd", alphabet="dna")
    assert 113.0 <= rules <= 115.0
    # Each rule is one phrase; only the last phrase of a document can be without a rule.
    assert rules <= symbols <= rules + 1


def means(documents: list[str], **options: Any) -> tuple[float, float]:
    """Rules and symbols of the sequence per document, once it is certain that nothing is lost."""
    grammars = laconic.compress_many(documents, **options)
    number = len(documents)
    assert number > 1000
    for i in range(0, number, 97):
        assert grammars[i].text(options["alphabet"]) == documents[i]
    assert grammars.expanded_lengths.tolist() == [len(document) for document in documents]
    return len(grammars.rules) / number, len(grammars.sequence) / number

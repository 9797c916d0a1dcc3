"""What Grammar and Grammars refuse, one message per cause, and a short run of tools/fuzz.py."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import fuzz
import numpy as np
import pytest
from strategies import MOST, doubling

from laconic import Grammar, GrammarError, Grammars

# ---- one message per cause ----------------------------------------------------------------------

ONE: list[tuple[Any, Any, Any, str]] = [
    (3, [[0, 4]], [], "rule 0 uses symbol 4, which is outside 0 … 3"),
    (3, [[0, 4], [0, 1]], [], "rule 0 uses symbol 4, which is not defined before it"),
    (3, [[0, 3]], [], "rule 0 uses symbol 3, which is not defined before it"),
    (3, [[0, 1], [4, 0]], [], "rule 1 uses symbol 4, which is not defined before it"),
    (3, [[0, 1], [-1, 0]], [], "rule 1 uses symbol -1, which is outside 0 … 4"),
    (3, [[0, 1]], [0, 4], "sequence position 1 uses symbol 4, which is outside 0 … 3"),
    (3, [[0, 1]], [0, 0, -1], "sequence position 2 uses symbol -1, which is outside 0 … 3"),
    (
        3,
        [[0, 1]],
        [-(2**31)],
        f"sequence position 0 uses symbol {-(2**31)}, which is outside 0 … 3",
    ),
    (MOST, [[0, 1]], [MOST], "alphabet_size and the number of rules together exceed 2^31 - 1"),
    (1, doubling(63), [63], "the expansion is longer than 2^63 - 2 terminals"),
    (1, doubling(64), [64], "the expansion is longer than 2^63 - 2 terminals"),
    (1, doubling(70), [70], "the expansion is longer than 2^63 - 2 terminals"),
    (1, doubling(62), [62, 62], "the expansion is longer than 2^63 - 2 terminals"),
    (1, doubling(62), [62, *range(62)], "the expansion is longer than 2^63 - 2 terminals"),
    (0, [], [], "alphabet_size must be from 1 to 2^31 - 1, not 0"),
    (-5, [], [], "alphabet_size must be from 1 to 2^31 - 1, not -5"),
    (2**31, [], [], f"alphabet_size must be from 1 to 2^31 - 1, not {2**31}"),
    (2**70, [], [], f"alphabet_size must be from 1 to 2^31 - 1, not {2**70}"),
    (True, [], [], "alphabet_size must be an integer, not bool"),
    (np.True_, [], [], "alphabet_size must be an integer, not bool"),
    (3.0, [], [], "alphabet_size must be an integer, not float"),
    ("3", [], [], "alphabet_size must be an integer, not str"),
    (None, [], [], "alphabet_size must be an integer, not NoneType"),
    (3, [0, 1], [], "rules must be of shape [R, 2], not [2]"),
    (3, [[0, 1, 2]], [], "rules must be of shape [R, 2], not [1, 3]"),
    (3, [[]], [], "rules must be of shape [R, 2], not [1, 0]"),
    (3, [[[0, 1]]], [], "rules must be of shape [R, 2], not [1, 1, 2]"),
    (3, 5, [], "rules must be of shape [R, 2], not []"),
    (3, np.zeros((0, 3), int), [], "rules must be of shape [R, 2], not [0, 3]"),
    (3, [], [[0]], "sequence must have one dimension, not 2"),
    (3, [], 0, "sequence must have one dimension, not 0"),
    (3, [[0, 1], [2]], [], "rules must be an array of integers"),
    (3, [], [0, [1]], "sequence must be an array of integers"),
    (3, [[0.0, 1.0]], [], "rules must hold integers, not float64"),
    (3, [[True, False]], [], "rules must hold integers, not bool"),
    (3, [], [0.5], "sequence must hold integers, not float64"),
    (3, [], "abc", "sequence must hold integers, not <U3"),
    (3, [], b"abc", "sequence must hold integers, not |S3"),
    (3, [], None, "sequence must hold integers, not object"),
    (3, [], [2**70], "sequence must hold integers, not object"),
    (3, [], np.zeros(0), "sequence must hold integers, not float64"),
    (3, [[0, 2**31]], [], "rules holds 2147483648, beyond int32"),
    (3, [[0, -(2**40)]], [], "rules holds -1099511627776, beyond int32"),
    (3, [], [2**31], "sequence holds 2147483648, beyond int32"),
    (3, [], np.array([2**64 - 1], np.uint64), "sequence holds 18446744073709551615, beyond int32"),
]

# Two documents, ab ab and abc: what is changed of them, and what is said.
RULES, RULE_OFFSETS, SEQUENCE, OFFSETS = [[0, 1], [0, 1]], [0, 1, 2], [3, 3, 3, 2], [0, 2, 4]
MANY: list[tuple[dict[str, Any], str]] = [
    ({"rule_offsets": [0, 2, 1]}, "rule_offsets must go from 0 to 2"),
    ({"rule_offsets": [1, 1, 2]}, "rule_offsets must go from 0 to 2"),
    ({"rule_offsets": [-1, 1, 2]}, "rule_offsets must go from 0 to 2"),
    ({"rule_offsets": []}, "rule_offsets must go from 0 to 2"),
    ({"rule_offsets": [0, 1, 3]}, "rule_offsets must go from 0 to 2"),
    ({"rule_offsets": [0, 3, 2]}, "rule_offsets[2] is smaller than the one before it"),
    ({"rule_offsets": [0, -1, 2]}, "rule_offsets[1] is smaller than the one before it"),
    ({"rule_offsets": [0, 2**62, 2]}, "rule_offsets[2] is smaller than the one before it"),
    ({"rule_offsets": [0, 2**63 - 1, 2]}, "rule_offsets[2] is smaller than the one before it"),
    ({"rule_offsets": [0, -(2**63), 2]}, "rule_offsets[1] is smaller than the one before it"),
    ({"sequence_offsets": [0, 2, 5]}, "sequence_offsets must go from 0 to 4"),
    ({"sequence_offsets": [0, 5, 4]}, "sequence_offsets[2] is smaller than the one before it"),
    ({"sequence_offsets": [[0, 2, 4]]}, "sequence_offsets must have one dimension, not 2"),
    ({"sequence_offsets": [0.0, 2.0, 4.0]}, "sequence_offsets must hold integers, not float64"),
    (
        {"rule_offsets": np.array([0, 2**64 - 1, 2], np.uint64)},
        f"rule_offsets holds {2**64 - 1}, beyond int64",
    ),
    ({"rule_offsets": [0, 2]}, "rule_offsets are for 1 documents, sequence_offsets for 2"),
    (
        {"sequence_offsets": [0, 0, 2, 4]},
        "rule_offsets are for 2 documents, sequence_offsets for 3",
    ),
    (
        {"rule_offsets": [0, 2, 2]},
        "document 1: sequence position 0 uses symbol 3, which is outside",
    ),
    ({"rules": [[0, 1], [0, 4]]}, "document 1: rule 0 uses symbol 4, which is outside 0 … 3"),
    ({"rules": [[0, 3], [0, 1]]}, "document 0: rule 0 uses symbol 3, which is not defined before"),
    ({"sequence": [3, 4, 3, 2]}, "document 0: sequence position 1 uses symbol 4"),
    ({"sequence": [3, 3, 3, -2]}, "document 1: sequence position 1 uses symbol -2"),
    ({"alphabet_size": 0}, "alphabet_size must be from 1"),
    ({"alphabet_size": MOST}, "document 0: alphabet_size and the number of rules together exceed"),
    ({"rules": [0, 1]}, "rules must be of shape [R, 2], not [2]"),
    ({"sequence": None}, "sequence must hold integers, not object"),
]


@pytest.mark.parametrize(("size", "rules", "sequence", "message"), ONE)
def test_grammar_says_what_is_wrong(size: Any, rules: Any, sequence: Any, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar(size, rules, sequence)
    assert str(caught.value) == message


@pytest.mark.parametrize(("changed", "message"), MANY)
def test_grammars_say_what_is_wrong(changed: dict[str, Any], message: str) -> None:
    names = ("alphabet_size", "rules", "rule_offsets", "sequence", "sequence_offsets")
    valid = dict(zip(names, (3, RULES, RULE_OFFSETS, SEQUENCE, OFFSETS), strict=True))
    assert [g.expand().tolist() for g in Grammars(**valid)] == [[0, 1, 0, 1], [0, 1, 2]]
    with pytest.raises(GrammarError) as caught:
        Grammars(**(valid | changed))
    assert str(caught.value).startswith(message)
    blamed, colon, reason = message.removeprefix("document ").partition(": ")
    if message.startswith("document ") and colon:
        assert caught.value.document == int(blamed)
        assert caught.value.reason.startswith(reason)
    else:
        assert caught.value.document is None
        assert caught.value.reason == str(caught.value)


def test_grammars_name_the_document_that_is_too_long() -> None:
    rules, sequence = [*doubling(2), *doubling(63)], [2, 63]
    with pytest.raises(GrammarError, match=r"^document 1: the expansion is longer than 2\^63 - 2"):
        Grammars(1, rules, [0, 2, 65], sequence, [0, 1, 2])


def test_the_longest_document_there_is() -> None:
    longest = Grammar(1, doubling(62), range(1, 63))
    assert longest.expanded_length == 2**63 - 2
    assert longest.substring(2**63 - 4, 2**63 - 2).tolist() == [0, 0]
    with pytest.raises(GrammarError, match="longer than"):
        Grammar(1, doubling(62), range(63))


# ---- memory and time ----------------------------------------------------------------------------

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))
import numpy
from laconic import Grammar, compress
"""


BYTES = "compress(numpy.zeros(9, 'u1'), '{}', alphabet_size=2**31 - 99)"
CODE = {
    "prune": "assert len(Grammar(2**31 - 3, [[0, 1], [2, 3]], [2**31 - 2]).prune().rules) == 1",
    "integers": "compress(numpy.full(9, 2**31 - 100), 'lzd', alphabet_size=2**31 - 99)",
    **{codec: BYTES.format(codec) for codec in ("repair", "lz78", "lzd", "none")},
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_a_large_alphabet_takes_no_memory(code: str) -> None:
    """What is not in the document costs nothing: 1.5 GB are enough for everything."""
    child = [sys.executable, "-c", LIMITED + code]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_fuzz(seed: int) -> None:
    """As `python tools/fuzz.py --seed 1`, which also runs a finding again: `--case NUMBER`."""
    report = fuzz.campaign(seed, cases=5000)
    assert report.cases == 5000
    assert not report.findings, str(report)


@pytest.mark.slow
def test_fuzz_reports_what_kills_its_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A fuzzer that never finds anything would look just like one that works."""
    script = tmp_path / "fuzz_that_dies.py"
    script.write_text(
        f"import os, sys; sys.path.insert(0, {str(fuzz.SCRIPT.parent)!r}); import fuzz\n"
        "fuzz.KINDS = (lambda random: os.abort() if random.random() < 0.01 else 1 // 0,)\n"
        "sys.exit(fuzz.main())\n"
    )
    monkeypatch.setattr(fuzz, "SCRIPT", script)
    report = fuzz.campaign(seed=0, cases=300)
    assert report.cases == 300
    messages = " ".join(report.findings)
    assert "died of SIGABRT" in messages
    assert "ZeroDivisionError" in messages

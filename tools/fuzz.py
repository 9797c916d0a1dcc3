"""Feeds hostile arrays to Grammar and Grammars, and hard documents to the codecs, and reports.

    python tools/fuzz.py --minutes 5 --seed 1     # cases per second, and what was found
    python tools/fuzz.py --seed 1 --case 4711     # one case again, here, with its traceback

Cases run in a child process of limited memory, so that a crash, a hang or an exploding grammar is
a finding with a number, not the end of the run. tests/test_hostile.py runs a few thousand cases.
"""

from __future__ import annotations

import argparse
import io
import json
import mmap
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import strategies
import streams

from laconic import AlphabetError, Grammar, GrammarError, Grammars, compress, compress_many, oracle
from laconic.codecs import from_gzip

SCRIPT = Path(__file__).resolve()
MEMORY = 2 << 30  # bytes of address space for a child
PATIENCE = 60  # seconds after which a case hangs
LONGEST = 4000  # terminals that are expanded and compared with the oracle
SIZES = (*strategies.ALPHABET_SIZES, strategies.MOST)
EDGES = (
    *(0, 1, -1, 2, 127, 255, 2**15, 2**16),
    *(2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1, -(2**63)),
)
REFUSALS = (GrammarError, AlphabetError, IndexError, TypeError, ValueError)
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">i8")
STRANGE_DTYPES = ("f4", "f8", "c8", "?", "O", "U3", "S3", "M8[s]", "m8[s]", "V4", "i4,i4")
JUNK: tuple[Any, ...] = (
    *(None, True, False, 1.5, float("nan"), 1j, 0, 5, -1, 2**31, 2**70, "", "abc", b"", b"abc"),
    *([], [[]], [[[]]], (), {}, {1: 2}, {1, 2}, [None], ["a"], [b"a"], [1.5], [True]),
    *([[0], [1, 2]], [2**70], [-1, 2**63], [[0, 1], 2], [[0, 1, 2]], [[[0, 1]]], range(4)),
    *(object(), object, len, memoryview(b""), np.int64(3), np.float32(1), np.array(5)),
    *(np.zeros(0), np.zeros((0, 2)), np.zeros((2, 0), "i4"), np.zeros((0, 3), "i4")),
    *(np.zeros((1, 2, 1), "i4"), np.ma.masked_array([1, 2])),
)


class WrongAnswerError(AssertionError):
    """An answer that is not the right one."""


def hostile_grammar(random: Random) -> None:
    """One grammar: valid, nearly valid, or nonsense."""
    size, rules, sequence = strategies.valid_grammar(random)
    parts = [size, np.array(rules, "i4").reshape(-1, 2), np.array(sequence, "i4")]
    grammar = built(*spoiled(random, parts, size + len(rules)))
    if grammar is not None:
        probe(random, grammar)


def hostile_grammars(random: Random) -> None:
    """Many grammars, whose offsets may go anywhere."""
    size = random.choice((1, 2, 256, 300))
    each = [
        Grammar(*strategies.renamed(strategies.valid_grammar(random), size))
        for _ in range(random.randint(1, 5))
    ]
    made = Grammars.concatenate(each)
    parts = [size, made.rules, made.rule_offsets, made.sequence, made.sequence_offsets]
    parts = spoiled(random, parts, size + len(made.rules))
    grammars = attempt(Grammars, *parts, refuses=GrammarError)
    if grammars is not None:
        probe_many(random, grammars)


def bomb(random: Random) -> None:
    """A few rules for more terminals than fit into 63 bits, or nearly."""
    number, size = random.randint(50, 70), random.choice((1, 2, 256))
    rules = [[0, 0]]
    for k in range(1, number):
        rules.append([size + k - 1, size + max(0, k - random.choice((1, 1, 1, 2)))])
    sequence = [size + random.randrange(number) for _ in range(random.randint(0, 4))]
    grammar = built(size, np.array(rules), np.array(sequence, int))
    if grammar is not None:
        probe(random, grammar)
        probe_many(random, Grammars.concatenate([grammar] * random.randint(1, 3)))


def hard_document(random: Random) -> None:
    """Documents that codecs get wrong, in any alphabet and in any company."""
    words = [strategies.document(random) for _ in range(random.choice((1, 1, 4)))]
    options = strategies.codec_options(random)
    small = max((letter for word in words for letter in word), default=0) + 1
    size = random.choice([n for n in strategies.ALPHABET_SIZES if n >= small])
    names = random.sample(range(size), small)
    written = [[names[letter] for letter in word] for word in words]
    smallest = "u1" if size <= 256 else "u2" if size <= 65536 else "i4"
    dtype = random.choice((smallest, "i4", "i8", "u8"))
    expected = [strategies.oracle_grammar(word, names, size, **options) for word in words]
    arrays = [np.array(word, dtype) for word in written]
    grammars = compress_many(arrays, alphabet_size=size, threads=random.randint(1, 3), **options)
    for grammar, answer, terminals in zip(grammars, expected, written, strict=True):
        same((grammar.rules.tolist(), grammar.sequence.tolist()), answer)
        same(grammar.expand().tolist(), terminals)
        probe(random, Grammar(size, grammar.rules, grammar.sequence))


def hostile_document(random: Random) -> None:
    """What is not a document, or does not fit its alphabet, or options that are none."""
    document = spoiled_array(random, np.array(strategies.document(random, 60), "i4"), 60)
    options: dict[str, Any] = {"codec": random.choice(("repair", "lz78", "lzd", "none", None))}
    if random.random() < 0.6:
        options["alphabet_size"] = random.choice((*SIZES, 0, -1, 2**31, 2.5, None, 100, 100, 100))
    if random.random() < 0.2:
        options[random.choice(("min_count", "max_rules", "letters"))] = random.choice(JUNK)
    grammar = attempt(compress, document, **options)
    if grammar is not None:
        if not isinstance(document, str | bytes | memoryview):
            same(grammar.expand().tolist(), np.asarray(document).tolist())
        probe(random, Grammar(grammar.alphabet_size, grammar.rules, grammar.sequence))


def hostile_stream(random: Random) -> None:
    """What zlib compressed, damaged: refused where zlib refuses it, and else the same bytes."""
    data, expected = streams.damaged(random)
    grammar = attempt(from_gzip, data, refuses=GrammarError)
    same(None if grammar is None else grammar.expand().tobytes(), expected)
    if grammar is not None:
        probe(random, grammar)


KINDS: tuple[Callable[[Random], None], ...] = (
    *(hostile_grammar, hostile_grammar, hostile_grammars, hostile_grammars),
    *(bomb, hard_document, hostile_document, hostile_stream),
)


# ---- what is fed --------------------------------------------------------------------------------


def spoiled(random: Random, parts: list[Any], end: int) -> list[Any]:
    """None, one or several of the parts spoiled."""
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        k = random.randrange(len(parts))
        if k > 0:
            parts[k] = spoiled_array(random, parts[k], end)
        else:
            parts[k] = random.choice((*JUNK, *EDGES, *SIZES, end, end + 1))
    return parts


def spoiled_array(random: Random, array: Any, end: int) -> Any:
    """Another array, or no array at all, made from a valid one."""
    if not isinstance(array, np.ndarray) or array.ndim == 0 or array.dtype.kind not in "iu":
        return random.choice(JUNK)  # it has been spoiled before
    values = (*EDGES, end, end - 1, end + 1, random.randrange(2 * end))
    match random.randrange(12):
        case 0:
            return random.choice(JUNK)
        case 1:
            shape = [random.randrange(4) for _ in range(random.randrange(4))]
            made = [random.choice(values) for _ in range(int(np.prod(shape)))]
            return np.array(made, "i8").reshape(shape).astype(random.choice(("i4", "i8")))
        case 2:
            return array.astype(random.choice(STRANGE_DTYPES[:5]))
        case 3:
            return np.zeros(array.shape, random.choice(STRANGE_DTYPES))
        case 4:
            return array.astype(random.choice(DTYPES))  # wraps around
        case 5:
            return random.choice((array.T, array[::-1], array[..., None], array.ravel(), array[1:]))
        case 6:
            return np.repeat(array, 2, axis=0)[:: random.choice((1, 2, 3))]
        case 7:
            return array.tolist()
        case _:
            changed = array.astype("i8")
            for _ in range(random.choice((1, 1, 3)) if array.size else 0):
                changed.flat[random.randrange(array.size)] = random.choice(values)
            return changed if random.random() < 0.5 else changed.astype(array.dtype)


# ---- what is asked ------------------------------------------------------------------------------


def built(size: Any, rules: Any, sequence: Any) -> Grammar | None:
    """The grammar, or None if it is refused; what is certainly one must not be."""
    grammar: Grammar | None = attempt(Grammar, size, rules, sequence, refuses=GrammarError)
    if grammar is None:
        same(is_grammar(size, rules, sequence), False)
    return grammar


def is_grammar(size: Any, rules: Any, sequence: Any) -> bool:
    """Whether these certainly make a grammar, from its definition."""
    if not all(isinstance(a, np.ndarray) and a.dtype.kind in "iu" for a in (rules, sequence)):
        return False
    if type(size) is not int or size < 1 or rules.shape[1:] != (2,) or sequence.ndim != 1:
        return False
    lengths: list[int] = []
    for symbols in [*rules.tolist(), sequence.tolist()]:
        if not all(0 <= symbol < size + len(lengths) for symbol in symbols):
            return False
        lengths.append(sum(1 if s < size else lengths[s - size] for s in symbols))
    return size + len(rules) <= strategies.MOST and lengths[-1] < 2**63 - 1


def probe(random: Random, grammar: Grammar) -> None:
    """Ask a valid grammar everything; what takes no arguments must not fail at all."""
    n, size, rules = grammar.expanded_length, grammar.alphabet_size, grammar.rules
    same(pickle.loads(pickle.dumps(grammar)), grammar)
    same(hash(grammar), hash(Grammar(size, rules, grammar.sequence)))
    same(sorted(np.concatenate([[], *grammar.levels()])), list(range(len(rules))))
    same(grammar.depths.tolist(), oracle.depths(rules.tolist(), size))
    same((grammar.occurrences > 0).tolist(), grammar.reachable().tolist())
    pruned = grammar.prune()
    same(pruned.expanded_length, n)
    same(bool(pruned.reachable().all()), True)
    out = io.StringIO()
    alphabet = random.choice((None, None, "bytes", "zhang", "dna", "dna_n", "morse", 5))
    attempt(grammar.show, alphabet, rows=random.choice((0, 1, 20, 2**70, -1)), file=out)
    limit = random.choice((LONGEST, LONGEST, 0, -1, 10))
    attempt(grammar.text, random.choice(("bytes", "dna", "zhang")), limit)
    attempt(grammar.to_bytes, random.choice(("bytes", "dna_n")), limit)
    i, j = (random.choice((0, n, n - 1, n // 2, n + 1, *EDGES, 2**64)) for _ in range(2))
    if j - i <= LONGEST:  # a part may be as long as the caller likes, and his memory is
        part = attempt(grammar.substring, i, j)
        same(part is None, not 0 <= i <= j <= n)
        same(part is None or len(part) == j - i, True)
    if n > limit:
        same(attempt(grammar.expand, limit), None)
    elif n <= LONGEST:
        whole = oracle.expand(rules.tolist(), grammar.sequence.tolist(), size)
        same(grammar.expand(limit).tolist(), whole)
        same(pruned.expand().tolist(), whole)
        for i, j in pairwise(sorted(random.randint(0, n) for _ in range(5))):
            same(grammar.substring(i, j).tolist(), whole[i:j])


def probe_many(random: Random, grammars: Grammars) -> None:
    """Ask many valid grammars everything, and each of them."""
    each = list(grammars)
    same(len(each), len(grammars))
    same(grammars.expanded_lengths.tolist(), [grammar.expanded_length for grammar in each])
    total = sum(grammar.expanded_length for grammar in each)
    same(re.findall("[0-9,]*[0-9]", repr(grammars))[:2], [f"{len(each):,}", f"{total:,}"])
    same(pickle.loads(pickle.dumps(grammars)), grammars)
    same(len(grammars.packed_bits), len(grammars))
    if each:
        same(Grammars.concatenate(each), grammars)
        probe(random, random.choice(each))
    i, j, step = (random.choice((None, 0, 1, 2, -1, 2**31, 2**64, -(2**64))) for _ in range(3))
    part = attempt(grammars.__getitem__, slice(i, j, step))
    same(part is None or list(part) == each[i:j], True)
    attempt(grammars.__getitem__, random.choice((0, 5, -5, *EDGES, "a", None, 1.5)))


def attempt(
    method: Callable[..., Any], *arguments: Any, refuses: Any = REFUSALS, **options: Any
) -> Any:
    """What the method returns, or None if it refuses in the way it should."""
    try:
        return method(*arguments, **options)
    except refuses as error:
        explained(error)
        return None


def explained(error: Exception) -> None:
    """An error has a message."""
    if len(str(error)) < 10:
        raise WrongAnswerError(f"{error!r} says nothing") from error


def same(answer: Any, expected: Any) -> None:
    """Raise WrongAnswerError unless the answer is what was expected."""
    if answer != expected:
        raise WrongAnswerError(f"{answer!r:.300} is not {expected!r:.300}")


# ---- running ------------------------------------------------------------------------------------


@dataclass
class Report:
    """How many cases ran, and for each kind of finding its first case and how often it came."""

    cases: int = 0
    seconds: float = 0.0
    findings: dict[str, list[int]] = field(default_factory=dict)

    def add(self, number: int, message: str) -> None:
        """Count a finding; those that differ only in numbers are one."""
        kind = re.sub(r"[\d\[\]][\d, \[\]]*", "# ", message)[:200]
        first_and_count = self.findings.setdefault(kind, [number, 0])
        first_and_count[1] += 1

    def __str__(self) -> str:
        rate = self.cases / max(self.seconds, 1e-9)
        lines = [f"{self.cases} cases in {self.seconds:.0f} s, {rate:.0f} per second"]
        lines += [f"case {first} ({n} like it): {m}" for m, (first, n) in self.findings.items()]
        return "\n".join(lines if self.findings else [*lines, "nothing found"])


def run_case(seed: int, number: int) -> None:
    """Run one case, the same every time; raises what it finds."""
    random = Random(f"{seed} {number}")
    kind = random.choice(KINDS)
    try:
        kind(random)
    except Exception as error:
        error.add_note(f"in {kind.__name__}")
        raise


def campaign(seed: int, seconds: float = 1e9, cases: int = 1 << 60) -> Report:
    """Run cases 0, 1, … in children until `seconds` or `cases` are over."""
    report, start = Report(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while report.cases < cases and (left := seconds - report.seconds) > 0:
            limits = {"seed": seed, "first": report.cases, "end": cases, "seconds": left}
            command = [sys.executable, "-W", "error", str(SCRIPT), "--child", folder]
            # One thread of BLAS: on large machines its buffers alone exceed the limit.
            environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            child = subprocess.Popen([*command, json.dumps(limits)], env=environment)
            status = _watch(child, Path(folder))
            if status > 0:
                raise RuntimeError(f"the child did not get to run: exit status {status}")
            report.cases = int.from_bytes(Path(folder, "case").read_bytes(), "little")
            if status < 0:
                report.add(report.cases, f"died of {signal.Signals(-status).name}")
                report.cases += 1
            report.seconds = time.monotonic() - start
        for line in Path(folder, "findings").read_text().splitlines():
            report.add(**json.loads(line))
    return report


def _watch(child: subprocess.Popen[bytes], folder: Path) -> int:
    case = folder / "case"
    while True:
        before = case.read_bytes() if case.exists() else b""
        try:
            return child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            if case.exists() and case.read_bytes() == before:
                child.kill()  # and reported as one that died of SIGKILL


def _be_child(folder: Path, seed: int, first: int, end: int, seconds: float) -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    stop, number, case = time.monotonic() + seconds, first, folder / "case"
    case.write_bytes(bytes(8))
    with case.open("r+b") as mapped, folder.joinpath("findings").open("a") as found:
        # A map, so that the number is there for the parent however the child ends.
        current = mmap.mmap(mapped.fileno(), 8)
        while number < end and time.monotonic() < stop:
            current[:] = number.to_bytes(8, "little")
            try:
                run_case(seed, number)
            except Exception as error:
                message = f"{error.__notes__[-1]}: {type(error).__name__}: {error}"
                print(json.dumps({"number": number, "message": message}), file=found, flush=True)
            number += 1
        current[:] = number.to_bytes(8, "little")


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run only this one, with its traceback")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _be_child(Path(arguments.child[0]), **json.loads(arguments.child[1]))
        return 0
    if arguments.case is not None:
        run_case(arguments.seed, arguments.case)
        return 0
    report = campaign(arguments.seed, seconds=60 * arguments.minutes)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())

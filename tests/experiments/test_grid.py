"""The paper's experiments: grid, held-out parts, measurements; all of it on the samples."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from experiments.paper import grid
from experiments.paper.__main__ import DEFAULT_GROUPS, main
from experiments.paper.complexity import document, measure_step
from experiments.paper.corpora import corpora, documents
from experiments.paper.drawing import draw_memory, fixed_memory
from experiments.paper.figure import measure_figure
from experiments.paper.printed import DNA
from experiments.paper.results import about, find_row, read, right, rows_in, write
from experiments.paper.rivals import _Problem, run_rivals
from experiments.paper.table import NAMES, Results, compared
from experiments.paper.training import run_row, run_rows
from laconic.training.holdout import divide
from laconic.training.loop import train
from laconic.training.progress import Progress
from laconic.training.settings import ConfigError

SMOKE = """
title = "Samples"
sets = ["bacteria", "kjv"]
preset = "paper-dna"
bpe_vocabulary = 200
longest = 100

[settings]
epochs = 2
batch_size = 64
embedding_size = 8
width = 8

[local]
local_ngrams = 3
local_buckets = 64
local_size = 4
local_dropout = 0.2

[[methods]]
stage = 2
names = ["mlp-repair", "dual_gru-repair", "grc-lz78", "bpe", "char_cnn", "grc_ngrams-repair"]
seeds = [0]

[[methods]]
stage = 1
names = ["characters", "grc-lzd"]
seeds = [0, 1]
"""
WITHOUT_LOCAL = re.sub(r"\[local\]\n(local_.*\n)+", "", SMOKE)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory, few_documents: None) -> Path:
    folder = tmp_path_factory.mktemp("paper")  # where corpora are kept for all tests here
    (folder / "grid").mkdir()
    (folder / "grid" / "smoke.toml").write_text(SMOKE)
    return folder


def options(smoke: Path) -> list[str]:
    names = {"--grid": "grid", "--results": "results", "--cache": "build/corpora"}
    return [each for name, to in names.items() for each in (name, str(smoke / to))]


def test_important_rows_come_first() -> None:
    there = {group.name: group for group in grid.groups()}
    rows = grid.rows([there[name] for name in DEFAULT_GROUPS])
    first = [row for row in rows if row.stage == 1]
    assert rows[: len(first)] == first
    seeds = [row.seed for row in first]
    assert seeds == sorted(seeds)
    codecs = ("repair", "lzd", "lz78")
    wanted = {"characters"} | {f"{c}-{k}" for c in grid.COMPOSERS[:3] for k in codecs[:2]}
    by_set: dict[str, set[tuple[str, int]]] = {}
    for row in first:
        by_set.setdefault(row.dataset, set()).add((row.method.name, row.seed))
    assert len(by_set) == 14
    assert all(found == {(m, s) for m in wanted for s in (0, 1)} for found in by_set.values())
    assert len(set(map(str, rows))) == len(rows)
    every = {f"{c}-{k}" for c in grid.COMPOSERS for k in codecs} | {"characters", "char_cnn", "bpe"}
    every |= {f"{grid.IN_PLACE}-repair", f"{grid.IN_PLACE}-lzd", "grc-deflate", "grc-repair+auto"}
    assert {row.method.name for row in rows} == every
    # As many seeds as the paper's tests need of what it compares, and two of all others.
    four = {name for name in wanted if not name.startswith("grc")}
    seeds_of: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        seeds_of.setdefault((row.dataset, row.method.name), set()).add(row.seed)
    assert {key: len(some) for key, some in seeds_of.items()} == {
        (dataset, name): 4 if name in four else 2 for dataset in by_set for name in every
    }


def test_departures_are_told_and_the_papers_protocol_has_none() -> None:
    there = {group.name: group for group in grid.groups()}
    assert "documents in a batch 64 instead of 10" in there["dna"].departures("H3")
    assert "documents cut at 16,000 letters" in there["pinyin"].departures("sogou_pinyin")
    assert "documents in a batch 125 instead of 126" in there["text"].departures("imdb")
    for name in ("zhang", "jaist", "gue", "nt"):
        assert not any(map(there[name].departures, there[name].sets))
    config = grid.rows([there["jaist"]])[0].config("cpu")
    assert (config.epochs, config.batch_size, config.halve_every) == (50, 10, 20)


def test_rows_are_chosen_by_pattern() -> None:
    rows = grid.rows(grid.groups())
    assert {row.dataset for row in grid.chosen(rows, ["H3/grc-*"])} == {"H3"}
    assert grid.chosen(rows, []) == rows


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour = 1", "no key 'colour'"),
        (SMOKE.replace("grc-lzd", "grc-zip"), "no method 'grc-zip'"),
        (SMOKE.replace("kjv", "iliad"), "no data set 'iliad'"),
        (SMOKE.replace("epochs = 2", "epoch = 2"), "did you mean 'epochs'"),
        (SMOKE + "\n[only.iliad]\nepochs = 3", "is for no set of the file"),
        (SMOKE + "\n[only.kjv]\nepochs = 0", "epochs must be an integer from 1"),
        (
            WITHOUT_LOCAL,
            r"grc_ngrams-repair reads .* the group bad needs a table \[local\]",
        ),
        (
            SMOKE.replace("local_size = 4", "epochs = 4"),
            r"no 'epochs' in \[local\]; there",
        ),
        (SMOKE.replace("local_size = 4", "local_size = 0"), "local_size must be an integer from 1"),
        (SMOKE.replace("local_ngrams = 3\n", ""), r"\[local\] needs local_ngrams, 1 or more"),
        ("local = 3\n" + WITHOUT_LOCAL, "bad.toml"),
        ("title = [", "bad.toml"),
    ],
)
def test_a_bad_grid_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        grid.groups(tmp_path)


def test_a_codec_may_be_over_a_rulebook(tmp_path: Path) -> None:
    names = ("lzd+30", "phrases"), ("lzd+30_words", "words"), ("lzd+30_across", "none")
    for name, boundary in names:
        assert grid.Method.named(f"grc-{name}").shared == ("lzd", 30, boundary)
        train, test = corpora("bacteria", name, 100, tmp_path)
        assert train.rulebook == test.rulebook is not None
        within = {"phrases": 15, "words": 30, "none": 0}[boundary]
        assert (len(train.rulebook), train.rulebook.within) == (30, within)
        assert train.codec.name == "lzd"
    for wrong in ("grc-lzd+", "grc-lzd+0", "grc-lzd+9_along", "grc-zip+9"):
        with pytest.raises(ValueError, match="no method"):
            grid.Method.named(wrong)


def test_shared_symbols_may_be_letters_or_only_spelled(tmp_path: Path) -> None:
    shared, _ = corpora("kjv", "none+200", 100, tmp_path)
    letters, _ = corpora("kjv", "none+200_letters", 100, tmp_path)
    assert letters.rulebook is None
    assert letters.grammars.alphabet_size > 100
    for one, two in zip(shared.grammars[:20], letters.grammars[:20], strict=True):
        assert len(one.sequence) == len(two.sequence)
        pairs = set(zip(one.sequence.tolist(), two.sequence.tolist(), strict=True))
        assert len(pairs) == len(set(one.sequence.tolist())) == len(set(two.sequence.tolist()))
    (tmp_path / "few.toml").write_text(f"few = 40\n{SMOKE}")
    [group] = grid.groups(tmp_path)
    spelled = grid.Method.named("grc_spelled-lzd+9")
    row = grid.Row(1, "kjv", spelled, 0, group)
    assert row.config("cpu").residual_documents == 0
    assert "40 training documents" in group.departures("kjv")
    assert len(corpora(*row.source(tmp_path))[0]) == 40


def test_all_methods_of_a_seed_hold_out_the_same_documents(smoke: Path) -> None:
    [group] = grid.groups(smoke / "grid")
    rows = grid.rows([group])
    parts: dict[int, list[list[int]]] = {}
    for row in rows:
        if row.dataset == "bacteria":
            source, _ = corpora("bacteria", row.method.codec, 100, smoke / "build/corpora", 200)
            config = row.config("cpu")
            fit, held_out, *_ = divide(source, None, None, config)
            assert held_out is not None
            assert len(held_out) == 96
            assert not set(held_out.rows.tolist()) & set(fit.rows.tolist())
            parts.setdefault(row.seed, []).append(held_out.rows.tolist())
    for seed, found in parts.items():
        assert all(each == found[0] for each in found)
        source_texts, test = documents("bacteria", 100)
        problem = _Problem("bacteria", source_texts, test, seed, config)
        assert problem.parts[1] == [source_texts.documents[i] for i in found[0]]
    assert parts[0][0] != parts[1][0]


@pytest.mark.slow
def test_a_row_that_was_stopped_goes_on(smoke: Path, tmp_path: Path) -> None:
    [group] = grid.groups(smoke / "grid")
    [row] = grid.chosen(grid.rows([group]), ["bacteria/grc-lzd-0"])
    whole = run_row(row, "cpu", tmp_path / "whole", smoke / "build/corpora")

    class StoppedError(Exception):
        pass

    def stop(at: Progress) -> None:
        if at.line is not None:
            raise StoppedError

    source, _ = corpora("bacteria", "lzd", 100, smoke / "build/corpora")
    folder = smoke / "build/runs/bacteria/grc-lzd-0"
    with pytest.raises(StoppedError):
        train(source, row.config("cpu"), folder, progress=stop)
    assert (folder / "metrics.jsonl").read_text().count("\n") == 1
    resumed = run_row(row, "cpu", tmp_path / "resumed", smoke / "build/corpora")
    in_memory = run_row(row, "cpu", tmp_path / "memory", smoke / "build/corpora", resumable=False)

    assert resumed["epochs"]["train_loss"] == whole["epochs"]["train_loss"]
    assert resumed["test"] == whole["test"] == in_memory["test"]
    correct = right(whole)
    assert correct is not None
    assert correct.mean() == pytest.approx(whole["test"]["accuracy"])
    assert not folder.exists()


@pytest.mark.slow
def test_what_was_begun_with_other_settings_begins_anew(smoke: Path, tmp_path: Path) -> None:
    [group] = grid.groups(smoke / "grid")
    [row] = grid.chosen(grid.rows([group]), ["bacteria/mlp-repair-0"])
    source, _ = corpora("bacteria", "repair", 100, smoke / "build/corpora")
    folder = smoke / "build/runs/bacteria/mlp-repair-0"
    train(source, replace(row.config("cpu"), epochs=1), folder)
    found = run_row(row, "cpu", tmp_path, smoke / "build/corpora")
    assert len(found["epochs"]["train_loss"]) == 2


def test_a_row_that_cannot_be_run_does_not_stop_the_others(
    smoke: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [group] = grid.groups(smoke / "grid")
    rows = grid.chosen(grid.rows([group]), ["kjv/bpe-0", "kjv/char_cnn-0"])
    monkeypatch.setitem(sys.modules, "tokenizers", None)  # as where it is not installed
    left = run_rows(rows, "cpu", tmp_path / "results", tmp_path / "corpora")
    assert list(map(str, left)) == ["kjv/bpe-0"]
    assert "kjv/bpe-0 left: import of tokenizers" in capsys.readouterr().err
    assert find_row(tmp_path / "results", "kjv", "char_cnn", 0)


@pytest.mark.slow
def test_rows_need_little_to_be_installed() -> None:
    """A machine with a GPU may have torch and little else."""
    absent = ("sklearn", "scipy", "matplotlib", "cyclopts", "rich", "tokenizers", "pandas")
    wanted = ("__main__", "training", "pool", "speed", "figure", "complexity", "compression")
    code = f"""
import importlib, sys
for name in {absent!r}:
    sys.modules[name] = None
for name in {wanted!r}:
    importlib.import_module("experiments.paper." + name)
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=120)


def test_rows_leave_torch_as_it_was(tmp_path: Path) -> None:
    before = torch.get_float32_matmul_precision()
    run_rows([], "cpu", tmp_path)
    assert torch.get_float32_matmul_precision() == before == "highest"


def test_no_row_starts_after_the_time_is_up(smoke: Path, tmp_path: Path) -> None:
    [group] = grid.groups(smoke / "grid")
    rows = grid.chosen(grid.rows([group]), ["kjv/mlp-repair-*"])
    left = run_rows(rows, "cpu", tmp_path, smoke / "build/corpora", seconds=-1)
    assert left == rows
    assert not list(tmp_path.iterdir())


def test_the_whole_grid_on_the_samples(
    smoke: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    results, page = smoke / "results", smoke / "docs/results.md"
    given = options(smoke)
    main(["run", "--device", "cpu", *given])
    assert "all rows are done" in capsys.readouterr().out
    assert len(list(rows_in(results))) == 2 * (6 + 2 * 2)
    times = {path: path.stat().st_mtime_ns for path in results.iterdir()}
    main(["run", "--device", "cpu", *given])
    assert times == {path: path.stat().st_mtime_ns for path in results.iterdir()}

    row = find_row(results, "bacteria", "grc-lzd", 1)
    assert row is not None
    assert row["config"]["seed"] == 1
    assert len(row["epochs"]["valid_accuracy"]) == 2
    assert row["documents"]["train"] + row["documents"]["valid"] == 480
    assert 0 <= row["test"]["accuracy"] <= 1
    assert right(row) is not None
    assert {"commit", "versions", "machine", "command"} <= row["about"].keys()

    run_rivals(grid.groups(smoke / "grid"), [0], results, ["rival_kmers", "rival_words"])
    main(["compression", *given])
    cut = {"dna": (4,), "adfa": (4,), "yelp": (4,), "pinyin": (4,)}
    measure_figure("cpu", results, 0.01, ["dna"], 8, cut, longest=40)
    points = [
        {"codec": codec, "share": share, **measure_step(document(2000, share), codec, "cpu", 1, 8)}
        for codec, share in (("none", 0.95), ("repair", 0.0), ("repair", 0.95))
    ]
    write(results / "complexity-cpu.json", {"about": row["about"], "points": points})
    main(["report", "--page", str(page), *given])

    text = page.read_text()
    assert "epochs 2 instead of 50; documents in a batch 64 instead of 10" in text
    assert "they end in, of 1 to 3 letters (64 buckets, dropout 0.2). Mean" in text
    for name in ("characters", "grc-lz78", "grc_ngrams-repair", "bpe", "char_cnn", "rival_kmers"):
        assert f"| {NAMES[name]} |" in text
    assert "dual_gru is better than mlp on" in text
    assert "95 % repeated: 2,000 letters are" in text
    assert (page.parent / "results_complexity.svg").read_text().startswith("<svg")
    main(["report", "--check", "--page", str(page), *given])
    (results / "kjv.jsonl").unlink()
    with pytest.raises(SystemExit, match=r"out of date: .*results\.md"):
        main(["report", "--check", "--page", str(page), *given])


@pytest.mark.slow
def test_figure_points_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    sizes = {"dna": (4,)}
    measure_figure("cpu", tmp_path, 0.01, ["dna"], 8, sizes, longest=40)
    before = read(tmp_path / "figure.json")
    keys = {(p["codec"], p["way"]) for p in before["points"]}
    assert keys == {(c, w) for c in ("none", "repair", "lzd") for w in ("peer", "ours")}
    assert all(p["documents_per_s"] > 0 for p in before["points"])
    measure_figure("cpu", tmp_path, 0.01, ["dna"], 8, sizes, longest=40)
    assert read(tmp_path / "figure.json") == before
    with pytest.raises(ValueError, match="no set 'cats'"):
        measure_figure("cpu", tmp_path, 0.01, ["cats"])


POINTS = [
    {"set": s, "way": w, "codec": c, "batch": b, "peak_mib": b * room, "epoch_s": time / b}
    for s in ("yelp", "pinyin", "dna", "adfa")
    for w in ("peer", "ours")
    for c, room, time in (("none", 20.0, 6300.0), ("repair", 5.0, 2100.0))
    for b in (21, 42, 126)
]


def test_speed_within_the_memory_of_characters() -> None:
    # Characters with 21 documents need 420 MiB and 300 s; Re-Pair has room for 84, and needs 25 s.
    assert fixed_memory(POINTS, "dna", "ours", "repair") == pytest.approx(12)
    # All of Re-Pair's batches need less: its largest counts.
    small = [p | ({"peak_mib": p["batch"]} if p["codec"] == "repair" else {}) for p in POINTS]
    assert fixed_memory(small, "dna", "ours", "repair") == pytest.approx(300 / (2100 / 126))
    assert fixed_memory(POINTS, "dna", "ours", "lzd") is None


@pytest.mark.slow
def test_the_memory_figure_names_every_batch() -> None:
    text = draw_memory(POINTS)
    for size in (21, 42, 126):
        assert len(re.findall(rf">\s*{size}</text>", text)) == 4 * 2 * 2
    assert all(f">{name}</text>" in text for name in ("sogou_pinyin", "H3", "adfa_ld"))
    assert draw_memory(POINTS) == text


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_rows_and_measurements_on_a_gpu(smoke: Path, tmp_path: Path) -> None:
    [group] = grid.groups(smoke / "grid")
    rows = grid.chosen(grid.rows([group]), ["bacteria/grc-lzd-0", "bacteria/characters-0"])
    assert run_rows(rows, "cuda", tmp_path, smoke / "build/corpora") == []
    results = Results(tmp_path)
    assert all((results.speed(row.dataset, row.method.name) or {})["peak_mb"] > 0 for row in rows)
    measure_figure("cuda", tmp_path, 0.1, ["dna"], 64, {"dna": (4, 8)}, longest=100)
    points = read(tmp_path / "figure.json")["points"]
    assert all(point["peak_mib"] > 0 for point in points)
    assert (fixed_memory(points, "dna", "ours", "lzd") or 0) > 0
    plain, short = (measure_step(document(5000, 0.95), c, "cuda", 1) for c in ("none", "repair"))
    assert short["peak_mb"] < plain["peak_mb"] / 5


def test_repetition_makes_fewer_rules_and_symbols() -> None:
    fresh, repeated = (measure_step(document(4000, s), "repair", "cpu", 1, 4) for s in (0.0, 0.95))
    assert fresh["letters"] == repeated["letters"] == 4000
    assert repeated["rules"] + repeated["sequence"] < (fresh["rules"] + fresh["sequence"]) / 5
    with pytest.raises(ValueError, match="letters of English"):
        document(10**9, 0.0)


def test_an_unknown_row_or_group_is_one_line(smoke: Path) -> None:
    with pytest.raises(SystemExit, match="no row has such a name"):
        main(["rows", "--rows", "H5/*", *options(smoke)])
    with pytest.raises(SystemExit, match="no group 'cats'"):
        main(["rows", "--groups", "cats"])


def test_compression_beside_the_paper_counts_lzd_as_it_does() -> None:
    def of(mean: float) -> dict[str, float]:
        return {"mean": mean, "max": mean}

    one = {
        "none": {"letters": of(500), "sequence": of(500), "rules": of(0), "distinct": 4.0},
        "repair": {"sequence": of(170.5), "rules": of(45.5)},
        "lzd": {"sequence": of(114.5), "rules": of(114.5)},
    }
    for _, _, _, ours, theirs in compared({"sets": dict.fromkeys(DNA["characters"], one)}):
        assert ours == pytest.approx(theirs)


def test_commands_name_no_folder_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "run", "--results", "/somewhere/out", "--rows", "H3/*"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)  # as in a process of a pool
    assert about()["command"] == "python -m experiments.paper run --results out --rows H3/*"

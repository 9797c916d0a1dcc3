"""docs/reading.md: every example, as it stands there, on one file and on a folder of shards."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from laconic import Corpus, samples

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reading.md"
Summary = dict[str, tuple[int, float, float]]


def _examples() -> dict[str, str]:
    """The code below each heading of the page; "" is what stands before the first."""
    sections = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headed = {"": sections[0], **dict(zip(sections[1::2], sections[2::2], strict=True))}
    return {
        name: "".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
        for name, text in headed.items()
    }


EXAMPLES = _examples()
DOCUMENTS = samples.load("kjv").train.documents[:80]
LABELS = samples.load("kjv").train.labels[:80]
POEM = LABELS.index("poetry")
DOCUMENTS[POEM] += " — Selah, été"  # the sample is ASCII; letters are bytes, not characters


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_documents(DOCUMENTS, LABELS)


@pytest.fixture(scope="module")
def expected(corpus: Corpus) -> Summary:
    sizes: dict[str, list[tuple[int, int]]] = {}
    for label, grammar in zip(LABELS, corpus, strict=True):
        sizes.setdefault(label, []).append((len(grammar.rules), len(grammar.sequence)))
    return {
        label: (len(each), *(sum(column) / len(each) for column in zip(*each, strict=True)))
        for label, each in sizes.items()
    }


@pytest.fixture(params=["file", "folder"])
def path(request: pytest.FixtureRequest, corpus: Corpus, tmp_path: Path) -> str:
    return _written(request.param, corpus, tmp_path)


def _written(kind: str, corpus: Corpus, folder: Path) -> str:
    if kind == "file":
        corpus.write(folder / "corpus.parquet")
        return str(folder / "corpus.parquet")
    (folder / "corpus").mkdir()
    for number, (begin, end) in enumerate([(0, POEM), (POEM, 50), (50, len(corpus))]):
        corpus.select(range(begin, end)).write(folder / "corpus" / f"shard-{number:05}.parquet")
    return str(folder / "corpus" / "*.parquet")


def _run(heading: str, path: str) -> dict[str, Any]:
    example = EXAMPLES[heading]
    assert example.count("corpus.parquet") >= 1
    assert "laconic" not in example
    space: dict[str, Any] = {}
    exec(EXAMPLES[""], space)
    # The whole path: the JVM of Spark keeps the folder in which an earlier test has started it.
    exec(example.replace("corpus.parquet", path), space)
    assert space["text"] == DOCUMENTS[POEM]
    return space


def _same(rows: Any, expected: Summary) -> bool:
    found = {label: (documents, rules, symbols) for label, documents, rules, symbols in rows}
    return found.keys() == expected.keys() and all(
        found[label] == pytest.approx(expected[label]) for label in expected
    )


def test_there_is_a_test_for_every_example() -> None:
    names = ["", "pandas", "DuckDB", "polars", "Spark", "Hugging Face datasets"]
    assert list(EXAMPLES) == names
    assert all(EXAMPLES.values())


def test_pandas(path: str, expected: Summary) -> None:
    # pandas takes a folder, but no pattern.
    summary = _run("pandas", path.removesuffix("/*.parquet"))["summary"]
    assert _same(summary.reset_index().itertuples(index=False), expected)


def test_duckdb(path: str, expected: Summary) -> None:
    summary = _run("DuckDB", path)["summary"]
    assert _same(summary.fetchall(), expected)


def test_polars(path: str, expected: Summary) -> None:
    summary = _run("polars", path)["summary"]
    assert _same(summary.rows(), expected)


def test_datasets(
    path: str, expected: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    summary = _run("Hugging Face datasets", path)["summary"]
    columns = ["label", "count_all", "rules_mean", "symbols_mean"]
    assert _same(zip(*(summary[name].to_pylist() for name in columns), strict=True), expected)
    assert any((tmp_path / "cache").iterdir())


@pytest.mark.engine
def test_spark(corpus: Corpus, expected: Summary, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        session = running or builder.getOrCreate()
        try:
            for kind in ("file", "folder"):
                summary = _run("Spark", _written(kind, corpus, tmp_path))["summary"]
                assert _same(summary.collect(), expected)
        finally:
            if running is None:
                session.stop()

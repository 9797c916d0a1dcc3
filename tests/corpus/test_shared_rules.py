"""Corpora under a rulebook: files, metadata that are wrong, commands, resuming."""

from __future__ import annotations

import json
import pickle
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import CODECS, RANDOMS

import laconic
from laconic import Alphabet, Codec, Corpus, CorpusError, Rulebook
from laconic.cli import app
from laconic.corpus.compact import from_compact, learn_model, to_compact
from laconic.corpus.schema import About, grammars_from, table_of
from laconic.corpus.stored import StoredGrammars
from laconic.corpus.worker import CompressionJob, compress_table
from laconic.errors import InputError

TEXTS = [f"{'the hen and then ' * k}the {k} hens, no" for k in range(30)]
BOOK = Rulebook.learn(TEXTS, 12)


def corpus(**options: Any) -> Corpus:
    labels = [str(k % 3) for k in range(len(TEXTS))]
    return Corpus.from_documents(TEXTS, labels, rulebook=BOOK, **options)


@given(RANDOMS, CODECS, st.sampled_from(["phrases", "words", "none"]))
def test_tables_come_back(random: Any, options: dict[str, Any], boundary: Any) -> None:
    texts = ["".join(random.choices("ab. ", k=random.randint(0, 40))) for _ in range(5)]
    book = Rulebook.learn(texts, 10, boundary=boundary, alphabet=Alphabet.learn(["ab. "]))
    grammars = laconic.compress_many(texts, **options, rulebook=book)
    about = About(Codec(options.pop("codec"), **options), book.alphabet, rulebook=book)
    table = table_of(grammars, about)
    read = About.of(table.schema)
    assert read == about
    assert read.rulebook is not None
    assert read.rulebook.documents == book.documents
    found = grammars_from(table, read)
    assert [each.text(book.alphabet) for each in found] == texts
    assert found.rulebook == book


def test_files_come_back(tmp_path: Path) -> None:
    made = corpus()
    made.write(tmp_path / "a.parquet")
    read = Corpus.open(tmp_path / "a.parquet")
    assert read.rulebook == BOOK
    assert read.grammars == made.grammars
    assert [each.text() for each in read] == TEXTS
    assert not list(read.problems())
    assert repr(read).startswith("<Corpus: 30 documents, repair over <Rulebook: 12 rules over")
    chosen = read.select([3, 1])
    assert chosen.rulebook == BOOK
    assert [each.text() for each in chosen] == [TEXTS[3], TEXTS[1]]
    assert [*read.select([]).grammars] == []
    expanded = pa.concat_tables(read.documents(as_text=True))
    assert expanded.column("text").to_pylist() == TEXTS
    stored = StoredGrammars(read, buffer=1)
    assert stored.take([5, 2]) == made.grammars.take([5, 2])
    assert stored.take([]).rulebook == BOOK
    table = pa.table({"text": TEXTS})
    assert Corpus.from_table(table, "text", rulebook=BOOK).grammars == made.grammars


@given(RANDOMS, st.integers(0, 30))
def test_compact_columns_come_back(random: Any, rules: int) -> None:
    texts = ["".join(random.choices("ab. ", k=random.randint(0, 60))) for _ in range(5)]
    book = Rulebook.learn(texts[:3], rules, min_documents=1, alphabet=Alphabet.learn(["ab. "]))
    about = About(Codec(), book.alphabet, rulebook=book)
    table = table_of(laconic.compress_many(texts, rulebook=book), about)
    coded = replace(about, model=learn_model(table.slice(0, 2), about))
    compact = to_compact(table, coded)
    back = from_compact(compact, About.of(compact.schema), 1 << 20)
    for name in ("letters", "rules", "sequence", "length"):
        assert back.column(name).to_pylist() == table.column(name).to_pylist()


def test_compact_files(tmp_path: Path, csv: Path) -> None:
    run("compress", csv, "-o", tmp_path / "a.parquet", "--rulebook", 12, "--compact")
    read = Corpus.open(tmp_path / "a.parquet")
    assert read.rulebook == BOOK
    assert [each.text() for each in read] == TEXTS
    assert not list(read.problems())
    corpus().write(tmp_path / "b.parquet", compact=True)
    assert Corpus.open(tmp_path / "b.parquet").grammars == read.grammars
    large = Rulebook(Alphabet.bytes(), [divmod(k, 256) for k in range(32768)])
    with pytest.raises(InputError, match="rulebooks of at most 32,767 rules, not 32,768"):
        Corpus.from_documents(["ab"], rulebook=large).write("never.parquet", compact=True)


def test_jobs_travel_to_other_machines() -> None:
    job = CompressionJob(corpus().about)
    table = pa.table({"text": pa.array(TEXTS, pa.large_string())})
    there = compress_table(table, pickle.loads(pickle.dumps(job))).table
    assert there.equals(compress_table(table, job).table, check_metadata=True)
    assert Corpus.from_arrow(there).grammars == corpus().grammars


def test_features_are_exact() -> None:
    pytest.importorskip("sklearn")
    vectorizer = laconic.GrammarVectorizer((1, 4), lowercase=False)
    wanted = vectorizer.fit_transform(TEXTS).toarray()
    names = vectorizer.get_feature_names_out().tolist()
    assert (vectorizer.fit_transform(corpus()).toarray() == wanted).all()
    assert vectorizer.get_feature_names_out().tolist() == names


def test_without_a_rulebook_nothing_changes() -> None:
    plain = Corpus.from_documents(TEXTS)
    about = json.loads(plain.schema.metadata[b"laconic"])
    assert about["version"] == 1
    assert "rulebook" not in about
    assert plain.rulebook is None


def changed(**fields: Any) -> pa.Table:
    """The corpus with other metadata, signed."""
    table = corpus().to_arrow()
    about = json.loads(table.schema.metadata[b"laconic"])
    book = about["rulebook"] | fields.pop("book", {})
    data = json.dumps(about | {"rulebook": book} | fields).encode()
    return table.replace_schema_metadata(
        {b"laconic": data, b"laconic.crc32": b"%08x" % zlib.crc32(data)}
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"version": 4}, "format version 4; this Laconic reads versions 1 to 3: upgrade Laconic"),
        ({"rulebook": 7}, '"rulebook" must be an object of boundary, documents, fingerprint'),
        ({"book": {"more": 1}}, '"rulebook" must be an object of boundary, documents'),
        ({"book": {"rules": 7}}, 'must be a text, "documents" a number'),
        ({"book": {"documents": "7"}}, 'must be a text, "documents" a number'),
        ({"book": {"boundary": [6]}}, '"boundary" of the rulebook must be a text or a number'),
        ({"book": {"boundary": 12}}, "boundary must be"),
        ({"book": {"boundary": 5}}, '"fingerprint" is not the rulebook\'s'),
        ({"book": {"documents": -7}}, "documents must be an integer of at least 0"),
        ({"book": {"boundary": "lines"}}, "boundary must be"),
        ({"book": {"boundary": "none"}}, '"fingerprint" is not the rulebook\'s'),
        ({"book": {"rules": "!"}}, "its rules cannot be read"),
        ({"book": {"rules": "eJwDAAAAAAE="}}, "a number of the rules, not 6"),
        ({"book": {"rules": BOOK.packed[:20]}}, "its rules cannot be read: they are cut short"),
    ],
)
def test_metadata_that_are_wrong(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(CorpusError, match=reason) as error:
        Corpus.from_arrow(changed(**fields))
    assert len(str(error.value)) < 300


def test_symbols_that_the_rulebook_has_not() -> None:
    table = corpus().to_arrow()
    at = table.schema.get_field_index("letters")
    letters = table.column(at).to_pylist()
    letters[4][-1] = BOOK.size
    bad = pa.array(letters, table.schema.field(at).type)
    broken = Corpus.from_arrow(table.set_column(at, table.schema.field(at), bad))
    assert list(broken.problems()) == [
        f"document 4: letter {BOOK.size} is outside the alphabet 0 … {BOOK.size - 1}"
    ]
    # The same without the rulebook: its symbols mean nothing.
    with pytest.raises(CorpusError, match=r"letter \d+ is outside the alphabet 0 … 255"):
        _ = Corpus.from_arrow(changed(version=1)).grammars


def test_shards_are_under_one_rulebook(tmp_path: Path) -> None:
    corpus().write(tmp_path / "many" / "a.parquet")
    other = Rulebook(BOOK.alphabet, BOOK.rules[:-1])
    Corpus.from_documents(TEXTS, ["x"] * 30, rulebook=other).write(tmp_path / "many" / "b.parquet")
    with pytest.raises(CorpusError, match="its codec, alphabet, rulebook or columns are not"):
        Corpus.open(tmp_path / "many")


def test_a_model_of_another_rulebook_is_refused() -> None:
    made = corpus()
    made.check_like(made.codec, made.alphabet, BOOK)
    with pytest.raises(
        InputError,
        match=r"has the rulebook <Rulebook: 12 rules .* with no rulebook; .*in that way$",
    ):
        made.check_like(made.codec, made.alphabet)


# ---- commands -----------------------------------------------------------------------------------


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def run(*words: object) -> None:
    with pytest.raises(SystemExit) as left:
        app([str(word) for word in words])
    assert left.value.code in (0, None)


def test_commands(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book, first = tmp_path / "book.json", tmp_path / "first.parquet"
    run("rulebook", csv, "-o", book, "--rules", 12)
    assert capsys.readouterr().out == (
        f"{book}: 12 rules from 30 documents, fingerprint {BOOK.fingerprint[:12]}\n"
    )
    assert Rulebook.load(book) == BOOK
    run("compress", csv, "-o", first, "--rulebook", 12)
    assert Corpus.open(first).rulebook == BOOK
    for number, told in enumerate((book, first)):
        again = tmp_path / f"again{number}.parquet"
        run("compress", csv, "-o", again, "--rulebook", told)
        assert again.read_bytes() == first.read_bytes()
    run("rulebook", first, "-o", tmp_path / "from_corpus.json", "--rules", 12)
    assert Rulebook.load(tmp_path / "from_corpus.json") == BOOK
    run("verify", first)
    run("expand", first, "-o", tmp_path / "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == csv.read_bytes()
    capsys.readouterr()
    run("info", first)
    shown = capsys.readouterr().out
    assert f"12 rules, 6 within words, of 30 documents, {BOOK.fingerprint[:12]}" in shown
    assert "depth      " in shown
    run("info", first, "--json")
    assert json.loads(capsys.readouterr().out)["rulebook"]["fingerprint"] == BOOK.fingerprint
    run("show", first, 3)
    assert "under a rulebook of 12 rules" in capsys.readouterr().out


def refused(*words: object) -> str:
    with pytest.raises((InputError, OSError)) as error:
        app([str(word) for word in words], exit_on_error=False)
    return str(error.value)


def test_what_commands_refuse(csv: Path, tmp_path: Path) -> None:
    plain, out = tmp_path / "plain.parquet", tmp_path / "out.parquet"
    run("compress", csv, "-o", plain)
    said = refused("compress", csv, "-o", out, "--rulebook", plain)
    assert said.startswith(f"{plain} is a corpus without a rulebook: learn one with")
    BOOK.save(tmp_path / "book.json")
    said = refused(
        "compress", csv, "-o", out, "--rulebook", tmp_path / "book.json", "--alphabet", "zhang"
    )
    assert said.startswith("the rulebook is over Alphabet.bytes(), not Alphabet.zhang()")
    assert "a rulebook is a .json file" in refused("rulebook", csv, "-o", "book.csv")
    assert "exists" in refused("rulebook", csv, "-o", tmp_path / "book.json")
    assert not out.exists()
    run("compress", csv, "-o", out, "--rulebook", 9)
    said = refused("compress", csv, "-o", out, "--rulebook", 8, "--resume")
    assert said == f"{out} was made with other options: use --force to replace it"


def test_bad_documents_are_left_out_of_learning(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [{"text": text} for text in ("ACGTACGT", "xyz", "ACGACGT")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "a.parquet"
    run("compress", path, "-o", out, "--alphabet", "dna", "--rulebook", 3, "--on-error", "skip")
    assert [each.text("dna") for each in Corpus.open(out)] == ["ACGTACGT", "ACGACGT"]


def test_metadata_stay_small() -> None:
    book = Rulebook.learn(laconic.samples.load("kjv").train.documents, 4096)
    assert len(book.packed) < 4 * len(book)
    assert Rulebook.unpacked(book.alphabet, book.packed, 2048, 7) == book

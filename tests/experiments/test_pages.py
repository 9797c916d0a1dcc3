"""Pages of what presets reach: both views over rulebooks, the default, sizes of rulebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from experiments.automatic_page import AUTO, findings, lines_of, rival_of
from experiments.automatic_page import page as automatic_page
from experiments.paper import grid
from experiments.paper.both import CHARACTERS, SHARED, about_both, both_section, both_table
from experiments.paper.learns import LONGER, learns_section
from experiments.paper.report import page
from experiments.paper.results import add_rows
from experiments.paper.table import Results
from experiments.rulebook_sizes import Size, draw_sizes, sizes_of


def keep(folder: Path, dataset: str, method: str, *accuracies: float, **more: Any) -> None:
    """Add a row for each accuracy, seed by seed; `more` is the same in all of them."""
    for seed, accuracy in enumerate(accuracies):
        figures: dict[str, Any] = {"dataset": dataset, "method": method, "seed": seed}
        figures |= {"test": {"accuracy": accuracy / 100}, "about": {"machine": "a GPU"}}
        figures |= {"config": {}, "protocol": {"departures": []}, "processes": 15}
        add_rows(folder, figures | more)


def views(reading: float, counting: float) -> dict[str, Any]:
    return {"sequence": {"accuracy": reading / 100}, "ngram": {"accuracy": counting / 100}}


def test_both_over_rulebooks_beside_what_it_was(tmp_path: Path) -> None:
    paper, both = tmp_path / "paper", tmp_path / "both"
    keep(paper, "imdb", "both-repair", 91.0, 91.5)
    keep(paper, "imdb", "rival_linear", 92.5)
    keep(paper, "H3", "both-repair", 83.0)
    assert both_section(Results(both), Results(paper)) == []
    assert about_both(Results(both), Results(paper)) == []
    keep(both, "imdb", SHARED, 92.0, 93.0, views=views(90.0, 91.0))
    keep(both, "H3", SHARED, 82.0, views=views(80.0, 82.5))
    results = Results(both), Results(paper)
    lines = both_table(*results, ["imdb", "H3"])
    assert lines[2] == (
        "| imdb | **92.50 ± 0.71** | 90.00 ± 0.00 | 91.00 ± 0.00 | 91.25 ± 0.35 | **92.50** |"
    )
    assert lines[3] == "| H3 | 82.00 | 80.00 | 82.50 | **83.00** | – |"
    told = "\n".join(about_both(*results))
    assert "above both before on 1 of 2 sets" in told
    assert "imdb +1.25, H3 -1.00" in told
    assert "above linear n-grams on 0 of 1 sets" in told
    assert "above the better of its two views on 1 of 2 sets" in told
    assert "On imdb it has 92.50 % and passes our aim of 92.0 %." in told
    assert "of the time" not in told  # nobody was alone
    keep(both, "imdb", CHARACTERS, 91.0, processes=1, epochs={"seconds": [30.0, 10.0]})
    keep(both, "imdb", SHARED, 92.0, processes=1, epochs={"seconds": [20.0, 8.0]})
    told = "\n".join(about_both(Results(both), Results(paper)))
    assert "in 28 s, and in 40 s on characters: 0.70 of the time, which does **not** pass" in told


def test_two_views_have_a_section_and_stay_out_of_the_papers_tables(tmp_path: Path) -> None:
    paper, both = tmp_path / "paper", tmp_path / "both"
    keep(paper, "imdb", "both-repair", 91.23)
    of = [group for group in grid.groups() if group.name == "text"]
    assert "91.23" not in page(Results(paper), of, Results(both))["results.md"]
    keep(both, "imdb", SHARED, 92.34, views=views(90.0, 91.0))
    text = page(Results(paper), of, Results(both))["results.md"]
    assert "92.34" not in text.partition("## Accuracy")[2].partition("## Two views")[0]
    assert "| imdb | **92.34** | 90.00 | 91.00 | 91.23 | – |" in text
    assert "Not all of its settings have been tried" in text  # the row names no choice


def test_who_learns_in_as_many_epochs_as_the_paper(tmp_path: Path) -> None:
    assert learns_section(Results(tmp_path)) == []
    for seed, accuracy, held in ((0, 77.0, [0.5, 0.7, 0.8]), (1, 55.0, [0.5, 0.5, 0.6])):
        figures = {"dataset": "H3", "method": "mlp-lzd", "seed": seed, "config": {}}
        figures |= {"test": {"accuracy": accuracy / 100}, "epochs": {"valid_accuracy": held}}
        figures |= {"about": {"machine": "a GPU"}, "protocol": {"departures": []}}
        add_rows(tmp_path, figures)
    assert "### As many steps" not in "\n".join(learns_section(Results(tmp_path)))
    add_rows(tmp_path / LONGER, figures | {"test": {"accuracy": 0.79}})
    text, longer = "\n".join(learns_section(Results(tmp_path))).split("### As many steps")
    assert "79.0 %, within 5 points of the paper's 80.3 %." in longer
    assert "| H3 | Bi-LSTM-mlp (LZD) | 66.00 ± 15.56 | 80.27 | -14.27 | 2, never |" in text
    assert "66.0 %, **not** within 5 points of the paper's 80.3 %; 77.0 % of the 1 of 2" in text


def test_the_default_beside_its_parts_and_the_linear_rival(tmp_path: Path) -> None:
    paper, auto = tmp_path / "paper", tmp_path / "auto"
    assert "Not measured yet." in automatic_page(Results(auto), Results(paper))
    told = {
        "auto": {
            "counting": {"features": "n-grams", "valid": {"accuracy": 0.9}},
            "reading": {"share": 0.25, "valid": {"accuracy": 0.8}},
        },
        "epochs": {"seconds": [3.0, 4.0]},
    }
    keep(auto, "imdb", AUTO, 92.0, 93.0, views=views(90.0, 91.5), **told)
    keep(auto, "H3", AUTO, 83.0, views=views(83.5, 80.0), **told)
    for method, accuracy, valid in (("rival_words", 93.0, 0.8), ("rival_chars", 90.0, 0.9)):
        keep(paper, "imdb", method, accuracy, config={"valid_accuracy": valid})
    results = Results(auto), Results(paper)
    assert rival_of(Results(paper), "imdb") == ("characters", [90.0])  # as held-out documents say
    lines = lines_of(*results, ["imdb", "H3", "H4"])
    assert [line.name for line in lines] == ["imdb", "H3"]
    assert lines[0].below == pytest.approx(1.0)
    assert lines[0].gain == pytest.approx(2.5)
    said = "\n".join(findings(lines))
    assert (
        "More than 0.2 points below its better part on 1 of 2 sets: H3 -0.50; above it on 1" in said
    )
    assert "Above the linear rival on 1 of 1 sets, by +2.50 points" in said
    assert "On imdb 92.50 %, which passes our aim of 92.0 %" in said
    text = automatic_page(*results)
    row = "92.50 ± 0.71 | 91.50 ± 0.00 | 90.00 ± 0.00 | 25% | +1.00 | 90.00 (characters) | +2.50 |"
    assert f"| imdb | {row}" in text
    assert "| H3 | n-grams | 90.00 | 80.00 | 7 |" in text
    assert "over 1 to 2 seeds" in text
    assert "Trained before" not in text
    about = {"machine": "a GPU", "choices": "others"}
    keep(auto, "H4", AUTO, 83.0, views=views(83.5, 80.0), about=about, **told)
    text = automatic_page(Results(auto), Results(paper))
    assert "Trained before settings were chosen as they are now: H4-0." in text


def test_a_curve_has_the_rows_of_other_tables_where_it_has_none(tmp_path: Path) -> None:
    sizes, converged = tmp_path / "sizes", tmp_path / "converged"
    for folder, method, accuracy, symbols in (
        (sizes, "grc-repair+256", 86.0, 400.0),
        (sizes, "grc-repair+1024", 88.0, 300.0),
        (converged, "grc-repair", 84.0, 509.0),
        (converged, "grc-repair+auto", 90.0, 275.0),
    ):
        keep(folder, "imdb", method, accuracy, documents={"sequence": symbols})
    found = sizes_of(
        "imdb", Results(sizes), Results(converged), ["grc-repair+256", "grc-repair+1024"]
    )
    assert [(s.rules, s.symbols, s.mean) for s in found] == [
        (0, 509.0, 84.0),
        (256, 400.0, 86.0),
        (1024, 300.0, 88.0),
        (4096, 275.0, 90.0),
    ]


def test_a_picture_of_sizes_is_the_same_again_and_names_all_rules() -> None:
    sizes = [Size(0, 170.0, [78.0, 79.0]), Size(256, 139.0, [80.0]), Size(4096, 98.0, [78.5, 78.0])]
    drawn = draw_sizes({"H3": sizes, "imdb": sizes})
    assert drawn == draw_sizes({"H3": sizes, "imdb": sizes})
    ElementTree.fromstring(drawn)
    assert all(word in drawn for word in ("H3", "imdb", "256", "4,096"))
    more = [*sizes, Size(1024, 115.0, [79.0])]
    assert draw_sizes({"H3": more, "imdb": sizes}) != drawn


def test_every_row_of_the_default_has_its_parts() -> None:
    """What the page shows of a part is what a row keeps: rows without views would be blanks."""
    folder = Path(__file__).parents[2] / "experiments" / "results"
    for name in ("auto", "both"):
        for path in (folder / name).glob("*.jsonl"):
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                assert row["views"], path

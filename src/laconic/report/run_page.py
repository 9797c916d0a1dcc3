"""The report's page: sections one below the other, each left out where nothing is known."""

from __future__ import annotations

from collections.abc import Sequence

from laconic.report import comparison, figures, meanings, outcome, tables, views
from laconic.report.facts import RunFacts, mapping, metrics_of, real, tasks_of
from laconic.report.markup import Html, document, element, joined
from laconic.report.numbers import count, duration, megabytes, score_of
from laconic.show import how_many
from laconic.tasks import Metric


def page(runs: Sequence[RunFacts], title: str | None = None, by: str | None = None) -> str:
    """Return the whole HTML document; `by` is the setting by which runs are compared first."""
    heading, tiles = title or _title(runs), _tiles(runs)
    sections = {
        "summary": ("Summary", Html() if tiles else tables.summary(runs)),
        "by-setting": ("By setting", comparison.comparison(runs, by)),
        "views": ("Counting and reading", views.views(runs)),
        "curves": ("Training", _training(runs)),
        "outcome": ("What it gets right and wrong", outcome.outcomes(runs)),
        "corpus": ("Corpus", tables.corpus(runs)),
        "settings": ("Settings", tables.settings(runs)),
        "repeat": ("Repeat it", _commands(runs)),
        "made-with": ("Made with", tables.provenance(runs)),
    }
    body = [
        element("section", element("h2", name), content, id=key)
        for key, (name, content) in sections.items()
        if content
    ]
    told = meanings.glossary(joined(tiles, *body), metrics_of(runs))
    if told:
        body.append(element("section", element("h2", "What the figures mean"), told, id="meanings"))
    header = element(
        "header",
        element("p", "Laconic · training report", class_="kicker"),
        element("h1", heading),
        element("p", _lead(runs), class_="lead"),
        tiles,
    )
    footer = element("footer", "Written by Laconic, which learns from grammar-compressed text.")
    return document(heading, header, element("main", *body), footer)


def _title(runs: Sequence[RunFacts]) -> str:
    if len(runs) > 3:
        return f"{len(runs)} runs"
    return " and ".join(run.title for run in runs)


def _lead(runs: Sequence[RunFacts]) -> str:
    """What was trained, as far as it is known."""
    documents = {real(mapping(each.about.get("corpus")).get("documents")) for each in runs}
    known = [each for each in documents if each is not None]
    facts = [
        _aim(runs),
        how_many(round(known[0]), "document") if len(known) == len(documents) == 1 else "",
        tables.listed("codec", [each.codec for each in runs]),
        tables.listed("composer", [each.composer for each in runs]),
        tables.listed("sequence model", [each.sequence_model for each in runs]),
        tables.listed("read by", [each.read_by for each in runs]),
        tables.listed("counts", [each.counted for each in runs]),
    ]
    return " · ".join(filter(None, facts))


def _aim(runs: Sequence[RunFacts]) -> str:
    number, tasks = len(runs[0].classes), {run.task for run in runs}
    labels = {mapping(run.about.get("corpus")).get("label") for run in runs}
    label = labels.pop() if len(labels) == 1 else None
    # What is usually called so says nothing.
    column = f" (column {label})" if isinstance(label, str) and label not in ("", "label") else ""
    for task in tasks_of(runs) if len(tasks) == 1 else ():
        if not task.things:
            return f"{task.aim}{column}"
        if number:
            return f"{task.aim} {how_many(number, *task.things)}{column}"
    return ""


def _tiles(runs: Sequence[RunFacts]) -> Html:
    """The figures that matter, large; where there are several runs the table shows them."""
    if len(runs) > 1:
        return Html()
    run = runs[0]
    tiles = [
        *(
            (
                meanings.of_metric(metric),
                score_of(metric)(run.score(metric.name)),
                _beside(metric, run),
            )
            for metric in metrics_of(runs).values()
            if metric.reported
        ),
        (meanings.linked("time", "training"), duration(run.seconds), _speed(run)),
        (meanings.linked("memory", "peak memory"), megabytes(run.peak_memory_mb), _reserved(run)),
    ]
    shown = [
        element("div", element("dt", name), element("dd", value, element("small", note)))
        for name, value, note in tiles
        if value != "–"
    ]
    listed = element("dl", *shown, class_="tiles")
    return joined(listed, tables.held_out(runs)) if shown else Html()


def _beside(metric: Metric, run: RunFacts) -> str:
    other, value = metrics_of([run]).get(metric.beside), run.score(metric.beside)
    return f"{other.words}: {score_of(other)(value)}" if other and value is not None else ""


def _speed(run: RunFacts) -> Html:
    speed = run.documents_per_second
    return meanings.linked("speed", f"{count(speed)} documents/s") if speed is not None else Html()


def _reserved(run: RunFacts) -> Html:
    held = run.reserved_memory_mb
    return meanings.linked("reserved", f"{megabytes(held)} reserved") if held else Html()


def _training(runs: Sequence[RunFacts]) -> Html:
    colours = [figures.COLOURS[k % len(figures.COLOURS)] for k in range(len(runs))]
    losses = [
        figures.Curve(run.curve(f"{part}_loss"), colour, part == "train")
        for part in ("train", "valid")
        for run, colour in zip(runs, colours, strict=True)
    ]
    panels: dict[str, Html] = {}
    if any(curve.points for curve in losses):
        panels[meanings.linked("loss", "Loss")] = figures.curves("loss", "Loss", losses)
    for metric in [task.leading()[0] for task in tasks_of(runs)]:
        name = f"{metric.words[:1].upper()}{metric.words[1:]} on held-out documents"
        scores = [
            figures.Curve(run.curve("valid", metric.name), colour, kept=run.best_epoch)
            for run, colour in zip(runs, colours, strict=True)
        ]
        if any(curve.points for curve in scores):
            held = meanings.linked("held-out", "held-out documents")
            drawn = figures.curves(metric.name.replace("_", "-"), name, scores, metric.share)
            panels[joined(meanings.of_metric(metric, begins=True), " on ", held)] = drawn
    if not panels:
        return Html()
    pair = [element("div", element("h3", name), panel) for name, panel in panels.items()]
    titles = [run.title for run in runs] if len(runs) > 1 else ["held-out documents"]
    legend = [
        element("li", element("i", style=f"--colour:{colour}"), element("span", title))
        for run, title, colour in zip(runs, titles, colours, strict=True)
        if run.epochs
    ]
    if any(curve.points for curve in losses[: len(runs)]):
        legend.append(element("li", element("i", class_="dashed"), "while training"))
    if any(run.best_epoch for run in runs):
        legend.append(element("li", element("b"), "the epoch that was kept"))
    return element(
        "figure", element("div", *pair, class_="pair"), element("ul", *legend, class_="legend")
    )


def _commands(runs: Sequence[RunFacts]) -> Html:
    commands = list(dict.fromkeys(run.command for run in runs if run.command))
    return element("pre", element("code", "\n".join(commands))) if commands else Html()

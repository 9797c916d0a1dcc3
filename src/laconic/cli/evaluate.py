"""laconic evaluate: how good a trained model is on a corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from laconic.cli.flags import (
    Device,
    InputPaths,
    Json,
    Label,
    MaybeOut,
    OnError,
    Reading,
    RunFolder,
)
from laconic.cli.inputs import LeftOut, ReadingFlags, labelled_corpus
from laconic.cli.progress import tell
from laconic.corpus import Corpus
from laconic.errors import InputError, visible
from laconic.files import check_output, write_json
from laconic.show import how_many
from laconic.tasks import Metric, Task

_WIDEST = 12  # classes of a confusion matrix that is printed


def evaluate(
    run: RunFolder,
    inputs: InputPaths,
    /,
    *,
    out: MaybeOut = None,
    reading: Reading = None,
    label: Label = None,
    batch_size: int | None = None,
    on_error: OnError = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Evaluate a trained model on documents with labels: a corpus, or raw files of any format.

    laconic evaluate runs/reviews test.parquet

    laconic evaluate runs/reviews test.csv --text text --label stars

    laconic evaluate runs/reviews test.parquet --json -o metrics.json

    For classes: accuracy, macro-F1, Matthews' correlation, confusion and calibration error; for
    several labels: F1; for numbers: MAE, RMSE, R² and Spearman's correlation.

    Parameters
    ----------
    out
        A .json file for all figures.
    batch_size
        Documents in a batch; by default as in training.

    """
    if out is not None:
        check_output(out, force=True, makes_folders=True)
    figures, metrics = _figures(run, inputs, reading, label, batch_size, on_error, device)
    if out is not None:
        write_json(out, figures)
    if as_json:
        print(json.dumps(figures))
    else:
        _print_table(figures, metrics)


def _figures(
    folder: Path,
    inputs: list[str],
    reading: ReadingFlags | None,
    label: str | None,
    batch_size: int | None,
    on_error: OnError,
    device: str,
) -> tuple[dict[str, Any], Sequence[Metric]]:
    from laconic.training.accelerator import accelerator_for
    from laconic.training.holdout import labelled_dataset, targets_of
    from laconic.training.run import Run
    from laconic.training.streaming import with_stream
    from laconic.training.validation import forward_pass

    run, path = Run.open(folder), ", ".join(inputs)
    corpus = labelled_corpus(inputs, reading, label, run, on_error)
    config = replace(run.config, device=device, trackers=(), stream=None)
    if batch_size is not None:
        config = replace(config, batch_size=batch_size)
    if not len(corpus):
        raise InputError(f"{path} has no documents")
    if (left_out := LeftOut.wanted(on_error, run.about.get("corpus", {}))) is not None:
        corpus = _of_known_labels(corpus, run.task, left_out)
        left_out.tell(corpus, path)
    try:
        corpus.check_like(run.codec, run.alphabet, run.rulebook)
        buffer = with_stream(config, [corpus]).buffer_bytes
        dataset, task = labelled_dataset(corpus, run.task, run.task.name, buffer)
    except InputError as error:
        cure = "; leave it out, as --on-error skip does" if error.document is not None else ""
        raise InputError(error.reason + cure, file=str(path), document=error.document) from None
    model = run.model(str(accelerator_for(config, None).device))
    if not run.finished:
        tell(f"the training of {folder} is not finished; this is its model so far")
    outputs = forward_pass(model, config).outputs(dataset)
    known = {"run": str(folder), "corpus": str(path), "classes": list(task.classes)}
    return known | task.evaluate(outputs, targets_of(dataset)), task.metrics


def _of_known_labels(corpus: Corpus, task: Task, left_out: LeftOut) -> Corpus:
    """Return the documents whose labels the training knew; the others are left out."""
    kept = []
    for row, label in enumerate(corpus.labels):
        try:
            task.numbers([label])
        except InputError as error:
            left_out(InputError(error.reason, document=row))
            kept.append(False)
        else:
            kept.append(True)
    return corpus if all(kept) else corpus.filter(kept)


def _print_table(figures: dict[str, Any], metrics: Sequence[Metric]) -> None:
    print(f"{figures['run']} on {figures['corpus']}: {how_many(figures['documents'], 'document')}")
    for metric in metrics:
        if (value := figures[metric.name]) is not None:
            print(f"  {metric.words:20} {value:.4f}")
    if "per_class" not in figures:
        return
    names = [visible(each["class"])[:20] for each in figures["per_class"]]
    wide = max(5, *map(len, names))
    print(f"\n  {'class':{wide}}  documents  predicted  precision  recall      F1")
    for name, each in zip(names, figures["per_class"], strict=True):
        print(
            f"  {name:{wide}}  {each['documents']:9,}  {each['predicted']:9,}  "
            f"{each['precision']:9.4f}  {each['recall']:6.4f}  {each['f1']:6.4f}"
        )
    if "confusion" in figures and len(names) <= _WIDEST:
        column = max(7, *map(len, names))
        print(
            f"\n  {'is / predicted':{max(wide, 14)}}  " + "  ".join(f"{n:>{column}}" for n in names)
        )
        for name, row in zip(names, figures["confusion"], strict=True):
            print(f"  {name:{max(wide, 14)}}  " + "  ".join(f"{n:{column},}" for n in row))

"""What a run's model says of a document, and why, on the document's page."""

from __future__ import annotations

import os
from functools import lru_cache
from threading import Lock
from typing import Any

from laconic.errors import InputError, LaconicError, visible
from laconic.explore.frame import address, labels_of, short
from laconic.explore.library import Entry, Library
from laconic.inference.explanation import explain
from laconic.inference.predictor import Predictor
from laconic.report.explanation_page import explained, probabilities, said_by, spelled
from laconic.report.markup import Html, element, joined

_LONGEST = 1 << 18  # letters of a document that is explained: all of it is expanded for that
_STRONGEST, _KEPT = 20, 32  # words of a document; answers that are not asked for again


class Answers:
    """A run's model; one document is asked about at a time."""

    def __init__(self, run: str | os.PathLike[str], library: Library, device: str) -> None:
        self._predictor = Predictor.from_run(run, device)
        self._predictor.check_corpus(library.corpus)
        self._lock = Lock()
        self._said = lru_cache(_KEPT)(self._about)

    def about(self, entry: Entry, why: bool) -> Html:
        """Return the prediction of a document, with what decided if `why` is asked.

        What cannot be told is said instead of it.
        """
        return self._said(entry, why)

    def _about(self, entry: Entry, why: bool) -> Html:
        try:
            if entry.length > _LONGEST:
                raise InputError(
                    f"Documents of more than {_LONGEST:,} letters are not asked about."
                )
            with self._lock:
                return self._explained(entry) if why else self._predicted(entry)
        except (LaconicError, MemoryError) as error:
            return element("p", short(error), role="status", class_="note")

    def _predicted(self, entry: Entry) -> Html:
        outputs = self._predictor.outputs([entry.grammar])
        task = self._predictor.task
        said = _said(task.predictions(outputs)[0], entry)
        found = task.probabilities(outputs)[0].tolist() if task.classes else []
        ways = probabilities(dict(zip(task.classes, found, strict=False)))
        where = address("document", row=entry.row, explain=1)
        why = element("p", element("a", "Why? Show what decided", href=f"{where}#prediction"))
        return joined(said, ways, why)

    def _explained(self, entry: Entry) -> Html:
        found = explain(self._predictor, entry.grammar)
        said = _said(found.prediction, entry, said_by(found))
        return joined(said, probabilities(found.probabilities or {}), explained(found, _STRONGEST))


def _said(prediction: Any, entry: Entry, views: str = "") -> Html:
    """Return the prediction, and what the label says of it, if there is one."""
    told = prediction if isinstance(prediction, list) else [prediction]
    label: list[str] = []
    if entry.labels and set(map(str, told)) == set(entry.labels):
        label = [" – as its label says"]
    elif entry.labels:
        label = [" – its label is ", *labels_of(entry.labels)]
    answer = element("strong", short(spelled(prediction)))
    return element("p", answer, *label, visible(views), class_="said")

"""What the figures of a report mean: told on the page itself, where each of them leads."""

from __future__ import annotations

import re
from collections.abc import Mapping

from laconic.report.markup import Html, element
from laconic.tasks import Metric

# Key, and title and text; metrics of tasks bring their own.
_MEANINGS = {
    "time": (
        "Time",
        "From the first epoch to the last, with what tells how good each was; of automatic "
        "training from its beginning to its end.",
    ),
    "speed": (
        "Documents/s",
        "How many documents were learned from in a second, in the epoch of middle speed: the first "
        "one also pays for what is done once.",
    ),
    "memory": (
        "Peak memory",
        "The most that was in use at a time: on a GPU by tensors, else by the whole process.",
    ),
    "reserved": (
        "Reserved memory",
        "The most that PyTorch held of a GPU, tensors and what it keeps ready for more: what "
        "nvidia-smi shows, and what must be free for such a run.",
    ),
    "letters": ("Letters, n", "What a document has as text: letters, or bytes."),
    "sequence": (
        "Sequence, n′",
        "What a model reads of a document: the symbols that its grammar leaves. n / n′ says how "
        "many times shorter than the text that is.",
    ),
    "rules": ("Rules", "Of a document's own grammar; those of a rulebook are not counted."),
    "loss": (
        "Loss",
        "What training makes small: how unlikely the right answers are to the model, or how far "
        "numbers are off. It falls before scores rise. If it rises on held-out documents while it "
        "falls in training, the model learns by heart.",
    ),
    "held-out": (
        "Held-out documents",
        "A part of the documents, asked about before anything is learned from them, if it ever is. "
        "If they told which epoch is kept, their scores are a little too high; those of documents "
        "that had no say (laconic evaluate) are not.",
    ),
    "confusion": (
        "Confusion",
        "A row for each true class, and where its documents were put. The diagonal is right; a "
        "dark cell beside it is a pair of classes that the model takes for each other.",
    ),
    "calibration": (
        "Calibration",
        "Of the documents of which a model is 80 % sure, 80 % should be right: that is on the "
        "line. Below it the model is too sure. The expected calibration error is the mean "
        "distance.",
    ),
    "per-class": (
        "Precision, recall, F1",
        "Precision: the share of a class's predictions that are right. Recall: the share of its "
        "documents that are found. F1 is their harmonic mean, low if either is.",
    ),
    "views": (
        "Counting and reading",
        "Counting is a linear model of n-grams; reading goes through the sequence in order. A "
        "view's share is its part of what both say together: reading's is what lowers the loss of "
        "held-out documents most, by more than chance. 0 % means that it was left out.",
    ),
    "calibrated": (
        "Loss, calibrated",
        "A view's loss on held-out documents at its best scale, so that views that are more or "
        "less sure of themselves can be compared.",
    ),
    "by-setting": (
        "By setting",
        "Runs that have the same value of a setting are one row: the mean of each score, and in "
        "brackets the lowest and the highest. Rows differ in other settings, too, unless the runs "
        "were made to differ in this one alone.",
    ),
}


def linked(key: str, title: str) -> Html:
    """Return a title that leads to what it means."""
    return element("a", title, href=f"#means-{key}", class_="means")


def of_metric(metric: Metric, begins: bool = False) -> str:
    """Return a metric's words, which may begin a title, and lead to what they mean if it says."""
    words = _titled(metric.words) if begins else metric.words
    return linked(_key(metric), words) if metric.meaning else words


def glossary(body: str, metrics: Mapping[str, Metric]) -> Html:
    """Return the meanings to which some part of a page leads, in the order of the page."""
    known = dict(_MEANINGS)
    for each in metrics.values():
        known[_key(each)] = (_titled(each.words), each.meaning)
    asked = dict.fromkeys(re.findall(r'href="#means-([\w-]+)"', body))
    told = [
        element(
            "div", element("dt", known[key][0]), element("dd", known[key][1]), id=f"means-{key}"
        )
        for key in asked
    ]
    return element("dl", *told, class_="meanings") if told else Html()


def _titled(words: str) -> str:
    return words[:1].upper() + words[1:]


def _key(metric: Metric) -> str:
    return f"metric-{metric.name.replace('_', '-')}"

"""Two small real tasks that come with the package, to try it without a download.

>>> from laconic import samples
>>> samples.names()
('bacteria', 'kjv')
>>> bacteria = samples.load("bacteria")
>>> bacteria.task
'Which species of bacteria does this stretch of DNA come from?'
>>> len(bacteria.train), len(bacteria.test)
(1920, 480)
>>> len(bacteria.train.documents[0])
800

PROVENANCE.md, beside this file, says where the texts come from and how they were cut;
`tools/make_samples.py` in the repository makes them again.
"""

from __future__ import annotations

from dataclasses import dataclass

from laconic.errors import InputError

__all__ = ["Sample", "Split", "load", "names"]


@dataclass(frozen=True, repr=False)
class Split:
    """Documents and the label of each, in the same order."""

    documents: list[str]
    labels: list[str]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)

    def __repr__(self) -> str:
        return f"<Split: {len(self)} documents>"


@dataclass(frozen=True)
class Sample:
    """A labelled task with a fixed split.

    `task` is the question that a label answers; `labels` are the possible answers, in the order
    in which a person would list them.
    """

    name: str
    task: str
    labels: tuple[str, ...]
    train: Split
    test: Split


_TASKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bacteria": (
        "Which species of bacteria does this stretch of DNA come from?",
        (
            "Escherichia coli",
            "Helicobacter pylori",
            "Staphylococcus aureus",
            "Vibrio cholerae",
        ),
    ),
    "kjv": (
        "Which part of the King James Bible does this passage come from?",
        ("law", "history", "poetry", "prophets", "gospels", "letters"),
    ),
}


def names() -> tuple[str, ...]:
    """Return the names that `load` accepts, in alphabetical order."""
    return tuple(sorted(_TASKS))


def load(name: str) -> Sample:
    """Return the sample of that name, unpacked anew from the package: about 2 MB, 0.1 s.

    Raises ValueError, with the names there are, for any other name.

    >>> kjv = load("kjv")
    >>> kjv.labels
    ('law', 'history', 'poetry', 'prophets', 'gospels', 'letters')
    >>> sorted(set(kjv.train.labels)) == sorted(kjv.labels)
    True
    >>> load("iliad")
    Traceback (most recent call last):
        ...
    laconic.errors.InputError: no sample is named 'iliad'; there are: bacteria, kjv
    """
    if name not in _TASKS:
        raise InputError(f"no sample is named {name!r}; there are: {', '.join(names())}")
    import lzma
    from importlib.resources import files

    task, labels = _TASKS[name]
    splits = {"train": Split([], []), "test": Split([], [])}
    packed = files(__name__).joinpath(f"{name}.tsv.xz").read_bytes()
    for line in lzma.decompress(packed).decode("utf-8").splitlines():
        split, label, document = line.split("\t")
        splits[split].documents.append(document)
        splits[split].labels.append(label)
    return Sample(name, task, labels, train=splits["train"], test=splits["test"])

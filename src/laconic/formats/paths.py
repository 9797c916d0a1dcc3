"""Columns that the paths of files give: the path, and a label that is a part of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from laconic.errors import InputError
from laconic.formats.compression import split_suffix
from laconic.formats.format import ReadError

_PARTS = {"folder", "name"}


def label_of(part: str) -> Callable[[str], str]:
    r"""Return the function of a path that gives its label; ReadError for a path that has none.

    `part` is "folder", the name of the folder that the file is in; "name", that of the file without
    its suffixes; or a regular expression that is searched for in the path, whose first group, or
    else all of which, is the label.

    >>> label_of("folder")("mail/spam/17.txt.gz"), label_of("name")("mail/spam.txt.gz")
    ('spam', 'spam')
    >>> label_of(r"_(\d)\.txt")("reviews/12_5.txt")
    '5'
    """
    if part in _PARTS:
        return _folder if part == "folder" else _name
    try:
        pattern = re.compile(part)
    except re.error as error:
        raise InputError(
            f"--label-from-path {part!r} is neither folder nor name, and no regular expression: "
            f"{error}"
        ) from None

    def searched(path: str) -> str:
        found = pattern.search(path)
        label = found and found[1 if pattern.groups else 0]
        if not label:
            raise ReadError(f"its path has no part {part!r}, which is to be the label", file=path)
        return str(label)

    return searched


def _folder(path: str) -> str:
    folder = PurePosixPath(path).parent.name
    if not folder:
        raise ReadError("its path has no folder, which is to be the label", file=path)
    return folder


def _name(path: str) -> str:
    plain = PurePosixPath(path)
    return (plain.with_suffix("") if split_suffix(path)[1] else plain).stem

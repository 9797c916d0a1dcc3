"""Pictures of the docs: the same bytes each time, whole SVG files, labels that do not hide."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.command import write_pages
from benchmarks.pictures import Bar, Label, bars, plain_numbers, saved, style, titled, write_labels

GROUPS = {"one & only": [Bar(3.0, "3", "#000000")], "other": [Bar(9.0, "99", "#ffffff", cut=True)]}


def test_pictures_are_the_same_each_time_and_stand_alone() -> None:
    text = bars("Bars", GROUPS, {"#000000": "black"})
    assert bars("Bars", GROUPS, {"#000000": "black"}) == text
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Bars", "one & only", "other", "3", "99", "black"} == set(words)
    assert "date" not in text.lower()


def test_labels_keep_apart() -> None:
    with style():
        figure = titled("Labels", 3)
        axes = figure.subplots()
        axes.plot([1, 10, 11, 100], [1, 10, 11, 100], marker="o")
        plain_numbers(axes)
        write_labels(axes, [Label("aaaa", 10, 10, "#000000"), Label("bbbb", 11, 11, "#000000")])
        text = saved(figure)
        figure.draw_without_rendering()
        one, other = (each.get_window_extent() for each in axes.texts)
    assert not one.overlaps(other)
    assert len(re.findall(">(?:aaaa|bbbb)</text>", text)) == 2


def test_a_picture_is_out_of_date_if_its_words_are(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "a.svg"
    write_pages({path: bars("Bars", GROUPS, {})}, check=False)
    before = path.read_text()
    path.write_text(before.replace("M ", "M  "))  # as another matplotlib may have it
    write_pages({path: before}, check=True)
    with pytest.raises(SystemExit, match=r"out of date: .*a\.svg; run `make docs`"):
        write_pages({path: before.replace(">99<", ">98<")}, check=True)
    write_pages({path: before}, check=False)
    assert path.read_text() == before

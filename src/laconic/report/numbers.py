"""Numbers as people read them; a dash for what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable

from laconic.alphabet import Alphabet
from laconic.tasks import Metric

_NONE = "–"


def decimals(value: float | None, places: int = 3) -> str:
    """Return a score: 0.912; an exponent where it is too large or too small for that.

    >>> decimals(0.91234), decimals(None), decimals(123456789.0), decimals(-0.00001)
    ('0.912', '–', '1.23e+08', '-1e-05')
    """
    if value is None:
        return _NONE
    if value and not 10**-places <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{value:,.{places}f}"


def percent(value: float | None) -> str:
    """Return a share in percent.

    >>> percent(0.8749), percent(None)
    ('87.5 %', '–')
    """
    return _NONE if value is None else f"{100 * value:.1f} %"


def score_of(metric: Metric) -> Callable[[float | None], str]:
    """Return how a metric's values are shown."""
    return percent if metric.share else decimals


def count(value: float | None) -> str:
    """Return a whole number as it is, another with one digit after the point.

    >>> count(1234567), count(12.34), count(250.0), count(None)
    ('1,234,567', '12.3', '250', '–')
    """
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.1f}"


def duration(seconds: float | None) -> str:
    """Return a time.

    >>> duration(4.21), duration(125), duration(7322), duration(None)
    ('4.2 s', '2 min 5 s', '2 h 2 min', '–')
    """
    if seconds is None:
        return _NONE
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def megabytes(value: float | None) -> str:
    """Return a size given in megabytes.

    >>> megabytes(812.4), megabytes(20480.0), megabytes(None)
    ('812 MB', '20.5 GB', '–')
    """
    if value is None:
        return _NONE
    return f"{value:,.0f} MB" if value < 1000 else f"{value / 1000:,.1f} GB"


def letters_of(alphabet: Alphabet) -> str:
    """Return what letters documents have, in words rather than as Python.

    >>> letters_of(Alphabet.bytes()), letters_of(Alphabet.learn(["abba"]))
    ('bytes', '3 characters')
    >>> letters_of(Alphabet.dna()), letters_of(Alphabet.dna("letter", ignore_case=True))
    ('dna', 'dna with a fifth letter')
    """
    if alphabet.name == "characters":
        return f"{alphabet.size:,} characters"
    fifth = alphabet.name == "dna" and alphabet.other is not None
    return f"{alphabet.name} with a fifth letter" if fifth else alphabet.name


def setting(value: object) -> str:
    """Return a setting's value: texts as they are, the rest as JSON.

    >>> setting("grc"), setting(None), setting(True), setting(0.001), setting([1, 2])
    ('grc', 'none', 'yes', '0.001', '[1, 2]')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

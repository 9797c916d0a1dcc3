"""The pages of laconic explain: one HTML file each, which needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laconic.inference.explanation import Explanation, ScoredSymbol
    from laconic.inference.phrase_table import Phrase

_FOR, _AGAINST = (67, 147, 195), (214, 96, 77)  # told apart by nearly every eye
# What is no character of a page or would command a terminal, as a picture of itself.
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS |= dict.fromkeys([*range(0x7F, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.document { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #ccc;
  border-radius: .4rem; padding: .8rem; font-family: Georgia, serif; line-height: 1.8; }
.document span { border-radius: .15rem; }
.legend { display: flex; gap: .5rem; align-items: center; font-size: .85rem; }
.legend i { flex: 1; height: .8rem; max-width: 16rem; border-radius: .2rem;
  background: linear-gradient(90deg, rgb(214,96,77), #fff, rgb(67,147,195)); }
table { border-collapse: collapse; } td, th { padding: .15rem .6rem; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.phrase { font-family: Georgia, serif; white-space: pre-wrap; overflow-wrap: anywhere; }
.bar { background: rgb(67,147,195); height: .7rem; min-width: 1px; }
.muted { color: #666; font-size: .85rem; }
"""


def shade(score: float, strongest: float) -> tuple[int, int, int]:
    """Return the colour of a score: white for 0, blue above, red below.

    >>> shade(0.0, 2.0), shade(2.0, 2.0), shade(-2.0, 2.0), shade(0.0, 0.0)
    ((255, 255, 255), (67, 147, 195), (214, 96, 77), (255, 255, 255))
    """
    share = min(1.0, abs(score) / strongest) if strongest else 0.0
    red, green, blue = _FOR if score > 0 else _AGAINST
    return (
        round(255 - share * (255 - red)),
        round(255 - share * (255 - green)),
        round(255 - share * (255 - blue)),
    )


def visible(text: str) -> str:
    r"""Return text without characters that a page or a terminal would act on.

    >>> visible("a\x1b[31m\n")
    'a␛[31m\n'
    """
    return text.translate(_CONTROLS)


def shared(phrase: Phrase) -> str:
    """Return what else a counted phrase's score is of, to be put behind it."""
    if not phrase.others:
        return ""
    more = f" and {len(phrase.others) - 3} more" if len(phrase.others) > 3 else ""
    return f" (together with {', '.join(map(repr, phrase.others[:3]))}{more})"


def document_page(found: Explanation, source: str, most: int) -> str:
    """Return the page of one document: its text coloured, and the `most` strongest phrases."""
    what = "the value" if found.target is None else f"“{_safe(str(found.target))}”"
    strongest = max((abs(piece.score) for piece in found.pieces), default=0.0)
    explained = "The scores add up to the difference." if found.method == "integrated" else ""
    without = " and no n-grams" if found.ngrams else ""
    body = [
        f"<h1>Prediction: {_safe(_spelled(found.prediction))}</h1>",
        f'<p class="muted">{_safe(source)} · {found.method}</p>',
        _probabilities(found.probabilities),
        f'<h2>What spoke for {what}</h2><p class="legend"><span>against</span><i></i>'
        "<span>for</span></p>",
        f'<div class="document">{"".join(_span(piece, strongest) for piece in found.pieces)}</div>',
        f'<p class="muted">The model gives {found.value:.4g}, and {found.base:.4g} for a document '
        f"of zero vectors{without}. {explained}</p>",
        f"<h2>Strongest phrases</h2>{_phrases(found.phrases()[:most], 'score')}",
    ]
    if found.ngrams:
        # What is counted is told apart from symbols: its scores are exact, and overlap.
        body.append(f"<h2>Strongest n-grams</h2>{_phrases(found.ngrams[:most], 'score')}")
    return _page(f"{_spelled(found.prediction)} – {source}", body)


def lists_page(lists: Mapping[Any, Sequence[Phrase]], source: str) -> str:
    """Return the page of the phrases that speak most for each class."""
    body = [
        "<h1>Phrases that speak most for each class</h1>",
        f'<p class="muted">{_safe(source)}</p>',
    ]
    for name, phrases in lists.items():
        body.append(f"<h2>{_safe(str(name))}</h2>{_phrases(phrases, 'mean score')}")
    return _page(f"Phrases – {source}", body)


def _page(title: str, body: Iterable[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _safe(text: str) -> str:
    return escape(visible(text))


def _spelled(prediction: Any) -> str:
    if isinstance(prediction, list):
        return ", ".join(map(str, prediction)) or "no label"
    return f"{prediction:.6g}" if isinstance(prediction, float) else str(prediction)


def _span(piece: ScoredSymbol, strongest: float) -> str:
    lines = [repr(piece.text), f"score {piece.score:+.4f}"]
    if piece.rule is not None:
        lines.append(f"symbol {piece.symbol} = {piece.rule[0]!r} + {piece.rule[1]!r}")
    colour = ",".join(map(str, shade(piece.score, strongest)))
    title = _safe("\n".join(lines))
    return f'<span style="background:rgb({colour})" title="{title}">{_safe(piece.text)}</span>'


def _probabilities(probabilities: Mapping[Any, float] | None) -> str:
    if not probabilities:
        return ""
    rows = [
        f'<tr><td>{_safe(str(name))}</td><td class="number">{value:.1%}</td>'
        f'<td style="width:12rem"><div class="bar" style="width:{value:.1%}"></div></td></tr>'
        for name, value in sorted(probabilities.items(), key=lambda pair: -pair[1])
    ]
    return f"<table>{''.join(rows)}</table>"


def _phrases(phrases: Sequence[Phrase], score: str) -> str:
    if not phrases:
        return '<p class="muted">None occurs often enough.</p>'
    rows = [
        f'<tr><td class="number">{phrase.score:+.4f}</td><td class="number">{phrase.count:,}</td>'
        f'<td class="phrase">{_safe(repr(phrase.text) + shared(phrase))}</td></tr>'
        for phrase in phrases
    ]
    head = f"<tr><th>{score}</th><th>times</th><th>phrase</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"

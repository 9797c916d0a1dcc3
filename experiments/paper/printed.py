"""What the paper prints, and others about the same sets: figures to stand beside ours."""

from __future__ import annotations

__all__ = ["COMPRESSION", "DNA", "SPEED_AT_FIXED_MEMORY", "TEXT_ERRORS"]

# Table 1: mean letters, and by codec the mean length of sequences and the mean number of rules.
COMPRESSION: dict[str, dict[str, tuple[float, float]]] = {
    "Sogou": {"none": (2690, 0), "repair": (480, 232), "lzd": (524, 484)},
    "Yelp P.": {"none": (725, 0), "repair": (303, 93.1), "lzd": (255, 224)},
    "Yelp F.": {"none": (732, 0), "repair": (306, 94.1), "lzd": (257, 226)},
    # Ranges over the ten sets, 170–171 and 45–46, 119–120 and 114–115: their middles.
    "DNA": {"none": (500, 0), "repair": (170.5, 45.5), "lzd": (119.5, 114.5)},
}

_SETS = ("H3", "H4", "H3K9ac", "H3K14ac", "H4ac")
_MORE = ("H3K4me1", "H3K4me2", "H3K4me3", "H3K36me3", "H3K79me3")


def _row(*accuracies: float) -> dict[str, float]:
    return dict(zip(_SETS + _MORE, accuracies, strict=True))


# Table 2: mean test accuracy, %.
DNA: dict[str, dict[str, float]] = {
    "seq-CNN": _row(88.99, 88.09, 78.84, 78.09, 77.40, 74.20, 71.50, 74.69, 79.26, 83.00),
    "characters": _row(84.55, 86.85, 74.60, 74.23, 71.41, 68.03, 67.80, 64.70, 76.18, 79.21),
    "mlp-repair": _row(78.82, 79.42, 70.17, 57.11, 56.89, 55.18, 61.93, 53.36, 59.70, 71.29),
    "mlp-lzd": _row(80.27, 78.05, 70.55, 58.37, 59.03, 55.28, 61.36, 53.28, 54.46, 60.38),
    "dual_gru-repair": _row(80.55, 84.50, 71.61, 64.93, 61.61, 63.84, 63.59, 58.34, 67.32, 74.87),
    "dual_gru-lzd": _row(81.49, 82.86, 70.66, 64.29, 62.73, 64.78, 64.66, 58.12, 66.14, 73.99),
}

# Table 3: mean test error, %, on Sogou, Yelp P. and Yelp F.
TEXT_ERRORS: dict[str, tuple[float, float, float]] = {
    "Char-CNN (large)": (4.88, 5.89, 39.62),
    "characters": (4.18, 6.21, 39.14),
    "mlp-repair": (6.10, 10.03, 45.63),
    "mlp-lzd": (6.77, 11.33, 47.21),
    "dual_gru-repair": (5.14, 8.83, 43.98),
    "dual_gru-lzd": (5.77, 9.26, 44.25),
}

# "With a fixed size of GPU memory … around" so many times faster than characters.
SPEED_AT_FIXED_MEMORY = {"pinyin": 5.0, "yelp": 2.0, "dna": 3.0}

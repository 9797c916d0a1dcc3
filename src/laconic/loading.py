"""`laconic.load`: the model of a run as a fitted scikit-learn estimator."""

from __future__ import annotations

import os

import numpy as np

from laconic.estimator import GrammarClassifier, GrammarRegressor
from laconic.inference.predictor import Predictor


def load(run: str | os.PathLike[str], device: str = "auto") -> GrammarClassifier | GrammarRegressor:
    """Return the model of a run's folder, here or in S3, as a fitted estimator.

    It predicts, gives probabilities, explains and scores; it can be pickled, and be a part of a
    pipeline. RunError says what is missing in the folder.
    """
    predictor = Predictor.from_run(run, device)
    task = predictor.task
    kind = GrammarClassifier if task.classes else GrammarRegressor
    loaded: GrammarClassifier | GrammarRegressor = kind(device=device)
    loaded.model_, loaded.task_, loaded.rulebook_ = predictor.model, task, predictor.rulebook
    loaded.codec_, loaded.alphabet_ = predictor.codec, predictor.alphabet
    loaded.best_epoch_, loaded.history_, loaded.n_iter_ = 0, [], 0
    if task.classes:
        loaded.classes_ = np.array(task.classes)
    return loaded

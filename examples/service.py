"""A web service of a trained model; it needs fastapi and uvicorn.

python examples/service.py runs/reviews --port 8000
curl -H 'Content-Type: application/json' -d '{"text": "rude and stale"}' localhost:8000/predict
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import laconic


class Document(BaseModel):
    """What is asked about."""

    text: str


def service(run: str) -> FastAPI:
    """Return an application that answers for the model of a run."""
    app, model = FastAPI(title="Laconic"), laconic.load(run, device="cpu")
    model.predict([""])  # what is done once is done before anybody waits for it

    # One document at a time, in the order in which they come: a model is asked by one thread.
    @app.post("/predict")
    async def predict(document: Document) -> dict[str, Any]:
        said: dict[str, Any] = {"prediction": model.predict([document.text]).tolist()[0]}
        if isinstance(model, laconic.GrammarClassifier):
            chances = model.predict_proba([document.text])[0].tolist()
            said["probabilities"] = dict(zip(model.classes_.tolist(), chances, strict=True))
        return said

    @app.post("/explain")
    async def explain(document: Document) -> dict[str, Any]:
        words = model.explain(document.text).words()
        return {"words": [{"text": each.text, "score": each.score} for each in words[:20]]}

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="a folder that laconic train wrote")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    torch.set_num_threads(1)  # for one document, more only wait for each other
    uvicorn.run(service(given.run), port=given.port, log_level="warning")

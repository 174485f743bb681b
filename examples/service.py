"""A web service that scores rows: ``SPBN_MODEL=wine.spbn uvicorn service:app``.

It needs the extra ``spbn[serve]``. The model is loaded once, before the first request.
"""

import os
from typing import Any

from fastapi import FastAPI, HTTPException

import spbn

#: The values of a row, by column.
Row = dict[str, float | str | bool]


def service(path: str) -> FastAPI:
    """Make the service of a model file."""
    scorer = spbn.load_scorer(path)
    app = FastAPI(title=os.path.basename(path))

    @app.get("/variables")
    def variables() -> dict[str, list[str]]:
        """Name the columns that a row must have, each with its levels, if it is discrete."""
        return {variable.name: list(variable.levels) for variable in scorer.variables}

    @app.post("/score")
    def score(rows: list[Row]) -> list[dict[str, Any]]:
        """Score rows: the log-density of each, and the values to blame for one that is unusual."""
        try:
            found = scorer.scores(rows)
        except spbn.SpbnError as error:
            raise HTTPException(422, str(error)) from error
        return [
            {
                "logpdf": one.logpdf,
                "blame": [{"node": r.node, "value": r.value, "drop": r.drop} for r in one.blame],
            }
            for one in found
        ]

    return app


if "SPBN_MODEL" in os.environ:
    app = service(os.environ["SPBN_MODEL"])

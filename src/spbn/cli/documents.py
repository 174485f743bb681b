"""What commands find, as the plain data of their JSON documents; `terminal` prints the same in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import FloatArray
    from spbn.diagnostics.classification import Predictions
    from spbn.diagnostics.unusual import UnusualRows
    from spbn.inference import Posterior
    from spbn.learning.stability import Confidence
    from spbn.network import BayesianNetwork
    from spbn.nodes.base import Description
    from spbn.timeseries.forecast import Forecast
    from spbn.timeseries.network import DynamicNetwork


def of_network(network: BayesianNetwork | DynamicNetwork, *, details: bool = False) -> dict[str, Any]:
    """Describe a network: its nodes in the order of sampling, how they were found and from what.

    Parameters
    ----------
    details
        Also give the parameters of every node.
    """
    from spbn.timeseries.network import DynamicNetwork

    if isinstance(network, DynamicNetwork):
        return {
            "lags": network.lags,
            "series": network.series,
            "time": network.time,
            "transition": of_network(network.transition, details=details),
            "static": of_network(network.static, details=details),
        }
    structure, record = network.structure, network.record
    nodes = []
    for name in network.order:
        if name not in network.cpds:
            continue
        cpd = network.cpds[name]
        description = cpd.describe()
        node = {"name": name, "type": cpd.type.name, "parents": list(structure.parents(name))}
        nodes.append(node | (_of_description(description) if details else {"formula": description.formula}))
    return {
        "nodes": nodes,
        "inputs": list(structure.inputs),
        "arcs": [list(arc) for arc in structure.arcs],
        "open_directions": [list(arc) for arc in structure.undecided_arcs()],
        "rows": record.rows,
        "seconds": record.seconds,
        "search": _of_search(network.search),
        "type_search": _of_search(network.type_search),
        **({"settings": dict(record.settings), "versions": dict(record.versions)} if details else {}),
    }


def _of_description(description: Description) -> dict[str, Any]:
    found: dict[str, Any] = {"formula": description.formula}
    if description.tables:
        found["tables"] = [
            {name: getattr(table, name) for name in ("title", "rows", "columns", "values")}
            for table in description.tables
        ]
    if description.shares:
        found["weights"] = dict(description.shares)
    if description.cases:
        found["cases"] = {name: _of_description(case) for name, case in description.cases.items()}
    return found


def _of_search(search: Any) -> dict[str, Any] | None:
    from spbn.search import PCResult, SearchResult

    if isinstance(search, PCResult):
        pdag = search.pdag
        return {
            "tests": sum(search.tests_run),
            "arcs": [list(arc) for arc in pdag.arcs],
            "edges": [list(edge) for edge in pdag.edges],
        }
    if not isinstance(search, SearchResult):
        return None
    return {
        "score": search.score,
        "validation_score": search.validation_score,
        "steps": len(search.steps),
        "best": search.best,
        "stop_reason": search.stop_reason,
    }


def of_rows(rows: pd.DataFrame) -> dict[str, Any]:
    """Give a table, row by row."""
    return {"rows": [dict(zip(map(str, rows.columns), row, strict=True)) for row in _values(rows)]}


def _values(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    import pandas as pd

    # Columns of categories and the like have holes of their own.
    return [
        tuple(None if pd.api.types.is_scalar(value) and pd.isna(value) else value for value in row)
        for row in rows.itertuples(index=False, name=None)
    ]


def of_posterior(
    posterior: Posterior, share: float, event: Mapping[str, Any], probability: float | None, error: float
) -> dict[str, Any]:
    """Give what is likely of every unknown variable, and how far that can be trusted."""
    means, deviations, medians = posterior.mean(), posterior.std(), posterior.median()
    intervals = posterior.interval(share)
    variables: dict[str, Any] = {}
    for variable in posterior.variables:
        name = variable.name
        if variable.is_discrete:
            shares = posterior.probabilities(name)
            variables[name] = {"probabilities": {str(level): p for level, p in shares.items()}}
        else:
            low, high = intervals.T[name]
            variables[name] = {
                "mean": means[name],
                "std": deviations[name],
                "median": medians[name],
                "low": low,
                "high": high,
            }
    answer: dict[str, Any] = {
        "given": dict(posterior.evidence),
        "do": dict(posterior.do),
        "variables": variables,
        "share": share,
        "method": posterior.method,
        "effective_size": posterior.effective_size,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
    }
    if probability is not None:
        answer["event"] = {"conditions": event, "probability": probability, "standard_error": error}
    return answer


def of_forecast(ahead: Forecast, share: float, event: Mapping[str, Any]) -> dict[str, Any]:
    """Give what is likely of every variable, series by series and step by step."""
    ends = [0.5 - share / 2, 0.5, 0.5 + share / 2]
    means, quantiles = ahead.mean(), ahead.quantile(ends)
    columns: dict[str, dict[str, Any]] = {}
    for variable in ahead.variables:
        name = variable.name
        if variable.is_discrete:
            found = ahead.probabilities(name)
            columns[name] = {"probabilities": {str(level): found[level] for level in variable.levels}}
        else:
            numbers = zip(("low", "median", "high"), ends, strict=True)
            columns[name] = {"mean": means[name], **{key: quantiles[name, end] for key, end in numbers}}
    steps = []
    for place, index in enumerate(means.index):
        where = index if isinstance(index, tuple) else (index,)
        row = {key: _at(values, place) for key, values in columns.items()}
        steps.append({**dict(zip(means.index.names, where, strict=True)), "variables": row})
    document: dict[str, Any] = {"steps": ahead.steps, "n": ahead.n, "share": share, "rows": steps}
    if event:
        chances = {str(name): ahead.probability(dict(event), series=name) for name in ahead.series}
        document["event"] = {
            "conditions": event,
            "probability": chances if ahead.series_name else next(iter(chances.values())),
            "standard_error": {name: chance_error(p, ahead.n) for name, p in chances.items()}
            if ahead.series_name
            else chance_error(next(iter(chances.values())), ahead.n),
        }
    return document


def chance_error(probability: float, draws: float) -> float:
    """Return the standard error of a probability that was counted among draws."""
    return math.sqrt(probability * (1.0 - probability) / max(draws, 1.0))


def _at(values: Mapping[str, Any], place: int) -> dict[str, Any]:
    return {
        key: _at(inner, place) if isinstance(inner, Mapping) else inner.iloc[place]
        for key, inner in values.items()
    }


def of_comparison(table: pd.DataFrame) -> dict[str, Any]:
    """Give the models, the best first, with names that programs like."""
    named = table.rename(columns=lambda name: str(name).replace("-", "_").replace(" ", "_"))
    return {"models": of_rows(named)["rows"]}


def of_unusual(found: UnusualRows, labels: Sequence[object], *, by_node: bool) -> dict[str, Any]:
    """Give the least likely rows and the nodes to blame; with all contributions if they are asked for."""
    rows = []
    for row in found.rows:
        blame = [{"node": r.node, "value": r.value, "drop": r.drop} for r in row.reasons]
        line = {"row": labels[row.position], "logpdf": row.logpdf, "blame": blame}
        if by_node:
            line["by_node"] = dict(zip(found.nodes, found.contributions[:, row.position], strict=True))
        rows.append(line)
    return {
        "rows": len(found.logpdf),
        "mean": found.mean,
        "scored": found.scoring.value,
        "unusual": rows,
    }


def of_observed(logpdf: FloatArray, frame: pd.DataFrame, *, top: int) -> dict[str, Any]:
    """Give the least likely rows of a table with holes, and what is missing in them."""
    holes = frame.isna()
    rows = []
    for place in logpdf.argsort(kind="stable")[:top].tolist():
        absent = list(holes.columns[holes.iloc[place]])
        rows.append({"row": frame.index[place], "logpdf": logpdf[place], "missing": absent})
    return {
        "rows": len(logpdf),
        "incomplete": int(holes.any(axis=1).sum()),
        "mean": logpdf.mean(),
        "scored": "by what is there",
        "unusual": rows,
    }


def of_predictions(found: Predictions) -> dict[str, Any]:
    """Give what a classifier predicts and, if the truth is known, how good that is."""
    document: dict[str, Any] = {
        "classes": list(found.classes),
        "rows": len(found.probabilities),
        "predictions": of_rows(found.frame)["rows"],
    }
    if found.assessment is not None:
        document |= {
            "accuracy": found.assessment.accuracy,
            "log_loss": found.assessment.log_loss,
            "brier": found.assessment.brier,
            "calibration_error": found.assessment.calibration_error,
            "confusion": found.assessment.confusion,
        }
    return document


def of_confidence(found: Confidence) -> dict[str, Any]:
    """Give all arcs that some replicate has, and the types of nodes."""
    believed, notes = set(found.structure().arcs), found.open_directions()
    arcs = of_rows(found.arcs)["rows"]
    for arc in arcs:
        pair = (arc["source"], arc["target"])
        arc |= {"believed": pair in believed, "open": notes.get(pair)}
    return {
        "replicates": len(found.structures),
        "rows": found.rows,
        "nodes": list(found.nodes),
        "threshold": found.threshold,
        "arcs": arcs,
        "types": of_rows(found.types)["rows"],
    }

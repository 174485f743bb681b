"""What a report says: computed here, and drawn elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spbn.diagnostics.data_check import ColumnCheck, DataCheck, check_data
from spbn.diagnostics.model import (
    EarlyStop,
    FitCheck,
    Importance,
    Strengths,
    check_fit,
    explain_early_stop,
    measure_importance,
)
from spbn.diagnostics.rows import Evidence, Source, UnusualRows, find_unusual, gather_rows
from spbn.errors import ArgumentError, quoted
from spbn.learning.settings import LearnSettings
from spbn.learning.stability import Confidence
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType, registered
from spbn.plots.pictures import shortened
from spbn.report.explorer import JointSample, joint_sample
from spbn.report.html import (
    MINUS,
    Html,
    card,
    count,
    counted,
    heading,
    join,
    long_table,
    model_name,
    node_link,
    number,
    page_head,
    plural,
    table,
    table_row,
    tag,
    type_key,
)
from spbn.search import SearchResult


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that the sections of a report show.

    Attributes
    ----------
    model
        What kind of network it is, in words.
    training_rows
        How many rows it was fitted to, if that is known.
    importance
        Scores and losses, or the reason why there are none.
    checks
        The fit of the nodes that could be checked.
    unusual
        The least likely rows, if rows were given.
    early_stop
        Why the search ended with less than it could have found, if it seems so.
    sample
        Rows drawn from the network, to explore; None if some of its nodes are inputs.
    data
        What the rows look like, before holes were filled; None if there are no rows.
    confidence
        How often replicates of the search agree, if that was computed.
    """

    network: BayesianNetwork
    title: str
    model: str
    evidence: Evidence
    training_rows: int | None
    importance: Importance | str
    checks: dict[str, FitCheck]
    unusual: UnusualRows | None
    early_stop: EarlyStop | None
    sample: JointSample | None
    data: DataCheck | None = None
    confidence: Strengths | None = None

    @property
    def types(self) -> dict[NodeType, int]:
        """How many nodes have a type, for every type that is there, in the order of the registry."""
        found = list(self.network.structure.types.values())
        return {node_type: found.count(node_type) for node_type in registered() if node_type in found}


def describe(
    network: BayesianNetwork,
    *,
    data: Any = None,
    title: str | None = None,
    confidence: Confidence | Strengths | None = None,
) -> Content:
    """Compute everything that the report on a network says."""
    if isinstance(confidence, Confidence):
        confidence = Strengths.of(confidence)
    if confidence is not None and set(confidence.nodes) != set(network.nodes):
        raise ArgumentError(
            f"confidence must be about the nodes of the network, {quoted(network.nodes)}. It is about "
            f"{quoted(confidence.nodes)}."
        )
    checked = None if data is None else check_data(data, network.variables)
    if checked is not None and checked.missing:
        data = network.impute(data, seed=0)
    evidence = gather_rows(network, data)
    if checked is None and evidence.table is not None:
        kept = [v for v in network.variables if v.name in evidence.table.names]
        checked = check_data(evidence.table, kept)
    model = model_name(network)
    return Content(
        network=network,
        title=model if title is None else title,
        model=model,
        evidence=evidence,
        training_rows=_training_rows(network),
        importance=measure_importance(network, evidence),
        checks=check_fit(network, evidence),
        unusual=find_unusual(network, evidence) if evidence.source is Source.GIVEN else None,
        early_stop=explain_early_stop(network, evidence) if evidence.source is Source.GIVEN else None,
        sample=None if network.structure.inputs else joint_sample(network),
        data=checked,
        confidence=confidence,
    )


def _training_rows(network: BayesianNetwork) -> int | None:
    """Return how many rows a network was fitted to, by its record or by what its nodes keep."""
    kept = (cpd.kept_rows for cpd in network.cpds.values())
    return network.record.rows or next((table.rows for table in kept if table is not None), None)


# ----------------------------------------------------------------------------------------------------
# The head of a report, and what came in: the data check, and where the network comes from.


SHOWN_COLUMNS = 12
DATA_TITLE = "Data check"
LARGEST_WHOLE = 1e9  # whole numbers that are written out
UNKNOWN = "not recorded"
LONGEST_SETTING = 80  # letters of a setting; the table has all of it


def summary(content: Content) -> Html:
    """Write the title, what the network is, and the main numbers."""
    return page_head(
        content.title,
        f"{_sentence(content)} {how_learned(content)}",
        _main_numbers(content),
        tag(
            "ul",
            *(
                tag(
                    "li",
                    type_key(node_type),
                    tag("b", _capital(node_type.appearance.label)),
                    f": {node_type.appearance.sentence}",
                )
                for node_type in content.types
            ),
            class_="kinds",
        ),
    )


def _main_numbers(content: Content) -> list[tuple[str, str]]:
    structure, unusual = content.network.structure, content.unusual
    numbers = [counted(len(structure.nodes), "node"), counted(len(structure.arcs), "arc")]
    numbers += [
        counted(number_, f"{node_type.appearance.label} node") for node_type, number_ in content.types.items()
    ]
    if content.training_rows is not None:
        numbers.append(counted(content.training_rows, "training row"))
    if unusual is not None and content.evidence.rows != content.training_rows:
        numbers.append(counted(content.evidence.rows, "given row"))
    cross_validated = isinstance(content.importance, Importance) and not content.importance.left_out
    if unusual is not None and not unusual.left_out:
        numbers.append(("log-likelihood per given row", number(unusual.mean)))
    elif unusual is not None and not cross_validated:
        numbers.append(("log-likelihood per row, left out", number(unusual.mean)))
    if isinstance(content.importance, Importance) and cross_validated:
        score = sum(content.importance.scores.values())
        numbers.append(("log-likelihood per row, cross-validated", number(score)))
    return numbers


def _sentence(content: Content) -> str:
    structure, types = content.network.structure, content.types
    model = "" if content.title == content.model else f"{content.model}. "
    size = f"{plural(len(structure.nodes), 'node')} and {plural(len(structure.arcs), 'arc')}"
    first, *others = types
    if not others:
        subject = "every node" if len(structure.nodes) > 1 else "the node"
        kinds = f"{subject} is {first.appearance.label}"
    else:
        *parts, last = [f"{count(number_)} {one.appearance.label}" for one, number_ in types.items()]
        kinds = f"{', '.join(parts)} and {last}"
    return f"{model}{size}; {kinds}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def data_section(content: Content) -> Html:
    """List the columns, those with something to look at first."""
    found = content.data
    if found is None:
        return heading("data", DATA_TITLE, "Not shown: no rows were given. Give data to see this.")
    # Stable: otherwise they are in the order of the table.
    columns = sorted(found.columns, key=lambda column: (not column.notes, not column.missing))
    rows = [_row(content, column) for column in columns]
    heads = [
        ("Column", ""),
        ("Read as", ""),
        ("Missing", "num"),
        ("Distinct", "num"),
        ("Lowest, median, highest", ""),
        ("To check", ""),
    ]
    return join(
        heading("data", DATA_TITLE, _words(content, found)),
        tag("div", long_table(heads, rows, SHOWN_COLUMNS), class_="card columns"),
    )


def _words(content: Content, found: DataCheck) -> str:
    which = (
        "The rows given" if content.evidence.source is Source.GIVEN else "The training rows that nodes keep"
    )
    words = [f"{which}: {plural(found.rows, 'row')}, {plural(len(found.columns), 'column')}."]
    if found.missing:
        are = "value is" if found.missing == 1 else "values are"
        words.append(
            f"{count(found.missing)} {are} missing, in {plural(found.incomplete, 'row')}; for this report "
            "they were filled once, with likely values."
        )
    else:
        words.append("Nothing is missing.")
    if found.repeated:
        repeat = "repeats" if found.repeated == 1 else "repeat"
        words.append(f"{plural(found.repeated, 'row')} {repeat} an earlier one.")
    if found.unused:
        words.append(f"Not used: {', '.join(found.unused)}.")
    noted = sum(bool(column.notes) for column in found.columns)
    if noted:
        words.append(f"{plural(noted, 'column')} to check, listed first.")
    return " ".join(words)


def _row(content: Content, column: ColumnCheck) -> Html:
    if column.extent is not None:
        extent = ", ".join(map(_written, column.extent))
    elif column.commonest is not None:
        level, share = column.commonest
        extent = f"most often {level} ({100 * share:.0f} %)"
    else:
        extent = ""
    return table_row(
        node_link(content.network, column.name),
        column.read_as,
        (count(column.missing) if column.missing else "–", "num missing"),
        (count(column.distinct), "num different"),
        extent,
        ("; ".join(column.notes), "look"),
    )


def _written(value: float) -> str:
    is_short = value == round(value) and abs(value) < LARGEST_WHOLE
    return count(round(value)).replace("-", MINUS) if is_short else number(value)


def provenance_section(content: Content) -> Html:
    """Show what is on record; nothing is guessed."""
    record = content.network.record
    hint = (
        "What is needed to learn this network again: the same data, settings, seed and versions give the "
        "same result."
    )
    facts: list[tuple[str, str]] = [
        ("Data", _size(record.rows, record.columns)),
        ("SHA-256 of the data", tag("code", record.data_hash) if record.data_hash else UNKNOWN),
        ("Settings", _changed(record.settings)),
        ("Seed", str(record.seed) if record.seed is not None else UNKNOWN),
        ("Versions", ", ".join(f"{name} {text}" for name, text in record.versions.items()) or UNKNOWN),
        ("Time taken", _duration(record.seconds)),
    ]
    return card(
        "provenance",
        "Provenance",
        hint,
        tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts"),
        _all_settings(record.settings),
    )


def _size(rows: int | None, columns: tuple[str, ...]) -> str:
    if rows is None:
        return UNKNOWN
    return f"{plural(rows, 'row')}, {plural(len(columns), 'column')}"


def _changed(settings: Mapping[str, Any]) -> str:
    """List the settings that are not the defaults."""
    if not settings:
        return UNKNOWN
    defaults = LearnSettings().plain()  # those of `fit` are the same
    changed = [
        f"{name} = {shortened(_text(value), LONGEST_SETTING)}"
        for name, value in settings.items()
        if name != "seed" and (name not in defaults or value != defaults[name])
    ]
    return ", ".join(changed) or "all at their defaults"


def _all_settings(settings: Mapping[str, Any]) -> Html:
    if not settings:
        return Html("")
    rows = [table_row(name, _text(value)) for name, value in settings.items()]
    return tag("details", tag("summary", "All settings"), table([("Setting", ""), ("Value", "")], rows))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value) if value != round(value, 4) else f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    minutes = round(seconds / 60)
    return plural(minutes, "minute") if minutes < 120 else f"{count(round(minutes / 60))} hours"


STOPPED = {
    "no operator improves the score": "no further change improved the score",
    "patience": "the validation score had not improved for too many steps in a row",
    "max_steps": "it had reached the maximum number of steps",
    "max_seconds": "its time was up",
    "interrupted": "it was interrupted",
}


def how_learned(content: Content) -> str:
    """Say in a sentence how the structure was found."""
    search = content.network.search
    if isinstance(search, SearchResult):
        why = STOPPED.get(search.stop_reason, search.stop_reason)
        return f"Learned by hill climbing in {plural(len(search.steps), 'step')}; it stopped because {why}."
    if _is_pc(search):
        tests = _tests(search)
        by_tests = f" with {plural(sum(tests), 'independence test')}" if tests else ""
        types = content.network.type_search
        then = (
            f", then its node types by hill climbing in {plural(len(types.steps), 'step')}" if types else ""
        )
        return f"Learned by PC{by_tests}{then}."
    return "How its structure was found is not recorded."


def _is_pc(search: Any) -> bool:
    return hasattr(search, "pdag")


def _tests(search: Any) -> list[int]:
    """Return the number of tests for each number of given variables, or one number, or nothing."""
    run = getattr(search, "tests_run", ())
    try:
        return [int(run)] if isinstance(run, int) else [int(n) for n in run]
    except (TypeError, ValueError):
        return []

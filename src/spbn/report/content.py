"""What a report says, computed; and of that the head, the data check and the provenance, written."""

from __future__ import annotations

import json
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
from spbn.nodes.base import NodeType
from spbn.plots.pictures import shortened
from spbn.report.explorer import JointSample, joint_sample
from spbn.report.html import (
    MINUS,
    Cell,
    Html,
    capital,
    card,
    count_types,
    counted,
    details,
    facts,
    heading,
    join,
    long_table,
    model_name,
    node_link,
    number,
    page_head,
    percentage,
    plural,
    table,
    table_row,
    tag,
    type_key,
)
from spbn.search import SearchResult

SHOWN_COLUMNS = 12
LARGEST_WHOLE = 1e9  # whole numbers that are written out
UNKNOWN = "not recorded"
LONGEST_SETTING = 80  # letters of a setting; the table has all of it
STOPPED = {
    "no operator improves the score": "no further change improved the score",
    "patience": "the validation score had not improved for too many steps in a row",
    "max_steps": "it had reached the maximum number of steps",
    "max_seconds": "its time was up",
    "interrupted": "it was interrupted",
}


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
        return count_types(self.network.structure)

    @property
    def discrete(self) -> set[str]:
        """The names of the discrete variables."""
        return {variable.name for variable in self.network.variables if variable.is_discrete}

    def rows_used(self, used: int) -> str:
        """Say which rows something was computed from."""
        source, rows = self.evidence.source, self.evidence.rows
        if used < rows:
            return f"{used:,} of {source.value} (drawn at random from {rows:,})"
        return f"{source.value} ({used:,})" if source is not Source.NONE else source.value


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


def summary(content: Content) -> Html:
    """Write the title, what the network is, and the main numbers."""
    kinds = [
        tag("li", type_key(one), tag("b", capital(one.appearance.label)), f": {one.appearance.sentence}")
        for one in content.types
    ]
    lead = f"{_sentence(content)} {how_learned(content)}"
    return page_head(content.title, lead, _main_numbers(content), tag("ul.kinds", *kinds))


def _main_numbers(content: Content) -> list[tuple[str, str]]:
    structure, unusual, importance = content.network.structure, content.unusual, content.importance
    numbers = [counted(len(structure.nodes), "node"), counted(len(structure.arcs), "arc")]
    numbers += [counted(nodes, f"{one.appearance.label} node") for one, nodes in content.types.items()]
    if content.training_rows is not None:
        numbers.append(counted(content.training_rows, "training row"))
    if unusual is not None and content.evidence.rows != content.training_rows:
        numbers.append(counted(content.evidence.rows, "given row"))
    is_scored = isinstance(importance, Importance) and not importance.left_out
    if unusual is not None and not unusual.left_out:
        numbers.append(("log-likelihood per given row", number(unusual.mean)))
    elif unusual is not None and not is_scored:
        numbers.append(("log-likelihood per row, left out", number(unusual.mean)))
    if isinstance(importance, Importance) and is_scored:
        numbers.append(("log-likelihood per row, cross-validated", number(sum(importance.scores.values()))))
    return numbers


def _sentence(content: Content) -> str:
    structure, types = content.network.structure, content.types
    model = "" if content.title == content.model else f"{content.model}. "
    size = f"{plural(len(structure.nodes), 'node')} and {plural(len(structure.arcs), 'arc')}"
    *parts, last = [f"{nodes:,} {one.appearance.label}" for one, nodes in types.items()]
    kinds = f"{', '.join(parts)} and {last}"
    if not parts:
        subject = "every node" if len(structure.nodes) > 1 else "the node"
        kinds = f"{subject} is {next(iter(types)).appearance.label}"
    return f"{model}{size}; {kinds}."


def how_learned(content: Content) -> str:
    """Say in a sentence how the structure was found."""
    search = content.network.search
    if isinstance(search, SearchResult):
        why = STOPPED.get(search.stop_reason, search.stop_reason)
        return f"Learned by hill climbing in {plural(len(search.steps), 'step')}; it stopped because {why}."
    if not hasattr(search, "pdag"):
        return "How its structure was found is not recorded."
    tests = independence_tests(search)
    by_tests = f" with {plural(sum(tests), 'independence test')}" if tests else ""
    types = content.network.type_search
    then = f", then its node types by hill climbing in {plural(len(types.steps), 'step')}" if types else ""
    return f"Learned by PC{by_tests}{then}."


def independence_tests(search: Any) -> list[int]:
    """Return the number of tests for each number of given variables, or one number, or nothing."""
    run = getattr(search, "tests_run", ())
    try:
        return [int(run)] if isinstance(run, int) else [int(n) for n in run]
    except (TypeError, ValueError):
        return []


def data_section(content: Content) -> Html:
    """List the columns, those with something to look at first."""
    found, title = content.data, "Data check"
    if found is None:
        return heading("data", title, "Not shown: no rows were given. Give data to see this.")
    # Stable: otherwise they are in the order of the table.
    columns = sorted(found.columns, key=lambda column: (not column.notes, not column.missing))
    numbers = [("Missing", "num"), ("Distinct", "num")]
    heads: list[Cell] = ["Column", "Read as", *numbers, "Lowest, median, highest", "To check"]
    rows = long_table(heads, [_column_row(content, column) for column in columns], SHOWN_COLUMNS)
    return join(heading("data", title, _data_words(content, found)), tag("div.card.columns", rows))


def _data_words(content: Content, found: DataCheck) -> str:
    is_given = content.evidence.source is Source.GIVEN
    which = "The rows given" if is_given else "The training rows that nodes keep"
    words = [f"{which}: {plural(found.rows, 'row')}, {plural(len(found.columns), 'column')}."]
    if found.missing:
        are = "value is" if found.missing == 1 else "values are"
        words.append(
            f"{found.missing:,} {are} missing, in {plural(found.incomplete, 'row')}; for this report "
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


def _column_row(content: Content, column: ColumnCheck) -> Html:
    extent = ", ".join(map(_written, column.extent or ()))
    if column.commonest is not None:
        level, share = column.commonest
        extent = f"most often {level} ({percentage(share)})"
    return table_row(
        node_link(content.network, column.name),
        column.read_as,
        (f"{column.missing:,}" if column.missing else "–", "num missing"),
        (f"{column.distinct:,}", "num different"),
        extent,
        ("; ".join(column.notes), "look"),
    )


def _written(value: float) -> str:
    is_short = value == round(value) and abs(value) < LARGEST_WHOLE
    return f"{round(value):,}".replace("-", MINUS) if is_short else number(value)


def provenance_section(content: Content) -> Html:
    """Show what is on record; nothing is guessed."""
    record = content.network.record
    hint = (
        "What is needed to learn this network again: the same data, settings, seed and versions give the "
        "same result."
    )
    size = (
        None
        if record.rows is None
        else f"{plural(record.rows, 'row')}, {plural(len(record.columns), 'column')}"
    )
    defaults = LearnSettings().plain()  # those of `fit` are the same
    changed = ", ".join(
        f"{name} = {shortened(_setting(value), LONGEST_SETTING)}"
        for name, value in record.settings.items()
        if name != "seed" and (name not in defaults or value != defaults[name])
    )
    known = {
        "Data": size,
        "SHA-256 of the data": tag("code", record.data_hash) if record.data_hash else None,
        "Settings": (changed or "all at their defaults") if record.settings else None,
        "Seed": None if record.seed is None else str(record.seed),
        "Versions": ", ".join(f"{name} {text}" for name, text in record.versions.items()),
        "Time taken": None if record.seconds is None else _duration(record.seconds),
    }
    rows = [table_row(name, _setting(value)) for name, value in record.settings.items()]
    settings = details("All settings", table(["Setting", "Value"], rows)) if rows else ""
    shown = facts((name, text or UNKNOWN) for name, text in known.items())
    return card("provenance", "Provenance", hint, shown, settings)


def _setting(value: Any) -> str:
    if isinstance(value, float):
        return number(value) if value != round(value, 4) else f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    minutes = round(seconds / 60)
    return plural(minutes, "minute") if minutes < 120 else f"{round(minutes / 60):,} hours"

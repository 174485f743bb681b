"""What a report says, computed; and its sections, but for those on the graph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spbn.diagnostics.blame import SAMPLED_ROWS, Reason
from spbn.diagnostics.data_check import ColumnCheck, DataCheck, check_data
from spbn.diagnostics.model import (
    GOOD,
    EarlyStop,
    FitCheck,
    Importance,
    Strengths,
    check_fit,
    explain_early_stop,
    measure_importance,
)
from spbn.diagnostics.populations import describe_populations
from spbn.diagnostics.rows import (
    Evidence,
    Scoring,
    Source,
    UnusualRows,
    find_unusual,
    gather_rows,
)
from spbn.errors import ArgumentError, quoted
from spbn.inference.batch import class_probabilities
from spbn.learning.settings import MODELS, LearnSettings
from spbn.learning.stability import Confidence
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.plots.pictures import shortened
from spbn.report import html as h
from spbn.report.charts import density_histogram, line_chart, small_histogram, uniform_histogram
from spbn.report.explorer import JointSample, joint_sample
from spbn.search import SearchResult

SHOWN_COLUMNS = 12
SHOWN_DIFFERENCES = 4  # of a population
LARGEST_WHOLE = 1e9  # whole numbers that are written out
UNKNOWN = "not recorded"
LONGEST_SETTING = 80  # letters of a setting; the table has all of it
STOPPED = {
    "no operator improves the score": "no further change improved the score",
    "patience": "the validation score had not improved for too many steps in a row",
    "max_steps": "it had reached the maximum number of steps",
    "max_seconds": "its time was up",
    "interrupted": "it was interrupted",
    "no better order was found": "no better order of the nodes was found",
}
ALARMS = (0.01, 0.001)  # shares of new rows that raise a false alarm
SCORED = {
    Scoring.AS_GIVEN: "The rows are scored as new ones, by the network as it is.",
    Scoring.LEFT_OUT_ALONE: (
        "These are the training rows: each is scored by the network fitted to all other rows."
    ),
    Scoring.LEFT_OUT_BY_FOLD: (
        "These are the training rows: each is scored by the network fitted to nine tenths of the rows, "
        "without it."
    ),
}


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that the sections of a report show."""

    network: BayesianNetwork
    title: str
    model: str  # what kind of network it is, in words
    evidence: Evidence
    training_rows: int | None  # as far as that is known
    importance: Importance | str  # or the reason why there is none
    checks: dict[str, FitCheck]  # of the nodes that could be checked
    unusual: UnusualRows | None  # if rows were given
    early_stop: EarlyStop | None  # why the search ended with less than it could have found, if it seems so
    sample: JointSample | None  # to explore, unless some nodes are inputs
    data: DataCheck | None = None  # what the rows look like before holes are filled, if there are any
    confidence: Strengths | None = None

    @property
    def types(self) -> dict[NodeType, int]:
        return h.count_types(self.network.structure)

    @property
    def discrete(self) -> set[str]:
        return {variable.name for variable in self.network.all_variables if variable.is_discrete}

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
        known = [v for v in network.variables if v.name in evidence.table.names]
        checked = check_data(evidence.table, known)
    model = h.model_name(network)
    kept = (cpd.kept_rows.rows for cpd in network.cpds.values() if cpd.kept_rows is not None)
    return Content(
        network=network,
        title=model if title is None else title,
        model=model,
        evidence=evidence,
        training_rows=network.record.rows or next(kept, None),
        importance=measure_importance(network, evidence),
        checks=check_fit(network, evidence),
        unusual=find_unusual(network, evidence) if evidence.source is Source.GIVEN else None,
        early_stop=explain_early_stop(network, evidence) if evidence.source is Source.GIVEN else None,
        sample=None if network.structure.inputs else joint_sample(network),
        data=checked,
        confidence=confidence,
    )


def summary(content: Content) -> h.Html:
    """Write the title, what the network is, and the main numbers."""
    kinds = [
        h.tag(
            "li", h.type_key(one), h.tag("b", h.capital(one.appearance.label)), f": {one.appearance.sentence}"
        )
        for one in content.types
    ]
    model = content.network.record.model
    named = "" if model is None else f"Model {model}. "
    lead = f"{named}{_sentence(content)} {how_learned(content)}"
    return h.page_head(content.title, lead, _main_numbers(content), h.tag("ul.kinds", *kinds))


def _main_numbers(content: Content) -> list[tuple[str, str]]:
    structure, unusual, importance = content.network.structure, content.unusual, content.importance
    numbers = [h.counted(len(structure.nodes), "node"), h.counted(len(structure.arcs), "arc")]
    numbers += [h.counted(nodes, f"{one.appearance.label} node") for one, nodes in content.types.items()]
    if content.training_rows is not None:
        numbers.append(h.counted(content.training_rows, "training row"))
    if unusual is not None and content.evidence.rows != content.training_rows:
        numbers.append(h.counted(content.evidence.rows, "given row"))
    is_scored = isinstance(importance, Importance) and not importance.left_out
    if unusual is not None and not unusual.left_out:
        numbers.append(("log-likelihood per given row", h.number(unusual.mean)))
    elif unusual is not None and not is_scored:
        numbers.append(("log-likelihood per row, left out", h.number(unusual.mean)))
    if isinstance(importance, Importance) and is_scored:
        numbers.append(("log-likelihood per row, cross-validated", h.number(sum(importance.scores.values()))))
    return numbers


def _sentence(content: Content) -> str:
    structure, types = content.network.structure, content.types
    model = "" if content.title == content.model else f"{content.model}. "
    size = f"{h.plural(len(structure.nodes), 'node')} and {h.plural(len(structure.arcs), 'arc')}"
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
        how = "order search" if _is_order_search(content) else "hill climbing"
        return f"Learned by {how} in {h.plural(len(search.steps), 'step')}; it stopped because {why}."
    if not hasattr(search, "pdag"):
        return "How its structure was found is not recorded."
    tests = independence_tests(search)
    by_tests = f" with {h.plural(sum(tests), 'independence test')}" if tests else ""
    types = content.network.type_search
    then = f", then its node types by hill climbing in {h.plural(len(types.steps), 'step')}" if types else ""
    return f"Learned by PC{by_tests}{then}."


def _is_order_search(content: Content) -> bool:
    return content.network.record.settings.get("algorithm") == "boss"


def independence_tests(search: Any) -> list[int]:
    """Return the number of tests for each number of given variables, or one number, or nothing."""
    run = getattr(search, "tests_run", ())
    try:
        return [int(run)] if isinstance(run, int) else [int(n) for n in run]
    except (TypeError, ValueError):
        return []


def data_section(content: Content) -> h.Html:
    """List the columns, those with something to look at first."""
    found, title = content.data, "Data check"
    if found is None:
        return h.heading("data", title, "Not shown: no rows were given. Give data to see this.")
    # Stable: otherwise they are in the order of the table.
    columns = sorted(found.columns, key=lambda column: (not column.notes, not column.missing))
    numbers = [("Missing", "num"), ("Distinct", "num")]
    heads: list[h.Cell] = ["Column", "Read as", *numbers, "Lowest, median, highest", "To check"]
    rows = h.long_table(heads, [_column_row(content, column) for column in columns], SHOWN_COLUMNS)
    return h.join(h.heading("data", title, _data_words(content, found)), h.tag("div.card.columns", rows))


def _data_words(content: Content, found: DataCheck) -> str:
    is_given = content.evidence.source is Source.GIVEN
    which = "The rows given" if is_given else "The training rows that nodes keep"
    words = [f"{which}: {h.plural(found.rows, 'row')}, {h.plural(len(found.columns), 'column')}."]
    if found.missing:
        are = "value is" if found.missing == 1 else "values are"
        words.append(
            f"{found.missing:,} {are} missing, in {h.plural(found.incomplete, 'row')}; for this report "
            "they were filled once, with likely values."
        )
    else:
        words.append("Nothing is missing.")
    if found.repeated:
        repeat = "repeats" if found.repeated == 1 else "repeat"
        words.append(f"{h.plural(found.repeated, 'row')} {repeat} an earlier one.")
    if found.unused:
        words.append(f"Not used: {', '.join(found.unused)}.")
    noted = sum(bool(column.notes) for column in found.columns)
    if noted:
        words.append(f"{h.plural(noted, 'column')} to check, listed first.")
    return " ".join(words)


def _column_row(content: Content, column: ColumnCheck) -> h.Html:
    extent = ", ".join(map(_written, column.extent or ()))
    if column.commonest is not None:
        level, share = column.commonest
        extent = f"most often {level} ({h.percentage(share)})"
    return h.table_row(
        h.node_link(content.network, column.name),
        column.read_as,
        (f"{column.missing:,}" if column.missing else "–", "num missing"),
        (f"{column.distinct:,}", "num different"),
        extent,
        ("; ".join(column.notes), "look"),
    )


def _written(value: float) -> str:
    is_short = value == round(value) and abs(value) < LARGEST_WHOLE
    return f"{round(value):,}".replace("-", h.MINUS) if is_short else h.number(value)


def learning_section(content: Content) -> h.Html:
    """Show the learning curves, or what PC found."""
    search, types = content.network.search, content.network.type_search
    title = "How it was learned"
    if isinstance(search, SearchResult):
        hint, curves = _climb(search)
        if _is_order_search(content) and search.steps:
            hint = (
                "The search tried many orders of the nodes, and kept the graph with the best score. These "
                "steps build it, the arcs that gain most first. Where the curve is flat, the last arcs "
                "matter little."
            )
        return h.join(h.heading("learning", title, hint), _early_stop(content), curves)
    if not hasattr(search, "pdag"):
        hint = (
            "Not shown: the network has no record of its search. Either its structure was given, or the file "
            "that it was loaded from does not include the search."
        )
        return h.heading("learning", title, hint)
    hint = (
        "PC removes an edge as soon as a test finds its two ends independent given some other variables. "
        "Directions are known only where the tests imply them; the other edges could as well point the "
        "other way."
    )
    arcs = h.card("learning", title, hint, *_pc(search))
    if not isinstance(types, SearchResult):
        return arcs
    hint, curves = _climb(types)
    if not types.steps:
        hint = "No node did better with a type other than the one it started with."
    return h.join(arcs, h.tag("h3.then", "The node types, for these arcs"), h.tag("p.hint", hint), curves)


def _early_stop(content: Content) -> h.Html:
    """Say why the search may have ended with less than it could have found."""
    found = content.early_stop
    if found is None:
        return h.Html("")
    rows = [h.join(far.label, " (", h.node_link(content.network, far.node), ")") for far in found.rows]
    cause = f" A few rows far from all others can cause this: look at row{'s' if len(rows) > 1 else ''} "
    look = h.join(cause, h.join(*rows, between=", "), ".") if rows else ""
    return h.tag("p", h.capital(found.what), look, f" {found.remedy}", class_="warning", role="note")


def _climb(search: SearchResult) -> tuple[str, h.Html]:
    """Return what to look for in a search, and a card with its curves and steps."""
    steps = search.steps
    if not steps:
        return "The search took no steps: nothing improved on its start.", h.Html("")
    scores = [steps[0].score - steps[0].delta, *(step.score for step in steps)]
    validations = [step.validation_score for step in steps]
    titles = [f"{i}. {step.operator}" for i, step in enumerate(steps, 1)]
    validated = scores[1:] != validations
    hint = (
        "Every step makes the change that raises the cross-validated score most. The validation rows play no "
        "part in that choice: where their score levels off or falls, more structure no longer helps."
        if validated
        else "Every step makes the change that raises the score most, until none does. Where the curve is "
        "flat, the last arcs matter little."
    )
    curves = [("Score", scores, 0, ["start", *titles])]
    curves += [("Validation score", validations, 1, titles)] if validated else []
    charts = []
    for k, (name, values, first, names) in enumerate(curves, 1):
        chart = line_chart(values, first=first, best=search.best, titles=names, name=name, colour=f"c{k}")
        charts.append(h.tag("div", h.tag("h3", f"{name} after every step"), h.tag("div.scroll", chart)))
    heads: list[h.Cell] = [("Step", "num"), "Change", ("Gain", "num"), ("Score", "num")]
    heads += [("Validation score", "num")] if validated else []
    rows = []
    for i, step in enumerate(steps, 1):
        numbers = [h.number(step.delta), h.number(step.score, 7)]
        numbers += [h.number(step.validation_score, 7)] if validated else []
        rows.append(h.table_row((str(i), "num"), str(step.operator), *((text, "num") for text in numbers)))
    every = h.details(f"All {h.plural(len(steps), 'step')}", h.table(heads, rows))
    return hint, h.tag("div.card", h.tag("div.pair", *charts), every)


def _pc(search: Any) -> list[h.Html]:
    """Write what PC found, and how many tests it took."""
    arcs, edges = getattr(search.pdag, "arcs", ()), getattr(search.pdag, "edges", ())
    found = f"{h.plural(len(arcs), 'arc')} with a known direction, {h.plural(len(edges), 'edge')} without"
    parts = [h.tag("p.found", f"Found: {found}.")]
    if edges:
        listed = h.tag("ul", *(h.tag("li", f"{a} — {b}") for a, b in edges))
        parts.append(h.details("Edges without a known direction", listed))
    tests = independence_tests(search)
    if len(tests) > 1:
        rows = [h.table_row(f"{size:,}", (f"{run:,}", "num")) for size, run in enumerate(tests)]
        parts.append(h.tag("div.narrow", h.table(["Variables given", ("Tests", "num")], rows)))
    return parts


def populations_section(content: Content) -> h.Html:
    """Show the classes of a network with a hidden class: how large they are, and what is different."""
    network, evidence, title = content.network, content.evidence, "Populations"
    hint = (
        "The rows come from several populations that no column identifies: the levels of the hidden node "
        "“class”. For each: its share of the rows, how certain the assignment of these is, the variables "
        "that set it apart, and typical rows."
    )
    if evidence.table is None or not evidence.covers(variable.name for variable in network.variables):
        return h.heading("populations", title, f"{hint} Not shown, because no rows were given.")
    weights = class_probabilities(network, evidence.table)
    rows = []
    for k, found in enumerate(describe_populations(network, evidence)):
        items = []
        for each in found.differences[:SHOWN_DIFFERENCES]:
            is_drawn = each.node not in content.discrete and weights[:, k].sum() > 0.0
            values = evidence.table.column(each.node)
            chart = small_histogram(values, weights[:, k], f"{each.node} in class {found.level}")
            words = f": {each.words} "
            items.append(h.tag("li", h.node_link(network, each.node), words, chart if is_drawn else ""))
        none = "no variable is much different" if not items else ""
        rows.append(
            h.table_row(
                f"class {found.level}",
                h.percentage(found.share),
                h.percentage(found.certainty),
                h.tag("ul", *items) if items else none,
                ", ".join(found.examples),
            )
        )
    tried = network.record.classes
    note = ""
    if len(tried) > 1:
        listed = ", ".join(f"{number}: {h.number(value)}" for number, value in tried.items())
        note = (
            f"Log-density of a row out of its fold, less what arcs and classes cost, by the number of "
            f"classes: {listed}."
        )
    heads = ("", "Rows", "Certainty", "What is different", "Typical rows")
    return h.join(h.heading("populations", title, hint), h.table(heads, rows), h.tag("p.note", note))


def fit_section(content: Content) -> h.Html:
    """Show a histogram for every node, the worst first."""
    checks = sorted(content.checks.items(), key=lambda item: -item[1].distance)
    title = "Does every node fit?"
    if not checks:
        return h.heading("fit", title, "Not shown, because there are no rows to check.")
    hint = (
        "Where in its predicted distribution does each value fall? Flat bars within the grey band mean that "
        "the density fits; a hump, that it is too wide; a bowl, too narrow; a slope, shifted. Worst first."
    )
    (good, fair), rows = checks[0][1].limits, checks[0][1].rows
    allowance = ""
    if good > GOOD:
        allowance = f" (with {h.plural(rows, 'row')}, 1 in 20 correct densities is off by more than that)"
    note = (
        f"The number is the Kolmogorov-Smirnov distance from uniform: good up to {good:g}{allowance}, fair "
        f"up to {fair:g}, poor beyond. Checked on {content.rows_used(rows)}. The rows that the network "
        "was fitted to always fit a little better than new ones. "
    )
    unchecked = h.node_links(content.network, (n for n in content.network.nodes if n not in content.checks))
    if unchecked:
        note = h.join(note, "Not checked, because there are no values: ", unchecked, ".")
    cards = []
    for node, check in checks:
        badge = h.tag(f"span.badge.{check.verdict}", f"{check.verdict} {check.distance:.3f}")
        head = h.tag("header", h.tag("h3", h.node_link(content.network, node)), badge)
        cards.append(h.tag("li.card", head, uniform_histogram(check, node)))
    return h.join(h.heading("fit", title, hint), h.tag("ul.checks", *cards), h.tag("p.note", note))


def unusual_section(content: Content) -> h.Html:
    """Show the least likely rows, and the nodes that make them so."""
    found, title = content.unusual, "Most unusual rows"
    if found is None:
        return h.heading("unusual", title, "Not shown, because no rows were given.")
    is_recorded = bool(content.network.record.typical)
    over = "training rows" if is_recorded else f"{SAMPLED_ROWS:,} rows drawn from the network"
    numbered = " Rows are counted from 0." if content.evidence.labels[:2] == ("0", "1") else ""
    hint = (
        "The rows with the lowest log-density and the nodes to blame: the fewest whose values, if the rest "
        "of the row decided them, would leave all nodes as likely as is typical (their medians over "
        f"{over}). "
        "Numbers say how many nats of log-density these values cost. "
        f"{SCORED[found.scoring]} Triangles mark these rows among all "
        f"{content.evidence.rows:,}; the median is {h.number(found.median)}.{numbered}"
    )
    levels = {f"1 in {round(1 / share):,}": found.alarm(share) for share in ALARMS}
    alarms = {name: level for name, level in levels.items() if level is not None}
    rows = []
    for row in found.rows:
        blamed = h.tag("span.small", "a little of everything")
        if row.reasons:
            blamed = h.tag("ul.reasons", *(_reason(content, reason) for reason in row.reasons))
        rows.append(h.table_row(row.label, (h.number(row.logpdf), "num"), blamed))
    heads: list[h.Cell] = ["Row", ("Log-density", "num"), "Because of"]
    picture = density_histogram(found, alarms)
    return h.card("unusual", title, hint, picture, _alarms(found, alarms), h.table(heads, rows))


def _alarms(found: UnusualRows, levels: dict[str, float]) -> h.Html:
    """Say from which log-density on a new row would be reported."""
    if not levels:
        needed = f"{round(1 / ALARMS[0]) - 1:,}"
        return h.tag("p.note.alarms", f"There are too few rows to set an alarm threshold: it needs {needed}.")
    words = "; ".join(f"{h.number(level)} ({name})" for name, level in levels.items())
    rows = "these rows, each scored without itself" if found.left_out else "these rows"
    meaning = (
        f"{words}. If new rows are like {rows}, no more than that share of them is below the "
        "threshold, so a row below it deserves a look."
    )
    return h.tag("p.note.alarms", h.tag("b", "Alarm threshold: "), meaning)


def _reason(content: Content, reason: Reason) -> h.Html:
    value = reason.value if isinstance(reason.value, str) else h.number(reason.value)
    drop = h.tag("span.drop", f"{h.MINUS}{h.number(reason.drop, 3)}")
    return h.tag("li", h.node_link(content.network, reason.node), f" = {value} ", drop)


def provenance_section(content: Content) -> h.Html:
    """Show what is on record; nothing is guessed."""
    record = content.network.record
    hint = (
        "What is needed to learn this network again: the same data, settings, seed and versions give the "
        "same result."
    )
    size = (
        None
        if record.rows is None
        else f"{h.plural(record.rows, 'row')}, {h.plural(len(record.columns), 'column')}"
        + (f"; {h.plural(record.left_out, 'row')} with odd values left out" if record.left_out else "")
    )
    model = record.settings.get("model")
    defaults = LearnSettings(
        model=model if model in list(MODELS) else "spbn"
    ).plain()  # `fit` has the paper's
    changed = [
        f"{name} = {shortened(_setting(value), LONGEST_SETTING)}"
        for name, value in record.settings.items()
        if name not in ("model", "seed") and (name not in defaults or value != defaults[name])
    ]
    if "model" in record.settings:
        changed = [f"model = {_setting(model)}", *(changed or ["all others at their defaults"])]
    known = {
        "Data": size,
        "SHA-256 of the data": h.tag("code", record.data_hash) if record.data_hash else None,
        "Settings": (", ".join(changed) or "all at their defaults") if record.settings else None,
        "Seed": None if record.seed is None else str(record.seed),
        "Versions": ", ".join(f"{name} {text}" for name, text in record.versions.items()),
        "Time taken": None if record.seconds is None else _duration(record.seconds),
    }
    rows = [h.table_row(name, _setting(value)) for name, value in record.settings.items()]
    settings = h.details("All settings", h.table(["Setting", "Value"], rows)) if rows else ""
    shown = h.facts((name, text or UNKNOWN) for name, text in known.items())
    return h.card("provenance", "Provenance", hint, shown, settings)


def _setting(value: Any) -> str:
    if isinstance(value, float):
        return h.number(value) if value != round(value, 4) else f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    minutes = round(seconds / 60)
    return h.plural(minutes, "minute") if minutes < 120 else f"{round(minutes / 60):,} hours"

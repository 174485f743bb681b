"""Some seconds of `tools/fuzz.py`; ``make fuzz`` runs it for longer."""

import io
import json
import zipfile

import numpy as np
import pytest
from tools import fuzz

import spbn


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_odd_tables_and_damaged_files_raise_nothing_but_our_errors(seed):
    counts, failures = fuzz.fuzz(seed, seconds=4)
    assert not failures, "\n".join(map(str, failures))
    assert counts["file refused"] > counts["file read"] > 0


@pytest.mark.parametrize("first", [0, 200])
def test_no_question_raises_anything_but_our_errors(first):
    """Random networks of all types, and evidence of all kinds: no NaN, and chances between 0 and 1."""
    found = [fuzz.run_question(3, number) for number in range(first, first + 200)]
    failures = [failure for _, failure in found if failure is not None]
    assert not failures, "\n".join(map(str, failures))
    assert {"exact", "smc", "weighting", "ArgumentError"} <= {kind for kind, _ in found}


def test_no_stream_of_rows_raises_anything_but_our_errors():
    """Monitors of random networks, and odd rows; a state that is saved on the way changes nothing."""
    found = [fuzz.run_stream(1, number) for number in range(100)]
    failures = [failure for _, failure in found if failure is not None]
    assert not failures, "\n".join(map(str, failures))
    assert {"judged", "DataError", "DataError and judged"} <= {kind for kind, _ in found}


def test_a_monitor_that_forgets_is_a_failure(monkeypatch):
    before = spbn.Monitor.load

    def forgetful(path, network):
        monitor = before(path, network)
        monitor._test.stakes[:] = 1.0
        return monitor

    monkeypatch.setattr(spbn.Monitor, "load", forgetful)
    failures = [failure for _, failure in (fuzz.run_stream(1, n) for n in range(10)) if failure is not None]
    assert failures
    assert "a monitor that was saved judges otherwise" in failures[0].kind
    assert "--seed 1 --only streams:" in str(failures[0])


def test_an_answer_that_is_wrong_is_a_failure(monkeypatch):
    monkeypatch.setattr(spbn.inference.Posterior, "median", lambda self: self.mean() * np.nan)
    found = [fuzz.run_question(3, number) for number in range(20)]
    failures = [failure for _, failure in found if failure is not None]
    assert failures
    assert "a number of a posterior is not finite" in failures[0].kind
    assert "--seed 3 --only questions:" in str(failures[0])


@pytest.mark.slow
def test_a_failure_is_found_and_made_smaller(monkeypatch):
    """A fuzzer that cannot fail finds nothing."""

    def fails_with_ties(columns, options):
        if any(len(set(column.tolist())) < len(column) for column in columns.values()):
            raise ZeroDivisionError("ties")
        return "learned"

    monkeypatch.setattr(fuzz, "try_table", fails_with_ties)
    columns = {"a": np.arange(40.0), "b": np.r_[np.arange(39.0), 7.0], "c": np.arange(40.0)}
    smaller, options, failure = fuzz.shrink(columns, {"folds": 3}, "ZeroDivisionError in ?: ties")
    assert list(smaller) == ["b"]
    assert smaller["b"].tolist() == [7.0, 7.0]
    assert options == {}
    assert failure.startswith("ZeroDivisionError")
    _, failures = fuzz.fuzz(0, seconds=3, files=False)
    assert failures
    assert "--seed 0 --only tables:" in str(failures[0])


def test_warnings_and_endless_work_are_failures(monkeypatch):
    def divides(columns, options):
        return str(np.array([1.0]) / np.array([0.0]))

    found, failure = fuzz.outcome(lambda: divides({}, {}))
    assert not found
    assert failure.startswith("RuntimeWarning")
    monkeypatch.setattr(fuzz, "MOST_SECONDS", 1)

    def hangs():
        while True:
            pass

    _, failure = fuzz.outcome(hangs)
    assert "no end after 1 s" in failure


def test_a_member_that_declares_more_than_the_file_has_is_refused(tmp_path):
    """It made zipfile ask for half a gigabyte."""
    content = bytearray(fuzz.model_files()["gbn"])
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 20 : directory + 24] = (1 << 30).to_bytes(4, "little")  # its compressed size
    path = tmp_path / "model.spbn"
    path.write_bytes(content)
    with pytest.raises(spbn.errors.ModelFileError, match="longer than the space that it has"):
        spbn.BayesianNetwork.load(path)


def test_names_with_half_a_surrogate_pair_are_saved(tmp_path):
    """JSON can hold them, so they can come out of a file; they must go into one again."""
    data = {"\ud800": np.arange(9.0) ** 2, "ü": np.arange(9.0)[::-1]}
    network = spbn.BayesianNetwork.fit(spbn.Structure(list(data)), data)
    network.save(tmp_path / "model.spbn")
    assert spbn.BayesianNetwork.load(tmp_path / "model.spbn") == network


def test_changes_to_a_document_are_changes():
    document = json.loads(zipfile.ZipFile(io.BytesIO(fuzz.model_files()["hc"])).read("network.json"))
    changed = 0
    for seed in range(50):
        other = json.loads(json.dumps(document))
        fuzz._change_document(other, np.random.default_rng(seed))
        changed += other != document
    assert changed > 40

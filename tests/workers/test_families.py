"""Families and replicates over workers: the same results as without, to the last bit."""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import spbn
from spbn.dask import client as clients
from spbn.dask.client import Executor, connected, local_workers
from spbn.dask.families import dealt, spread
from spbn.errors import ArgumentError, ClusterError, PackageError
from spbn.nodes.families import families_of, named_batch
from spbn.tables.reader import as_table

from strategies import mixed_frame, nonlinear_frame

pytestmark = pytest.mark.cluster

FRAME = nonlinear_frame(120, 4)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "spbn"},
        {"start": "lg"},
        {"types": ["lg", "curve"]},
        {"model": "blend", "max_parents": 1},
        {"model": "gbn"},
        {"model": "gbn", "score": "cv"},
        {"model": "kdebn", "bandwidth": "silverman", "folds": 4, "seed": 7},
        {"bandwidth": "cv", "max_parents": 1},
        {"algorithm": "pc", "test": "plc"},
        {"margins": "yeo-johnson", "validation": FRAME[80:]},
        {"algorithm": "boss", "max_parents": 1},
        {"validation": None, "penalty": 2.0},
    ],
)
def test_a_search_takes_the_same_steps(client, settings):
    here, there = (spbn.learn(FRAME, client=c, **settings) for c in (None, client))
    assert there.search == here.search
    assert there.type_search == here.type_search
    assert there == here
    assert there.record.settings == here.record.settings
    assert there.open_directions() == here.open_directions()


@pytest.mark.parametrize("algorithm", ["hc", "boss"])
def test_so_does_one_for_the_best_types(client, algorithm):
    here, there = (spbn.learn(FRAME, client=c, model="auto", algorithm=algorithm) for c in (None, client))
    assert there == here
    assert there.search == here.search
    assert there.open_directions() == here.open_directions()


@pytest.mark.parametrize("settings", [{"hidden": 2}, {"hidden": 2, "model": "gbn", "margins": "none"}])
def test_so_does_one_with_a_hidden_class(client, settings):
    here, there = (spbn.learn(FRAME, client=c, **settings) for c in (None, client))
    assert here.hidden == "class"
    assert there == here
    assert there.search == here.search
    assert there.record.classes == here.record.classes


def test_workers_know_the_leads(client):
    likelihood = spbn.scores.CVLikelihood(FRAME, penalty="auto")
    there = spread(client, as_table(FRAME), likelihood, _likelihood)
    assert there.size == likelihood.size == len(FRAME)  # by which a search decides on restarts
    batch = likelihood._checked([("c", [], "curve"), ("c", ["a"], "curve"), ("d", ["b"], "blend")])
    found = there.leads(batch)
    assert np.isfinite(found[:2]).any()
    np.testing.assert_array_equal(found, likelihood.leads(batch))


def _likelihood(table):
    return spbn.scores.CVLikelihood(table, penalty="auto")


def test_so_does_one_of_a_mixed_table(client):
    frame = mixed_frame(60)
    here, there = (spbn.learn(frame, client=c, max_parents=1, patience=0) for c in (None, client))
    assert there == here


def test_a_generator_deals_the_rows_alike_on_all_workers(client):
    here, there = (spbn.learn(FRAME, client=c, seed=np.random.default_rng(5)) for c in (None, client))
    assert there.search == here.search
    spbn.learn(FRAME, client=client, seed=None)


def test_estimates_come_from_workers_too(client, monkeypatch):
    monkeypatch.setattr("spbn.scores.likelihood.FEWEST_ROWS", 50)
    monkeypatch.setattr("spbn.scores.likelihood.OUTSTANDING", 8)
    asked = []
    original = spbn.scores.likelihood.Preview.gains
    monkeypatch.setattr(
        "spbn.scores.likelihood.Preview.gains",
        lambda self, new, old: asked.append(threading.current_thread().name) or original(self, new, old),
    )
    here = spbn.learn(FRAME, model="spbn", folds=2)
    of_here = len(asked)
    there = spbn.learn(FRAME, model="spbn", folds=2, client=client)
    assert there.search == here.search
    assert of_here
    assert asked[of_here:]
    assert threading.current_thread().name not in asked[of_here:]


def test_only_what_takes_long_is_sent(client):
    table = as_table(FRAME, training=True, missing="error")
    score = spbn.scores.CVLikelihood(table)
    spread_score = spread(client, table, score, spbn.scores.CVLikelihood)
    sent = []
    original = spread_score._executor.map
    spread_score._executor.map = lambda f, tasks, at: sent.extend(tasks) or original(f, tasks, at)
    families = [("a", ["b"], "lg"), ("b", ["a"], "ckde"), ("a", ["b"], "ckde"), ("c", [], "lg")]
    assert np.array_equal(spread_score.local_many(families), score.local_many(families))
    assert [family.type.name for batch, _ in sent for family in families_of(batch)] == ["ckde", "ckde"]
    assert len(sent) == 1  # they have the same variables


def test_families_are_dealt_by_their_variables():
    columns = ("a", "b", "c", "d", "e")
    families = [(n, [p], "ckde") for n in columns for p in columns if n != p] * 2
    batch = named_batch(columns, families)
    shares = list(dealt(batch, 3))
    assert sorted(np.concatenate([mine for _, mine in shares]).tolist()) == list(range(len(batch)))
    place = {}
    for number, (home, mine) in enumerate(shares):
        for f in mine:
            variables = frozenset([families_of(batch)[f].node, *families_of(batch)[f].parents])
            assert place.setdefault(variables, (number, home)) == (number, home)
    again = {
        frozenset([f.node, *f.parents]): home
        for home, mine in dealt(batch.only(np.arange(7)), 3)
        for f in families_of(batch.only(np.arange(7)).only(mine))
    }
    assert all(place[variables][1] == home for variables, home in again.items())


def test_replicates_and_comparisons_are_the_same(client):
    settings = {"model": "gbn", "replicates": 5, "seed": 3}
    here, there = (spbn.confidence(FRAME, client=c, **settings) for c in (None, client))
    assert there.structures == here.structures
    here, there = (
        spbn.compare_models(FRAME, folds=2, client=c, max_parents=1, seed=4).drop(columns="seconds")
        for c in (None, client)
    )
    assert there.equals(here)
    here, there = (
        spbn.compare_models(FRAME, folds=2, client=c, max_parents=0, seed=np.random.default_rng(1))
        for c in (None, client)
    )
    assert there.drop(columns="seconds").equals(here.drop(columns="seconds"))


def test_a_worker_that_dies_changes_nothing(processes):
    pids = processes.run(os.getpid)
    assert len(set(pids.values())) == 2
    kill = threading.Timer(0.3, lambda: os.kill(min(pids.values()), signal.SIGKILL))
    settings = {"replicates": 6, "max_parents": 1}
    kill.start()
    there = spbn.confidence(FRAME, client=processes, **settings)
    kill.join()
    assert there.structures == spbn.confidence(FRAME, **settings).structures


def slowly(shared, seconds):
    time.sleep(seconds)
    return shared


def test_tasks_whose_data_is_lost_are_done_again(client):
    workers = Executor(client, "shared")
    client.cancel(workers._shared_once())
    assert sorted(workers.map(slowly, [(0.0,), (0.0,)])) == [(0, "shared"), (1, "shared")]


def test_a_worker_that_dies_while_it_is_sent_something(client, monkeypatch):
    from distributed.comm import CommClosedError

    workers, original, failed = Executor(client, "shared"), client.scatter, []

    def scatter(*arguments, **options):
        if len(failed) < 2:
            failed.append(arguments)
            raise CommClosedError("Stream is closed")
        return original(*arguments, **options)

    monkeypatch.setattr(client, "scatter", scatter)
    monkeypatch.setattr(clients, "SECONDS_TO_RECOVER", 0.0)
    assert sorted(workers.map(joined, [("a",), ("b",)], common=("c",))) == [
        (0, "shared a c"),
        (1, "shared b c"),
    ]
    assert len(failed) == 2


def test_what_tasks_have_in_common_arrives_as_it_is(client):
    """Collections too, of which Dask would send every member."""
    common = (frozenset([("a", 1), ("b", 2)]), [1, 2], {"c": (3,)}, ("d",), {4})
    found = dict(Executor(client, "shared").map(together, [(0,), (1,)], common=common))
    assert found == {number: ("shared", number, *common) for number in (0, 1)}
    assert [type(one) for one in found[0][2:]] == [type(one) for one in common]


@pytest.mark.parametrize("pinned", [False, True])
def test_nobody_waits_for_a_worker_that_died_unnoticed(processes, pinned):
    """Sending to all of them would: the scheduler does not know yet."""
    workers = Executor(processes, "shared")
    addresses = workers.addresses
    os.kill(min(processes.run(os.getpid).values()), signal.SIGKILL)
    tasks = [(str(number),) for number in range(6)]
    found = dict(workers.map(joined, tasks, addresses=addresses * 3, common=("c",), pinned=pinned))
    assert found == {number: f"shared {number} c" for number in range(6)}


def test_pinned_tasks_are_done_at_their_addresses_only(client):
    """The other worker has nothing to do, and may not take any."""
    workers = Executor(client, "shared")
    for address in workers.addresses:
        found = dict(workers.map(whereabouts, [(0.1,)] * 8, addresses=[address] * 8, pinned=True))
        assert set(found.values()) == {address}


def whereabouts(shared, seconds):
    from distributed import get_worker

    time.sleep(seconds)
    return get_worker().address


def together(*everything):
    return everything


def joined(*words):
    return " ".join(words)


def lose(shared, number):
    from distributed import KilledWorker

    raise KilledWorker("task", SimpleNamespace(address="nowhere"), 3)


def test_work_that_kills_its_workers_is_given_up(client):
    with pytest.raises(ClusterError, match="2 of 2 tasks could not be done in 4 attempts"):
        list(Executor(client, None).map(lose, [(1,), (2,)]))


def test_errors_of_workers_are_those_of_spbn(client):
    with pytest.raises(ArgumentError, match=r"folds must be .*\(This is about replicate"):
        spbn.confidence(FRAME, client=client, replicates=3, folds=1)


def test_workers_use_one_thread_each(client):
    import numba

    counts = [count for _, count in Executor(client, None).map(threads_of, [(), (), ()])]
    assert counts == [1, 1, 1]
    with clients.using_threads(1):
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS


def threads_of(shared):
    import numba

    return numba.get_num_threads()


def test_node_types_that_workers_lack_are_named(client):
    table = as_table(FRAME)
    spread_score = spread(client, table, spbn.scores.CVLikelihood(table), spbn.scores.CVLikelihood)
    sent = spread_score._executor._shared
    spread_score._executor._shared = sent._replace(types=(*sent.types, "laplace"))
    with pytest.raises(ClusterError, match="'laplace' are needed: import the module that registers"):
        spread_score.local("a", ["b"], "ckde")


def test_what_is_not_a_client_is_refused():
    with pytest.raises(ArgumentError, match=r"client must be a dask.distributed.Client. Got 'tcp:"):
        spbn.learn(FRAME, client="tcp://localhost:8786")
    with pytest.raises(ArgumentError, match="client must be a dask"):
        spbn.compare_models(FRAME, client=3)
    with pytest.raises(ArgumentError, match="the number of workers must be a whole number"), local_workers(0):
        pass


def test_without_dask_it_says_what_to_install():
    code = """
import sys
sys.modules["distributed"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "distributed" else found(name, *rest)
import spbn
from spbn.dask.client import connected, local_workers
frame = {"a": [1.0, 2.0, 3.0, 2.5], "b": [1.0, 3.0, 2.0, 5.0]}
def enter(context):
    with context:
        pass
for attempt in (
    lambda: spbn.learn(frame, client=1),
    lambda: spbn.compare_models(frame, client=1),
    lambda: enter(local_workers(2)),
    lambda: enter(connected("tcp://127.0.0.1:1")),
):
    try:
        attempt()
    except spbn.errors.PackageError as error:
        print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ['workers need Dask: install it with pip install "spbn[dask]".'] * 4
    assert issubclass(PackageError, ImportError)


def test_a_scheduler_that_does_not_answer_is_named():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # accepts, and says nothing
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        with (
            pytest.raises(ClusterError, match=f"the scheduler at {address} did not answer within 0.5 sec"),
            connected(address, timeout=0.5),
        ):
            pass
        assert time.monotonic() - began < 20
    message = r"'nowhere' is not the address of a scheduler \(missing port.*it looks like 'tcp://"
    with pytest.raises(ClusterError, match=message), connected("nowhere", timeout=0.5):
        pass


def test_clients_that_could_not_be_started_are_closed(monkeypatch):
    """Otherwise Dask closes them when they are collected: perhaps while others start, which then hang."""
    from distributed import Client

    collected = []
    monkeypatch.setattr(Client, "__del__", lambda client: collected.append(client.status))
    for address, why in (("nowhere", "is not the address"), ("tcp://127.0.0.1:1", "did not answer")):
        with pytest.raises(ClusterError, match=why), connected(address, timeout=0.5):
            pass
    gc.collect()
    assert len(collected) >= 2  # those of tests before may come too
    assert set(collected) == {"closed"}


def test_what_a_cluster_knows_of_its_workers_is_left_alone(client):
    """If it were looked up anew, news of a worker that died would come twice, and closing would fail."""
    known = client.cluster.scheduler_info
    assert set(clients.require_workers(client)) == set(known["workers"])
    assert client.cluster.scheduler_info is known


def test_a_scheduler_without_workers_is_given_up(monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(clients.require_workers, "__kwdefaults__", {"timeout": 0.3})
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as alone,
        pytest.raises(ClusterError, match=r"had no workers for 0.3 seconds.*Start some: dask worker"),
    ):
        spbn.learn(FRAME, client=alone)


def test_workers_are_waited_for_as_long_as_said(monkeypatch):
    """By a clock that moves when somebody sleeps."""
    clock = SimpleNamespace(now=5.0)
    clock.monotonic = lambda: clock.now
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)
    monkeypatch.setattr(clients, "time", clock)
    late = SimpleNamespace(
        scheduler=None,
        nthreads=lambda: {"b": 2, "a": 1} if clock.now > 7.0 else {},
        scheduler_info=lambda n_workers: {"workers": {}},
    )
    with pytest.raises(ClusterError, match=r"had no workers for 1\.5 seconds"):
        clients.require_workers(late, timeout=1.5)
    assert 6.5 <= clock.now < 6.7
    assert list(clients.require_workers(late, timeout=1.5).items()) == [("a", 1), ("b", 2)]
    assert 7.0 < clock.now < 7.2


def pause(client, addresses, is_paused=True):
    """Do what Dask does to workers that use most of their memory, or undo it."""

    def change(dask_worker):
        from distributed.core import Status

        dask_worker.status = Status.paused if is_paused else Status.running

    client.run(change, workers=list(addresses))
    time.sleep(0.1)  # until the scheduler knows


@pytest.fixture
def impatient(client, monkeypatch):
    """Wait for two seconds, and have no worker paused at the end."""
    monkeypatch.setattr(clients, "SECONDS_BETWEEN_CHECKS", 0.2)
    monkeypatch.setattr(clients, "SECONDS_FOR_WORKERS", 2.0)
    monkeypatch.setattr(clients.require_workers, "__kwdefaults__", {"timeout": 2.0})
    yield
    pause(client, client.nthreads(), is_paused=False)


PAUSED = r"Dask has paused all 2 workers .* they use most of their memory. Give them more of it"


def test_workers_that_are_all_paused_are_named(client, impatient):
    pause(client, client.nthreads())
    with pytest.raises(ClusterError, match=PAUSED):
        spbn.learn(FRAME, client=client)


@pytest.mark.parametrize("pinned", [False, True])
def test_tasks_do_not_wait_for_workers_that_are_paused_meanwhile(client, impatient, pinned):
    """All of them: an error that says so. One of them: the others do its tasks."""
    workers = Executor(client, "shared")
    addresses = workers.addresses
    tasks, places = [(0.2,)] * 12, addresses * 6
    found = []
    for number, address in workers.map(whereabouts, tasks, addresses=places, pinned=pinned):
        if not found:
            pause(client, addresses[:1])
        found.append((number, address))
    assert sorted(number for number, _ in found) == list(range(12))
    assert sum(address == addresses[0] for _, address in found) < 6
    pause(client, addresses, is_paused=False)
    first = iter(workers.map(whereabouts, tasks, addresses=places, pinned=pinned))
    next(first)
    pause(client, addresses)
    with pytest.raises(ClusterError, match=PAUSED):
        list(first)


def test_a_paused_worker_may_end_what_it_has_begun(client, impatient):
    workers = Executor(client, "shared")
    first, second = workers.addresses
    tasks = [(0.01,), (4.0,)]
    found = workers.map(whereabouts, tasks, addresses=[first, second], pinned=True)
    assert next(found) == (0, first)
    pause(client, [second])
    assert next(found) == (1, second)


def test_networks_over_time_are_the_same(client):
    """The transition and the static network, both scored by workers."""
    settings = {"lags": 1, "model": "kdebn", "max_parents": 1, "patience": 0}
    frame = spbn.datasets.synthetic(300, seed=3)
    calls = []

    def submit(*arguments, original=client.submit, **options):
        calls.append(arguments)
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "submit", submit)
        found = spbn.learn_dynamic(frame, client=client, **settings)
    assert calls
    assert found == spbn.learn_dynamic(frame, **settings)

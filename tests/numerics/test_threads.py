import os
import threading
import time

import numba
import pytest

from spbn._base import jit
from spbn._base.jit import run_tasks, shares


@pytest.fixture
def use_threads(monkeypatch):
    """Sets how many threads may work at the same time."""
    return lambda count: monkeypatch.setattr(jit, "thread_count", lambda: count)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("items", [0, 1, 5, 1000])
def test_shares_cover_all_items(use_threads, count, items):
    use_threads(count)
    cuts = shares(items).tolist()
    assert cuts[0] == 0
    assert cuts[-1] == items
    assert cuts == sorted(set(cuts))


def test_as_many_threads_as_numba():
    assert jit.thread_count() == numba.get_num_threads()


@pytest.mark.parametrize("count", [1, 3])
def test_every_task_is_done_once(use_threads, count):
    done = []
    use_threads(count)
    run_tasks(lambda a, b: done.append((a, b)), [(i, -i) for i in range(50)])
    assert sorted(done) == [(i, -i) for i in range(50)]


def test_tasks_run_at_the_same_time(use_threads):
    meeting = threading.Barrier(3, timeout=10)
    use_threads(3)
    run_tasks(meeting.wait, [(), (), ()])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nothing_new_is_begun(use_threads, error):
    begun = []

    def task(number):
        begun.append(number)
        if number == 0:
            raise error
        time.sleep(0.05)

    use_threads(2)
    with pytest.raises(error):
        run_tasks(task, [(number,) for number in range(100)])
    assert len(begun) < 20


def test_a_task_may_have_tasks_of_its_own(use_threads):
    done = []
    use_threads(3)

    def task(number):
        run_tasks(lambda part: done.append((number, part)), [(part,) for part in range(5)])

    run_tasks(task, [(number,) for number in range(20)])
    assert sorted(done) == [(number, part) for number in range(20) for part in range(5)]


def test_the_caller_gets_its_work_done_while_all_others_are_busy(use_threads):
    release = threading.Event()
    use_threads(2)
    blocked = threading.Thread(target=run_tasks, args=(release.wait, [(30,), (30,)]))
    blocked.start()
    try:
        done = []
        run_tasks(done.append, [(number,) for number in range(10)])
        assert sorted(done) == list(range(10))
    finally:
        release.set()
        blocked.join()


def test_many_callers_at_the_same_time(use_threads):
    done = []

    def caller(name):
        use_threads(2)
        for number in range(50):
            run_tasks(lambda *task: done.append(task), [(name, number, part) for part in range(4)])

    callers = [threading.Thread(target=caller, args=(name,)) for name in range(6)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert len(done) == len(set(done)) == 6 * 50 * 4


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_errors_reach_the_caller_from_every_thread(use_threads, where):
    caller = threading.get_ident()
    both = threading.Barrier(2, timeout=10)

    def task():
        both.wait()
        if (threading.get_ident() == caller) == (where == "caller"):
            raise ValueError(where)

    use_threads(2)
    with pytest.raises(ValueError, match=where):
        run_tasks(task, [(), ()])


def test_no_task_is_running_any_more_after_an_error(use_threads):
    ended = []
    both = threading.Barrier(2, timeout=10)
    caller = threading.get_ident()

    def task():
        both.wait()
        if threading.get_ident() == caller:
            raise ValueError
        time.sleep(0.1)
        ended.append(True)

    use_threads(2)
    with pytest.raises(ValueError):  # noqa: PT011 -- raised above
        run_tasks(task, [(), ()])
    assert ended


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_has_threads_of_its_own(use_threads):
    use_threads(2)
    run_tasks(time.sleep, [(0.01,), (0.01,)])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            both = threading.Barrier(2, timeout=10)
            run_tasks(both.wait, [(), ()])
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_sleep_while_there_is_nothing_to_do(use_threads):
    use_threads(3)
    run_tasks(time.sleep, [(0.01,)] * 3)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05

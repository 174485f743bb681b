import threading
import time

import numba
import pytest

from spbn.numerics.threads import started_threads


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("items", [0, 1, 5, 1000])
def test_shares_cover_all_items(count, items):
    with started_threads(count) as threads:
        cuts = threads.shares(items).tolist()
    assert cuts[0] == 0
    assert cuts[-1] == items
    assert cuts == sorted(set(cuts))


def test_as_many_threads_as_numba():
    with started_threads() as threads:
        assert threads.count == numba.get_num_threads()


@pytest.mark.parametrize("count", [1, 3])
def test_every_task_is_done_once(count):
    done = []
    with started_threads(count) as threads:
        threads.run(lambda a, b: done.append((a, b)), [(i, -i) for i in range(50)])
    assert sorted(done) == [(i, -i) for i in range(50)]


def test_tasks_run_at_the_same_time():
    meeting = threading.Barrier(3, timeout=10)
    with started_threads(3) as threads:
        threads.run(meeting.wait, [(), (), ()])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nothing_new_is_begun(error):
    begun = []

    def task(number):
        begun.append(number)
        if number == 0:
            raise error
        time.sleep(0.05)

    with started_threads(2) as threads, pytest.raises(error):
        threads.run(task, [(number,) for number in range(100)])
    assert len(begun) < 20

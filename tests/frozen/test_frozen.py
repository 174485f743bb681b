"""Results are what they were in version 0.2, to the last bit; make.py says how to change one on purpose."""

import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from frozen import commands, make, saved, searches

FROZEN = {group: make.read(group) for group in make.GROUPS}
IS_SAME_PLATFORM = make.read("platform") == make.platform()
SLOW = ("demo", "compact-iris")
ELSEWHERE = "numbers differ in their last bits on other processors and with other packages"


@pytest.mark.parametrize("group", make.GROUPS)
def test_every_case_is_frozen(group):
    assert list(FROZEN[group]) == list(make.GROUPS[group])


@pytest.mark.skipif(not IS_SAME_PLATFORM, reason=ELSEWHERE)
def test_numbers_are_compared_to_the_last_bit():
    assert not is_equal({"a": [(1.0).hex()]}, {"a": [math.nextafter(1.0, 2.0).hex()]})


@pytest.fixture(scope="module")
def afterwards():
    """A process that compiles nothing: it is started when all that a case needs has been compiled."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield process


@pytest.fixture
def require_frozen(afterwards):
    """Compares a document with the frozen one; if it differs, the one of a process that compiles nothing."""

    def require(group, name, found):
        expected = FROZEN[group][name]
        if not is_equal(found, expected):
            found = afterwards.submit(make.made, group, [name]).result()[name]
        assert found == expected or is_equal(found, expected)

    return require


@pytest.mark.parametrize("name", searches.CASES)
def test_a_search_takes_the_same_steps(name, require_frozen):
    require_frozen("searches", name, searches.document(name))


@pytest.mark.skipif(not IS_SAME_PLATFORM, reason=ELSEWHERE)
@pytest.mark.filterwarnings("ignore:alarm=")
@pytest.mark.parametrize("name", saved.CASES)
def test_a_saved_model_has_the_same_bytes(name, require_frozen):
    require_frozen("saved", name, saved.document(name))


@pytest.mark.parametrize("name", saved.KEPT)
def test_a_file_of_version_0_2_gives_the_same_answers(name, require_frozen):
    require_frozen("kept", name, saved.answers(name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables and their models."""
    path = tmp_path_factory.mktemp("frozen")
    commands.prepare(path)
    return path


@pytest.mark.filterwarnings("ignore:no drift of")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in commands.CASES]
)
def test_a_command_prints_the_same_document(name, folder, require_frozen):
    require_frozen("commands", name, commands.document(name, folder))


def is_equal(found, expected):
    """Compare documents: exactly where they were made, else to nine digits."""
    return found == expected if IS_SAME_PLATFORM else parsed(found, float) == parsed(expected, nearly)


def nearly(number):
    return pytest.approx(number, rel=1e-9, abs=1e-9, nan_ok=True)


def parsed(part, as_number):
    """Return a document with all numbers converted, also those that are written in hexadecimal digits."""
    if isinstance(part, dict):
        return {key: parsed(value, as_number) for key, value in part.items()}
    if isinstance(part, list):
        return [parsed(value, as_number) for value in part]
    if isinstance(part, str) and "0x" in part:
        words = [word.strip(",") for word in part.split()]
        return [as_number(float.fromhex(word)) if "0x" in word else word for word in words]
    return as_number(part) if isinstance(part, float) else part

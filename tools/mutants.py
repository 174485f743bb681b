"""Break the library in many places, one at a time, and see whether the tests notice.

    python tools/mutants.py                     # all of tools/mutations.toml
    python tools/mutants.py search bandwidth    # those whose name, area or function has one of these in it
    python tools/mutants.py --check             # only whether every mutation fits the code

A mutation names the function that it breaks, wherever that is in the library, and what it replaces there:
see mutated_source.py. The repository is copied to a temporary folder, the code is replaced there, and the
tests that have to fail are run: first the one that noticed last time (tools/killers.json), then all that are
listed. A mutation that they all pass survives: a test is missing. Before that they are run without any, as
they must pass then, and machine code is compiled along the way. The exit code is 1 if a mutation survives,
2 if the list does not fit the code.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutated_source import Source, users_of

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutations.toml")
KILLERS = Path(__file__).with_name("killers.json")
#: Not needed by any test, or made anew.
SKIPPED = shutil.ignore_patterns(
    ".git", ".venv", "site", ".hypothesis", ".*_cache", "*.nbi", "*.nbc", "results"
)
#: Files of the compilers, beside the modules whose code they hold.
COMPILED = ("*.nbi", "*.nbc", "*.pyc")


@dataclass(frozen=True)
class Mutation:
    """Code to replace, and the tests that have to notice."""

    name: str
    area: str
    before: str
    after: str
    tests: tuple[str, ...]
    #: The qualified name of the function or class; empty for code outside of all of them.
    inside: str = ""
    #: How the path of its module ends, where several functions of that name have this code.
    module: str = ""
    #: Which of several places in the function, from 1.
    nth: int = 0
    #: For everything but Python: the file, in which `before` must be exactly once.
    file: str = ""
    #: Those of the tests alone whose names match it, as for ``pytest -k``; all of them if empty.
    keyword: str = ""

    def applied(self, source: Source) -> tuple[Path, str]:
        """Return the file that changes and its new text; a ValueError if the mutation does not fit."""
        if self.before == self.after:
            raise ValueError("nothing is changed")
        if self.file:
            return source.with_text(self.file, self.before, self.after)
        return source.with_code(self.inside, self.before, self.after, module=self.module, nth=self.nth)

    def matches(self, words: Iterable[str]) -> bool:
        """Tell whether one of the words is in its name, its area, its function or its file."""
        return any(word in part for word in words for part in (self.name, self.area, self.inside, self.file))


@dataclass(frozen=True)
class Outcome:
    """What became of a mutation: "killed", "survived", "timeout" or "skipped"; and the test that noticed."""

    mutation: Mutation
    verdict: str
    by: str
    seconds: float

    def __str__(self) -> str:
        verdict = self.verdict if self.verdict == "killed" else self.verdict.upper()
        return f"{verdict:9} {self.mutation.area:10} {self.mutation.name}  ({self.by}, {self.seconds:.0f} s)"


def read_list(path: Path = LIST) -> list[Mutation]:
    """Read the mutations."""
    document = tomllib.loads(path.read_text())
    groups = document["tests"]
    mutations = []
    for area, entries in document["mutations"].items():
        for entry in entries:
            tests = entry.pop("tests")
            chosen = groups[tests] if isinstance(tests, str) else tests
            words = {"before": entry.pop("from"), "after": entry.pop("to"), "inside": entry.pop("in", "")}
            mutations.append(Mutation(area=area, tests=tuple(chosen), **words, **entry))
    names = [mutation.name for mutation in mutations]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"mutations must have names of their own: {', '.join(sorted(repeated))}")
    return mutations


def problems(mutations: Iterable[Mutation], root: Path = ROOT) -> Iterator[str]:
    """Say which mutations do not fit the code."""
    source = Source(root)
    for mutation in mutations:
        try:
            mutation.applied(source)
        except (OSError, ValueError, SyntaxError) as error:
            yield f"{mutation.name}: {error}"
        for test in mutation.tests:
            if not (root / test.partition("::")[0]).exists():
                yield f"{mutation.name}: there is no {test}"


# --- one copy of the repository -------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """A copy of the repository to break, and a place where its machine code is kept whole."""

    root: Path
    pristine: Path  # the repository that it was copied from, with all its machine code
    source: Source
    runner: Runner = field(repr=False)

    @classmethod
    def of(cls, pristine: Path, folder: Path) -> Copy:
        """Copy a repository; times of files are kept, as the compiler goes by them."""
        root = folder / "repository"
        shutil.copytree(pristine, root, ignore=SKIPPED)
        shared = ROOT.parent / "shared"
        if shared.is_dir():
            (folder / "shared").symlink_to(shared, target_is_directory=True)
        copy = cls(root, pristine, Source(root), Runner(root))
        copy.take_machine_code(copy.source.modules)
        return copy

    def take_machine_code(self, modules: Iterable[Path]) -> None:
        """Put the machine code of modules back as it was, or take it away where there was none."""
        self.forget_machine_code(modules)
        for module in modules:
            for pattern in COMPILED:
                cache = (self.pristine / module).parent / "__pycache__"
                for path in cache.glob(f"{module.stem}.{pattern}"):
                    mine = (self.root / module).parent / "__pycache__"
                    mine.mkdir(exist_ok=True)
                    shutil.copy2(path, mine / path.name)

    def forget_machine_code(self, modules: Iterable[Path]) -> None:
        """Have modules compiled again."""
        for module in modules:
            for pattern in COMPILED:
                for path in ((self.root / module).parent / "__pycache__").glob(f"{module.stem}.{pattern}"):
                    path.unlink()

    def judge(self, mutation: Mutation, *, limit: float, killer: str = "") -> Outcome:
        """Apply a mutation, run its tests, and take it back."""
        file, text = mutation.applied(self.source)
        path = self.root / file
        # What was compiled knows nothing of changes in another module, so whatever uses this one
        # is compiled again: the compiler looks at the file of a function only.
        stale = [file, *users_of(file, self.source)] if "compiled" in text else [file]
        began = time.monotonic()
        try:
            path.write_text(text)
            self.forget_machine_code(stale)
            code, output = self._killed_by(mutation, killer, limit)
        finally:
            shutil.copy2(self.pristine / file, path)
            self.take_machine_code(stale)
        seconds = time.monotonic() - began
        if code is None:
            return Outcome(mutation, "timeout", "no end", seconds)
        if code == 0 and " passed" not in output:  # without a browser, for example
            return Outcome(mutation, "skipped", "no test ran", seconds)
        if code == 0:
            return Outcome(mutation, "survived", "all tests pass", seconds)
        if code < 0:  # it died, of too much memory, for example
            return Outcome(mutation, "killed", f"the tests died: {signal.Signals(-code).name}", seconds)
        if code not in (1, 2):  # of pytest: some failed, or could not be collected
            return Outcome(mutation, "error", output[-300:].strip(), seconds)
        return Outcome(mutation, "killed", _first_failure(output), seconds)

    def _killed_by(self, mutation: Mutation, killer: str, limit: float) -> tuple[int | None, str]:
        """Run the test that noticed last time; if it is gone or does not notice any more, run them all."""
        if killer and (self.root / killer.partition("::")[0]).exists():
            code, output = self.runner.run([killer], limit=limit)
            if code is None or code in (1, 2) or code < 0:
                return code, output
        chosen = ("-k", mutation.keyword) if mutation.keyword else ()
        return self.runner.run([*chosen, *mutation.tests], limit=limit)


def _first_failure(output: str) -> str:
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0].split(" ", 1)[1]
    return next((line.strip("_ ") for line in output.splitlines() if line.startswith("____")), "?")


# --- tests of a copy ------------------------------------------------------------------------------

_PYTEST = ("-rfE", "-p", "no:cacheprovider", "-m")
#: Imported once, before anything is broken: every run of tests then begins with a fork.
_PRELOADED = (
    *("click", "matplotlib", "networkx", "numba", "numpy", "pandas", "pytest", "rich"),
    *("scipy.stats", "sklearn.base"),
)


class Runner:
    """Runs the tests of a copy, each time in a fork of a process that has imported everything but spbn."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._server: subprocess.Popen[str] | None = None
        self.marks = "not shared"

    @property
    def environment(self) -> dict[str, str]:
        """Where tests, and whatever they start, find the copy; machine code stays beside its modules."""
        return os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self._root / "src"), str(self._root)]),
            "NUMBA_CACHE_DIR": "",
        }

    def run(self, arguments: Iterable[str], *, limit: float) -> tuple[int | None, str]:
        """Run pytest up to the first failure; return its exit code, None if time ran out, and its words."""
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, __file__, "--serve"],
                cwd=self._root,
                env=self.environment | {"PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.NamedTemporaryFile("r") as output:
            options = [*_PYTEST, self.marks, "-x", "-n0", *arguments]
            print(json.dumps([options, limit, output.name]), file=self._server.stdin, flush=True)
            code: int | None = json.loads(self._server.stdout.readline())
            return code, Path(output.name).read_text(errors="replace")

    def compile_all(self) -> None:
        """Have the bytecode of all modules written, which every run of tests then finds."""
        command = [sys.executable, "-m", "compileall", "-q", "src", "tools"]
        subprocess.run(command, cwd=self._root, check=True)

    def run_all(self, tests: Iterable[str], jobs: int) -> str | None:
        """Run tests as they are, on several processes; return what they say if they do not all pass."""
        command = [sys.executable, "-m", "pytest", *_PYTEST, self.marks]
        command += ["-x", f"-n{jobs}", "--dist", "worksteal", *tests]
        done = subprocess.run(
            command, cwd=self._root, env=self.environment, capture_output=True, text=True, check=False
        )
        return None if done.returncode == 0 else done.stdout[-3000:] + done.stderr[-1000:]

    def close(self) -> None:
        """End the process that forks."""
        if self._server is not None:
            self._server.communicate()


def serve() -> None:
    """Run pytest in a fork for every request on standard input, and print its exit code."""
    for name in _PRELOADED:
        __import__(name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        options, limit, output = json.loads(line)
        child = os.fork()
        if child == 0:
            _run_pytest(options, output)
        print(json.dumps(_wait_for(child, limit)), file=answers, flush=True)


def _run_pytest(options: list[str], output: str) -> None:
    import pytest

    os.setsid()  # so that its children can be stopped with it
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), stream)
    code = 3
    try:
        code = int(pytest.main(options))
        sys.stdout.flush()
    finally:
        os._exit(code)


def _wait_for(child: int, limit: float) -> int | None:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _kill_group(child)  # whatever it has left behind
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    _kill_group(child)
    os.waitpid(child, 0)
    return None


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


# --- all of them ----------------------------------------------------------------------------------


def run(mutations: list[Mutation], *, jobs: int, limit: float, check_first: bool) -> list[Outcome]:
    """Judge mutations, some at a time, and print every outcome."""
    killers: dict[str, str] = json.loads(KILLERS.read_text()) if KILLERS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        (Path(folder) / "0").mkdir()
        first = Copy.of(ROOT, Path(folder) / "0")
        first.runner.compile_all()
        if check_first:
            print("running the tests without any mutation ...", flush=True)
            tests = sorted({test for mutation in mutations for test in mutation.tests})
            if (complaint := first.runner.run_all(tests, jobs)) is not None:
                raise RuntimeError(f"tests fail without any mutation:\n{complaint}")
        for number in range(1, jobs + 1):
            (Path(folder) / str(number)).mkdir()
            copies.put(Copy.of(first.root, Path(folder) / str(number)))
        printing = threading.Lock()

        def judge(mutation: Mutation) -> Outcome:
            copy = copies.get()
            try:
                outcome = copy.judge(mutation, limit=limit, killer=killers.get(mutation.name, ""))
            finally:
                copies.put(copy)
            with printing:
                print(outcome, flush=True)
                if outcome.verdict == "killed" and "::" in outcome.by:
                    killers[mutation.name] = outcome.by
            return outcome

        threads = ThreadPoolExecutor(jobs)
        try:
            return list(threads.map(judge, mutations))
        finally:  # an interrupt leaves the rest undone
            threads.shutdown(cancel_futures=True)
            while not copies.empty():
                copies.get().runner.close()
            known = {mutation.name for mutation in read_list()}
            kept = {name: test for name, test in sorted(killers.items()) if name in known}
            KILLERS.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only those with one of these in name, area or function")
    parser.add_argument("--jobs", type=int, default=max(1, os.cpu_count() or 2), help="at a time")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the tests of one mutation")
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--check", action="store_true", help="only look whether the list fits the code")
    parser.add_argument("--skip-baseline", action="store_true", help="do not run the tests without mutations")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return 0
    mutations = [m for m in read_list() if not arguments.words or m.matches(arguments.words)]
    if arguments.list:
        for mutation in mutations:
            print(f"{mutation.area:10} {mutation.name}  ({mutation.inside or mutation.file})")
        return 0
    wrong = list(problems(mutations))
    for problem in wrong:
        print(problem, file=sys.stderr)
    if arguments.check or not mutations:
        print(f"{len(mutations)} mutations, {len(wrong)} do not fit")
        return 2 if wrong or not mutations else 0
    fitting = [m for m in mutations if not any(problem.startswith(f"{m.name}: ") for problem in wrong)]
    try:
        outcomes = run(
            fitting, jobs=arguments.jobs, limit=arguments.limit, check_first=not arguments.skip_baseline
        )
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    left = [outcome for outcome in outcomes if outcome.verdict not in ("killed", "timeout")]
    print(f"\n{len(outcomes) - len(left)} of {len(outcomes)} mutations killed")
    for area in dict.fromkeys(mutation.area for mutation in fitting):
        of_area = [outcome for outcome in outcomes if outcome.mutation.area == area]
        print(f"  {area:10} {sum(o not in left for o in of_area)} of {len(of_area)}")
    for outcome in left:
        print(outcome)
    return 1 if any(outcome.verdict != "skipped" for outcome in left) else 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Break the library in many places, one at a time, and see whether the tests notice.

    python tools/mutants.py                     # all of tools/mutations.toml
    python tools/mutants.py search bandwidth    # those whose name, area or file has one of these in it
    python tools/mutants.py --check             # only whether every text is still there, exactly once

The repository is copied to a temporary folder, a text is replaced there, and the tests that have to
fail are run. A mutation that they all pass survives: a test is missing. First of all they are run
without any, as they must pass then, and machine code is compiled along the way. The exit code is 1 if a
mutation survives, 2 if the list does not fit the code.
"""

from __future__ import annotations

import argparse
import ast
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutations.toml")
#: Not needed by any test, or made anew.
SKIPPED = shutil.ignore_patterns(
    ".git", ".venv", "site", ".hypothesis", ".*_cache", "*.pyc", "*.nbi", "*.nbc", "results"
)
#: Files of the compiler, beside the modules whose functions they hold.
COMPILED = ("*.nbi", "*.nbc")


@dataclass(frozen=True)
class Mutation:
    """A text to replace in a file, and the tests that have to notice."""

    name: str
    area: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    #: Its code is likely to change: the text may have to be adjusted.
    moving: bool = False
    #: Those of the tests alone whose names match it, as for ``pytest -k``; all of them if empty.
    keyword: str = ""

    def applied(self, text: str) -> str:
        """Return the file with the mutation; a ValueError if the text is not there exactly once."""
        if (found := text.count(self.before)) != 1:
            raise ValueError(f"{self.file} has the text {found} times: {self.before!r}")
        if self.before == self.after:
            raise ValueError("nothing is changed")
        return text.replace(self.before, self.after)

    def matches(self, words: Iterable[str]) -> bool:
        """Tell whether one of the words is in its name, its area or its file."""
        return any(word in part for word in words for part in (self.name, self.area, self.file))


@dataclass(frozen=True)
class Outcome:
    """What became of a mutation: "killed", "survived" or "timeout"; and the test that noticed."""

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
    for entry in document["mutation"]:
        tests = entry["tests"]
        mutations.append(
            Mutation(
                entry["name"],
                entry["area"],
                entry["file"],
                entry["from"],
                entry["to"],
                tuple(groups[tests] if isinstance(tests, str) else tests),
                entry.get("moving", False),
                entry.get("keyword", ""),
            )
        )
    names = [mutation.name for mutation in mutations]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"mutations must have names of their own: {', '.join(sorted(repeated))}")
    return mutations


def problems(mutations: Iterable[Mutation], root: Path = ROOT) -> Iterator[str]:
    """Say which mutations do not fit the code."""
    for mutation in mutations:
        try:
            text = mutation.applied((root / mutation.file).read_text())
            if mutation.file.endswith(".py"):
                ast.parse(text)
        except (OSError, ValueError, SyntaxError) as error:
            note = " (marked as moving: adjust its text)" if mutation.moving else ""
            yield f"{mutation.name}: {error}{note}"
        for test in mutation.tests:
            if not (root / test.partition("::")[0]).exists():
                yield f"{mutation.name}: there is no {test}"


# --- one copy of the repository -------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """A copy of the repository to break, and a place where its machine code is kept whole."""

    root: Path
    pristine: Path  # the repository that it was copied from, with all its machine code

    @classmethod
    def of(cls, pristine: Path, folder: Path) -> Copy:
        """Copy a repository; times of files are kept, as the compiler goes by them."""
        root = folder / "repository"
        shutil.copytree(pristine, root, ignore=SKIPPED)
        shared = ROOT.parent / "shared"
        if shared.is_dir():
            (folder / "shared").symlink_to(shared, target_is_directory=True)
        copy = cls(root, pristine)
        copy.take_machine_code(_modules(root))
        return copy

    def take_machine_code(self, modules: Iterable[Path]) -> None:
        """Put the machine code of modules back as it was, or take it away where there was none."""
        for module in modules:
            cache = (self.root / module).parent / "__pycache__"
            for pattern in COMPILED:
                for path in cache.glob(f"{module.stem}.{pattern}"):
                    path.unlink()
                for path in ((self.pristine / module).parent / "__pycache__").glob(
                    f"{module.stem}.{pattern}"
                ):
                    cache.mkdir(exist_ok=True)
                    shutil.copy2(path, cache / path.name)

    def forget_machine_code(self, modules: Iterable[Path]) -> None:
        """Have modules compiled again."""
        for module in modules:
            for pattern in COMPILED:
                for path in ((self.root / module).parent / "__pycache__").glob(f"{module.stem}.{pattern}"):
                    path.unlink()

    def judge(self, mutation: Mutation, *, limit: float) -> Outcome:
        """Apply a mutation, run its tests, and take it back."""
        path = self.root / mutation.file
        module = Path(mutation.file)
        text = path.read_text()
        # What was compiled knows nothing of changes in another module, so whatever uses this one
        # is compiled again: the compiler looks at the file of a function only.
        stale = [module, *_users_of(module, self.root)] if "compiled" in text else []
        began = time.monotonic()
        try:
            path.write_text(mutation.applied(text))
            self.forget_machine_code(stale)
            chosen = ("-k", mutation.keyword) if mutation.keyword else ()
            code, output = self.run_tests(mutation.tests, limit=limit, options=("-x", "-n0", *chosen))
        finally:
            shutil.copy2(self.pristine / mutation.file, path)
            self.take_machine_code(stale)
        seconds = time.monotonic() - began
        if code is None:
            return Outcome(mutation, "timeout", "no end", seconds)
        if code == 0:
            return Outcome(mutation, "survived", "all tests pass", seconds)
        if code < 0:  # it died, of too much memory, for example
            return Outcome(mutation, "killed", f"the tests died: {signal.Signals(-code).name}", seconds)
        if code not in (1, 2):  # of pytest: some failed, or could not be collected
            return Outcome(mutation, "error", output[-300:].strip(), seconds)
        return Outcome(mutation, "killed", _first_failure(output), seconds)

    def run_tests(
        self, tests: Iterable[str], *, limit: float, options: tuple[str, ...]
    ) -> tuple[int | None, str]:
        """Run tests; return the exit code of pytest, None if time ran out, and what it said."""
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-m", "not shared"]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(self.root)]),
            "NUMBA_CACHE_DIR": "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                [*command, *options, *tests],
                cwd=self.root,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that its children can be stopped with it
            )
            try:
                code: int | None = process.wait(limit)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                code = None
            output.seek(0)
            return code, output.read()


def _first_failure(output: str) -> str:
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0].split(" ", 1)[1]
    return next((line.strip("_ ") for line in output.splitlines() if line.startswith("____")), "?")


def _modules(root: Path) -> list[Path]:
    return [path.relative_to(root) for path in sorted((root / "src").rglob("*.py"))]


def _users_of(module: Path, root: Path) -> list[Path]:
    """Return the modules that import a module, or import one that does."""
    imports = {path: _imported((root / path).read_text()) for path in _modules(root)}
    users: list[Path] = []
    new = [module]
    while new:
        name = ".".join(new.pop().with_suffix("").parts[1:]).removesuffix(".__init__")
        for path, imported in imports.items():
            if name in imported and path not in users and path != module:
                users.append(path)
                new.append(path)
    return users


def _imported(text: str) -> set[str]:
    """Return the names of modules that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


# --- all of them ----------------------------------------------------------------------------------


def baseline(copy: Copy, mutations: list[Mutation], jobs: int) -> str | None:
    """Run all tests without any mutation, as they must pass; return what they say if they do not."""
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    code, output = copy.run_tests(tests, limit=3600.0, options=("-x", f"-n{jobs}", "--dist", "worksteal"))
    return None if code == 0 else output[-3000:]


def run(mutations: list[Mutation], *, jobs: int, limit: float, check_first: bool) -> list[Outcome]:
    """Judge mutations, some at a time, and print every outcome."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        (Path(folder) / "0").mkdir()
        first = Copy.of(ROOT, Path(folder) / "0")
        if check_first:
            print("running the tests without any mutation ...", flush=True)
            if (complaint := baseline(first, mutations, jobs)) is not None:
                raise RuntimeError(f"tests fail without any mutation:\n{complaint}")
        for number in range(1, jobs + 1):
            (Path(folder) / str(number)).mkdir()
            copies.put(Copy.of(first.root, Path(folder) / str(number)))
        printing = threading.Lock()

        def judge(mutation: Mutation) -> Outcome:
            copy = copies.get()
            try:
                outcome = copy.judge(mutation, limit=limit)
            finally:
                copies.put(copy)
            with printing:
                print(outcome, flush=True)
            return outcome

        threads = ThreadPoolExecutor(jobs)
        try:
            return list(threads.map(judge, mutations))
        finally:  # an interrupt leaves the rest undone
            threads.shutdown(cancel_futures=True)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only those with one of these in name, area or file")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="at a time")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the tests of one mutation")
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--check", action="store_true", help="only look whether the list fits the code")
    parser.add_argument("--skip-baseline", action="store_true", help="do not run the tests without mutations")
    arguments = parser.parse_args()
    mutations = [m for m in read_list() if not arguments.words or m.matches(arguments.words)]
    if arguments.list:
        for mutation in mutations:
            print(f"{mutation.area:10} {mutation.name}  ({mutation.file})")
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
    left = [outcome for outcome in outcomes if outcome.verdict in ("survived", "error")]
    print(f"\n{len(outcomes) - len(left)} of {len(outcomes)} mutations killed")
    for area in dict.fromkeys(mutation.area for mutation in fitting):
        of_area = [outcome for outcome in outcomes if outcome.mutation.area == area]
        print(f"  {area:10} {sum(o not in left for o in of_area)} of {len(of_area)}")
    for outcome in left:
        print(outcome)
    return 1 if left else 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

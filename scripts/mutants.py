"""Do the tests notice mistakes? Make seeded ones in safety, geometry, rewards and metrics, and run the tests on each.

Usage: python scripts/mutants.py [--each 10] [--seed 0] [--processes 1]

A mutant is a copy of the package with one operator, comparison or number changed inside a function. The tests that name
its module are run on it until one fails: then it is killed. The command lists those that survive, and fails if any
does.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tyro

ROOT = Path(__file__).parent.parent

AREAS = {
    "safety": ("flight/guardian/safety.py", "flight/guardian/prediction.py", "flight/guardian/setpoints.py"),
    "geometry": ("frames.py", "camera.py", "lens.py", "model/mapping.py", "model/ego.py"),
    "rewards": ("learning/rewards.py", "learning/ppo.py", "learning/emd/__init__.py"),
    "metrics": ("execution/metrics.py", "language/meaning/judge.py", "language/meaning/scores.py"),
}

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

EXCHANGED = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "sin": "cos", "cos": "sin"}


@dataclass(frozen=True)
class Mutant:
    """One changed place."""

    file: str
    line: int
    before: str
    after: str
    source: str
    """The whole file with the change."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} → {self.after}"


def main(each: int = 10, seed: int = 0, processes: int = 1) -> None:
    """Run the tests on mutants.

    Args:
        each: Mutants of each area.
        seed: Chooses them.
        processes: How many run at a time.
    """
    rng = random.Random(seed)
    chosen = []
    for files in AREAS.values():
        found = [mutant for file in files for mutant in mutants(file)]
        chosen += rng.sample(found, each)
    with ThreadPoolExecutor(processes) as pool:
        killers = pool.map(killer, chosen)
        survivors = []
        for mutant, test in zip(chosen, killers, strict=True):
            print(f"{'killed by ' + test if test else 'SURVIVED'}: {mutant}", flush=True)
            survivors += [] if test else [mutant]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed")
    sys.exit(bool(survivors))


def mutants(file: str) -> Iterator[Mutant]:
    """All single changes of a file's functions."""
    source = (ROOT / "src" / "wordwing" / file).read_text("utf-8")
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for node in _expressions(function):
                changed = _changed(node)
                before = ast.get_source_segment(source, node)
                if isinstance(node, ast.expr) and changed is not None and before is not None and "\n" not in before:
                    after = ast.unparse(changed)
                    lines = source.splitlines(keepends=True)
                    row = lines[node.lineno - 1].encode()
                    lines[node.lineno - 1] = (
                        row[: node.col_offset] + f"({after})".encode() + row[node.end_col_offset :]
                    ).decode()
                    yield Mutant(file, node.lineno, before, after, "".join(lines))


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    """All that a function computes, but what it tells people."""
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, ast.JoinedStr | ast.Raise | ast.arguments):
            yield inner
            yield from _expressions(inner)


def _changed(node: ast.AST) -> ast.expr | None:
    """A node with another operator, function or number; None where there is none to change."""
    match node:
        case ast.BinOp(_, _, ast.Name("TINY")):  # a tolerance of rounding, which no flight can tell
            return None
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            return ast.BinOp(left, SWAPPED[type(operator)](), right)  # type: ignore[arg-type]
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPPED:
            return ast.Compare(left, [SWAPPED[type(operator)]()], [right])  # type: ignore[list-item]
        case ast.BoolOp(operator, values):
            return ast.BoolOp(SWAPPED[type(operator)](), values)  # type: ignore[arg-type]
        case ast.Call(ast.Name(name), arguments, keywords) if name in EXCHANGED:
            return ast.Call(ast.Name(EXCHANGED[name]), arguments, keywords)
        case ast.Call(ast.Attribute(value, name), arguments, keywords) if name in EXCHANGED:
            return ast.Call(ast.Attribute(value, EXCHANGED[name]), arguments, keywords)
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            return operand
        case ast.Constant(float(value)) if value:
            return ast.Constant(1.5 * value)
    return None


def killer(mutant: Mutant) -> str:
    """The first test that fails on a mutant; empty if none does."""
    module = "wordwing." + mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, name = module.rpartition(".")
    named = re.compile(rf"{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b")
    tests = [test for test in sorted((ROOT / "tests").rglob("test_*.py")) if named.search(test.read_text("utf-8"))]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / "src" / "wordwing" / mutant.file).write_text(mutant.source, "utf-8")
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not long", *map(str, tests)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(Path(folder) / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split("::")[-1] if failed else f"exit status {done.returncode}"


if __name__ == "__main__":
    tyro.cli(main)

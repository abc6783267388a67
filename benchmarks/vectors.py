"""Measure the speed and size of the vector index, and its kernels. Run: `python benchmarks/vectors.py`.

With `--recall FILE.npy` (float32[n, dim], real embeddings), it measures instead how many of the exact nearest vectors a
search by binary codes finds, at several sizes and depths; the last 200 rows are the questions.

One thread. Times are medians in milliseconds; kernels alternate, so that a busy machine slows all alike. The script
writes `benchmarks/results/vectors.json`. Kernels without an installed package are skipped.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before numpy reads them
BLAS_SETTINGS = {name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ}

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import re  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from functools import partial  # noqa: E402
from importlib import import_module  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from ricordo.storage.database.vector_index import VectorIndex  # noqa: E402
from ricordo.storage.database.vector_math import (  # noqa: E402
    distances,
    dots_by_numpy,
    dots_by_simsimd,
    encode,
    pack_segment,
    signs_of,
)

DIMENSION = 256
SEGMENT_ROWS = 4_096
RESULTS = Path(__file__).parent / "results" / "vectors.json"

Codes = NDArray[np.int8]
Contender = Callable[[Codes, Codes], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--recall", type=Path)
    options = parser.parse_args()
    if options.recall:
        print_recall(np.load(options.recall).astype(np.float32))
        return
    report: dict[str, object] = {"machine": machine(), "dimension": DIMENSION, "sizes": {}}
    for size in options.sizes:
        with ProcessPoolExecutor(
            1, mp_context=get_context("spawn")
        ) as fresh:  # memory freed by earlier steps is not counted
            figures = fresh.submit(measure, size, options.rounds).result()
        report["sizes"][str(size)] = figures  # type: ignore[index]
        print(f"\n{size:,} vectors of {DIMENSION} dimensions")
        for label, figure in figures.items():
            print(f"  {label:<52}{figure:>10.3f}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\n{json.dumps(report['machine'])}\nwritten to {RESULTS}")


def measure(size: int, rounds: int) -> dict[str, float]:
    """Return all figures of one size."""
    return {**measure_index(size, rounds), **measure_kernels(size, rounds)}


def measure_index(size: int, rounds: int) -> dict[str, float]:
    """Measure loading, memory, and every kind of search on a `VectorIndex` with gaps between its keys."""
    rng = np.random.default_rng(11)
    keys = np.arange(size) * 2 + rng.integers(0, 2, size)
    memory = anonymous_mb()
    index = VectorIndex(DIMENSION)
    for part in segments(keys, rng):
        index.extend(part)
    query = rng.standard_normal(DIMENSION).astype(np.float32)
    every = VectorIndex(DIMENSION, sketch_from=size)
    plain = VectorIndex(DIMENSION, sketch_from=size, kernel=dots_by_numpy)
    every._blocks = plain._blocks = index._blocks  # the same rows: a second copy would distort the figure for memory
    cases: dict[str, Callable[[], object]] = {
        "search for 80, by signs above 50,000, ms": partial(index.search, query, 80),
        "search for 80, every row, best kernel, ms": partial(every.search, query, 80),
        "search for 80, every row, numpy only, ms": partial(plain.search, query, 80),
    }
    for share in (0.01, 0.1):
        some = np.sort(rng.choice(keys, int(size * share), replace=False))
        cases[f"search among {share:.0%}, best kernel, ms"] = partial(index.search, query, 10, among=some)
        cases[f"search among {share:.0%}, numpy only, ms"] = partial(plain.search, query, 10, among=some)
    figures = medians(cases, rounds)
    figures["memory with lookup tables (RssAnon), MB"] = anonymous_mb() - memory
    figures["load in segments of 4,096, ms"] = load_time(list(segments(keys, rng)))
    return {**figures, **measure_writes(index, int(keys[-1]), query)}


def print_recall(vectors: NDArray[np.float32]) -> None:
    """Return the mean share of the exact 80 and 10 nearest among the `depth` x 80 rows with the nearest codes."""
    np.random.default_rng(1).shuffle(vectors)
    questions, vectors = vectors[-200:], vectors[:-200]
    dimension = vectors.shape[1]
    segment = pack_segment(range(len(vectors)), [encode(vector, dimension) for vector in vectors])
    codes = np.frombuffer(segment, np.int8, offset=12 * len(vectors)).reshape(len(vectors), dimension)
    asked = signs_of(
        np.frombuffer(b"".join(encode(q, dimension)[4:] for q in questions), np.int8).reshape(-1, dimension)
    )
    signs = signs_of(codes)
    print("recall@80 / recall@10 by depth")
    for size in (len(vectors) >> shift for shift in (3, 2, 1, 0)):
        line = f"  {size:>9,}"
        scores = [vectors[:size] @ question for question in questions]
        best = [np.argsort(-score, kind="stable")[:80] for score in scores]
        far = [distances(signs[:, :size], asked[:, place : place + 1]) for place in range(len(questions))]
        for depth in (10, 20, 40, 60, 80):
            limits = [np.partition(distance, min(size, depth * 80) - 1)[min(size, depth * 80) - 1] for distance in far]
            hits = np.array([each[near] <= last for each, near, last in zip(far, best, limits, strict=True)])
            line += f"   {depth}: {hits.mean():.4f} / {hits[:, :10].mean():.4f}"
        print(line)


def measure_writes(index: VectorIndex, last: int, query: NDArray[np.float32]) -> dict[str, float]:
    """Return microseconds per single write."""
    row = encode(query, DIMENSION)
    steps: dict[str, Callable[[int], object]] = {
        "add a new key, us": lambda i: index.add(last + 1 + i, row),
        "replace a key, us": lambda i: index.add(last + 1 + i, row),
        "remove a key, us": lambda i: index.remove(last + 1 + i),
    }
    figures = {}
    for label, step in steps.items():
        begin = time.perf_counter()
        for i in range(1_000):
            step(i)
        figures[label] = (time.perf_counter() - begin) * 1e3
    return figures


def measure_kernels(size: int, rounds: int) -> dict[str, float]:
    """Measure bare dot products of one query with all rows, without scales and ranking."""
    rng = np.random.default_rng(12)
    codes = rng.integers(-127, 128, (size, DIMENSION), np.int8)
    query = codes[0].copy()
    exact = dots_by_numpy(codes, query)
    cases: dict[str, Callable[[], object]] = {}
    for label, contender in contenders().items():
        if not np.array_equal(np.asarray(contender(codes, query)).ravel(), exact):
            raise SystemExit(f"{label} is not exact")
        cases[f"kernel {label}, ms"] = partial(contender, codes, query)
    if size <= 100_000:  # float32 rows: four times the memory
        floats, asked = codes.astype(np.float32), query.astype(np.float32)
        cases["kernel numpy on float32 rows (4x memory), ms"] = lambda: floats @ asked
    if size <= 10_000:
        wide, whole = codes.astype(np.int32), query.astype(np.int32)
        cases["kernel numpy int32 matmul, ms"] = lambda: wide @ whole
    cases["reading all bytes once (numpy max), ms"] = lambda: codes.max()
    return medians(cases, rounds)


def contenders() -> dict[str, Contender]:
    found: dict[str, Contender] = {"numpy int8 to float32 by cachefuls": dots_by_numpy}
    try:
        import simsimd  # noqa: F401
    except ImportError:
        pass
    else:
        found["simsimd cdist"] = dots_by_simsimd
    try:
        numkong: Any = import_module("numkong")
    except ImportError:
        return found
    found["numkong cdist"] = lambda codes, query: numkong.cdist(query[np.newaxis], codes, "dot")
    found["numkong dots_packed"] = lambda codes, query: numkong.dots_packed(codes, numkong.dots_pack(query[np.newaxis]))
    return found


def segments(keys: NDArray[np.int64], rng: np.random.Generator) -> Iterator[bytes]:
    """Return random rows in the layout of `pack_segment`."""
    for top in range(0, len(keys), SEGMENT_ROWS):
        ids = keys[top : top + SEGMENT_ROWS]
        codes = rng.integers(-127, 128, (len(ids), DIMENSION), np.int8)
        scales = rng.uniform(0.001, 0.002, len(ids)).astype("<f4")
        yield ids.astype("<i8").tobytes() + scales.tobytes() + codes.tobytes()


def load_time(parts: list[bytes]) -> float:
    """Return the median milliseconds of five loads."""
    times = []
    for _ in range(5):
        index = VectorIndex(DIMENSION)
        begin = time.perf_counter()
        for part in parts:
            index.extend(part)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def medians(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each case; the cases alternate."""
    times: dict[str, list[float]] = {label: [] for label in cases}
    for turn in range(rounds + 1):
        for label, case in cases.items():
            begin = time.perf_counter()
            case()
            if turn:  # the first run warms caches and builds lookup tables
                times[label].append((time.perf_counter() - begin) * 1e3)
    return {label: statistics.median(taken) for label, taken in times.items()}


def anonymous_mb() -> float:
    """Return the anonymous memory of this process; 0 if the system does not report it."""
    status = Path("/proc/self/status")
    found = re.search(r"RssAnon:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0


def machine() -> dict[str, object]:
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: installed(name) for name in ("numpy", "simsimd", "numkong")},
        "blas_settings": BLAS_SETTINGS,
    }


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()

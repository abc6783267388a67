"""The vector index against a plain reference: the same answer on every path."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ricordo.errors import InvalidError
from ricordo.storage.database import vector_math
from ricordo.storage.database.vector_index import SKETCH_LEAST, VectorIndex
from ricordo.storage.database.vector_math import (
    Centre,
    Kernel,
    best,
    bits_of,
    centred_cosines,
    decode,
    distances,
    dots_by_numpy,
    dots_by_simsimd,
    encode,
    nearest,
    pack_segment,
    quantise,
    signs_of,
)

KERNELS: list[Kernel] = [dots_by_numpy]
try:
    import simsimd  # noqa: F401
except ImportError:
    pass
else:
    KERNELS.append(dots_by_simsimd)

Vector = NDArray[np.float32]
Rows = dict[int, bytes]


def reference_scores(rows: Rows, query: Vector) -> dict[int, np.float32]:
    """The definition: whole number * row scale * query scale, in this order, in float32."""
    asked = encode(query, len(query))

    def score(row: bytes) -> np.float32:
        (whole,) = [np.dot(_codes(row), _codes(asked))]
        return np.float32(whole) * _scale(row) * _scale(asked)

    return {key: score(row) for key, row in rows.items()}


def reference_search(rows: Rows, query: Vector, limit: int) -> list[tuple[int, np.float32]]:
    scores = reference_scores(rows, query)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _codes(row: bytes) -> NDArray[np.int64]:
    return np.frombuffer(row, np.int8, offset=4).astype(np.int64)


def _scale(row: bytes) -> np.float32:
    return np.float32(np.frombuffer(row, "<f4", count=1)[0])


def found(answer: tuple[NDArray[np.int64], Vector]) -> list[tuple[int, np.float32]]:
    keys, scores = answer
    assert keys.dtype == np.int64
    assert scores.dtype == np.float32
    return list(zip(keys.tolist(), scores, strict=True))


def random_rows(rng: np.random.Generator, keys: Iterable[int], dimension: int) -> Rows:
    return {key: encode(rng.standard_normal(dimension), dimension) for key in keys}


def index_of(rows: Rows, dimension: int, **options: Any) -> VectorIndex:
    index = VectorIndex(dimension, **options)
    if rows:
        index.extend(pack_segment(rows.keys(), rows.values()))
    return index


# A history is a list of writes. Few keys and few distinct numbers, so that keys return and scores tie.
DIMENSION = 5
key = st.integers(-3, 25) | st.sampled_from([-(2**63), 2**63 - 1])
vector = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=DIMENSION, max_size=DIMENSION)
add = st.tuples(st.just("add"), st.lists(st.tuples(key, vector), min_size=1, max_size=1))
extend = st.tuples(st.just("extend"), st.lists(st.tuples(key, vector), max_size=30))
remove = st.tuples(st.just("remove"), st.lists(key, min_size=1, max_size=12))
remove_all = st.tuples(st.just("remove_all"), st.lists(key, max_size=12))
History = list[tuple[str, list[Any]]]


def replay(history: History, index: VectorIndex) -> Rows:
    """Applies a history to an index and to a dict."""
    rows: Rows = {}
    for verb, items in history:
        if verb == "remove":
            for removed in items:
                assert index.remove(removed) == (rows.pop(removed, None) is not None)
            continue
        if verb == "remove_all":
            assert index.remove_all(items) == sum(rows.pop(removed, None) is not None for removed in items)
            continue
        pairs = [(added, encode(numbers, DIMENSION)) for added, numbers in items]
        rows.update(pairs)
        if verb == "add":
            index.add(*pairs[0])
        else:
            index.extend(pack_segment([added for added, _ in pairs], [row for _, row in pairs]))
    return rows


@given(
    history=st.lists(st.one_of(add, extend, remove, remove_all), max_size=12),
    query=vector,
    limit=st.integers(1, 40),
    some=st.lists(key, max_size=30),
    kernel=st.sampled_from(KERNELS),
    block_rows=st.sampled_from([1, 2, 7, 1000]),
    table=st.booleans(),
    sketch_from=st.sampled_from([0, 3, 1000]),
)
def test_every_search_path_gives_the_same_answer(
    history: History,
    query: list[float],
    limit: int,
    some: list[int],
    kernel: Kernel,
    block_rows: int,
    table: bool,
    sketch_from: int,
) -> None:
    """Binary codes may be compared first, if they let all rows pass."""
    asked = np.array(query, np.float32)
    index = VectorIndex(DIMENSION, kernel=kernel, block_rows=block_rows, sketch_from=sketch_from)
    rows = replay(history, index)
    chosen = {k: row for k, row in rows.items() if k in some}
    # Many missing keys make the look-up use a table instead of bisection.
    among = some + [k for k in range(100, 200) if table]

    assert len(index) == len(rows)
    assert [k in index for k in some] == [k in rows for k in some]
    assert found(index.search(asked, limit)) == reference_search(rows, asked, limit)
    assert found(index.search(asked, limit, among=among)) == reference_search(chosen, asked, limit)
    assert index.present(among).tolist() == sorted(chosen)
    np.testing.assert_array_equal(index.vectors(list(rows)).tolist(), [decode(row).tolist() for row in rows.values()])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("share", [0.002, 0.1, 0.45, 0.55, 1.0])
def test_a_large_subset_scores_like_the_whole(kernel: Kernel, share: float) -> None:
    rng = np.random.default_rng(7)
    rows = random_rows(rng, range(10, 9_010, 3), 32)
    index = index_of(rows, 32, kernel=kernel, block_rows=1024)
    query = rng.standard_normal(32).astype(np.float32)
    some = rng.choice(list(rows), int(share * len(rows)), replace=False)
    expected = reference_search({k: rows[k] for k in some.tolist()}, query, 50)
    assert found(index.search(query, 50, among=some)) == expected


@pytest.mark.parametrize("dimension", [1, 3, 31, 64, 100, 256, 384, 1024, 1025, 1536, 4096])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_exact_at_the_limits_of_int8(kernel: Kernel, dimension: int) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(-127, 128, (60, dimension), np.int8)
    codes[0], codes[1], codes[2] = 127, -127, -128
    codes[20:] = rng.integers(100, 128, (40, dimension))  # sums beyond 2**24, where float32 would round on the way
    for query in (codes[0], codes[1], codes[3], codes[20]):
        exact = codes.astype(np.int64) @ query.astype(np.int64)
        np.testing.assert_array_equal(kernel(codes, query), exact.astype(np.float32))


@pytest.mark.parametrize("dimension", [1, 100, 256, 4096])
@pytest.mark.parametrize("kernel", KERNELS)
def test_squared_rows_are_exact_at_the_limits_of_int8(
    kernel: Kernel, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_math, "fastest", kernel)
    codes = np.random.default_rng(3).integers(-127, 128, (60, dimension), np.int8)
    codes[0], codes[1] = 127, -128
    for some in (codes, codes[:1], codes[:0]):
        exact = (some.astype(np.int64) ** 2).sum(axis=1)
        found = vector_math.squares(some)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, exact.astype(np.float32))


def test_centred_cosines_equal_cosines_of_differences() -> None:
    """Within the rounding of int8; no cosine without a vector or direction."""
    rng = np.random.default_rng(5)
    mean = rng.standard_normal(256).astype(np.float32) / 16
    rows = rng.standard_normal((40, 256)).astype(np.float32) / 16 + mean
    vector = rows[0] + rng.standard_normal(256).astype(np.float32) / 32
    codes, scales = map(np.array, zip(*(quantise(row, 256, field="row") for row in rows), strict=True))
    scales[7] = np.nan
    differences, asked = rows - mean, vector - mean
    exact = differences @ asked / np.linalg.norm(differences, axis=1) / np.linalg.norm(asked)
    found = centred_cosines(codes, scales, vector, Centre.at(mean))
    assert np.isnan(found[7])
    kept = np.arange(40) != 7
    np.testing.assert_allclose(found[kept], exact[kept], atol=0.004)
    assert not centred_cosines(codes, scales, mean, Centre.at(mean))[kept].any()


def test_equal_scores_are_ordered_by_key_across_the_limit() -> None:
    index = index_of({k: encode(np.ones(4), 4) for k in (9, 2, 7, 4, 1)}, 4, block_rows=2)
    keys, scores = index.search(np.ones(4), 3)
    assert keys.tolist() == [1, 2, 4]
    assert len(set(scores.tolist())) == 1


@pytest.mark.parametrize("count", [1, 40, 700, 9_001])
@pytest.mark.parametrize("limit", [1, 7, 40])
def test_top_k_equals_a_sort(count: int, limit: int) -> None:
    chance = np.random.default_rng(count)
    for spread in (3, 10_000):  # with many ties and with few
        scores = chance.integers(-spread, spread, count).astype(np.float32)
        scores[chance.random(count) < 0.2] = -np.inf  # removed
        keys = chance.permutation(count).astype(np.int64)
        alive = [(-score, key) for key, score in zip(keys.tolist(), scores.tolist(), strict=True) if score > -np.inf]
        found_keys, found_scores = best([(keys, scores)], limit)
        assert list(zip((-found_scores).tolist(), found_keys.tolist(), strict=True)) == sorted(alive)[:limit]


def test_vectors_are_returned_in_the_requested_order() -> None:
    rows = {key: encode(np.full(4, key + 1.0), 4) for key in range(0, 200, 2)}
    index = index_of(rows, 4, block_rows=1_000)
    index.remove(50)
    asked = np.array([*range(198, 100, -2), *range(0, 50, 2)], np.int64)
    assert index.vectors(asked)[:, 0].tolist() == pytest.approx((asked + 1.0).tolist())
    for missing in (50, 51, 1_000):
        found_rows = index.vectors(np.append(asked, missing))
        assert np.isnan(found_rows[-1]).all()
        assert found_rows[:-1, 0].tolist() == pytest.approx((asked + 1.0).tolist())


def test_nothing_is_found_in_an_empty_index_or_among_no_keys() -> None:
    index = VectorIndex(4)
    assert found(index.search(np.ones(4), 5)) == []
    index.add(1, encode(np.ones(4), 4))
    assert found(index.search(np.ones(4), 5, among=[])) == []
    assert index.vectors([]).shape == (0, 4)


def test_a_zero_vector_is_stored_and_scores_zero() -> None:
    index = index_of({1: encode(np.zeros(3), 3), 2: encode(-np.ones(3), 3)}, 3)
    assert found(index.search(np.ones(3), 2))[0] == (1, np.float32(0))
    assert index.search(np.zeros(3), 2)[0].tolist() == [1, 2]


@given(st.lists(st.floats(-(2**39), 2**39, width=32), min_size=1, max_size=30))
def test_decoding_is_within_half_a_step_of_the_input(numbers: list[float]) -> None:
    values = np.array(numbers, np.float32)
    step = max(float(np.abs(values).max()) / 127, 2e-12)
    assert np.abs(decode(encode(values, len(values))).astype(float) - values).max() <= step * 0.5001


def test_an_encoded_vector_is_little_endian_scale_then_bytes() -> None:
    assert encode([127.0, -127.0, 1.0], 3) == b"\x00\x00\x80\x3f\x7f\x81\x01"


@pytest.mark.parametrize("bad", [[np.nan, 0, 0], [np.inf, 0, 0], [0, -np.inf, 0], [2e12, 0, 0], [1, 2], [[1, 2, 3]]])
def test_a_vector_that_is_not_finite_or_of_another_dimension_is_refused_by_name(bad: list[float]) -> None:
    index = index_of({1: encode(np.ones(3), 3)}, 3)
    with pytest.raises(InvalidError, match=r"^vector"):
        encode(bad, 3)
    with pytest.raises(InvalidError, match=r"^query"):
        index.search(bad, 1)
    with pytest.raises(InvalidError, match=r"^query"):
        index.sketch(bad, 1)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("limit", lambda index: index.search(np.ones(3), 0)),
        ("encoded", lambda index: index.add(1, b"123456")),
        ("segment", lambda index: index.extend(b"123456")),
        ("scales", lambda index: index.add(1, b"\x00\x00\xc0\x7f123")),
        ("scales", lambda index: index.extend(pack_segment([1], [b"\x00\x00\x80\xff123"]))),
        ("rows", lambda index: index.reserve(0)),
        ("rows", lambda index: index.reserve(70_000)),
        ("rows", lambda index: pack_segment([1, 2], [b"1234567"])),
        ("encoded", lambda index: decode(b"1234")),
        ("dimension", lambda index: VectorIndex(0)),
    ],
)
def test_an_invalid_row_is_refused_and_changes_nothing(name: str, call: Callable[[VectorIndex], object]) -> None:
    index = index_of({1: encode(np.ones(3), 3)}, 3)
    with pytest.raises(InvalidError, match=f"^{name}"):
        call(index)
    assert index.search(np.ones(3), 5)[0].tolist() == [1]


def test_rows_can_be_read_into_reserved_space() -> None:
    rows = random_rows(np.random.default_rng(1), range(300), 8)
    index = index_of({k: rows[k] for k in range(290)}, 8, block_rows=256)
    room = index.reserve(10)
    room.keys[:] = range(290, 300)
    room.scales[:] = [_scale(rows[k]) for k in range(290, 300)]
    room.codes.data.cast("B")[:] = b"".join(rows[k][4:] for k in range(290, 300))
    assert len(index) == 290
    index.commit(room)
    assert found(index.search(np.ones(8), 300)) == reference_search(rows, np.ones(8, np.float32), 300)


def test_reserved_space_is_void_after_another_write() -> None:
    index = VectorIndex(2)
    room = index.reserve(1)
    index.add(1, encode(np.ones(2), 2))
    with pytest.raises(InvalidError, match=r"^room"):
        index.commit(room)


# codes first


def clustered(rng: np.random.Generator, count: int, dimension: int) -> NDArray[np.float32]:
    """Return vectors in a few hundred clusters with a non-zero mean, like real embeddings."""
    subjects = rng.standard_normal((300, dimension)) + 0.3
    mixed = subjects[rng.integers(0, 300, count)] + 0.9 * rng.standard_normal((count, dimension))
    return np.asarray(mixed, np.float32)


COUNT = 4 * SKETCH_LEAST


@pytest.fixture(scope="module")
def many() -> tuple[Rows, NDArray[np.float32]]:
    """Return many more rows than the codes let pass, and queries."""
    rng = np.random.default_rng(4)
    vectors = clustered(rng, COUNT + 20, 256)
    return {key: encode(vectors[key], 256) for key in range(COUNT)}, vectors[COUNT:]


def test_binary_codes_find_nearly_all_nearest_rows(many: tuple[Rows, NDArray[np.float32]]) -> None:
    rows, questions = many
    exact, quick = index_of(rows, 256), index_of(rows, 256, sketch_from=1_000)
    found_of = [np.isin(exact.search(question, 80)[0], quick.search(question, 80)[0]).mean() for question in questions]
    assert np.mean(found_of) > 0.97
    assert min(found_of) > 0.8
    assert len(quick.sketch(questions[0], 80)) < COUNT / 2, "else this test shows nothing"


def test_rows_selected_by_codes_are_scored_exactly(many: tuple[Rows, NDArray[np.float32]]) -> None:
    rows, questions = many
    index = index_of(rows, 256, sketch_from=1_000)
    chosen = {key: rows[key] for key in index.sketch(questions[0], 20).tolist()}
    assert found(index.search(questions[0], 20)) == reference_search(chosen, questions[0], 20)


def test_the_answer_depends_only_on_the_rows(many: tuple[Rows, NDArray[np.float32]]) -> None:
    """Not on the order of writes, on removals in between, or on when codes were first computed."""
    rows, questions = many
    plain = index_of(rows, 256, sketch_from=1_000)
    rng = np.random.default_rng(9)
    order = rng.permutation(COUNT).tolist()
    stirred = VectorIndex(256, sketch_from=9_000, block_rows=3_000)
    stirred.extend(pack_segment([-7, *order[:5_000]], [rows[0], *(rows[key] for key in order[:5_000])]))
    stirred.extend(pack_segment(range(COUNT, COUNT + 9_000), [rows[key] for key in range(9_000)]))
    stirred.extend(pack_segment(order[4_000:], [rows[key] for key in order[4_000:]]))
    stirred.remove_all([-7, *range(COUNT, COUNT + 9_000)])
    assert len(stirred) == len(plain)
    for question in questions:
        assert found(stirred.search(question, 80)) == found(plain.search(question, 80))


def test_small_indexes_and_key_filters_score_every_row(many: tuple[Rows, NDArray[np.float32]]) -> None:
    rows, questions = many
    index = index_of(rows, 256, sketch_from=COUNT - 1)
    exact = found(index_of(rows, 256).search(questions[1], 400))
    assert len(index.sketch(questions[1], 10)) < COUNT / 2
    assert found(index.search(questions[1], 400, among=range(COUNT))) == exact
    index.remove(0)
    left = {key: row for key, row in rows.items() if key}
    assert len(index.sketch(questions[1], 10)) == COUNT - 1
    assert found(index.search(questions[1], 400)) == found(index_of(left, 256).search(questions[1], 400))


@given(
    st.lists(st.lists(st.integers(0, 255), max_size=300), min_size=1, max_size=4),
    st.integers(1, 700),
    st.sampled_from([np.uint8, np.uint16]),
)
def test_the_nearest_codes_include_ties_with_the_last(parts: list[list[int]], count: int, kind: type) -> None:
    ordered = sorted(distance for part in parts for distance in part)
    last = ordered[min(count, len(ordered)) - 1] if ordered else 0
    expected = [[row for row, distance in enumerate(part) if distance <= last] for part in parts]
    assert [rows.tolist() for rows in nearest([np.array(part, kind) for part in parts], count)] == expected


@pytest.mark.parametrize("dimension", [1, 5, 64, 100, 256, 384, 512, 1536])
def test_codes_approximate_the_angle_independently_of_other_rows(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    codes = rng.integers(-127, 128, (1_500, dimension), np.int8)
    signs = signs_of(codes)
    assert np.array_equal(signs[:, 1_100:1_101], signs_of(codes[1_100:1_101]))
    assert distances(signs, signs_of(codes[:1]))[0] == 0
    opposite = int(distances(signs_of(-codes[:1]), signs_of(codes[:1]))[0])
    assert bits_of(dimension) * 0.7 < opposite < bits_of(dimension), "a sum of zero has no opposite"
    if dimension >= 64:
        near = distances(signs_of((codes[:200] // 2 + codes[200:400] // 4).astype(np.int8)), signs_of(codes[:1]))
        assert near[0] < near[1:].min()


def test_stored_binary_codes_never_change() -> None:
    codes = np.arange(-100, 156, dtype=np.int16).astype(np.int8)[np.newaxis]
    golden = [15857346412407350700, 12231324012360670952, 13600362224500913347, 15456804514606933038]
    assert signs_of(codes)[:, 0].tolist() == golden


def test_memory_of_removed_rows_is_released() -> None:
    rows = random_rows(np.random.default_rng(2), range(4_096), 64)
    tracemalloc.start()
    try:
        index = index_of(rows, 64, block_rows=512)
        full = tracemalloc.get_traced_memory()[0]
        for k in range(4_096):
            if k % 16:
                index.remove(k)
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert left < full / 4
    kept = {k: row for k, row in rows.items() if k % 16 == 0}
    assert found(index.search(np.ones(64), 99)) == reference_search(kept, np.ones(64, np.float32), 99)


def test_readers_see_every_key_once_while_a_writer_replaces_and_compacts() -> None:
    keys = range(300)
    versions = [random_rows(np.random.default_rng(seed), keys, 8) for seed in (1, 2)]
    query = np.ones(8, np.float32)
    allowed = [reference_scores(version, query) for version in versions]
    index = index_of(versions[0], 8, block_rows=64)
    faults: list[object] = []
    done = threading.Event()

    def read(**options: Any) -> None:
        while not done.is_set() and not faults:
            seen = found(index.search(query, 1000, **options))
            if sorted(k for k, _ in seen) != list(keys):
                faults.append(seen)
            faults.extend(pair for pair in seen if pair[1] not in (allowed[0][pair[0]], allowed[1][pair[0]]))

    readers = [threading.Thread(target=read), threading.Thread(target=read, kwargs={"among": np.arange(300)})]
    for reader in readers:
        reader.start()
    for turn in range(6):
        for k in keys:
            index.add(k * 7 % 300, versions[turn % 2][k * 7 % 300])
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []

"""The index algebra of the older dialect against NumPy, on random affine expressions and masks."""

import random

import numpy as np
import pytest
from headway.neuronxcc.nki.index import Index, arange, both, boxes, broadcast, mgrid, region_of
from headway.nki.errors import KernelError, Unsupported


def random_grid(rng):
    shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(1, 3)))
    return shape, mgrid[tuple(slice(0, n) for n in shape)], np.mgrid[tuple(slice(0, n) for n in shape)]


def random_expression(rng, shape, grid, arrays):
    """An affine expression over the grid, and the same with NumPy's arrays."""
    const = rng.randint(-6, 6)
    ours, theirs = const, np.full(shape, const)
    for axis, array in zip(grid, arrays):
        coefficient = rng.choice([0, 0, 1, -1, 2, -3, 5])
        ours, theirs = ours + coefficient * axis, theirs + coefficient * array
    return ours, theirs


@pytest.mark.parametrize("seed", range(60))
def test_expressions_have_numpys_values(seed):
    rng = random.Random(seed)
    shape, grid, arrays = random_grid(rng)
    a, numpy_a = random_expression(rng, shape, grid, arrays)
    b, numpy_b = random_expression(rng, shape, grid, arrays)
    for ours, theirs in (
        (a + b, numpy_a + numpy_b),
        (a - b, numpy_a - numpy_b),
        (3 - a, 3 - numpy_a),
        (-a * 2, -numpy_a * 2),
        (b - 1, numpy_b - 1),
    ):
        assert isinstance(ours, Index)
        np.testing.assert_array_equal(np.broadcast_to(ours.values(), shape), theirs)


@pytest.mark.parametrize("seed", range(150))
def test_boxes_cover_a_mask_exactly_and_once(seed):
    rng = random.Random(1000 + seed)
    shape, grid, arrays = random_grid(rng)
    mask, truth = None, np.ones(shape, bool)
    for _ in range(rng.randint(1, 3)):
        a, numpy_a = random_expression(rng, shape, grid, arrays)
        b, numpy_b = random_expression(rng, shape, grid, arrays)
        compare = rng.choice(["__lt__", "__le__", "__gt__", "__ge__", "__eq__"])
        mask = both(mask, getattr(a, compare)(b))
        truth &= getattr(numpy_a, compare)(numpy_b)
    times = np.zeros(shape, int)
    region = region_of(mask, shape)
    if region is not None:
        for box in boxes(region):
            times[tuple(slice(*ends) for ends in box)] += 1
        outside = truth.copy()
        outside[tuple(slice(*ends) for ends in region.ranges)] = False
        assert not outside.any()
    np.testing.assert_array_equal(times, truth)


def test_arange_and_new_axes():
    np.testing.assert_array_equal(arange(3, 20, 4).values(), np.arange(3, 20, 4))
    np.testing.assert_array_equal(arange(5)[None, :, None].values(), np.arange(5)[None, :, None])
    np.testing.assert_array_equal(arange(10)[2:8:3].values(), np.arange(10)[2:8:3])
    grid = mgrid[0:4, 1:6]
    assert grid.p is grid[0] and grid.x is grid[1]
    np.testing.assert_array_equal(np.broadcast_to(grid.x.values(), (4, 5)), np.mgrid[0:4, 1:6][1])


def test_numpy_numbers_are_coefficients():
    np.testing.assert_array_equal((np.int32(2) * arange(4) + np.int64(3)).values(), 2 * np.arange(4) + 3)


def test_an_extent_of_one_that_is_repeated_keeps_its_value():
    column = arange(7, 8)[:, None] + arange(4)[None, :]
    tall = column + 0 * arange(5)[:, None]
    np.testing.assert_array_equal(tall.values(), np.broadcast_to(7 + np.arange(4), (5, 4)))


def test_a_mask_over_a_column_holds_for_whole_rows_of_larger_tiles():
    region = region_of(arange(128)[:, None] < 100, (128, 4, 8))
    assert region.ranges == ((0, 100), (0, 4), (0, 8)) and not region.rest


def test_masks_join_with_python_truths():
    mask = arange(8)[:, None] >= 3
    assert both(mask, None) is mask and both(True, mask) is mask
    assert (mask & True) is mask and (mask & False) is False
    assert region_of(False, (8, 4)) is None
    assert region_of(arange(8)[:, None] >= 8, (8, 4)) is None


def test_and_leaves_the_second_mask():
    i, j = mgrid[0:8, 0:6]
    assert region_of(i < 4 and j < 3, (8, 6)).ranges == ((0, 8), (0, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda i, j: i // 2,
        lambda i, j: i % 2,
        lambda i, j: i * j,
        lambda i, j: (i < 3) | (j < 2),
        lambda i, j: region_of(i != j, (4, 6)),
    ],
)
def test_what_is_not_affine_is_refused(make):
    with pytest.raises(Unsupported):
        make(*mgrid[0:4, 0:6])


def test_errors_say_what_does_not_fit():
    with pytest.raises(KernelError, match="control-flow"):
        bool(arange(4)[:, None])
    with pytest.raises(KernelError, match="don't go together"):
        broadcast((3, 4), (5, 4))
    with pytest.raises(KernelError, match="doesn't fit"):
        region_of(arange(100)[:, None] < 50, (128, 4))
    with pytest.raises(KernelError, match="mask= takes"):
        region_of("i < 3", (8, 4))

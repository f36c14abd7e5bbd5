"""Tiles of the older dialect against NumPy: indices, assignment, accumulation, masks."""

import random
import warnings

import headway.neuronxcc.nki as nki
import headway.neuronxcc.nki.isa as nisa
import headway.neuronxcc.nki.language as nl
import numpy as np
import pytest
from headway.nki.errors import KernelError, Unsupported


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def stored(tile, shape=None):
    """A tensor in HBM with what is in a tile."""
    out = nl.ndarray(shape or tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


# --- Indices ---


@pytest.mark.parametrize("seed", range(25))
def test_reads_by_index_expressions(seed):
    """Random affine indices of a tile of [P, A, B], read in SBUF and from HBM."""
    rng = random.Random(seed)
    p, a, b = rng.randint(1, 128), rng.randint(2, 9), rng.randint(2, 9)
    x = np.arange(p * a * b, dtype=np.float32).reshape(p, a, b)
    rows, m, n = rng.randint(1, p), rng.randint(1, a), rng.randint(1, b)
    first = rng.choice(
        [s for s in (0, 32, 64, 96) if s + rows <= p and (rows <= 32 or s == 0 or (rows <= 64 and s == 64))]
    )
    step_a, step_b = (
        rng.randint(1, max(1, (a - 1) // max(1, m - 1))),
        rng.randint(1, max(1, (b - 1) // max(1, n - 1))),
    )
    i_p, i_m, i_n = nl.mgrid[0:rows, 0:m, 0:n]
    key = (first + i_p, step_a * i_m, step_b * i_n)

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        return stored(nl.copy(tile[key])), stored(nl.load(x[key]))

    on_chip, from_hbm = kernel(x)
    wanted = x[first : first + rows, : step_a * (m - 1) + 1 : step_a, : step_b * (n - 1) + 1 : step_b]
    np.testing.assert_array_equal(on_chip, wanted)
    np.testing.assert_array_equal(from_hbm, wanted)


def test_writes_by_index_expressions(rng):
    """The rows of a flattened matrix transposed, as in the vendor's tutorial."""
    x = rng.integers(-100, 100, (5, 12)).astype(np.int8)
    i_p, i_1, i_2 = nl.mgrid[0:5, 0:3, 0:4]

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        out = nl.ndarray((5, 12), dtype=x.dtype)
        out[i_p, i_2 * 3 + i_1] = nl.copy(tile[i_p, i_1 * 4 + i_2])
        return stored(out)

    np.testing.assert_array_equal(kernel(x), x.reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12))


def test_windows_that_overlap(rng):
    """Two terms in one index: a sum over windows."""
    x = rng.standard_normal((16, 10)).astype(np.float32)
    i_p, i_x, i_w = nl.mgrid[0:16, 0:8, 0:3]

    @nki.jit
    def kernel(x):
        return stored(nl.sum(nl.load(x)[i_p, i_x + i_w], axis=[2]))

    wanted = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1).sum(-1)
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-6, atol=1e-6)


def test_slices_numbers_and_new_shapes(rng):
    x = rng.standard_normal((3, 64, 24)).astype(np.float32)

    @nki.jit
    def kernel(x):
        page = nl.load(x[1])
        column = page[:, 5]
        every = page[0:32, 1:24:3]
        again = page.reshape((64, 4, 6))[:, 2, nl.ds(1, 4)]
        return (
            stored(nl.copy(column), (64, 1)),
            stored(nl.copy(every)),
            stored(nl.copy(again)),
            stored(nl.load(x.reshape((192, 24))[100:164])),
        )

    column, every, again, flat = kernel(x)
    np.testing.assert_array_equal(column, x[1][:, 5:6])
    np.testing.assert_array_equal(every, x[1][0:32, 1:24:3])
    np.testing.assert_array_equal(again, x[1].reshape(64, 4, 6)[:, 2, 1:5])
    np.testing.assert_array_equal(flat, x.reshape(192, 24)[100:164])


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda x: nl.load(x[nl.arange(16)[:, None], 4 + nl.arange(8)[None, :]]),
            "index 11 is outside extent 1",
        ),
        (lambda x: nl.load(x[0:16, 4:12]), "index 11 is outside extent 1"),
        (
            lambda x: nl.copy(nl.load(x)[nl.arange(16)[:, None], nl.arange(8)[None, :] - 1]),
            "index -1 is outside extent 1",
        ),
        (
            lambda x: nl.load(x[8 + nl.arange(16)[:, None], nl.arange(8)[None, :]]),
            "index 23 is outside extent 0",
        ),
    ],
)
def test_an_index_past_its_extent_is_an_error(make, words):
    """Also where it would stay inside the tensor's memory."""

    @nki.jit
    def kernel(x):
        return stored(make(x))

    with pytest.raises(KernelError, match=words):
        kernel(np.zeros((16, 8), np.float32))


def test_partitions_lead():
    @nki.jit
    def turned(x):
        return stored(nl.copy(nl.load(x)[nl.arange(8)[None, :], nl.arange(8)[:, None]]))

    @nki.jit
    def mixed(x):
        return stored(nl.copy(nl.load(x)[:, nl.arange(8)[None, :]]))

    with pytest.raises(KernelError, match="leading-partition"):
        turned(np.zeros((8, 8), np.float32))
    with pytest.raises(KernelError, match="slices among index expressions"):
        mixed(np.zeros((8, 8), np.float32))


def test_rows_by_an_index_tile(rng):
    x = rng.standard_normal((40, 6)).astype(np.float32)
    rows = rng.permutation(40)[:16].astype(np.int32).reshape(16, 1)

    @nki.jit
    def kernel(x, rows):
        index = nl.load(rows)
        i_p, i_f = nl.mgrid[0:16, 0:6]
        gathered = nl.load(x[index, i_f])
        out = nl.ndarray((40, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.zeros((40, 6), dtype=x.dtype))
        nl.store(out[index[i_p, 0], i_f], gathered)
        return stored(gathered), out

    gathered, scattered = kernel(x, rows)
    wanted = np.zeros_like(x)
    wanted[rows[:, 0]] = x[rows[:, 0]]
    np.testing.assert_array_equal(gathered, x[rows[:, 0]])
    np.testing.assert_array_equal(scattered, wanted)


def test_a_row_out_of_bounds_is_numpys_error():
    @nki.jit
    def kernel(x):
        index = nisa.iota(3 * nl.arange(8)[:, None], dtype=np.int32)
        return stored(nl.load(x[index, nl.arange(4)[None, :]]))

    with pytest.raises(IndexError) as caught:
        kernel(np.zeros((16, 4), np.float32))
    assert str(caught.value) == "index 72 is out of bounds for axis 0 with size 64"


def test_block_dimensions(rng):
    x = rng.standard_normal((6, 32, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        tiles = nl.ndarray((2, 3, nl.par_dim(32), 8), dtype=x.dtype)
        for i in nl.affine_range(2):
            for j in nl.affine_range(3):
                tiles[i, j] = nl.load(x[3 * i + j])
        total = nl.zeros((nl.par_dim(32), 8), dtype=x.dtype)
        for i in nl.affine_range(2):
            for j in nl.affine_range(3):
                total += tiles[i, j, nl.arange(32)[:, None], nl.arange(8)[None, :]]
        return stored(total)

    np.testing.assert_allclose(kernel(x), x.sum(0), rtol=1e-5, atol=1e-5)


def test_an_instruction_works_on_one_block():
    @nki.jit
    def kernel():
        return stored(nl.copy(nl.zeros((2, nl.par_dim(32), 8), dtype=nl.float32)))

    with pytest.raises(Unsupported, match="spans blocks"):
        kernel()


# --- Assignment ---


def instructions(kernel, *arguments):
    return [line.split("(")[0].split()[-1] for line in kernel.record(*arguments).sessions[0].trace.text()]


def test_a_result_is_written_where_it_is_assigned():
    """No copy: as many instructions as calls."""

    @nki.jit
    def kernel(x):
        tile = nl.ndarray((16, 8), dtype=x.dtype)
        tile[...] = nl.load(x)
        out = nl.ndarray((16, 16), dtype=x.dtype)
        out[:, 0:8] = nl.exp(tile)
        out[:, 8:16] = nl.add(tile, 1.0)
        return stored(out)

    x = np.linspace(0, 1, 128, dtype=np.float32).reshape(16, 8)
    np.testing.assert_allclose(kernel(x), np.concatenate([np.exp(x), x + 1], 1), rtol=1e-5)
    assert len(kernel.record(x).sessions[0].trace.text()) == 4


def test_a_result_with_a_name_stays_what_it_is(rng):
    x = rng.standard_normal((16, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((16, 16), dtype=x.dtype)
        negated = nl.multiply(nl.load(x), -1.0)
        out[:, 0:8] = negated
        out[:, 0:8] = nl.add(out[:, 0:8], 5.0)
        out[:, 8:16] = negated
        return stored(out)

    np.testing.assert_array_equal(kernel(x), np.concatenate([-x + np.float32(5), -x], 1))


def test_an_assignment_converts(rng):
    x = rng.standard_normal((16, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        narrow = nl.ndarray((16, 8), dtype=nl.bfloat16)
        narrow[...] = nl.load(x)
        whole = nl.ndarray((16, 8), dtype=nl.int32)
        whole[...] = nl.multiply(nl.load(x), 10.0)
        return stored(narrow), stored(whole)

    import ml_dtypes

    narrow, whole = kernel(x)
    np.testing.assert_array_equal(narrow, x.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(whole, np.rint(x * np.float32(10)).astype(np.int32))


def test_numbers_and_columns_are_assigned():
    @nki.jit
    def kernel(x):
        tile = nl.ndarray((16, 4), dtype=nl.float32)
        tile[...] = 2.5
        tile[:, 1] = nl.load(x)
        tile[:, 2] = 7
        return stored(tile)

    x = np.arange(16, dtype=np.float32)
    wanted = np.full((16, 4), 2.5, np.float32)
    wanted[:, 1], wanted[:, 2] = x, 7
    np.testing.assert_array_equal(kernel(x), wanted)


def test_in_place_addition(rng):
    x = rng.standard_normal((16, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        same = tile
        tile += nl.load(x)
        tile += 1.0
        same[:, 0:2] += tile[:, 2:4]
        return stored(same)

    wanted = x + x + 1
    wanted[:, 0:2] += wanted[:, 2:4]
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-6)


# --- Accumulation in PSUM ---


def operands(rng, parts=3, columns=32):
    a = rng.standard_normal((parts * 64, 16)).astype(np.float32)
    b = rng.standard_normal((parts * 64, columns)).astype(np.float32)
    return a, b


@pytest.mark.parametrize("zeros", [True, False])
def test_products_accumulate(rng, zeros):
    a, b = operands(rng)

    @nki.jit
    def kernel(a, b):
        total = (
            nl.zeros((16, 32), dtype=nl.float32, buffer=nl.psum)
            if zeros
            else nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.psum)
        )
        for k in nl.affine_range(3):
            total += nisa.nc_matmul(nl.load(a[64 * k : 64 * k + 64]), nl.load(b[64 * k : 64 * k + 64]))
        return stored(nl.copy(total))

    np.testing.assert_allclose(kernel(a, b), a.T @ b, rtol=1e-4, atol=1e-4)
    assert not any(
        "memset" in line or "tensor_tensor" in line for line in kernel.record(a, b).sessions[0].trace.text()
    )


def test_products_with_a_name_accumulate_and_are_gone(rng):
    a, b = operands(rng, 1)

    @nki.jit
    def kernel(a, b, again):
        total = nl.zeros((16, 32), dtype=nl.float32, buffer=nl.psum)
        product = nisa.nc_matmul(nl.load(a), nl.load(b))
        total += product
        return stored(nl.copy(product if again else total))

    np.testing.assert_allclose(kernel(a, b, False), a.T @ b, rtol=1e-4, atol=1e-4)
    with pytest.raises(KernelError, match="added to another tile"):
        kernel(a, b, True)


def test_accumulation_in_parts_leaves_zeros_elsewhere(rng):
    """Halves accumulate by themselves; what no product reaches is 0."""
    a, b = operands(rng, 2, 16)

    @nki.jit
    def kernel(a, b):
        total = nl.zeros((16, 64), dtype=nl.float32, buffer=nl.psum)
        for half in range(2):
            for k in nl.affine_range(2):
                total[:, 24 * half : 24 * half + 16] += nisa.nc_matmul(
                    nl.load(a[64 * k : 64 * k + 64]), nl.load(b[64 * k : 64 * k + 64])
                )
        return stored(nl.copy(total))

    wanted = np.zeros((16, 64), np.float32)
    wanted[:, 0:16] = wanted[:, 24:40] = a.T @ b
    np.testing.assert_allclose(kernel(a, b), wanted, rtol=1e-4, atol=1e-4)


def test_zeros_of_psum_are_there_when_they_are_read(rng):
    a, b = operands(rng, 1)

    @nki.jit
    def kernel(a, b):
        total = nl.zeros((2, nl.par_dim(16), 32), dtype=nl.float32, buffer=nl.psum)
        before = nl.copy(total[0])
        total[0] += nisa.nc_matmul(nl.load(a), nl.load(b))
        part = nl.zeros((16, 32), dtype=nl.float32, buffer=nl.psum)
        part[:, 0:8] = nl.copy(total[0, :, 0:8])
        return stored(before), stored(nl.copy(total[0])), stored(nl.copy(part)), stored(nl.copy(total[1]))

    before, after, part, other = kernel(a, b)
    wanted = a.T @ b
    assert not before.any() and not other.any()
    np.testing.assert_allclose(after, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(part[:, 0:8], wanted[:, 0:8], rtol=1e-4, atol=1e-4)
    assert not part[:, 8:].any()


def test_a_product_is_added_to_what_is_none(rng):
    a, b = operands(rng, 1)
    c = rng.standard_normal((16, 32)).astype(np.float32)

    @nki.jit
    def kernel(a, b, c):
        total = nl.full((16, 32), 3.0, dtype=nl.float32, buffer=nl.psum)
        total += nisa.nc_matmul(nl.load(a), nl.load(b))
        copied = nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.psum)
        copied[...] = nl.copy(nl.load(c))
        copied += nisa.nc_matmul(nl.load(a), nl.load(b))
        kept = nl.zeros((16, 32), dtype=nl.float32)
        kept += nisa.nc_matmul(nl.load(a), nl.load(b))
        return stored(nl.copy(total)), stored(nl.copy(copied)), stored(kept)

    total, copied, kept = kernel(a, b, c)
    np.testing.assert_allclose(total, a.T @ b + 3, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(copied, a.T @ b + c, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(kept, a.T @ b, rtol=1e-4, atol=1e-4)


# --- Masks ---


def test_a_mask_keeps_what_is_there(rng):
    x = rng.standard_normal((32, 16)).astype(np.float32)
    i_p, i_f = nl.mgrid[0:32, 0:16]

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        tile[i_p, i_f] = nl.multiply(tile, 2.0, mask=(i_p < 20) & (i_f >= 5))
        out = nl.ndarray((32, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.full((32, 16), -1.0, dtype=x.dtype))
        nl.store(out[i_p, i_f], tile[i_p, i_f], mask=i_f < 12)
        return out

    wanted = x.copy()
    wanted[:20, 5:] *= 2
    wanted[:, 12:] = -1
    np.testing.assert_array_equal(kernel(x), wanted)


def test_a_mask_makes_an_index_legal(rng):
    """The last tile of a length that no tile divides."""
    x = rng.standard_normal((100, 20)).astype(np.float32)
    i_p, i_f = nl.mgrid[0:64, 0:20]

    @nki.jit
    def kernel(x):
        out = nl.ndarray((100, 20), dtype=x.dtype, buffer=nl.shared_hbm)
        for t in nl.affine_range(2):
            tile = nl.load(x[64 * t + i_p, i_f], mask=64 * t + i_p < 100)
            nl.store(out[64 * t + i_p, i_f], nl.exp(tile, mask=64 * t + i_p < 100), mask=64 * t + i_p < 100)
        return out

    np.testing.assert_allclose(kernel(x), np.exp(x), rtol=1e-5)


@pytest.mark.parametrize("compare", ["__le__", "__gt__"])
@pytest.mark.parametrize("named", [False, True])
def test_a_triangle(rng, compare, named):
    """A mask over two extents at once: computed, assigned, loaded and stored."""
    x = rng.standard_normal((40, 24)).astype(np.float32)
    i_p, i_f = nl.mgrid[0:40, 0:24]
    mask = getattr(i_p, compare)(i_f + 3)

    @nki.jit
    def kernel(x):
        computed = nl.zeros((40, 24), dtype=x.dtype)
        if named:
            result = nl.add(nl.load(x), 1.0, mask=mask)
            computed[i_p, i_f] = result
        else:
            computed[i_p, i_f] = nl.add(nl.load(x), 1.0, mask=mask)
        moved = nl.zeros((40, 24), dtype=x.dtype)
        moved[i_p, i_f] = nl.load(x[i_p, i_f], mask=mask)
        out = nl.ndarray((40, 24), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.zeros((40, 24), dtype=x.dtype))
        nl.store(out[i_p, i_f], nl.load(x), mask=mask)
        return stored(computed), stored(moved), out

    p, f = np.mgrid[0:40, 0:24]
    truth = getattr(p, compare)(f + 3)
    computed, moved, out = kernel(x)
    np.testing.assert_array_equal(computed, np.where(truth, x + 1, 0))
    np.testing.assert_array_equal(moved, np.where(truth, x, 0))
    np.testing.assert_array_equal(out, np.where(truth, x, 0))


def test_masks_of_products(rng):
    """Of the contraction, of the moving operand's columns, of the stationary's."""
    a = rng.standard_normal((64, 16)).astype(np.float32)
    b = rng.standard_normal((64, 32)).astype(np.float32)
    i_k, i_n, i_m = nl.arange(64)[:, None], nl.arange(32)[None, :], nl.arange(16)[None, :]

    @nki.jit
    def kernel(a, b):
        results = []
        for mask in (i_k < 48, i_n < 20, i_m >= 0, (i_k < 32) & (i_n >= 8)):
            total = nl.zeros((16, 32), dtype=nl.float32, buffer=nl.psum)
            total += nisa.nc_matmul(nl.load(a), nl.load(b), mask=mask)
            results.append(stored(nl.copy(total)))
        total = nl.zeros((16, 32), dtype=nl.float32, buffer=nl.psum)
        total += nisa.nc_matmul(nl.load(a), nl.load(b)[i_n < 9])
        results.append(stored(nl.copy(total)))
        return tuple(results)

    by_k, by_n, by_m, by_both, by_operand = kernel(a, b)
    whole = a.T @ b
    columns = np.arange(32)
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(by_k, a[:48].T @ b[:48], **close)
    np.testing.assert_allclose(by_n, np.where(columns < 20, whole, 0), **close)
    np.testing.assert_allclose(by_m, whole, **close)
    np.testing.assert_allclose(by_both, np.where(columns >= 8, a[:32].T @ b[:32], 0), **close)
    np.testing.assert_allclose(by_operand, np.where(columns < 9, whole, 0), **close)


def test_a_mask_that_could_mean_either_operand_is_refused():
    @nki.jit
    def kernel(a):
        tile = nl.load(a)
        return stored(nl.copy(nisa.nc_matmul(tile, tile, mask=nl.arange(16)[None, :] < 8)))

    with pytest.raises(Unsupported, match="fits both operands"):
        kernel(np.zeros((32, 16), np.float32))


def test_nothing_is_left_of_a_mask(rng):
    x = rng.standard_normal((16, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        tile[...] = nl.multiply(tile, 0.0, mask=nl.arange(16)[:, None] > 15)
        tile[...] = nl.multiply(tile, 0.0, mask=False)
        return stored(tile)

    np.testing.assert_array_equal(kernel(x), x)

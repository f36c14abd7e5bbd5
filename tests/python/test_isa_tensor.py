"""nki.isa: products and transposes."""

import warnings

import numpy as np
import pytest
from isa_kernels import BF16, E4M3, E5M2, F16, F32, close, mistyped, numbers, refused, result, run, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl


def product(a, b):
    return a.astype(np.float64).T @ b.astype(np.float64)


@pytest.mark.parametrize("shape", [(128, 128, 512), (64, 32, 100), (1, 1, 1), (128, 7, 3)])
@pytest.mark.parametrize(
    "dtypes", [(F32, F32), (BF16, BF16), (F16, BF16), (E4M3, E5M2)], ids=lambda d: np.dtype(d[0]).name
)
def test_nc_matmul(rng, shape, dtypes):
    k, m, n = shape
    a, b = numbers(rng, (k, m), dtypes[0]), numbers(rng, (k, n), dtypes[1])
    got = run(
        lambda dst, x, y: nisa.nc_matmul(dst, x, y), [((m, n), nl.float32)], a, b, out_buffers=[nl.psum]
    )
    close(got, product(a, b), 2e-6, 2e-6 * k * 16)


def test_nc_matmul_flattens_free_extents(rng):
    a, b = numbers(rng, (32, 4, 6), BF16), numbers(rng, (32, 5, 10), BF16)
    got = run(
        lambda dst, x, y: nisa.nc_matmul(dst, x, y), [((24, 5, 10), nl.float32)], a, b, out_buffers=[nl.psum]
    )
    close(got.reshape(24, 50), product(a.reshape(32, 24), b.reshape(32, 50)), 1e-5, 1e-4)


@pytest.mark.parametrize("accumulate", [None, True, False])
def test_nc_matmul_accumulates(rng, accumulate):
    a, b = numbers(rng, (3, 64, 48), BF16), numbers(rng, (3, 64, 80), BF16)

    @nki.jit
    def kernel(a, b):
        psum = nl.ndarray((48, 80), nl.float32, buffer=nl.psum)
        for i in range(3):
            nisa.nc_matmul(psum, tile(a[i]), tile(b[i]), accumulate=accumulate if i else None)
        return result(psum)

    parts = [product(a[i], b[i]) for i in range(3)]
    close(kernel(a, b), parts[2] if accumulate is False else sum(parts), 1e-5, 1e-4)


def test_nc_matmul_adds_where_windows_overlap(rng):
    a, b = numbers(rng, (16, 8), BF16), numbers(rng, (16, 12), BF16)

    @nki.jit
    def kernel(a, b):
        psum = nl.ndarray((8, 20), nl.float32, buffer=nl.psum)
        x, y = tile(a), tile(b)
        nisa.nc_matmul(psum[:, 0:12], x, y)
        nisa.nc_matmul(psum[:, 8:20], x, y)
        return result(psum)

    wanted = np.zeros((8, 20))
    wanted[:, 0:12] += product(a, b)
    wanted[:, 8:20] += product(a, b)
    close(kernel(a, b), wanted, 1e-5, 1e-4)


def test_nc_matmul_on_tiles_of_the_array(rng):
    a, b = numbers(rng, (128, 32), BF16), numbers(rng, (128, 64), BF16)

    @nki.jit
    def kernel(a, b):
        x, y = tile(a), tile(b)
        outs = []
        for row in range(0, 128, 32):
            psum = nl.ndarray((32, 64), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(
                psum, x[row : row + 32], y[row : row + 32], tile_position=(row, 0), tile_size=(32, 32)
            )
            outs.append(result(psum))
        return tuple(outs)

    for i, got in enumerate(kernel(a, b)):
        rows = slice(32 * i, 32 * i + 32)
        close(got, product(a[rows], b[rows]), 1e-5, 1e-4)


@pytest.mark.parametrize(
    "mode",
    [
        nisa.matmul_perf_mode.double_row,
        nisa.matmul_perf_mode.double_row_gen3,
        "double_row",
        "double_row_gen3",
    ],
)
def test_nc_matmul_double_row(rng, mode):
    a, b = numbers(rng, (64, 2, 32), E4M3), numbers(rng, (64, 2, 100), E4M3)
    got = run(
        lambda d, x, y: nisa.nc_matmul(d, x, y, perf_mode=mode),
        [((32, 100), nl.float32)],
        a,
        b,
        out_buffers=[nl.psum],
    )
    close(got, product(a[:, 0], b[:, 0]) + product(a[:, 1], b[:, 1]), 1e-5, 1e-3)


@pytest.mark.parametrize("dtype", [F32, BF16, F16])
def test_nc_matmul_transposes_bit_for_bit(rng, dtype):
    a = numbers(rng, (64, 100), dtype)
    a[0, 0], a[1, 1] = np.nan, np.inf
    body = lambda dst, x, one: nisa.nc_matmul(dst, x, one, is_transpose=True)  # noqa: E731
    got = run(body, [((100, 64), dtype)], a, np.eye(64, dtype=dtype), out_buffers=[nl.psum])
    assert got.tobytes() == np.ascontiguousarray(a.T).tobytes()


@pytest.mark.parametrize("names", [{"is_moving_onezero": True}, {"is_moving_zero": True}])
def test_nc_matmul_keeps_promises_of_ones(rng, names):
    a, b = numbers(rng, (16, 8)), (rng.random((16, 20)) < 0.5).astype(F32)
    got = run(
        lambda d, x, y: nisa.nc_matmul(d, x, y, **names), [((8, 20), nl.float32)], a, b, out_buffers=[nl.psum]
    )
    close(got, product(a, b), 1e-5, 1e-5)

    def body(x, y):
        nisa.nc_matmul(nl.ndarray((8, 20), nl.float32, buffer=nl.psum), x, y, **names)

    refused(nisa.nc_matmul, "onezero", "moving", body, a, b + 0.5)


def matmul(shape, dtype=nl.float32, buffer=nl.psum, **options):
    def body(x, y):
        nisa.nc_matmul(nl.ndarray(shape, dtype, buffer=buffer), x, y, **options)

    return body


@pytest.mark.parametrize(
    "rule, parameter, body, shapes, dtypes",
    [
        ("buffer", "dst", matmul((8, 16), buffer=nl.sbuf), [(4, 8), (4, 16)], F32),
        ("dtype", "dst", matmul((8, 16), nl.bfloat16), [(4, 8), (4, 16)], BF16),
        ("dtype", "stationary", matmul((8, 16)), [(4, 8), (4, 16)], np.int32),
        ("partitions", "stationary", matmul((8, 16)), [(5, 8), (4, 16)], F32),
        ("shape", "dst", matmul((8, 15)), [(4, 8), (4, 16)], F32),
        ("matmul-size", "moving", matmul((8, 513)), [(4, 8), (4, 513)], F32),
        ("matmul-size", "stationary", matmul((128, 16)), [(4, 129), (4, 16)], F32),
        ("array-tile", "tile_position", matmul((8, 16), tile_size=(32, 32)), [(4, 8), (4, 16)], F32),
        (
            "array-tile",
            "tile_position",
            matmul((8, 16), tile_size=(32, 32), tile_position=(8, 0)),
            [(4, 8), (4, 16)],
            F32,
        ),
        ("double-row", "stationary", matmul((8, 16), perf_mode="double_row"), [(4, 8), (4, 16)], E4M3),
        (
            "accumulate",
            "accumulate",
            matmul((8, 4), is_transpose=True, accumulate=True),
            [(4, 8), (4, 4)],
            F32,
        ),
        ("transpose-identity", "moving", matmul((8, 4), is_transpose=True), [(4, 8), (4, 4)], F32),
    ],
)
def test_nc_matmul_refuses(rng, rule, parameter, body, shapes, dtypes):
    arrays = [numbers(rng, shape, dtypes) for shape in shapes]
    refused(nisa.nc_matmul, rule, parameter, body, *arrays)


def test_nc_matmul_warns_where_it_adds_to_what_no_product_started(rng):
    a, b = numbers(rng, (4, 8)), numbers(rng, (4, 16))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nki.jit(lambda a, b: matmul((8, 16), accumulate=True)(tile(a), tile(b)))(a, b)
    texts = [str(warning.message) for warning in caught]
    assert all("nc_matmul, dst" in text for text in texts)
    assert {text[text.rindex("[") :] for text in texts} == {"[unwritten]", "[accumulate]"}


def test_nc_matmul_stays_in_a_bank(rng):
    def body(x, y):
        psum = nl.ndarray((8, 1024), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum[:, 500:516], x, y)

    refused(nisa.nc_matmul, "psum-bank", "dst", body, numbers(rng, (4, 8)), numbers(rng, (4, 16)))


def test_nc_matmul_double_row_needs_the_generation(rng):
    body = matmul((8, 16), perf_mode=nisa.matmul_perf_mode.double_row)
    refused(
        nisa.nc_matmul,
        "generation",
        "perf_mode",
        body,
        numbers(rng, (4, 2, 8), E4M3),
        numbers(rng, (4, 2, 16), E4M3),
        platform="trn1",
    )


@pytest.mark.parametrize(
    "engine, size, buffers",
    [
        (nisa.engine.tensor, (128, 100), (nl.sbuf, nl.psum)),
        (nisa.engine.unknown, (100, 128), (nl.sbuf, nl.psum)),
        (nisa.tensor_engine, (5, 128), (nl.sbuf, nl.psum)),
        (nisa.engine.vector, (32, 20), (nl.sbuf, nl.sbuf)),
        (nisa.engine.vector, (32, 32), (nl.psum, nl.psum)),
        (None, (1, 32), (nl.psum, nl.sbuf)),
    ],
)
@pytest.mark.parametrize("dtype", [F32, BF16, np.int32, np.uint8])
def test_nc_transpose(rng, engine, size, buffers, dtype):
    a = numbers(rng, size, dtype)
    got = run(
        lambda dst, x: nisa.nc_transpose(dst, x, engine=engine),
        [(size[::-1], dtype)],
        a,
        buffers=[buffers[0]],
        out_buffers=[buffers[1]],
    )
    same(got, np.ascontiguousarray(a.T))


def test_nc_transpose_refuses(rng):
    def to(shape, dtype=nl.float32, buffer=nl.sbuf, **options):
        return lambda x: nisa.nc_transpose(nl.ndarray(shape, dtype, buffer=buffer), x, **options)

    a = numbers(rng, (64, 64))
    refused(nisa.nc_transpose, "engine", None, to((64, 64)), a)
    refused(nisa.nc_transpose, "engine", "engine", to((64, 64), buffer=nl.psum, engine=nisa.engine.vector), a)
    refused(nisa.nc_transpose, "dtype", "dst", to((64, 64), nl.bfloat16, nl.psum), a)
    refused(nisa.nc_transpose, "shape", "dst", to((64, 63), buffer=nl.psum), a)
    refused(
        nisa.nc_transpose, "transpose-size", "data", to((128, 64), buffer=nl.psum), numbers(rng, (64, 129))
    )


def test_nc_matmul_mx_is_of_the_next_generation(rng):
    def body(x):
        nisa.nc_matmul_mx(nl.ndarray((4, 4), nl.float32, buffer=nl.psum), x, x, x, x)

    refused(nisa.nc_matmul_mx, "generation", None, body, numbers(rng, (32, 4), np.uint32))
    refused(
        nisa.nc_matmul_mx,
        "not-modelled",
        None,
        body,
        numbers(rng, (32, 4), np.uint32),
        platform="trn3",
        error=nki.errors.Unsupported,
    )


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    tensor = lambda: nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)  # noqa: E731
    mistyped(
        lambda: nisa.nc_matmul(tensor(), np.zeros((4, 4)), tensor()),
        "nc_matmul",
        "stationary",
        "a tensor",
        "ndarray",
    )
    mistyped(
        lambda: nisa.nc_matmul(tensor(), tensor(), tensor(), perf_mode="fast"),
        "nc_matmul",
        "perf_mode",
        "double_row",
        "fast",
    )
    mistyped(lambda: nisa.nc_transpose(tensor(), tensor(), engine=nl.add), "engine", "vector", "add")

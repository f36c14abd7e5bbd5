"""Kernels whose time on real chips is published, with the tiles, engines and transfers of their sources.

``headway chip validate`` times them on the simulated chip beside those figures and beside the same kernels in
C++ (``src/kernels/measured``). As a script this file runs each on small inputs and compares with NumPy:
``./run python examples/nki/measured.py``.
"""

import headway.as_nki  # noqa: F401  (from here on `import nki` is answered)
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

P = 128  # partitions of a tile, and columns of a stationary operand
COLUMNS = 512  # of a moving operand, and float32 of a PSUM bank

ON_SYNC = {"dge_mode": nisa.dge_mode.hwdge, "engine": nisa.engine.sync}
SOFTWARE = {"dge_mode": nisa.dge_mode.swdge}
PREPARED = {"dge_mode": nisa.dge_mode.none}  # descriptors from the host: what the older compiler makes


def loaded(source, **how):
    """`source`, in HBM, as a new tile in SBUF."""
    tile = nl.ndarray(source.shape, source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(tile, source, **how)
    return tile


def identity_matrix(dtype, **how):
    """The identity [128, 128] in SBUF: the moving operand of transposes."""
    return loaded(nl.shared_constant(np.identity(P, dtype=np.float32), dtype=dtype), **how)


def transposed_blocks(data, identity):
    """data [128, n 128], each block of 128 columns transposed: [128, n, 128] in PSUM; n is at most 4."""
    blocks = data.shape[1] // P
    result = nl.ndarray((P, blocks, P), data.dtype, buffer=nl.psum)
    for b in range(blocks):
        block = data[:, b * P : (b + 1) * P]
        nisa.nc_matmul(result[:, b], block, identity, is_moving_onezero=True, is_transpose=True)
    return result


# --- One tile: the exponential of the profiler's documentation ---


@nki.jit
def exponential(x, sync=True):
    """exp(x) of one tile, [up to 128, N]. The load is triggered by Sync, or (sync=False) through software."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = loaded(x, **(ON_SYNC if sync else SOFTWARE))
    result = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.activation(result, nl.exp, tile)
    nisa.dma_copy(out, result, **SOFTWARE)
    return out


# --- Streaming: x sigmoid(x) ---


@nki.jit
def silu(x, chunk=7168):
    """x sigmoid(x) of x [M, N], M a multiple of 128, in pieces of [128, chunk]; chunk divides M N / 128."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    pieces = x.shape[0] // P * x.shape[1] // chunk
    source, target = x.reshape((P, pieces, chunk)), out.reshape((P, pieces, chunk))
    for i in range(pieces):
        tile = loaded(source[:, i], **PREPARED)
        result = nl.ndarray((P, chunk), x.dtype, buffer=nl.sbuf)
        nisa.activation(result, nl.silu, tile)
        nisa.dma_copy(target[:, i], result, **PREPARED)
    return out


# --- Matrix products ---


@nki.jit
def matmul_hoisted(lhsT, rhs):
    """lhsT [K, M], rhs [K, N] to lhsT^T rhs [M, N]. Tiles of the left operand are loaded once, those of the
    right one for each row of tiles of the result. K and M are multiples of 128, N of 512."""
    (k, m), n = lhsT.shape, rhs.shape[1]
    out = nl.ndarray((m, n), lhsT.dtype, buffer=nl.shared_hbm)
    for i in range(0, m, P):
        left = [loaded(lhsT[l : l + P, i : i + P]) for l in range(0, k, P)]
        for j in range(0, n, COLUMNS):
            right = [loaded(rhs[l : l + P, j : j + COLUMNS]) for l in range(0, k, P)]
            total = nl.ndarray((P, COLUMNS), nl.float32, buffer=nl.psum)
            for stationary, moving in zip(left, right):
                nisa.nc_matmul(total, stationary, moving)
            result = nl.ndarray((P, COLUMNS), lhsT.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[i : i + P, j : j + COLUMNS], result)
    return out


@nki.jit
def rmsnorm_matmul(x, w):
    """(x / rms(x)) w for x [M, K], w [K, N], float32. The weights stay in SBUF; each row of tiles of x is
    normalized, transposed block by block and multiplied. M and K are multiples of 128, N of 512."""
    (m, k), n = x.shape, w.shape[1]
    out = nl.ndarray((m, n), nl.float32, buffer=nl.shared_hbm)
    zero = nl.ndarray((P, 1), nl.float32, buffer=nl.sbuf)
    nisa.memset(zero, 0.0)
    identity = identity_matrix(nl.float32, **PREPARED)
    weights = [loaded(w[l : l + P], **PREPARED) for l in range(0, k, P)]
    for i in range(0, m, P):
        rows = loaded(x[i : i + P], **PREPARED)
        squares = nl.ndarray((P, k), nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((P, 1), nl.float32, buffer=nl.sbuf)
        inverse = nl.ndarray((P, 1), nl.float32, buffer=nl.sbuf)
        normal = nl.ndarray((P, k), nl.float32, buffer=nl.sbuf)
        nisa.activation(squares, nl.square, rows, bias=zero)
        nisa.tensor_reduce(total, nl.add, squares, axis=1)
        nisa.activation(inverse, nl.rsqrt, total, bias=zero, scale=1 / k)
        nisa.tensor_scalar(normal, rows, nl.multiply, inverse)
        blocks = []
        for l in range(0, k, P):
            blocks.append(nl.ndarray((P, P), nl.float32, buffer=nl.sbuf))
            nisa.tensor_copy(blocks[-1], transposed_blocks(normal[:, l : l + P], identity).reshape((P, P)))
        for j in range(0, n, COLUMNS):
            product = nl.ndarray((P, COLUMNS), nl.float32, buffer=nl.psum)
            for block, weight in zip(blocks, weights):
                nisa.nc_matmul(product, block, weight[:, j : j + COLUMNS])
            result = nl.ndarray((P, COLUMNS), nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(result, product)
            nisa.dma_copy(out[i : i + P, j : j + COLUMNS], result, **PREPARED)
    return out


# --- The selective scan of Mamba ---


def on_all_partitions(row, ones):
    """row [1, N] in SBUF, repeated: [128, N]. Products with ones put it into PSUM, 512 columns at a time; a
    longer row is copied from there, by Scalar and Vector in turn."""
    n = row.shape[1]
    result = nl.ndarray((P, n), nl.float32, buffer=nl.psum if n <= COLUMNS else nl.sbuf)
    if n <= COLUMNS:
        nisa.nc_matmul(result, ones, row)
        return result
    for turn, j in enumerate(range(0, n, COLUMNS)):
        end = min(n, j + COLUMNS)
        part = on_all_partitions(row[:, j:end], ones)
        nisa.tensor_copy(result[:, j:end], part, engine=(nisa.engine.scalar, nisa.engine.vector)[turn % 2])
    return result


def scan_state(total, delta, product, decay, initial, b_row, c_row, ones):
    """Adds a state to total, [128, T]: h c, where h = exp(decay delta) h + product b, from `initial` on.
    decay is [128, 1]; b_row and c_row are [1, T] in HBM. Returns h."""
    factor, weighted, values, seen = (nl.ndarray(delta.shape, nl.float32, buffer=nl.sbuf) for _ in range(4))
    vector = nisa.engine.vector
    nisa.activation(factor, nl.exp, delta, scale=decay)
    b = on_all_partitions(loaded(b_row, **PREPARED), ones)
    nisa.tensor_tensor(weighted, product, b, nl.multiply, engine=vector)
    nisa.tensor_tensor_scan(values, factor, weighted, initial, nl.multiply, nl.add)
    c = on_all_partitions(loaded(c_row, **PREPARED), ones)
    nisa.tensor_tensor(seen, values, c, nl.multiply, engine=vector)
    nisa.tensor_tensor(total, total, seen, nl.add, engine=vector)
    return values


def row_of_ones():
    """[1, 128] in SBUF: the stationary operand that repeats a row on all partitions."""
    ones = nl.ndarray((1, P), nl.float32, buffer=nl.sbuf)
    nisa.memset(ones, 1.0)
    return ones


def zeros(columns):
    tile = nl.ndarray((P, columns), nl.float32, buffer=nl.sbuf)
    nisa.memset(tile, 0.0)
    return tile


def delta_times_u(delta, u):
    """Taken out of the loop over states, as the compiler of the published figures does."""
    product = nl.ndarray(delta.shape, nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(product, delta, u, nl.multiply, engine=nisa.engine.vector)
    return product


@nki.jit
def scan_channel_outer(delta, u, a, b, c):
    """The selective scan with whole rows: delta, u [C, T], a [C, S], b, c [S, T], float32, to [C, T].

    Channels are outermost, so that delta and u are loaded once. C is a multiple of 128.
    """
    channels, length = delta.shape
    out = nl.ndarray((channels, length), nl.float32, buffer=nl.shared_hbm)
    ones = row_of_ones()
    for i in range(0, channels, P):
        total = zeros(length)
        d, x = loaded(delta[i : i + P], **PREPARED), loaded(u[i : i + P], **PREPARED)
        product = delta_times_u(d, x)
        for s in range(a.shape[1]):
            decay = loaded(a[i : i + P, s : s + 1], **PREPARED)
            scan_state(total, d, product, decay, 0.0, b[s : s + 1], c[s : s + 1], ones)
        nisa.dma_copy(out[i : i + P], total, **PREPARED)
    return out


@nki.jit
def scan_tile_outer(delta, u, a, b, c):
    """scan_channel_outer in tiles of 512 of the sequence, outermost; each state's last value is carried to
    the next tile. T is a multiple of 512."""
    channels, length = delta.shape
    states = a.shape[1]
    out = nl.ndarray((channels, length), nl.float32, buffer=nl.shared_hbm)
    ones = row_of_ones()
    carried = [zeros(states) for _ in range(0, channels, P)]
    for t in range(0, length, COLUMNS):
        end = t + COLUMNS
        totals = [zeros(COLUMNS) for _ in range(0, channels, P)]
        for tile, i in enumerate(range(0, channels, P)):
            d, x = loaded(delta[i : i + P, t:end], **PREPARED), loaded(u[i : i + P, t:end], **PREPARED)
            product = delta_times_u(d, x)
            for s in range(states):
                last = carried[tile][:, s : s + 1]
                decay = loaded(a[i : i + P, s : s + 1], **PREPARED)
                initial = last if t > 0 else 0.0
                rows = b[s : s + 1, t:end], c[s : s + 1, t:end]
                values = scan_state(totals[tile], d, product, decay, initial, *rows, ones)
                if end < length:
                    nisa.tensor_copy(last, values[:, COLUMNS - 1 :])
        for tile, i in enumerate(range(0, channels, P)):
            nisa.dma_copy(out[i : i + P, t:end], totals[tile], **PREPARED)
    return out


# --- Attention ---

GROUP = 4  # tiles of queries in flight
IN_STORE = 8  # tiles of a transfer: 4 KiB a partition


def transposed(data, identity, engines):
    """data [128, S] in SBUF, transposed block by block: [128, S / 128, 128], float32, copied out of PSUM four
    blocks at a time by the next of `engines`."""
    length = data.shape[1]
    result = nl.ndarray((P, length // P, P), nl.float32, buffer=nl.sbuf)
    for c in range(0, length, COLUMNS):
        blocks = transposed_blocks(data[:, c : c + COLUMNS], identity)
        nisa.tensor_copy(result[:, c // P : (c + COLUMNS) // P], blocks, engine=next(engines))
    return result


def in_turn(*engines):
    while True:
        yield from engines


@nki.jit
def attention_fused(q, k, v):
    """softmax(q^T k) v^T for q, k, v [128, S], to [S, 128]; only these are in HBM. S is a multiple of 512."""
    dtype, length = q.dtype, q.shape[1]
    tiles, chunks = length // P, length // COLUMNS
    out = nl.ndarray((length, P), dtype, buffer=nl.shared_hbm)
    scalar, vector = nisa.engine.scalar, nisa.engine.vector

    identity_v = identity_matrix(dtype, **ON_SYNC)
    identity = identity_v if dtype == nl.float32 else identity_matrix(nl.float32, **ON_SYNC)
    values = loaded(v)  # first, as it is transposed first
    queries, keys = loaded(q), loaded(k)
    value_blocks = transposed(values, identity_v, in_turn(scalar))

    def sbuf(*shape):
        return nl.ndarray((P, *shape), nl.float32, buffer=nl.sbuf)

    result = sbuf(tiles, P)  # the store converts
    for first in range(0, tiles, GROUP):
        # The first chunk of scores stays in PSUM, where the softmax reads it; the others make room.
        copies = in_turn(scalar, vector)
        scores = []
        for i in range(first, first + GROUP):
            scores.append([])
            for c in range(chunks):
                score = nl.ndarray((P, COLUMNS), nl.float32, buffer=nl.psum)
                query, key = queries[:, i * P : (i + 1) * P], keys[:, c * COLUMNS : (c + 1) * COLUMNS]
                nisa.nc_matmul(score, query, key)
                scores[-1].append(score if c == 0 else sbuf(COLUMNS))
                if c > 0:
                    nisa.tensor_copy(scores[-1][c], score, engine=next(copies))
        most, least = sbuf(GROUP, chunks), sbuf(GROUP)
        for i in range(GROUP):
            for c in range(chunks):
                nisa.tensor_reduce(most[:, i, c : c + 1], nl.maximum, scores[i][c], axis=1)
        nisa.tensor_reduce(least, nl.maximum, most, axis=2, negate=True)
        weights = [sbuf(length) for _ in range(GROUP)]
        for i in range(GROUP):
            for c in range(chunks):
                part = weights[i][:, c * COLUMNS : (c + 1) * COLUMNS]
                nisa.activation(part, nl.exp, scores[i][c], bias=least[:, i : i + 1])
        # Vector sums a tile ahead of the transposes; it takes one copy in four off Scalar.
        copies = in_turn(vector, scalar, scalar, scalar)
        parts, total, inverse = sbuf(GROUP, chunks), sbuf(GROUP), sbuf(GROUP)
        turned = []
        for i in range(GROUP + 1):
            for c in range(chunks if i < GROUP else 0):
                part = weights[i][:, c * COLUMNS : (c + 1) * COLUMNS]
                nisa.tensor_reduce(parts[:, i, c : c + 1], nl.add, part, axis=1)
            if i > 0:
                turned.append(transposed(weights[i - 1], identity, copies))
        nisa.tensor_reduce(total, nl.add, parts, axis=2)
        nisa.reciprocal(inverse, total)
        for i in range(GROUP):
            weighted = nl.ndarray((P, P), nl.float32, buffer=nl.psum)
            for b in range(tiles):
                nisa.nc_matmul(weighted, turned[i][:, b], value_blocks[:, b])
            scale = inverse[:, i : i + 1]
            nisa.tensor_scalar(result[:, first + i], weighted, nl.multiply, scale, engine=vector)
    for i in range(0, tiles, IN_STORE):
        count = min(IN_STORE, tiles - i)
        rows = out[i * P : (i + count) * P].reshape((count, P, P)).permute((1, 0, 2))
        nisa.dma_copy(rows, result[:, i : i + count])
    return out


# --- References ---


def _softmax_attention(q, k, v):
    weights = np.exp(q.T @ k - (q.T @ k).max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v.T


def _scan(delta, u, a, b, c):
    out = np.zeros_like(delta)
    for s in range(a.shape[1]):
        state = np.zeros(delta.shape[0])
        for t in range(delta.shape[1]):
            state = np.exp(delta[:, t] * a[:, s]) * state + delta[:, t] * u[:, t] * b[s, t]
            out[:, t] += state * c[s, t]
    return out


def _cases():
    """(kernel, reference, arguments, attributes) of each, on inputs that take a second."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    scan = (abs(normal(128, 1024)), normal(128, 1024), -abs(normal(128, 2)), normal(2, 1024), normal(2, 1024))
    yield exponential, np.exp, (normal(4, 512),), {"sync": False}
    yield silu, lambda x: x / (1 + np.exp(-x)), (normal(256, 1024),), {"chunk": 512}
    yield matmul_hoisted, lambda a, b: a.T @ b, (normal(256, 128), normal(256, 1024)), {}
    yield (rmsnorm_matmul, lambda x, w: x / np.sqrt((x * x).mean(1, keepdims=True)) @ w,
           (normal(128, 256), normal(256, 512)), {})
    yield scan_channel_outer, _scan, scan, {}
    yield scan_tile_outer, _scan, scan, {}
    qkv = (normal(128, 1024) / 8, normal(128, 1024), normal(128, 1024))
    yield attention_fused, _softmax_attention, qkv, {}


def main():
    for kernel, reference, arguments, attributes in _cases():
        expected = reference(*(argument.astype(np.float64) for argument in arguments))
        error = abs(kernel(*arguments, **attributes) - expected).max() / abs(expected).max()
        print(f"{kernel.func.__name__:20} largest error {error:.1e} of the largest value")
        if not error < 1e-5:
            raise SystemExit(f"{kernel.func.__name__} is off by {error}")


if __name__ == "__main__":
    main()

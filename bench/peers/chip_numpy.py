"""NumPy on the shapes of `headway bench chip`: over the same tiles as the kernels, or whole matrices.

Prints one JSON object with the seconds of the fastest of a few repetitions.
"""

import argparse
import json
import time

import numpy as np

TILE_M, TILE_N, TILE_K = 128, 512, 128


def matmul_tiles(a, b):
    k, m = a.shape
    n = b.shape[1]
    c = np.empty((m, n), np.float32)
    for i in range(0, m, TILE_M):
        for j in range(0, n, TILE_N):
            total = np.zeros((TILE_M, TILE_N), np.float32)
            for l in range(0, k, TILE_K):
                total += a[l:l + TILE_K, i:i + TILE_M].T @ b[l:l + TILE_K, j:j + TILE_N]
            c[i:i + TILE_M, j:j + TILE_N] = total
    return c


def matmul_whole(a, b):
    return a.T @ b


def attention_tiles(q, k, v):
    t, d = q.shape
    scale = np.float32(1 / np.sqrt(d))
    out = np.empty_like(q)
    for i in range(0, t, TILE_M):
        rows = q[i:i + TILE_M]
        most = np.full((TILE_M, 1), -np.inf, np.float32)
        total = np.zeros((TILE_M, 1), np.float32)
        weighted = np.zeros((TILE_M, d), np.float32)
        for j in range(0, t, TILE_N):
            scores = rows @ k[j:j + TILE_N].T
            scores *= scale
            now = np.maximum(most, scores.max(1, keepdims=True))
            scores -= now
            np.exp(scores, out=scores)
            shrink = np.exp(most - now)
            total = total * shrink + scores.sum(1, keepdims=True)
            weighted = weighted * shrink + scores @ v[j:j + TILE_N]
            most = now
        out[i:i + TILE_M] = weighted / total
    return out


def attention_whole(q, k, v):
    scores = q @ k.T
    scores *= np.float32(1 / np.sqrt(q.shape[1]))
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    return (scores @ v) / scores.sum(1, keepdims=True)


def fastest(f, arguments, repetitions):
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        f(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="whole matrices instead of tiles")
    args = parser.parse_args()
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((args.size, args.size), np.float32) for _ in range(2))
    q, k, v = (random.standard_normal((args.size, 128), np.float32) for _ in range(3))
    matmul, attention = (matmul_whole, attention_whole) if args.whole else (matmul_tiles, attention_tiles)
    print(json.dumps({"matmul_seconds": fastest(matmul, (a, b), args.repetitions),
                      "attention_seconds": fastest(attention, (q, k, v), args.repetitions),
                      "numpy": np.__version__}))


if __name__ == "__main__":
    main()

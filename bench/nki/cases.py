"""What the two sides run: kernels, their arguments and the result that NumPy gives."""

import importlib.util
import math
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Both sides compute in float32, in another order than NumPy does.
TOLERANCE = 1e-5


class Wrong(Exception):
    """A side's result isn't NumPy's."""


def function(folder, file, name):
    """The function `name` of a kernel's file, below a checkout's examples or ours."""
    path = pathlib.Path(folder) / file
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: --triton-viz wants a checkout that has it")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


class Case:
    """One kernel and shape. `calls`: how many a turn times; `scale`: what a call's seconds are divided by."""

    file = None
    kernel = None
    ours = False
    scale = 1

    def __init__(self, calls):
        self.calls = calls
        self.wanted = None

    def load(self, examples):
        return function(HERE if self.ours else examples, self.file, self.kernel)

    def check(self, arguments):
        """The relative error (of norms) of the result in the arguments. Wrong where it is too large."""
        if self.wanted is None:
            self.wanted = self.reference(arguments)
        found, wanted = self.result(arguments), self.wanted
        error = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
        if not error <= TOLERANCE:
            raise Wrong(f"the relative error is {error:.2e}, allowed are {TOLERANCE:.0e}")
        return error


class Matmul(Case):
    file, kernel = "matmul.py", "matmul_kernel"

    def __init__(self, m, k, n, calls):
        super().__init__(calls)
        self.shape = m, k, n

    def arguments(self):
        m, k, n = self.shape
        rng = np.random.default_rng(1)
        return (
            rng.standard_normal((k, m), dtype=np.float32),
            rng.standard_normal((k, n), dtype=np.float32),
            np.zeros((m, n), np.float32),
        )

    def result(self, arguments):
        return arguments[2]

    def reference(self, arguments):
        return arguments[0].T @ arguments[1]


class Attention(Case):
    file, kernel = "tiled_attention.py", "tiled_attention_kernel"

    def __init__(self, rows, d, calls):
        super().__init__(calls)
        self.rows, self.d = rows, d

    def arguments(self):
        rng = np.random.default_rng(2)
        q, k, v = (rng.standard_normal((1, 1, self.rows, self.d), dtype=np.float32) for _ in range(3))
        return q, k, v, np.zeros_like(q), 1, 1, 1, 1, self.rows, self.rows, self.d, self.d

    def result(self, arguments):
        return arguments[3]

    def reference(self, arguments):
        q, k, v = (a[0, 0] for a in arguments[:3])
        scores = q @ k.T / np.float32(math.sqrt(self.d))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return ((weights / weights.sum(axis=1, keepdims=True)) @ v)[None, None]


class Copies(Case):
    """Many tensor_copy of [1, 1]; the seconds are those of one."""

    file, kernel, ours = "copies.py", "copies_kernel", True

    def __init__(self, count, calls):
        super().__init__(calls)
        self.scale = count

    def arguments(self):
        return np.full((1, 1), 3, np.float32), np.zeros((1, 1), np.float32), self.scale

    def result(self, arguments):
        return arguments[1]

    def reference(self, arguments):
        return arguments[0]


CASES = {
    "matmul 128x128x512": Matmul(128, 128, 512, calls=101),
    "matmul 2048^3": Matmul(2048, 2048, 2048, calls=3),
    "matmul 4096^3": Matmul(4096, 4096, 4096, calls=1),
    "attention 2048^2": Attention(2048, 128, calls=5),
    "attention 4096^2": Attention(4096, 128, calls=3),
    "tensor_copy [1,1]": Copies(10000, calls=5),
}

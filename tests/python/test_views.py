"""Views of tensors against NumPy's: t[key] and the methods, read and written, in SBUF and in HBM."""

import numpy as np
import pytest
from isa_kernels import F32, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import KernelError

ON_CHIP = [True, False]


def placed(array, on_chip):
    """A tensor with an argument's values, in SBUF or HBM."""
    return tile(array) if on_chip else tile(array, nl.shared_hbm)


def out_of(view):
    """A view's elements as an output of its shape."""
    out = nl.ndarray(view.shape, view.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, view)
    return out


def read(array, on_chip, *views):
    """What each function of the tensor makes of it."""

    @nki.jit
    def kernel(a):
        t = placed(a, on_chip)
        return tuple(out_of(view(t)) for view in views)

    return kernel(array)


def same(got, wanted):
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    np.testing.assert_array_equal(got, wanted)


def refused(array, on_chip, view, rule="view"):
    with pytest.raises(KernelError) as caught:
        read(array, on_chip, view)
    assert f"[{rule}]" in str(caught.value), str(caught.value)


# --- Keys ---


def random_key(rng, shape, on_chip):
    """A key for t[...], and the same for NumPy with the chip's rules: partitions stay, a view on chip has two
    extents.
    """
    key, numpys = [], []
    for dim, extent in enumerate(shape):
        kind = rng.choice(["int", "slice", "step", "ds", "all", "negative"])
        if on_chip and dim == 0 and kind == "step":
            kind = "slice"
        start = int(rng.integers(0, extent))
        stop = int(rng.integers(start + 1, extent + 1))
        if kind == "int":
            key.append(start - extent if rng.integers(2) else start)
            numpys.append(slice(start, start + 1) if on_chip and dim == 0 else start)
        elif kind == "negative":
            key.append(slice(start - extent, None))
            numpys.append(slice(start, None))
        elif kind == "ds":
            key.append(nl.ds(start, stop - start))
            numpys.append(slice(start, stop))
        elif kind == "all":
            key.append(slice(None))
            numpys.append(slice(None))
        else:
            step = int(rng.integers(1, 4)) if kind == "step" else 1
            key.append(slice(start, stop, step))
            numpys.append(slice(start, stop, step))
    cut = int(rng.integers(0, len(shape)))
    if rng.integers(3) == 0:  # an Ellipsis for some of them
        key[cut:], numpys[cut:] = [...], [...]
    # A new extent, behind the partitions. Where too few extents stay, the chip has put in one of its own.
    if (
        rng.integers(3) == 0
        and keyed(np.empty(shape), tuple(numpys), on_chip).ndim == np.empty(shape)[tuple(numpys)].ndim
    ):
        at = int(rng.integers(1, len(key) + 1))
        key.insert(at, None)
        numpys.insert(at, None)
    return tuple(key), tuple(numpys)


def keyed(array, key, on_chip):
    found = array[key]
    while found.ndim < (2 if on_chip else 1):
        found = found[..., None]
    return found


@pytest.mark.parametrize("on_chip", ON_CHIP)
@pytest.mark.parametrize("shape", [(17, 12), (6, 5, 7), (4, 3, 5, 6)], ids=str)
def test_keys_read(rng, shape, on_chip):
    a = rng.permutation(np.prod(shape)).reshape(shape).astype(F32)
    keys = [random_key(rng, shape, on_chip) for _ in range(60)]
    results = read(a, on_chip, *(lambda t, key=key: t[key] for key, _ in keys))
    for (key, numpys), got in zip(keys, results):
        wanted = keyed(a, numpys, on_chip)
        assert got.shape == wanted.shape, (key, got.shape, wanted.shape)
        np.testing.assert_array_equal(got, wanted, err_msg=str(key))


@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_keys_written(rng, on_chip):
    shape = (9, 5, 8)
    a = rng.permutation(np.prod(shape)).reshape(shape).astype(np.int32)
    keys = [random_key(rng, shape, on_chip) for _ in range(30)]
    values = [rng.integers(-99, 0, keyed(a, numpys, on_chip).shape).astype(np.int32) for _, numpys in keys]

    @nki.jit
    def kernel(a, values):
        results = []
        for (key, _), value in zip(keys, values):
            t = placed(a, on_chip)
            nisa.dma_copy(t[key], value)
            results.append(out_of(t))
        return tuple(results)

    for (key, numpys), value, got in zip(keys, values, kernel(a, values)):
        wanted = a.copy()
        wanted[numpys] = value.reshape(a[numpys].shape)
        np.testing.assert_array_equal(got, wanted, err_msg=str(key))


@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_views_of_views(rng, on_chip):
    a = rng.standard_normal((16, 10, 6)).astype(F32)
    got = read(
        a,
        on_chip,
        lambda t: t[2:14][1:9, 3:][:, 1:4, ::2],
        lambda t: t[:, 2:8][:, ::3, 1:],
        lambda t: t[4:8, nl.ds(2, 6)][..., 1:3],
        lambda t: t[..., ::2][..., 1:],
    )
    same(got[0], a[2:14][1:9, 3:][:, 1:4, ::2])
    same(got[1], a[:, 2:8][:, ::3, 1:])
    same(got[2], a[4:8, 2:8][..., 1:3])
    same(got[3], a[..., ::2][..., 1:])


@pytest.mark.parametrize(
    "key",
    [
        (slice(0, 17), 0),
        (0, 13),
        (0, slice(5, 5)),
        (0, slice(3, 13)),
        (0, 0, 0),
        (..., ...),
        (0, slice(8, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_keys_out_of_bounds(key, on_chip):
    with pytest.raises(KernelError, match=r"test_views.py:\d+.*\["):
        read(np.zeros((16, 12), F32), on_chip, lambda t: t[key])


@pytest.mark.parametrize("key", [1.5, "a", (0, [1, 2]), (0, {})], ids=str)
def test_keys_of_another_type(key):
    with pytest.raises(TypeError, match="an index is"):
        read(np.zeros((16, 12), F32), True, lambda t: t[key])


def test_partition_key_keeps_the_partition():
    a = np.arange(24, dtype=F32).reshape(4, 6)
    on_chip, in_hbm = read(a, True, lambda t: t[2])[0], read(a, False, lambda t: t[2])[0]
    same(on_chip, a[2:3])
    same(in_hbm, a[2])
    same(read(a, True, lambda t: t[2, 3])[0], a[2:3, 3:4])
    same(read(a, False, lambda t: t[2, 3])[0], a[2, 3:4])


# --- Methods ---


class Pair:
    """A view and the NumPy array that it must equal, moved by the same steps."""

    def __init__(self, rng, shape, on_chip):
        self.rng, self.on_chip = rng, on_chip
        self.steps = []
        self.array = rng.permutation(np.prod(shape)).reshape(shape).astype(np.uint16)
        self.start = self.array
        for _ in range(int(rng.integers(1, 5))):
            self.move()

    def move(self):
        kinds = [
            "slice",
            "permute",
            "broadcast",
            "expand",
            "squeeze",
            "select",
            "split",
            "flatten",
            "reshape",
            "view",
        ]
        getattr(self, "_" + str(self.rng.choice(kinds)))()

    def _step(self, method, *args, array):
        assert np.shares_memory(array, self.start)
        if array.ndim <= 5:
            self.steps.append((method, args))
            self.array = array

    def _dim(self):
        return int(self.rng.integers(1 if self.on_chip else 0, self.array.ndim))

    def _slice(self):
        d = int(self.rng.integers(0, self.array.ndim))
        extent = self.array.shape[d]
        start = int(self.rng.integers(0, extent))
        end = int(self.rng.integers(start + 1, extent + 1))
        step = 1 if self.on_chip and d == 0 else int(self.rng.integers(1, 3))
        self._step(
            "slice", d, start, end, step, array=self.array[(slice(None),) * d + (slice(start, end, step),)]
        )

    def _permute(self):
        first = [0] if self.on_chip else []
        order = tuple(first + [int(d) for d in self.rng.permutation(range(len(first), self.array.ndim))])
        self._step("permute", order, array=self.array.transpose(order))

    def _broadcast(self):
        ones = [d for d in range(self.on_chip, self.array.ndim) if self.array.shape[d] == 1]
        if ones:
            shape = list(self.array.shape)
            shape[ones[0]] = 3
            self._step("broadcast", ones[0], 3, array=np.broadcast_to(self.array, shape))

    def _expand(self):
        d = int(self.rng.integers(self.on_chip, self.array.ndim + 1))
        self._step("expand_dim", d, array=np.expand_dims(self.array, d))

    def _squeeze(self):
        ones = [d for d in range(self.on_chip, self.array.ndim) if self.array.shape[d] == 1]
        if ones and self.array.ndim > 2:
            self._step("squeeze_dim", ones[0], array=np.squeeze(self.array, ones[0]))

    def _select(self):
        if self.array.ndim > 2:
            d = self._dim()
            at = int(self.rng.integers(0, self.array.shape[d]))
            self._step("select", d, at, array=self.array[(slice(None),) * d + (at,)])

    def _split(self):
        d = self._dim()
        even = self.array.shape[d] % 2 == 0
        part = (2, -1) if even else (-1, 1)
        shape = self.array.shape[:d] + (2, self.array.shape[d] // 2) + self.array.shape[d + 1 :]
        if even:
            self._step("reshape_dim", d, part, array=self.array.reshape(shape))

    def _flatten(self):
        first = self._dim()
        last = int(self.rng.integers(first, self.array.ndim))
        shape = self.array.shape[:first] + (-1,) + self.array.shape[last + 1 :]
        self._reshaped(shape, "flatten_dims", first, last)

    def _reshape(self):
        keep = 1 if self.on_chip else 0
        self._reshaped(self.array.shape[:keep] + (-1,), "reshape", None)
        if self.array.shape[-1] % 2 == 0:
            self._reshaped(self.array.shape[:-1] + (self.array.shape[-1] // 2, 2), "reshape", None)

    def _reshaped(self, shape, method, *args):
        """NumPy reshapes without a copy where the layout allows it, and so does the chip."""
        if len(shape) < 2:
            return
        array = self.array.reshape(shape)
        if np.shares_memory(array, self.start):
            self._step(method, *(args if method == "flatten_dims" else (array.shape,)), array=array)

    def _view(self):
        if (
            self.array.strides[-1] == self.array.itemsize
            and self.array.itemsize > 1
            and self.array.shape[-1] > 1
        ):
            self._step("view", nl.uint8, array=self.array.view(np.uint8))

    def apply(self, t):
        for method, args in self.steps:
            t = getattr(t, method)(*args)
        return t


@pytest.mark.parametrize("on_chip", ON_CHIP)
@pytest.mark.parametrize("shape", [(12, 24), (8, 6, 10), (4, 3, 4, 6)], ids=str)
def test_chains_of_methods(rng, shape, on_chip):
    for _ in range(60):
        pair = Pair(rng, shape, on_chip)
        got = read(pair.start, on_chip, pair.apply)[0]
        assert got.shape == pair.array.shape, (pair.steps, got.shape, pair.array.shape)
        np.testing.assert_array_equal(got, pair.array, err_msg=str(pair.steps))


@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_attributes(on_chip):
    @nki.jit
    def kernel(a):
        t = placed(a, on_chip)
        assert (t.shape, t.ndim, t.size, t.dtype, len(t)) == ((4, 6, 8), 3, 192, nl.float32, 4)
        assert t.strides == (48, 8, 1) and t.offset == 0 and t.is_contiguous() and not t.is_indirect()
        v = t[1:3, ::2, 3]
        assert (v.shape, v.strides, v.offset) == ((2, 3), (48, 16), 51)
        assert v.get_pattern() == [[48, 2], [16, 3]] and not v.is_contiguous()
        assert v.whole().shape == t.shape
        assert t.permute((0, 2, 1)).strides == (48, 1, 8)
        assert t[:, :, 0:1].broadcast(2, 5).strides == (48, 8, 0)
        # Contiguity is the partitions' own affair on chip.
        assert t[:, 2].is_contiguous() == on_chip
        return out_of(t)

    kernel(np.zeros((4, 6, 8), F32))


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.permute((1, 0, 2)),
        lambda t: t.broadcast(0, 2),
        lambda t: t.flatten_dims(0, 1),
        lambda t: t.expand_dim(0),
        lambda t: t.reshape((8, 3, 8)),
        lambda t: t.reshape_dim(0, (2, 2)),
    ],
)
def test_partitions_stay_on_chip(view):
    a = np.arange(4 * 6 * 8, dtype=F32).reshape(4, 6, 8)
    with pytest.raises(KernelError, match=r"\["):
        read(a, True, view)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.reshape((4, 7)),
        lambda t: t.permute((0, 2, 1)).flatten_dims(1, 2),
        lambda t: t.permute((0, 0, 1)),
        lambda t: t.broadcast(1, 4),
        lambda t: t.squeeze_dim(1),
        lambda t: t.slice(1, 2, 2),
        lambda t: t.slice(1, 0, 7),
        lambda t: t.select(2, 8),
        lambda t: t.select(3, 0),
        lambda t: t.permute((0, 2, 1)).view(nl.uint8),
        lambda t: t[:, :, 0:3].view(nl.float32).view(nl.uint8).view(nl.float16).reshape((4, 7, 5)),
    ],
)
@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_what_no_view_can_be(view, on_chip):
    a = np.zeros((4, 6, 8), F32)
    with pytest.raises(KernelError, match=r"\["):
        read(a, on_chip, view)


@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_rearrange(rng, on_chip):
    a = rng.standard_normal((4, 6, 10)).astype(F32)
    got = read(
        a,
        on_chip,
        lambda t: t.rearrange(("p", "a", "b"), ("p", "b", "a")),
        lambda t: t.rearrange(("p", ("x", "y"), "b"), ("p", "y", "x", "b"), {"x": 2}),
        lambda t: t.rearrange(("p", ("x", "y"), "b"), ("p", "x", ("y", "b")), {"y": 3}),
    )
    same(got[0], a.transpose(0, 2, 1))
    same(got[1], a.reshape(4, 2, 3, 10).transpose(0, 2, 1, 3))
    same(got[2], a.reshape(4, 2, 30))


@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_view_of_another_dtype(rng, on_chip):
    a = rng.integers(0, 2**32, (8, 12), np.uint32)
    got = read(
        a,
        on_chip,
        lambda t: t.view(nl.uint16),
        lambda t: t.reinterpret_cast(nl.float16).view(nl.int32),
        lambda t: t[:, 4:8].view(nl.uint8),
        lambda t: t.view(nl.uint8)[:, 4:12].view(nl.uint32),
    )
    same(got[0], a.view(np.uint16))
    same(got[1], a.view(np.int32))
    same(got[2], np.ascontiguousarray(a[:, 4:8]).view(np.uint8))
    same(got[3], a[:, 1:3])


# --- Access patterns ---


@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_ap_addresses_the_storage(rng, on_chip):
    a = rng.standard_normal((8, 24)).astype(F32)
    got = read(
        a,
        on_chip,
        lambda t: t.ap([[24, 8], [2, 5]], offset=3),
        lambda t: t.ap([[24, 4], [6, 4], [1, 3]]),
        lambda t: t.ap([[24, 8], [0, 3], [1, 4]], offset=20),
        lambda t: t[2:4, 5:].ap([[24, 2], [1, 4]]),  # starts where the view does
        lambda t: t[2:4, 5:].ap([[24, 2], [1, 4]], offset=0),
        lambda t: t.ap([[48, 8], [1, 6]], offset=4, dtype=nl.uint16),
    )
    same(got[0], a[:, 3:13:2])
    same(got[1], a.reshape(8, 4, 6)[:4, :, :3])
    same(got[2], np.broadcast_to(a[:, None, 20:24], (8, 3, 4)))
    same(got[3], a[2:4, 5:9])
    same(got[4], a[0:2, 0:4])
    same(got[5], a.view(np.uint16)[:, 4:10])


def test_ap_written(rng):
    a, b = rng.standard_normal((8, 24)).astype(F32), rng.standard_normal((8, 4, 3)).astype(F32)

    @nki.jit
    def kernel(a, b):
        t = tile(a)
        nisa.tensor_copy(t.ap([[24, 8], [6, 4], [2, 3]], offset=1), tile(b))
        return out_of(t)

    wanted = a.copy()
    wanted.reshape(8, 4, 6)[:, :, 1::2] = b
    same(kernel(a, b), wanted)


@pytest.mark.parametrize("start", [0, 3, 5])
@pytest.mark.parametrize("by", ["register", "tensor"])
@pytest.mark.parametrize("on_chip", ON_CHIP)
def test_dynamic_offsets(rng, start, by, on_chip):
    a = rng.standard_normal((8, 10, 6)).astype(F32)

    @nki.jit
    def kernel(a, where):
        t = placed(a, on_chip)
        at = nisa.register_alloc(tile(where)) if by == "register" else tile(where)
        return (
            out_of(t[:, nl.ds(at, 5)]),
            out_of(t[1:5, at, 2:]),
            out_of(t.select(1, at)),
            out_of(t.ap([[60, 8], [1, 6]], scalar_offset=at, indirect_dim=1)),
            out_of(t[:, 2:][:, nl.ds(at, 2), ::2]),
        )

    got = kernel(a, np.array([[start]], np.int32))
    same(got[0], a[:, start : start + 5])
    same(got[1], a[1:5, start, 2:])
    same(got[2], a[:, start])
    same(got[3], a[:, start])
    same(got[4], a[:, 2 + start : 4 + start, ::2])


@pytest.mark.parametrize("how", ["ap", "vector_select"])
def test_rows_by_index(rng, how):
    a = rng.standard_normal((40, 6)).astype(F32)
    rows = rng.permutation(40)[:16].astype(np.int32).reshape(16, 1)

    @nki.jit
    def kernel(a, rows):
        index = tile(rows)
        gathered = nl.ndarray((16, 6), nl.float32, nl.sbuf)
        pattern = [[6, 16], [1, 6]]
        nisa.dma_copy(
            gathered, a.ap(pattern, vector_offset=index) if how == "ap" else a.vector_select(0, index)
        )
        spread = nl.zeros(a.shape, nl.float32, nl.shared_hbm)
        nisa.dma_copy(
            spread.ap(pattern, vector_offset=index) if how == "ap" else spread.vector_select(0, index),
            gathered,
        )
        return out_of(gathered), spread

    gathered, spread = kernel(a, rows)
    same(gathered, a[rows[:, 0]])
    wanted = np.zeros_like(a)
    wanted[rows[:, 0]] = a[rows[:, 0]]
    same(spread, wanted)


def test_one_dynamic_offset_a_view():
    @nki.jit
    def kernel(a):
        r = nisa.register_alloc(1)
        out_of(placed(a, True)[:, r, nl.ds(r, 2)])

    with pytest.raises(KernelError, match=r"\[dynamic-offset\]"):
        kernel(np.zeros((4, 4, 4), F32))


def test_both_offsets():
    @nki.jit
    def kernel(a, rows):
        a.ap([[6, 4], [1, 6]], scalar_offset=nisa.register_alloc(1), vector_offset=tile(rows))

    with pytest.raises(KernelError, match=r"\[dynamic-offset\]"):
        kernel(np.zeros((8, 6), F32), np.zeros((4, 1), np.int32))


@pytest.mark.parametrize(
    "pattern", [[[24, 9], [1, 2]], [[24, 8], [1, 25]], [[12, 8], [1, 2]], [[24, 8, 1]], []], ids=str
)
def test_patterns_that_leave_the_storage(pattern):
    with pytest.raises(KernelError, match=r"\["):
        read(np.zeros((8, 24), F32), True, lambda t: t.ap(pattern))


def test_tensors_have_no_values_yet():
    @nki.jit
    def kernel(a, what):
        what(tile(a))

    a = np.ones((4, 4), F32)
    for what in (bool, list, np.asarray, lambda t: t.__setitem__(0, 1.0)):
        if what is bool:
            continue
        with pytest.raises(TypeError, match=r"\["):
            kernel(a, what)
    with pytest.raises(TypeError, match="tensor-control-flow"):
        kernel(np.ones((1, 1), F32), bool)
    kernel(a, bool)  # that there is one is known

"""nki.isa: its documentation, names, signatures and enumerations; the costs that it states."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki import collectives

ROOT = Path(__file__).resolve().parents[2]


def _module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _module(ROOT / "tools" / "nki_reference.py")
FUNCTIONS = nisa.INSTRUCTIONS + collectives.COLLECTIVES


# --- The text ---


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_function_says_shapes_buffers_dtypes_limits_engines_cost_and_rules(function):
    first, _, sections = reference.summary_and_details(function)
    assert tuple(sections) == reference.SECTIONS
    assert first.endswith(".") and all(len(text) > 3 and text.endswith(".") for text in sections.values())


def test_the_documented_functions_are_all_there_are():
    documented = {f.__name__ for f in nisa.INSTRUCTIONS}
    public = {
        name for name, value in vars(nisa).items() if inspect.isfunction(value) and not name.startswith("_")
    }
    others = {"get_nc_version", "get_nc_sub_version", "tensor_copy_dynamic_src", "tensor_copy_dynamic_dst"}
    assert public == documented | others
    assert documented <= set(nisa.__all__) and all(hasattr(nisa, name) for name in nisa.__all__)
    public = {
        name for name, value in vars(collectives).items() if inspect.isfunction(value) and name[0] != "_"
    }
    assert public == {f.__name__ for f in collectives.COLLECTIVES} and public <= set(collectives.__all__)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_parameter_is_explained(function):
    """By name somewhere in the text; what all of a module's functions have, in the module's."""
    module = collectives if function in collectives.COLLECTIVES else nisa
    text = inspect.getdoc(function) + inspect.getdoc(module)
    missing = [name for name in inspect.signature(function).parameters if not re.search(rf"\b{name}\b", text)]
    assert not missing


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_rules_are_those_of_the_chip_and_explained(function):
    chapter = next(
        title
        for title, functions in {**nisa.CHAPTERS, "Collectives": collectives.COLLECTIVES}.items()
        if function in functions
    )
    own = ROOT / "docs" / "chip" / f"{reference.DETAILS[chapter]}.md"
    pages = own.read_text() + (ROOT / "docs" / "chip" / "core.md").read_text()
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "chip").glob("*.cc"))
    sources += "".join(path.read_text() for path in (ROOT / "python").rglob("*.cc"))
    sources += "".join(path.read_text() for path in (ROOT / "python" / "headway" / "nki").rglob("*.py"))
    recorded_only = {"outside", "frozen-register"}  # of the Python package
    for rule in reference.rules(function):
        assert f'"{rule}"' in sources or f"[{rule}]" in sources, rule
        explained = re.search(rf"^\|[^|]*`{rule}`[^|]*\|", pages, re.M)
        assert explained or rule in recorded_only or rule in ALSO_ON.get(function.__name__, ()), rule


# Rules that another page explains.
ALSO_ON = {
    "nc_matmul_mx": ("not-modelled",),
    "activate2": ("not-modelled",),
    "exponential": ("not-modelled",),
    "quantize_mx": ("not-modelled",),
    "rand2": ("not-modelled",),
    **{function.__name__: ("priority",) for function in collectives.COLLECTIVES},
}


def test_the_page_is_what_the_docstrings_give():
    assert reference.PAGE.read_text() == reference.page(), "python tools/nki_reference.py writes it"


def test_help_shows_it():
    text = inspect.getdoc(nki.isa.tensor_copy)
    assert "Shapes:" in text and "Cost:" in text


# --- Names and numbers ---


def test_enumerations():
    assert [(e.name, int(e)) for e in nisa.engine] == [
        ("unknown", 0),
        ("tensor", 1),
        ("scalar", 2),
        ("gpsimd", 3),
        ("dma", 4),
        ("vector", 5),
        ("sync", 6),
    ]
    assert [int(c) for c in nisa.reduce_cmd] == [0, 1, 2, 3, 4] and nisa.reduce_cmd.load_reduce == 4
    assert [m.name for m in nisa.dge_mode] == ["unknown", "swdge", "hwdge", "none"]
    assert (nisa.oob_mode.error, nisa.oob_mode.skip) == (0, 1)
    assert (nisa.dma_engine.dma, nisa.dma_engine.gpsimd_dma) == (1, 2)
    assert nisa.matmul_perf_mode.double_row_gen3 is nisa.matmul_perf_mode.double_row
    assert nisa.nc_version.gen2 < nisa.nc_version.gen3 < nisa.nc_version.gen4
    assert nisa.vector_engine is nisa.engine.vector and nisa.unknown_engine is nisa.engine.unknown
    assert issubclass(nisa.NkiValidationError, nki.errors.KernelError)
    for name in (
        "engine",
        "reduce_cmd",
        "dge_mode",
        "oob_mode",
        "matmul_perf_mode",
        "nc_version",
        "dma_engine",
    ):
        assert getattr(nisa.constants, name) is getattr(nisa, name)


@pytest.mark.parametrize(
    "chip, generation", [("trn1", 2), ("trn2", 3), ("trn3", 4), ("gen3", 3), ("inf2", 2)]
)
def test_nc_version_follows_the_target(monkeypatch, chip, generation):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", chip)
    seen = []
    nki.jit(lambda: seen.append(nisa.get_nc_version()))()
    assert seen == [generation] and isinstance(seen[0], nisa.nc_version)
    assert nisa.get_nc_version() == generation and nisa.get_nc_sub_version() == 0


# Positional order and defaults of NKI 0.6.
SIGNATURES = {
    "nc_matmul": "dst stationary moving is_stationary_onezero is_moving_onezero is_transpose accumulate",
    "nc_transpose": "dst data engine",
    "activation": "dst op data bias scale reduce_op reduce_res reduce_cmd",
    "activation_reduce": "dst op data reduce_op reduce_res bias scale",
    "tensor_copy": "dst src engine",
    "tensor_copy_predicated": "dst src predicate reverse_pred",
    "tensor_tensor": "dst data1 data2 op engine",
    "tensor_scalar": "dst data op0 operand0 reverse0 op1 operand1 reverse1 engine",
    "scalar_tensor_tensor": "dst data op0 operand0 op1 operand1 reverse0 reverse1",
    "tensor_scalar_reduce": "dst data op0 operand0 reduce_op reduce_res reverse0 reduce_cmd reduce_init",
    "tensor_scalar_cumulative": "dst src op0 op1 imm0 imm1 reduce_cmd",
    "tensor_reduce": "dst op data axis negate keepdims",
    "tensor_tensor_scan": "dst data0 data1 initial op0 op1 reverse0 reverse1",
    "reciprocal": "dst data",
    "memset": "dst value engine",
    "bn_stats": "dst data",
    "bn_aggr": "dst data",
    "max8": "dst src",
    "nc_find_index8": "dst data vals",
    "nc_match_replace8": "dst data vals imm dst_idx",
    "range_select": "dst on_true_tile comp_op0 comp_op1 bound0 bound1 reduce_cmd reduce_res reduce_op",
    "select_reduce": "dst predicate on_true on_false reduce_res reduce_cmd reduce_op reverse_pred",
    "nc_stream_shuffle": "dst src shuffle_mask",
    "dropout": "dst data prob",
    "rng": "dst engine",
    "iota": "dst pattern offset channel_multiplier",
    "affine_select": "dst pattern channel_multiplier on_true_tile on_false_value cmp_op offset",
    "tensor_partition_reduce": "dst op data",
    "local_gather": "dst src_buffer index num_elem_per_idx num_valid_indices",
    "nc_n_gather": "dst data indices",
    "sequence_bounds": "dst segment_ids",
    "nonzero_with_count": "dst src index_offset padding_val",
    "topk": "val_dst idx_dst src n",
    "dma_copy": "dst src priority oob_mode dge_mode engine",
    "dma_transpose": "dst src axes priority dge_mode oob_mode",
    "dma_compute": "dst srcs reduce_op scales unique_indices oob_mode",
    "sendrecv": "src dst send_to_rank recv_from_rank pipe_id dma_engine",
    "core_barrier": "data cores engine",
    "register_alloc": "x",
    "register_move": "dst src",
    "register_load": "dst src",
    "register_store": "dst src",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_positional_order(name):
    wanted = SIGNATURES[name].split()
    assert list(inspect.signature(getattr(nisa, name)).parameters)[: len(wanted)] == wanted


# --- Costs ---

SBUF, PSUM = nl.sbuf, nl.psum
BF16, F32 = nl.bfloat16, nl.float32


def new(n, dtype=F32, buffer=SBUF, partitions=128):
    return nl.ndarray((partitions, n), dtype, buffer=buffer)


# Engine, cycles an element, what is called with the number of elements.
COSTS = [
    ("vector", 1 / 2, lambda n: nisa.tensor_copy(new(n), new(n), engine=nisa.engine.vector)),
    ("vector", 1 / 4, lambda n: nisa.tensor_copy(new(n, BF16), new(n, BF16), engine=nisa.engine.vector)),
    ("vector", 1, lambda n: nisa.tensor_copy(new(n), new(n, buffer=PSUM), engine=nisa.engine.vector)),
    (
        "vector",
        1 / 2,
        lambda n: nisa.tensor_copy(new(n, BF16), new(n, BF16, PSUM), engine=nisa.engine.vector),
    ),
    ("scalar", 1, lambda n: nisa.tensor_copy(new(n), new(n), engine=nisa.engine.scalar)),
    ("gpsimd", 1, lambda n: nisa.tensor_copy(new(n), new(n), engine=nisa.engine.gpsimd)),
    ("gpsimd", 1 / 2, lambda n: nisa.tensor_copy(new(n, BF16), new(n, BF16), engine=nisa.engine.gpsimd)),
    ("vector", 2, lambda n: nisa.tensor_copy_predicated(new(n), new(n), new(n, nl.uint8))),
    ("vector", 1, lambda n: nisa.tensor_copy_predicated(new(n), 0.0, new(n, nl.uint8))),
    ("vector", 2, lambda n: nisa.tensor_tensor(new(n), new(n), new(n), nl.add, engine=nisa.engine.vector)),
    ("vector", 1, lambda n: nisa.tensor_tensor(*[new(n, BF16)] * 3, nl.add, engine=nisa.engine.vector)),
    ("vector", 1, lambda n: nisa.tensor_tensor(new(n), new(n), new(n, buffer=PSUM), nl.add)),
    ("gpsimd", 2, lambda n: nisa.tensor_tensor(new(n), new(n), new(n), nl.add, engine=nisa.engine.gpsimd)),
    ("gpsimd", 4, lambda n: nisa.tensor_tensor(new(n), new(n), new(n), nl.power)),
    ("vector", 1 / 4, lambda n: nisa.tensor_scalar(new(n, BF16), new(n, BF16), nl.maximum, 0.0)),
    ("gpsimd", 4, lambda n: nisa.tensor_scalar(new(n), new(n), nl.rsqrt)),
    ("vector", 2, lambda n: nisa.scalar_tensor_tensor(new(n), new(n), nl.add, 1.0, nl.add, new(n))),
    (
        "vector",
        1,
        lambda n: nisa.scalar_tensor_tensor(
            new(n), new(n, BF16), nl.subtract, 1.0, nl.multiply, new(n, BF16)
        ),
    ),
    ("vector", 5.5, lambda n: nisa.reciprocal(new(n), new(n))),
    ("vector", 1 / 2, lambda n: nisa.memset(new(n), 0.0, engine=nisa.engine.vector)),
    ("vector", 1 / 4, lambda n: nisa.memset(new(n, BF16), 0.0, engine=nisa.engine.vector)),
    ("vector", 1 / 2, lambda n: nisa.memset(new(n, BF16, PSUM), 0.0)),
    ("vector", 1, lambda n: nisa.tensor_reduce(new(1), nl.add, new(n), 1)),
    ("vector", 1 / 2, lambda n: nisa.tensor_reduce(new(1, BF16), nl.add, new(n, BF16), 1)),
    ("vector", 1, lambda n: nisa.tensor_scalar_reduce(new(n), new(n), nl.add, 1.0, nl.add, new(1))),
    ("vector", 2, lambda n: nisa.tensor_tensor_scan(new(n), new(n), new(n), 0.0, nl.add, nl.add)),
    ("vector", 13 / 3, lambda n: nisa.bn_aggr(new(2), new(n))),
    ("vector", 1, lambda n: nisa.max8(new(8), new(n))),
    ("vector", 1, lambda n: nisa.nc_find_index8(new(8, nl.uint16), new(n), new(8))),
    ("vector", 1, lambda n: nisa.nc_match_replace8(new(n), new(n), new(8), 0.0)),
    ("vector", 1, lambda n: nisa.range_select(new(n), new(n), nl.less, nl.less, new(1), new(1))),
    ("vector", 2, lambda n: nisa.select_reduce(new(n), new(n, nl.uint8), new(n), 0.0)),
    ("vector", 1, lambda n: nisa.nc_stream_shuffle(new(n), new(n), list(range(32)))),
    ("vector", 1, lambda n: nisa.dropout(new(n), new(n), 0.5)),
    ("scalar", 1, lambda n: nisa.activation(new(n), nl.exp, new(n))),
    ("scalar", 1, lambda n: nisa.activation_reduce(new(n), nl.exp, new(n), nl.add, new(1))),
    ("gpsimd", 1, lambda n: nisa.iota(new(n), [[1, n]])),
    ("gpsimd", 1, lambda n: nisa.affine_select(new(n), [[1, n]], 1, new(n), 0.0)),
    ("gpsimd", 9, lambda n: nisa.tensor_partition_reduce(new(n, partitions=1), nl.add, new(n))),
    ("gpsimd", 8, lambda n: nisa.local_gather(new(n), new(64), new(n // 16, nl.uint16))),
    ("gpsimd", 11, lambda n: nisa.local_gather(new(4 * n), new(64), new(n // 16, nl.uint16), 4)),
    ("gpsimd", 4, lambda n: nisa.topk(new(16, BF16), new(16, nl.uint32), new(n // 16, BF16), n)),
]


def busy(engine, body, n):
    """Cycles that the engine is busy with it."""

    def kernel():
        body(n)

    recording = nki.jit(kernel).record()
    figures = recording.profile().figures
    clock = recording.spec[f"{engine}_engine.clock"]
    return figures[f"{engine}_engine_active_time"] * clock


@pytest.mark.parametrize("engine, each, body", COSTS, ids=[str(i) for i in range(len(COSTS))])
def test_costs_are_those_of_the_text(engine, each, body):
    few, many = 960, 1920
    assert busy(engine, body, many) - busy(engine, body, few) == pytest.approx((many - few) * each, rel=0.01)

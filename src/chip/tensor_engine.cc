#include "chip/tensor_engine.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "chip/array_cost.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/rows.h"
#include "simd/gemm_tile.h"

namespace headway::chip {
namespace {

bool is_fp8(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2 || dtype == DType::f8e4m3fn;
}
bool is_32_bit(DType dtype) { return dtype == DType::f32 || dtype == DType::tf32; }

// A pair of optional numbers as fields.
void visit_tile(Fields& fields, std::string_view name, std::optional<ArrayTile>& tile) {
  std::vector<std::int64_t> numbers;
  if (tile) numbers = {tile->row, tile->column};
  fields.integers(name, numbers);
  // A list of any other length is kept as an impossible tile, which `check` refuses.
  if (numbers.empty()) {
    tile.reset();
  } else {
    tile = numbers.size() == 2 ? ArrayTile{numbers[0], numbers[1]} : ArrayTile{-1, -1};
  }
}

}  // namespace

std::span<const std::string_view> names_of(MatmulPerf) {
  static constexpr std::array<std::string_view, 2> kNames = {"none", "double_row"};
  return kNames;
}

// --- nc_matmul ---

void NcMatmul::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("stationary", stationary, Access::read);
  fields.view("moving", moving, Access::read);
  fields.flag("is_stationary_onezero", is_stationary_onezero);
  fields.flag("is_moving_onezero", is_moving_onezero);
  fields.flag("is_transpose", is_transpose);
  fields.optional_flag("accumulate", accumulate);
  visit_tile(fields, "tile_position", tile_position);
  visit_tile(fields, "tile_size", tile_size);
  fields.choice("perf_mode", perf_mode);
}

void NcMatmul::check(Check& c) const {
  const Spec& spec = c.spec;
  c.in_sbuf("stationary", stationary);
  c.in_sbuf("moving", moving);
  c.in("dst", dst, {Buffer::psum});
  for (const auto& [operand, view] : {std::pair{"stationary", &stationary}, std::pair{"moving", &moving}}) {
    c.dtype(
        operand, *view,
        {DType::f32, DType::tf32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2, DType::f8e4m3fn});
    if (view->dtype == DType::f8e4m3fn) c.generation(4, "a float8_e4m3fn operand");
  }
  c.require(is_32_bit(stationary.dtype) == is_32_bit(moving.dtype), "dtype", "stationary",
            "is {} and moving {}: float32 and tfloat32 pair only with each other",
            headway::name_of(stationary.dtype), headway::name_of(moving.dtype));
  const bool both_e4m3 = (stationary.dtype == DType::f8e4m3fn && moving.dtype == DType::f8e4m3) ||
                         (stationary.dtype == DType::f8e4m3 && moving.dtype == DType::f8e4m3fn);
  c.require(!both_e4m3, "dtype", "stationary", "float8_e4m3fn and float8_e4m3 don't mix in a product");
  c.same_partitions("stationary", stationary, "moving", moving);
  c.require(stationary.rows() <= spec.matmul_contraction, "matmul-size", "stationary",
            "{} rows to contract, the array has {}", stationary.rows(), spec.matmul_contraction);

  std::int64_t m = stationary.row_elements(), n = moving.row_elements();
  if (perf_mode == MatmulPerf::double_row) {
    c.generation(3, "perf_mode double_row");
    for (const auto& [operand, view] : {std::pair{"stationary", &stationary}, std::pair{"moving", &moving}}) {
      c.require(view->rank >= 3 && view->pairs[1].count == 2, "double-row", operand,
                "must be [K, 2, ...] for double_row, not {}", [&] { return to_string(view->shape()); });
      c.require(is_fp8(view->dtype), "double-row", operand, "double_row multiplies fp8 only, not {}",
                headway::name_of(view->dtype));
    }
    c.require(!is_transpose, "double-row", "is_transpose", "double_row can't transpose");
    c.require(!tile_size || tile_size->column == spec.stationary_columns, "double-row", "tile_size",
              "double_row can't be combined with column tiles of {}", tile_size ? tile_size->column : 0);
    m /= 2;
    n /= 2;
  }
  c.require(m <= spec.stationary_columns, "matmul-size", "stationary", "{} columns, at most {}", m,
            spec.stationary_columns);
  c.require(n <= spec.moving_columns, "matmul-size", "moving", "{} columns, at most {} on {}", n,
            spec.moving_columns, spec.name);
  c.require(dst.rows() == m && dst.row_elements() == n, "shape", "dst", "must be [{}, {}], not {}", m, n,
            [&] { return to_string(dst.shape()); });
  c.require(dst.dynamic < 0, "dynamic-offset", "dst", "a product can't go to a dynamic place in PSUM");

  if (is_transpose) {
    const int bytes = size_of(stationary.dtype);
    const bool same = size_of(dst.dtype) == bytes || (bytes == 1 && size_of(dst.dtype) == 2);
    if (spec.generation >= 3)
      c.require(same, "dtype", "dst", "a transpose of {} gives elements of {} bits, not {}",
                headway::name_of(stationary.dtype), bytes == 1 ? 16 : 8 * bytes, headway::name_of(dst.dtype));
    c.require(!accumulate.value_or(false), "accumulate", "accumulate",
              "a transpose can't be added to anything");
  } else if (dst.dtype == DType::bf16 && spec.generation >= 4) {
    c.broken(Severity::unsupported, "dtype", "dst",
             "bfloat16 sums in PSUM are legal on " + spec.name + ", not modelled");
  } else {
    c.dtype("dst", dst, {DType::f32});
  }

  // One bank, unless the generation writes across them.
  const Tensor& t = c.tensor_of(dst);
  if (spec.generation <= 3 && c.buffer(dst) == Buffer::psum) {
    const int bytes = size_of(dst.dtype);
    std::int64_t low = dst.offset, high = dst.offset;
    for (const Pair& p : dst.free_pairs()) (p.step < 0 ? low : high) += std::int64_t{p.step} * (p.count - 1);
    low *= bytes;
    high = (high + 1) * bytes;
    c.require(low / spec.psum_bank_bytes == (high - 1) / spec.psum_bank_bytes, "psum-bank", "dst",
              "bytes {} to {} of '{}' cross a PSUM bank; a product stays within one bank of {} bytes", low,
              high - 1, t.name, spec.psum_bank_bytes);
  }

  if (!c.require(tile_position.has_value() == tile_size.has_value(), "array-tile", "tile_position",
                 "tile_position and tile_size come together") ||
      !tile_size)
    return;
  const ArrayTile size = *tile_size, position = *tile_position;
  const std::int64_t smallest = spec.generation >= 3 ? 32 : 64;
  for (const auto& [what, value, at] :
       {std::tuple{"rows", size.row, position.row}, std::tuple{"columns", size.column, position.column}}) {
    const bool known = value == 64 || value == 128 || (value == 32 && smallest == 32);
    if (!c.require(known, "array-tile", "tile_size", "{} {}: tiles of the array have {}64 or 128", value,
                   what, smallest == 32 ? "32, " : ""))
      continue;
    c.require(at >= 0 && at % value == 0 && at + value <= 128, "array-tile", "tile_position",
              "a tile of {} {} can't start at {}", value, what, at);
  }
  c.require(stationary.rows() <= size.row, "array-tile", "tile_size", "{} rows to contract, the tile has {}",
            stationary.rows(), size.row);
  c.require(m <= size.column, "array-tile", "tile_size", "{} stationary columns, the tile has {}", m,
            size.column);
}

namespace {

// A [rows, row elements] matrix of float32 at `stride` floats a row: the block itself where it can be, else
// converted to `scratch`.
struct Matrix {
  const float* data;
  std::int64_t stride;
};

Matrix as_floats(Core& core, const Block& block, int slot) {
  const bool direct = block.dtype == DType::f32 && block.contiguous() && !block.row_offsets &&
                      block.row_stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(block.base) % 4 == 0;
  if (direct) return {reinterpret_cast<const float*>(block.base), block.row_stride / 4};
  float* to = core.scratch(0, block.rows * block.elements, slot);
  core.for_rows(block.rows, block.rows * block.elements, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* row = read_row(block, r, to + r * block.elements);
      if (row != to + r * block.elements)
        std::memcpy(to + r * block.elements, row, static_cast<std::size_t>(block.elements) * sizeof(float));
    }
  });
  return {to, block.elements};
}

void check_onezero(Core& core, std::string_view operand, const Matrix& matrix, std::int64_t rows,
                   std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < columns; ++i) {
      const float value = matrix.data[r * matrix.stride + i];
      if (value != 0 && value != 1)
        core.report(Severity::kernel_error, "onezero", operand,
                    fmt::format("element [{}, {}] is {}, but it was promised to be 0 or 1", r, i, value));
    }
}

// The transpose mode: element bits of the stationary operand go where the moving operand has its ones.
void pass_through(Core& core, const NcMatmul& i, const Block& stationary, const Block& moving) {
  const Matrix ones = as_floats(core, moving, 0);
  const std::int64_t k = moving.rows, n = moving.elements, m = stationary.elements;
  // The row of the stationary operand that each column of the result shows, or none.
  std::vector<std::int64_t> row_of(static_cast<std::size_t>(n), -1);
  for (std::int64_t r = 0; r < k; ++r)
    for (std::int64_t j = 0; j < n; ++j) {
      const float value = ones.data[r * ones.stride + j];
      if (value == 0) continue;
      if (value != 1 || row_of[static_cast<std::size_t>(j)] >= 0)
        core.report(
            Severity::kernel_error, "transpose-identity", "moving",
            fmt::format(
                "column {} isn't a column of an identity: a transpose passes elements through, it doesn't "
                "add or scale",
                j));
      row_of[static_cast<std::size_t>(j)] = r;
    }
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(k * m)),
      row(static_cast<std::size_t>(std::max(m, n)));
  for (std::int64_t r = 0; r < k; ++r) {
    const std::uint32_t* values = read_bits(stationary, r, row.data());
    std::copy_n(values, m, bits.begin() + r * m);
  }
  const Block dst = core.write("dst", i.dst);
  for (std::int64_t p = 0; p < m; ++p) {
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t from = row_of[static_cast<std::size_t>(j)];
      row[static_cast<std::size_t>(j)] = from < 0 ? 0 : bits[static_cast<std::size_t>(from * m + p)];
    }
    write_bits(dst, p, row.data());
  }
}

constexpr std::int64_t kColumnStep =
    128 + 16;  // floats between rows of the packed stationary operand: off a power of two

}  // namespace

void NcMatmul::apply(Core& core) const {
  const Block s = core.read("stationary", stationary);
  const Block v = core.read("moving", moving);
  if (is_transpose && core.spec().generation >= 3) return pass_through(core, *this, s, v);

  const bool twice = perf_mode == MatmulPerf::double_row;
  const std::int64_t m = twice ? s.elements / 2 : s.elements, n = twice ? v.elements / 2 : v.elements;
  const std::int64_t depth = s.rows, k = twice ? 2 * depth : depth;
  const std::int64_t panels = simd::panels(n);

  // A moving operand that is used again and again stays packed from its second use on.
  Core::Kept* kept = core.kept(moving);
  if (kept && ++kept->uses == 2 && !core.keep(*kept, panels * simd::kTileColumns * k)) kept->uses = 0;
  const bool keeps = kept && kept->uses >= 2, packed = kept && kept->uses > 2;
  const Matrix a = as_floats(core, s, 0);
  const Matrix b = packed && !is_moving_onezero ? Matrix{} : as_floats(core, v, 1);
  if (is_stationary_onezero) check_onezero(core, "stationary", a, s.rows, s.elements);
  if (is_moving_onezero) check_onezero(core, "moving", b, v.rows, v.elements);

  // What the elements of dst hold decides between overwriting and adding.
  bool add = false;
  std::vector<PsumState> mixed;
  if (!accumulate || *accumulate) {
    const Core::Accumulation before = core.accumulation(dst);
    add = before == Core::Accumulation::running;
    if (before == Core::Accumulation::mixed) mixed = core.psum_states(dst);
    if (accumulate && before != Core::Accumulation::running) {
      core.read("dst", dst);  // reports what was never written, unless other tensors wrote there
      if (mixed.empty()) mixed.assign(static_cast<std::size_t>(m * n), PsumState::other);
      std::replace(mixed.begin(), mixed.end(), PsumState::never, PsumState::other);
    }
    if (std::find(mixed.begin(), mixed.end(), PsumState::other) != mixed.end())
      core.report(
          Severity::warning, "accumulate", "dst",
          fmt::format("adds to PSUM that no matmul started; the hardware leaves the result undefined. {}",
                      accumulate ? "Here it adds." : "Here it overwrites."));
  }
  const Block to = core.write("dst", dst);
  core.set_psum_state(dst, PsumState::matmul);

  const bool direct = mixed.empty() && to.contiguous() && to.row_stride % 4 == 0;
  float* c = direct ? reinterpret_cast<float*>(to.base) : core.scratch(0, m * n, 2);
  const std::int64_t ldc = direct ? to.row_stride / 4 : n;
  const bool accumulate_in_place = direct && add;
  const auto pack_stationary = [&](std::int64_t begin, std::int64_t end, int thread) {
    float* packed_a = core.scratch(thread, k * kColumnStep, 3);
    for (int half = 0; half < (twice ? 2 : 1); ++half)
      simd::pack_columns(end - begin, depth, a.data + half * m + begin, a.stride,
                         packed_a + half * depth * kColumnStep, kColumnStep, false);
    return packed_a;
  };
  const auto multiply = [&](const float* columns_of_a, std::int64_t step, std::int64_t rows,
                            const float* panel, float* to_rows, std::int64_t column) {
    simd::gemm_panel(simd::ByRows::no, rows, k, columns_of_a, step, panel, to_rows + column, ldc,
                     std::min<std::int64_t>(simd::kTileColumns, n - column), accumulate_in_place);
  };
  // Each sum runs over k in the same order, however the work is divided.
  if (packed) {  // by rows, as the engines do that go on with the result: what a thread made stays in its
                 // cache
    core.for_rows(m, m * n * k / 16, [&](std::int64_t begin, std::int64_t end, int thread) {
      const bool near = !twice && a.stride <= kColumnStep;  // fits the cache as it is
      const float* rows = near ? a.data + begin : pack_stationary(begin, end, thread);
      const std::int64_t step = near ? a.stride : kColumnStep;
      for (std::int64_t column = 0; column < n; column += simd::kTileColumns)
        multiply(rows, step, end - begin, kept->floats.memory.get() + column * k, c + begin * ldc, column);
    });
  } else {  // by columns, so that each column of B is packed once
    core.for_rows(panels, m * n * k / 16, [&](std::int64_t begin, std::int64_t end, int thread) {
      const std::int64_t first = begin * simd::kTileColumns, last = std::min(n, end * simd::kTileColumns);
      float* packed_b = keeps ? kept->floats.memory.get() + first * k
                              : core.scratch(thread, panels * simd::kTileColumns * k, 4);
      for (int half = 0; half < (twice ? 2 : 1); ++half)
        simd::pack_b_by_rows(depth, last - first, b.data + half * n + first, b.stride,
                             packed_b + half * depth * simd::kTileColumns, k * simd::kTileColumns);
      const float* packed_a = pack_stationary(0, m, thread);
      for (std::int64_t column = first; column < last; column += simd::kTileColumns)
        multiply(packed_a, kColumnStep, m, packed_b + (column - first) * k, c, column);
    });
  }
  if (direct) return;
  std::vector<float> row(static_cast<std::size_t>(n));
  const bool overwrite_others = !accumulate.has_value();
  for (std::int64_t r = 0; r < m; ++r) {
    float* sums = c + r * n;
    if (add || !mixed.empty()) {
      const float* before = read_row(to, r, row.data());
      for (std::int64_t j = 0; j < n; ++j) {
        const PsumState state =
            mixed.empty() ? PsumState::matmul : mixed[static_cast<std::size_t>(r * n + j)];
        if (state == PsumState::matmul || (state == PsumState::other && !overwrite_others))
          sums[j] += before[j];
      }
    }
    write_row(to, r, sums);
  }
}

Cost NcMatmul::cost(const Costing& costing) const {
  const Timing::Tensor& t = costing.timing.tensor;
  Product product;
  product.contraction = stationary.rows();
  product.rows = dst.rows();
  product.columns = dst.row_elements();
  product.float32 = stationary.dtype == DType::f32 || moving.dtype == DType::f32;
  product.onezero = is_stationary_onezero || is_moving_onezero;
  product.transpose = is_transpose;
  const double array = static_cast<double>(costing.timing.spec.matmul_contraction) *
                       static_cast<double>(costing.timing.spec.stationary_columns);
  if (tile_size) product.array_share = static_cast<double>(tile_size->row * tile_size->column) / array;
  if (perf_mode == MatmulPerf::double_row) product.contraction *= 2;
  Cost cost = product_cost(costing, product);
  cost.calibrated = near_measured(t.measured_columns, static_cast<double>(product.columns)) &&
                    size_of(moving.dtype) > 1 && !tile_size && !product.onezero;
  return cost;
}

void nc_matmul(const Tile& dst, const Tile& stationary, const Tile& moving, const MatmulOptions& options,
               Here here) {
  record<NcMatmul>(dst, here, [&](NcMatmul& i) {
    i.dst = dst;
    i.stationary = stationary;
    i.moving = moving;
    i.accumulate = options.accumulate;
    i.is_stationary_onezero = options.is_stationary_onezero;
    i.is_moving_onezero = options.is_moving_onezero;
    i.is_transpose = options.is_transpose;
    i.tile_position = options.tile_position;
    i.tile_size = options.tile_size;
    i.perf_mode = options.perf_mode;
  });
}

// --- nc_transpose ---

void NcTranspose::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
}

void NcTranspose::check(Check& c) const {
  c.on_chip("dst", dst);
  c.on_chip("data", data);
  c.same_dtype("dst", dst, "data", data);
  c.require(data.rows() <= 128 && data.row_elements() <= 128, "transpose-size", "data",
            "[{}, {}] is larger than 128 x 128", data.rows(), data.row_elements());
  c.require(dst.rows() == data.row_elements() && dst.row_elements() == data.rows(), "shape", "dst",
            "must be [{}, {}], not {}", data.row_elements(), data.rows(),
            [&] { return to_string(dst.shape()); });
}

Engines NcTranspose::engines(const Check& c) const {
  Engines legal;
  if (c.buffer(data) == Buffer::sbuf && c.buffer(dst) == Buffer::psum) legal = legal | Engine::tensor;
  if (data.rows() <= 32 && data.row_elements() <= 32) legal = legal | Engine::vector;
  return legal;
}

namespace {

// Rows [begin, end) of the result.
template <class T>
void transpose(const Block& from, const Block& to, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kSide = 16;  // squares that stay in the first cache
  for (std::int64_t i0 = begin; i0 < end; i0 += kSide)
    for (std::int64_t r0 = 0; r0 < from.rows; r0 += kSide)
      for (std::int64_t i = i0; i < std::min(end, i0 + kSide); ++i) {
        T* out = reinterpret_cast<T*>(to.row(i));
        for (std::int64_t r = r0; r < std::min(from.rows, r0 + kSide); ++r)
          out[r] = reinterpret_cast<const T*>(from.row(r))[i];
      }
}

}  // namespace

void NcTranspose::apply(Core& core) const {
  const Block from = core.read("data", data);
  const bool apart = !core.overlap(dst, data);
  const auto aligned = [](const Block& b) {
    return b.contiguous() &&
           reinterpret_cast<std::uintptr_t>(b.base) % static_cast<unsigned>(b.element_bytes) == 0 &&
           b.row_stride % b.element_bytes == 0;
  };
  if (apart && aligned(from)) {
    const Block to = core.write("dst", dst);
    if (aligned(to)) {
      core.for_rows(to.rows, to.rows * to.elements, [&](std::int64_t begin, std::int64_t end, int) {
        if (to.element_bytes == 4) {
          simd::transpose(from.rows, end - begin, reinterpret_cast<const float*>(from.base) + begin,
                          from.row_stride / 4,
                          reinterpret_cast<float*>(to.base) + begin * (to.row_stride / 4), to.row_stride / 4);
        } else if (to.element_bytes == 2) {
          transpose<std::uint16_t>(from, to, begin, end);
        } else {
          transpose<std::uint8_t>(from, to, begin, end);
        }
      });
      return;
    }
  }
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(from.rows * from.elements));
  std::vector<std::uint32_t> row(static_cast<std::size_t>(std::max(from.rows, from.elements)));
  for (std::int64_t r = 0; r < from.rows; ++r)
    std::copy_n(read_bits(from, r, row.data()), from.elements, bits.begin() + r * from.elements);
  const Block to = core.write("dst", dst);
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t r = 0; r < to.elements; ++r)
      row[static_cast<std::size_t>(r)] = bits[static_cast<std::size_t>(r * from.elements + i)];
    write_bits(to, i, row.data());
  }
}

void nc_transpose(const Tile& dst, const Tile& data, const TransposeOptions& options, Here here) {
  record<NcTranspose>(dst, here, [&](NcTranspose& i) {
    i.dst = dst;
    i.data = data;
    i.engine = options.engine;
  });
}

// On the Tensor engine `data` is the stationary operand and an identity matrix moves.
Cost NcTranspose::cost(const Costing& costing) const {
  const std::int64_t n = data.row_elements();
  if (costing.engine == Engine::vector)
    return stream_cost(costing, {.elements = n,
                                 .cycles = cycles_of_any(costing, dst, data) * static_cast<double>(n),
                                 .dynamic = is_dynamic(dst) || is_dynamic(data)});
  Product product;
  product.contraction = product.columns = data.rows();
  product.rows = n;
  product.float32 = size_of(data.dtype) == 4;
  product.transpose = true;
  return product_cost(costing, product);
}

std::span<const Kind> tensor_engine_instructions() {
  static const Kind kinds[] = {kind<NcMatmul>(), kind<NcTranspose>()};
  return kinds;
}

}  // namespace headway::chip

#include "chip/gpsimd_gather.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/row_loop.h"
#include "chip/rows.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kMaxLocalIndices = 4096, kMaxElementsPerIndex = 32;
constexpr std::int64_t kMinTopkElements = 8, kMaxTopkElements = 65535, kMaxTopkResults = 32767;

std::uint32_t* bits_scratch(Core& core, int thread, std::int64_t n, int slot) {
  return reinterpret_cast<std::uint32_t*>(core.scratch(thread, n, slot));
}

// Where element `i` of a row lies, in bytes from the row's start.
std::int64_t place_of(const Block& block, std::int64_t i) {
  std::int64_t place = 0;
  for (int d = block.rank - 1; d >= 0; --d) {
    const std::int64_t count = block.counts[static_cast<std::size_t>(d)];
    place += i % count * block.strides[static_cast<std::size_t>(d)];
    i /= count;
  }
  return place;
}

// Stores a row that lies densely at `values`.
void store_row(const Block& to, std::int64_t r, const std::byte* values) {
  const auto bytes = static_cast<std::size_t>(to.element_bytes);
  std::byte* row = to.row(r);
  if (to.contiguous()) {
    std::memcpy(row, values, bytes * static_cast<std::size_t>(to.elements));
    return;
  }
  for_each_element(to, [&](std::int64_t at) {
    std::memcpy(row + at, values, bytes);
    values += bytes;
  });
}

// to[r, j] = from[r, places(r)[j]] for elements of kBytes. `staged` says that `to` shares memory with what is
// still to be read.
template <int kBytes, class Places>
void gather_rows(Core& core, const Block& from, const Block& to, bool staged, const Places& places) {
  const std::int64_t n = to.elements;
  auto* const stage = staged ? reinterpret_cast<std::byte*>(core.scratch(0, to.rows * n, 3)) : nullptr;
  const bool direct = !staged && to.contiguous(), dense = from.contiguous();
  const auto work = [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* const scratch = reinterpret_cast<std::byte*>(core.scratch(thread, n, 2));
    for (std::int64_t r = begin; r < end; ++r) {
      std::byte* out = staged ? stage + r * n * kBytes : direct ? to.row(r) : scratch;
      const std::byte* row = from.row(r);
      const std::uint32_t* place = places(r);
      if (dense) {
        for (std::int64_t j = 0; j < n; ++j)
          std::memcpy(out + j * kBytes, row + std::int64_t{place[j]} * kBytes, kBytes);
      } else {
        for (std::int64_t j = 0; j < n; ++j)
          std::memcpy(out + j * kBytes, row + place_of(from, place[j]), kBytes);
      }
      if (!staged && !direct) store_row(to, r, out);
    }
  };
  core.for_rows(to.rows, to.rows * n, std::cref(work));
  if (!staged) return;
  for (std::int64_t r = 0; r < to.rows; ++r) store_row(to, r, stage + r * n * kBytes);
}

template <class Places>
void gather_rows(Core& core, const Block& from, const Block& to, bool staged, const Places& places) {
  switch (from.element_bytes) {
    case 1:
      return gather_rows<1>(core, from, to, staged, places);
    case 2:
      return gather_rows<2>(core, from, to, staged, places);
    case 4:
      return gather_rows<4>(core, from, to, staged, places);
    default:
      throw Bug("elements on chip have 1, 2 or 4 bytes");
  }
}

void report_index(Core& core, std::string_view operand, std::string_view of, std::int64_t row,
                  std::uint32_t index, std::int64_t taken, std::int64_t available) {
  core.report(Severity::kernel_error, "out-of-bounds", operand,
              fmt::format("index {} of partition {} reaches element {} of {}, which has {} a partition",
                          index, row, index + taken - 1, of, available));
}

bool lanes_of_cores(Check& check, std::string_view operand, const View& view) {
  return check.require(view.rows() % kGpsimdLanes == 0, "partitions-of-16", operand,
                       "has {} partitions, they must be a multiple of {}", view.rows(), kGpsimdLanes);
}

// Rows [row, row + rows) and columns [column, column + columns) of a two-dimensional view.
View part_of(View view, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
  view.partition += static_cast<std::int32_t>(row);
  view.pairs[0].count = static_cast<std::int32_t>(rows);
  view.offset += column * view.pairs[1].step;
  view.pairs[1].count = static_cast<std::int32_t>(columns);
  return view;
}

// Of an element where each index has `each`.
double gather_cycles(const Timing::Gpsimd& gpsimd, double each) {
  return (gpsimd.gather_start.value + gpsimd.gather_width.value * each) / (gpsimd.gather_width.value * each);
}

}  // namespace

// --- local_gather ---

void LocalGather::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("src_buffer", src_buffer, Access::read);
  fields.view("index", index, Access::read);
  fields.integer("num_elem_per_idx", num_elem_per_idx);
  fields.integer("num_valid_indices", num_valid_indices);
}

void LocalGather::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check.in_sbuf("src_buffer", src_buffer);
  check.in_sbuf("index", index);
  check.same_dtype("dst", dst, "src_buffer", src_buffer);
  check.dtype("index", index, {DType::u16});
  if (!check.same_partitions("index", index, "src_buffer", src_buffer) ||
      !check.same_partitions("dst", dst, "src_buffer", src_buffer) ||
      !lanes_of_cores(check, "src_buffer", src_buffer))
    return;
  const bool power = num_elem_per_idx >= 1 && num_elem_per_idx <= kMaxElementsPerIndex &&
                     (num_elem_per_idx & (num_elem_per_idx - 1)) == 0;
  if (!check.require(power, "elements-per-index", "num_elem_per_idx", "{} is none of 1, 2, 4, 8, 16, 32",
                     num_elem_per_idx))
    return;
  const std::int64_t given = index.row_elements() * kGpsimdLanes;
  if (!check.require(num_valid_indices >= 0 && num_valid_indices <= given, "index-count", "num_valid_indices",
                     "{} of the {} indices that index has for 16 partitions", num_valid_indices, given) ||
      !check.require(indices() <= kMaxLocalIndices, "index-count", "index",
                     "{} indices for 16 partitions, at most {}", indices(), kMaxLocalIndices))
    return;
  check.require(dst.row_elements() == indices() * num_elem_per_idx, "shape", "dst",
                "must have {} elements a partition ({} indices, {} elements each), not {}",
                indices() * num_elem_per_idx, indices(), num_elem_per_idx, dst.row_elements());
}

void LocalGather::apply(Core& core) const {
  const bool staged = core.overlap(dst, src_buffer);
  const Block in = core.read("index", index);
  const Block from = core.read("src_buffer", src_buffer);
  const std::int64_t groups = in.rows / kGpsimdLanes, count = indices(), n = count * num_elem_per_idx;
  // Every element's place, for each group; read before anything is written.
  std::uint32_t* places = bits_scratch(core, 0, groups * n, 0);
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const std::uint32_t* row = read_bits(in, r, bits_scratch(core, 0, in.elements, 1));
    std::uint32_t* group = places + r / kGpsimdLanes * n;
    for (std::int64_t c = 0, j = r % kGpsimdLanes; c < in.elements && j < count; ++c, j += kGpsimdLanes) {
      if (row[c] + num_elem_per_idx > from.elements)
        report_index(core, "index", "src_buffer", r, row[c], num_elem_per_idx, from.elements);
      for (std::int64_t e = 0; e < num_elem_per_idx; ++e)
        group[j * num_elem_per_idx + e] = row[c] + static_cast<std::uint32_t>(e);
    }
  }
  const Block to = core.write("dst", dst);
  gather_rows(core, from, to, staged, [&](std::int64_t r) { return places + r / kGpsimdLanes * n; });
}

// As documented, except that its factor (start + width e) / (width e) multiplies the elements: as printed it
// divides them, and gathering single elements would be the fastest of all.
Cost LocalGather::cost(const Costing& costing) const {
  const Timing::Gpsimd& g = costing.timing.gpsimd;
  const double n = static_cast<double>(indices()), each = static_cast<double>(num_elem_per_idx);
  const double word = g.bytes_per_cycle.value / g.partitions_per_core.value;
  const double packed = std::min(word / size_of(src_buffer.dtype), each);
  const double cycles = n * each * gather_cycles(g, each) / packed;
  return stream_cost(costing, {.elements = dst.row_elements(), .cycles = cycles, .tag = g.gather_start.tag});
}

void local_gather(const Tile& dst, const Tile& src_buffer, const Tile& index,
                  const LocalGatherOptions& options, Here here) {
  record<LocalGather>(dst, here, [&](LocalGather& i) {
    i.dst = dst;
    i.src_buffer = src_buffer;
    i.index = index;
    i.num_elem_per_idx = options.num_elem_per_idx;
    i.num_valid_indices = options.num_valid_indices;
  });
}

// --- nc_n_gather ---

void NcNGather::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.view("indices", indices, Access::read);
}

void NcNGather::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check.in_sbuf("data", data);
  check.in_sbuf("indices", indices);
  check.same_dtype("dst", dst, "data", data);
  check.dtype("indices", indices, {DType::u32});
  check.same_partitions("data", data, "indices", indices);
  check.same_size("dst", dst, "indices", indices);
}

void NcNGather::apply(Core& core) const {
  const bool staged = core.overlap(dst, data) || core.overlap(dst, indices);
  const Block in = core.read("indices", indices);
  const Block from = core.read("data", data);
  const std::int64_t n = in.elements;
  // A row has fewer than 2^32 elements.
  const auto limit = static_cast<std::uint32_t>(from.elements);
  const Rows<std::uint32_t> places = load_all(in, 0, in.rows, bits_scratch(core, 0, in.rows * n, 0));
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const std::uint32_t* row = places.at + r * places.stride;
    std::uint32_t outside = 0;
    for (std::int64_t j = 0; j < n; ++j) outside |= row[j] >= limit;
    if (outside) report_index(core, "indices", "data", r, *std::max_element(row, row + n), 1, from.elements);
  }
  const Block to = core.write("dst", dst);
  gather_rows(core, from, to, staged, [&](std::int64_t r) { return places.at + r * places.stride; });
}

// No formula is public: taken as a start and a local_gather of single elements for each group.
Cost NcNGather::cost(const Costing& costing) const {
  const Timing::Gpsimd& g = costing.timing.gpsimd;
  const double n = static_cast<double>(dst.row_elements());
  const double cycles = std::ceil(n / g.gather_group.value) * g.start.value + n * gather_cycles(g, 1);
  return stream_cost(costing, {.elements = dst.row_elements(), .cycles = cycles, .tag = Tag::assumed});
}

void nc_n_gather(const Tile& dst, const Tile& data, const Tile& indices, Here here) {
  record<NcNGather>(dst, here, [&](NcNGather& i) {
    i.dst = dst;
    i.data = data;
    i.indices = indices;
  });
}

// --- topk ---

void Topk::visit(Fields& fields) {
  fields.view("val_dst", val_dst,
              Access::update);  // columns after the first ceil(K / 16) keep what they have
  fields.view("idx_dst", idx_dst, Access::update);
  fields.view("src", src, Access::read);
  fields.integer("n", n);
}

void Topk::check(Check& check) const {
  if (!check.generation(3, "topk")) return;
  check.in_sbuf("val_dst", val_dst);
  check.in_sbuf("idx_dst", idx_dst);
  check.in_sbuf("src", src);
  check.dtype("val_dst", val_dst, {DType::bf16});
  check.dtype("idx_dst", idx_dst, {DType::u32});
  check.dtype("src", src, {DType::bf16});
  check.disjoint("val_dst", val_dst, "idx_dst", idx_dst);
  const auto flat = [&](std::string_view operand, const View& view) {
    return check.require(view.rank == 2, "shape", operand, "must have one free extent, not {}",
                         view.rank - 1);
  };
  if (!flat("val_dst", val_dst) || !flat("idx_dst", idx_dst) || !flat("src", src)) return;
  if (!check.same_size("idx_dst", idx_dst, "val_dst", val_dst) ||
      !check.same_partitions("val_dst", val_dst, "src", src) || !lanes_of_cores(check, "src", src))
    return;
  if (!check.require(n >= kMinTopkElements && n <= kMaxTopkElements, "topk-n", "n",
                     "{} is not within {} to {}", n, kMinTopkElements, kMaxTopkElements))
    return;
  const std::int64_t k = val_dst.row_elements();
  check.require(k <= kMaxTopkResults && k <= n, "topk-k", "val_dst", "{} results of {} elements, at most {}",
                k, n, std::min(kMaxTopkResults, n));
  const std::int64_t columns = (n + kGpsimdLanes - 1) / kGpsimdLanes;
  check.require(src.row_elements() >= columns, "shape", "src",
                "{} elements on 16 partitions take {} columns, src has {}", n, columns, src.row_elements());
}

namespace {

// Orders as the values do: NaN first, both zeros alike.
std::uint32_t rank_of(std::uint32_t bf16) {
  if ((bf16 & 0x7fff) > 0x7f80) return 0;
  if (bf16 == 0x8000) bf16 = 0;
  return (bf16 & 0x8000) ? ~bf16 & 0xffff : bf16 | 0x8000;
}

}  // namespace

void Topk::apply(Core& core) const {
  const std::int64_t groups = src.rows() / kGpsimdLanes, k = val_dst.row_elements();
  const std::int64_t full = n / kGpsimdLanes, rest = n % kGpsimdLanes;
  const std::int64_t step = std::int64_t{src.pairs[1].step} * size_of(DType::bf16);
  // What lies past element n may never have been written.
  Block columns;
  if (full > 0) columns = core.read("src", part_of(src, 0, src.rows(), 0, full));
  std::array<Block, 8> tails;
  HEADWAY_CHECK(groups <= static_cast<std::int64_t>(tails.size()));
  if (rest > 0)
    for (std::int64_t g = 0; g < groups; ++g)
      tails[static_cast<std::size_t>(g)] = core.read("src", part_of(src, g * kGpsimdLanes, rest, full, 1));

  std::uint32_t* values = bits_scratch(core, 0, groups * k, 3);
  std::uint32_t* places = bits_scratch(core, 0, groups * k, 4);
  const auto work = [&](std::int64_t begin, std::int64_t end, int thread) {
    std::uint32_t* elements = bits_scratch(core, thread, n, 0);
    std::uint32_t* keys = bits_scratch(core, thread, n, 1);
    for (std::int64_t g = begin; g < end; ++g) {
      for (std::int64_t s = 0; s < n; ++s) {
        const std::int64_t lane = s % kGpsimdLanes, column = s / kGpsimdLanes;
        const std::byte* at = column < full ? columns.row(g * kGpsimdLanes + lane) + column * step
                                            : tails[static_cast<std::size_t>(g)].row(lane);
        std::uint16_t element;
        std::memcpy(&element, at, sizeof element);
        elements[s] = element;
        keys[s] = rank_of(element) << 16 | (0xffffu - static_cast<std::uint32_t>(s));
      }
      std::nth_element(keys, keys + (n - k), keys + n);
      std::sort(keys + (n - k), keys + n);
      for (std::int64_t j = 0; j < k; ++j) {
        const std::uint32_t place = 0xffffu - (keys[n - k + j] & 0xffffu);
        places[g * k + j] = place;
        values[g * k + j] = elements[place];
      }
    }
  };
  core.for_rows(groups, groups * n, std::cref(work));

  const std::int64_t written = (k + kGpsimdLanes - 1) / kGpsimdLanes;
  const auto lay_out = [&](const Block& to, const std::uint32_t* results, std::uint32_t unused) {
    std::uint32_t* row = bits_scratch(core, 0, written, 0);
    for (std::int64_t r = 0; r < to.rows; ++r) {
      for (std::int64_t c = 0; c < written; ++c) {
        const std::int64_t j = c * kGpsimdLanes + r % kGpsimdLanes;
        row[c] = j < k ? results[r / kGpsimdLanes * k + j] : unused;
      }
      write_bits(to, r, row);
    }
  };
  constexpr std::uint32_t kNan = 0x7fc0, kNoPlace = 0xffffffff;
  lay_out(core.write("val_dst", part_of(val_dst, 0, val_dst.rows(), 0, written)), values, kNan);
  lay_out(core.write("idx_dst", part_of(idx_dst, 0, idx_dst.rows(), 0, written)), places, kNoPlace);
}

Cost Topk::cost(const Costing& costing) const {
  const Constant& each = costing.timing.gpsimd.topk_cycles;
  const double cycles = each.value * static_cast<double>(n) + static_cast<double>(val_dst.row_elements());
  return stream_cost(costing, {.elements = n, .cycles = cycles, .tag = each.tag});
}

void topk(const Tile& val_dst, const Tile& idx_dst, const Tile& src, std::int64_t n, Here here) {
  record<Topk>(val_dst, here, [&](Topk& i) {
    i.val_dst = val_dst;
    i.idx_dst = idx_dst;
    i.src = src;
    i.n = n;
  });
}

}  // namespace headway::chip

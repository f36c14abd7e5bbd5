#include "chip/core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/number_format.h"
#include "chip/check.h"
#include "chip/machine.h"
#include "chip/rows.h"

namespace headway::chip {

std::span<const std::string_view> names_of(OobMode) {
  static constexpr std::array<std::string_view, 2> kNames = {"error", "skip"};
  return kNames;
}

// Where the tensors of a core are.
struct Core::Memory {
  struct Place {
    Storage* storage = nullptr;  // none until first touched
    std::int64_t base = 0;       // of the tensor's first byte, from storage->data()
  };
  // The states of a PSUM tensor's elements; `each` only where they differ.
  struct Accumulators {
    PsumState all = PsumState::never;
    std::vector<PsumState> each;
  };
  std::vector<Place> places;
  std::vector<std::unique_ptr<Storage>> virtuals;  // by tensor
  // By buffer, rows and row bytes, the latest used last: that one is in the caches.
  std::map<std::tuple<Buffer, std::int64_t, std::int64_t>, std::vector<std::unique_ptr<Storage>>> unused;
  std::unique_ptr<Storage> sbuf, psum;  // the physical memories, for tensors with addresses
  std::vector<Accumulators> accumulators;
  struct KeptOf {
    View view;
    std::uint64_t writes = 0;
    Kept kept;
  };
  std::vector<std::vector<KeptOf>> kept;  // by tensor, one a view
  std::int64_t kept_floats = 0;
  std::vector<std::int64_t> row_offsets[4];  // of indirect views; an instruction has few
  std::size_t next_row_offsets = 0;
  std::vector<Floats> scratch;
};

namespace {

constexpr int kScratchSlots = 8;
constexpr std::int64_t kMostKept = 12 << 20;  // floats in all: SBUF full of bfloat16
constexpr std::size_t kMostKeptViews = 64;    // of one tensor

// The bytes by which a dynamic offset moves; far beyond every tensor where that doesn't fit.
std::int64_t moved_bytes(std::int64_t units, std::int64_t unit) {
  constexpr std::int64_t kFar = std::int64_t{1} << 50;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(units, unit, &bytes)) return (units < 0) == (unit < 0) ? kFar : -kFar;
  return std::clamp(bytes, -kFar, kFar);
}

}  // namespace

Core::Core(Machine& machine, int number, const Program& program)
    : machine_(machine),
      number_(number),
      program_(program),
      registers_(program.registers),
      memory_(std::make_unique<Memory>()) {
  memory_->places.resize(program.tensors.size());
  memory_->virtuals.resize(program.tensors.size());
  memory_->accumulators.resize(program.tensors.size());
  memory_->kept.resize(program.tensors.size());
  memory_->scratch.resize(static_cast<std::size_t>(machine.pool().size()) * kScratchSlots);
}

Core::~Core() = default;

const Spec& Core::spec() const { return machine_.spec(); }
int Core::threads() const { return machine_.pool().size(); }

void Core::grow() {
  const std::size_t count = program_.tensors.size();
  memory_->places.resize(count);
  memory_->virtuals.resize(count);
  memory_->accumulators.resize(count);
  memory_->kept.resize(count);
  registers_.resize(program_.registers);
}

Storage& Core::storage(TensorId tensor) {
  Memory::Place& place = memory_->places[tensor];
  if (place.storage) return *place.storage;
  const Tensor& t = program_.tensors[tensor];
  if (is_on_chip(t.buffer) && t.address) {
    std::unique_ptr<Storage>& physical = t.buffer == Buffer::sbuf ? memory_->sbuf : memory_->psum;
    if (!physical)
      physical = std::make_unique<Storage>(
          spec().partitions, t.buffer == Buffer::sbuf ? spec().sbuf_usable_bytes : spec().psum_bytes);
    place = {physical.get(), t.address->partition * physical->pitch() + t.address->byte};
    return *place.storage;
  }
  if (t.buffer == Buffer::shared_hbm || t.role == Role::input || t.role == Role::constant) {
    place = {&machine_.shared_tensor(*this, tensor), 0};
    return *place.storage;
  }
  std::unique_ptr<Storage>& own = memory_->virtuals[tensor];
  std::vector<std::unique_ptr<Storage>>& unused = memory_->unused[{t.buffer, t.partitions(), t.row_bytes()}];
  if (!unused.empty()) {
    own = std::move(unused.back());
    unused.pop_back();
  } else {
    own = std::make_unique<Storage>(t.partitions(), t.row_bytes());
  }
  place = {own.get(), 0};
  return *place.storage;
}

void Core::release(TensorId tensor) {
  std::unique_ptr<Storage>& own = memory_->virtuals[tensor];
  memory_->places[tensor] = {};
  memory_->accumulators[tensor] = {};
  for (const Memory::KeptOf& k : memory_->kept[tensor]) memory_->kept_floats -= k.kept.floats.size;
  memory_->kept[tensor].clear();
  if (!own) return;
  const Tensor& t = program_.tensors[tensor];
  // HBM tensors give their pages back; on-chip ones, small and many, are used again.
  if (is_on_chip(t.buffer)) {
    own->forget();
    memory_->unused[{t.buffer, t.partitions(), t.row_bytes()}].push_back(std::move(own));
  }
  own.reset();
}

Core::Kept* Core::kept(const View& view) {
  if (view.dynamic >= 0 || program_.tensors[view.tensor].address) return nullptr;
  const std::uint64_t writes = memory_->places[view.tensor].storage->writes();
  std::vector<Memory::KeptOf>& all = memory_->kept[view.tensor];
  auto found = std::find_if(all.begin(), all.end(), [&](const Memory::KeptOf& k) { return k.view == view; });
  if (found == all.end()) {
    if (all.size() == kMostKeptViews) return nullptr;
    found = all.insert(all.end(), {view, writes, {}});
  }
  if (found->writes != writes) {
    found->writes = writes;
    memory_->kept_floats -= found->kept.floats.size;
    found->kept = {};
  }
  return &found->kept;
}

bool Core::keep(Kept& kept, std::int64_t floats) {
  if (memory_->kept_floats + floats > kMostKept) return false;
  memory_->kept_floats += floats;
  kept.floats.grow(floats);
  return true;
}

void Core::forget_declared(std::size_t begin, std::size_t end) {
  // Declarations are in order of time.
  const auto& tensors = program_.tensors;
  auto first = std::lower_bound(tensors.begin(), tensors.end(), begin,
                                [](const Tensor& t, std::size_t at) { return t.declared_at < at; });
  for (; first != tensors.end() && first->declared_at < end; ++first)
    if (first->role == Role::internal) release(static_cast<TensorId>(first - tensors.begin()));
}

Block Core::resolve(std::string_view operand, const View& view, OobMode oob) {
  const Tensor& t = program_.tensors[view.tensor];
  Storage& memory = storage(view.tensor);
  const bool chip = is_on_chip(t.buffer);
  const int size = size_of(view.dtype);
  Block block;
  block.dtype = view.dtype;
  block.element_bytes = size;
  block.rows = view.rows();
  block.row_stride = chip ? memory.pitch() : std::int64_t{view.pairs[0].step} * size;
  std::int64_t start = memory_->places[view.tensor].base + view.offset * size;
  if (chip) start += view.partition * memory.pitch();
  // Merge the free extents, innermost first.
  for (int d = view.rank - 1; d >= 1; --d) {
    const Pair& p = view.pairs[static_cast<std::size_t>(d)];
    if (p.count == 1) continue;
    const std::int64_t stride = std::int64_t{p.step} * size;
    block.elements *= p.count;
    const auto top = static_cast<std::size_t>(block.rank);
    if (block.rank > 0 && block.strides[top - 1] * block.counts[top - 1] == stride) {
      block.counts[top - 1] *= p.count;
    } else {
      block.counts[top] = p.count;
      block.strides[top] = stride;
      ++block.rank;
    }
  }
  std::reverse(block.counts.begin(), block.counts.begin() + block.rank);
  std::reverse(block.strides.begin(), block.strides.begin() + block.rank);
  if (view.dynamic >= 0) {
    const DynamicOffset& dynamic = program_.dynamic_offsets[static_cast<std::size_t>(view.dynamic)];
    const std::int64_t unit = dynamic.stride * size;
    // The bytes of a row (of the whole view, where it moves as one), from its first element.
    std::int64_t low = 0, high = size;
    for (int d = 0; d < block.rank; ++d) {
      const std::int64_t reach =
          block.strides[static_cast<std::size_t>(d)] * (block.counts[static_cast<std::size_t>(d)] - 1);
      (reach < 0 ? low : high) += reach;
    }
    if (dynamic.kind == DynamicOffset::Kind::from_vector) {
      const Block index = read(operand, dynamic.index);
      const std::int64_t index_column =
          index.rank == 0 ? 0 : index.strides[0];  // columns of an index follow each other
      std::vector<std::int64_t>& offsets = memory_->row_offsets[memory_->next_row_offsets++ % 4];
      offsets.resize(static_cast<std::size_t>(block.rows));
      for (std::int64_t r = 0; r < block.rows; ++r) {
        std::int32_t raw;
        std::memcpy(&raw, index.row(r % index.rows) + r / index.rows * index_column, 4);
        const std::int64_t row =
            index.dtype == DType::u32 ? static_cast<std::int64_t>(static_cast<std::uint32_t>(raw)) : raw;
        const std::int64_t moved = moved_bytes(row, unit);
        const std::int64_t at = view.offset * size + moved;
        const bool inside = at + low >= 0 && at + high <= t.row_bytes();
        if (!inside && oob == OobMode::error)
          report(Severity::kernel_error, "out-of-bounds", operand,
                 fmt::format("index {} of row {} reaches bytes {} to {} of '{}', which has {}; oob_mode.skip "
                             "would leave "
                             "the row out",
                             row, r, at + low, at + high - 1, t.name, t.row_bytes()));
        offsets[static_cast<std::size_t>(r)] = inside ? start + moved : -1;
      }
      block.row_offsets = offsets.data();
      block.base = memory.data();
      return block;
    }
    std::int64_t units = 0;
    if (dynamic.kind == DynamicOffset::Kind::from_register) {
      units = register_value(dynamic.source);
    } else {
      const Block index = read(operand, dynamic.index);
      std::int32_t raw;
      std::memcpy(&raw, index.base, 4);
      units = index.dtype == DType::u32 ? static_cast<std::int64_t>(static_cast<std::uint32_t>(raw)) : raw;
    }
    if (!chip) {
      const std::int64_t reach = block.row_stride * (block.rows - 1);
      (reach < 0 ? low : high) += reach;
    }
    const std::int64_t moved = moved_bytes(units, unit);
    const std::int64_t at = view.offset * size + moved;
    if (at + low < 0 || at + high > t.row_bytes()) {
      if (oob == OobMode::skip) {
        // Moving as one, it is left out as one.
        std::vector<std::int64_t>& offsets = memory_->row_offsets[memory_->next_row_offsets++ % 4];
        offsets.assign(static_cast<std::size_t>(block.rows), -1);
        block.row_offsets = offsets.data();
        block.base = memory.data();
        return block;
      }
      report(Severity::kernel_error, "out-of-bounds", operand,
             fmt::format("a dynamic offset of {} reaches bytes {} to {} of {}'{}', which has {}", units,
                         at + low, at + high - 1, chip ? "a partition of " : "", t.name, t.row_bytes()));
    }
    start += moved;
  }
  block.base = memory.data() + start;
  return block;
}

template <class F>
void Core::for_runs(const View& view, const Block& block, F&& f) {
  const Storage& memory = *memory_->places[view.tensor].storage;
  const std::int64_t size = block.element_bytes;
  const auto row_runs = [&](std::int64_t at) {
    if (block.contiguous()) {
      f(at, at + block.elements * size);
    } else if (block.strides[static_cast<std::size_t>(block.rank - 1)] == size) {
      // The innermost extent is a run.
      Block outer = block;
      --outer.rank;
      const std::int64_t bytes = block.counts[static_cast<std::size_t>(block.rank - 1)] * size;
      for_each_element(outer, [&](std::int64_t offset) { f(at + offset, at + offset + bytes); });
    } else if (block.repeated()) {
      f(at, at + size);
    } else {
      for_each_element(block, [&](std::int64_t offset) { f(at + offset, at + offset + size); });
    }
  };
  if (block.one_run()) {
    const std::int64_t at = block.base - memory.data();
    f(at, at + block.rows * block.elements * size);
    return;
  }
  for (std::int64_t r = 0; r < block.rows; ++r) {
    if (block.row_offsets && block.row_offsets[r] < 0) continue;
    row_runs(block.row(r) - memory.data());
  }
}

void Core::require_written(std::string_view operand, const View& view, const Block& block) {
  const Storage& memory = *memory_->places[view.tensor].storage;
  if (memory.all_written()) return;
  for_runs(view, block, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t missing = memory.first_unwritten(begin, end);
    if (missing == end) return;
    const Tensor& t = program_.tensors[view.tensor];
    const std::int64_t in_tensor = missing - memory_->places[view.tensor].base;
    const std::string place =
        is_on_chip(t.buffer)
            ? fmt::format("partition {}, byte {}", in_tensor / memory.pitch(), in_tensor % memory.pitch())
            : fmt::format("byte {}", in_tensor);
    const std::string declared = program_.where(t.source);
    std::string message =
        fmt::format("reads {} of {}, which was never written; '{}' {}[{}] in {}{}", place, to_string(view, t),
                    t.name, headway::name_of(t.dtype), fmt::join(t.shape, ", "), name_of(t.buffer),
                    declared.empty() ? "" : " is declared at " + declared);
    const std::uint64_t writer = memory.last_writer(begin, end);
    if (writer != 0) message += "; bytes near it were last written by " + machine_.writer_text(writer);
    report(Severity::kernel_error, "unwritten", operand, std::move(message));
    // Tolerated: what is there now stands out, as in the vendor's simulator.
    poison_unwritten(view, block.element_bytes, begin, end);
  });
}

void Core::poison_unwritten(const View& view, std::int64_t element_bytes, std::int64_t begin, std::int64_t end) {
  Storage& memory = *memory_->places[view.tensor].storage;
  std::array<std::byte, 8> pattern{};
  encode(view.dtype, is_float(view.dtype) ? std::numeric_limits<float>::quiet_NaN() : 4.0f, pattern.data());
  for (std::int64_t at = begin; at + element_bytes <= end; at += element_bytes) {
    if (memory.written(at, at + element_bytes)) continue;
    std::memcpy(memory.data() + at, pattern.data(), static_cast<std::size_t>(element_bytes));
    memory.mark(at, at + element_bytes);
  }
}

void Core::wrote(const View& view, const Block& block) {
  Storage& memory = *memory_->places[view.tensor].storage;
  const std::uint64_t writer = machine_.writer(*this);
  if (block.row_offsets || !block.contiguous() || !block.one_run()) {
    // One entry a region is enough: rows of a tile share regions.
    std::int64_t last = -1;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      if (block.row_offsets && block.row_offsets[r] < 0) continue;
      std::int64_t low = block.row(r) - memory.data(), high = low + block.element_bytes;
      for (int d = 0; d < block.rank; ++d) {
        const std::int64_t reach =
            block.strides[static_cast<std::size_t>(d)] * (block.counts[static_cast<std::size_t>(d)] - 1);
        (reach < 0 ? low : high) += reach;
      }
      if (memory.rows() > 1 && last >= 0 && r % 32 != 0 && (low / memory.pitch()) % 32 != 0) continue;
      last = r;
      memory.set_writer(low, high, writer);
    }
  } else {
    const std::int64_t low = block.base - memory.data();
    memory.set_writer(low, low + block.rows * block.elements * block.element_bytes, writer);
  }
  if (program_.tensors[view.tensor].buffer == Buffer::psum) set_psum_state(view, PsumState::other);
}

void Core::mark(const View& view, const Block& block) {
  Storage& memory = *memory_->places[view.tensor].storage;
  if (!memory.all_written())
    for_runs(view, block, [&](std::int64_t begin, std::int64_t end) { memory.mark(begin, end); });
  wrote(view, block);
}

Block Core::read(std::string_view operand, const View& view) { return gather(operand, view, OobMode::error); }

Block Core::gather(std::string_view operand, const View& view, OobMode oob) {
  const Block block = resolve(operand, view, oob);
  require_written(operand, view, block);
  machine_.accessed(*this, operand, view, block, false);
  return block;
}

Block Core::target(std::string_view operand, const View& view, OobMode oob) {
  storage(view.tensor).own();
  const Block block = resolve(operand, view, oob);
  machine_.accessed(*this, operand, view, block, true);
  return block;
}

Block Core::write(std::string_view operand, const View& view) {
  const Block block = target(operand, view);
  mark(view, block);
  return block;
}

Block Core::update(std::string_view operand, const View& view) {
  storage(view.tensor).own();
  const Block block = resolve(operand, view, OobMode::error);
  require_written(operand, view, block);
  machine_.accessed(*this, operand, view, block, true);
  wrote(view, block);
  return block;
}

void Core::mark_rows(const View& view, std::span<const std::uint8_t> rows) {
  Block block = resolve("dst", view, OobMode::skip);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(block.rows));
  Storage& memory = *memory_->places[view.tensor].storage;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const bool skipped =
        (block.row_offsets && block.row_offsets[r] < 0) || !rows[static_cast<std::size_t>(r)];
    offsets[static_cast<std::size_t>(r)] = skipped ? -1 : block.row(r) - memory.data();
  }
  block.base = memory.data();
  block.row_offsets = offsets.data();
  mark(view, block);
}

void Core::mark_elements(const View& view, std::span<const std::uint8_t> elements) {
  const Block block = resolve("dst", view, OobMode::skip);
  Storage& memory = *memory_->places[view.tensor].storage;
  std::size_t i = 0;
  if (!memory.all_written()) {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::int64_t at = block.row(r) - memory.data();
      for_each_element(block, [&](std::int64_t offset) {
        if (elements[i++]) memory.mark(at + offset, at + offset + block.element_bytes);
      });
    }
  }
  wrote(view, block);
}

bool Core::overlap(const View& a, const View& b) const {
  if (a.tensor != b.tensor && !(program_.tensors[a.tensor].address && program_.tensors[b.tensor].address))
    return false;
  return may_overlap(program_, a, b);
}

bool Core::same_place(const View& a, const View& b) const {
  if (a == b) return true;
  if (a.dynamic >= 0 || b.dynamic >= 0 || a.rank != b.rank || a.pairs != b.pairs ||
      size_of(a.dtype) != size_of(b.dtype))
    return false;
  if (a.tensor == b.tensor) return a.partition == b.partition && a.offset == b.offset;
  const Tensor& ta = program_.tensors[a.tensor];
  const Tensor& tb = program_.tensors[b.tensor];
  if (!ta.address || !tb.address || ta.buffer != tb.buffer) return false;
  const int size = size_of(a.dtype);
  return ta.address->partition + a.partition == tb.address->partition + b.partition &&
         ta.address->byte + a.offset * size == tb.address->byte + b.offset * size;
}

// --- PSUM accumulation ---

namespace {
constexpr std::int64_t kPsumElement = 4;
}

Core::Accumulation Core::accumulation(const View& view) {
  const Memory::Accumulators& a = memory_->accumulators[view.tensor];
  if (a.each.empty()) {
    return a.all == PsumState::never    ? Accumulation::fresh
           : a.all == PsumState::matmul ? Accumulation::running
                                        : Accumulation::mixed;
  }
  const std::vector<PsumState> states = psum_states(view);
  const auto all = [&](PsumState state) {
    return std::all_of(states.begin(), states.end(), [&](PsumState s) { return s == state; });
  };
  return all(PsumState::never)    ? Accumulation::fresh
         : all(PsumState::matmul) ? Accumulation::running
                                  : Accumulation::mixed;
}

namespace {

// Calls f(index of the 4-byte element within the tensor [partitions, row_bytes / 4]) for each element of a
// view of a PSUM tensor, in the view's order.
template <class F>
void for_each_psum_element(const Tensor& t, const View& view, F&& f) {
  const std::int64_t across = (t.row_bytes() + kPsumElement - 1) / kPsumElement;
  const int size = size_of(view.dtype);
  Block row;  // only its extents
  row.rank = view.rank - 1;
  for (int d = 1; d < view.rank; ++d) {
    const Pair& p = view.pairs[static_cast<std::size_t>(d)];
    row.counts[static_cast<std::size_t>(d - 1)] = p.count;
    row.strides[static_cast<std::size_t>(d - 1)] = std::int64_t{p.step} * size;
  }
  for (std::int64_t r = 0; r < view.rows(); ++r)
    for_each_element(row, [&](std::int64_t offset) {
      f((view.partition + r) * across + (view.offset * size + offset) / kPsumElement);
    });
}

bool covers(const Tensor& t, const View& view) {
  if (view.partition != 0 || view.rows() != t.shape[0] || view.offset != 0 || view.dynamic >= 0) return false;
  std::int64_t step = 1;
  for (int d = view.rank - 1; d >= 1; --d) {
    const Pair& p = view.pairs[static_cast<std::size_t>(d)];
    if (p.count != 1 && p.step != step) return false;
    step *= p.count;
  }
  return step * size_of(view.dtype) == t.row_bytes();
}

}  // namespace

std::vector<PsumState> Core::psum_states(const View& view) {
  const Memory::Accumulators& a = memory_->accumulators[view.tensor];
  std::vector<PsumState> states;
  states.reserve(static_cast<std::size_t>(view.elements()));
  if (a.each.empty()) {
    states.assign(static_cast<std::size_t>(view.elements()), a.all);
  } else {
    for_each_psum_element(program_.tensors[view.tensor], view,
                          [&](std::int64_t i) { states.push_back(a.each[static_cast<std::size_t>(i)]); });
  }
  return states;
}

void Core::set_psum_state(const View& view, PsumState state) {
  const Tensor& t = program_.tensors[view.tensor];
  Memory::Accumulators& a = memory_->accumulators[view.tensor];
  if (a.each.empty() && a.all == state) return;
  if (covers(t, view)) {
    a.all = state;
    a.each.clear();
    return;
  }
  if (a.each.empty()) {
    const std::int64_t across = (t.row_bytes() + kPsumElement - 1) / kPsumElement;
    a.each.assign(static_cast<std::size_t>(t.shape[0] * across), a.all);
  }
  // Rows of one run of whole elements are filled as such.
  std::int64_t run = 1;
  for (int d = view.rank - 1; d >= 1 && run > 0; --d) {
    const Pair& p = view.pairs[static_cast<std::size_t>(d)];
    if (p.count != 1) run = p.step == run ? run * p.count : 0;
  }
  if (run > 0 && size_of(view.dtype) == kPsumElement && view.dynamic < 0) {
    const std::int64_t across = t.row_bytes() / kPsumElement;
    for (std::int64_t r = 0; r < view.rows(); ++r)
      std::fill_n(a.each.begin() + (view.partition + r) * across + view.offset, run, state);
    return;
  }
  // A dynamic view may have moved anywhere; its static part stands for it, as matmuls have no dynamic
  // destination.
  for_each_psum_element(t, view, [&](std::int64_t i) {
    if (static_cast<std::size_t>(i) < a.each.size()) a.each[static_cast<std::size_t>(i)] = state;
  });
}

// --- Scalars ---

std::int32_t Core::value(const RegisterOr& value) const {
  if (const auto* reg = std::get_if<Register>(&value)) return register_value(*reg);
  return std::get<std::int32_t>(value);
}

void Core::scalar(std::string_view operand, const Scalar& scalar, std::span<float> values) {
  const View* view = scalar.view();
  if (!view) {
    std::fill(values.begin(), values.end(), scalar.number());
    return;
  }
  const Block block = read(operand, *view);
  for (std::size_t r = 0; r < values.size(); ++r)
    values[r] = read_element(block.dtype, block.row(static_cast<std::int64_t>(r)));
}

void Core::scalar_bits(std::string_view operand, const Scalar& scalar, std::span<std::uint32_t> values) {
  const View* view = scalar.view();
  if (!view) {
    std::fill(values.begin(), values.end(), scalar.integer());
    return;
  }
  const Block block = read(operand, *view);
  for (std::size_t r = 0; r < values.size(); ++r) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, block.row(static_cast<std::int64_t>(r)),
                static_cast<std::size_t>(block.element_bytes));
    values[r] = bits;
  }
}

// --- Work ---

void Core::divide(std::int64_t rows, const std::function<void(std::int64_t, std::int64_t, int)>& work) {
  machine_.pool().for_range(rows, work);
}

void Floats::grow(std::int64_t floats) {
  if (floats <= size) return;
  const std::size_t bytes = (static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64;
  auto* room = static_cast<float*>(std::aligned_alloc(64, bytes));
  if (!room) throw std::bad_alloc();
  memory.reset(room);
  size = floats;
}

float* Core::scratch(int thread, std::int64_t floats, int slot) {
  HEADWAY_CHECK(slot >= 0 && slot < kScratchSlots);
  Floats& s = memory_->scratch[static_cast<std::size_t>(thread * kScratchSlots + slot)];
  s.grow(floats);
  return s.memory.get();
}

void Core::report(Severity severity, std::string_view rule, std::string_view operand, std::string message) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.rule = rule;
  diagnostic.operand = operand;
  diagnostic.message = std::move(message);
  if (position < program_.instructions.size()) {
    const Instruction& instruction = *program_.instructions[position];
    diagnostic.instruction = instruction.name();
    diagnostic.where = program_.where(instruction.source);
  }
  const std::string text = diagnostic.text();
  if (machine_.diagnostics().tolerates(diagnostic.rule)) severity = Severity::warning;
  machine_.diagnostics().report(std::move(diagnostic));
  if (severity == Severity::warning) return;
  // Collecting, the sink returned; the instruction ends all the same.
  if (severity == Severity::unsupported) throw Unsupported(text);
  throw KernelError(text);
}

void Core::poison(const Instruction& instruction) {
  for (const OperandView& operand : operand_views(instruction, program_)) {
    if (operand.access == Access::read || operand.view->tensor >= program_.tensors.size()) continue;
    const View& view = *operand.view;
    Storage& memory = storage(view.tensor);
    memory.own();
    if (instruction.broken) {
      // The view itself may be what is wrong. Large memories count as written; their pages stay untouched,
      // zero.
      if (memory.bytes() < Storage::kLazy ||
          (is_on_chip(program_.tensors[view.tensor].buffer) && !program_.tensors[view.tensor].address))
        std::memset(memory.data(), 0xff, static_cast<std::size_t>(memory.bytes()));
      memory.mark_all();
    } else {
      try {
        const Block block = resolve(operand.name, view, OobMode::skip);
        for_runs(view, block, [&](std::int64_t begin, std::int64_t end) {
          std::memset(memory.data() + begin, 0xff,
                      static_cast<std::size_t>(end - begin));  // NaN in every float format
        });
        mark(view, block);
      } catch (const KernelError&) {
        // An index that can't be read: it was reported with the instruction, and where the result would go
        // isn't known.
      }
    }
    if (program_.tensors[view.tensor].buffer == Buffer::psum)
      memory_->accumulators[view.tensor] = {PsumState::matmul, {}};
  }
}

}  // namespace headway::chip

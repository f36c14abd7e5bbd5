#include "chip/check.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "chip/pattern.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

// The bytes that a view may touch within a partition (on chip) or a tensor (HBM), from its start, without a
// dynamic offset.
struct Extent {
  std::int64_t low = 0, high = 0;  // [low, high)
};

Extent extent_of(const View& view, bool on_chip) {
  std::int64_t low = view.offset, high = view.offset;
  for (int d = on_chip ? 1 : 0; d < view.rank; ++d) {
    const Pair& p = view.pairs[static_cast<std::size_t>(d)];
    const std::int64_t reach = std::int64_t{p.step} * (p.count - 1);
    (reach < 0 ? low : high) += reach;
  }
  const int bytes = size_of(view.dtype);
  return {low * bytes, (high + 1) * bytes};
}

// What a view touches of a partition (on chip) or a tensor (HBM) whose first byte is `base`.
Footprint footprint_of(const View& view, bool on_chip, std::int64_t base) {
  Pattern pattern;
  pattern.element_bytes = size_of(view.dtype);
  for (std::size_t d = on_chip ? 1 : 0; d < view.rank; ++d, ++pattern.rank) {
    pattern.counts[static_cast<std::size_t>(pattern.rank)] = view.pairs[d].count;
    pattern.strides[static_cast<std::size_t>(pattern.rank)] =
        std::int64_t{view.pairs[d].step} * pattern.element_bytes;
  }
  Footprint footprint = footprint_of(pattern, pattern.base);
  footprint.low += base + view.offset * pattern.element_bytes;
  return footprint;
}

}  // namespace

bool may_overlap(const Program& program, const View& a, const View& b) {
  const Tensor& ta = program.tensors[a.tensor];
  const Tensor& tb = program.tensors[b.tensor];
  std::int64_t base_a = 0, base_b = 0, first_a = a.partition, first_b = b.partition;
  if (a.tensor != b.tensor) {
    if (ta.buffer != tb.buffer || !ta.address || !tb.address) return false;
    base_a = ta.address->byte;
    base_b = tb.address->byte;
    first_a += ta.address->partition;
    first_b += tb.address->partition;
  }
  const bool on_chip = is_on_chip(ta.buffer);
  if (on_chip && (first_a + a.rows() <= first_b || first_b + b.rows() <= first_a)) return false;
  if (a.dynamic >= 0 || b.dynamic >= 0) return true;
  return overlap(footprint_of(a, on_chip, base_a), footprint_of(b, on_chip, base_b));
}

void Check::broken(Severity severity, std::string_view rule, std::string_view operand, std::string message) {
  if (severity != Severity::warning && !diagnostics_.tolerates(std::string(rule))) held_ = false;
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.rule = rule;
  diagnostic.operand = operand;
  diagnostic.message = std::move(message);
  if (current_) diagnostic.instruction = current_->name();
  diagnostic.where = program.where(current_ ? current_->source : declaration_);
  diagnostics_.report(std::move(diagnostic));
}

bool Check::tensor(const Tensor& t) {
  current_ = nullptr;
  declaration_ = t.source;
  held_ = true;
  const std::string name = "'" + t.name + "'";
  const bool chip = is_on_chip(t.buffer);
  if (!require(t.dtype != DType::f64, "dtype", name, "no NeuronCore stores float64")) return false;
  if (!require(t.shape.size() >= (chip ? 2u : 1u) && t.shape.size() <= 8, "tensor-shape", name,
               "a tensor in {} has {} extents, it may have {} to 8", name_of(t.buffer), t.shape.size(),
               chip ? 2 : 1))
    return false;
  std::int64_t count = 1;
  for (std::int64_t extent : t.shape) {
    if (!require(extent >= 1, "tensor-shape", name, "extents of {} are not all at least 1",
                 [&] { return to_string(t.shape); }))
      return false;
    if (!require(extent <= (std::int64_t{1} << 40) / count, "tensor-shape", name,
                 "{} has more than 2^40 elements", [&] { return to_string(t.shape); }))
      return false;
    count *= extent;
  }
  if (!chip) {
    require(!t.address, "address", name, "tensors in HBM have no explicit address");
    return held_;
  }
  const bool sbuf = t.buffer == Buffer::sbuf;
  const std::int64_t limit = sbuf ? spec.sbuf_usable_bytes : spec.psum_bytes;
  if (!require(t.shape[0] <= spec.partitions, "partitions", name, "{} partitions, {} has {}", t.shape[0],
               name_of(t.buffer), spec.partitions))
    return false;
  require(t.row_bytes() <= limit, "capacity", name, "{} bytes a partition, {} has {} on {}", t.row_bytes(),
          name_of(t.buffer), limit, spec.name);
  if (!t.address) return held_;
  const Address& at = *t.address;
  require(at.partition >= 0 && at.partition + t.shape[0] <= spec.partitions, "address", name,
          "partitions {} to {} are not within 0 to {}", at.partition, at.partition + t.shape[0] - 1,
          spec.partitions - 1);
  require(at.byte >= 0 && at.byte <= limit && at.byte + t.row_bytes() <= limit, "capacity", name,
          "bytes {} to {} of a partition are not within the {} that {} has on {}", at.byte,
          at.byte + t.row_bytes() - 1, limit, name_of(t.buffer), spec.name);
  if (sbuf) {
    require(at.byte % size_of(t.dtype) == 0, "address", name, "byte {} is not aligned to the {} bytes of {}",
            at.byte, size_of(t.dtype), headway::name_of(t.dtype));
  } else {
    require(at.byte % spec.psum_bank_bytes == 0, "psum-bank", name,
            "byte {} is not the start of a PSUM bank (banks of {} bytes)", at.byte, spec.psum_bank_bytes);
  }
  return held_;
}

bool Check::view(std::string_view operand, const View& view, bool is_index) {
  if (!require(view.tensor < program.tensors.size(), "view", operand, "there is no tensor {}", view.tensor))
    return false;
  const Tensor& t = tensor_of(view);
  const bool chip = is_on_chip(t.buffer);
  if (!require(view.dtype != DType::f64 && static_cast<int>(view.dtype) < kDTypes, "dtype", operand,
               "no NeuronCore computes in float64"))
    return false;
  if (!require(view.rank >= (chip ? 2 : 1) && view.rank <= kMaxPairs, "view", operand,
               "a view of {} has {} to {} extents, not {}", name_of(t.buffer), chip ? 2 : 1, kMaxPairs,
               view.rank))
    return false;
  constexpr std::int64_t kFar = std::int64_t{1} << 42;  // beyond every tensor; what is below doesn't overflow
  std::int64_t count = 1;
  for (int d = 0; d < view.rank; ++d) {
    const Pair& p = view.pairs[static_cast<std::size_t>(d)];
    if (!require(p.count >= 1, "view", operand, "extent {} is {}", d, p.count)) return false;
    if (!require(p.count <= kMaxElements / count, "view", operand, "a view has at most 2^40 elements"))
      return false;
    count *= p.count;
  }
  const bool sound_offset = view.offset > -kFar && view.offset < kFar;
  if (!require(sound_offset, "out-of-bounds", operand, "the offset {} is outside '{}'", view.offset, t.name))
    return false;
  if (view.dynamic >= 0) {
    if (!require(!is_index, "dynamic-offset", operand, "an index can't have a dynamic offset itself"))
      return false;
    if (!require(static_cast<std::size_t>(view.dynamic) < program.dynamic_offsets.size(), "view", operand,
                 "there is no dynamic offset {}", view.dynamic))
      return false;
    const DynamicOffset& dynamic = program.dynamic_offsets[static_cast<std::size_t>(view.dynamic)];
    if (!require(dynamic.stride >= -(std::int64_t{1} << 31) && dynamic.stride < (std::int64_t{1} << 31),
                 "dynamic-offset", operand, "a stride of {} elements doesn't fit into 32 bits",
                 dynamic.stride))
      return false;
    if (dynamic.kind == DynamicOffset::Kind::from_register) {
      if (!require(dynamic.source.id < program.registers, "register", operand, "there is no register {}",
                   dynamic.source.id))
        return false;
    } else {
      if (!this->view(operand, dynamic.index, true)) return false;
      const bool vector = dynamic.kind == DynamicOffset::Kind::from_vector;
      const View& index = dynamic.index;
      bool sound = require(buffer(index) == Buffer::sbuf, "dynamic-offset", operand,
                           "the index must lie in SBUF, not in {}", name_of(buffer(index)));
      sound &= require(index.dtype == DType::i32 || index.dtype == DType::u32, "dynamic-offset", operand,
                       "the index must be int32 or uint32, not {}", headway::name_of(index.dtype));
      // Several columns of an index follow each other; which shapes an instruction takes is its own rule.
      sound &= require(vector ? index.elements() >= view.rows() : index.elements() == 1, "dynamic-offset",
                       operand, "the index must have {} elements, not be {}", vector ? view.rows() : 1,
                       [&] { return to_string(index.shape()); });
      sound &= require(!vector || is_hbm(t.buffer), "dynamic-offset", operand,
                       "rows by index are in HBM only, '{}' is in {}", t.name, name_of(t.buffer));
      if (!sound) return false;
    }
  }
  if (chip) {
    for (int d = 1; d < view.rank; ++d) {
      const Pair& p = view.pairs[static_cast<std::size_t>(d)];
      require(p.count <= 65535, "pattern", operand, "an extent of {}: counts are 16 bits, at most 65535",
              p.count);
      require(p.step >= -32768 && p.step <= 32767, "pattern", operand,
              "a step of {} elements: steps are 16 bits, -32768 to 32767", p.step);
    }
    if (!require(view.pairs[0].step == 1 || view.rows() == 1, "pattern", operand,
                 "partitions follow each other, their step is {}", view.pairs[0].step))
      return false;
    const std::int64_t first = view.partition, last = view.partition + view.rows() - 1;
    if (!require(first >= 0 && last < t.shape[0], "out-of-bounds", operand,
                 "partitions {} to {} of '{}', which has {}", first, last, t.name, t.shape[0]))
      return false;
  } else if (!require(view.partition == 0, "view", operand, "HBM has no partitions")) {
    return false;
  }
  // Indirect rows are bounded when the index is known; what a row covers is bounded here.
  View row = view;
  const bool vector =
      view.dynamic >= 0 && program.dynamic_offsets[static_cast<std::size_t>(view.dynamic)].kind ==
                               DynamicOffset::Kind::from_vector;
  if (vector) row.pairs[0].count = 1;
  for (int d = chip ? 1 : 0; d < view.rank; ++d) {
    const std::int64_t reach = std::int64_t{row.pairs[static_cast<std::size_t>(d)].step} *
                               (row.pairs[static_cast<std::size_t>(d)].count - 1);
    if (!require(reach > -kFar && reach < kFar, "out-of-bounds", operand,
                 "extent {} reaches {} elements far, outside '{}'", d, reach, t.name))
      return false;
  }
  const Extent bytes = extent_of(row, chip);
  const bool moves = view.dynamic >= 0;
  require(
      bytes.high - bytes.low <= t.row_bytes() && (moves || (bytes.low >= 0 && bytes.high <= t.row_bytes())),
      "out-of-bounds", operand, "bytes {} to {} of {}'{}', which has {}", bytes.low, bytes.high - 1,
      chip ? "a partition of " : "", t.name, t.row_bytes());
  return held_;
}

void Check::start_partition(std::string_view operand, const View& view) {
  const Tensor& t = tensor_of(view);
  if (!is_on_chip(t.buffer)) return;
  const std::int64_t start = view.partition + (t.address ? t.address->partition : 0), rows = view.rows();
  if (rows > 64) {
    require(start == 0, "start-partition", operand, "{} partitions must start at partition 0, not {}", rows,
            start);
  } else if (rows > 32) {
    require(start == 0 || start == 64, "start-partition", operand,
            "{} partitions must start at partition 0 or 64, not {}", rows, start);
  } else {
    require(start % 32 == 0, "start-partition", operand,
            "{} partitions must start at partition 0, 32, 64 or 96, not {}", rows, start);
  }
}

bool Check::views(const Instruction& instruction) {
  const std::vector<OperandView> operands = operand_views(instruction, program);
  for (const OperandView& operand : operands) view(operand.name, *operand.view, false);
  // Which engines can run it may depend on its views. Partition starts bind what engines read and write; DMA
  // reaches any partition.
  if (held_ && !instruction.engines(*this).has(Engine::dma))
    for (const OperandView& operand : operands) start_partition(operand.name, *operand.view);
  return held_;
}

namespace {

// What a recorder guarantees but a file may not: enumerators in range, registers that exist, finite sizes.
class Sound : public Fields {
 public:
  Sound(Check& check, const Program& program) : check_(check), program_(program) {}
  bool held = true;

  void view(std::string_view name, View& view, Access) override { tensor(name, view); }
  void views(std::string_view name, std::vector<View>& views, Access) override {
    for (const View& view : views) tensor(name, view);
  }
  void optional_view(std::string_view name, std::optional<View>& view, Access) override {
    if (view) tensor(name, *view);
  }
  void scalar(std::string_view name, Scalar& scalar) override {
    if (const View* view = scalar.view()) tensor(name, *view);
  }
  void reg(std::string_view name, Register& reg, Access) override {
    held &= check_.require(reg.id < program_.registers, "register", name, "there is no register {}", reg.id);
  }
  void register_or(std::string_view name, RegisterOr& value) override {
    if (auto* reg_ = std::get_if<Register>(&value)) reg(name, *reg_, Access::read);
  }
  void integer(std::string_view, std::int64_t&) override {}
  void integers(std::string_view, std::vector<std::int64_t>&) override {}
  void number(std::string_view, float&) override {}
  void numbers(std::string_view, std::vector<float>&) override {}
  void flag(std::string_view, bool&) override {}
  void chosen(std::string_view name, int& value, std::span<const std::string_view> names) override {
    held &= check_.require(value >= 0 && static_cast<std::size_t>(value) < names.size(), "choice", name,
                           "{} is none of the {} choices", value, names.size());
  }

 private:
  void tensor(std::string_view name, const View& view) {
    held &= check_.require(view.tensor < program_.tensors.size(), "view", name, "there is no tensor {}",
                           view.tensor);
  }
  Check& check_;
  const Program& program_;
};

}  // namespace

bool Check::instruction(const Instruction& instruction) {
  current_ = &instruction;
  held_ = true;
  Sound sound(*this, program);
  show(instruction, sound);
  if (held_ && views(instruction)) {
    instruction.check(*this);
    if (held_) {
      const Engines legal = instruction.engines(*this);
      const bool possible =
          require(!legal.empty(), "engine", "", "no engine of {} can run it with these operands", spec.name);
      if (possible && instruction.engine != Engine::unknown && !legal.has(instruction.engine)) {
        const auto all = names_of(Engine{});
        std::vector<std::string_view> names;
        for (std::size_t e = 1; e < all.size(); ++e)
          if (legal.has(static_cast<Engine>(e))) names.push_back(all[e]);
        require(false, "engine", "engine", "the {} engine can't run it with these operands; {} can",
                all[static_cast<std::size_t>(instruction.engine)], fmt::join(names, ", "));
      }
    }
  }
  current_ = nullptr;
  return held_;
}

bool Check::whole(const Spec& spec, Program& program, Diagnostics& diagnostics) {
  Check check(spec, program, diagnostics);
  bool held = true;
  for (const Tensor& tensor : program.tensors) held &= check.tensor(tensor);
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    if (!held || program.tensors[i].role != Role::constant) continue;
    check.declaration_ = program.tensors[i].source;
    const auto found = program.constants.find(static_cast<TensorId>(i));
    const std::int64_t bytes =
        found == program.constants.end() ? 0 : static_cast<std::int64_t>(found->second.size());
    held = check.require(bytes == program.tensors[i].row_bytes(), "constant",
                         "'" + program.tensors[i].name + "'", "has {} bytes, its shape needs {}", bytes,
                         program.tensors[i].row_bytes());
  }
  if (!held) return false;
  for (const std::unique_ptr<Instruction>& instruction : program.instructions) {
    if (check.instruction(*instruction)) continue;
    instruction->broken = true;
    held = false;
  }
  return check.loops() && held;
}

bool Check::loops() {
  held_ = true;
  std::vector<const Instruction*> open;
  for (const std::unique_ptr<Instruction>& instruction : program.instructions) {
    if (instruction->loop_change() == 0) continue;
    if (instruction->loop_change() > 0) {
      open.push_back(instruction.get());
      continue;
    }
    current_ = instruction.get();
    if (!require(!open.empty(), "loop-nesting", "", "{} ends no loop", instruction->name())) {
      current_ = nullptr;
      return false;
    }
    const bool counted = loop_role(*open.back()) == LoopRole::fori_begin;
    require(counted == (loop_role(*instruction) == LoopRole::fori_end), "loop-nesting", "", "{} ends a {}",
            instruction->name(), open.back()->name());
    instruction->broken |= open.back()->broken;  // the body of a loop that can't begin runs once
    open.pop_back();
  }
  current_ = open.empty() ? nullptr : open.back();
  require(open.empty(), "loop-nesting", "", "the loop is never ended");
  current_ = nullptr;
  return held_;
}

bool Check::in(std::string_view operand, const View& view, std::initializer_list<Buffer> allowed) {
  const Buffer is = buffer(view);
  if (std::find(allowed.begin(), allowed.end(), is) != allowed.end()) return true;
  std::vector<std::string_view> names;
  for (Buffer b : allowed) names.push_back(name_of(b));
  return require(false, "buffer", operand, "must lie in {}, '{}' lies in {}", fmt::join(names, " or "),
                 tensor_of(view).name, name_of(is));
}

bool Check::dtype(std::string_view operand, const View& view, std::initializer_list<DType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), view.dtype) != allowed.end()) return true;
  std::vector<std::string_view> names;
  for (DType d : allowed) names.push_back(headway::name_of(d));
  return require(false, "dtype", operand, "must be {}, not {}", fmt::join(names, " or "),
                 headway::name_of(view.dtype));
}

bool Check::computable(std::string_view operand, const View& view) {
  return require(!is_packed(view.dtype) && view.dtype != DType::f8e8m0fnu, "dtype", operand,
                 "{} is storage for NeuronCore-v4's MX instructions; nothing computes with it",
                 headway::name_of(view.dtype));
}

bool Check::same_dtype(std::string_view a, const View& view_a, std::string_view b, const View& view_b) {
  return require(view_a.dtype == view_b.dtype, "dtype", a, "is {}, but {} is {}; they must be the same",
                 headway::name_of(view_a.dtype), b, headway::name_of(view_b.dtype));
}

bool Check::same_partitions(std::string_view a, const View& view_a, std::string_view b, const View& view_b) {
  return require(view_a.rows() == view_b.rows(), "partitions", a, "has {} partitions, but {} has {}",
                 view_a.rows(), b, view_b.rows());
}

bool Check::same_row(std::string_view a, const View& view_a, std::string_view b, const View& view_b) {
  return require(view_a.row_elements() == view_b.row_elements(), "shape", a,
                 "has {} elements a partition, but {} has {}", view_a.row_elements(), b,
                 view_b.row_elements());
}

bool Check::same_size(std::string_view a, const View& view_a, std::string_view b, const View& view_b) {
  const bool partitions = same_partitions(a, view_a, b, view_b);
  return same_row(a, view_a, b, view_b) && partitions;
}

bool Check::row_of(std::string_view operand, const View& view, std::int64_t partitions, std::int64_t count) {
  return require(view.rows() == partitions && view.row_elements() == count, "shape", operand,
                 "must be [{}, {}], not {}", partitions, count, [&] { return to_string(view.shape()); });
}

bool Check::not_both_psum(std::string_view a, const View& view_a, std::string_view b, const View& view_b) {
  return require(buffer(view_a) != Buffer::psum || buffer(view_b) != Buffer::psum, "both-psum", a,
                 "and {} both lie in PSUM; one of them must lie in SBUF", b);
}

bool Check::scalar(std::string_view operand, const Scalar& scalar, std::int64_t partitions) {
  const View* view = scalar.view();
  if (!view) return true;
  return on_chip(operand, *view) && computable(operand, *view) && row_of(operand, *view, partitions, 1);
}

bool Check::generation(int least, std::string_view what) {
  return require(spec.generation >= least, "generation", "", "{} needs NeuronCore-v{}; {} has {}", what,
                 least, spec.name, spec.core_name);
}

bool Check::disjoint(std::string_view a, const View& view_a, std::string_view b, const View& view_b) {
  return require(!may_overlap(program, view_a, view_b), "overlap", a,
                 "shares bytes with {}; they must be apart", b);
}

}  // namespace headway::chip

#include "chip/recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "chip/tensor_engine.h"

namespace headway::chip {

namespace {

// Another view of the same memory; what is refused is said with the view it was asked of and, as views have
// no line of their own, where the kernel was.
template <class Algebra>
Tile derived(const Tile& tile, Algebra&& algebra) {
  const Program& program = tile.recorder().program();
  const Tensor& tensor = program.tensors[tile.view().tensor];
  try {
    return {tile.recorder(), algebra(tile.view(), is_on_chip(tensor.buffer))};
  } catch (const KernelError& error) {
    const std::string where =
        program.instructions.empty() ? "" : program.where(program.instructions.back()->source);
    throw KernelError(fmt::format("{}{}: {}", where.empty() ? "" : "after " + where + ": ",
                                  to_string(tile.view(), tensor), error.what()));
  }
}

}  // namespace

Tile Tile::sliced(std::initializer_list<Range> ranges) const {
  return derived(*this, [&](View view, bool chip) {
    if (ranges.size() > view.rank)
      throw KernelError(fmt::format("{} ranges for a view of {} extents [view]", ranges.size(), view.rank));
    int dim = 0;
    for (const Range& r : ranges) {
      const int before = view.rank;
      view = r.single ? select(view, dim, r.start, chip) : slice(view, dim, r.start, r.stop, r.step, chip);
      if (view.rank == before) ++dim;
    }
    return view;
  });
}

Tile Tile::permute(std::initializer_list<int> order) const {
  return derived(*this, [&](const View& view, bool chip) {
    return chip::permute(view, {order.begin(), order.size()}, chip);
  });
}
Tile Tile::broadcast(int dim, std::int64_t count) const {
  return derived(*this, [&](const View& view, bool chip) { return chip::broadcast(view, dim, count, chip); });
}
Tile Tile::expand(int dim) const {
  return derived(*this, [&](const View& view, bool chip) { return chip::expand(view, dim, chip); });
}
Tile Tile::squeeze(int dim) const {
  return derived(*this, [&](const View& view, bool chip) { return chip::squeeze(view, dim, chip); });
}
Tile Tile::reshape(const Shape& shape) const {
  return derived(*this, [&](const View& view, bool chip) { return chip::reshape(view, shape, chip); });
}
Tile Tile::reinterpret(DType dtype) const {
  return derived(*this, [&](const View& view, bool chip) { return chip::reinterpret(view, dtype, chip); });
}
Tile Tile::pattern(std::initializer_list<Pair> pairs, std::int64_t offset) const {
  return derived(*this, [&](const View& view, bool) {
    return access_pattern(recorder_->program().tensors[view.tensor], view.tensor,
                          {pairs.begin(), pairs.size()}, offset, view.dtype);
  });
}

namespace {

Tile moved(const Tile& tile, const DynamicOffset& offset) {
  return derived(tile, [&](View view, bool) {
    if (view.dynamic >= 0) throw KernelError("a view has one dynamic offset at most [dynamic-offset]");
    if (offset.kind == DynamicOffset::Kind::from_vector) view.pairs[0].step = kByIndex;
    view.dynamic = tile.recorder().add_dynamic(offset);
    return view;
  });
}

}  // namespace

Tile Tile::moved_by(Register reg, std::int64_t stride) const {
  return moved(*this, {DynamicOffset::Kind::from_register, reg, {}, stride});
}
Tile Tile::moved_by(const Tile& index, std::int64_t stride) const {
  return moved(*this, {DynamicOffset::Kind::from_scalar, {}, index, stride});
}
Tile Tile::rows_at(const Tile& index, std::int64_t stride) const {
  return moved(*this, {DynamicOffset::Kind::from_vector, {}, index, stride});
}

Recorder::Recorder(std::string kernel, const Spec& spec, Diagnostics* diagnostics, int program_id,
                   int num_programs)
    : spec_(spec),
      own_(diagnostics ? nullptr : std::make_unique<Diagnostics>()),
      diagnostics_(diagnostics ? *diagnostics : *own_) {
  program_.kernel = std::move(kernel);
  program_.chip = spec.name;
  program_.program_id = program_id;
  program_.num_programs = num_programs;
}

Recorder::~Recorder() = default;

SourceId Recorder::source(const std::string& file, std::uint32_t line) {
  const auto [known, fresh] = files_.try_emplace(file, static_cast<std::uint32_t>(program_.files.size()));
  if (fresh) program_.files.push_back(file);
  const auto [id, new_line] =
      sources_.try_emplace({known->second, line}, static_cast<SourceId>(program_.sources.size()));
  if (new_line) program_.sources.push_back({known->second, line});
  return id->second;
}

SourceId Recorder::source(Here here) {
  // Most instructions come from few lines, and a line's file name is one literal.
  const std::size_t slot = (reinterpret_cast<std::uintptr_t>(here.file_name()) / 16 + here.line()) % kRecent;
  Recent& recent = recent_[slot];
  if (recent.file != here.file_name() || recent.line != here.line())
    recent = {here.file_name(), here.line(), source(std::string(here.file_name()), here.line())};
  return recent.source;
}

Tile Recorder::declare(Tensor tensor, Here here) {
  tensor.source = source(here);
  return declare(std::move(tensor));
}

Tile Recorder::declare(Tensor tensor, const std::string& file, std::uint32_t line) {
  tensor.source = source(file, line);
  return declare(std::move(tensor));
}

Tile Recorder::declare(Tensor tensor) {
  const auto id = static_cast<TensorId>(program_.tensors.size());
  if (tensor.name.empty()) tensor.name = "t" + std::to_string(id);
  tensor.declared_at = static_cast<std::uint32_t>(program_.instructions.size());
  Check check(spec_, program_, diagnostics_);
  View view;
  if (check.tensor(tensor)) {
    view = whole(tensor, id);
  } else {
    // Collecting: something harmless stands in for it, seen through a view of the shape that was asked for,
    // so that the kernel can go on slicing. Instructions on it are broken without another word.
    refused_.insert(id);
    const bool possible =
        tensor.shape.size() <= kMaxPairs && !tensor.shape.empty() &&
        std::all_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t n) { return n >= 1; });
    if (possible) view = whole(tensor, id);
    tensor.address.reset();
    tensor.shape = is_on_chip(tensor.buffer) ? Shape{1, 1} : Shape{1};
    if (tensor.dtype == DType::f64) tensor.dtype = DType::f32;
    if (!possible) view = whole(tensor, id);
  }
  program_.tensors.push_back(std::move(tensor));
  return {*this, view};
}

Tile Recorder::input(const std::string& name, DType dtype, const Shape& shape, Here here) {
  return declare({name, shape, dtype, Buffer::shared_hbm, Role::input, {}, 0, 0}, here);
}
Tile Recorder::output(const std::string& name, DType dtype, const Shape& shape, Here here) {
  return declare({name, shape, dtype, Buffer::shared_hbm, Role::output, {}, 0, 0}, here);
}
Tile Recorder::constant(const std::string& name, DType dtype, const Shape& shape,
                        std::span<const std::byte> bytes, Here here) {
  Tile tile = declare({name, shape, dtype, Buffer::shared_hbm, Role::constant, {}, 0, 0}, here);
  const TensorId id = tile.view().tensor;
  Tensor& tensor = program_.tensors[id];
  if (static_cast<std::int64_t>(bytes.size()) == tensor.row_bytes() && !refused_.contains(id)) {
    program_.constants[id] = {bytes.begin(), bytes.end()};
    return tile;
  }
  if (refused_.insert(id).second) {
    Diagnostic wrong;
    wrong.rule = "constant";
    wrong.operand = "'" + name + "'";
    wrong.message = fmt::format("has {} bytes, its shape needs {}", bytes.size(), tensor.row_bytes());
    wrong.where = program_.where(tensor.source);
    diagnostics_.report(std::move(wrong));
  }
  // Collecting: one element stands in for it.
  tensor.shape = {1};
  program_.constants[id].resize(static_cast<std::size_t>(tensor.row_bytes()));
  return tile;
}
Tile Recorder::sbuf(DType dtype, const Shape& shape, const TensorOptions& options, Here here) {
  return declare({options.name, shape, dtype, Buffer::sbuf, Role::internal, options.address, 0, 0}, here);
}
Tile Recorder::psum(DType dtype, const Shape& shape, const TensorOptions& options, Here here) {
  return declare({options.name, shape, dtype, Buffer::psum, Role::internal, options.address, 0, 0}, here);
}
Tile Recorder::private_hbm(DType dtype, const Shape& shape, const TensorOptions& options, Here here) {
  return declare({options.name, shape, dtype, Buffer::private_hbm, Role::internal, options.address, 0, 0},
                 here);
}
Tile Recorder::shared_hbm(DType dtype, const Shape& shape, const TensorOptions& options, Here here) {
  return declare({options.name, shape, dtype, Buffer::shared_hbm, Role::internal, options.address, 0, 0},
                 here);
}

std::int32_t Recorder::add_dynamic(const DynamicOffset& offset) {
  program_.dynamic_offsets.push_back(offset);
  return static_cast<std::int32_t>(program_.dynamic_offsets.size()) - 1;
}

void Recorder::record(std::unique_ptr<Instruction> instruction, Here here) {
  record(std::move(instruction), source(here));
}

void Recorder::record(std::unique_ptr<Instruction> instruction, const std::string& file, std::uint32_t line) {
  record(std::move(instruction), source(file, line));
}

void Recorder::record(std::unique_ptr<Instruction> instruction, SourceId source) {
  instruction->source = source;
  append(std::move(instruction));
}

namespace {

// Replaces a view where it is written.
class Retarget : public Fields {
 public:
  Retarget(const View& from, const View& to) : from_(from), to_(to) {}
  int written = 0, read = 0;  // times that `from` is
  void view(std::string_view, View& view, Access access) override {
    if (view != from_) return;
    if (access == Access::read) {
      ++read;
    } else {
      ++written;
      view = to_;
    }
  }
  void views(std::string_view name, std::vector<View>& views, Access access) override {
    for (View& v : views) view(name, v, access);
  }
  void optional_view(std::string_view name, std::optional<View>& v, Access access) override {
    if (v) view(name, *v, access);
  }
  void scalar(std::string_view name, Scalar& scalar) override {
    if (auto* v = std::get_if<View>(&scalar)) view(name, *v, Access::read);
  }
  void reg(std::string_view, Register&, Access) override {}
  void register_or(std::string_view, RegisterOr&) override {}
  void integer(std::string_view, std::int64_t&) override {}
  void integers(std::string_view, std::vector<std::int64_t>&) override {}
  void number(std::string_view, float&) override {}
  void numbers(std::string_view, std::vector<float>&) override {}
  void flag(std::string_view, bool&) override {}
  void chosen(std::string_view, int&, std::span<const std::string_view>) override {}

 private:
  View from_, to_;
};

}  // namespace

bool Recorder::retarget(const View& from, const View& to, std::optional<bool> accumulate) {
  if (program_.instructions.empty()) return false;
  std::unique_ptr<Instruction>& last = program_.instructions.back();
  if (last->broken) return false;
  std::unique_ptr<Instruction> changed = copy(*last);
  Retarget fields(from, to);
  changed->visit(fields);
  if (fields.written != 1 || fields.read != 0) return false;
  auto* product = dynamic_cast<NcMatmul*>(changed.get());
  if (product)
    product->accumulate = accumulate;
  else if (accumulate)
    return false;
  Diagnostics found(Diagnostics::Mode::collect);
  if (!Check(spec_, program_, found).instruction(*changed)) return false;
  last = std::move(changed);
  return true;
}

void Recorder::append(std::unique_ptr<Instruction> instruction) {
  const auto uses_refused = [&] {
    for (const OperandView& operand : operand_views(*instruction, program_))
      if (refused_.contains(operand.view->tensor)) return true;
    return false;
  };
  Check check(spec_, program_, diagnostics_);
  instruction->broken = (!refused_.empty() && uses_refused()) || !check.instruction(*instruction);
  if (instruction->loop_change() > 0) {
    open_loops_.push_back(instruction->broken);
  } else if (instruction->loop_change() < 0 && !open_loops_.empty()) {
    instruction->broken |= open_loops_.back();  // the body of a loop that can't begin runs once
    open_loops_.pop_back();
  } else if (instruction->loop_change() < 0) {
    instruction->broken = true;
    check.broken(Severity::kernel_error, "loop-nesting", "",
                 std::string(instruction->name()) + " ends no loop");
  }
  program_.instructions.push_back(std::move(instruction));
}

void Recorder::label(std::string name) {
  HEADWAY_CHECK(!program_.instructions.empty());
  program_.labels[static_cast<std::uint32_t>(program_.instructions.size()) - 1] = std::move(name);
}

Program Recorder::finish() {
  if (!open_loops_.empty())
    throw KernelError(fmt::format("{} register loops are still open [loop-nesting]", open_loops_.size()));
  return std::move(program_);
}

}  // namespace headway::chip

#include "chip/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/error.h"
#include "chip/operands.h"

namespace headway::chip {
namespace {

class Printer : public Fields {
 public:
  explicit Printer(const Program& program) : program_(program) {}
  std::vector<std::string> parts;

  void view(std::string_view name, View& view, Access) override { add(name, text(view)); }
  void views(std::string_view name, std::vector<View>& views, Access) override {
    std::vector<std::string> all;
    for (const View& view : views) all.push_back(text(view));
    add(name, fmt::format("[{}]", fmt::join(all, ", ")));
  }
  void optional_view(std::string_view name, std::optional<View>& view, Access) override {
    if (view) add(name, text(*view));
  }
  void scalar(std::string_view name, Scalar& scalar) override {
    if (const View* view = scalar.view()) return add(name, text(*view));
    if (const auto* value = std::get_if<float>(&scalar)) return add(name, fmt::format("{}", *value));
    add(name, fmt::format("{}", std::get<std::int32_t>(scalar)));
  }
  void reg(std::string_view name, Register& reg, Access) override { add(name, fmt::format("r{}", reg.id)); }
  void register_or(std::string_view name, RegisterOr& value) override {
    if (const auto* reg_ = std::get_if<Register>(&value)) return add(name, fmt::format("r{}", reg_->id));
    add(name, fmt::format("{}", std::get<std::int32_t>(value)));
  }
  void integer(std::string_view name, std::int64_t& value) override { add(name, fmt::format("{}", value)); }
  void integers(std::string_view name, std::vector<std::int64_t>& values) override {
    add(name, fmt::format("[{}]", fmt::join(values, ", ")));
  }
  void number(std::string_view name, float& value) override { add(name, fmt::format("{}", value)); }
  void numbers(std::string_view name, std::vector<float>& values) override {
    add(name, fmt::format("[{}]", fmt::join(values, ", ")));
  }
  void flag(std::string_view name, bool& value) override {
    if (value) add(name, "true");
  }
  void chosen(std::string_view name, int& value, std::span<const std::string_view> names) override {
    const auto i = static_cast<std::size_t>(value);
    add(name, i < names.size() ? std::string(names[i]) : fmt::format("{}", value));
  }

 private:
  void add(std::string_view name, const std::string& value) {
    parts.push_back(fmt::format("{}={}", name, value));
  }
  std::string text(const View& view) const {
    if (view.tensor >= program_.tensors.size()) return fmt::format("tensor {}?", view.tensor);
    return to_string(view, program_.tensors[view.tensor]);
  }
  const Program& program_;
};

// Moves field values from one instruction to another of its kind.
class Copier : public Fields {
 public:
  void view(std::string_view, View& v, Access) override { move(v, views_, i_view_); }
  void views(std::string_view, std::vector<View>& v, Access) override { move(v, lists_, i_list_); }
  void optional_view(std::string_view, std::optional<View>& v, Access) override {
    move(v, optionals_, i_optional_);
  }
  void scalar(std::string_view, Scalar& v) override { move(v, scalars_, i_scalar_); }
  void reg(std::string_view, Register& v, Access) override { move(v, registers_, i_register_); }
  void register_or(std::string_view, RegisterOr& v) override { move(v, register_ors_, i_register_or_); }
  void integer(std::string_view, std::int64_t& v) override { move(v, integers_, i_integer_); }
  void integers(std::string_view, std::vector<std::int64_t>& v) override {
    move(v, integer_lists_, i_integer_list_);
  }
  void number(std::string_view, float& v) override { move(v, numbers_, i_number_); }
  void numbers(std::string_view, std::vector<float>& v) override { move(v, number_lists_, i_number_list_); }
  void flag(std::string_view, bool& v) override {
    std::int64_t n = v;
    move(n, integers_, i_integer_);
    v = n != 0;
  }
  void chosen(std::string_view, int& v, std::span<const std::string_view>) override {
    std::int64_t n = v;
    move(n, integers_, i_integer_);
    v = static_cast<int>(n);
  }
  void replay() { replaying_ = true; }

 private:
  template <class T>
  void move(T& value, std::vector<T>& kept, std::size_t& next) {
    if (replaying_) {
      value = kept[next++];
    } else {
      kept.push_back(value);
    }
  }
  bool replaying_ = false;
  std::vector<View> views_;
  std::vector<std::vector<View>> lists_;
  std::vector<std::optional<View>> optionals_;
  std::vector<Scalar> scalars_;
  std::vector<Register> registers_;
  std::vector<RegisterOr> register_ors_;
  std::vector<std::int64_t> integers_;
  std::vector<std::vector<std::int64_t>> integer_lists_;
  std::vector<float> numbers_;
  std::vector<std::vector<float>> number_lists_;
  std::size_t i_view_ = 0, i_list_ = 0, i_optional_ = 0, i_scalar_ = 0, i_register_ = 0, i_register_or_ = 0,
              i_integer_ = 0, i_integer_list_ = 0, i_number_ = 0, i_number_list_ = 0;
};

}  // namespace

std::vector<TensorId> Program::with_role(Role role) const {
  std::vector<TensorId> found;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].role == role) found.push_back(static_cast<TensorId>(i));
  return found;
}

std::string Program::where(SourceId source) const {
  if (source == 0 || source >= sources.size() || sources[source].file >= files.size()) return "";
  const std::filesystem::path file = files[sources[source].file];
  return fmt::format("{}:{}", file.filename().string(), sources[source].line);
}

std::vector<OperandView> operand_views(const Instruction& instruction, const Program& program) {
  std::vector<OperandView> found;
  for_each_view(instruction, program, [&](std::string_view name, const View& view, Access access) {
    found.push_back({name, &view, access});
  });
  return found;
}

std::string to_string(const Instruction& instruction, const Program& program) {
  Printer printer(program);
  show(instruction, printer);
  return fmt::format("{}({})", instruction.name(), fmt::join(printer.parts, ", "));
}

std::unique_ptr<Instruction> copy(const Instruction& instruction) {
  for (const Kind& kind : instruction_set()) {
    if (kind.name != instruction.name()) continue;
    std::unique_ptr<Instruction> result = kind.make();
    Copier copier;
    show(instruction, copier);
    copier.replay();
    result->visit(copier);
    result->engine = instruction.engine;
    result->source = instruction.source;
    result->broken = instruction.broken;
    return result;
  }
  throw Bug("no kind is named " + std::string(instruction.name()));
}

}  // namespace headway::chip

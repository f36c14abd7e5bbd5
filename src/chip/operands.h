// The views of an instruction, one after another, without a list of them.
#pragma once

#include <type_traits>

#include "chip/fields.h"
#include "chip/program.h"

namespace headway::chip {

// Calls f(const View&, Access) for each view of the instruction, index views of dynamic offsets included
// (they are read). The cheap form of operand_views.
template <class F>
class ViewVisitor final : public Fields {
 public:
  ViewVisitor(const Program& program, F& f) : program_(program), f_(f) {}
  void view(std::string_view name, View& view, Access access) override { add(name, view, access); }
  void views(std::string_view name, std::vector<View>& views, Access access) override {
    for (const View& view : views) add(name, view, access);
  }
  void optional_view(std::string_view name, std::optional<View>& view, Access access) override {
    if (view) add(name, *view, access);
  }
  void scalar(std::string_view name, Scalar& scalar) override {
    if (const View* view = scalar.view()) add(name, *view, Access::read);
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
  void add(std::string_view name, const View& view, Access access) {
    call(name, view, access);
    if (view.dynamic < 0 || static_cast<std::size_t>(view.dynamic) >= program_.dynamic_offsets.size()) return;
    const DynamicOffset& dynamic = program_.dynamic_offsets[static_cast<std::size_t>(view.dynamic)];
    if (dynamic.kind != DynamicOffset::Kind::from_register) call(name, dynamic.index, Access::read);
  }
  void call(std::string_view name, const View& view, Access access) {
    if constexpr (std::is_invocable_v<F&, std::string_view, const View&, Access>) {
      f_(name, view, access);
    } else {
      f_(view, access);
    }
  }
  const Program& program_;
  F& f_;
};

template <class F>
void for_each_view(const Instruction& instruction, const Program& program, F&& f) {
  ViewVisitor<std::remove_reference_t<F>> visitor(program, f);
  show(instruction, visitor);
}

}  // namespace headway::chip

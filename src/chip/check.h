// The rules of the hardware. Instructions call these from `check`; each reports to the diagnostics what
// doesn't hold.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "chip/diagnostics.h"
#include "chip/instruction.h"
#include "chip/program.h"
#include "chip/spec.h"

namespace headway::chip {

// What a call returns; anything else as it is.
template <class T>
decltype(auto) called(T&& value) {
  if constexpr (std::is_invocable_v<T>)
    return value();
  else
    return std::forward<T>(value);
}

// How fmt::format sees it.
template <class T>
using Called = std::conditional_t<std::is_lvalue_reference_v<decltype(called(std::declval<T>()))>,
                                  decltype(called(std::declval<T>())),
                                  std::remove_reference_t<decltype(called(std::declval<T>()))>>;

class Check {
 public:
  Check(const Spec& spec, const Program& program, Diagnostics& diagnostics)
      : spec(spec), program(program), diagnostics_(diagnostics) {}

  const Spec& spec;
  const Program& program;

  // The whole program, as after reading it from a file: declarations, then every instruction and the nesting
  // of loops. Returns whether all held. Instructions that broke a rule are marked as such.
  static bool whole(const Spec& spec, Program& program, Diagnostics& diagnostics);
  // A declaration: extents, dtype, address, capacity.
  bool tensor(const Tensor& tensor);
  // One instruction: its views, then its own rules, then its engine.
  bool instruction(const Instruction& instruction);

  const Tensor& tensor_of(const View& view) const { return program.tensors[view.tensor]; }
  Buffer buffer(const View& view) const { return tensor_of(view).buffer; }

  // --- For Instruction::check. `operand` is the field's name. Each returns whether the rule held; after a
  // rule that the next ones rest on, return when it didn't. ---

  // Reports `rule` broken unless `held`. The message is built only then (and an argument that is a call,
  // called): format and arguments as of
  // fmt::format. It says the rule, the limit and the value.
  template <class... Args>
  bool require(bool held, std::string_view rule, std::string_view operand,
               fmt::format_string<Called<Args>...> format, Args&&... args) {
    if (!held)
      broken(Severity::kernel_error, rule, operand, fmt::format(format, called(std::forward<Args>(args))...));
    return held;
  }
  void broken(Severity severity, std::string_view rule, std::string_view operand, std::string message);

  // "buffer": the view's tensor lies in one of `allowed`.
  bool in(std::string_view operand, const View& view, std::initializer_list<Buffer> allowed);
  bool on_chip(std::string_view operand, const View& view) {
    return in(operand, view, {Buffer::sbuf, Buffer::psum});
  }
  bool in_sbuf(std::string_view operand, const View& view) { return in(operand, view, {Buffer::sbuf}); }
  // "dtype"
  bool dtype(std::string_view operand, const View& view, std::initializer_list<DType> allowed);
  // "dtype": anything that can be computed with: no packed type.
  bool computable(std::string_view operand, const View& view);
  bool same_dtype(std::string_view a, const View& view_a, std::string_view b, const View& view_b);
  // "partitions": both have as many.
  bool same_partitions(std::string_view a, const View& view_a, std::string_view b, const View& view_b);
  // "shape": both have as many elements a partition; their free extents may differ.
  bool same_row(std::string_view a, const View& view_a, std::string_view b, const View& view_b);
  // same_partitions and same_row.
  bool same_size(std::string_view a, const View& view_a, std::string_view b, const View& view_b);
  // "shape": [partitions, count].
  bool row_of(std::string_view operand, const View& view, std::int64_t partitions, std::int64_t count);
  // "both-psum": not both in PSUM.
  bool not_both_psum(std::string_view a, const View& view_a, std::string_view b, const View& view_b);
  // A scalar operand: an immediate, or an on-chip view [partitions, 1] of a computable dtype.
  bool scalar(std::string_view operand, const Scalar& scalar, std::int64_t partitions);
  // "generation": `what` needs NeuronCore generation `least` (2 = Trainium1, 3 = Trainium2, 4 = Trainium3).
  bool generation(int least, std::string_view what);
  // "overlap": the two views share no byte. For instructions whose result would depend on timing.
  bool disjoint(std::string_view a, const View& view_a, std::string_view b, const View& view_b);

 private:
  bool views(const Instruction& instruction);
  bool loops();  // "loop-nesting": each begin has its end, like brackets
  bool view(std::string_view operand, const View& view, bool is_index);
  void start_partition(std::string_view operand, const View& view);

  Diagnostics& diagnostics_;
  const Instruction* current_ = nullptr;
  SourceId declaration_ = 0;
  bool held_ = true;
};

// Whether the two views can share a byte: exact (chip/pattern.h says up to where), but for dynamic offsets:
// those may lead anywhere within the partitions of the view.
bool may_overlap(const Program& program, const View& a, const View& b);

}  // namespace headway::chip

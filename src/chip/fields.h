// The operands and parameters of an instruction, named once: printing, serialising, checking, footprints and fuzzing all read
// them through here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "chip/view.h"

namespace headway::chip {

// An immediate, or one value a partition: a view [P, 1].
struct Scalar : std::variant<float, std::int32_t, View> {
  using Base = std::variant<float, std::int32_t, View>;
  Scalar() : Base(0.0f) {}
  Scalar(float value) : Base(value) {}
  Scalar(double value) : Base(static_cast<float>(value)) {}
  Scalar(std::int32_t value) : Base(value) {}
  Scalar(const View& view) : Base(view) {}
  // Of what stands for a view: a Tile.
  template <class T>
    requires(std::is_convertible_v<const T&, const View&> && !std::is_same_v<T, View>)
  Scalar(const T& tile) : Base(static_cast<const View&>(tile)) {}
  const View* view() const { return std::get_if<View>(this); }
  // The immediate as a float. Not for views.
  float number() const;
  // The immediate's 32 bits as an integer operand: of an int the bits, of a float its value converted. Not for views.
  std::uint32_t integer() const;
};

// An immediate or a register.
using RegisterOr = std::variant<std::int32_t, Register>;

enum class Access : std::uint8_t { read, write, update };  // update reads and writes

// One call a field, always in the same order. Fields of the same instruction have distinct names: NKI's parameter names.
class Fields {
 public:
  virtual ~Fields() = default;
  virtual void view(std::string_view name, View& view, Access access) = 0;
  virtual void views(std::string_view name, std::vector<View>& views, Access access) = 0;
  virtual void optional_view(std::string_view name, std::optional<View>& view, Access access) = 0;
  virtual void scalar(std::string_view name, Scalar& scalar) = 0;
  virtual void reg(std::string_view name, Register& reg, Access access) = 0;
  virtual void register_or(std::string_view name, RegisterOr& value) = 0;
  virtual void integer(std::string_view name, std::int64_t& value) = 0;
  virtual void integers(std::string_view name, std::vector<std::int64_t>& values) = 0;
  virtual void number(std::string_view name, float& value) = 0;
  virtual void numbers(std::string_view name, std::vector<float>& values) = 0;
  virtual void flag(std::string_view name, bool& value) = 0;
  // One of `names`, by position.
  virtual void chosen(std::string_view name, int& value, std::span<const std::string_view> names) = 0;

  // Whether a field that may be absent is there; the field itself comes next if it is. Fields whose source knows
  // absence by itself override it.
  virtual bool present(std::string_view name, bool value) {
    flag(name, value);
    return value;
  }
  virtual void optional_flag(std::string_view name, std::optional<bool>& value) {
    bool given = value.has_value(), on = value.value_or(false);
    flag(std::string(name) + "_given", given);
    flag(name, on);
    value = given ? std::optional<bool>(on) : std::nullopt;
  }

  // Enumerations from 0 without gaps whose names `names_of(E)` gives.
  template <class E>
  void choice(std::string_view name, E& value) {
    int number = static_cast<int>(value);
    chosen(name, number, names_of(E{}));
    value = static_cast<E>(number);
  }
  // An enumeration that may be absent (written as position -1 + 1 = 0, "none").
  template <class E>
  void optional_choice(std::string_view name, std::optional<E>& value) {
    const bool there = present(name, value.has_value());
    E inner = value.value_or(E{});
    if (there) choice(name, inner);
    value = there ? std::optional<E>(inner) : std::nullopt;
  }
  // A scalar operand that may be absent.
  void optional_scalar(std::string_view name, std::optional<Scalar>& value) {
    const bool there = present(name, value.has_value());
    if (there != value.has_value()) value = there ? std::optional<Scalar>(Scalar()) : std::nullopt;
    if (there) scalar(name, *value);
  }
};

}  // namespace headway::chip

// The engines of a NeuronCore. Numbers are NKI's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headway::chip {

enum class Engine : std::uint8_t { unknown, tensor, scalar, gpsimd, dma, vector, sync };
std::span<const std::string_view> names_of(Engine);

// A set of engines, for instructions whose engine is still open.
class Engines {
 public:
  constexpr Engines() = default;
  constexpr Engines(Engine engine) : bits_(static_cast<std::uint8_t>(1u << static_cast<unsigned>(engine))) {}
  constexpr Engines operator|(Engines other) const { return Engines(static_cast<std::uint8_t>(bits_ | other.bits_)); }
  constexpr bool has(Engine engine) const { return (bits_ >> static_cast<unsigned>(engine)) & 1u; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Engines&) const = default;

 private:
  explicit constexpr Engines(std::uint8_t bits) : bits_(bits) {}
  std::uint8_t bits_ = 0;
};
constexpr Engines operator|(Engine a, Engine b) { return Engines(a) | Engines(b); }

}  // namespace headway::chip

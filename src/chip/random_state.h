// The random number generators of a core, one a lane.
#pragma once

#include <array>
#include <cstdint>

namespace headway::chip {

struct RandomState {
  // Marsaglia's xorwow (2003): five words and a counter. GpSimd's.
  struct Xorwow {
    std::array<std::uint32_t, 5> x{};
    std::uint32_t counter = 0;
  };
  std::array<Xorwow, 128> gpsimd{};
  std::array<std::uint32_t, 128> vector{};  // VectorE's linear feedback shift register
};

}  // namespace headway::chip

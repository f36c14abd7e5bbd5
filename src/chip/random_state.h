// The random number generators of a core, one a lane. (docs/chip/statistics.md says what is documented of
// them and what is chosen here.)
#pragma once

#include <array>
#include <cstdint>

namespace headway::chip {

struct RandomState {
  // GpSimd's: Marsaglia's xorwow ("Xorshift RNGs", 2003), five words and a counter.
  struct Xorwow {
    std::array<std::uint32_t, 5> x{};
    std::uint32_t counter = 0;
    std::uint32_t next() {
      const std::uint32_t first = x[0] ^ (x[0] >> 2);
      x = {x[1], x[2], x[3], x[4], x[4] ^ (x[4] << 4) ^ first ^ (first << 1)};
      counter += 362437u;
      return x[4] + counter;
    }
  };
  // VectorE's: a linear feedback shift register of 32 bits that runs through all states but 0; 32 steps a
  // number.
  struct ShiftRegister {
    std::uint32_t state = 1;
    std::uint32_t next();
  };

  // Every lane of both engines as after seed 0.
  RandomState();
  // VectorE's lanes, each with a state of its own that depends on `seed` and the lane.
  void seed_vector(std::uint32_t seed);

  std::array<Xorwow, 128> gpsimd;
  std::array<ShiftRegister, 128> vector;
};

}  // namespace headway::chip

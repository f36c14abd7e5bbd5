#include "chip/engine.h"

#include <array>

namespace headway::chip {

std::span<const std::string_view> names_of(Engine) {
  static constexpr std::array<std::string_view, 7> kNames = {"unknown", "tensor", "scalar", "gpsimd",
                                                             "dma",     "vector", "sync"};
  return kNames;
}

}  // namespace headway::chip

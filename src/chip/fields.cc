#include "chip/fields.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace headway::chip {

float Scalar::number() const {
  if (const auto* value = std::get_if<float>(this)) return *value;
  if (const auto* value = std::get_if<std::int32_t>(this)) return static_cast<float>(*value);
  throw Bug("a view has no immediate value");
}

std::uint32_t Scalar::integer() const {
  if (const auto* value = std::get_if<std::int32_t>(this)) return static_cast<std::uint32_t>(*value);
  const auto* value = std::get_if<float>(this);
  if (!value) throw Bug("a view has no immediate value");
  // Masks above the int32 range may be written as floats.
  if (!(std::abs(*value) < 4294967296.0f)) return 0;
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(*value));
}

}  // namespace headway::chip

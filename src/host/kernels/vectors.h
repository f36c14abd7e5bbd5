// The kernels of this folder write vector code without a prefix.
#pragma once

#include "simd/simd.h"

namespace headway::host {
using namespace simd;
}  // namespace headway::host

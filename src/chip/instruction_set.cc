#include <vector>

#include "base/error.h"
#include "chip/absent.h"
#include "chip/collectives.h"
#include "chip/cores.h"
#include "chip/dma_engine.h"
#include "chip/gpsimd_engine.h"
#include "chip/instruction.h"
#include "chip/random.h"
#include "chip/scalar_engine.h"
#include "chip/sync_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"
#include "chip/vector_select.h"
#include "chip/vector_statistics.h"

namespace headway::chip {

std::span<const Kind> instruction_set() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> kinds;
    for (const std::span<const Kind> family :
         {tensor_engine_instructions(), scalar_engine_instructions(), vector_arithmetic_instructions(),
          vector_copy_instructions(), vector_reduce_instructions(),
          vector_statistics_instructions(), vector_select_instructions(), random_instructions(),
          gpsimd_engine_instructions(), dma_engine_instructions(), sync_engine_instructions(), cores_instructions(),
          collectives_instructions(), absent_instructions()})
      kinds.insert(kinds.end(), family.begin(), family.end());
    return kinds;
  }();
  return all;
}

void Meeting::apply(Core&) const { throw Bug(std::string(name()) + " was applied to one core"); }

}  // namespace headway::chip

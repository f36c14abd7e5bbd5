#include "chip/absent.h"

#include <fmt/format.h>

#include "base/error.h"
#include "chip/check.h"
#include "chip/core.h"

namespace headway::chip {

void AbsentInstruction::visit(Fields& fields) {
  fields.views("outputs", outputs, Access::write);
  fields.views("inputs", inputs, Access::read);
}

void AbsentInstruction::check(Check& check) const {
  if (!check.generation(4, name())) return;
  check.broken(
      Severity::unsupported, "not-modelled", "",
      fmt::format("{} is legal on {} ({}), but not modelled", name(), check.spec.name, check.spec.core_name));
}

void AbsentInstruction::apply(Core&) const { throw Bug(std::string(name()) + " passed its check"); }

namespace {

template <class I>
void refuse(std::initializer_list<View> outputs, std::initializer_list<View> inputs, const Tile& first,
            Here here) {
  record<I>(first, here, [&](I& i) {
    i.outputs = outputs;
    i.inputs = inputs;
  });
}

}  // namespace

void nc_matmul_mx(const Tile& dst, const Tile& stationary, const Tile& moving, const Tile& stationary_scale,
                  const Tile& moving_scale, Here here) {
  refuse<NcMatmulMx>({dst}, {stationary, moving, stationary_scale, moving_scale}, dst, here);
}

void quantize_mx(const Tile& dst, const Tile& src, const Tile& dst_scale, Here here) {
  refuse<QuantizeMx>({dst, dst_scale}, {src}, dst, here);
}

void activate2(const Tile& dst, const Tile& data, Here here) { refuse<Activate2>({dst}, {data}, dst, here); }

void exponential(const Tile& dst, const Tile& src, Here here) {
  refuse<Exponential>({dst}, {src}, dst, here);
}

void rand2(const Tile& dst, Here here) { refuse<Rand2>({dst}, {}, dst, here); }

void tensor_indirection(const Tile& data, const Tile& index, Here here) {
  refuse<TensorIndirection>({}, {data, index}, data, here);
}

std::span<const Kind> absent_instructions() {
  static const Kind kinds[] = {kind<NcMatmulMx>(),  kind<QuantizeMx>(), kind<Activate2>(),
                               kind<Exponential>(), kind<Rand2>(),      kind<TensorIndirection>()};
  return kinds;
}

}  // namespace headway::chip

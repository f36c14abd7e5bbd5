#include "chip/meeting.h"

#include "chip/machine.h"
#include "chip/strided_copy.h"

namespace headway::chip {

int rank_of(const Core& core) { return core.number() / core.machine().lnc(); }
int local_number(const Core& core) { return core.number() % core.machine().lnc(); }

std::vector<int> cores_of_logical_core(const Core& core) {
  std::vector<int> cores;
  const int lnc = core.machine().lnc();
  for (int c = rank_of(core) * lnc; c < (rank_of(core) + 1) * lnc; ++c) cores.push_back(c);
  return cores;
}

std::int64_t shared_position(const Program& program, TensorId tensor) {
  const Tensor& t = program.tensors[tensor];
  const auto shared = [](const Tensor& other) { return other.buffer == Buffer::shared_hbm; };
  if (!shared(t)) return -1;
  std::int64_t position = 0;
  for (TensorId i = 0; i < tensor; ++i) position += shared(program.tensors[i]);
  return position;
}

Pattern Sent::pattern() const {
  return packed_pattern(const_cast<std::byte*>(bytes.data()), dtype, elements());
}

Sent send(Core& core, std::string_view operand, const View& view) {
  const Block block = core.read(operand, view);
  Sent sent{view.dtype, view.shape(),
            std::vector<std::byte>(static_cast<std::size_t>(view.elements() * block.element_bytes))};
  copy_elements(core, pattern_of(view, block), sent.pattern());
  return sent;
}

void receive(Core& core, std::string_view operand, const View& view, const Pattern& from) {
  copy_elements(core, from, pattern_of(view, core.write(operand, view)));
}

}  // namespace headway::chip

// How the two cores of a logical core meet (LNC 2): barriers and exchanges. NeuronCore-v3 on. Decisions in
// docs/chip/cores.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// Waits until all of `cores` are here. `data` is what they share: with it the kernel says what the barrier
// orders; here it orders all that the cores did and will do.
struct CoreBarrier : Meeting {
  View data;
  std::vector<std::int64_t> cores;  // all cores of the logical core: (0, 1), or (0) of a kernel on one
  std::string_view name() const override { return "core_barrier"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
  Key key(const Core& core) const override;
  std::vector<int> participants(const Core& core) const override;
  void meet(std::span<Core* const> cores, std::span<const Meeting* const> instructions) const override;
};
struct CoreBarrierOptions {
  Engine engine = Engine::gpsimd;
};
void core_barrier(const Tile& data, const std::vector<std::int64_t>& cores,
                  const CoreBarrierOptions& options = {}, Here here = Here::current());

// Which DMA moves an exchange: the shared engines, or GpSimd's own, for little.
enum class DmaEngine : std::uint8_t { dma, gpsimd_dma };
std::span<const std::string_view> names_of(DmaEngine);

// Sends `src` to the `dst` of core send_to_rank and gets `dst` from core recv_from_rank; both in SBUF, same
// shape and dtype. All sends are read before anything is written. Exchanges of the same pipe_id complete
// together.
struct SendRecv : Meeting {
  View src, dst;
  std::int64_t send_to_rank = 0, recv_from_rank = 0, pipe_id = 0;
  DmaEngine dma_engine = DmaEngine::dma;
  std::string_view name() const override { return "sendrecv"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
  Key key(const Core& core) const override;
  std::vector<int> participants(const Core& core) const override;
  void meet(std::span<Core* const> cores, std::span<const Meeting* const> instructions) const override;
};
struct SendRecvOptions {
  DmaEngine dma_engine = DmaEngine::dma;
};
void sendrecv(const Tile& src, const Tile& dst, std::int64_t send_to_rank, std::int64_t recv_from_rank,
              std::int64_t pipe_id, const SendRecvOptions& options = {}, Here here = Here::current());

std::span<const Kind> cores_instructions();

}  // namespace headway::chip

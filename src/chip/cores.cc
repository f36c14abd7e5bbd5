#include "chip/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "chip/check.h"
#include "chip/dma_common.h"
#include "chip/dma_cost.h"
#include "chip/machine.h"
#include "chip/meeting.h"
#include "chip/sync_engine.h"

namespace headway::chip {

void CoreBarrier::visit(Fields& fields) {
  // What was done to `data` before is done when the barrier is over, what comes after it waits: to others it
  // is like a change of data.
  fields.view("data", data, Access::update);
  fields.integers("cores", cores);
}

void CoreBarrier::check(Check& check) const {
  check.generation(3, "core_barrier");
  Shape all;
  for (int c = 0; c < check.program.num_programs; ++c) all.push_back(c);
  check.require(cores == all, "cores", "cores", "are {}; they must be all cores of the logical core, {}",
                to_string(Shape(cores)), to_string(all));
  check.require(check.buffer(data) != Buffer::psum, "buffer", "data",
                "'{}' lies in PSUM; it must lie in shared HBM", check.tensor_of(data).name);
  if (is_on_chip(check.buffer(data)) || check.buffer(data) == Buffer::private_hbm)
    check.broken(Severity::warning, "barrier-data", "data",
                 fmt::format("'{}' lies in {}, where no other core sees it; a barrier is about shared HBM",
                             check.tensor_of(data).name, name_of(check.buffer(data))));
}

Engines CoreBarrier::engines(const Check&) const { return kSequencers; }

// A word to the other core's semaphore, and the check of one's own.
Cost CoreBarrier::cost(const Costing& costing) const {
  const Timing& t = costing.timing;
  Cost cost = fixed_cost(t.word_write);
  for (const Constant& more : {t.semaphore_latency, t.gpsimd.semaphore_check}) {
    cost.latency += picoseconds(more.value);
    cost.basis[more.tag] += picoseconds(more.value);
  }
  cost.calibrated = false;
  return cost;
}

Meeting::Key CoreBarrier::key(const Core& core) const {
  return {name(), {shared_position(core.program(), data.tensor)}};
}

std::vector<int> CoreBarrier::participants(const Core& core) const { return cores_of_logical_core(core); }

void CoreBarrier::meet(std::span<Core* const>, std::span<const Meeting* const>) const {}

void core_barrier(const Tile& data, const std::vector<std::int64_t>& cores, const CoreBarrierOptions& options,
                  Here here) {
  record<CoreBarrier>(data, here, [&](CoreBarrier& i) {
    i.data = data;
    i.cores = cores;
    i.engine = options.engine;
  });
}

std::span<const std::string_view> names_of(DmaEngine) {
  static constexpr std::array<std::string_view, 2> kNames = {"dma", "gpsimd_dma"};
  return kNames;
}

void SendRecv::visit(Fields& fields) {
  fields.view("src", src, Access::read);
  fields.view("dst", dst, Access::write);
  fields.integer("send_to_rank", send_to_rank);
  fields.integer("recv_from_rank", recv_from_rank);
  fields.integer("pipe_id", pipe_id);
  fields.choice("dma_engine", dma_engine);
}

void SendRecv::check(Check& check) const {
  check.generation(3, "sendrecv");
  check.require(check.program.num_programs == 2, "lnc", "",
                "exchanges between the two cores of LNC 2; this kernel has {}", check.program.num_programs);
  check.require(send_to_rank == 0 || send_to_rank == 1, "rank", "send_to_rank", "must be 0 or 1, not {}",
                send_to_rank);
  check.require(recv_from_rank == 0 || recv_from_rank == 1, "rank", "recv_from_rank",
                "must be 0 or 1, not {}", recv_from_rank);
  check.in_sbuf("src", src);
  check.in_sbuf("dst", dst);
  check.same_dtype("dst", dst, "src", src);
  check.require(
      dst.shape() == src.shape(), "shape", "dst", "is {}, but src is {}; they must be the same",
      [&] { return to_string(dst.shape()); }, [&] { return to_string(src.shape()); });
  check_distinct(check, "dst", dst);
  if (dma_engine == DmaEngine::gpsimd_dma) {
    const int size = size_of(src.dtype);
    const std::int64_t bytes = src.row_elements() * size, limit = 256 * size;
    check.require(bytes <= limit, "gpsimd-dma-bytes", "src",
                  "has {} bytes a partition; gpsimd_dma moves {} of {}", bytes, limit,
                  headway::name_of(src.dtype));
  }
}

Engines SendRecv::engines(const Check&) const {
  if (dma_engine == DmaEngine::gpsimd_dma) return Engine::dma | Engine::gpsimd;
  return kSequencers | Engine::dma;
}

Cost SendRecv::cost(const Costing& costing) const {
  const Timing& t = costing.timing;
  const auto bytes = static_cast<double>(src.elements() * size_of(src.dtype));
  Cost cost;
  if (dma_engine == DmaEngine::gpsimd_dma) {
    Duration time;
    time.add(t.gpsimd.start.value / t.gpsimd.clock.value, t.gpsimd.start.tag);
    time.add(bytes / t.gpsimd.dma_bandwidth.value, t.gpsimd.dma_bandwidth.tag);
    cost.busy = cost.latency = time.total;
    cost.basis = time.basis;
  } else {
    DmaWork work;
    Duration time;
    add_transfer(costing, dst, src, {}, work, time);
    cost = dma_cost(costing, DgeMode::unknown, false, work, time);
    cost.latency += picoseconds(t.dma.start_latency.value) + time.total;
    cost.basis[t.dma.start_latency.tag] += picoseconds(t.dma.start_latency.value);
  }
  cost.calibrated = false;
  return cost;
}

Meeting::Key SendRecv::key(const Core&) const { return {name(), {pipe_id}}; }

std::vector<int> SendRecv::participants(const Core& core) const { return cores_of_logical_core(core); }

void SendRecv::meet(std::span<Core* const> cores, std::span<const Meeting* const> instructions) const {
  const auto at = [&](std::size_t c) -> const SendRecv& {
    return static_cast<const SendRecv&>(*instructions[c]);
  };
  for (std::size_t c = 0; c < cores.size(); ++c) {
    const SendRecv& mine = at(c);
    const SendRecv& theirs = at(static_cast<std::size_t>(mine.send_to_rank));
    if (theirs.recv_from_rank != static_cast<std::int64_t>(c))
      cores[c]->report(Severity::kernel_error, "exchange", "send_to_rank",
                       fmt::format("core {} sends to core {}, which receives from core {}", c,
                                   mine.send_to_rank, theirs.recv_from_rank));
    if (theirs.dma_engine != mine.dma_engine)
      cores[c]->report(
          Severity::kernel_error, "exchange", "dma_engine",
          fmt::format("is {} here and {} on core {}",
                      names_of(DmaEngine{})[static_cast<std::size_t>(mine.dma_engine)],
                      names_of(DmaEngine{})[static_cast<std::size_t>(theirs.dma_engine)], mine.send_to_rank));
    if (theirs.dst.shape() != mine.src.shape() || theirs.dst.dtype != mine.src.dtype)
      cores[c]->report(Severity::kernel_error, "exchange", "src",
                       fmt::format("is {} {}, but dst of core {} is {} {}", headway::name_of(mine.src.dtype),
                                   to_string(mine.src.shape()), mine.send_to_rank,
                                   headway::name_of(theirs.dst.dtype), to_string(theirs.dst.shape())));
  }
  std::vector<Sent> sent;
  for (std::size_t c = 0; c < cores.size(); ++c) sent.push_back(send(*cores[c], "src", at(c).src));
  for (std::size_t c = 0; c < cores.size(); ++c)
    receive(*cores[c], "dst", at(c).dst, sent[static_cast<std::size_t>(at(c).recv_from_rank)].pattern());
}

void sendrecv(const Tile& src, const Tile& dst, std::int64_t send_to_rank, std::int64_t recv_from_rank,
              std::int64_t pipe_id, const SendRecvOptions& options, Here here) {
  record<SendRecv>(src, here, [&](SendRecv& i) {
    i.src = src;
    i.dst = dst;
    i.send_to_rank = send_to_rank;
    i.recv_from_rank = recv_from_rank;
    i.pipe_id = pipe_id;
    i.dma_engine = options.dma_engine;
  });
}

std::span<const Kind> cores_instructions() {
  static const Kind kinds[] = {kind<CoreBarrier>(), kind<SendRecv>()};
  return kinds;
}

}  // namespace headway::chip

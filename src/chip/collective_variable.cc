// Collectives whose sizes only show when they run, and the registers that say which rank is which.
#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "chip/check.h"
#include "chip/collectives.h"
#include "chip/dma_common.h"
#include "chip/machine.h"
#include "chip/meeting.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

// Whether a view's elements follow each other: what counts and displacements are about.
bool is_flat(const View& view) {
  std::int64_t step = 1;
  for (std::size_t d = view.rank; d-- > 0;) {
    if (view.pairs[d].count != 1 && view.pairs[d].step != step) return false;
    step *= view.pairs[d].count;
  }
  return true;
}

// Elements [begin, begin + count) of a flat view.
View flat_part(const View& view, std::int64_t begin, std::int64_t count) {
  View part = view;
  part.pairs = {};
  part.rank = 1;
  part.pairs[0] = {1, static_cast<std::int32_t>(count)};
  part.offset += begin;
  return part;
}

// One number of the metadata: [rows, ranks] in HBM, [1, rows, ranks] in SBUF.
View number_at(const Program& program, const View& metadata, std::int64_t row, std::int64_t column) {
  const bool chip = is_on_chip(program.tensors[metadata.tensor].buffer);
  const View in_row = slice(metadata, chip ? 1 : 0, row, row + 1, 1, chip);
  return slice(in_row, chip ? 2 : 1, column, column + 1, 1, chip);
}

}  // namespace

void AllGatherV::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::update);  // what no chunk covers stays
  replica_group.visit(fields);
  fields.view("metadata_tensor", metadata_tensor, Access::update);
  fields.flag("recv_counts_known", recv_counts_known);
  fields.flag("has_rdispls", has_rdispls);
  fields.integer("priority", priority);
}

void AllGatherV::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_tensors(check, false, Many::one);
  check.require(check.program.num_programs == 2, "lnc", "", "needs LNC 2; this kernel has {} cores",
                check.program.num_programs);
  check.require(!has_rdispls, "rdispls", "has_rdispls",
                "receive displacements are not supported; it must be false");
  if (replica_group.sizes.empty() || srcs.empty() || dsts.empty()) return;
  const std::int64_t ranks = replica_group.sizes[0];
  if (!check.require(ranks == 4, "replica-group", "replica_group", "has groups of {}; they must have 4 ranks",
                     ranks))
    return;
  check.require(is_flat(srcs[0]), "contiguous", "srcs", "is {}; its elements must follow each other",
                to_string(srcs[0], check.tensor_of(srcs[0])));
  check.require(is_flat(dsts[0]), "contiguous", "dsts", "is {}; its elements must follow each other",
                to_string(dsts[0], check.tensor_of(dsts[0])));
  check.require(dsts[0].elements() % ranks == 0, "shape", "dsts",
                "has {} elements, which {} slots can't share", dsts[0].elements(), ranks);
  check.dtype("metadata_tensor", metadata_tensor, {DType::u32});
  check_dma_buffer(check, "metadata_tensor", metadata_tensor);
  const Shape expected = check.buffer(metadata_tensor) == Buffer::sbuf ? Shape{1, 3, ranks} : Shape{3, ranks};
  check.require(
      metadata_tensor.shape() == expected, "shape", "metadata_tensor", "is {}; it must be {}",
      [&] { return to_string(metadata_tensor.shape()); }, to_string(expected));
}

void AllGatherV::exchange(std::span<const Rank> ranks, std::size_t t) const {
  struct Chunk {
    Sent sent;
    std::uint32_t count = 0;
  };
  const std::int64_t slot = dsts[t].elements() / static_cast<std::int64_t>(ranks.size());
  std::vector<Chunk> chunks;
  for (const Rank& rank : ranks) {
    const auto& instruction = static_cast<const AllGatherV&>(*rank.instruction);
    const auto number = [&](std::int64_t row) {
      std::uint32_t value;
      const View at = number_at(rank.core->program(), instruction.metadata_tensor, row, 0);
      std::memcpy(&value, rank.core->read("metadata_tensor", at).base, 4);
      return value;
    };
    Chunk chunk;
    chunk.count = number(0);
    const std::int64_t displacement = number(1), total = instruction.srcs[t].elements();
    if (chunk.count > slot || displacement + chunk.count > total)
      rank.core->report(Severity::kernel_error, "metadata", "metadata_tensor",
                        fmt::format("sends {} elements from {}; srcs has {}, a slot of dsts {}", chunk.count,
                                    displacement, total, slot));
    if (chunk.count > 0)
      chunk.sent = send(*rank.core, "srcs", flat_part(instruction.srcs[t], displacement, chunk.count));
    chunks.push_back(std::move(chunk));
  }
  for (const Rank& rank : ranks) {
    const auto& instruction = static_cast<const AllGatherV&>(*rank.instruction);
    for (std::size_t s = 0; s < chunks.size(); ++s) {
      const Chunk& chunk = chunks[s];
      if (chunk.count > 0)
        receive(*rank.core, "dsts",
                flat_part(instruction.dsts[t], static_cast<std::int64_t>(s) * slot, chunk.count),
                chunk.sent.pattern());
      if (instruction.recv_counts_known) continue;
      const View at =
          number_at(rank.core->program(), instruction.metadata_tensor, 2, static_cast<std::int64_t>(s));
      std::memcpy(rank.core->write("metadata_tensor", at).base, &chunk.count, 4);
    }
  }
}

void AllToAllV::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::update);
  replica_group.visit(fields);
  fields.view("metadata_tensor", metadata_tensor, Access::update);
  fields.flag("recv_counts_known", recv_counts_known);
  fields.flag("has_rdispls", has_rdispls);
  fields.integer("priority", priority);
}
void AllToAllV::check(Check& check) const {
  check.broken(Severity::unsupported, "many-chips", "",
               "joins the ranks of several nodes or, on Trainium3, chips; one chip is modelled");
}
void AllToAllV::exchange(std::span<const Rank>, std::size_t) const {
  throw Bug("all_to_all_v passed its check");
}

void RankId::visit(Fields& fields) { fields.reg("dst", dst, Access::write); }
void RankId::apply(Core& core) const { core.set_register(dst, static_cast<std::uint32_t>(rank_of(core))); }
Engines RankId::engines(const Check&) const { return kSequencers; }

void CollectivePermuteImplicitCurrentProcessingRankId::visit(Fields& fields) {
  fields.reg("dst", dst, Access::write);
  fields.register_or("iteration_id", iteration_id);
  replica_group.visit(fields);
  fields.integer("channel_id", channel_id);
}
void CollectivePermuteImplicitCurrentProcessingRankId::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check.require(channel_id >= 0 && channel_id <= 3, "channels", "channel_id", "is {}; channels are 0 to 3",
                channel_id);
}
void CollectivePermuteImplicitCurrentProcessingRankId::apply(Core& core) const {
  const std::span<const std::int64_t> group = replica_group.group_of(rank_of(core));
  if (group.empty())
    core.report(Severity::kernel_error, "replica-group", "replica_group",
                fmt::format("rank {} is in no group", rank_of(core)));
  const auto size = static_cast<std::int64_t>(group.size());
  std::int64_t at = 0;
  while (group[static_cast<std::size_t>(at)] != rank_of(core)) ++at;
  at = (at - core.value(iteration_id) % size + size) % size;
  core.set_register(dst, static_cast<std::uint32_t>(group[static_cast<std::size_t>(at)]));
}
Engines CollectivePermuteImplicitCurrentProcessingRankId::engines(const Check&) const { return kSequencers; }

}  // namespace headway::chip

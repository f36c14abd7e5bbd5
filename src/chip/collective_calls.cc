// Recording collectives.
#include <fmt/format.h>

#include "base/error.h"
#include "chip/collectives.h"
#include "chip/engine_cost.h"

namespace headway::chip {
namespace {

std::vector<View> views_of(const std::vector<Tile>& tiles) { return {tiles.begin(), tiles.end()}; }

std::vector<View> one_a_channel(const std::vector<std::vector<Tile>>& channels) {
  std::vector<View> views;
  for (const std::vector<Tile>& channel : channels) {
    if (channel.size() != 1)
      throw KernelError(fmt::format("a channel has {} tensors; it must have 1 [coalesced]", channel.size()));
    views.push_back(channel[0]);
  }
  return views;
}

const Tile& first_of(const std::vector<Tile>& tiles) {
  if (tiles.empty()) throw KernelError("a collective needs a tensor [coalesced]");
  return tiles[0];
}
const Tile& first_of(const std::vector<std::vector<Tile>>& channels) {
  if (channels.empty()) throw KernelError("a collective needs a channel [channels]");
  return first_of(channels[0]);
}

template <class I>
void fill(I& i, const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
          const ReplicaGroup& replica_group, std::int64_t priority) {
  i.srcs = views_of(srcs);
  i.dsts = views_of(dsts);
  i.replica_group = replica_group;
  i.priority = priority;
}

}  // namespace

void all_reduce(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                const ReplicaGroup& replica_group, Alu op, const CollectiveOptions& options, Here here) {
  record<AllReduce>(first_of(srcs), here, [&](AllReduce& i) {
    fill(i, srcs, dsts, replica_group, options.priority);
    i.op = op;
  });
}

void all_gather(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                const ReplicaGroup& replica_group, std::int64_t collective_dim,
                const CollectiveOptions& options, Here here) {
  record<AllGather>(first_of(srcs), here, [&](AllGather& i) {
    fill(i, srcs, dsts, replica_group, options.priority);
    i.collective_dim = collective_dim;
  });
}

void reduce_scatter(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                    const ReplicaGroup& replica_group, std::int64_t collective_dim, Alu op,
                    const CollectiveOptions& options, Here here) {
  record<ReduceScatter>(first_of(srcs), here, [&](ReduceScatter& i) {
    fill(i, srcs, dsts, replica_group, options.priority);
    i.collective_dim = collective_dim;
    i.op = op;
  });
}

void all_to_all(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                const ReplicaGroup& replica_group, std::int64_t collective_dim,
                const CollectiveOptions& options, Here here) {
  record<AllToAll>(first_of(srcs), here, [&](AllToAll& i) {
    fill(i, srcs, dsts, replica_group, options.priority);
    i.collective_dim = collective_dim;
  });
}

void collective_permute(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& source_target_pairs,
                        const CollectiveOptions& options, Here here) {
  record<CollectivePermute>(first_of(srcs), here, [&](CollectivePermute& i) {
    fill(i, srcs, dsts, {}, options.priority);
    for (const auto& [source, target] : source_target_pairs) {
      i.source_target_pairs.push_back(source);
      i.source_target_pairs.push_back(target);
    }
  });
}

void collective_permute_implicit(const std::vector<std::vector<Tile>>& srcs_by_channel,
                                 const std::vector<std::vector<Tile>>& dsts_by_channel,
                                 const ReplicaGroup& replica_group, const ChannelOptions& options,
                                 Here here) {
  record<CollectivePermuteImplicit>(first_of(srcs_by_channel), here, [&](CollectivePermuteImplicit& i) {
    i.srcs = one_a_channel(srcs_by_channel);
    i.dsts = one_a_channel(dsts_by_channel);
    i.replica_group = replica_group;
    i.channel_ids = options.channel_ids;
    i.priority = options.priority;
  });
}

void collective_permute_implicit_reduce(const std::vector<std::vector<Tile>>& srcs0_by_channel,
                                        const std::vector<std::vector<Tile>>& srcs1_by_channel,
                                        const std::vector<std::vector<Tile>>& dsts_by_channel,
                                        const ReplicaGroup& replica_group, Alu op,
                                        const ChannelOptions& options, Here here) {
  record<CollectivePermuteImplicitReduce>(first_of(srcs0_by_channel), here,
                                          [&](CollectivePermuteImplicitReduce& i) {
                                            i.srcs = one_a_channel(srcs0_by_channel);
                                            i.srcs1 = one_a_channel(srcs1_by_channel);
                                            i.dsts = one_a_channel(dsts_by_channel);
                                            i.replica_group = replica_group;
                                            i.op = op;
                                            i.channel_ids = options.channel_ids;
                                            i.priority = options.priority;
                                          });
}

void all_gather_v(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                  const ReplicaGroup& replica_group, const Tile& metadata_tensor,
                  const VariableOptions& options, Here here) {
  record<AllGatherV>(first_of(srcs), here, [&](AllGatherV& i) {
    fill(i, srcs, dsts, replica_group, options.priority);
    i.metadata_tensor = metadata_tensor;
    i.recv_counts_known = options.recv_counts_known;
    i.has_rdispls = options.has_rdispls;
  });
}

void all_to_all_v(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                  const ReplicaGroup& replica_group, const Tile& metadata_tensor,
                  const VariableOptions& options, Here here) {
  record<AllToAllV>(first_of(srcs), here, [&](AllToAllV& i) {
    fill(i, srcs, dsts, replica_group, options.priority);
    i.metadata_tensor = metadata_tensor;
    i.recv_counts_known = options.recv_counts_known;
    i.has_rdispls = options.has_rdispls;
  });
}

Cost RankId::cost(const Costing& costing) const { return fixed_cost(costing.timing.word_write); }

Register rank_id(Recorder& nki, Here here) {
  auto instruction = std::make_unique<RankId>();
  const Register dst = instruction->dst = nki.new_register();
  nki.record(std::move(instruction), here);
  return dst;
}

Cost CollectivePermuteImplicitCurrentProcessingRankId::cost(const Costing& costing) const {
  return fixed_cost(costing.timing.word_write);
}

Register collective_permute_implicit_current_processing_rank_id(Recorder& nki, RegisterOr iteration_id,
                                                                const ReplicaGroup& replica_group,
                                                                std::int64_t channel_id, Here here) {
  auto instruction = std::make_unique<CollectivePermuteImplicitCurrentProcessingRankId>();
  const Register dst = instruction->dst = nki.new_register();
  instruction->iteration_id = iteration_id;
  instruction->replica_group = replica_group;
  instruction->channel_id = channel_id;
  nki.record(std::move(instruction), here);
  return dst;
}

std::span<const Kind> collectives_instructions() {
  static const Kind kinds[] = {
      kind<AllReduce>(),
      kind<AllGather>(),
      kind<AllGatherV>(),
      kind<ReduceScatter>(),
      kind<AllToAll>(),
      kind<AllToAllV>(),
      kind<CollectivePermute>(),
      kind<CollectivePermuteImplicit>(),
      kind<CollectivePermuteImplicitReduce>(),
      kind<CollectivePermuteImplicitCurrentProcessingRankId>(),
      kind<RankId>(),
  };
  return kinds;
}

}  // namespace headway::chip

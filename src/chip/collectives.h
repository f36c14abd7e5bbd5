// nki.collectives: how logical cores, the ranks, exchange tensors. The ranks are those of one launch on one
// chip, numbered from 0. Collectives on shared HBM belong to the whole logical core: all its cores take part,
// and the data moves once. Those on SBUF or private HBM belong to a core: they join the cores of the same
// number within each rank. Decisions in docs/chip/cores.md.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "chip/alu.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// Groups of ranks, of one size and without overlap. The order within a group is that of gathered parts, and
// of rings.
struct ReplicaGroup {
  std::vector<std::int64_t> ranks, sizes;  // group after group, and how many ranks each has

  ReplicaGroup() = default;
  ReplicaGroup(std::initializer_list<std::vector<std::int64_t>> groups);
  // The ranks of the group that has `rank`; none where no group has it.
  std::span<const std::int64_t> group_of(std::int64_t rank) const;
  void visit(Fields& fields);
  // "replica-group". Whether it held.
  bool check(Check& check) const;
};

// What goes where, as far as time is concerned.
enum class Exchange : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, permute };

// What all of them are.
struct Collective : Meeting {
  std::vector<View> srcs, dsts;
  ReplicaGroup replica_group;
  std::int64_t priority = -1;  // of NeuronCore-v4: 0 (highest) to 3; -1: not given

  Engines engines(const Check&) const override { return Engine::dma; }
  Cost cost(const Costing& costing) const override;
  Key key(const Core& core) const override;
  std::vector<int> participants(const Core& core) const override;
  void meet(std::span<Core* const> cores, std::span<const Meeting* const> instructions) const override;

  // A rank of the group, with the core that reads and writes for it.
  struct Rank {
    Core* core;
    const Collective* instruction;
  };

 protected:
  virtual Exchange pattern() const = 0;
  // Ranks that take part with `rank`, in the order of the group; none where the rank is left out by mistake.
  virtual std::vector<std::int64_t> partners(std::int64_t rank) const;
  // Moves tensor (or channel) `t`. `ranks` in the order of `partners`.
  virtual void exchange(std::span<const Rank> ranks, std::size_t t) const = 0;
  virtual const std::vector<View>& more_srcs() const { return srcs; }
  // Whether what the two cores of a group want is the same collective; else says how it differs.
  virtual std::string differs(const Collective& other) const;

  enum class Many : std::uint8_t { one, in_hbm, channels };  // how many tensors
  // What holds for the operands of all collectives. Fields are named with `suffix`: "_by_channel".
  void check_tensors(Check& check, bool sbuf, Many many, std::string_view suffix = "") const;
  // "shape": each dst is its src with extent `dim` times `factor` (over `divisor`).
  void check_shapes(Check& check, std::size_t dim, std::int64_t factor, std::int64_t divisor) const;
};

// dsts = op over the ranks' srcs, in float32 in the order of the group.
struct AllReduce : Collective {
  Alu op = Alu::add;  // add, minimum or maximum
  std::string_view name() const override { return "all_reduce"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::all_reduce; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
  std::string differs(const Collective& other) const override;
};
struct CollectiveOptions {
  std::int64_t priority = -1;
};
void all_reduce(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                const ReplicaGroup& replica_group, Alu op, const CollectiveOptions& options = {},
                Here here = Here::current());

// dsts = the ranks' srcs one after another along collective_dim: 0 in HBM, 0 or 1 of 2-D tiles in SBUF.
struct AllGather : Collective {
  std::int64_t collective_dim = 0;
  std::string_view name() const override { return "all_gather"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::all_gather; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
  std::string differs(const Collective& other) const override;
};
void all_gather(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                const ReplicaGroup& replica_group, std::int64_t collective_dim,
                const CollectiveOptions& options = {}, Here here = Here::current());

// dsts of the group's rank i = part i along dimension 0 of what all_reduce would give.
struct ReduceScatter : Collective {
  std::int64_t collective_dim = 0;
  Alu op = Alu::add;
  std::string_view name() const override { return "reduce_scatter"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::reduce_scatter; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
  std::string differs(const Collective& other) const override;
};
void reduce_scatter(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                    const ReplicaGroup& replica_group, std::int64_t collective_dim, Alu op,
                    const CollectiveOptions& options = {}, Here here = Here::current());

// Part i of dsts of the group's rank j = part j of srcs of rank i, along dimension 0. HBM.
struct AllToAll : Collective {
  std::int64_t collective_dim = 0;
  std::string_view name() const override { return "all_to_all"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::all_to_all; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
};
void all_to_all(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                const ReplicaGroup& replica_group, std::int64_t collective_dim,
                const CollectiveOptions& options = {}, Here here = Here::current());

// dsts of `target` = srcs of `source`, for each pair. Ranks that are no target keep what they have. HBM, one
// tensor.
struct CollectivePermute : Collective {
  std::vector<std::int64_t> source_target_pairs;  // source, target, source, target ...
  std::string_view name() const override { return "collective_permute"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::permute; }
  std::vector<std::int64_t> partners(std::int64_t rank) const override;
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
  std::string differs(const Collective& other) const override;
};
void collective_permute(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& source_target_pairs,
                        const CollectiveOptions& options = {}, Here here = Here::current());

// dsts of a rank's successor in the group (the last one's is the first) = its srcs, or op of its two srcs.
// One tensor a channel.
struct CollectivePermuteImplicit : Collective {
  std::vector<std::int64_t> channel_ids = {0};
  std::string_view name() const override { return "collective_permute_implicit"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::permute; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
};
struct ChannelOptions {
  std::vector<std::int64_t> channel_ids = {0};
  std::int64_t priority = -1;
};
void collective_permute_implicit(const std::vector<std::vector<Tile>>& srcs_by_channel,
                                 const std::vector<std::vector<Tile>>& dsts_by_channel,
                                 const ReplicaGroup& replica_group, const ChannelOptions& options = {},
                                 Here here = Here::current());
struct CollectivePermuteImplicitReduce : Collective {
  std::vector<View> srcs1;  // `srcs` are NKI's srcs0
  Alu op = Alu::add;
  std::vector<std::int64_t> channel_ids = {0};
  std::string_view name() const override { return "collective_permute_implicit_reduce"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::permute; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
  const std::vector<View>& more_srcs() const override { return srcs1; }
  std::string differs(const Collective& other) const override;
};
void collective_permute_implicit_reduce(const std::vector<std::vector<Tile>>& srcs0_by_channel,
                                        const std::vector<std::vector<Tile>>& srcs1_by_channel,
                                        const std::vector<std::vector<Tile>>& dsts_by_channel,
                                        const ReplicaGroup& replica_group, Alu op,
                                        const ChannelOptions& options = {}, Here here = Here::current());

// Each rank's chunk src[displ, displ + count), its size known only when it runs, to slot s of everybody's
// dst, s its place in the group. `metadata` is uint32 [3, ranks] in HBM or [1, 3, ranks] in SBUF: count,
// displacement (first column of rows 0 and 1), and the received counts, which are written unless
// recv_counts_known. LNC 2, groups of 4, HBM, one tensor.
struct AllGatherV : Collective {
  View metadata_tensor;
  bool recv_counts_known = false, has_rdispls = false;
  std::string_view name() const override { return "all_gather_v"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::all_gather; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
};
struct VariableOptions {
  bool recv_counts_known = false, has_rdispls = false;
  std::int64_t priority = -1;
};
void all_gather_v(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                  const ReplicaGroup& replica_group, const Tile& metadata_tensor,
                  const VariableOptions& options = {}, Here here = Here::current());

// Refused as unsupported: it joins ranks of several nodes or chips.
struct AllToAllV : Collective {
  View metadata_tensor;
  bool recv_counts_known = false, has_rdispls = false;
  std::string_view name() const override { return "all_to_all_v"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;

 protected:
  Exchange pattern() const override { return Exchange::all_to_all; }
  void exchange(std::span<const Rank> ranks, std::size_t t) const override;
};
void all_to_all_v(const std::vector<Tile>& srcs, const std::vector<Tile>& dsts,
                  const ReplicaGroup& replica_group, const Tile& metadata_tensor,
                  const VariableOptions& options = {}, Here here = Here::current());

// dst = the rank of the core's logical core.
struct RankId : Instruction {
  Register dst;
  std::string_view name() const override { return "rank_id"; }
  void visit(Fields& fields) override;
  void check(Check&) const override {}
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
Register rank_id(Recorder& nki, Here here = Here::current());

// dst = the rank whose data is at hand after `iteration_id` rounds of the ring: its own, its predecessor's,
// and so on.
struct CollectivePermuteImplicitCurrentProcessingRankId : Instruction {
  Register dst;
  RegisterOr iteration_id;
  ReplicaGroup replica_group;
  std::int64_t channel_id = 0;
  std::string_view name() const override { return "collective_permute_implicit_current_processing_rank_id"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
Register collective_permute_implicit_current_processing_rank_id(Recorder& nki, RegisterOr iteration_id,
                                                                const ReplicaGroup& replica_group,
                                                                std::int64_t channel_id = 0,
                                                                Here here = Here::current());

std::span<const Kind> collectives_instructions();

}  // namespace headway::chip

#include "chip/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "chip/check.h"
#include "chip/dma_common.h"
#include "chip/machine.h"
#include "chip/meeting.h"
#include "chip/strided_copy.h"

namespace headway::chip {
namespace {

bool is_shared(const Program& program, const View& view) {
  return program.tensors[view.tensor].buffer == Buffer::shared_hbm;
}

// Ranks of a chip whose logical cores are as large as the program's.
std::int64_t ranks_of_chip(const Check& check) { return check.spec.cores / check.program.num_programs; }

void check_op(Check& check, Alu op) {
  check.require(op == Alu::add || op == Alu::minimum || op == Alu::maximum, "reduce-op", "op",
                "is {}; collectives reduce by add, minimum or maximum",
                names_of(op)[static_cast<std::size_t>(op)]);
}

void check_dim(Check& check, std::int64_t dim, std::int64_t most, std::string_view where) {
  check.require(dim >= 0 && dim <= most, "collective-dim", "collective_dim", "is {}; {} it must be {}", dim,
                where, most == 0 ? "0" : "0 or 1");
}

void check_channels(Check& check, const std::vector<std::int64_t>& ids, std::size_t tensors,
                    const ReplicaGroup& group) {
  std::vector<std::int64_t> consecutive(ids.size());
  std::iota(consecutive.begin(), consecutive.end(), 0);
  check.require(ids == consecutive, "channels", "channel_ids", "are {}; they must be 0, 1, 2 ...",
                to_string(Shape(ids)));
  check.require(ids.size() == tensors, "channels", "channel_ids", "has {} channels for {} tensors",
                ids.size(), tensors);
  const bool whole =
      static_cast<std::int64_t>(group.sizes.empty() ? 0 : group.sizes[0]) == ranks_of_chip(check);
  const std::size_t most = whole ? 4 : 2;
  check.require(ids.size() <= most, "channels", "channel_ids", "has {} channels; there are {} {}", ids.size(),
                most, whole ? "for a group of all ranks" : "unless a group has all ranks of the chip");
}

// op over the ranks' elements, in float32, rank after rank.
std::vector<float> reduce_over(std::span<const Collective::Rank> ranks, Alu op, std::size_t t) {
  std::vector<Pattern> from;
  for (const Collective::Rank& rank : ranks) {
    const View& view = rank.instruction->srcs[t];
    from.push_back(merged(pattern_of(view, rank.core->read("srcs", view))));
  }
  const std::int64_t count = from[0].elements(), pieces = (count + kMovePiece - 1) / kMovePiece;
  std::vector<float> result(static_cast<std::size_t>(count));
  Core& core = *ranks[0].core;
  core.for_rows(pieces, count, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* next = core.scratch(thread, kMovePiece);
    for (std::int64_t at = begin * kMovePiece; at < std::min(end * kMovePiece, count); at += kMovePiece) {
      const std::int64_t n = std::min(kMovePiece, count - at);
      float* sum = result.data() + at;
      load(from[0], at, n, sum);
      for (std::size_t r = 1; r < from.size(); ++r) {
        load(from[r], at, n, next);
        alu_row(op, sum, next, sum, n);
      }
    }
  });
  return result;
}

Pattern part_of(const std::vector<float>& values, std::int64_t begin, std::int64_t count) {
  auto* p = const_cast<float*>(values.data()) + begin;
  return packed_pattern(reinterpret_cast<std::byte*>(p), DType::f32, count);
}

Pattern part_of(const Sent& sent, std::int64_t begin, std::int64_t count) {
  Pattern pattern = sent.pattern();
  pattern.base += begin * pattern.element_bytes;
  pattern.counts[0] = count;
  return pattern;
}

View part_of(const Program& program, const View& view, int dim, std::int64_t index, std::int64_t extent) {
  return slice(view, dim, index * extent, (index + 1) * extent, 1,
               is_on_chip(program.tensors[view.tensor].buffer));
}

std::vector<Sent> send_all(std::span<const Collective::Rank> ranks, std::size_t t) {
  std::vector<Sent> sent;
  for (const Collective::Rank& rank : ranks)
    sent.push_back(send(*rank.core, "srcs", rank.instruction->srcs[t]));
  return sent;
}

// To the next of the ring.
void pass_on(std::span<const Collective::Rank> ranks, std::size_t t, const std::vector<Sent>& sent) {
  for (std::size_t r = 0; r < ranks.size(); ++r)
    receive(*ranks[r].core, "dsts", ranks[r].instruction->dsts[t],
            sent[(r + ranks.size() - 1) % ranks.size()].pattern());
}

std::string differing(std::string_view what, std::string_view mine, std::string_view theirs) {
  return fmt::format("{} is {} here and {} there", what, mine, theirs);
}

std::string op_differs(Alu a, Alu b) {
  if (a == b) return "";
  return differing("op", names_of(a)[static_cast<std::size_t>(a)], names_of(b)[static_cast<std::size_t>(b)]);
}

}  // namespace

// --- Groups ---

ReplicaGroup::ReplicaGroup(std::initializer_list<std::vector<std::int64_t>> groups) {
  for (const std::vector<std::int64_t>& group : groups) {
    ranks.insert(ranks.end(), group.begin(), group.end());
    sizes.push_back(static_cast<std::int64_t>(group.size()));
  }
}

std::span<const std::int64_t> ReplicaGroup::group_of(std::int64_t rank) const {
  const std::int64_t* group = ranks.data();
  for (std::int64_t size : sizes) {
    if (std::find(group, group + size, rank) != group + size) return {group, static_cast<std::size_t>(size)};
    group += size;
  }
  return {};
}

void ReplicaGroup::visit(Fields& fields) {
  fields.integers("replica_group", ranks);
  fields.integers("replica_group_sizes", sizes);
}

bool ReplicaGroup::check(Check& check) const {
  const auto count = static_cast<std::int64_t>(ranks.size());
  std::int64_t total = 0;
  bool sound = !sizes.empty();
  for (std::int64_t size : sizes) {
    sound &= size >= 1 && size <= count;
    if (sound) total += size;
  }
  if (!check.require(sound && total == count, "replica-group", "replica_group",
                     "groups of {} ranks don't make {} ranks", to_string(Shape(sizes)), count))
    return false;
  bool held = check.require(
      std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size == sizes[0]; }),
      "replica-group", "replica_group", "the groups have {} ranks; all must have as many",
      to_string(Shape(sizes)));
  std::set<std::int64_t> seen;
  for (std::int64_t rank : ranks) {
    held &= check.require(rank >= 0 && rank < ranks_of_chip(check), "replica-group", "replica_group",
                          "has rank {}; a {} chip has ranks 0 to {} with {} cores each", rank,
                          check.spec.name, ranks_of_chip(check) - 1, check.program.num_programs);
    held &= check.require(seen.insert(rank).second, "replica-group", "replica_group",
                          "has rank {} more than once", rank);
  }
  return held;
}

// --- What all collectives are ---

void Collective::check_tensors(Check& check, bool sbuf, Many many, std::string_view suffix) const {
  const bool two = &more_srcs() != &srcs;
  const std::string srcs_name = fmt::format("srcs{}{}", two ? "0" : "", suffix),
                    srcs1_name = fmt::format("srcs1{}", suffix), dsts_name = fmt::format("dsts{}", suffix);
  check_priority(check, priority);
  if (!check.require(!srcs.empty() && srcs.size() == dsts.size() && more_srcs().size() == srcs.size(),
                     "coalesced", dsts_name,
                     "has {} tensors for {} sources; they must be as many, at least 1", dsts.size(),
                     srcs.size()))
    return;
  const Buffer buffer = check.buffer(srcs[0]);
  const auto each = [&](std::string_view name, const View& view) {
    if (sbuf) {
      check_dma_buffer(check, name, view);
    } else {
      check.in(name, view, {Buffer::private_hbm, Buffer::shared_hbm});
    }
    check.require(check.buffer(view) == buffer, "buffer-mix", name,
                  "'{}' lies in {}, another in {}; all must lie in one", check.tensor_of(view).name,
                  name_of(check.buffer(view)), name_of(buffer));
    check.require(check.tensor_of(view).role == Role::internal, "collective-io", name,
                  "'{}' is an argument or a result of the kernel; collectives take tensors of its own, to or "
                  "from which "
                  "it is copied",
                  check.tensor_of(view).name);
    check.require(!by_index(check.program, view), "index", name, "collectives take no rows by index");
    check.computable(name, view);
  };
  for (const View& view : srcs) each(srcs_name, view);
  if (two)
    for (const View& view : more_srcs()) each(srcs1_name, view);
  for (std::size_t t = 0; t < dsts.size(); ++t) {
    each(dsts_name, dsts[t]);
    check_distinct(check, dsts_name, dsts[t]);
    check.same_dtype(dsts_name, dsts[t], srcs_name, srcs[t]);
    // Those of one call move at the same time.
    for (std::size_t other = 0; other < dsts.size(); ++other) {
      if (other == t) continue;
      check.disjoint(dsts_name, dsts[t], srcs_name, srcs[other]);
      if (other > t) check.disjoint(dsts_name, dsts[t], dsts_name, dsts[other]);
    }
  }
  if (srcs.size() == 1 || many == Many::channels) return;
  check.require(many == Many::in_hbm, "coalesced", srcs_name, "has {} tensors; it may have 1", srcs.size());
  check.require(many == Many::one || is_hbm(buffer), "coalesced", srcs_name,
                "has {} tensors; in SBUF it may have 1", srcs.size());
}

void Collective::check_shapes(Check& check, std::size_t dim, std::int64_t factor,
                              std::int64_t divisor) const {
  for (std::size_t t = 0; t < std::min(srcs.size(), dsts.size()); ++t) {
    Shape expected = srcs[t].shape();
    if (dim >= expected.size()) return;
    check.require(expected[dim] % divisor == 0, "shape", "srcs", "is {}; its extent {} doesn't split into {}",
                  to_string(expected), dim, divisor);
    expected[dim] = expected[dim] * factor / divisor;
    check.require(
        dsts[t].shape() == expected, "shape", "dsts", "is {}; for srcs {} it must be {}",
        [&] { return to_string(dsts[t].shape()); }, [&] { return to_string(srcs[t].shape()); },
        to_string(expected));
  }
}

std::vector<std::int64_t> Collective::partners(std::int64_t rank) const {
  const std::span<const std::int64_t> group = replica_group.group_of(rank);
  return {group.begin(), group.end()};
}

std::vector<int> Collective::participants(const Core& core) const {
  const std::vector<std::int64_t> ranks = partners(rank_of(core));
  const int lnc = core.machine().lnc(), local = local_number(core);
  const bool shared = is_shared(core.program(), srcs[0]);
  std::vector<int> cores;
  for (std::int64_t rank : ranks) {
    if (rank >= core.machine().ranks()) return {core.number()};  // `meet` says so
    for (int c = 0; c < lnc; ++c)
      if (shared || c == local) cores.push_back(static_cast<int>(rank) * lnc + c);
  }
  if (cores.empty()) return shared ? cores_of_logical_core(core) : std::vector<int>{core.number()};
  std::sort(cores.begin(), cores.end());
  return cores;
}

Meeting::Key Collective::key(const Core& core) const { return {name(), partners(rank_of(core))}; }

std::string Collective::differs(const Collective& other) const {
  if (srcs.size() != other.srcs.size())
    return differing("the number of tensors", fmt::to_string(srcs.size()), fmt::to_string(other.srcs.size()));
  for (std::size_t t = 0; t < srcs.size(); ++t) {
    if (srcs[t].shape() != other.srcs[t].shape())
      return differing("the shape of srcs", to_string(srcs[t].shape()), to_string(other.srcs[t].shape()));
    if (srcs[t].dtype != other.srcs[t].dtype)
      return differing("the dtype of srcs", headway::name_of(srcs[t].dtype),
                       headway::name_of(other.srcs[t].dtype));
  }
  return "";
}

namespace {

// Whether two cores of a logical core name the same elements of shared HBM.
bool same_shared(const Program& a_program, const View& a, const Program& b_program, const View& b) {
  if (shared_position(a_program, a.tensor) != shared_position(b_program, b.tensor)) return false;
  View moved = b;
  moved.tensor = a.tensor;
  moved.dynamic = a.dynamic;
  return a == moved && (a.dynamic >= 0) == (b.dynamic >= 0);
}

bool same_shared(const Program& a_program, const std::vector<View>& a, const Program& b_program,
                 const std::vector<View>& b) {
  for (std::size_t t = 0; t < a.size(); ++t)
    if (!same_shared(a_program, a[t], b_program, b[t])) return false;
  return a.size() == b.size();
}

}  // namespace

void Collective::meet(std::span<Core* const> cores, std::span<const Meeting* const> instructions) const {
  const std::vector<std::int64_t> order = partners(rank_of(*cores[0]));
  if (order.empty())
    cores[0]->report(Severity::kernel_error, "replica-group", "replica_group",
                     fmt::format("rank {} is in no group", rank_of(*cores[0])));
  std::vector<Rank> ranks;
  for (std::int64_t rank : order) {
    if (rank >= cores[0]->machine().ranks())
      cores[0]->report(Severity::kernel_error, "replica-group", "replica_group",
                       fmt::format("has rank {}; this launch has {}", rank, cores[0]->machine().ranks()));
    std::optional<Rank> speaker;
    for (std::size_t c = 0; c < cores.size(); ++c) {
      if (rank_of(*cores[c]) != rank) continue;
      const auto& instruction = static_cast<const Collective&>(*instructions[c]);
      const std::string difference = instruction.differs(*this);
      if (!difference.empty())
        cores[c]->report(Severity::kernel_error, "collective-mismatch", "",
                         fmt::format("{} (core {} here, core {} there)", difference, cores[c]->number(),
                                     cores[0]->number()));
      if (!speaker) {
        speaker = {cores[c], &instruction};
      } else if (!same_shared(speaker->core->program(), speaker->instruction->srcs, cores[c]->program(),
                              instruction.srcs) ||
                 !same_shared(speaker->core->program(), speaker->instruction->dsts, cores[c]->program(),
                              instruction.dsts)) {
        cores[c]->report(
            Severity::kernel_error, "collective-mismatch", "srcs",
            fmt::format("core {} names other shared tensors than core {} of the same logical core",
                        cores[c]->number(), speaker->core->number()));
      }
    }
    ranks.push_back(*speaker);
  }
  for (std::size_t t = 0; t < srcs.size(); ++t) exchange(ranks, t);
}

// --- all_reduce, reduce_scatter ---

void AllReduce::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::write);
  replica_group.visit(fields);
  fields.choice("op", op);
  fields.integer("priority", priority);
}
void AllReduce::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_tensors(check, true, Many::in_hbm);
  check_shapes(check, 0, 1, 1);
  check_op(check, op);
}
void AllReduce::exchange(std::span<const Rank> ranks, std::size_t t) const {
  const std::vector<float> values = reduce_over(ranks, op, t);
  for (const Rank& rank : ranks)
    receive(*rank.core, "dsts", rank.instruction->dsts[t],
            part_of(values, 0, static_cast<std::int64_t>(values.size())));
}
std::string AllReduce::differs(const Collective& other) const {
  const std::string text = Collective::differs(other);
  return text.empty() ? op_differs(op, static_cast<const AllReduce&>(other).op) : text;
}

void ReduceScatter::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::write);
  replica_group.visit(fields);
  fields.integer("collective_dim", collective_dim);
  fields.choice("op", op);
  fields.integer("priority", priority);
}
void ReduceScatter::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_tensors(check, true, Many::in_hbm);
  check_dim(check, collective_dim, 0, "for reduce_scatter");
  if (!replica_group.sizes.empty())
    check_shapes(check, 0, 1, std::max<std::int64_t>(1, replica_group.sizes[0]));
  check_op(check, op);
}
void ReduceScatter::exchange(std::span<const Rank> ranks, std::size_t t) const {
  const std::vector<float> values = reduce_over(ranks, op, t);
  const auto n = static_cast<std::int64_t>(values.size() / ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    receive(*ranks[r].core, "dsts", ranks[r].instruction->dsts[t],
            part_of(values, static_cast<std::int64_t>(r) * n, n));
}
std::string ReduceScatter::differs(const Collective& other) const {
  const std::string text = Collective::differs(other);
  return text.empty() ? op_differs(op, static_cast<const ReduceScatter&>(other).op) : text;
}

// --- all_gather, all_to_all ---

void AllGather::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::write);
  replica_group.visit(fields);
  fields.integer("collective_dim", collective_dim);
  fields.integer("priority", priority);
}
void AllGather::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_tensors(check, true, Many::in_hbm);
  if (srcs.empty() || replica_group.sizes.empty()) return;
  if (check.buffer(srcs[0]) == Buffer::sbuf) {
    check_dim(check, collective_dim, 1, "in SBUF");
    check.require(srcs[0].rank == 2, "shape", "srcs", "has {} extents; in SBUF it must have 2", srcs[0].rank);
  } else {
    check_dim(check, collective_dim, 0, "in HBM");
  }
  if (collective_dim == 0 || collective_dim == 1)
    check_shapes(check, static_cast<std::size_t>(collective_dim), replica_group.sizes[0], 1);
}
void AllGather::exchange(std::span<const Rank> ranks, std::size_t t) const {
  const std::vector<Sent> sent = send_all(ranks, t);
  const auto dim = static_cast<std::size_t>(collective_dim);
  for (const Rank& rank : ranks)
    for (std::size_t r = 0; r < ranks.size(); ++r)
      receive(*rank.core, "dsts",
              part_of(rank.core->program(), rank.instruction->dsts[t], static_cast<int>(dim),
                      static_cast<std::int64_t>(r), sent[r].shape[dim]),
              sent[r].pattern());
}
std::string AllGather::differs(const Collective& other) const {
  const std::string text = Collective::differs(other);
  const std::int64_t theirs = static_cast<const AllGather&>(other).collective_dim;
  if (!text.empty() || collective_dim == theirs) return text;
  return differing("collective_dim", fmt::to_string(collective_dim), fmt::to_string(theirs));
}

void AllToAll::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::write);
  replica_group.visit(fields);
  fields.integer("collective_dim", collective_dim);
  fields.integer("priority", priority);
}
void AllToAll::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_tensors(check, false, Many::in_hbm);
  check_dim(check, collective_dim, 0, "for all_to_all");
  if (replica_group.sizes.empty()) return;
  const std::int64_t n = std::max<std::int64_t>(1, replica_group.sizes[0]);
  check_shapes(check, 0, n, n);
}
void AllToAll::exchange(std::span<const Rank> ranks, std::size_t t) const {
  const std::vector<Sent> sent = send_all(ranks, t);
  const auto parts = static_cast<std::int64_t>(ranks.size());
  for (std::int64_t r = 0; r < parts; ++r) {
    const Rank& rank = ranks[static_cast<std::size_t>(r)];
    const std::int64_t extent = sent[0].shape[0] / parts, n = sent[0].elements() / parts;
    for (std::int64_t from = 0; from < parts; ++from)
      receive(*rank.core, "dsts", part_of(rank.core->program(), rank.instruction->dsts[t], 0, from, extent),
              part_of(sent[static_cast<std::size_t>(from)], r * n, n));
  }
}

// --- Permutations ---

void CollectivePermute::visit(Fields& fields) {
  fields.views("srcs", srcs, Access::read);
  fields.views("dsts", dsts, Access::update);  // where the rank is no target, it keeps what it has
  fields.integers("source_target_pairs", source_target_pairs);
  fields.integer("priority", priority);
}
void CollectivePermute::check(Check& check) const {
  check_tensors(check, false, Many::one);
  check_shapes(check, 0, 1, 1);
  check.require(!source_target_pairs.empty() && source_target_pairs.size() % 2 == 0, "pairs",
                "source_target_pairs", "has {} numbers; it must have a source and a target in each pair",
                source_target_pairs.size());
  std::set<std::int64_t> sources, targets;
  for (std::size_t i = 0; i < source_target_pairs.size(); ++i) {
    const std::int64_t rank = source_target_pairs[i];
    check.require(rank >= 0 && rank < ranks_of_chip(check), "pairs", "source_target_pairs",
                  "has rank {}; a {} chip has ranks 0 to {}", rank, check.spec.name,
                  ranks_of_chip(check) - 1);
    check.require((i % 2 == 0 ? sources : targets).insert(rank).second, "pairs", "source_target_pairs",
                  "has rank {} as a {} more than once", rank, i % 2 == 0 ? "source" : "target");
  }
}
std::vector<std::int64_t> CollectivePermute::partners(std::int64_t rank) const {
  std::set<std::int64_t> ranks(source_target_pairs.begin(), source_target_pairs.end());
  if (!ranks.contains(rank)) ranks = {rank};  // nothing to send, nothing to wait for
  return {ranks.begin(), ranks.end()};
}
void CollectivePermute::exchange(std::span<const Rank> ranks, std::size_t t) const {
  const auto find = [&](std::int64_t number) {
    return std::find_if(ranks.begin(), ranks.end(),
                        [&](const Rank& rank) { return rank_of(*rank.core) == number; });
  };
  std::vector<Sent> sent;
  for (std::size_t i = 0; i + 1 < source_target_pairs.size(); i += 2)
    if (const auto source = find(source_target_pairs[i]); source != ranks.end())
      sent.push_back(send(*source->core, "srcs", source->instruction->srcs[t]));
  if (sent.empty()) return;
  for (std::size_t i = 0; i + 1 < source_target_pairs.size(); i += 2) {
    const auto target = find(source_target_pairs[i + 1]);
    receive(*target->core, "dsts", target->instruction->dsts[t], sent[i / 2].pattern());
  }
}

std::string CollectivePermute::differs(const Collective& other) const {
  const std::string text = Collective::differs(other);
  const auto& theirs = static_cast<const CollectivePermute&>(other).source_target_pairs;
  if (!text.empty() || source_target_pairs == theirs) return text;
  return differing("source_target_pairs", to_string(Shape(source_target_pairs)), to_string(Shape(theirs)));
}

void CollectivePermuteImplicit::visit(Fields& fields) {
  fields.views("srcs_by_channel", srcs, Access::read);
  fields.views("dsts_by_channel", dsts, Access::write);
  replica_group.visit(fields);
  fields.integers("channel_ids", channel_ids);
  fields.integer("priority", priority);
}
void CollectivePermuteImplicit::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_channels(check, channel_ids, srcs.size(), replica_group);
  check_tensors(check, true, Many::channels, "_by_channel");
  check_shapes(check, 0, 1, 1);
}
void CollectivePermuteImplicit::exchange(std::span<const Rank> ranks, std::size_t t) const {
  pass_on(ranks, t, send_all(ranks, t));
}

void CollectivePermuteImplicitReduce::visit(Fields& fields) {
  fields.views("srcs0_by_channel", srcs, Access::read);
  fields.views("srcs1_by_channel", srcs1, Access::read);
  fields.views("dsts_by_channel", dsts, Access::write);
  replica_group.visit(fields);
  fields.choice("op", op);
  fields.integers("channel_ids", channel_ids);
  fields.integer("priority", priority);
}
void CollectivePermuteImplicitReduce::check(Check& check) const {
  if (!replica_group.check(check)) return;
  check_channels(check, channel_ids, srcs.size(), replica_group);
  check_tensors(check, true, Many::channels, "_by_channel");
  check_shapes(check, 0, 1, 1);
  for (std::size_t t = 0; t < std::min(srcs.size(), srcs1.size()); ++t)
    check.require(
        srcs1[t].shape() == srcs[t].shape(), "shape", "srcs1_by_channel", "is {}, but srcs0_by_channel is {}",
        [&] { return to_string(srcs1[t].shape()); }, [&] { return to_string(srcs[t].shape()); });
  check_op(check, op);
}
void CollectivePermuteImplicitReduce::exchange(std::span<const Rank> ranks, std::size_t t) const {
  std::vector<Sent> sent = send_all(ranks, t);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto& instruction = static_cast<const CollectivePermuteImplicitReduce&>(*ranks[r].instruction);
    const Sent other = send(*ranks[r].core, "srcs1_by_channel", instruction.srcs1[t]);
    float a[kMovePiece], b[kMovePiece];
    const std::int64_t count = other.elements();
    for (std::int64_t at = 0; at < count; at += kMovePiece) {
      const std::int64_t n = std::min(kMovePiece, count - at);
      load(sent[r].pattern(), at, n, a);
      load(other.pattern(), at, n, b);
      alu_row(op, a, b, a, n);
      store(sent[r].pattern(), at, n, a);
    }
  }
  pass_on(ranks, t, sent);
}
std::string CollectivePermuteImplicitReduce::differs(const Collective& other) const {
  const std::string text = Collective::differs(other);
  return text.empty() ? op_differs(op, static_cast<const CollectivePermuteImplicitReduce&>(other).op) : text;
}

}  // namespace headway::chip

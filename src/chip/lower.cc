#include "chip/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "chip/operands.h"

namespace headway::chip {
namespace {

constexpr std::uint32_t kNever = 0xffffffffu;

// The first and last instruction that uses each tensor. What a loop uses of a tensor that was declared before
// it lives through all rounds.
void find_lives(const Program& program, std::vector<Placement>& lives) {
  const std::size_t count = program.instructions.size();
  // Where loops end, by the place of their begin.
  std::vector<std::uint32_t> open;
  std::map<std::uint32_t, std::uint32_t> ends;
  for (std::size_t i = 0; i < count; ++i) {
    const int change = program.instructions[i]->loop_change();
    if (change > 0) open.push_back(static_cast<std::uint32_t>(i));
    if (change < 0 && !open.empty()) {
      ends[open.back()] = static_cast<std::uint32_t>(i);
      open.pop_back();
    }
  }
  open.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& instruction = *program.instructions[i];
    const auto at = static_cast<std::uint32_t>(i);
    if (instruction.loop_change() > 0) open.push_back(at);
    for_each_view(instruction, program, [&](const View& view, Access) {
      Placement& life = lives[view.tensor];
      std::uint32_t first = at, last = at;
      for (std::uint32_t begin : open)
        if (begin >= program.tensors[view.tensor].declared_at) {
          first = begin;
          last = ends.count(begin) ? ends[begin] : static_cast<std::uint32_t>(count - 1);
          break;
        }
      life.first = std::min(life.first, first);
      life.last = life.last == kNever ? last : std::max(life.last, last);
    });
    if (instruction.loop_change() < 0 && !open.empty()) open.pop_back();
  }
}

// The bytes of a partition of one memory, handed out in turns: the search for room goes on where the last one
// was found, so what was freed longest ago comes first.
class Memory {
 public:
  Memory(std::int64_t size, std::int64_t granule) : size_(size), granule_(granule) { free_[0] = size; }

  std::int64_t rounded(std::int64_t bytes) const { return (bytes + granule_ - 1) / granule_ * granule_; }

  // The first byte, or -1.
  std::int64_t take(std::int64_t bytes) {
    bytes = rounded(bytes);
    const std::int64_t from = next_;
    if (const std::int64_t found = search(from, size_, bytes); found >= 0) return found;
    return search(0, size_, bytes);
  }
  // A fixed place; whatever of it is free.
  void take_at(std::int64_t byte, std::int64_t bytes) {
    for (auto it = free_.begin(); it != free_.end();) {
      const auto [begin, end] = *it;
      const std::int64_t low = std::max(begin, byte), high = std::min(end, byte + bytes);
      if (low >= high) {
        ++it;
        continue;
      }
      it = free_.erase(it);
      if (begin < low) free_[begin] = low;
      if (high < end) free_[high] = end;
    }
  }
  void give(std::int64_t byte, std::int64_t bytes) {
    std::int64_t begin = byte, end = byte + rounded(bytes);
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first <= end) {
      end = std::max(end, after->second);
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      auto before = std::prev(after);
      if (before->second >= begin) {
        before->second = std::max(before->second, end);
        return;
      }
    }
    free_[begin] = end;
  }

  // The tensors that had [byte, byte + bytes) last; from now on it is `tensor`.
  template <class F>
  void inherit(std::int64_t byte, std::int64_t bytes, TensorId tensor, F&& f) {
    const std::int64_t end = byte + rounded(bytes);
    auto it = owners_.upper_bound(byte);
    if (it != owners_.begin()) --it;
    while (it != owners_.end() && it->first < end) {
      const std::int64_t begin_of = it->first;
      const Owner owner = it->second;
      if (owner.end <= byte) {
        ++it;
        continue;
      }
      f(owner.tensor);
      it = owners_.erase(it);
      if (begin_of < byte) owners_[begin_of] = {byte, owner.tensor};
      if (owner.end > end) {
        owners_[end] = owner;
        break;
      }
    }
    owners_[byte] = {end, tensor};
  }

 private:
  struct Owner {
    std::int64_t end;
    TensorId tensor;
  };
  std::int64_t search(std::int64_t from, std::int64_t to, std::int64_t bytes) {
    auto it = free_.upper_bound(from);
    if (it != free_.begin() && std::prev(it)->second > from) --it;
    for (; it != free_.end() && it->first < to; ++it) {
      const auto [begin, end] = *it;
      const std::int64_t low = std::max(begin, rounded(from));
      if (low + bytes > end) continue;
      free_.erase(it);
      if (begin < low) free_[begin] = low;
      if (low + bytes < end) free_[low + bytes] = end;
      next_ = low + bytes;
      return low;
    }
    return -1;
  }
  std::int64_t size_, granule_, next_ = 0;
  std::map<std::int64_t, std::int64_t> free_;  // begin to end
  std::map<std::int64_t, Owner> owners_;       // by first byte
};

class Lowering {
 public:
  Lowering(const Program& program, const Spec& spec)
      : program_(program),
        sbuf_(spec.sbuf_usable_bytes, 32),
        psum_(spec.psum_bytes, spec.psum_bank_bytes),
        spec_(spec) {}

  Lowered run() {
    const std::size_t count = program_.tensors.size();
    out_.placements.resize(count);
    for (std::size_t t = 0; t < count; ++t)
      out_.placements[t] = {static_cast<TensorId>(t), 0, 0, 0, 0, kNever, kNever, false};
    find_lives(program_, out_.placements);
    // Tensors in the order in which their lives begin, and of those that live, the order in which they end.
    std::vector<TensorId> order;
    for (std::size_t t = 0; t < count; ++t)
      if (is_on_chip(program_.tensors[t].buffer) && out_.placements[t].first != kNever)
        order.push_back(static_cast<TensorId>(t));
    std::stable_sort(order.begin(), order.end(), [&](TensorId a, TensorId b) {
      return out_.placements[a].first < out_.placements[b].first;
    });
    std::vector<std::pair<TensorId, TensorId>> inherited;  // heir, predecessor
    for (TensorId t : order) {
      release_until(out_.placements[t].first);
      place(t, inherited);
    }
    std::stable_sort(inherited.begin(), inherited.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    out_.predecessors_from.assign(count + 1, 0);
    for (const auto& [heir, from] : inherited) ++out_.predecessors_from[heir + 1];
    for (std::size_t t = 0; t < count; ++t) out_.predecessors_from[t + 1] += out_.predecessors_from[t];
    for (const auto& [heir, from] : inherited) out_.predecessors.push_back(from);
    for (Placement& p : out_.placements)
      if (p.first == kNever) p.first = p.last = 0;
    return std::move(out_);
  }

 private:
  Memory& memory(const Tensor& t) { return t.buffer == Buffer::sbuf ? sbuf_ : psum_; }
  std::int64_t& used(const Tensor& t) { return t.buffer == Buffer::sbuf ? sbuf_used_ : psum_used_; }

  void release_until(std::uint32_t instruction) {
    while (!live_.empty() && live_.begin()->first < instruction) {
      free(live_.begin()->second);
      live_.erase(live_.begin());
    }
  }
  void free(TensorId id) {
    const Tensor& t = program_.tensors[id];
    const Placement& p = out_.placements[id];
    memory(t).give(p.byte, p.bytes);
    used(t) -= p.bytes;
  }

  void place(TensorId id, std::vector<std::pair<TensorId, TensorId>>& inherited) {
    const Tensor& t = program_.tensors[id];
    Placement& p = out_.placements[id];
    p.partitions = static_cast<std::int32_t>(t.partitions());
    p.bytes = t.row_bytes();
    Memory& m = memory(t);
    if (t.address) {  // shares the memory with whoever has the same place; order comes from the bytes
                      // themselves
      p.partition = t.address->partition;
      p.byte = t.address->byte;
      m.take_at(p.byte, p.bytes);
    } else {
      std::int64_t byte = m.take(p.bytes);
      while (byte < 0 && spill_one(id)) byte = m.take(p.bytes);
      if (byte < 0) {
        p.spilled = true;
        out_.spilled.push_back(id);
        return;
      }
      p.byte = byte;
      m.inherit(byte, p.bytes, id, [&](TensorId before) { inherited.emplace_back(id, before); });
    }
    live_.emplace(p.last, id);
    used(t) += p.bytes;
    std::int64_t& peak = t.buffer == Buffer::sbuf ? out_.sbuf_peak : out_.psum_peak;
    peak = std::max(peak, used(t));
  }

  // Takes the live tensor of that memory whose last use is farthest away out of it, unless that is `id`
  // itself.
  bool spill_one(TensorId id) {
    const Tensor& t = program_.tensors[id];
    const Placement& p = out_.placements[id];
    warn(t, id);
    for (auto it = live_.rbegin(); it != live_.rend(); ++it) {
      const Tensor& other = program_.tensors[it->second];
      if (other.buffer != t.buffer || other.address) continue;
      if (it->first <= p.last) return false;
      out_.placements[it->second].spilled = true;
      out_.spilled.push_back(it->second);
      free(it->second);
      live_.erase(std::next(it).base());
      return true;
    }
    return false;
  }

  void warn(const Tensor& t, TensorId id) {
    if (!out_.warnings.empty()) return;
    std::vector<std::pair<std::int64_t, TensorId>> largest;
    for (const auto& [last, live] : live_)
      if (program_.tensors[live].buffer == t.buffer) largest.emplace_back(out_.placements[live].bytes, live);
    std::sort(largest.rbegin(), largest.rend());
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(largest.size(), 4); ++i) {
      const Tensor& other = program_.tensors[largest[i].second];
      const std::string where = program_.where(other.source);
      names += fmt::format("{}'{}' of {} B{}", i ? ", " : "", other.name, largest[i].first,
                           where.empty() ? "" : " (" + where + ")");
    }
    out_.warnings.push_back(
        fmt::format("{} overflows at '{}' of {} B a partition (there are {}): what doesn't fit is spilled to "
                    "HBM. The largest "
                    "live tensors are {}. Smaller tiles, or fewer alive at a time, avoid that",
                    t.buffer == Buffer::sbuf ? "SBUF" : "PSUM", t.name, out_.placements[id].bytes,
                    t.buffer == Buffer::sbuf ? spec_.sbuf_usable_bytes : spec_.psum_bytes, names));
  }

  const Program& program_;
  Memory sbuf_, psum_;
  const Spec& spec_;
  Lowered out_;
  std::int64_t sbuf_used_ = 0, psum_used_ = 0;
  std::multimap<std::uint32_t, TensorId> live_;  // by last use
};

}  // namespace

Lowered lower(const Program& program, const Spec& spec) { return Lowering(program, spec).run(); }

}  // namespace headway::chip

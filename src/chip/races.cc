#include "chip/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "chip/machine.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kPages = 256;    // of a tensor
constexpr std::int64_t kWidePages = 8;  // more make an access wide
constexpr std::size_t kRecent = 8;      // how far back repeated accesses of loops are recognised

}  // namespace

Races::Races(int cores, int lnc) : lnc_(lnc) {
  const auto n = static_cast<std::size_t>(cores);
  clocks_.assign(n, std::vector<Epoch>(n, 0));
  for (std::size_t c = 0; c < n; ++c) clocks_[c][c] = 1;
}

bool Races::known_to_all(const Access& access) const {
  const int first = access.core / lnc_ * lnc_;
  for (int c = first; c < first + lnc_; ++c)
    if (c != access.core && !knows(c, access)) return false;
  return true;
}

void Races::file(History& history, std::uint32_t index) {
  const Footprint& bytes = history.accesses[index].bytes;
  const std::int64_t first = bytes.low / history.page_bytes, last = (bytes.high() - 1) / history.page_bytes;
  if (last - first >= kWidePages) {
    history.wide.push_back(index);
    return;
  }
  if (static_cast<std::int64_t>(history.pages.size()) <= last)
    history.pages.resize(static_cast<std::size_t>(last) + 1);
  for (std::int64_t page = first; page <= last; ++page)
    history.pages[static_cast<std::size_t>(page)].push_back(index);
}

void Races::access(Core& core, std::string_view operand, const View& view, const Block& block,
                   const Storage& storage, bool is_write) {
  History& history = histories_[&storage];
  history.page_bytes = storage.bytes() / kPages + 1;
  if (!block.row_offsets)
    return access(core, operand, view, footprint_of(merged(pattern_of(view, block)), storage.data()), history,
                  storage, is_write);
  for (std::int64_t r = 0; r < block.rows; ++r)
    if (block.row_offsets[r] >= 0)
      access(core, operand, view, footprint_of(row_pattern(block, r), storage.data()), history, storage,
             is_write);
}

void Races::access(Core& core, std::string_view operand, const View& view, const Footprint& bytes,
                   History& history, const Storage& storage, bool is_write) {
  const int number = core.number();
  const Epoch epoch = clocks_[static_cast<std::size_t>(number)][static_cast<std::size_t>(number)];

  const auto look_at = [&](std::uint32_t index) {
    const Access& other = history.accesses[index];
    if (other.core == number || !(other.is_write || is_write) || knows(number, other)) return;
    if (other.bytes.low >= bytes.high() || bytes.low >= other.bytes.high() || !overlap(bytes, other.bytes))
      return;
    const Program& program = core.machine().core(other.core).program();
    const Instruction& instruction = *program.instructions[other.position];
    const std::string where = program.where(instruction.source);
    const std::int64_t low = std::max(bytes.low, other.bytes.low),
                       high = std::min(bytes.high(), other.bytes.high());
    std::string message = fmt::format(
        "core {} {} bytes within {} to {} of '{}', which core {} {} in {} ({}){}; nothing orders the two, a "
        "core_barrier between them would",
        number, is_write ? "writes" : "reads", low, high - 1, core.program().tensors[view.tensor].name,
        other.core, other.is_write ? "writes" : "reads", instruction.name(), other.operand,
        where.empty() ? "" : " at " + where);
    if (!is_write) core.report(Severity::kernel_error, "race", operand, std::move(message));
    const std::byte* p = storage.data() + low;
    pending_.push_back(
        {&core, std::string(operand), std::move(message), &storage, low, {p, p + (high - low)}});
  };
  const std::int64_t first = bytes.low / history.page_bytes, last = (bytes.high() - 1) / history.page_bytes;
  for (std::int64_t page = first; page <= last && page < static_cast<std::int64_t>(history.pages.size());
       ++page)
    for (std::uint32_t index : history.pages[static_cast<std::size_t>(page)])
      // On the first page that both are on.
      if (page == std::max(first, history.accesses[index].bytes.low / history.page_bytes)) look_at(index);
  for (std::uint32_t index : history.wide) look_at(index);

  for (std::size_t back = 1; back <= std::min(kRecent, history.accesses.size()); ++back) {
    const Access& recent = history.accesses[history.accesses.size() - back];
    if (recent.core == number && recent.epoch == epoch && recent.is_write == is_write &&
        recent.bytes == bytes)
      return;
  }
  history.accesses.push_back({bytes, number, epoch, core.position, operand, is_write});
  file(history, static_cast<std::uint32_t>(history.accesses.size() - 1));
}

void Races::settle(bool failed) {
  if (pending_.empty()) return;
  const std::vector<PendingWrite> pending = std::move(pending_);
  pending_.clear();
  if (failed) return;
  for (const PendingWrite& write : pending) {
    const bool same =
        std::memcmp(write.storage->data() + write.low, write.before.data(), write.before.size()) == 0;
    if (same) {
      write.core->report(Severity::warning, "race", write.operand,
                         write.message + ". The bytes were the same already, so it makes no difference here");
    } else {
      write.core->report(Severity::kernel_error, "race", write.operand, write.message);
    }
  }
}

void Races::meet(std::span<Core* const> cores) {
  std::vector<Epoch> joined(clocks_.size(), 0);
  for (const Core* core : cores) {
    const std::vector<Epoch>& clock = clocks_[static_cast<std::size_t>(core->number())];
    for (std::size_t c = 0; c < joined.size(); ++c) joined[c] = std::max(joined[c], clock[c]);
  }
  for (const Core* core : cores) {
    const auto c = static_cast<std::size_t>(core->number());
    clocks_[c] = joined;
    ++clocks_[c][c];
  }
  for (auto& [storage, history] : histories_) {
    const std::size_t before = history.accesses.size();
    std::erase_if(history.accesses, [&](const Access& access) { return known_to_all(access); });
    if (history.accesses.size() == before) continue;
    for (std::vector<std::uint32_t>& page : history.pages) page.clear();
    history.wide.clear();
    for (std::uint32_t index = 0; index < history.accesses.size(); ++index) file(history, index);
  }
}

}  // namespace headway::chip

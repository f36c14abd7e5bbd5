#include "chip/replay_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "base/csv.h"
#include "base/error.h"

namespace headway::chip {
namespace {

// Addresses: PSUM's within a partition, and SBUF's as DMAs see it.
constexpr std::int64_t kPsum = 0x2000000;
constexpr std::int64_t kSbuf = 0x802000000000, kSbufEnd = kSbuf + 128 * RecordedPieces::kPartitionStep;

// Where something is: "file:line".
using Place = std::string;

constexpr std::int64_t kMost = std::int64_t{1} << 40;  // of times and bytes: sums of them don't overflow

[[noreturn]] void refuse(const Place& place, const std::string& rule) {
  throw InputError(place, rule, "Recorded timelines have the form that src/chip/replay_file.h describes");
}

std::int64_t integer(std::string_view text, const Place& place, std::string_view what) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    refuse(place, fmt::format("{} is '{}', must be an integer", what, text));
  return value;
}

// Not negative, and small enough that sums of them stay so.
std::int64_t amount(std::string_view text, const Place& place, std::string_view what) {
  const std::int64_t value = integer(text, place, what);
  if (value < 0 || value > kMost) refuse(place, fmt::format("{} is {}, must be 0 to 2^40", what, value));
  return value;
}

int small(std::string_view text, const Place& place, std::string_view what) {
  const std::int64_t value = integer(text, place, what);
  if (value < 0 || value > 1 << 20) refuse(place, fmt::format("{} is {}, must be 0 to 2^20", what, value));
  return static_cast<int>(value);
}

std::string read_maybe_gzipped(const std::filesystem::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const std::filesystem::path path = folder / (name + ending);
    if (!std::filesystem::exists(path)) continue;
    gzFile file = gzopen(path.c_str(), "rb");  // what isn't compressed is read as it is
    if (!file) throw InputError(path.string(), "can't be opened");
    std::string text;
    char block[1 << 16];
    int got = 0;
    while ((got = gzread(file, block, sizeof block)) > 0) text.append(block, static_cast<std::size_t>(got));
    int state = Z_OK;
    gzerror(file, &state);
    const bool whole = got == 0 && (state == Z_OK || state == Z_STREAM_END);
    gzclose_r(file);
    if (!whole)
      throw InputError(path.string(), "the compressed file is damaged or cut off", "Fetch it again");
    return text;
  }
  throw InputError((folder / name).string(), "is not there, nor with .gz",
                   "A recording is NAME.instructions.csv, NAME.dma.csv and NAME.pe_clock.csv");
}

bool is_sbuf(std::int64_t address) { return address >= kSbuf && address < kSbufEnd; }

Engine engine_named(std::string_view name, const Place& place) {
  constexpr std::pair<std::string_view, Engine> kEngines[] = {{"Tensor", Engine::tensor},
                                                              {"Scalar", Engine::scalar},
                                                              {"Vector", Engine::vector},
                                                              {"GpSimd", Engine::gpsimd},
                                                              {"Sync", Engine::sync}};
  for (const auto& [known, engine] : kEngines)
    if (name == known) return engine;
  refuse(place, fmt::format("'{}' is not an engine", name));
}

DType dtype_in(std::string_view name, const Place& place) {
  if (name == "fp32") return DType::f32;
  if (name == "fp16") return DType::f16;
  if (const auto known = dtype_named(name)) return *known;
  refuse(place, fmt::format("'{}' is not a dtype", name));
}

// "[2048,1][128,1]" -> steps 1, 2048 and counts 1, 128: outermost first.
void pattern(std::string_view text, const Place& place, std::vector<std::int64_t>& steps,
             std::vector<std::int64_t>& counts) {
  for (std::vector<std::int64_t>* list : {&steps, &counts}) {
    const std::size_t close = text.find(']');
    if (!text.starts_with('[') || close == std::string_view::npos)
      refuse(place, fmt::format("'{}' is not a list in brackets", text));
    std::string_view inner = text.substr(1, close - 1);
    while (true) {
      const std::size_t comma = std::min(inner.find(','), inner.size());
      list->insert(list->begin(), integer(inner.substr(0, comma), place, "a step or count"));
      if (comma == inner.size()) break;
      inner.remove_prefix(comma + 1);
    }
    text.remove_prefix(close + 1);
  }
  std::int64_t all = 1;
  for (const std::int64_t count : counts)
    if (count < 1 || (all *= count) > 1 << 24)
      refuse(place, "counts must be positive and their product at most 2^24");
  if (steps.size() != counts.size()) refuse(place, "there are as many steps as counts");
}

// "fp32@0x2003800[1,1][512,1]"; products write float32 and name no dtype.
RecordedOperand operand(std::string_view text, const Place& place) {
  RecordedOperand result;
  const std::size_t sign = text.find('@');
  if (sign != std::string_view::npos) {
    result.dtype = dtype_in(text.substr(0, sign), place);
    text.remove_prefix(sign + 1);
  }
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) refuse(place, fmt::format("'{}' is not an operand", text));
  result.buffer = integer(text.substr(0, open), place, "an address") >= kPsum ? Buffer::psum : Buffer::sbuf;
  std::vector<std::int64_t> steps;
  pattern(text.substr(open), place, steps, result.counts);
  return result;
}

void read_operands(std::string_view text, const Place& place, RecordedInstruction& to) {
  int semaphore = -1;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.starts_with("S[") && word.ends_with(']')) {
      semaphore = small(word.substr(2, word.size() - 3), place, "a semaphore");
    } else if (word.starts_with('(') && semaphore >= 0) {
      const std::size_t close = word.find(')');
      const std::string_view act = close == std::string_view::npos ? "" : word.substr(close + 1);
      if (act.starts_with(">=")) {
        to.waits.push_back({semaphore, amount(act.substr(2), place, "a semaphore's value")});
      } else if (act == "++@complete") {
        to.signals.push_back(semaphore);
      } else {
        refuse(place, fmt::format("'{}' is neither a wait nor a signal", word));
      }
      semaphore = -1;
    } else if (const std::size_t equals = word.find('='); equals != std::string_view::npos) {
      const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
      if (key == "src") to.src = operand(value, place);
      if (key == "dst") to.dst = operand(value, place);
      if (key == "channels") to.partitions = amount(value, place, key);
      if (key == "semaphore") to.semaphore = small(value, place, key);
      if (key == "sem_increment") to.increment = amount(value, place, key);
      if (key == "src_elem_size") to.from.bytes = amount(value, place, key);
      if (key == "dst_elem_size") to.to.bytes = amount(value, place, key);
      if (key == "src_pattern") pattern(value, place, to.from.steps, to.from.counts);
      if (key == "dst_pattern") pattern(value, place, to.to.steps, to.to.counts);
      // HBM goes by a table where the caller owns the tensor, and has no address then.
      if (key == "src_addr_imm") to.from.on_chip = is_sbuf(integer(value, place, key));
      if (key == "dst_addr_imm") to.to.on_chip = is_sbuf(integer(value, place, key));
      if (key == "in_dtype") to.from.dtype = dtype_in(value, place);
      if (key == "out_dtype") to.to.dtype = dtype_in(value, place);
    }
  }
  if (to.partitions < 1 || to.partitions > 128) refuse(place, "channels must be 1 to 128");
  if (!to.is_dma()) return;
  const std::int64_t from = size_of(to.from.dtype), into = size_of(to.to.dtype);
  if (to.semaphore < 0 || to.increment < 1) refuse(place, "a DMA needs semaphore and sem_increment");
  if (to.from.counts.empty() || to.to.counts.empty())
    refuse(place, "a DMA needs src_pattern and dst_pattern");
  if (to.from.bytes < 1 || to.from.bytes % from || to.to.bytes % into ||
      to.from.pieces() * (to.from.bytes / from) != to.to.pieces() * (to.to.bytes / into))
    refuse(place, "both sides of a DMA must have the same number of whole elements");
}

std::vector<RecordedInstruction> read_instructions(std::string_view text, const std::string& file) {
  CsvReader table(text, file,
                  {"start_ns", "duration_ns", "engine", "opcode", "type", "semaphore_wait_ns", "activation",
                   "operands", "pc"});
  std::vector<RecordedInstruction> all;
  while (table.next()) {
    if (table.cell("type").empty()) continue;
    RecordedInstruction one;
    one.line = table.line();
    one.engine = engine_named(table.cell("engine"), table.where());
    one.opcode = table.cell("opcode");
    one.transpose = table.cell("type") == "TRANSPOSE";
    one.pc = table.integer("pc", 0, kMost);
    one.start = table.integer("start_ns", 0, kMost);
    one.duration = table.integer("duration_ns", 0, kMost);
    read_operands(table.cell("operands"), table.where(), one);
    all.push_back(std::move(one));
  }
  if (all.empty()) throw InputError(file, "has no instruction of a kernel: none with a type");
  std::ranges::sort(all, {}, [](const RecordedInstruction& i) { return std::tuple(i.engine, i.pc, i.line); });
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].engine == all[i - 1].engine && all[i].pc == all[i - 1].pc)
      refuse(fmt::format("{}:{}", file, all[i].line),
             fmt::format("pc {} is that of line {} too", all[i].pc, all[i - 1].line));
  return all;
}

std::vector<RecordedPacket> read_packets(std::string_view text, const std::string& file) {
  CsvReader table(
      text, file,
      {"start_ns", "duration_ns", "dma_engine", "queue", "queue_type", "bytes", "transfer_id", "op"});
  std::vector<RecordedPacket> all;
  while (table.next()) {
    const std::string& type = table.cell("queue_type");
    if (type == "instruction") continue;  // the runtime fetching programs
    if (type != "software_dynamic" && type != "hardware_dynamic")
      refuse(table.where(), fmt::format("'{}' is not a queue type", type));
    RecordedPacket packet;
    packet.start = table.integer("start_ns", 0, kMost);
    packet.duration = table.integer("duration_ns", 0, kMost);
    packet.engine = static_cast<int>(table.integer("dma_engine", 0, 1 << 20));
    packet.queue = static_cast<int>(table.integer("queue", 0, 1 << 20));
    packet.software = type == "software_dynamic";
    packet.bytes = table.integer("bytes", 0, kMost);
    all.push_back(packet);
  }
  std::ranges::stable_sort(all, {}, &RecordedPacket::start);
  return all;
}

std::vector<RecordedClock> read_clock(std::string_view text, const std::string& file) {
  CsvReader table(text, file, {"start_ns", "duration_ns", "k", "n"});
  std::vector<RecordedClock> all;
  while (table.next()) {
    const std::int64_t n = table.integer("n", 1, 1 << 20);
    all.push_back({table.integer("start_ns", 0, kMost), table.integer("duration_ns", 0, kMost),
                   static_cast<int>(table.integer("k", 0, n)), static_cast<int>(n)});
  }
  return all;
}

// The transfers of a queue, in order: on each engine a transfer ends with its semaphore.
std::vector<RecordedTransfer> transfers_of(const std::vector<const RecordedPacket*>& packets,
                                           const std::string& file) {
  constexpr std::int64_t kSemaphoreBytes = 4;
  std::map<int, std::size_t> at;  // of an engine: the transfer it works on
  std::set<int> open;
  std::vector<RecordedTransfer> transfers;
  for (const RecordedPacket* packet : packets) {
    const std::size_t index = at[packet->engine];
    if (index == transfers.size()) transfers.push_back({0, packet->start, packet->end(), 0, 0});
    RecordedTransfer& transfer = transfers[index];
    transfer.start = std::min(transfer.start, packet->start);
    transfer.end = std::max(transfer.end, packet->end());
    open.insert(packet->engine);
    if (packet->bytes == kSemaphoreBytes) {
      ++at[packet->engine];
      open.erase(packet->engine);
    } else {
      ++transfer.packets;
      transfer.bytes += packet->bytes;
    }
  }
  if (!open.empty())
    throw InputError(file,
                     fmt::format("engine {}'s last transfer on queue {} has no end: no packet of 4 bytes",
                                 *open.begin(), packets.front()->queue));
  return transfers;
}

// Each queue is fed by one engine: software's by GpSimd, the others by the engine that has as many triggers,
// each of them before the packets that it starts.
std::vector<RecordedTransfer> match(const Recording& recording, const std::string& file) {
  std::map<int, std::vector<const RecordedPacket*>> queues;
  for (const RecordedPacket& packet : recording.packets) queues[packet.queue].push_back(&packet);
  std::map<Engine, std::vector<std::size_t>> triggers;
  for (std::size_t i = 0; i < recording.instructions.size(); ++i)
    if (recording.instructions[i].is_dma()) triggers[recording.instructions[i].engine].push_back(i);

  std::vector<RecordedTransfer> all;
  for (const auto& [queue, packets] : queues) {
    std::vector<RecordedTransfer> transfers = transfers_of(packets, file);
    const auto fits = [&](const auto& candidate) {
      const auto& [engine, list] = candidate;
      if (list.size() != transfers.size() || (engine == Engine::gpsimd) != packets.front()->software)
        return false;
      for (std::size_t i = 0; i < list.size(); ++i)
        if (transfers[i].start < recording.instructions[list[i]].start) return false;
      return true;
    };
    const auto found = std::ranges::find_if(triggers, fits);
    if (found == triggers.end())
      throw InputError(file, fmt::format("the {} transfers of queue {} fit the triggers of no engine",
                                         transfers.size(), queue));
    for (std::size_t i = 0; i < transfers.size(); ++i) transfers[i].trigger = found->second[i];
    triggers.erase(found);
    all.insert(all.end(), transfers.begin(), transfers.end());
  }
  if (!triggers.empty())
    throw InputError(
        file,
        fmt::format("the {} triggers of {} have no packets", triggers.begin()->second.size(),
                    names_of(triggers.begin()->first)[static_cast<std::size_t>(triggers.begin()->first)]));
  std::ranges::sort(all, {}, &RecordedTransfer::trigger);
  return all;
}

}  // namespace

std::int64_t RecordedPieces::pieces() const {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{1}, std::multiplies<>());
}

Recording parse_recording(const std::string& name, std::string_view instructions, std::string_view packets,
                          std::string_view clock, const std::string& where) {
  Recording recording;
  recording.name = name;
  recording.instructions = read_instructions(instructions, where + ".instructions.csv");
  recording.packets = read_packets(packets, where + ".dma.csv");
  recording.clock = read_clock(clock, where + ".pe_clock.csv");
  recording.transfers = match(recording, where + ".dma.csv");
  return recording;
}

Recording read_recording(const std::filesystem::path& folder, const std::string& name) {
  return parse_recording(name, read_maybe_gzipped(folder, name + ".instructions.csv"),
                         read_maybe_gzipped(folder, name + ".dma.csv"),
                         read_maybe_gzipped(folder, name + ".pe_clock.csv"), (folder / name).string());
}

std::vector<std::string> recording_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(folder))
    throw InputError(folder.string(), "is not a folder", "Recorded timelines are in chips/measured/profiles");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (const std::size_t at = file.find(".instructions.csv"); at != std::string::npos)
      names.push_back(file.substr(0, at));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace headway::chip

#include "fuzz/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/threads.h"
#include "chip/check.h"
#include "chip/machine.h"
#include "chip/program_file.h"
#include "chip/rows.h"
#include "chip/timeline.h"

namespace headway::fuzz {

using namespace headway::chip;

namespace {

constexpr std::uint64_t kInstructions = 500;               // of all cores, in one run
constexpr std::int64_t kElements = std::int64_t{1} << 22;  // that all instructions of a program name
constexpr std::int64_t kBytes = std::int64_t{1} << 28;     // of all tensors of a program

const Spec& spec_of(std::uint64_t which) {
  static const std::array<Spec, 3> specs = {Spec::load(std::string(HEADWAY_ROOT) + "/chips/trn2.toml"),
                                            Spec::load(std::string(HEADWAY_ROOT) + "/chips/trn1.toml"),
                                            Spec::load(std::string(HEADWAY_ROOT) + "/chips/trn3.toml")};
  return specs[which];
}

ThreadPool& pool_of(int threads) {
  static std::array<std::unique_ptr<ThreadPool>, 3> pools;
  std::unique_ptr<ThreadPool>& pool = pools[static_cast<std::size_t>(threads - 1)];
  if (!pool) pool = std::make_unique<ThreadPool>(threads, false);
  return *pool;
}

// "[rule]" at the end of an error's text.
std::string rule_of(const std::string& text) {
  const std::size_t open = text.rfind('['), close = text.rfind(']');
  return open == std::string::npos || close == std::string::npos || close < open
             ? "(none)"
             : text.substr(open + 1, close - open - 1);
}

// How a stage ended: "" or the error's text.
template <class Work>
std::string ending(Work&& work, const char* stage) {
  try {
    work();
    return "";
  } catch (const KernelError& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return error.what();
  } catch (const InputError& error) {
    return error.what();
  } catch (const std::exception& error) {
    throw Failure(std::string(stage) + ": " + error.what());
  }
}

bool affordable(const Program& program) {
  std::int64_t bytes = 0, elements = 0;
  for (const Tensor& t : program.tensors) bytes += t.partitions() * t.row_bytes();
  for (const auto& instruction : program.instructions)
    for (const OperandView& operand : operand_views(*instruction, program))
      if (!instruction->broken) elements += std::min(operand.view->elements(), kElements);
  return bytes <= kBytes && elements <= kElements;
}

// Numbers that kernels could meet: small integers where they may be indices, floats of all sorts.
void fill(Draw& draw, DType dtype, std::byte* bytes, std::int64_t count) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  const bool odd = draw.percent(15);  // any bits
  const bool small = !odd && is_integer(dtype), flag = !odd && dtype == DType::boolean;
  // Far more numbers than choices: a generator of their own (Knuth's linear congruential one).
  std::uint64_t state = draw.bits();
  for (std::int64_t i = 0; i < count; ++i, bytes += size) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto bits = static_cast<std::uint32_t>(state >> 32);
    if (small) bits &= 7;
    if (flag) bits &= 1;
    if (!odd && dtype == DType::f32) {
      const float value = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-29f;
      std::memcpy(&bits, &value, 4);
    }
    std::memcpy(bytes, &bits, size);
  }
}

// A tensor's elements, row after row.
View all_of(const Program& program, TensorId id) {
  const Tensor& t = program.tensors[id];
  View view;
  view.tensor = id;
  view.dtype = t.dtype;
  view.rank = 2;
  view.pairs[0] = {1, static_cast<std::int32_t>(t.partitions())};
  view.pairs[1] = {1, static_cast<std::int32_t>(t.row_bytes() / size_of(t.dtype))};
  return view;
}

// Which tensors the instructions name.
std::vector<bool> used_by(const Program& program) {
  std::vector<bool> used(program.tensors.size(), false);
  for (const auto& instruction : program.instructions)
    for (const OperandView& operand : operand_views(*instruction, program))
      if (operand.view->tensor < used.size()) used[operand.view->tensor] = true;
  return used;
}

// How a run ended and what it left in memory, as text.
struct Result {
  std::string end;
  std::vector<std::string> memory;
  std::vector<DType> dtypes;
  std::vector<Diagnostic> diagnostics;
};

Result run(const Launch& launch, Diagnostics::Mode mode, int threads, std::uint64_t numbers) {
  Result result;
  Diagnostics diagnostics(mode);
  Draw draw(numbers);
  std::vector<const Program*> programs;
  for (const Program& program : launch.programs) programs.push_back(&program);
  std::vector<std::vector<std::byte>> inputs;  // must outlive the machine
  std::optional<Machine> machine;
  result.end = ending(
      [&] {
        machine.emplace(*launch.spec, programs, launch.lnc, pool_of(threads), diagnostics);
        machine->max_instructions = kInstructions;
        for (int rank = 0; rank < machine->ranks(); ++rank) {
          const Program& program = *programs[static_cast<std::size_t>(rank * launch.lnc)];
          std::vector<ConstArray> arrays;
          for (const TensorId id : program.with_role(Role::input)) {
            const Tensor& t = program.tensors[id];
            inputs.emplace_back(static_cast<std::size_t>(t.row_bytes()));
            fill(draw, t.dtype, inputs.back().data(), t.row_bytes() / size_of(t.dtype));
            arrays.push_back({t.dtype, t.shape, inputs.back().data()});
          }
          machine->bind(rank, arrays);
        }
        // Most memory holds something from the start, or nearly every program would stop at what was never
        // written.
        machine->synchronise();
        for (int c = 0; c < machine->cores(); ++c) {
          const Program& program = *programs[static_cast<std::size_t>(c)];
          const std::vector<bool> used = used_by(program);
          for (std::size_t i = 0; i < program.tensors.size(); ++i) {
            const Tensor& t = program.tensors[i];
            if (!used[i] || t.role == Role::input || t.role == Role::constant || draw.percent(4)) continue;
            const View view = all_of(program, static_cast<TensorId>(i));
            const Block block = machine->core(c).write("fill", view);
            for (std::int64_t r = 0; r < block.rows; ++r) fill(draw, t.dtype, block.row(r), block.elements);
          }
        }
        machine->run(Machine::Tensors::keep);
      },
      "running");
  result.diagnostics = diagnostics.all();
  if (!machine) return result;
  for (int c = 0; c < machine->cores(); ++c) {
    const Program& program = *programs[static_cast<std::size_t>(c)];
    const std::vector<bool> used = used_by(program);
    for (std::size_t i = 0; i < program.tensors.size(); ++i) {
      if (!used[i]) continue;
      const Tensor& t = program.tensors[i];
      std::string bytes(static_cast<std::size_t>(t.partitions() * t.row_bytes()), '\0');
      const std::string error = ending(
          [&] {
            machine->read(c, static_cast<TensorId>(i), {t.dtype, t.shape, bytes.data()});
          },
          "reading results");
      result.memory.push_back(error.empty() ? bytes : error);
      result.dtypes.push_back(t.dtype);
    }
  }
  return result;
}

// Equal but for what NaNs say: where two meet, which one comes out is the processor's choice.
bool same_numbers(DType dtype, const std::string& a, const std::string& b) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  if (a.size() != b.size() || a.size() % size != 0) return false;
  for (std::size_t i = 0; i < a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    const auto number = [&](const std::string& bytes) {
      return read_element(dtype, reinterpret_cast<const std::byte*>(&bytes[i]));
    };
    if (!std::isnan(number(a)) || !std::isnan(number(b))) return false;
  }
  return true;
}

void count_rules(const std::vector<Diagnostic>& diagnostics, Tally& tally) {
  for (const Diagnostic& diagnostic : diagnostics) ++tally.rules[diagnostic.rule];
}

// Checks, runs, and runs again with another number of threads.
// A legal program has a time, or ends in a named error: it is deadlocked, or doesn't fit.
void try_time(const Launch& launch) {
  const Timing timing(*launch.spec);
  std::vector<const Program*> programs;
  for (const Program& program : launch.programs) programs.push_back(&program);
  ending(
      [&] {
        const Timeline timeline = time(programs, timing, {.max_instructions = 100'000});
        Picoseconds last = 0;
        for (const Event& event : timeline.events) {
          if (event.start < 0 || event.free < event.start || event.end < event.start)
            throw Failure(fmt::format("{} runs from {} to {} and {}",
                                      to_string(*launch.programs[event.core].instructions[event.instruction],
                                                launch.programs[event.core]),
                                      event.start, event.free, event.end));
          last = std::max(last, event.free);
        }
        for (const Transfer& transfer : timeline.transfers) {
          if (transfer.start < 0 || transfer.end < transfer.start || transfer.visible < transfer.end)
            throw Failure(fmt::format("a transfer moves from {} to {}, visible at {}", transfer.start,
                                      transfer.end, transfer.visible));
          last = std::max(last, transfer.end);
        }
        if (timeline.total < last || timeline.low > timeline.total || timeline.high < timeline.total)
          throw Failure(fmt::format("the total of {} in [{}, {}] ends before {}", timeline.total,
                                    timeline.low, timeline.high, last));
      },
      "timing");
}

void check_and_run(Launch& launch, Draw& draw, Tally& tally) {
  const auto mode = draw.percent(50) ? Diagnostics::Mode::stop : Diagnostics::Mode::collect;
  Diagnostics diagnostics(mode);
  bool legal = true;
  const std::string refused = ending(
      [&] {
        for (Program& program : launch.programs) legal &= Check::whole(*launch.spec, program, diagnostics);
      },
      "checking");
  if (mode == Diagnostics::Mode::collect) {
    count_rules(diagnostics.all(), tally);
  } else if (!refused.empty()) {
    ++tally.rules[rule_of(refused)];
  }
  legal &= refused.empty();
  // Collecting, a program with illegal instructions runs all the same; not one that can't even be declared,
  // whose instructions weren't looked at.
  const bool declared =
      std::none_of(diagnostics.all().begin(), diagnostics.all().end(),
                   [](const Diagnostic& diagnostic) { return diagnostic.instruction.empty(); });
  if (!legal) ++tally.refused;
  if (!refused.empty() || !declared) return;
  for (const Program& program : launch.programs)
    if (!affordable(program)) {
      ++tally.large;
      return;
    }
  if (legal) try_time(launch);
  for (const auto& instruction : launch.programs[0].instructions)
    if (!instruction->broken) ++tally.executed[std::string(instruction->name())];

  const std::uint64_t numbers = draw.bits();
  const int threads = static_cast<int>(draw.between(1, 3));
  const Result once = run(launch, mode, threads, numbers);
  count_rules(once.diagnostics, tally);
  if (!once.end.empty() && mode == Diagnostics::Mode::stop && once.diagnostics.empty())
    ++tally.rules[rule_of(once.end)];
  ++(once.end.empty() ? tally.finished : tally.stopped);
  if (!draw.percent(30)) return;
  const Result again = run(launch, mode, threads % 3 + 1, numbers);
  if (again.end != once.end)
    throw Failure("with other threads the run ends differently: '" + once.end + "' and '" + again.end + "'");
  for (std::size_t i = 0; i < once.memory.size(); ++i) {
    if (again.memory[i] == once.memory[i]) continue;
    const DType dtype = once.dtypes[i];
    if (is_float(dtype) && same_numbers(dtype, once.memory[i], again.memory[i])) continue;
    const auto [a, b] = std::mismatch(once.memory[i].begin(), once.memory[i].end(), again.memory[i].begin());
    std::string programs;
    for (const auto& instruction : launch.programs[0].instructions)
      programs += "\n  " + to_string(*instruction, launch.programs[0]);
    throw Failure(
        fmt::format("with other threads the run leaves other numbers in memory {}, byte {} of {} ({:02x} and "
                    "{:02x}); the program:{}",
                    i, a - once.memory[i].begin(), once.memory[i].size(), static_cast<unsigned char>(*a),
                    static_cast<unsigned char>(*b), programs));
  }
}

Launch launch_of(Draw& draw) {
  const Spec& spec = spec_of(draw.percent(80) ? 0 : static_cast<std::uint64_t>(draw.between(1, 2)));
  const Manner manner = draw.pick({Manner::legal, Manner::legal, Manner::mutated, Manner::wild});
  return random_launch(draw, spec, manner);
}

// The same program from its own file; printing is tried by the way.
void round_trip(const Program& program) {
  for (const auto& instruction : program.instructions) to_string(*instruction, program);
  const std::string bytes = serialise(program);
  std::optional<Program> read;
  const std::string refused = ending([&] { read = parse_program(bytes, "fuzz"); }, "parsing");
  // A program that was never written by `serialise` from a recorder's hands may say what files can't.
  if (!refused.empty()) return;
  if (serialise(*read) != bytes) throw Failure("a program read from its file differs from the one written");
}

}  // namespace

std::uint64_t trial_seed(std::uint64_t seed, std::int64_t number) {
  return hash64(std::to_string(seed) + ":" + std::to_string(number));
}

void try_program(std::uint64_t seed, Tally& tally) {
  Draw draw(seed);
  ++tally.trials;
  Launch launch = launch_of(draw);
  round_trip(launch.programs[0]);
  check_and_run(launch, draw, tally);
}

namespace {

void append(std::string& bytes, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

// Changes bytes in [from, bytes.size()).
void damage(Draw& draw, std::string& bytes, std::size_t from) {
  for (std::int64_t n = draw.between(1, 4); n > 0 && bytes.size() > from; --n) {
    const auto at =
        from + static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(bytes.size() - from)));
    const auto length = std::min(bytes.size() - at, static_cast<std::size_t>(draw.between(1, 12)));
    switch (draw.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(draw.pick({0, 1, 2, 0x7f, 0x80, 0xff}));
        break;
      case 2:
        bytes[at] = static_cast<char>(draw.bits());
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4: {
        // A piece from elsewhere, or numbers of many bytes.
        std::string piece = bytes.substr(
            from + static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(bytes.size() - from))),
            length);
        if (draw.percent(30)) piece = std::string(static_cast<std::size_t>(draw.between(1, 10)), '\xff');
        bytes.insert(at, piece);
        break;
      }
      default:
        if (draw.percent(20)) bytes.resize(at);
    }
  }
}

}  // namespace

void try_bytes(std::uint64_t seed, Tally& tally) {
  Draw draw(seed);
  ++tally.trials;
  Launch launch = launch_of(draw);
  std::string bytes = serialise(launch.programs[0]);
  constexpr std::size_t kHeader = 20, kChecksum = 8, kLength = 12;  // docs/formats.md
  if (draw.percent(50)) {
    // Damage that the checksum doesn't show.
    std::string payload = bytes.substr(kHeader, bytes.size() - kHeader - kChecksum);
    damage(draw, payload, 0);
    bytes.resize(kLength);
    append(bytes, payload.size());
    bytes += payload;
    append(bytes, hash64(payload));
  } else {
    damage(draw, bytes, 0);
  }
  std::optional<Program> program;
  const std::string refused = ending([&] { program = parse_program(bytes, "fuzz"); }, "parsing");
  if (!program) {
    ++tally.refused;
    ++tally.rules["program file"];
    return;
  }
  ++tally.parsed;
  const std::string again = serialise(*program);
  if (serialise(parse_program(again, "fuzz")) != again)
    throw Failure("a program read from its file differs from the one written");
  Launch alone;
  alone.spec = launch.spec;
  alone.lnc = 1;
  alone.programs.push_back(std::move(*program));
  check_and_run(alone, draw, tally);
}

}  // namespace headway::fuzz

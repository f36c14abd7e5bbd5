#include "chip/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "chip/array_clock.h"
#include "chip/cost.h"
#include "chip/dma_cost.h"
#include "chip/dma_engine.h"
#include "chip/engine_cost.h"
#include "chip/interval.h"
#include "chip/scalar_engine.h"
#include "chip/shared_rate.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"

namespace headway::chip {
namespace {

constexpr std::size_t kEngines = 7;

[[noreturn]] void refuse(const Recording& recording, const RecordedInstruction& at, const std::string& rule) {
  throw InputError(fmt::format("{}, line {}", recording.name, at.line), rule,
                   "Replays know what src/chip/replay.cc translates");
}

// Recorded instructions as the model's, for their costs.
class Translation {
 public:
  Translation(const Recording& recording, const Timing& timing) : recording_(recording), timing_(timing) {
    program_.kernel = recording.name;
    program_.chip = timing.spec.name;
  }

  // Of LDWEIGHTS and MATMUL the cost of the product they are part of.
  std::vector<Cost> costs() {
    std::vector<Cost> all(recording_.instructions.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const RecordedInstruction& r = recording_.instructions[i];
      if (r.opcode == "LDWEIGHTS") {
        const bool whole = i + 1 < all.size() && recording_.instructions[i + 1].opcode == "MATMUL" &&
                           recording_.instructions[i + 1].engine == r.engine;
        if (!whole) refuse(recording_, r, "LDWEIGHTS without the MATMUL that uses them");
        all[i] = all[i + 1] = cost(*product(r, recording_.instructions[i + 1]), Engine::tensor);
        ++i;
      } else {
        all[i] = single(r);
      }
    }
    return all;
  }

 private:
  Cost cost(const Instruction& instruction, Engine engine) const {
    return cost_of(instruction, engine, program_, timing_);
  }

  View tensor(Buffer buffer, DType dtype, Shape shape) {
    Tensor tensor;
    tensor.shape = std::move(shape);
    tensor.dtype = dtype;
    tensor.buffer = buffer;
    program_.tensors.push_back(std::move(tensor));
    return whole(program_.tensors.back(), static_cast<TensorId>(program_.tensors.size() - 1));
  }
  View view(const RecordedInstruction& r, const RecordedOperand& operand, std::string_view name) {
    if (operand.counts.empty()) refuse(recording_, r, fmt::format("{} has no {}", r.opcode, name));
    Shape shape = {r.partitions};
    // Extents of 1 are the profiler's padding; the innermost one stays, reductions run over it.
    for (std::size_t i = 0; i + 1 < operand.counts.size(); ++i)
      if (operand.counts[i] != 1) shape.push_back(operand.counts[i]);
    shape.push_back(operand.counts.back());
    return tensor(operand.buffer, operand.dtype, shape);
  }
  static std::int64_t size(const RecordedOperand& operand) {
    std::int64_t all = 1;
    for (const std::int64_t count : operand.counts) all *= count;
    return all;
  }

  std::unique_ptr<Instruction> product(const RecordedInstruction& load, const RecordedInstruction& r) {
    if (load.src.counts.empty() || r.src.counts.empty() || r.dst.counts.empty())
      refuse(recording_, r, "a product needs src and dst, and src of its weights");
    const std::int64_t columns = size(load.src), rows = size(r.src);
    if (columns > 128 || rows > 512)
      refuse(recording_, r, "a product has at most 128 columns of weights and 512 moving rows");
    auto matmul = std::make_unique<NcMatmul>();
    matmul->stationary = tensor(Buffer::sbuf, load.src.dtype, {128, columns});
    matmul->moving = tensor(Buffer::sbuf, r.src.dtype, {128, rows});
    matmul->dst = tensor(Buffer::psum, r.transpose ? load.src.dtype : DType::f32, {columns, rows});
    matmul->is_transpose = r.transpose;
    return matmul;
  }

  // As many elements on both sides; the pieces of the chip's side in its partitions, those of HBM as they
  // lie.
  View pieces(const RecordedPieces& side, std::int64_t element_bytes) {
    const std::int64_t run = side.bytes / element_bytes;
    // The order of elements is the pattern's; where they lie, steps say.
    std::vector<Pair> pairs;
    std::int64_t end = run;
    for (std::size_t i = 0; i < side.counts.size(); ++i) {
      std::int64_t step = side.steps[i] / element_bytes;
      if (side.counts[i] == 1) continue;
      if (side.on_chip && side.steps[i] == RecordedPieces::kPartitionStep) {
        pairs.insert(pairs.begin(), {1, static_cast<std::int32_t>(side.counts[i])});
        continue;
      }
      pairs.push_back({static_cast<std::int32_t>(step), static_cast<std::int32_t>(side.counts[i])});
      end += step * (side.counts[i] - 1);
    }
    pairs.push_back({1, static_cast<std::int32_t>(run)});
    View view = side.on_chip ? tensor(Buffer::sbuf, side.dtype, {pairs.front().count, end})
                             : tensor(Buffer::private_hbm, side.dtype, {end});
    view.rank = 0;
    for (const Pair& pair : pairs) view.pairs[view.rank++] = pair;
    return view;
  }

  Cost dma(const RecordedInstruction& r) {
    if (r.from.counts.size() > 3 || r.to.counts.size() > 3)
      refuse(recording_, r, "a DMA's patterns have at most 3 levels");
    DmaCopy copy;
    copy.src = pieces(r.from, size_of(r.from.dtype));
    copy.dst = pieces(r.to, size_of(r.to.dtype));
    // HBM's pieces in the order of the chip's: partitions outermost.
    for (View* view : {&copy.src, &copy.dst}) {
      const bool hbm = program_.tensors[view->tensor].buffer != Buffer::sbuf;
      if (hbm && view->rank == 3) {
        const std::int64_t rows = (view == &copy.src ? copy.dst : copy.src).pairs[0].count;
        if (view->pairs[0].count != rows && view->pairs[1].count == rows)
          std::swap(view->pairs[0], view->pairs[1]);
      }
    }
    copy.dge_mode = r.engine == Engine::gpsimd ? DgeMode::swdge : DgeMode::hwdge;
    copy.engine = r.engine;
    return cost(copy, Engine::dma);
  }

  Cost single(const RecordedInstruction& r) {
    const std::string& op = r.opcode;
    if (r.is_dma()) return dma(r);
    if (op == "EVENT_SEMAPHORE" || op == "NOP") return fixed_cost(semaphore_check(timing_, r.engine));
    if (op == "ACT_TABLE_LOAD") return fixed_cost(timing_.scalar.table_load);
    if (op == "COPY" || op == "CAST")
      return filled<TensorCopy>(r, [&](TensorCopy& i) { i.src = view(r, r.src, "src"); });
    const auto pointer = [&] { return Scalar(tensor(Buffer::sbuf, DType::f32, {r.partitions, 1})); };
    if (op == "ACTIVATE")
      return filled<Activation>(r, [&](Activation& i) {
        i.data = view(r, r.src, "src");
        i.op = Function::exp;
        i.bias = pointer();
      });
    if (op == "TENSOR_SCALAR")
      return filled<TensorScalar>(r, [&](TensorScalar& i) {
        i.data = view(r, r.src, "src");
        i.op0 = Alu::multiply;
        i.operand0 = pointer();
      });
    if (op == "TENSOR_REDUCE")
      return filled<TensorReduce>(r, [&](TensorReduce& i) {
        i.data = view(r, r.src, "src");
        i.axis = {i.data.rank - 1};
      });
    if (op == "RECIPROCAL")
      return filled<Reciprocal>(r, [&](Reciprocal& i) { i.data = view(r, r.src, "src"); });
    refuse(recording_, r,
           fmt::format("opcode '{}' on {} has no counterpart in the model", op, name(r.engine)));
  }
  template <class I, class Fill>
  Cost filled(const RecordedInstruction& r, Fill&& fill) {
    I instruction;
    fill(instruction);
    instruction.dst = view(r, r.dst, "dst");
    instruction.engine = r.engine;
    return cost(instruction, r.engine);
  }
  static std::string_view name(Engine engine) { return names_of(engine)[static_cast<std::size_t>(engine)]; }

  const Recording& recording_;
  const Timing& timing_;
  Program program_;
};

// Engines side by side, each with a sequencer that goes through its instructions in order and a pipe that
// works on them. Waits, checks and DMA triggers are the sequencer's; it goes on when the pipe has begun with
// an instruction.
class Replay {
 public:
  Replay(const Recording& recording, const Timing& timing, std::optional<Picoseconds> clock_window)
      : recording_(recording),
        timing_(timing),
        costs_(Translation(recording, timing).costs()),
        clock_(timing.tensor, clock_window),
        dma_(timing.dma.engines.value),
        hbm_(timing.stack_bandwidth.value * 1e-12),
        done_(recording.instructions.size(), -1) {
    result_.instructions.resize(recording.instructions.size());
    result_.transfers.resize(recording.transfers.size());
    for (std::size_t t = 0; t < recording.transfers.size(); ++t)
      transfer_of_[recording.transfers[t].trigger] = t;
    for (std::size_t i = 0; i < recording.instructions.size(); ++i) {
      const RecordedInstruction& r = recording.instructions[i];
      const auto e = static_cast<std::size_t>(r.engine);
      if (lanes_[e].end == 0) lanes_[e].next = i;
      lanes_[e].end = i + 1;
      for (const int semaphore : r.signals) signal(semaphore, 1, i);
      if (r.is_dma()) signal(r.semaphore, r.increment, i);
    }
    resolve();
  }

  Replayed run() {
    while (true) {
      Lane* first = nullptr;
      Picoseconds earliest = 0;
      const Lane* stuck = nullptr;
      for (Lane& lane : lanes_) {
        if (lane.next == lane.end) continue;
        const std::optional<Picoseconds> at = ready(lane);
        if (!at) {
          stuck = &lane;
        } else if (!first || *at < earliest) {
          first = &lane;
          earliest = *at;
        }
      }
      if (!first && stuck)
        refuse(recording_, recording_.instructions[stuck->next],
               "waits for a semaphore, and so do all other engines");
      if (!first) return std::move(result_);
      issue(*first, earliest);
    }
  }

 private:
  struct Lane {
    std::size_t next = 0, end = 0;
    Picoseconds sequencer = 0, pipe = 0;
    Picoseconds trigger = 0;  // before which no other DMA can be triggered
  };
  struct Signal {
    std::int64_t value;  // of the semaphore, once given
    std::size_t by;
  };

  void signal(int semaphore, std::int64_t by, std::size_t instruction) {
    auto& list = signals_[semaphore];
    if (!list.empty() &&
        recording_.instructions[list.back().by].engine != recording_.instructions[instruction].engine)
      refuse(recording_, recording_.instructions[instruction],
             fmt::format("semaphore {} is signalled by several engines", semaphore));
    list.push_back({(list.empty() ? 0 : list.back().value) + by, instruction});
  }

  // Who gives the value that each instruction waits for.
  void resolve() {
    waits_.resize(recording_.instructions.size());
    for (std::size_t i = 0; i < waits_.size(); ++i)
      for (const RecordedWait& wait : recording_.instructions[i].waits) {
        const auto& list = signals_[wait.semaphore];
        const auto giver = std::ranges::find_if(list, [&](const Signal& s) { return s.value >= wait.value; });
        if (giver == list.end())
          refuse(
              recording_, recording_.instructions[i],
              fmt::format("waits until semaphore {} is {}, which it never is", wait.semaphore, wait.value));
        waits_[i].push_back(giver->by);
      }
  }

  // When the sequencer can take the next instruction, if what it waits for is known.
  std::optional<Picoseconds> ready(const Lane& lane) const {
    const RecordedInstruction& r = recording_.instructions[lane.next];
    Picoseconds signalled = 0;
    for (const std::size_t giver : waits_[lane.next]) {
      if (done_[giver] < 0) return std::nullopt;
      signalled = std::max(signalled, done_[giver] + semaphore_delay(timing_, r.engine));
    }
    if (!r.is_dma()) return std::max(lane.sequencer, signalled);
    if (r.engine == Engine::gpsimd) {
      // Software takes its time from a semaphore, or its release, to the trigger.
      const Picoseconds software = software_wait(timing_, costs_[lane.next].dma.descriptors);
      if (signalled > 0) signalled += software - semaphore_delay(timing_, r.engine);
      return std::max({lane.sequencer, signalled, lane.trigger, software});
    }
    return std::max({lane.sequencer, signalled, lane.trigger});
  }

  void issue(Lane& lane, Picoseconds at) {
    const std::size_t i = lane.next++;
    const RecordedInstruction& r = recording_.instructions[i];
    const Cost& cost = costs_[i];
    ReplayBar& bar = result_.instructions[i];
    if (r.is_dma()) {
      trigger(lane, i, at);
    } else if (r.opcode == "EVENT_SEMAPHORE" || r.opcode == "NOP") {
      bar = {at, at + cost.latency};
      lane.sequencer = bar.end;
      done_[i] = bar.end;
    } else if (r.opcode == "LDWEIGHTS") {
      // The array holds two: these load while the ones before them are in use.
      const Picoseconds start = std::max(at, loader_free_);
      loaded_ = start + picoseconds(cost.array.load_cycles / (timing_.tensor.clock.value * clock_.share()));
      bar = {start, loaded_};
      load_start_ = start;
      lane.sequencer = at;
      done_[i] = loaded_;
    } else if (r.opcode == "MATMUL") {
      const Picoseconds begun = std::max(load_start_, lane.pipe), stream = std::max(loaded_, lane.pipe);
      lane.pipe = clock_.run(stream, cost.array.stream_cycles, cost.array.activity);
      loader_free_ = stream;
      bar = {begun, lane.pipe + cost.latency};
      lane.sequencer = at;  // several products wait in line
      done_[i] = bar.end;
    } else {
      const Picoseconds start = std::max(at, lane.pipe);
      bar = {start, start + std::max(cost.busy, cost.latency)};
      lane.pipe = start + cost.busy;
      lane.sequencer = start;
      done_[i] = bar.end;
    }
  }

  void trigger(Lane& lane, std::size_t i, Picoseconds at) {
    const RecordedInstruction& r = recording_.instructions[i];
    const bool software = r.engine == Engine::gpsimd;
    const DmaWork& work = costs_[i].dma;
    const Picoseconds issue = issue_interval(timing_, work.dge, work.descriptors);
    const Picoseconds held = software ? picoseconds(timing_.dma.software_trigger.value) : issue;
    result_.instructions[i] = {at, at + held};
    lane.sequencer = at + held;
    lane.trigger = at + issue;

    const double engines = std::max(work.engines, 1);
    const Demand demands[] = {{&dma_, static_cast<double>(work.engine_time) * engines, engines},
                              {&hbm_, static_cast<double>(work.hbm_read + work.hbm_written), hbm_.rate()}};
    Picoseconds& queue = queue_free_[static_cast<std::size_t>(r.engine)];
    const Picoseconds first = std::max(at + start_latency(timing_, work.dge, 1), queue);  // of the engines
    const Picoseconds from = std::max(at + start_latency(timing_, work.dge, work.engines), queue);
    const Span span = work.engine_time > 0 ? serve(demands, from) : Span{from, from};
    const Picoseconds spread = load_spread(timing_, work);
    // Queues are first in, first out; one that the hardware fills does one transfer after the other.
    queue = software ? span.start : span.end + spread;
    result_.transfers[transfer_of_.at(i)] = {first, span.end + spread};
    done_[i] = span.end + spread + picoseconds(timing_.dma.completion_latency.value);
  }

  const Recording& recording_;
  const Timing& timing_;
  std::vector<Cost> costs_;
  ArrayClock clock_;
  SharedRate dma_, hbm_;
  std::vector<Picoseconds> done_;  // when others can know, less the semaphore; -1: not yet
  std::array<Lane, kEngines> lanes_;
  std::array<Picoseconds, kEngines> queue_free_{};
  std::map<int, std::vector<Signal>> signals_;
  std::vector<std::vector<std::size_t>> waits_;
  std::map<std::size_t, std::size_t> transfer_of_;
  Picoseconds loader_free_ = 0, load_start_ = 0, loaded_ = 0;
  Replayed result_;
};

constexpr Picoseconds kNanosecond = 1000;

// When a window of the array's clock begins, from the first trigger on, which is a replay's time 0: a DMA is
// what engines begin with.
std::optional<Picoseconds> clock_window(const Recording& recording) {
  if (recording.clock.empty() || recording.transfers.empty()) return std::nullopt;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const RecordedTransfer& transfer : recording.transfers)
    first = std::min(first, recording.instructions[transfer.trigger].start);
  return (recording.clock.front().start - first) * kNanosecond;
}

}  // namespace

Replayed replay(const Recording& recording, const Timing& timing, ClockPhase phase) {
  return Replay(recording, timing, phase == ClockPhase::recorded ? clock_window(recording) : std::nullopt)
      .run();
}

ReplayScore score(const Recording& recording, const Replayed& replayed) {
  if (recording.transfers.empty())
    throw InputError(recording.name, "has no DMA: there is nothing to align the timelines at");
  ReplayScore score;
  score.name = recording.name;
  score.instructions = recording.instructions.size();
  score.transfers = recording.transfers.size();

  const auto measured_bar = [&](std::size_t i) {
    const RecordedInstruction& r = recording.instructions[i];
    return ReplayBar{r.start * kNanosecond, r.end() * kNanosecond};
  };
  Picoseconds from = std::numeric_limits<Picoseconds>::max(), measured_from = from, to = 0, measured_to = 0;
  for (std::size_t t = 0; t < recording.transfers.size(); ++t) {
    const std::size_t trigger = recording.transfers[t].trigger;
    from = std::min(from, replayed.instructions[trigger].start);
    measured_from = std::min(measured_from, measured_bar(trigger).start);
    to = std::max(to, replayed.transfers[t].end);
    measured_to = std::max(measured_to, recording.transfers[t].end * kNanosecond);
  }
  score.predicted = to - from;
  score.measured = measured_to - measured_from;

  std::vector<Picoseconds> errors;
  std::array<std::vector<Interval>, kEngines> predicted, measured;
  for (std::size_t i = 0; i < recording.instructions.size(); ++i) {
    const ReplayBar bar = replayed.instructions[i], real = measured_bar(i);
    errors.push_back(std::abs((bar.start - from) - (real.start - measured_from)));
    if (errors.back() > score.largest_start_error || i == 0) {
      score.largest_start_error = errors.back();
      score.largest_line = recording.instructions[i].line;
    }
    const auto e = static_cast<std::size_t>(recording.instructions[i].engine);
    predicted[e].emplace_back(bar.start, bar.end);
    measured[e].emplace_back(real.start, real.end);
  }
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::ranges::nth_element(errors, middle);
  score.median_start_error = *middle;

  constexpr auto kDma = static_cast<std::size_t>(Engine::dma);
  for (const ReplayBar& bar : replayed.transfers) predicted[kDma].emplace_back(bar.start, bar.end);
  for (const RecordedPacket& packet : recording.packets)
    measured[kDma].emplace_back(packet.start * kNanosecond, packet.end() * kNanosecond);
  for (std::size_t e = 0; e < kEngines; ++e)
    if (!measured[e].empty())
      score.busy.push_back(
          {static_cast<Engine>(e), length_of_union(predicted[e]), length_of_union(measured[e])});
  return score;
}

}  // namespace headway::chip

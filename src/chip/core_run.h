// One core's part of a timeline: takes a program's instructions one after another and finds when each runs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chip/accesses.h"
#include "chip/array_clock.h"
#include "chip/check.h"
#include "chip/conflicts.h"
#include "chip/dma_cost.h"
#include "chip/engine_time.h"
#include "chip/operands.h"
#include "chip/sequencer.h"
#include "chip/shared_rate.h"
#include "chip/timeline.h"

namespace headway::chip {

inline constexpr std::size_t kEngines = 7;
// Who does things in order: the engines, then the DMA queues.
enum Queue : std::uint8_t {
  software_load,
  software_store,
  hardware_load,
  hardware_store,
  collective,
  spill,
  kQueues
};
inline constexpr std::string_view kQueueNames[] = {"gpsimd software loads", "gpsimd software stores",
                                                   "sync hardware loads",   "scalar hardware stores",
                                                   "collectives",           "spills"};

// The latest of the things an instruction waits for.
struct Wait {
  Picoseconds ready = 0;
  std::int32_t event = -1;
  Cause cause = Cause::nothing;
  bool waits = false;  // on another actor whose end this one hasn't seen yet

  void until(Picoseconds time, std::int32_t on, Cause why) {
    if (time <= ready) return;
    ready = time;
    event = on;
    cause = why;
  }
};

// HBM stacks of the chip: shared by the cores next to them.
using Stacks = std::vector<SharedRate>;

class CoreRun {
 public:
  CoreRun(const Program& program, int number, const Timing& timing, Stacks& stacks,
          const TimeOptions& options, std::uint64_t& budget)
      : program_(program),
        number_(number),
        timing_(timing),
        options_(options),
        budget_(budget),
        sequencer_(program),
        check_(timing.spec, program, diagnostics_),
        lowered_(lower(program, timing.spec)),
        clock_(timing.tensor),
        conflicts_(timing.spec.psum_banks),
        dma_(timing.dma.engines.value),
        hbm_(
            stacks[static_cast<std::size_t>(number / std::max<std::int64_t>(timing.spec.cores_per_stack, 1)) %
                   stacks.size()]) {
    const std::size_t tensors = program.tensors.size();
    tensors_.resize(tensors);
    // Order matters only where somebody reads what somebody writes.
    std::vector<std::uint8_t> uses(tensors, 0);
    std::size_t transfers = 0;
    for (const auto& instruction : program.instructions) {
      bool outside = false;
      for_each_view(*instruction, program, [&](const View& view, Access access) {
        uses[view.tensor] |= access == Access::read ? 1 : access == Access::write ? 2 : 3;
        outside |= is_hbm(program.tensors[view.tensor].buffer);
      });
      transfers += outside;
    }
    for (std::size_t t = 0; t < tensors; ++t)
      tensors_[t].tracked = is_on_chip(program.tensors[t].buffer) || uses[t] == 3;
    for (const Edge& edge : program.edges) edges_.push_back(edge);
    std::stable_sort(edges_.begin(), edges_.end(),
                     [](const Edge& a, const Edge& b) { return a.after < b.after; });
    if (!edges_.empty()) event_of_.assign(program.instructions.size(), -1);
    events_.reserve(program.instructions.size());
    transfers_.reserve(transfers);
  }

  // Runs until the next instruction at which cores meet, or the end. Whether there is more.
  bool run() {
    while (!sequencer_.ended()) {
      const Instruction& instruction = sequencer_.at();
      if (budget_ == 0)
        throw InputError(program_.kernel,
                         fmt::format("more than {} instructions; is there a loop without an end?",
                                     options_.max_instructions));
      --budget_;
      if (program_.registers > 0 && sequencer_.steps_through_loop()) continue;
      if (instruction.meeting()) return true;
      step(instruction);
      sequencer_.advance();
    }
    return false;
  }

  const Sequencer& sequencer() const { return sequencer_; }

  // The core is at a meeting: when it could begin.
  Picoseconds arrives() {
    meeting_ = wait_for(sequencer_.at(), Engine::dma);
    return meeting_.ready;
  }
  // It begins at `start`, for all.
  void meets(Picoseconds start, const Cost& cost) {
    const Instruction& instruction = sequencer_.at();
    Event event = fresh(Engine::dma, cost);
    event.start = start;
    event.cause = start == meeting_.ready ? meeting_.cause : Cause::meeting;
    event.cause_event = event.cause == Cause::meeting ? -1 : meeting_.event;
    if (cost.dma.any && cost.dma.bytes > 0) {
      move(event, cost, collective, start, start + cost.latency);
    } else {
      event.free = event.end = start + std::max(cost.latency, cost.busy);
    }
    finish(instruction, event, kEngines + collective, cost);
    sequencer_.advance();
  }

  std::vector<Event>& events() { return events_; }
  std::vector<Transfer>& transfers() { return transfers_; }
  const ArrayClock& clock() const { return clock_; }
  CoreTimeline summary() { return {&program_, std::move(lowered_), traffic_}; }

 private:
  struct TensorState {
    Accesses accesses;
    Picoseconds done = 0;  // the last of all accesses so far
    std::int32_t event = -1;
    bool tracked = false, touched = false;
  };

  // --- What an instruction waits for ---

  void wait_on(Wait& wait, std::uint8_t by, std::uint32_t event, Picoseconds done, std::size_t actor,
               Engine engine, Cause cause) const {
    if (by == actor && (engine == Engine::tensor || actor >= kEngines)) return;  // in order anyway
    const bool signalled = by != actor || cause == Cause::operand;
    wait.until(signalled ? done + semaphore_delay(timing_, engine) : done, static_cast<std::int32_t>(event),
               cause);
    if (by != actor) wait.waits = true;
  }

  Wait wait_for(const Instruction& instruction, Engine engine) {
    Wait wait;
    const std::size_t actor = static_cast<std::size_t>(engine);
    for_each_view(instruction, program_, [&](const View& view, Access access) {
      TensorState& state = tensors_[view.tensor];
      if (!state.tracked) return;
      if (!state.touched) {
        for (std::uint32_t p = lowered_.predecessors_from[view.tensor];
             p < lowered_.predecessors_from[view.tensor + 1]; ++p) {
          const TensorState& before = tensors_[lowered_.predecessors[p]];
          if (before.event >= 0)
            wait_on(wait, events_actor(before.event), static_cast<std::uint32_t>(before.event), before.done,
                    actor, engine, Cause::memory);
        }
      }
      const Box box = box_of(program_, view);
      accesses_of(view.tensor)
          .before(program_, view, box, access != Access::read, [&](const Accesses::Past& past) {
            wait_on(wait, past.by, past.event, past.done, actor, engine,
                    past.write && access == Access::read ? Cause::operand : Cause::overwrite);
          });
      if (lowered_.placements[view.tensor].spilled && access != Access::write)
        wait.until(load_spilled(view, state.done), wait.event, Cause::memory);
    });
    for (; next_edge_ < edges_.size() && edges_[next_edge_].after < sequencer_.position(); ++next_edge_) {
    }
    for (std::size_t e = next_edge_; e < edges_.size() && edges_[e].after == sequencer_.position(); ++e) {
      const std::int32_t before = event_of_[edges_[e].before];
      if (before >= 0)
        wait.until(events_[static_cast<std::size_t>(before)].end + semaphore_delay(timing_, engine), before,
                   Cause::edge);
    }
    return wait;
  }

  std::uint8_t events_actor(std::int32_t event) const {
    const Event& e = events_[static_cast<std::size_t>(event)];
    if (e.transfer < 0) return static_cast<std::uint8_t>(e.engine);
    return static_cast<std::uint8_t>(kEngines + transfers_[static_cast<std::size_t>(e.transfer)].queue);
  }

  // Tensors with addresses share their memory, so that its accesses are kept together.
  Accesses& accesses_of(TensorId tensor) {
    const Tensor& t = program_.tensors[tensor];
    if (t.address) return t.buffer == Buffer::sbuf ? sbuf_ : psum_;
    return tensors_[tensor].accesses;
  }

  // --- Engines ---

  Engine choose(const Instruction& instruction, Engines legal, Cost& cost, Wait& wait) {
    if (instruction.engine != Engine::unknown) {
      cost = cost_of(instruction, instruction.engine, program_, timing_);
      wait = wait_for(instruction, instruction.engine);
      return instruction.engine;
    }
    static constexpr Engine kOrder[] = {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd,
                                        Engine::sync};
    Engine best = Engine::unknown;
    Picoseconds best_end = 0;
    bool waited = false;
    for (const Engine engine : kOrder) {
      if (!legal.has(engine)) continue;
      const Cost c = cost_of(instruction, engine, program_, timing_);
      if (!waited) wait = wait_for(instruction, engine);
      waited = true;
      const Picoseconds end =
          engines_[static_cast<std::size_t>(engine)].find(wait.ready, c.busy).start + c.latency;
      if (best == Engine::unknown || end < best_end) {
        best = engine;
        best_end = end;
        cost = c;
      }
    }
    if (best == Engine::unknown) throw Bug(std::string(instruction.name()) + " has no engine");
    return best;
  }

  Event fresh(Engine engine, const Cost& cost) const {
    Event event;
    event.instruction = static_cast<std::uint32_t>(sequencer_.position());
    event.core = static_cast<std::uint8_t>(number_);
    event.engine = engine;
    event.calibrated = cost.calibrated;
    return event;
  }

  // Begins at `start`; if that is later than what it waits for, because of `last`.
  void begin(Event& event, const Wait& wait, Picoseconds start, std::int32_t last, Cause otherwise) {
    event.start = start;
    event.cause = start > wait.ready ? otherwise : wait.cause;
    event.cause_event = start > wait.ready ? last : wait.event;
  }

  void step(const Instruction& instruction) {
    const Engines legal = instruction.engines(check_);
    if (legal.has(Engine::dma)) return trigger(instruction);
    Cost cost;
    Wait wait;
    const Engine engine = choose(instruction, legal, cost, wait);
    const auto e = static_cast<std::size_t>(engine);
    Event event = fresh(engine, cost);
    const auto index = static_cast<std::int32_t>(events_.size());
    if (cost.array.stream_cycles > 0) {
      product(event, cost, wait);
    } else {
      // In documented traces the load of a table takes its turn behind the semaphore; recorded profiles have
      // the first one before it.
      const bool load = engine == Engine::scalar && cost.table >= 0 && cost.table != table_;
      const Picoseconds before = load ? picoseconds(timing_.scalar.table_load.value) : 0;
      if (load) table_ = cost.table;
      EngineTime::Slot slot = engines_[e].find(wait.ready, before + cost.busy);
      const Conflicts::Use use = shared_use(instruction, engine, cost);
      for (int turn = 0; use.any() && turn < 2; ++turn) {
        const Conflicts::Other other = conflicts_.against(engine, use, slot.start + before, cost.busy);
        if (other.free == 0) break;
        wait.until(other.free - before, other.event, Cause::conflict);
        slot = engines_[e].find(wait.ready, before + cost.busy);
      }
      begin(event, wait, slot.start, slot.after, Cause::engine);
      if (load) event.cause = event.cause == Cause::engine ? Cause::table : event.cause;
      event.start = slot.start + before;
      event.free = event.start + cost.busy;
      event.end = event.start + std::max(cost.latency, cost.busy);
      engines_[e].take(slot.start, event.free, index);
      if (use.any()) conflicts_.take(engine, use, event.start, event.free, index);
    }
    finish(instruction, event, e, cost);
  }

  Conflicts::Use shared_use(const Instruction& instruction, Engine engine, const Cost& cost) const {
    Conflicts::Use use;
    use.bus = cost.bus;
    if (engine != Engine::vector && engine != Engine::scalar) return use;
    const Spec& spec = timing_.spec;
    for_each_view(instruction, program_, [&](const View& view, Access) {
      const Tensor& t = program_.tensors[view.tensor];
      if (t.buffer != Buffer::psum) return;
      // Before NeuronCore-v3 the two engines took turns whatever the bank.
      const Box box = box_of(program_, view);
      const std::int64_t base = t.address ? 0 : lowered_.placements[view.tensor].byte;
      const std::int64_t first = spec.generation < 3 ? 0 : (base + box.byte) / spec.psum_bank_bytes;
      const std::int64_t last =
          spec.generation < 3 ? spec.psum_banks - 1 : (base + box.byte_end - 1) / spec.psum_bank_bytes;
      for (std::int64_t bank = first; bank <= last && bank < spec.psum_banks; ++bank)
        use.banks |= std::uint64_t{1} << bank;
    });
    return use;
  }

  // Each pass loads its stationary operand and streams the moving one. The array holds two stationary
  // operands: the next one loads while the last one is in use, if it is there.
  void product(Event& event, const Cost& cost, const Wait& wait) {
    Picoseconds stream = array_free_;
    Picoseconds load_from = std::max(loader_free_, wait.ready);
    begin(event, wait, load_from, array_last_, Cause::engine);
    for (int pass = 0; pass < cost.array.passes; ++pass) {
      const double rate = timing_.tensor.clock.value * clock_.share();
      stream = std::max(stream, load_from + picoseconds(cost.array.load_cycles / rate));
      loader_free_ = load_from = stream;
      stream = clock_.run(stream, cost.array.stream_cycles, cost.array.activity);
    }
    event.free = array_free_ = stream;
    event.end = stream + cost.latency;
    array_last_ = static_cast<std::int32_t>(events_.size());
  }

  // --- DMA ---

  struct Route {
    Queue queue;
    Engine issuer;
    Dge dge;
  };
  Route route(const Instruction& instruction, const Cost& cost, bool to_chip) const {
    Dge dge = cost.dma.dge;
    if (cost.dma.dge_open) {
      // As in recorded profiles: what the kernel is given and gives back goes through software, the rest
      // through hardware.
      bool outside = false;
      for_each_view(instruction, program_, [&](const View& view, Access) {
        const Role role = program_.tensors[view.tensor].role;
        outside |= role != Role::internal;
      });
      dge = outside || timing_.spec.generation < 3 ? Dge::software : Dge::hardware;
    }
    if (dge == Dge::hardware) {
      const Engine wish = instruction.engine == Engine::sync || instruction.engine == Engine::scalar
                              ? instruction.engine
                          : to_chip ? Engine::sync
                                    : Engine::scalar;
      return {to_chip ? hardware_load : hardware_store, wish, dge};
    }
    return {to_chip ? software_load : software_store, Engine::gpsimd, dge};
  }

  void trigger(const Instruction& instruction) {
    const Cost cost = cost_of(instruction, Engine::dma, program_, timing_);
    bool to_chip = true;
    for_each_view(instruction, program_, [&](const View& view, Access access) {
      if (access != Access::read && !is_on_chip(program_.tensors[view.tensor].buffer)) to_chip = false;
    });
    const Route way = route(instruction, cost, to_chip);
    Wait wait = wait_for(instruction, way.issuer);
    // Software takes its time from a semaphore to the trigger.
    if (way.dge == Dge::software && wait.waits)
      wait.ready += software_wait(timing_, cost.dma.descriptors) - semaphore_delay(timing_, way.issuer);
    const auto issuer = static_cast<std::size_t>(way.issuer);
    Event event = fresh(way.issuer, cost);
    const std::size_t stream = way.queue;
    begin(event, wait, std::max(wait.ready, queue_last_[stream]), queue_event_[stream], Cause::queue);
    const Picoseconds busy = issue_interval(timing_, way.dge, cost.dma.descriptors);
    const auto index = static_cast<std::int32_t>(events_.size());
    const EngineTime::Slot slot = engines_[issuer].find(event.start, busy);
    if (slot.start > event.start) {
      event.cause = Cause::engine;
      event.cause_event = slot.after;
    }
    event.start = slot.start;
    event.free = event.start + busy;
    engines_[issuer].take(event.start, event.free, index);
    queue_last_[stream] = event.start;
    queue_event_[stream] = index;
    move(event, cost, way.queue, event.start + start_latency(timing_, way.dge, cost.dma.engines), 0);
    transfers_.back().dge = way.dge;
    finish(instruction, event, kEngines + way.queue, cost);
  }

  // The bytes move, from `from` on; they are there not before `least`.
  void move(Event& event, const Cost& cost, Queue queue, Picoseconds from, Picoseconds least) {
    Transfer transfer;
    transfer.event = static_cast<std::uint32_t>(events_.size());
    transfer.core = static_cast<std::uint8_t>(number_);
    transfer.queue = queue;
    transfer.engines = static_cast<std::uint8_t>(std::max(cost.dma.engines, 1));
    transfer.dge = cost.dma.dge;
    transfer.descriptors = static_cast<std::int32_t>(cost.dma.descriptors);
    transfer.descriptor_bytes = static_cast<std::int32_t>(cost.dma.descriptor_bytes);
    transfer.bytes = cost.dma.bytes;
    const double work = static_cast<double>(cost.dma.engine_time) * transfer.engines;
    transfer.engine_time = static_cast<Picoseconds>(work);
    const double hbm_bytes = static_cast<double>(cost.dma.hbm_read + cost.dma.hbm_written);
    const Demand demands[] = {{&dma_, work, static_cast<double>(transfer.engines)},
                              {&hbm_, hbm_bytes, hbm_.rate()}};
    // A queue is first in, first out; one that the hardware fills does one transfer after the other.
    const bool hardware = queue == hardware_load || queue == hardware_store;
    const Picoseconds begin = std::max(from, hardware ? queue_end_[queue] : queue_start_[queue]);
    const Span span = work > 0 ? serve(demands, begin) : Span{begin, begin};
    queue_start_[queue] = span.start;
    transfer.start = span.start;
    const Picoseconds spread =
        queue == software_load || queue == hardware_load ? load_spread(timing_, cost.dma) : 0;
    transfer.end = std::max(span.end + spread, least);
    queue_end_[queue] = std::max(queue_end_[queue], transfer.end);
    transfer.visible =
        std::max(transfer.end, queue_visible_[queue]) + picoseconds(timing_.dma.completion_latency.value);
    queue_visible_[queue] = transfer.end;
    if (event.free == 0) event.free = event.start;
    event.end = transfer.visible;
    event.transfer = static_cast<std::int32_t>(transfers_.size());
    traffic_.hbm_read += cost.dma.hbm_read;
    traffic_.hbm_written += cost.dma.hbm_written;
    traffic_.sbuf_read += cost.dma.sbuf_read;
    traffic_.sbuf_written += cost.dma.sbuf_written;
    bool source = false;  // what is read first; indices follow
    for_each_view(*program_.instructions[event.instruction], program_, [&](const View& view, Access access) {
      const Buffer buffer = program_.tensors[view.tensor].buffer;
      if (access != Access::read) transfer.to = buffer;
      if (access != Access::write && !source) transfer.from = buffer, source = true;
    });
    transfers_.push_back(transfer);
  }

  // A tensor that lives in HBM for want of room is loaded again for a use, as soon as the last one is over.
  Picoseconds load_spilled(const View& view, Picoseconds from) {
    const std::int64_t bytes = view.elements() * size_of(view.dtype);
    traffic_.spill_loaded += bytes;
    return spill_transfer(bytes, from);
  }
  Picoseconds spill_transfer(std::int64_t bytes, Picoseconds from) {
    const auto amount = static_cast<double>(bytes);
    const double rate = timing_.dma.engine_effective_bandwidth.value * 1e-12;
    const Demand demands[] = {{&dma_, amount / rate, timing_.dma.engines.value},
                              {&hbm_, amount, hbm_.rate()}};
    const Span span = serve(demands, from + picoseconds(timing_.dma.start_latency.value));
    return span.end + picoseconds(timing_.dma.completion_latency.value);
  }

  // --- Books ---

  void finish(const Instruction& instruction, Event& event, std::size_t actor, const Cost& cost) {
    const auto index = static_cast<std::uint32_t>(events_.size());
    (cost.transpose ? traffic_.transpose_flops : traffic_.flops) += cost.flops;
    for_each_view(instruction, program_, [&](const View& view, Access access) {
      const Tensor& t = program_.tensors[view.tensor];
      if (event.transfer < 0) {
        const std::int64_t bytes = view.elements() * size_of(view.dtype);
        if (t.buffer == Buffer::sbuf) {
          if (access != Access::write) traffic_.sbuf_read += bytes;
          if (access != Access::read) traffic_.sbuf_written += bytes;
        } else if (t.buffer == Buffer::psum) {
          if (access != Access::write) traffic_.psum_read += bytes;
          if (access != Access::read) traffic_.psum_written += bytes;
        }
      }
      TensorState& state = tensors_[view.tensor];
      if (!state.tracked) return;
      if (!state.touched) {
        state.touched = true;
        // Their memory is this tensor's now: nobody asks for them again.
        for (std::uint32_t p = lowered_.predecessors_from[view.tensor];
             p < lowered_.predecessors_from[view.tensor + 1]; ++p) {
          const Placement& before = lowered_.placements[lowered_.predecessors[p]];
          if (before.last < sequencer_.position()) tensors_[lowered_.predecessors[p]].accesses.clear();
        }
      }
      // An engine has read its operands when it goes on; a DMA when its bytes have moved.
      const Transfer* transfer =
          event.transfer >= 0 ? &transfers_[static_cast<std::size_t>(event.transfer)] : nullptr;
      Picoseconds done = access == Access::read ? (transfer ? transfer->visible : event.free) : event.end;
      if (lowered_.placements[view.tensor].spilled && access != Access::read) {
        const std::int64_t bytes = view.elements() * size_of(view.dtype);
        traffic_.spill_saved += bytes;
        done = spill_transfer(bytes, done);
      }
      Accesses::Past past{box_of(program_, view), &view, done, index, static_cast<std::uint8_t>(actor),
                          access != Access::read};
      accesses_of(view.tensor).add(past);
      if (done >= state.done) {
        state.done = done;
        state.event = static_cast<std::int32_t>(index);
      }
    });
    if (!event_of_.empty()) event_of_[sequencer_.position()] = static_cast<std::int32_t>(index);
    events_.push_back(event);
  }

  const Program& program_;
  int number_;
  const Timing& timing_;
  const TimeOptions& options_;
  std::uint64_t& budget_;
  Sequencer sequencer_;
  Diagnostics diagnostics_{Diagnostics::Mode::collect};
  Check check_;
  Lowered lowered_;
  ArrayClock clock_;
  Conflicts conflicts_;
  SharedRate dma_;
  SharedRate& hbm_;
  std::vector<TensorState> tensors_;
  Accesses sbuf_, psum_;
  std::vector<Edge> edges_;
  std::size_t next_edge_ = 0;
  std::vector<std::int32_t> event_of_;  // by instruction, the last time it ran; only where there are edges
  std::array<EngineTime, kEngines> engines_;
  std::array<Picoseconds, kQueues> queue_last_{}, queue_start_{}, queue_end_{}, queue_visible_{};
  std::array<std::int32_t, kQueues> queue_event_ = {-1, -1, -1, -1, -1, -1};
  Picoseconds loader_free_ = 0, array_free_ = 0;
  std::int32_t array_last_ = -1;
  int table_ = -1;
  Wait meeting_;
  std::vector<Event> events_;
  std::vector<Transfer> transfers_;
  Traffic traffic_;
};

}  // namespace headway::chip

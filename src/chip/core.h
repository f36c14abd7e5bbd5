// A core while it runs: its memory, registers and state. Instructions compute on it in `apply`.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "chip/block.h"
#include "chip/diagnostics.h"
#include "chip/fields.h"
#include "chip/program.h"
#include "chip/random_state.h"
#include "chip/spec.h"
#include "chip/storage.h"

namespace headway::chip {

// What happens to a row whose index is out of bounds.
enum class OobMode : std::uint8_t { error, skip };
std::span<const std::string_view> names_of(OobMode);

// How the elements of a PSUM tensor got their values; what a matmul does by default depends on it.
enum class PsumState : std::uint8_t { never, matmul, other };

class Machine;

// Memory for numbers, aligned to a cache line and not initialised.
struct Floats {
  std::unique_ptr<float[], void (*)(float*)> memory{nullptr, [](float* p) { std::free(p); }};
  std::int64_t size = 0;
  void grow(std::int64_t floats);  // to at least so many; loses what was there
};

class Core {
 public:
  Core(Machine& machine, int number, const Program& program);
  ~Core();

  const Spec& spec() const;
  const Program& program() const { return program_; }
  int number() const { return number_; }  // of the launch, from 0
  Machine& machine() const { return machine_; }

  // --- Memory. Each resolves a view (its dynamic offset too), checks bounds, and ... Call those for reading
  // before those for writing when an instruction's result may lie where its operands do. `operand` is the
  // field's name. ---

  // ... requires that every byte was written.
  Block read(std::string_view operand, const View& view);
  // ... marks every byte as written.
  Block write(std::string_view operand, const View& view);
  // ... requires and marks.
  Block update(std::string_view operand, const View& view);
  // ... neither: for writes that may leave elements as they are. `mark_rows` and `mark_elements` say what was
  // written.
  Block target(std::string_view operand, const View& view, OobMode oob = OobMode::error);
  // As `read`, but rows out of bounds may be skipped (negative row offsets).
  Block gather(std::string_view operand, const View& view, OobMode oob);
  void mark_rows(const View& view, std::span<const std::uint8_t> rows);
  // [rows x row elements], row-major.
  void mark_elements(const View& view, std::span<const std::uint8_t> elements);

  // Whether two views share memory at this moment, byte for byte (conservative beyond two levels of steps).
  bool overlap(const View& a, const View& b) const;
  // Whether they are the very same elements in the same order.
  bool same_place(const View& a, const View& b) const;

  // The state of PSUM elements (4 bytes each) of a tensor. `matmul_written` says for a view [rows, n] of
  // 4-byte elements which of three cases holds: all never, all matmul, or mixed; then `psum_states` gives
  // them one by one.
  enum class Accumulation : std::uint8_t { fresh, running, mixed };
  Accumulation accumulation(const View& view);
  std::vector<PsumState> psum_states(const View& view);
  void set_psum_state(const View& view, PsumState state);

  // --- Scalars ---
  std::uint32_t register_bits(Register reg) const { return registers_[reg.id]; }
  std::int32_t register_value(Register reg) const { return static_cast<std::int32_t>(registers_[reg.id]); }
  void set_register(Register reg, std::uint32_t bits) { registers_[reg.id] = bits; }
  std::int32_t value(const RegisterOr& value) const;
  // A scalar operand as float32 a partition: fills values[partitions].
  void scalar(std::string_view operand, const Scalar& scalar, std::span<float> values);
  // The same as raw bits, for bitwise operations.
  void scalar_bits(std::string_view operand, const Scalar& scalar, std::span<std::uint32_t> values);

  // --- State of the engines ---
  std::array<float, 128> scalar_accumulator{};  // ScalarE's, one a lane
  std::array<float, 128> vector_accumulator{};  // VectorE's
  RandomState random;

  // --- Control ---
  std::size_t position = 0;  // of the instruction that runs; `next` is where to go on
  std::size_t next = 0;
  // The loops that are running, innermost last (chip/sync_engine.h).
  struct Loop {
    std::size_t begin = 0;
    std::int64_t value = 0, upper = 0;
  };
  std::vector<Loop> loops;

  // --- Work. Rows are divided by position over the machine's threads where `elements` in all are worth it,
  // so results don't depend on their number. scratch(thread, floats, slot) is memory of that thread, 64-byte
  // aligned, kept between calls. ---
  template <class Work>  // work(begin, end, thread)
  void for_rows(std::int64_t rows, std::int64_t elements, Work&& work) {
    if (rows > 1 && elements >= kWorthDividing && threads() > 1) {
      divide(rows, work);
    } else {
      work(std::int64_t{0}, rows, 0);
    }
  }
  int threads() const;
  float* scratch(int thread, std::int64_t floats, int slot = 0);

  // What an instruction keeps of an operand from use to use, say in a layout of its own. It is empty again
  // once somebody has written to the operand's tensor. None for views that move and for tensors with
  // addresses, which share their memory. Call it after `read`.
  struct Kept {
    int uses = 0;
    Floats floats;
  };
  Kept* kept(const View& view);
  // Makes room, unless the core keeps a lot already.
  bool keep(Kept& kept, std::int64_t floats);

  // Tensors declared by the instructions in [begin, end) become new: what the end of a register loop's round
  // does.
  void forget_declared(std::size_t begin, std::size_t end);

  // Reports about the instruction that runs; `message` says the rule, the limit and the value. A kernel error
  // or unsupported throws and so ends the instruction; a warning returns.
  void report(Severity severity, std::string_view rule, std::string_view operand, std::string message);

 private:
  friend class Machine;
  struct Memory;
  static constexpr std::int64_t kWorthDividing = 16384;
  void divide(std::int64_t rows, const std::function<void(std::int64_t, std::int64_t, int)>& work);
  Storage& storage(TensorId tensor);
  Block resolve(std::string_view operand, const View& view, OobMode oob);
  template <class F>
  void for_runs(const View& view, const Block& block, F&& f);
  void require_written(std::string_view operand, const View& view, const Block& block);
  void poison_unwritten(const View& view, std::int64_t element_bytes, std::int64_t begin, std::int64_t end);
  void mark(const View& view, const Block& block);
  void wrote(const View& view, const Block& block);
  void poison(const Instruction& instruction);
  void grow();  // the program got longer since the core was made
  void release(TensorId tensor);
  Machine& machine_;
  int number_;
  const Program& program_;
  std::vector<std::uint32_t> registers_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace headway::chip

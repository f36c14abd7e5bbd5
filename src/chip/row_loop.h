// How instructions that work element by element go over their operands: some rows at a time, in float32 or as
// bits, in place where memory allows it, over the machine's threads, and as if all was read before anything
// is written.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "chip/alu.h"
#include "chip/block.h"
#include "chip/core.h"

namespace headway::chip {

// Rows [first, first + count) of a block: where they are if their elements lie there as T, one after another
// (or are one value repeated), otherwise converted into `scratch` [count, elements].
Rows<float> load_rows(const Block& block, std::int64_t first, std::int64_t count, float* scratch);
Rows<std::uint32_t> load_rows(const Block& block, std::int64_t first, std::int64_t count,
                              std::uint32_t* scratch);
// The same with each element in its place: no row is single.
Rows<float> load_all(const Block& block, std::int64_t first, std::int64_t count, float* scratch);
Rows<std::uint32_t> load_all(const Block& block, std::int64_t first, std::int64_t count,
                             std::uint32_t* scratch);
// Where results of those rows may be computed: in their place, otherwise in `scratch`. store_rows puts them
// where they belong.
RowsOut<float> rows_target(const Block& block, std::int64_t first, float* scratch);
RowsOut<std::uint32_t> rows_target(const Block& block, std::int64_t first, std::uint32_t* scratch);
void store_rows(const Block& block, std::int64_t first, std::int64_t count, RowsOut<float> values);
void store_rows(const Block& block, std::int64_t first, std::int64_t count, RowsOut<std::uint32_t> values);

// The rows of one turn of a loop.
template <class T>
struct RowStep {
  std::int64_t first = 0, rows = 0, n = 0;  // rows [first, first + rows) of n elements
  std::array<Rows<T>, 2> in;
  RowsOut<T> out;
  T* spare = nullptr;  // [rows, n], what compute likes
};

// T is float, or uint32_t for bits:
//   RowLoop<float> loop(core);
//   loop.reads("data", data);
//   loop.writes("dst", dst);
//   loop.run([&](const RowStep<float>& step) { alu_rows(op, step.in[0], ..., step.out, step.rows, step.n);
//   });
// All operands have as many rows, of as many elements.
template <class T>
class RowLoop {
 public:
  explicit RowLoop(Core& core) : core_(core) {}

  // In the order of step.in; before `writes`.
  void reads(std::string_view operand, const View& view) {
    views_[inputs_] = &view;
    in_[inputs_++] = core_.read(operand, view);
  }
  void writes(std::string_view operand, const View& view) {
    out_ = core_.write(operand, view);
    // Element by element in place is as good as reading all first; any other overlap isn't.
    for (std::size_t i = 0; i < inputs_; ++i)
      aside_ |= core_.overlap(view, *views_[i]) && !core_.same_place(view, *views_[i]);
  }
  const Block& out() const { return out_; }

  // `least`: rows that a step has where there are as many.
  template <class Compute>
  void run(const Compute& compute, std::int64_t least = 1) {
    const std::int64_t n = out_.elements, rows = out_.rows, together = std::max(least, kTogether / n);
    T* aside = aside_ ? scratch(0, rows * n, kAside) : nullptr;
    core_.for_rows(rows, rows * n, [&](std::int64_t begin, std::int64_t end, int thread) {
      RowStep<T> step;
      step.n = n;
      // Buffers a multiple of a page apart would get into each other's way in the cache.
      const std::int64_t most = std::min(together, end - begin) * n, apart = (most + 15) / 16 * 16 + kStagger;
      T* const buffers = scratch(thread, 4 * apart, kBuffers);
      T* const target = buffers + 2 * apart;
      step.spare = buffers + 3 * apart;
      for (step.first = begin; step.first < end; step.first += step.rows) {
        step.rows = std::min(together, end - step.first);
        for (std::size_t i = 0; i < inputs_; ++i)
          step.in[i] =
              load_rows(in_[i], step.first, step.rows, buffers + static_cast<std::int64_t>(i) * apart);
        step.out = aside ? RowsOut<T>{aside + step.first * n, n} : rows_target(out_, step.first, target);
        compute(static_cast<const RowStep<T>&>(step));
        if (!aside) store_rows(out_, step.first, step.rows, step.out);
      }
    });
    if (!aside) return;
    core_.for_rows(rows, rows * n, [&](std::int64_t begin, std::int64_t end, int) {
      store_rows(out_, begin, end - begin, RowsOut<T>{aside + begin * n, n});
    });
  }

 private:
  // Elements: what is brought together, three or four buffers of it, stays in the first cache.
  static constexpr std::int64_t kTogether = 2048;
  static constexpr std::int64_t kStagger = 160;
  static constexpr int kBuffers = 0, kAside = 4;  // scratch slots
  T* scratch(int thread, std::int64_t count, int slot) {
    return reinterpret_cast<T*>(core_.scratch(thread, count, slot));
  }

  Core& core_;
  std::size_t inputs_ = 0;
  std::array<const View*, 2> views_{};
  std::array<Block, 2> in_;
  Block out_;
  bool aside_ = false;
};

}  // namespace headway::chip

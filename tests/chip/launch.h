// Several cores: one recorder each, run together.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "chip/harness.h"
#include "chip/rows.h"

namespace headway::chip {

class Launch {
 public:
  // `cores` cores of logical cores of `lnc`.
  Launch(int cores, int lnc, int threads = 1, Diagnostics::Mode mode = Diagnostics::Mode::stop,
         const Spec& spec = trn2())
      : diagnostics_(mode), pool_(threads, false), lnc_(lnc), spec_(spec), random_(7) {
    for (int c = 0; c < cores; ++c)
      recorders_.push_back(std::make_unique<Recorder>("test", spec, &diagnostics_, c % lnc, lnc));
  }

  int cores() const { return static_cast<int>(recorders_.size()); }
  Recorder& nki(int core) { return *recorders_[static_cast<std::size_t>(core)]; }
  Diagnostics& diagnostics() { return diagnostics_; }

  Machine& machine() {
    if (!machine_) {
      std::vector<const Program*> programs;
      for (const auto& recorder : recorders_) programs.push_back(&recorder->program());
      machine_ = std::make_unique<Machine>(spec_, programs, lnc_, pool_, diagnostics_);
    }
    return *machine_;
  }
  void run() { machine().run(Machine::Tensors::keep); }

  // Numbers of a tile, into and out of the core that it belongs to.
  void set(const Tile& tile, const std::vector<double>& numbers) {
    machine().synchronise();
    const Block block = core_of(tile).write("set", tile);
    std::size_t i = 0;
    for (std::int64_t r = 0; r < block.rows; ++r)
      for_each_element(block, [&](std::int64_t offset) {
        std::byte* p = block.row(r) + offset;
        const auto bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(numbers[i]));
        if (block.dtype == DType::i32 || block.dtype == DType::u32) {
          std::memcpy(p, &bits, 4);
        } else {
          write_element(block.dtype, p, static_cast<float>(numbers[i]));
        }
        ++i;
      });
  }
  std::vector<double> fill(const Tile& tile, double low = -9, double high = 9) {
    std::vector<double> numbers(static_cast<std::size_t>(tile.view().elements()));
    std::uniform_real_distribution<double> uniform(low, high);
    for (double& number : numbers)
      number = is_integer(tile.dtype()) ? std::floor(uniform(random_)) : uniform(random_);
    set(tile, numbers);
    return this->numbers(tile);
  }
  std::vector<double> numbers(const Tile& tile) {
    machine().synchronise();
    const Block block = core_of(tile).read("numbers", tile);
    std::vector<double> numbers;
    for (std::int64_t r = 0; r < block.rows; ++r)
      for_each_element(block, [&](std::int64_t offset) {
        std::uint32_t bits = 0;
        const std::byte* p = block.row(r) + offset;
        std::memcpy(&bits, p, static_cast<std::size_t>(block.element_bytes));
        numbers.push_back(block.dtype == DType::i32   ? static_cast<std::int32_t>(bits)
                          : block.dtype == DType::u32 ? static_cast<double>(bits)
                                                      : static_cast<double>(read_element(block.dtype, p)));
      });
    return numbers;
  }
  bool written(const Tile& tile) {
    machine().synchronise();
    try {
      core_of(tile).read("written", tile);
      return true;
    } catch (const KernelError&) {
      return false;
    }
  }

 private:
  Core& core_of(const Tile& tile) {
    int core = 0;
    while (&nki(core) != &tile.recorder()) ++core;
    return machine().core(core);
  }

  Diagnostics diagnostics_;
  ThreadPool pool_;
  int lnc_;
  const Spec& spec_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::unique_ptr<Machine> machine_;
  std::mt19937 random_;
};

}  // namespace headway::chip

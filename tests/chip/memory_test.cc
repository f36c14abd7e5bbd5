// How much memory programs take: what they touch, not what they declare.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "chip/dma_engine.h"
#include "chip/harness.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"

#if defined(__SANITIZE_ADDRESS__)
#define HEADWAY_SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "sanitizers keep books of their own on memory"
#else
#define HEADWAY_SKIP_UNDER_SANITIZERS() static_cast<void>(0)
#endif

namespace headway::chip {
namespace {

constexpr std::int64_t kMega = 1 << 20;

// A line of /proc/self/status, in bytes.
std::int64_t status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::stoll(line.substr(key.size() + 1)) * 1024;
  return -1;
}

// The bytes by which the process grows at most while `work` runs, found in a process of its own. Exceptions
// count as a failure.
std::int64_t growth(const std::function<void()>& work) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::int64_t grown = -1;
    try {
      std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts from here, where the kernel lets us
      const std::int64_t before = std::max(status("VmRSS"), std::int64_t{0});
      work();
      grown = status("VmHWM") - before;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    const bool told = write(ends[1], &grown, sizeof grown) == sizeof grown;
    _exit(told ? 0 : 1);
  }
  std::int64_t grown = -1;
  EXPECT_EQ(read(ends[0], &grown, sizeof grown), static_cast<ssize_t>(sizeof grown));
  int result = 0;
  waitpid(child, &result, 0);
  close(ends[0]);
  close(ends[1]);
  return grown;
}

TEST(Memory, IsWhatAKernelTouches) {
  HEADWAY_SKIP_UNDER_SANITIZERS();
  // 8 GB of HBM, of which 100 MB are written and read in rows of 64 KiB.
  const std::int64_t grown = growth([] {
    Recorder nki("k", trn2());
    const Tile big = nki.private_hbm(DType::f32, {1 << 14, 1 << 17});
    const Tile tile = nki.sbuf(DType::f32, {64, 16384});  // 4 MB
    const Tile y = nki.output("y", DType::f32, {64, 16384});
    memset(tile, 1.0f);
    for (int i = 0; i < 25; ++i) dma_copy(big(ds(i * 640, 64), ds(i * 4000, 16384)), tile);
    for (int i = 0; i < 25; ++i) {
      const Tile back = nki.sbuf(DType::f32, {64, 16384});
      dma_copy(back, big(ds(i * 640, 64), ds(i * 4000, 16384)));
      tensor_tensor(tile, tile, back, Alu::add);
    }
    dma_copy(y, tile);
    const Program program = nki.finish();
    std::vector<float> out(64 * 16384);
    ThreadPool pool(1, false);
    Diagnostics diagnostics;
    execute(trn2(), program, {}, {{{DType::f32, {64, 16384}, out.data()}}}, pool, diagnostics);
    if (out[0] != 26 || out.back() != 26) throw std::runtime_error("wrong sum");
  });
  EXPECT_GT(grown, 100 * kMega);  // the test measures
  // The books on which bytes were written take a bit a byte, in pages.
  EXPECT_LT(grown, 160 * kMega);
}

TEST(Memory, OfVirtualTensorsIsGivenBack) {
  HEADWAY_SKIP_UNDER_SANITIZERS();
  // 12 tensors of 32 MB in HBM and 12 of 8 MB on chip, one after another.
  const std::int64_t grown = growth([] {
    Recorder nki("k", trn2());
    for (int i = 0; i < 12; ++i) {
      const Tile x = nki.private_hbm(DType::f32, {512, 16384}), tile = nki.sbuf(DType::f32, {128, 16384});
      memset(tile, 1.0f);
      for (int r = 0; r < 4; ++r) dma_copy(x(ds(128 * r, 128)), tile);
    }
    const Program program = nki.finish();
    ThreadPool pool(1, false);
    Diagnostics diagnostics;
    execute(trn2(), program, {}, {}, pool, diagnostics);
  });
  EXPECT_GT(grown, 40 * kMega);
  EXPECT_LT(grown, 64 * kMega);
}

TEST(Memory, OfInputsIsTheCallers) {
  HEADWAY_SKIP_UNDER_SANITIZERS();
  std::vector<float> input(64 * kMega / 4, 2.0f);
  const std::int64_t grown = growth([&] {
    Recorder nki("k", trn2());
    const Tile x = nki.input("x", DType::f32, {1024, 16384}), tile = nki.sbuf(DType::f32, {128, 16384});
    for (int r = 0; r < 8; ++r) dma_copy(tile, x(ds(128 * r, 128)));
    const Program program = nki.finish();
    ThreadPool pool(1, false);
    Diagnostics diagnostics;
    execute(trn2(), program, {{{DType::f32, {1024, 16384}, input.data()}}}, {}, pool, diagnostics);
  });
  EXPECT_GT(grown, 7 * kMega);
  EXPECT_LT(grown, 24 * kMega);
}

}  // namespace
}  // namespace headway::chip

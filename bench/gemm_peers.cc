// Our matrix product against the libraries of the distribution, on one core: GFLOP/s by processor time,
// medians of interleaved rounds. Libraries are opened at run time; those that aren't there are left out.
//
//   OMP_NUM_THREADS=1 gemm_peers [ROUNDS]
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "simd/gemm.h"

namespace headway {
namespace {

double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Contender {
  std::string name;
  std::function<void(const simd::Gemm&)> multiply;
};

void* symbol(const std::vector<std::string>& libraries, const char* name) {
  for (const std::string& library : libraries) {
    if (void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return dlsym(handle, name);
  }
  return nullptr;
}

std::string packaged(const std::string& path) {
#if defined(__aarch64__)
  return "/usr/lib/aarch64-linux-gnu/" + path;
#else
  return "/usr/lib/x86_64-linux-gnu/" + path;
#endif
}

// cblas_sgemm of a library; row-major, as ours.
void add_cblas(std::vector<Contender>& contenders, const std::string& name,
               const std::vector<std::string>& libraries) {
  using Function =
      void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  const auto sgemm = reinterpret_cast<Function>(symbol(libraries, "cblas_sgemm"));
  if (!sgemm) return;
  contenders.push_back({name, [sgemm](const simd::Gemm& g) {
                          const auto n = [](std::int64_t value) { return static_cast<int>(value); };
                          sgemm(101, g.a_transposed ? 112 : 111, g.b_transposed ? 112 : 111, n(g.m), n(g.n),
                                n(g.k), 1, g.a, n(g.lda), g.b, n(g.ldb), 0, g.c, n(g.ldc));
                        }});
}

void add_onednn(std::vector<Contender>& contenders) {
  using Function = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                           std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
  const auto sgemm = reinterpret_cast<Function>(symbol({"libdnnl.so.2", "libdnnl.so.3"}, "dnnl_sgemm"));
  if (!sgemm) return;
  contenders.push_back({"oneDNN", [sgemm](const simd::Gemm& g) {
                          sgemm(g.a_transposed ? 'T' : 'N', g.b_transposed ? 'T' : 'N', g.m, g.n, g.k, 1, g.a,
                                g.lda, g.b, g.ldb, 0, g.c, g.ldc);
                        }});
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

int main_of(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  ThreadPool pool(1);
  std::vector<float> scratch;
  std::vector<Contender> contenders;
  contenders.push_back({"own", [&](const simd::Gemm& g) {
                          const auto need =
                              static_cast<std::size_t>(simd::gemm_workspace(g.m, g.n, g.k, 1)) / 4 + 16;
                          if (scratch.size() < need) scratch.resize(need);
                          const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
                          simd::gemm(g, pool, reinterpret_cast<void*>((at + 63) / 64 * 64));
                        }});
  add_cblas(contenders, "OpenBLAS", {packaged("openblas-serial/libopenblas.so.0"), "libopenblas.so.0"});
  add_cblas(contenders, "BLIS", {packaged("blis-openmp/libblis.so.4"), packaged("blis-serial/libblis.so.4")});
  add_onednn(contenders);

  struct Shape {
    std::int64_t m, n, k;
    bool a_transposed, b_transposed;
    const char* what;
  };
  const Shape shapes[] = {
      {4096, 256, 256, false, true, "x W^T"},   {4096, 1024, 256, false, true, "x W^T"},
      {4096, 256, 1024, false, true, "x W^T"},  {4096, 8192, 256, false, true, "x W^T"},
      {4096, 256, 256, false, false, "dy W"},   {4096, 256, 1024, false, false, "dy W"},
      {4096, 1024, 256, false, false, "dy W"},  {4096, 256, 8192, false, false, "dy W"},
      {256, 256, 4096, true, false, "dy^T x"},  {1024, 256, 4096, true, false, "dy^T x"},
      {256, 1024, 4096, true, false, "dy^T x"}, {8192, 256, 4096, true, false, "dy^T x"},
      {4096, 640, 640, false, true, "x W^T"},   {4096, 2560, 640, false, true, "x W^T"},
      {4096, 640, 2560, false, false, "dy W"},  {2560, 640, 4096, true, false, "dy^T x"},
      {2048, 128, 128, false, true, "x W^T"},   {2048, 512, 128, false, true, "x W^T"},
      {128, 128, 2048, true, false, "dy^T x"},  {256, 256, 1024, false, true, "X X^T"},
      {256, 1024, 256, false, false, "P X"},    {640, 640, 640, false, false, "P X"},
  };
  fmt::print("{:>5} {:>5} {:>5}  {:8}", "m", "n", "k", "");
  for (const Contender& contender : contenders) fmt::print(" {:>9}", contender.name);
  fmt::print("\n");
  for (const Shape& s : shapes) {
    const std::vector<float> a = random_floats(s.m * s.k, 1), b = random_floats(s.n * s.k, 2);
    std::vector<float> c(static_cast<std::size_t>(s.m * s.n));
    simd::Gemm g;
    g.m = s.m, g.n = s.n, g.k = s.k;
    g.a_transposed = s.a_transposed, g.b_transposed = s.b_transposed;
    g.a = a.data(), g.lda = s.a_transposed ? s.m : s.k;
    g.b = b.data(), g.ldb = s.b_transposed ? s.k : s.n;
    g.c = c.data(), g.ldc = s.n;
    const double flops = 2.0 * static_cast<double>(s.m * s.n * s.k);
    const int repeats = std::max(1, static_cast<int>(5e8 / flops));
    std::vector<std::vector<double>> times(contenders.size());
    for (int round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        const double start = processor_time();
        for (int r = 0; r < repeats; ++r) contenders[i].multiply(g);
        if (round > 0) times[i].push_back((processor_time() - start) / repeats);
      }
    }
    fmt::print("{:5} {:5} {:5}  {:8}", s.m, s.n, s.k, s.what);
    for (auto& series : times) {
      std::nth_element(series.begin(), series.begin() + series.size() / 2, series.end());
      fmt::print(" {:9.1f}", flops / series[series.size() / 2] / 1e9);
    }
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace headway

int main(int argc, char** argv) { return headway::main_of(argc, argv); }

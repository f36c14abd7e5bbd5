// How fast text comes out of files, on one thread: bench/data.md has the medians.
//
//   data_bench TEXT.jsonl.gz [SHARD.parquet]
//
// The gzip file is packed again as zstd in memory's temporary folder; a Parquet file of the same documents
// can be given beside it (tests/data/make_parquet.py --of TEXT.jsonl.gz OUT.parquet).
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <zstd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "data/byte_stream.h"
#include "data/corpus.h"
#include "data/documents.h"
#include "data/prepare.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

std::int64_t text_bytes(const fs::path& path) {
  const auto reader = read_documents(path);
  DocumentBatch batch;
  std::int64_t bytes = 0;
  while (reader->next(batch)) {
    for (const auto& text : batch.documents) bytes += static_cast<std::int64_t>(text.size());
  }
  return bytes;
}

void read_documents_of(benchmark::State& state, const fs::path& path) {
  std::int64_t bytes = 0;
  for (auto _ : state) bytes += text_bytes(path);
  state.counters["MB_text/s"] =
      benchmark::Counter(static_cast<double>(bytes) / 1e6, benchmark::Counter::kIsRate);
}

void prepare(benchmark::State& state, const fs::path& path, const fs::path& out) {
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const auto made = prepare_corpus(user_sources({path}), out, FileSystem::real(), false);
    bytes += made.sources[0].bytes;
  }
  state.counters["MB_text/s"] =
      benchmark::Counter(static_cast<double>(bytes) / 1e6, benchmark::Counter::kIsRate);
}

void read_groups(benchmark::State& state, const fs::path& folder) {
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const Corpus corpus(folder);  // verified anew each time
    for (std::int64_t g = 0; g < corpus.size(Split::train).groups; ++g) {
      benchmark::DoNotOptimize(corpus.group(Split::train, g));
    }
    bytes += corpus.size(Split::train).bytes;
  }
  state.counters["MB_text/s"] =
      benchmark::Counter(static_cast<double>(bytes) / 1e6, benchmark::Counter::kIsRate);
}

std::string unpacked(const fs::path& path) {
  const auto stream = open_bytes(path);
  std::string all;
  std::string chunk(1 << 20, '\0');
  while (const std::size_t n = stream->read(chunk.data(), chunk.size())) all.append(chunk, 0, n);
  return all;
}

int run(const fs::path& gz, const fs::path& parquet, const fs::path& folder) {
  const std::string lines = unpacked(gz);
  std::string packed(ZSTD_compressBound(lines.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), lines.data(), lines.size(), 3));
  const fs::path zst = folder / "text.jsonl.zst";
  std::ofstream(zst, std::ios::binary).write(packed.data(), static_cast<std::streamsize>(packed.size()));
  prepare_corpus(user_sources({gz}), folder / "corpus", FileSystem::real(), false);

  const auto add = [](const std::string& name, auto work) {
    benchmark::RegisterBenchmark(name.c_str(), work)->Unit(benchmark::kMillisecond);
  };
  add("read/jsonl.gz", [&](benchmark::State& state) { read_documents_of(state, gz); });
  add("read/jsonl.zst", [&](benchmark::State& state) { read_documents_of(state, zst); });
  if (!parquet.empty()) {
    add("read/parquet", [&](benchmark::State& state) { read_documents_of(state, parquet); });
    add("prepare/parquet", [&](benchmark::State& state) { prepare(state, parquet, folder / "made"); });
  }
  add("prepare/jsonl.gz", [&](benchmark::State& state) { prepare(state, gz, folder / "made"); });
  add("read/corpus", [&](benchmark::State& state) { read_groups(state, folder / "corpus"); });
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace headway::data

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (count < 2 || count > 3) {
    fmt::print(stderr, "usage: data_bench TEXT.jsonl.gz [SHARD.parquet] [--benchmark_...]\n");
    return 2;
  }
  std::string name = (std::filesystem::temp_directory_path() / "headway-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return 5;
  int code = 0;
  try {
    code = headway::data::run(arguments[1], count == 3 ? arguments[2] : "", name);
  } catch (const headway::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    code = error.exit_code();
  }
  std::filesystem::remove_all(name);
  return code;
}

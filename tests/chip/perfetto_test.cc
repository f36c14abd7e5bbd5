// Traces are decoded by protoc with the published field numbers: what it doesn't know it shows by number.
#include "chip/perfetto.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "chip/dma_engine.h"
#include "chip/protobuf.h"
#include "chip/timeline_builder.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  return ::pclose(pipe) == 0 ? text : "failed: " + text;
}

bool have_protoc() { return std::system("protoc --version >/dev/null 2>&1") == 0; }

std::string decoded(const std::string& trace) {
  const auto file = std::filesystem::temp_directory_path() / ("headway-trace-" + std::to_string(::getpid()));
  FileSystem::real().write_atomically(file, trace);
  const std::string schema = HEADWAY_ROOT "/docs/perfetto";
  const std::string text = output_of("protoc --decode=headway.Trace -I " + schema + " headway_trace.proto <" +
                                     file.string() + " 2>&1");
  std::filesystem::remove(file);
  return text;
}

// Lines that name a field by its number.
int unknown_fields(const std::string& text) {
  static const std::regex numbered("(^|\n) *[0-9]+(:| \\{)");
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), numbered), std::sregex_iterator()));
}

int count(const std::string& text, const std::string& words) {
  int n = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++n;
  return n;
}

Profile overlapping_profile() {
  TimelineBuilder b("traced");
  const Tile x = b.nki.input("x", DType::f32, {128, 64}), t = b.nki.sbuf(DType::f32, {128, 64}),
             u = b.nki.sbuf(DType::f32, {128, 64});
  // Three transfers of one queue at a time, then three instructions.
  for (int i = 0; i < 3; ++i) {
    dma_copy(t, x);
    b.dma(Engine::gpsimd, 100 * i, 100, 1000 + 100 * i, 2000 + 100 * i, 300, 32768, 128);
  }
  for (int i = 0; i < 3; ++i) {
    tensor_copy(u, t);
    b.event(Engine::vector, 2600 + 300 * i, 300, 60, i == 0 ? Cause::operand : Cause::engine, 2 + i);
  }
  b.timeline.clock = {{0, 0.5, 0}, {0, 1, picoseconds(1e-6)}};
  return profile(b.finish(), trn2_timing());
}

TEST(Perfetto, ProtocKnowsEveryField) {
  if (!have_protoc()) GTEST_SKIP() << "protoc isn't installed (protobuf-compiler)";
  const Profile p = overlapping_profile();
  const std::string text = decoded(to_perfetto(p));
  EXPECT_EQ(unknown_fields(text), 0) << text.substr(0, 2000);
  // Instructions and transfers, and once more those of the critical path.
  const auto slices = static_cast<int>(p.events.size() + p.transfers.size() + p.critical_events.size());
  EXPECT_EQ(count(text, "TYPE_SLICE_BEGIN"), slices);
  EXPECT_EQ(count(text, "TYPE_SLICE_END"), slices);
  EXPECT_EQ(count(text, "process_name: \"traced core 0\""), 1);
  for (const char* track : {"name: \"vector\"", "name: \"gpsimd\"", "name: \"critical path\"",
                            "name: \"SBUF\"", "name: \"HBM read\"", "name: \"tensor clock\"",
                            "name: \"DMA gpsimd software\"", "name: \"DMA gpsimd software 3\""})
    EXPECT_EQ(count(text, track), 1) << track;
  EXPECT_EQ(count(text, "name: \"DMA gpsimd software 4\""), 0);
  EXPECT_GT(count(text, "TYPE_COUNTER"), 5);
  EXPECT_EQ(count(text, "flow_ids"), 6);
}

TEST(Perfetto, SlicesOfATrackNeverOverlap) {
  if (!have_protoc()) GTEST_SKIP() << "protoc isn't installed (protobuf-compiler)";
  std::istringstream lines(decoded(to_perfetto(overlapping_profile())));
  std::map<long, int> open;
  std::map<long, long> latest;
  long timestamp = 0;
  int depth = 0, events = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto value = [&] { return std::stol(line.substr(line.find(':') + 1)); };
    if (line.find(" timestamp:") != std::string::npos) timestamp = value();
    if (line.find("TYPE_SLICE_BEGIN") != std::string::npos) depth = 1;
    if (line.find("TYPE_SLICE_END") != std::string::npos) depth = -1;
    if (line.find("TYPE_COUNTER") != std::string::npos) depth = 0;
    if (line.find(" track_uuid:") == std::string::npos || depth == 0) continue;
    const long track = value();
    ++events;
    EXPECT_GE(timestamp, latest[track]);
    latest[track] = timestamp;
    open[track] += depth;
    EXPECT_GE(open[track], 0);
    EXPECT_LE(open[track], 1);
  }
  EXPECT_GT(events, 12);
}

TEST(Perfetto, AnUnknownFieldWouldShow) {
  if (!have_protoc()) GTEST_SKIP() << "protoc isn't installed (protobuf-compiler)";
  ProtobufMessage packet, trace;
  packet.add(999, std::uint64_t{5});
  trace.add(1, packet);
  EXPECT_EQ(unknown_fields(decoded(trace.bytes())), 1);
  EXPECT_TRUE(decoded(to_perfetto(overlapping_profile()).substr(0, 1000)).starts_with("failed"));
}

TEST(Protobuf, WritesTheDocumentedBytes) {
  ProtobufMessage inner, m;
  m.add(1, std::uint64_t{150});
  EXPECT_EQ(m.bytes(), "\x08\x96\x01");
  m.clear();
  m.add(2, std::string_view("testing"));
  EXPECT_EQ(m.bytes(), "\x12\x07testing");
  inner.add(1, std::uint64_t{150});
  m.clear();
  m.add(3, inner);
  EXPECT_EQ(m.bytes(), "\x1a\x03\x08\x96\x01");
  m.clear();
  m.add_double(4, 1.0);
  EXPECT_EQ(m.bytes(), std::string("\x21\0\0\0\0\0\0\xf0\x3f", 9));
}

}  // namespace
}  // namespace headway::chip

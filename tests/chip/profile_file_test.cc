#include "chip/profile_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "chip/dma_engine.h"
#include "chip/timeline_builder.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

using nlohmann::json;

Profile small_profile() {
  TimelineBuilder b("small <script>");
  const Tile x = b.nki.input("x", DType::f32, {128, 64}), t = b.nki.sbuf(DType::f32, {128, 64}),
             u = b.nki.sbuf(DType::f32, {128, 64});
  for (int i = 0; i < 3; ++i) {
    dma_copy(t, x);
    b.dma(Engine::sync, 3000 * i, 500, 3000 * i + 1000, 3000 * i + 2000, 300, 32768, 128,
          i == 0 ? Cause::nothing : Cause::overwrite, 2 * i - 1);
    tensor_copy(u, t);
    b.event(Engine::vector, 3000 * i + 2400, 300.4, 60, Cause::operand, 2 * i);
  }
  b.timeline.low = picoseconds(7e-6);
  b.timeline.high = picoseconds(9e-6);
  b.timeline.basis[Tag::measured] = 3;
  b.timeline.basis[Tag::assumed] = 1;
  b.timeline.clock = {{0, 0.5, 0}};
  b.timeline.warnings = {"something"};
  return profile(b.finish(), trn2_timing(), {"x=float32[128, 64]"});
}

// The message of the InputError that reading gives; "" when it gives none.
std::string refusal(const std::string& text) {
  try {
    parse_profile(text, "kept.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ProfileFile, ReadsWhatItWrote) {
  const Profile p = small_profile();
  const std::string text = to_json(p);
  const Profile q = parse_profile(text, "kept.json");
  EXPECT_EQ(to_json(q), text);
  EXPECT_EQ(q.chip_hash, p.chip_hash);
  EXPECT_EQ(q.chip_hash.size(), 16u);
  EXPECT_EQ(q.figures.all(), p.figures.all());
  EXPECT_EQ(q.trust.low, 7e-6);
  EXPECT_EQ(q.trust.shares, (std::array<double, 4>{0, 0.75, 0, 0.25}));
  ASSERT_EQ(q.events.size(), 6u);
  EXPECT_EQ(q.events[5].start, 8400);
  EXPECT_EQ(q.events[5].busy, 300);
  EXPECT_EQ(q.events[5].by, 1);
  EXPECT_EQ(q.events[4].cause, Cause::overwrite);
  EXPECT_EQ(q.transfers[2].start, 7000);
  EXPECT_EQ(q.critical_events, p.critical_events);
  EXPECT_EQ(q.advice.size(), p.advice.size());
  EXPECT_FALSE(q.advice.empty());
}

TEST(ProfileFile, MayLackTheHashOfTheChipFile) {
  std::string text = to_json(small_profile());
  const std::size_t at = text.find(",\"chip_hash\":");
  ASSERT_NE(at, std::string::npos);
  text.erase(at, text.find(",\"core\":") - at);
  EXPECT_EQ(parse_profile(text, "kept.json").chip_hash, "");
}

TEST(ProfileFile, TheSummaryIsOneLineWithTheSameFigures) {
  const Profile p = small_profile();
  const std::string text = summary_json(p);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const json summary = json::parse(text);
  for (const auto& [name, value] : p.figures.all())
    EXPECT_EQ(summary["figures"][name].get<double>(), value) << name;
  EXPECT_EQ(summary["bound"]["by"], p.bound.by);
  EXPECT_FALSE(summary.contains("events"));
}

TEST(ProfileFile, CutOffAnywhereItIsRefused) {
  const std::string text = to_json(small_profile());
  for (std::size_t length = 0; length + 2 < text.size(); length += 37) {
    const std::string message = refusal(text.substr(0, length));
    EXPECT_NE(message.find("kept.json"), std::string::npos) << length;
    EXPECT_NE(message.find("ends in the middle"), std::string::npos) << length << ": " << message;
  }
}

TEST(ProfileFile, SaysWhatIsWrongAndWhere) {
  struct Case {
    std::string pointer;
    json value;
    std::string words;
  };
  for (const Case& c :
       {Case{"/format", "neff", "isn't a profile of Headway"},
        Case{"/version", 2, "version: is 2, known is 1"},
        Case{"/cores", 0, "cores: is 0, must be 1 to"},
        Case{"/kernel", 3, "kernel: isn't a text"},
        Case{"/figures/total_time", "long", "figures.total_time: isn't a number"},
        Case{"/events/start/2", 1.5, "events.start[2]: isn't a whole number"},
        Case{"/events/start/0", -1, "events.start[0]: leads before the start"},
        Case{"/events/busy/1", -4, "events.busy[1]: is negative"},
        Case{"/events/engine/1", 7, "events.engine[1]: refers to entry 7"},
        Case{"/events/cause/1", 200, "events.cause[1]: refers to entry 200"},
        Case{"/events/operation/3", 99, "events.operation[3]: refers to entry 99"},
        Case{"/events/by/0", 1, "events.by[0]: refers to entry 1"},
        Case{"/events/transfer/0", 4, "events.transfer[0]: refers to entry 4"},
        Case{"/events/engine/1", 4096, "events.engine[1]: is out of range"},
        Case{"/events/start/1", 18446744073709551615u, "events.start[1]: is out of range"},
        Case{"/transfers/event/0", -1, "transfers.event[0]: refers to entry -1"},
        Case{"/transfers/queue/1", 9, "transfers.queue[1]: refers to entry 9"},
        Case{"/transfers/length", json::array(), "transfers.length: has 0 entries, 'event' has 3"},
        Case{"/core_from/1", 5, "core_from[1]: is 5, must be 6"},
        Case{"/critical_events/0", 6, "critical_events[0]"},
        Case{"/counters/0/time/1", 0, "counters[0].time[1]: is 0"},
        Case{"/counters/0/core", 1, "counters[0].core"},
        Case{"/advice/0/events/0/1", 100, "advice[0].events[0]: refers to events"},
        Case{"/engines/1", "brain", "engines: has other names"},
        Case{"/operations/0", {"x"}, "operations[0]"},
        Case{"/critical_path/0/cause", "luck", "critical_path[0].cause: 'luck' isn't known"}}) {
    json changed = json::parse(to_json(small_profile()));
    changed[json::json_pointer(c.pointer)] = c.value;
    const std::string message = refusal(changed.dump());
    EXPECT_NE(message.find("kept.json"), std::string::npos) << c.pointer;
    EXPECT_NE(message.find(c.words), std::string::npos) << c.pointer << ": " << message;
  }
  const json complete = json::parse(to_json(small_profile()));
  for (const auto& [key, value] : complete.items()) {
    json without = complete;
    without.erase(key);
    // Profiles from before the hash was kept are still read.
    if (key == "chip_hash") continue;
    EXPECT_NE(refusal(without.dump()), "") << key;
  }
  EXPECT_NE(refusal("[1, 2]").find("isn't a profile of Headway"), std::string::npos);
  EXPECT_NE(refusal("{\"format\" \"headway\"}").find("no JSON"), std::string::npos);
}

// Whatever a file holds, it is read or refused.
TEST(ProfileFile, DamageIsReadOrRefused) {
  const std::string text = to_json(small_profile());
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text;
    for (int n = static_cast<int>(random() % 3); n >= 0; --n)
      damaged[random() % damaged.size()] =
          static_cast<char>(random() % 4 == 0 ? random() : "0123456789-,[]{}\""[random() % 17]);
    refused += !refusal(damaged).empty();
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace headway::chip

// Recorded timelines: reading, replaying, comparing.
#include "chip/replay.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "chip/dma_cost.h"

namespace headway::chip {
namespace {

const std::filesystem::path kProfiles = std::filesystem::path(HEADWAY_ROOT) / "chips/measured/profiles";

const std::string kInstructionHeads =
    "start_ns,duration_ns,engine,opcode,type,semaphore_wait_ns,activation,operands,pc\n";
const std::string kPacketHeads = "start_ns,duration_ns,dma_engine,queue,queue_type,bytes,transfer_id,op\n";
const std::string kClock = "start_ns,duration_ns,k,n\n100,3413,8,8\n";

// A load of 128 rows of 512 B, a copy that waits for it and a reduction that waits for the copy.
const std::string kLoad =
    "1000,550,Sync,DMA_DIRECT2D,REGULAR,7,,\"semaphore=8 sem_increment=16  src_elem_size=512 "
    "dst_elem_size=512 "
    "src_pattern=[512,1][128,1] dst_pattern=[262144,1][128,1] src_addr_imm=0x8005c03b0000 "
    "dst_addr_imm=0x802000036500\",1\n";
const std::string kCopy =
    "3300,310,Scalar,COPY,REGULAR,0,,\"S[8] (qSyncDynamicHW)>=16 S[4] (Scalar)++@complete "
    "src=fp32@0x36500[1,1][128,1] "
    "dst=fp32@0x4000[1,1][128,1] channels=128\",2\n";
const std::string kReduce =
    "3700,300,Vector,TENSOR_REDUCE,REGULAR,0,,\"S[4] (Scalar)>=1 op=MAX dim=X src=fp32@0x4000[1,1][128,1] "
    "dst=fp32@0x4800[1,1][1,1] channels=128\",3\n";
// The runtime's, no part of the kernel.
const std::string kPreamble = "5,20,Tensor,NOP,,0,,$E[3]+@complete cycle=1,33\n";

std::string packets() {
  std::string text = kPacketHeads;
  for (int engine = 64; engine < 80; ++engine) {
    for (int row = 0; row < 8; ++row)
      text +=
          std::to_string(2300 + 30 * row) + ",27," + std::to_string(engine) + ",1,hardware_dynamic,512,77,\n";
    text += "2560,8," + std::to_string(engine) + ",1,hardware_dynamic,4,77,\n";
  }
  return text + "3,900,67,14,instruction,16384,5,\n";
}

Recording small(const std::string& instructions = kPreamble + kCopy + kLoad + kReduce,
                const std::string& dma = packets()) {
  return parse_recording("small", kInstructionHeads + instructions, dma, kClock, "small");
}

const Spec& trn2() {
  static const Spec spec = Spec::load("trn2");
  return spec;
}

void expect_refused(const std::function<void()>& act, const std::vector<std::string>& words) {
  try {
    act();
    ADD_FAILURE() << "wasn't refused: " << words.front();
  } catch (const InputError& error) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << word << ": " << error.what();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ReplayFile, ReadsWhatTheKernelRan) {
  const Recording recording = small();
  ASSERT_EQ(recording.instructions.size(), 3u);
  ASSERT_EQ(recording.transfers.size(), 1u);
  EXPECT_EQ(recording.packets.size(), 16u * 9);
  const RecordedTransfer& transfer = recording.transfers[0];
  const RecordedInstruction& load = recording.instructions[transfer.trigger];
  EXPECT_TRUE(load.is_dma());
  EXPECT_EQ(load.engine, Engine::sync);
  EXPECT_EQ(load.semaphore, 8);
  EXPECT_EQ(load.increment, 16);
  EXPECT_FALSE(load.from.on_chip);
  EXPECT_TRUE(load.to.on_chip);
  EXPECT_EQ(load.from.counts, (std::vector<std::int64_t>{1, 128}));
  EXPECT_EQ(load.to.steps, (std::vector<std::int64_t>{1, 262144}));
  EXPECT_EQ(transfer.start, 2300);
  EXPECT_EQ(transfer.end, 2568);
  EXPECT_EQ(transfer.packets, 128);
  EXPECT_EQ(transfer.bytes, 128 * 512);
  const RecordedInstruction& copy = recording.instructions[0];
  EXPECT_EQ(copy.opcode, "COPY");
  ASSERT_EQ(copy.waits.size(), 1u);
  EXPECT_EQ(copy.waits[0].semaphore, 8);
  EXPECT_EQ(copy.waits[0].value, 16);
  EXPECT_EQ(copy.signals, std::vector<int>{4});
  EXPECT_EQ(copy.src.counts, (std::vector<std::int64_t>{1, 128}));
  EXPECT_EQ(copy.src.buffer, Buffer::sbuf);
}

TEST(ReplayFile, RefusesWhatItCannotRead) {
  const auto refuses = [](const std::string& from, const std::string& to,
                          const std::vector<std::string>& words) {
    expect_refused([&] { small(replaced(kLoad + kCopy + kReduce, from, to)); }, words);
  };
  refuses("Scalar,COPY", "Skalar,COPY", {"small.instructions.csv:3", "Skalar"});
  refuses("3300,310", "3300,-310", {"small.instructions.csv:3", "duration_ns"});
  refuses("S[4] (Scalar)++@complete", "S[4] (Scalar)--@complete",
          {"small.instructions.csv:3", "--@complete"});
  refuses("src=fp32@0x36500[1,1][128,1]", "src=fp99@0x36500[1,1][128,1]", {"fp99"});
  refuses("src=fp32@0x36500[1,1][128,1]", "src=fp32@0x36500[1,1]", {"brackets"});
  refuses("src=fp32@0x36500[1,1][128,1]", "src=fp32@0x36500[1,1][0,1]", {"positive"});
  refuses("sem_increment=16", "sem_increment=0", {"small.instructions.csv:2", "sem_increment"});
  refuses("dst_elem_size=512", "dst_elem_size=256", {"both sides"});
  refuses("channels=128\",3\n", "channels=128,3\n", {"quote"});
  refuses("channels=128\",2", "channels=128\",3,4", {"10 cells"});
  refuses("channels=128\",3\n", "channels=128\",3", {"cut off"});
  expect_refused([] { small(kLoad + kLoad); }, {"small.instructions.csv:3", "pc 1"});
  expect_refused([] { small(kPreamble); }, {"no instruction of a kernel"});
  expect_refused([] { parse_recording("x", "", "", "", "x"); }, {"x.instructions.csv", "empty"});
  expect_refused([] { parse_recording("x", "a,b\n", "", "", "x"); }, {"x.instructions.csv:1", "heads"});

  expect_refused([] { small(kLoad, kPacketHeads); }, {"small.dma.csv", "sync", "no packets"});
  expect_refused([] { small(kLoad, packets() + "3000,20,64,1,hardware_dynamic,512,78,\n"); },
                 {"engine 64", "no end"});
  // More transfers than triggers, and packets before their trigger.
  expect_refused([] { small(kLoad, packets() + "3000,8,64,1,hardware_dynamic,4,78,\n"); },
                 {"queue 1", "no engine"});
  expect_refused([] { small(replaced(kLoad, "1000,550", "9000,550")); }, {"queue 1", "no engine"});
}

TEST(ReplayFile, ReadsPlainAndGzippedFilesAndNoticesDamage) {
  std::string folder = (std::filesystem::temp_directory_path() / "headway-replay-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path root = folder;
  FileSystem& files = FileSystem::real();
  files.write_atomically(root / "a.instructions.csv", kInstructionHeads + kLoad + kCopy + kReduce);
  files.write_atomically(root / "a.pe_clock.csv", kClock);
  const std::string zipped = (root / "a.dma.csv.gz").string();
  gzFile out = gzopen(zipped.c_str(), "wb");
  gzwrite(out, packets().data(), static_cast<unsigned>(packets().size()));
  gzclose(out);
  EXPECT_EQ(recording_names(root), std::vector<std::string>{"a"});
  EXPECT_EQ(read_recording(root, "a").packets.size(), 16u * 9);

  const std::string whole = read_file(zipped);
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{12}}) {
    files.write_atomically(zipped, whole.substr(0, size));
    expect_refused([&] { read_recording(root, "a"); }, {"a.dma.csv"});
  }
  std::filesystem::remove(zipped);
  expect_refused([&] { read_recording(root, "a"); }, {"a.dma.csv", "not there"});
  expect_refused([&] { recording_names(root / "nowhere"); }, {"nowhere", "not a folder"});
  std::filesystem::remove_all(root);
}

TEST(Replay, FollowsTheRecordedDependencies) {
  const Timing timing(trn2());
  const Recording recording = small();
  const Replayed replayed = replay(recording, timing);
  const ReplayBar copy = replayed.instructions[0], reduce = replayed.instructions[1],
                  load = replayed.instructions[2];
  const ReplayBar transfer = replayed.transfers[0];
  ASSERT_EQ(recording.instructions[1].opcode, "TENSOR_REDUCE");
  EXPECT_EQ(load.start, 0);
  EXPECT_EQ(transfer.start, load.start + start_latency(timing, Dge::hardware, 1));
  EXPECT_GT(transfer.end, transfer.start);
  EXPECT_EQ(copy.start, transfer.end + picoseconds(timing.dma.completion_latency.value) +
                            picoseconds(timing.semaphore_latency.value));
  EXPECT_EQ(reduce.start, copy.end + picoseconds(timing.semaphore_latency.value));
}

// Nothing recorded about time reaches the replay.
TEST(Replay, DoesNotLookAtRecordedTimes) {
  const Timing timing(trn2());
  Recording recording = read_recording(kProfiles, "fused_bf16_s512");
  const Replayed before = replay(recording, timing);
  for (RecordedInstruction& instruction : recording.instructions) {
    instruction.start = 7 * instruction.start + 3;
    instruction.duration = 1;
  }
  for (RecordedTransfer& transfer : recording.transfers) transfer.start = transfer.end = 0;
  recording.packets.clear();
  recording.clock.clear();
  const Replayed after = replay(recording, timing);
  for (std::size_t i = 0; i < before.instructions.size(); ++i) {
    EXPECT_EQ(before.instructions[i].start, after.instructions[i].start);
    EXPECT_EQ(before.instructions[i].end, after.instructions[i].end);
  }
  for (std::size_t i = 0; i < before.transfers.size(); ++i)
    EXPECT_EQ(before.transfers[i].end, after.transfers[i].end);
}

TEST(Replay, RefusesWaitsThatNeverEnd) {
  const Timing timing(trn2());
  expect_refused([&] { replay(small(kLoad + replaced(kCopy, ">=16", ">=17") + kReduce), timing); },
                 {"line 3", "semaphore 8", "never"});
  // Each waits for the other.
  const std::string first = replaced(kCopy, "S[8] (qSyncDynamicHW)>=16", "S[6] (Vector)>=1");
  const std::string second =
      replaced(kReduce, "S[4] (Scalar)>=1", "S[4] (Scalar)>=1 S[6] (Vector)++@complete");
  expect_refused([&] { replay(small(kLoad + first + second), timing); }, {"so do all other engines"});
}

TEST(Replay, RefusesWhatTheModelHasNoCounterpartOf) {
  const Timing timing(trn2());
  expect_refused([&] { replay(small(kLoad + replaced(kCopy, "COPY", "WARP")), timing); }, {"line 3", "WARP"});
  const std::string weights =
      "10,20,Tensor,LDWEIGHTS,REGULAR,0,,\"src=fp32@0x36500[-1,0][128,1] 128*128\",9\n";
  expect_refused([&] { replay(small(kLoad + weights), timing); }, {"line 3", "LDWEIGHTS"});
}

TEST(Replay, ScoresATimelineThatIsItsOwnAsPerfect) {
  Recording recording = small();
  Replayed same;
  for (const RecordedInstruction& r : recording.instructions)
    same.instructions.push_back({r.start * 1000, r.end() * 1000});
  for (const RecordedTransfer& t : recording.transfers)
    same.transfers.push_back({t.start * 1000, t.end * 1000});
  const ReplayScore exact = score(recording, same);
  EXPECT_EQ(exact.predicted, exact.measured);
  EXPECT_EQ(exact.measured, (2568 - 1000) * 1000);
  EXPECT_EQ(exact.largest_start_error, 0);
  for (const BusyTime& busy : exact.busy)
    if (busy.engine != Engine::dma) {
      EXPECT_EQ(busy.predicted, busy.measured);
    }
  // One of three is 400 ns late, all of it counts at most once.
  same.instructions[1].start += 400'000;
  same.instructions[1].end += 400'000;
  const ReplayScore late = score(recording, same);
  EXPECT_EQ(late.largest_start_error, 400'000);
  EXPECT_EQ(late.largest_line, recording.instructions[1].line);
  EXPECT_EQ(late.median_start_error, 0);
}

// The four recorded timelines: span within 10%, starts within 500 ns in the median, engines' busy times
// within 5%. Where the windows of the array's clock stand is chance, so that starts and busy times are
// compared with them where the recording has them; the span is right with them where they are on average,
// too.
class RecordedTimeline : public testing::TestWithParam<const char*> {};
TEST_P(RecordedTimeline, IsReplayed) {
  const Timing timing(trn2());
  const Recording recording = read_recording(kProfiles, GetParam());
  const Replayed replayed = replay(recording, timing, ClockPhase::recorded);
  const ReplayScore exact = score(recording, replayed), average = score(recording, replay(recording, timing));
  for (const ReplayScore& one : {exact, average})
    EXPECT_NEAR(static_cast<double>(one.predicted), static_cast<double>(one.measured),
                0.10 * static_cast<double>(one.measured));
  EXPECT_LT(nanoseconds(exact.median_start_error), 500);
  ASSERT_EQ(exact.busy.size(), 6u);
  for (const BusyTime& busy : exact.busy) {
    if (busy.engine == Engine::dma) continue;  // queues, not an engine that runs instructions: docs/timing.md
    const auto real = static_cast<double>(busy.measured);
    EXPECT_NEAR(static_cast<double>(busy.predicted), real, 0.05 * real)
        << names_of(busy.engine)[static_cast<std::size_t>(busy.engine)];
  }
  // The same again is the same to the picosecond.
  const Replayed again = replay(recording, timing, ClockPhase::recorded);
  for (std::size_t i = 0; i < replayed.instructions.size(); ++i)
    ASSERT_EQ(replayed.instructions[i].start, again.instructions[i].start);
}
INSTANTIATE_TEST_SUITE_P(Profiles, RecordedTimeline,
                         testing::Values("baseline_bf16_s512", "baseline_fp32_s512", "fused_bf16_s512",
                                         "fused_fp32_s512"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headway::chip

// Programs as bytes: what is written reads back as it was, and nothing else is read.
#include "chip/program_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/hash.h"
#include "chip/check.h"
#include "chip/dma_engine.h"
#include "chip/harness.h"
#include "chip/sync_engine.h"
#include "chip/vector_arithmetic.h"

namespace headway::chip {
namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool coin() { return draw(0, 1) == 1; }
  // Small mostly, and now and then anything.
  std::int64_t integer() {
    return draw(0, 3) ? draw(-100, 100)
                      : static_cast<std::int64_t>(std::uniform_int_distribution<std::uint64_t>()(engine_));
  }
  std::int32_t integer32() { return static_cast<std::int32_t>(integer()); }
  std::uint32_t natural32() { return static_cast<std::uint32_t>(integer()); }
  float number() {
    return draw(0, 3) ? static_cast<float>(draw(-100, 100)) / 8 : std::numeric_limits<float>::infinity();
  }
  std::string text() {
    std::string text;
    for (std::int64_t n = draw(0, 12); n > 0; --n) text += static_cast<char>(draw(0, 255));
    return text;
  }
  View view() {
    View v;
    v.tensor = natural32();
    v.partition = integer32();
    v.offset = integer();
    v.dtype = static_cast<DType>(draw(0, kDTypes - 1));
    v.rank = static_cast<std::uint8_t>(draw(0, kMaxPairs));
    for (int d = 0; d < v.rank; ++d) v.pairs[static_cast<std::size_t>(d)] = {integer32(), integer32()};
    v.dynamic = integer32();
    return v;
  }

 private:
  std::mt19937 engine_;
};

// Fills the fields of any instruction; what is legal doesn't matter to a file.
class Fill : public Fields {
 public:
  explicit Fill(Random& random) : r_(random) {}
  void view(std::string_view, View& v, Access) override { v = r_.view(); }
  void views(std::string_view, std::vector<View>& v, Access) override {
    v.resize(static_cast<std::size_t>(r_.draw(0, 4)));
    for (View& one : v) one = r_.view();
  }
  void optional_view(std::string_view, std::optional<View>& v, Access) override {
    v = r_.coin() ? std::optional<View>(r_.view()) : std::nullopt;
  }
  void scalar(std::string_view, Scalar& s) override {
    switch (r_.draw(0, 2)) {
      case 0:
        s = Scalar(r_.number());
        break;
      case 1:
        s = Scalar(r_.integer32());
        break;
      default:
        s = Scalar(r_.view());
    }
  }
  void reg(std::string_view, Register& v, Access) override { v.id = r_.natural32(); }
  void register_or(std::string_view, RegisterOr& v) override {
    if (r_.coin()) {
      v = Register{r_.natural32()};
    } else {
      v = r_.integer32();
    }
  }
  void integer(std::string_view, std::int64_t& v) override { v = r_.integer(); }
  void integers(std::string_view, std::vector<std::int64_t>& v) override {
    v.resize(static_cast<std::size_t>(r_.draw(0, 4)));
    for (std::int64_t& one : v) one = r_.integer();
  }
  void number(std::string_view, float& v) override { v = r_.number(); }
  void numbers(std::string_view, std::vector<float>& v) override {
    v.resize(static_cast<std::size_t>(r_.draw(0, 4)));
    for (float& one : v) one = r_.number();
  }
  void flag(std::string_view, bool& v) override { v = r_.coin(); }
  void chosen(std::string_view, int& v, std::span<const std::string_view> names) override {
    v = static_cast<int>(r_.draw(0, static_cast<std::int64_t>(names.size()) - 1));
  }

 private:
  Random& r_;
};

Program random_program(unsigned seed, std::size_t instructions) {
  Random r(seed);
  Program p;
  p.kernel = r.text();
  p.chip = r.text();
  p.num_programs = static_cast<int>(r.draw(1, 100));
  p.program_id = static_cast<int>(r.draw(0, p.num_programs - 1));
  p.registers = static_cast<std::uint32_t>(r.draw(0, 1000));
  for (std::int64_t n = r.draw(0, 3); n > 0; --n) p.files.push_back(r.text());
  for (std::int64_t n = r.draw(0, 9); n > 0; --n) p.sources.push_back({r.natural32(), r.natural32()});
  const auto kinds = instruction_set();
  for (std::size_t i = 0; i < instructions; ++i) {
    const Kind& kind = kinds[(seed + i) % kinds.size()];
    p.instructions.push_back(kind.make());
    Fill fill(r);
    p.instructions.back()->visit(fill);
    p.instructions.back()->engine = static_cast<Engine>(r.draw(0, 6));
    p.instructions.back()->source = r.natural32();
  }
  std::int64_t declared = 0;
  for (std::int64_t n = r.draw(1, 6); n > 0; --n) {
    Tensor t;
    t.name = r.text();
    for (std::int64_t d = r.draw(0, 5); d > 0; --d) t.shape.push_back(r.integer());
    t.dtype = static_cast<DType>(r.draw(0, kDTypes - 1));
    t.buffer = static_cast<Buffer>(r.draw(0, 3));
    t.role = is_on_chip(t.buffer) ? Role::internal : static_cast<Role>(r.draw(0, 3));
    if (r.coin()) t.address = Address{r.integer32(), r.integer()};
    t.source = r.natural32();
    declared = r.draw(declared, static_cast<std::int64_t>(instructions));
    t.declared_at = static_cast<std::uint32_t>(declared);
    p.tensors.push_back(t);
    if (t.role == Role::constant) {
      const std::string bytes = r.text();
      auto& constant = p.constants[static_cast<TensorId>(p.tensors.size() - 1)];
      for (char c : bytes) constant.push_back(static_cast<std::byte>(c));
    }
  }
  for (std::int64_t n = r.draw(0, 3); n > 0; --n) {
    DynamicOffset d;
    d.kind = static_cast<DynamicOffset::Kind>(r.draw(0, 2));
    d.source.id = r.natural32();
    d.index = r.view();
    d.stride = r.integer();
    p.dynamic_offsets.push_back(d);
  }
  if (instructions > 0) {
    const auto any = [&] {
      return static_cast<std::uint32_t>(r.draw(0, static_cast<std::int64_t>(instructions) - 1));
    };
    for (std::int64_t n = r.draw(0, 3); n > 0; --n) {
      const std::uint32_t before = any();
      p.edges.push_back({before, any()});
    }
    for (std::int64_t n = r.draw(0, 3); n > 0; --n) p.labels[any()] = r.text();
  }
  return p;
}

void expect_equal(const Program& a, const Program& b) {
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.chip, b.chip);
  EXPECT_EQ(a.program_id, b.program_id);
  EXPECT_EQ(a.num_programs, b.num_programs);
  EXPECT_EQ(a.registers, b.registers);
  EXPECT_EQ(a.files, b.files);
  EXPECT_EQ(a.sources, b.sources);
  EXPECT_EQ(a.dynamic_offsets, b.dynamic_offsets);
  EXPECT_EQ(a.constants, b.constants);
  EXPECT_EQ(a.edges, b.edges);
  EXPECT_EQ(a.labels, b.labels);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor &s = a.tensors[i], &t = b.tensors[i];
    EXPECT_TRUE(s.name == t.name && s.shape == t.shape && s.dtype == t.dtype && s.buffer == t.buffer &&
                s.role == t.role && s.address == t.address && s.source == t.source &&
                s.declared_at == t.declared_at);
  }
  ASSERT_EQ(a.instructions.size(), b.instructions.size());
  for (std::size_t i = 0; i < a.instructions.size(); ++i) {
    ASSERT_EQ(a.instructions[i]->name(), b.instructions[i]->name());
    EXPECT_EQ(a.instructions[i]->engine, b.instructions[i]->engine);
    EXPECT_EQ(a.instructions[i]->source, b.instructions[i]->source);
    EXPECT_EQ(to_string(*a.instructions[i], a), to_string(*b.instructions[i], b));
  }
}

std::string refusal(std::string_view bytes) {
  try {
    parse_program(bytes, "here.hwprog");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

constexpr std::size_t kHeader = 20, kChecksum = 8;

// With the checksum that belongs to the payload, so that what is in it counts.
std::string sealed(std::string bytes) {
  const std::string_view payload(bytes.data() + kHeader, bytes.size() - kHeader - kChecksum);
  const std::uint64_t sum = hash64(payload);
  for (std::size_t i = 0; i < kChecksum; ++i)
    bytes[bytes.size() - kChecksum + i] = static_cast<char>(sum >> (8 * i));
  return bytes;
}

TEST(ProgramFile, ReadsBackWhatWasWritten) {
  const std::size_t kinds = instruction_set().size();
  EXPECT_GT(kinds, 50u);
  for (unsigned seed = 0; seed < 200; ++seed) {
    // All kinds at once now and then, else a few.
    const Program program = random_program(seed, seed % 10 == 0 ? kinds : seed % 7);
    const std::string bytes = serialise(program);
    const Program read = parse_program(bytes, "here");
    expect_equal(program, read);
    ASSERT_EQ(serialise(read), bytes) << seed;
  }
}

TEST(ProgramFile, CopiesOfInstructionsAreEqual) {
  const Program program = random_program(5, 3 * instruction_set().size());
  for (const auto& instruction : program.instructions) {
    const std::unique_ptr<Instruction> again = copy(*instruction);
    EXPECT_EQ(to_string(*again, program), to_string(*instruction, program));
    EXPECT_EQ(again->engine, instruction->engine);
    EXPECT_EQ(again->source, instruction->source);
  }
}

TEST(ProgramFile, IsRefusedCutOffAtAnyByte) {
  const std::string bytes = serialise(random_program(3, 6));
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_NE(refusal(bytes.substr(0, n)), "") << n;
    // The payload cut off, header and checksum as they should be.
    if (n < kHeader || n >= bytes.size() - kChecksum) continue;
    std::string cut = bytes.substr(0, n) + std::string(kChecksum, '\0');
    const std::uint64_t size = n - kHeader;
    for (std::size_t i = 0; i < 8; ++i) cut[12 + i] = static_cast<char>(size >> (8 * i));
    ASSERT_NE(refusal(sealed(cut)).find("here.hwprog: byte "), std::string::npos) << n;
  }
  EXPECT_NE(refusal(bytes + "x"), "");
  EXPECT_EQ(refusal(bytes), "");
}

TEST(ProgramFile, IsRefusedWithAnyBitFlipped) {
  const std::string bytes = serialise(random_program(3, 6));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[n] = static_cast<char>(damaged[n] ^ (1 << bit));
      ASSERT_NE(refusal(damaged), "") << n;
    }
}

// With the checksum made to fit, other bytes are another program or none.
TEST(ProgramFile, IsSoundWhateverTheBytes) {
  Recorder nki("k", trn2());
  const Tile x = nki.input("x", DType::f32, {8, 16}), y = nki.output("y", DType::f32, {8, 16});
  const Tile t = nki.sbuf(DType::f32, {8, 16}), index = nki.sbuf(DType::i32, {1, 1});
  dma_copy(t, x);
  register_load(nki.new_register(), index);
  fori_loop(nki, 0, 3, 1, [&](Register i) {
    tensor_scalar(t(ds(0, 8), ds(0, 4)).moved_by(i, 4), t(ds(0, 8), ds(0, 4)), Alu::add, 1.0);
  });
  dma_copy(y, t);
  nki.label("last");
  const std::string bytes = serialise(nki.finish());
  int refused = 0, read = 0;
  for (std::size_t n = kHeader; n < bytes.size() - kChecksum; ++n)
    for (int value = 0; value < 256; value += n % 4 ? 37 : 1) {
      std::string other = bytes;
      other[n] = static_cast<char>(value);
      other = sealed(other);
      std::optional<Program> program;
      try {
        program = parse_program(other, "here");
      } catch (const InputError&) {
        ++refused;
        continue;
      }
      ++read;
      const std::string again = serialise(*program);
      ASSERT_EQ(serialise(parse_program(again, "again")), again);
      Diagnostics diagnostics(Diagnostics::Mode::collect);
      const bool legal = Check::whole(trn2(), *program, diagnostics);
      ASSERT_EQ(legal, diagnostics.errors() == 0);
    }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 1000);
}

TEST(ProgramFile, SaysWhatIsWrong) {
  const std::string bytes = serialise(random_program(10, instruction_set().size()));
  EXPECT_NE(refusal("").find("here.hwprog: is no program file"), std::string::npos) << refusal("");
  EXPECT_NE(refusal("PK\x03\x04 something else, long enough").find("doesn't start with its mark"),
            std::string::npos);
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_NE(refusal(newer).find("is a program file of version 2, this is for version 1"), std::string::npos)
      << refusal(newer);
  EXPECT_NE(refusal(bytes + "more").find("its header promises"), std::string::npos);
  std::string damaged = bytes;
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  EXPECT_NE(refusal(damaged).find("is damaged: its checksum differs"), std::string::npos);
  // An instruction whose parameters have changed since, and one that is gone.
  const std::string name = std::string("\x0d") + "tensor_tensor";
  const std::size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  std::string changed = bytes;
  changed[at + name.size()] = static_cast<char>(changed[at + name.size()] ^ 1);
  EXPECT_NE(refusal(sealed(changed)).find("'tensor_tensor' has other parameters in this version"),
            std::string::npos)
      << refusal(sealed(changed));
  std::string unknown = bytes;
  unknown[at + 1] = 'T';
  EXPECT_NE(refusal(sealed(unknown)).find("there is no instruction 'Tensor_tensor'"), std::string::npos);
  EXPECT_NE(refusal(sealed(unknown)).find("Record it again"), std::string::npos);
  // A core that its logical core doesn't have.
  for (const auto& [id, count] : {std::pair{0, 0}, std::pair{2, 2}, std::pair{7, 1}}) {
    Program program = random_program(10, 3);
    program.program_id = id;
    program.num_programs = count;
    EXPECT_NE(
        refusal(serialise(program)).find("is core " + std::to_string(id) + " of " + std::to_string(count)),
        std::string::npos);
  }
}

TEST(ProgramFile, OfAnotherChipIsRefused) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("headway_program_" + std::to_string(getpid()) + ".hwprog");
  Recorder nki("k", trn2());
  const Tile t = nki.sbuf(DType::f32, {8, 16});
  tensor_scalar(t, t, Alu::add, 1.0);
  Program program = nki.finish();
  write_program(FileSystem::real(), path, program);
  Diagnostics diagnostics(Diagnostics::Mode::collect);
  EXPECT_EQ(load_program(path, trn2(), diagnostics).instructions.size(), 1u);
  EXPECT_EQ(diagnostics.errors(), 0u);
  try {
    load_program(path, trn1(), diagnostics);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("was recorded for trn2, not for trn1"), std::string::npos)
        << error.what();
  }
  // What is illegal in it is reported, with the line it was recorded at.
  program.tensors[0].shape = {8, 15};
  write_program(FileSystem::real(), path, program);
  EXPECT_TRUE(load_program(path, trn2(), diagnostics).instructions[0]->broken);
  EXPECT_GT(diagnostics.errors(), 0u);
  EXPECT_EQ(diagnostics.all()[0].rule, "out-of-bounds");
  EXPECT_EQ(diagnostics.all()[0].where.substr(0, 16), "program_test.cc:");
  std::filesystem::remove(path);
  EXPECT_THROW(load_program(path, trn2(), diagnostics), InputError);
}

TEST(Program, Text) {
  Recorder nki("k", trn2());
  const Tile a = nki.sbuf(DType::f32, {8, 16}, {.name = "a"}),
             b = nki.sbuf(DType::bf16, {8, 16}, {.name = "b"});
  tensor_tensor(a, a, b, Alu::add);
  const std::string text = to_string(*nki.program().instructions[0], nki.program());
  EXPECT_EQ(text.find("tensor_tensor(dst='a' float32[8, 16], data1='a' float32[8, 16], data2='b' bfloat16[8, "
                      "16], op=add"),
            0u)
      << text;
  EXPECT_EQ(nki.program().where(0), "");
  EXPECT_EQ(nki.program().where(nki.program().instructions[0]->source).substr(0, 16), "program_test.cc:");
}

TEST(Program, OperandsIncludeIndices) {
  Recorder nki("k", trn2());
  const Tile a = nki.sbuf(DType::f32, {8, 16}), one = nki.sbuf(DType::i32, {1, 1});
  tensor_tensor(a(ds(0, 8), ds(0, 4)).moved_by(one, 4), a(ds(0, 8), ds(0, 4)), a(ds(0, 8), ds(0, 4)),
                Alu::add);
  const auto operands = operand_views(*nki.program().instructions[0], nki.program());
  ASSERT_EQ(operands.size(), 4u);
  EXPECT_EQ(operands[0].name, "dst");
  EXPECT_EQ(operands[0].access, Access::write);
  EXPECT_EQ(operands[1].name, "dst");
  EXPECT_EQ(operands[1].access, Access::read);
  EXPECT_EQ(*operands[1].view, one.view());
}

}  // namespace
}  // namespace headway::chip

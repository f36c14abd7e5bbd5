#include "chip/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "chip/check.h"

namespace headway::chip {
namespace {

constexpr std::string_view kMagic = "HWPROG\r\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeader = 8 + 4 + 8;  // magic, version, bytes of the payload
constexpr std::size_t kChecksum = 8;

void append_fixed(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t read_fixed(std::string_view in, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(in[at + static_cast<std::size_t>(i)])} << (8 * i);
  return value;
}

class Writer {
 public:
  std::string out;
  void natural(std::uint64_t value) {  // 7 bits a byte, lowest first
    while (value >= 0x80) {
      out.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out.push_back(static_cast<char>(value));
  }
  void integer(std::int64_t value) {  // zigzag
    natural((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void byte(unsigned value) { out.push_back(static_cast<char>(value)); }
  void number(float value) { append_fixed(out, std::bit_cast<std::uint32_t>(value), 4); }
  void text(std::string_view value) {
    natural(value.size());
    out += value;
  }
};

class Reader {
 public:
  Reader(std::string_view in, const std::string& where) : in_(in), where_(where) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(fmt::format("{}: byte {} of the program", where_, at_), what,
                     "Record it again with this version");
  }
  std::uint64_t natural() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const unsigned b = byte();
      value |= std::uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return value;
    }
    refuse("a number has more than 64 bits");
  }
  std::uint64_t natural_up_to(std::uint64_t limit, const char* what) {
    const std::uint64_t value = natural();
    if (value > limit) refuse(fmt::format("{} is {}, more than {}", what, value, limit));
    return value;
  }
  std::int64_t integer() {
    const std::uint64_t value = natural();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::int32_t integer32(const char* what) {
    const std::int64_t value = integer();
    if (value != static_cast<std::int32_t>(value)) refuse(fmt::format("{} doesn't fit into 32 bits", what));
    return static_cast<std::int32_t>(value);
  }
  std::uint32_t natural32(const char* what) {
    return static_cast<std::uint32_t>(natural_up_to(0xffffffffu, what));
  }
  unsigned byte() {
    if (at_ >= in_.size()) refuse("the program ends early");
    return static_cast<unsigned char>(in_[at_++]);
  }
  unsigned byte_up_to(unsigned limit, const char* what) {
    const unsigned value = byte();
    if (value > limit) refuse(fmt::format("{} is {}, more than {}", what, value, limit));
    return value;
  }
  float number() {
    need(4);
    const auto bits = static_cast<std::uint32_t>(read_fixed(in_, at_, 4));
    at_ += 4;
    return std::bit_cast<float>(bits);
  }
  std::string_view text() {
    const std::size_t size = count("a text");
    const std::string_view value = in_.substr(at_, size);
    at_ += size;
    return value;
  }
  // The number of things that follow, each of at least a byte.
  std::size_t count(const char* what) {
    const std::uint64_t value = natural();
    if (value > in_.size() - at_) refuse(fmt::format("{} of {} doesn't fit into what is left", what, value));
    return static_cast<std::size_t>(value);
  }
  bool done() const { return at_ == in_.size(); }

 private:
  void need(std::size_t bytes) {
    if (in_.size() - at_ < bytes) refuse("the program ends early");
  }
  std::string_view in_;
  const std::string& where_;
  std::size_t at_ = 0;
};

void write_view(Writer& w, const View& view) {
  w.natural(view.tensor);
  w.integer(view.partition);
  w.integer(view.offset);
  w.byte(static_cast<unsigned>(view.dtype));
  w.byte(view.rank);
  for (int d = 0; d < view.rank; ++d) {
    w.integer(view.pairs[static_cast<std::size_t>(d)].step);
    w.integer(view.pairs[static_cast<std::size_t>(d)].count);
  }
  w.integer(view.dynamic);
}

View read_view(Reader& r) {
  View view;
  view.tensor = r.natural32("a tensor");
  view.partition = r.integer32("a partition");
  view.offset = r.integer();
  view.dtype = static_cast<DType>(r.byte_up_to(kDTypes - 1, "a dtype"));
  view.rank = static_cast<std::uint8_t>(r.byte_up_to(kMaxPairs, "the extents of a view"));
  for (int d = 0; d < view.rank; ++d) {
    view.pairs[static_cast<std::size_t>(d)].step = r.integer32("a step");
    view.pairs[static_cast<std::size_t>(d)].count = r.integer32("an extent");
  }
  view.dynamic = r.integer32("a dynamic offset");
  return view;
}

class FieldWriter : public Fields {
 public:
  explicit FieldWriter(Writer& w) : w_(w) {}
  void view(std::string_view, View& v, Access) override { write_view(w_, v); }
  void views(std::string_view, std::vector<View>& vs, Access) override {
    w_.natural(vs.size());
    for (const View& v : vs) write_view(w_, v);
  }
  void optional_view(std::string_view, std::optional<View>& v, Access) override {
    w_.byte(v.has_value());
    if (v) write_view(w_, *v);
  }
  void scalar(std::string_view, Scalar& s) override {
    w_.byte(static_cast<unsigned>(s.index()));
    if (const auto* f = std::get_if<float>(&s)) w_.number(*f);
    if (const auto* i = std::get_if<std::int32_t>(&s)) w_.integer(*i);
    if (const View* v = s.view()) write_view(w_, *v);
  }
  void reg(std::string_view, Register& r, Access) override { w_.natural(r.id); }
  void register_or(std::string_view, RegisterOr& v) override {
    w_.byte(static_cast<unsigned>(v.index()));
    if (const auto* i = std::get_if<std::int32_t>(&v)) w_.integer(*i);
    if (const auto* r = std::get_if<Register>(&v)) w_.natural(r->id);
  }
  void integer(std::string_view, std::int64_t& v) override { w_.integer(v); }
  void integers(std::string_view, std::vector<std::int64_t>& vs) override {
    w_.natural(vs.size());
    for (std::int64_t v : vs) w_.integer(v);
  }
  void number(std::string_view, float& v) override { w_.number(v); }
  void numbers(std::string_view, std::vector<float>& vs) override {
    w_.natural(vs.size());
    for (float v : vs) w_.number(v);
  }
  void flag(std::string_view, bool& v) override { w_.byte(v); }
  void chosen(std::string_view, int& v, std::span<const std::string_view>) override {
    w_.natural(static_cast<unsigned>(v));
  }

 private:
  Writer& w_;
};

class FieldReader : public Fields {
 public:
  explicit FieldReader(Reader& r) : r_(r) {}
  void view(std::string_view, View& v, Access) override { v = read_view(r_); }
  void views(std::string_view, std::vector<View>& vs, Access) override {
    vs.resize(r_.count("a list of views"));
    for (View& v : vs) v = read_view(r_);
  }
  void optional_view(std::string_view, std::optional<View>& v, Access) override {
    v.reset();
    if (r_.byte_up_to(1, "a flag")) v = read_view(r_);
  }
  void scalar(std::string_view, Scalar& s) override {
    switch (r_.byte_up_to(2, "the kind of a scalar")) {
      case 0:
        s = Scalar(r_.number());
        break;
      case 1:
        s = Scalar(r_.integer32("a scalar"));
        break;
      default:
        s = Scalar(read_view(r_));
    }
  }
  void reg(std::string_view, Register& v, Access) override { v.id = r_.natural32("a register"); }
  void register_or(std::string_view, RegisterOr& v) override {
    if (r_.byte_up_to(1, "the kind of a value") == 0) {
      v = r_.integer32("a value");
    } else {
      v = Register{r_.natural32("a register")};
    }
  }
  void integer(std::string_view, std::int64_t& v) override { v = r_.integer(); }
  void integers(std::string_view, std::vector<std::int64_t>& vs) override {
    vs.resize(r_.count("a list of integers"));
    for (std::int64_t& v : vs) v = r_.integer();
  }
  void number(std::string_view, float& v) override { v = r_.number(); }
  void numbers(std::string_view, std::vector<float>& vs) override {
    vs.resize(r_.count("a list of numbers"));
    for (float& v : vs) v = r_.number();
  }
  void flag(std::string_view, bool& v) override { v = r_.byte_up_to(1, "a flag") != 0; }
  void chosen(std::string_view name, int& v, std::span<const std::string_view> names) override {
    const std::uint64_t value = r_.natural();
    if (value >= names.size()) r_.refuse(fmt::format("{} has no choice {}", name, value));
    v = static_cast<int>(value);
  }

 private:
  Reader& r_;
};

// The names of a kind's fields with all optional ones absent: files say what their instructions looked like,
// so that a change of an instruction is noticed and not misread.
class FieldNames : public Fields {
 public:
  std::string all;
  void view(std::string_view name, View&, Access) override { add('v', name); }
  void views(std::string_view name, std::vector<View>&, Access) override { add('V', name); }
  void optional_view(std::string_view name, std::optional<View>&, Access) override { add('o', name); }
  void scalar(std::string_view name, Scalar&) override { add('s', name); }
  void reg(std::string_view name, Register&, Access) override { add('r', name); }
  void register_or(std::string_view name, RegisterOr&) override { add('R', name); }
  void integer(std::string_view name, std::int64_t&) override { add('i', name); }
  void integers(std::string_view name, std::vector<std::int64_t>&) override { add('I', name); }
  void number(std::string_view name, float&) override { add('n', name); }
  void numbers(std::string_view name, std::vector<float>&) override { add('N', name); }
  void flag(std::string_view name, bool&) override { add('f', name); }
  void chosen(std::string_view name, int&, std::span<const std::string_view> names) override {
    add('c', name);
    for (std::string_view n : names) add('=', n);
  }

 private:
  void add(char kind, std::string_view name) {
    all += kind;
    all += name;
    all += '\n';
  }
};

std::uint32_t layout_of(Instruction& empty) {
  FieldNames names;
  empty.visit(names);
  return static_cast<std::uint32_t>(hash64(names.all));
}

void write_tensor(Writer& w, const Tensor& t) {
  w.text(t.name);
  w.natural(t.shape.size());
  for (std::int64_t extent : t.shape) w.integer(extent);
  w.byte(static_cast<unsigned>(t.dtype));
  w.byte(static_cast<unsigned>(t.buffer));
  w.byte(static_cast<unsigned>(t.role));
  w.byte(t.address.has_value());
  if (t.address) {
    w.integer(t.address->partition);
    w.integer(t.address->byte);
  }
  w.natural(t.source);
  w.natural(t.declared_at);
}

Tensor read_tensor(Reader& r) {
  Tensor t;
  t.name = r.text();
  t.shape.resize(r.count("a shape"));
  for (std::int64_t& extent : t.shape) extent = r.integer();
  t.dtype = static_cast<DType>(r.byte_up_to(kDTypes - 1, "a dtype"));
  t.buffer = static_cast<Buffer>(r.byte_up_to(3, "a buffer"));
  t.role = static_cast<Role>(r.byte_up_to(3, "a role"));
  if (r.byte_up_to(1, "a flag")) {
    Address address;
    address.partition = r.integer32("a partition");
    address.byte = r.integer();
    t.address = address;
  }
  t.source = r.natural32("a source");
  t.declared_at = r.natural32("a position");
  return t;
}

}  // namespace

std::string serialise(const Program& program) {
  Writer w;
  w.text(program.kernel);
  w.text(program.chip);
  w.natural(static_cast<unsigned>(program.program_id));
  w.natural(static_cast<unsigned>(program.num_programs));
  w.natural(program.registers);
  w.natural(program.files.size());
  for (const std::string& file : program.files) w.text(file);
  w.natural(program.sources.size());
  for (const SourceLine& line : program.sources) {
    w.natural(line.file);
    w.natural(line.line);
  }
  w.natural(program.tensors.size());
  for (const Tensor& t : program.tensors) write_tensor(w, t);
  w.natural(program.dynamic_offsets.size());
  for (const DynamicOffset& d : program.dynamic_offsets) {
    w.byte(static_cast<unsigned>(d.kind));
    w.natural(d.source.id);
    write_view(w, d.index);
    w.integer(d.stride);
  }
  // The kinds that occur, in the order of the instruction set, each with its layout.
  std::map<std::string_view, std::uint64_t> used;
  for (const auto& instruction : program.instructions) used.emplace(instruction->name(), 0);
  w.natural(used.size());
  std::uint64_t next = 0;
  for (const Kind& kind : instruction_set()) {
    const auto found = used.find(kind.name);
    if (found == used.end()) continue;
    found->second = next++;
    w.text(kind.name);
    append_fixed(w.out, layout_of(*kind.make()), 4);
  }
  if (next != used.size()) throw Bug("an instruction is not in the instruction set");
  w.natural(program.instructions.size());
  FieldWriter fields(w);
  for (const auto& instruction : program.instructions) {
    w.natural(used[instruction->name()]);
    w.byte(static_cast<unsigned>(instruction->engine));
    w.natural(instruction->source);
    instruction->visit(fields);
  }
  w.natural(program.constants.size());
  for (const auto& [tensor, bytes] : program.constants) {
    w.natural(tensor);
    w.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  w.natural(program.edges.size());
  for (const Edge& edge : program.edges) {
    w.natural(edge.before);
    w.natural(edge.after);
  }
  w.natural(program.labels.size());
  for (const auto& [instruction, label] : program.labels) {
    w.natural(instruction);
    w.text(label);
  }
  std::string file(kMagic);
  append_fixed(file, kVersion, 4);
  append_fixed(file, w.out.size(), 8);
  file += w.out;
  append_fixed(file, hash64(w.out), 8);
  return file;
}

Program parse_program(std::string_view bytes, const std::string& where) {
  if (bytes.size() < kHeader || bytes.substr(0, kMagic.size()) != kMagic)
    throw InputError(where, "is no program file: it doesn't start with its mark");
  const auto version = static_cast<std::uint32_t>(read_fixed(bytes, 8, 4));
  if (version != kVersion)
    throw InputError(
        where, fmt::format("is a program file of version {}, this is for version {}", version, kVersion),
        "Record the program again with this version");
  const std::uint64_t size = read_fixed(bytes, 12, 8);
  if (bytes.size() < kHeader + kChecksum || size != bytes.size() - kHeader - kChecksum)
    throw InputError(
        where,
        fmt::format("has {} bytes, its header promises {} + {}", bytes.size(), size, kHeader + kChecksum),
        "It was cut off or something was appended");
  const std::string_view payload = bytes.substr(kHeader, static_cast<std::size_t>(size));
  if (hash64(payload) != read_fixed(bytes, kHeader + payload.size(), 8))
    throw InputError(where, "is damaged: its checksum differs");

  Reader r(payload, where);
  Program program;
  program.kernel = r.text();
  program.chip = r.text();
  program.program_id = static_cast<int>(r.natural_up_to(65535, "the program id"));
  program.num_programs = static_cast<int>(r.natural_up_to(65535, "the number of programs"));
  if (program.program_id >= program.num_programs)
    r.refuse(fmt::format("is core {} of {}", program.program_id, program.num_programs));
  program.registers = static_cast<std::uint32_t>(r.natural_up_to(1 << 20, "the number of registers"));
  program.files.resize(r.count("a list of files"));
  for (std::string& file : program.files) file = r.text();
  program.sources.resize(r.count("a list of lines"));
  for (SourceLine& line : program.sources) {
    line.file = r.natural32("a file");
    line.line = r.natural32("a line");
  }
  if (program.sources.empty()) r.refuse("there is no line 0, the unknown one");
  program.tensors.resize(r.count("a list of tensors"));
  for (Tensor& t : program.tensors) t = read_tensor(r);
  program.dynamic_offsets.resize(r.count("a list of dynamic offsets"));
  for (DynamicOffset& d : program.dynamic_offsets) {
    d.kind = static_cast<DynamicOffset::Kind>(r.byte_up_to(2, "the kind of a dynamic offset"));
    d.source.id = r.natural32("a register");
    d.index = read_view(r);
    d.stride = r.integer();
  }
  std::vector<const Kind*> kinds(r.count("a list of instructions"));
  for (const Kind*& kind : kinds) {
    const std::string_view name = r.text();
    std::uint32_t layout = 0;
    for (int i = 0; i < 4; ++i) layout |= std::uint32_t{r.byte()} << (8 * i);
    const auto all = instruction_set();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Kind& k) { return k.name == name; });
    if (found == all.end()) r.refuse(fmt::format("there is no instruction '{}'", name));
    if (layout_of(*found->make()) != layout)
      r.refuse(fmt::format("'{}' has other parameters in this version", name));
    kind = &*found;
  }
  program.instructions.resize(r.count("a list of instructions"));
  FieldReader fields(r);
  for (auto& instruction : program.instructions) {
    const std::uint64_t kind = r.natural();
    if (kind >= kinds.size()) r.refuse(fmt::format("there is no instruction kind {}", kind));
    instruction = kinds[static_cast<std::size_t>(kind)]->make();
    instruction->engine = static_cast<Engine>(r.byte_up_to(6, "an engine"));
    instruction->source = r.natural32("a source");
    instruction->visit(fields);
  }
  const auto known_instruction = [&](std::uint64_t i) {
    if (i >= program.instructions.size()) r.refuse(fmt::format("there is no instruction {}", i));
    return static_cast<std::uint32_t>(i);
  };
  for (std::size_t n = r.count("a list of constants"); n > 0; --n) {
    const std::uint32_t tensor = r.natural32("a tensor");
    const std::string_view data = r.text();
    if (tensor >= program.tensors.size() || program.tensors[tensor].role != Role::constant)
      r.refuse(fmt::format("tensor {} isn't a constant", tensor));
    const auto* first = reinterpret_cast<const std::byte*>(data.data());
    program.constants[tensor] = {first, first + data.size()};
  }
  for (std::size_t n = r.count("a list of edges"); n > 0; --n) {
    const std::uint32_t before = known_instruction(r.natural());
    program.edges.push_back({before, known_instruction(r.natural())});
  }
  for (std::size_t n = r.count("a list of labels"); n > 0; --n) {
    const std::uint32_t instruction = known_instruction(r.natural());
    program.labels[instruction] = r.text();
  }
  if (!r.done()) r.refuse("something follows its end");

  std::uint32_t declared = 0;
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& t = program.tensors[i];
    if (t.declared_at < declared || t.declared_at > program.instructions.size())
      r.refuse(fmt::format("tensor {} is declared out of order", i));
    declared = t.declared_at;
    if ((t.role != Role::internal) && is_on_chip(t.buffer))
      r.refuse(fmt::format("tensor {} comes from outside, but lies on chip", i));
  }
  return program;
}

void write_program(FileSystem& files, const std::filesystem::path& path, const Program& program) {
  files.write_atomically(path, serialise(program));
}

Program load_program(const std::filesystem::path& path, const Spec& spec, Diagnostics& diagnostics) {
  Program program = parse_program(read_file(path), path.string());
  if (program.chip != spec.name)
    throw InputError(path.string(), fmt::format("was recorded for {}, not for {}", program.chip, spec.name));
  Check::whole(spec, program, diagnostics);
  return program;
}

}  // namespace headway::chip

// Recording kernels in C++. A kernel is a function of a Recorder and tiles; calling instructions on tiles
// records them:
//
//   void scale_rows(Recorder& nki, const Tile& x, const Tile& factor, const Tile& out) {
//     Tile a = nki.sbuf(x.dtype(), {128, 512});
//     dma_copy(a, x);
//     tensor_scalar(a, a, Alu::multiply, factor);
//     dma_copy(out, a);
//   }
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "chip/check.h"
#include "chip/diagnostics.h"
#include "chip/program.h"
#include "chip/spec.h"
#include "chip/view.h"

namespace headway::chip {

using Here = std::source_location;

class Recorder;

// A part of a dimension: [start, stop) by step. `at` is one element (its extent goes, see `select`).
struct Range {
  std::int64_t start = 0, stop = 0, step = 1;
  bool single = false;
};
inline Range ds(std::int64_t start, std::int64_t size) { return {start, start + size, 1, false}; }
inline Range range(std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  return {start, stop, step, false};
}
inline Range at(std::int64_t index) { return {index, index + 1, 1, true}; }

// A view and the program it belongs to. Cheap to copy. Methods give other views of the same memory; see
// chip/view.h for their rules.
class Tile {
 public:
  Tile(Recorder& recorder, const View& view) : recorder_(&recorder), view_(view) {}
  operator const View&() const { return view_; }
  const View& view() const { return view_; }
  Recorder& recorder() const { return *recorder_; }

  Shape shape() const { return view_.shape(); }
  std::int64_t extent(int dim) const { return view_.pairs[static_cast<std::size_t>(dim)].count; }
  DType dtype() const { return view_.dtype; }

  // Ranges of the first dimensions; the others stay whole.
  template <class... Ranges>
  Tile operator()(Ranges... ranges) const {
    return sliced({Range(ranges)...});
  }
  Tile sliced(std::initializer_list<Range> ranges) const;
  Tile permute(std::initializer_list<int> order) const;
  Tile broadcast(int dim, std::int64_t count) const;
  Tile expand(int dim) const;
  Tile squeeze(int dim) const;
  Tile reshape(const Shape& shape) const;
  Tile reinterpret(DType dtype) const;
  // A pattern over the storage of the tensor, outermost first, as NKI's `.ap`.
  Tile pattern(std::initializer_list<Pair> pairs, std::int64_t offset = 0) const;
  // The offset plus a register's or a [1, 1] SBUF tile's value times `stride` elements.
  Tile moved_by(Register reg, std::int64_t stride) const;
  Tile moved_by(const Tile& index, std::int64_t stride) const;
  // HBM: row r is the row index[r], a [rows, 1] SBUF tile, `stride` elements apart.
  Tile rows_at(const Tile& index, std::int64_t stride) const;

 private:
  Recorder* recorder_;
  View view_;
};

struct TensorOptions {
  std::string name = {};
  std::optional<Address> address = {};
};

class Recorder {
 public:
  // Diagnostics stop at the first error where none are given. `spec` and `diagnostics` must outlive the
  // recorder. Collecting goes on after declarations and instructions that break a rule; view algebra always
  // throws.
  Recorder(std::string kernel, const Spec& spec, Diagnostics* diagnostics = nullptr, int program_id = 0,
           int num_programs = 1);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const Spec& spec() const { return spec_; }
  int program_id() const { return program_.program_id; }
  int num_programs() const { return program_.num_programs; }

  Tile input(const std::string& name, DType dtype, const Shape& shape, Here here = Here::current());
  Tile output(const std::string& name, DType dtype, const Shape& shape, Here here = Here::current());
  // A constant that is part of the program, row-major bytes.
  Tile constant(const std::string& name, DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                Here here = Here::current());
  Tile sbuf(DType dtype, const Shape& shape, const TensorOptions& options = {}, Here here = Here::current());
  Tile psum(DType dtype, const Shape& shape, const TensorOptions& options = {}, Here here = Here::current());
  Tile private_hbm(DType dtype, const Shape& shape, const TensorOptions& options = {},
                   Here here = Here::current());
  Tile shared_hbm(DType dtype, const Shape& shape, const TensorOptions& options = {},
                  Here here = Here::current());
  Tile declare(Tensor tensor, Here here);
  Tile declare(Tensor tensor, const std::string& file, std::uint32_t line);

  Register new_register() { return {program_.registers++}; }
  std::int32_t add_dynamic(const DynamicOffset& offset);

  // Appends an instruction after checking it.
  void record(std::unique_ptr<Instruction> instruction, Here here);
  // The same with the line of another language's source.
  void record(std::unique_ptr<Instruction> instruction, const std::string& file, std::uint32_t line);
  // The same, and a declaration, with a line that `source` gave.
  void record(std::unique_ptr<Instruction> instruction, SourceId source);
  Tile declare(Tensor tensor);
  SourceId source(const std::string& file, std::uint32_t line);

  // The instruction recorded last writes `to` in place of `from`, which is exactly what it wrote, and with
  // `accumulate`, where it is a product, accumulates so. False, and nothing has changed, where it can't.
  bool retarget(const View& from, const View& to, std::optional<bool> accumulate = std::nullopt);
  // Instruction `after` starts when `before` is done.
  void order(std::uint32_t before, std::uint32_t after) { program_.edges.push_back({before, after}); }
  void set_role(TensorId tensor, Role role) { program_.tensors[tensor].role = role; }
  // The name of the instruction recorded last.
  void label(std::string name);

  const Program& program() const { return program_; }
  // The finished program; the recorder and its tiles are of no use afterwards. Throws KernelError where a
  // loop is still open.
  Program finish();

 private:
  SourceId source(Here here);
  void append(std::unique_ptr<Instruction> instruction);

  const Spec& spec_;
  std::unique_ptr<Diagnostics> own_;
  Diagnostics& diagnostics_;
  Program program_;
  std::vector<bool> open_loops_;  // whether their begin is broken
  std::set<TensorId> refused_;    // declarations that broke a rule, collecting
  std::map<std::string, std::uint32_t> files_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, SourceId> sources_;
  struct Recent {
    const char* file = nullptr;
    std::uint32_t line = 0;
    SourceId source = 0;
  };
  static constexpr std::size_t kRecent = 64;
  std::array<Recent, kRecent> recent_{};
};

// Makes an instruction to fill in and record: what the functions named after instructions do.
template <class I, class Fill>
void record(const Tile& first, Here here, Fill&& fill) {
  auto instruction = std::make_unique<I>();
  fill(*instruction);
  first.recorder().record(std::move(instruction), here);
}

}  // namespace headway::chip

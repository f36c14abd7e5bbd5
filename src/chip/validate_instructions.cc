#include "chip/validate_instructions.h"

#include <cstdint>
#include <functional>
#include <optional>

#include "base/csv.h"
#include "base/error.h"
#include "chip/array_cost.h"
#include "chip/dma_cost.h"
#include "chip/dma_engine.h"
#include "chip/engine_cost.h"
#include "chip/recorder.h"
#include "chip/scalar_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kMostElements = 65536;

// One line of the table.
class Row {
 public:
  Row(const CsvReader& csv, const Timing& timing) : csv_(csv), timing_(timing) {}

  double predicted() const {
    const std::string& engine = csv_.cell("engine");
    if (csv_.cell("opcode") == "satisfied semaphore check") return check_time(engine);
    if (csv_.cell("opcode").starts_with("dma trigger")) return trigger();
    if (engine == "scalar") return scalar();
    if (engine == "vector") return vector();
    if (engine == "tensor") return tensor();
    if (engine == "dma") return packet();
    refuse("engine", engine, "scalar, vector, tensor or dma");
  }

 private:
  [[noreturn]] void refuse(std::string_view what, const std::string& value, const std::string& legal) const {
    csv_.refuse("has the " + std::string(what) + " '" + value + "'", "use " + legal);
  }
  std::int64_t size() const { return csv_.integer("free_size", 1, kMostElements); }
  DType dtype(std::string_view head) const {
    const std::string& name = csv_.cell(head);
    if (name == "fp32") return DType::f32;
    if (name == "bf16") return DType::bf16;
    refuse(head, name, "fp32 or bf16");
  }
  Tile tile(Recorder& nki, std::string_view buffer, std::string_view type, std::int64_t columns) const {
    const std::string& place = csv_.cell(buffer);
    const Shape shape{timing_.spec.partitions, columns};
    if (place == "SBUF") return nki.sbuf(dtype(type), shape);
    if (place == "PSUM") return nki.psum(dtype(type), shape);
    refuse(buffer, place, "SBUF or PSUM");
  }

  // The cost of the instruction that `record` records on [P, in] -> [P, out], until its result can be read.
  double instruction(Engine engine, std::int64_t out,
                     const std::function<void(Recorder&, const Tile& dst, const Tile& src)>& record) const {
    Recorder nki("measured", timing_.spec);
    const Tile dst = tile(nki, "destination", "dtype_out", out),
               src = tile(nki, "source", "dtype_in", size());
    record(nki, dst, src);
    return seconds(cost_of(*nki.program().instructions.back(), engine, nki.program(), timing_).latency);
  }
  static Tile pointer(Recorder& nki) { return nki.sbuf(DType::f32, {nki.spec().partitions, 1}); }

  double scalar() const {
    const std::string& opcode = csv_.cell("opcode");
    if (opcode == "activation table load") return timing_.scalar.table_load.value;
    if (opcode == "copy")
      return instruction(Engine::scalar, size(), [](Recorder&, const Tile& dst, const Tile& src) {
        tensor_copy(dst, src, {.engine = Engine::scalar});
      });
    if (opcode == "activation exp bias pointer")
      return instruction(Engine::scalar, size(), [](Recorder& nki, const Tile& dst, const Tile& src) {
        activation(dst, Function::exp, src, {.bias = pointer(nki)});
      });
    refuse("opcode", opcode, "copy, activation exp bias pointer or activation table load");
  }

  double vector() const {
    const std::string& opcode = csv_.cell("opcode");
    if (opcode == "copy")
      return instruction(Engine::vector, size(), [](Recorder&, const Tile& dst, const Tile& src) {
        tensor_copy(dst, src, {.engine = Engine::vector});
      });
    if (opcode.starts_with("tensor_reduce"))
      return instruction(Engine::vector, 1, [](Recorder&, const Tile& dst, const Tile& src) {
        tensor_reduce(dst, Alu::maximum, src, {1});
      });
    if (opcode == "tensor_scalar multiply by pointer")
      return instruction(Engine::vector, size(), [](Recorder& nki, const Tile& dst, const Tile& src) {
        tensor_scalar(dst, src, Alu::multiply, pointer(nki), {.engine = Engine::vector});
      });
    if (opcode == "reciprocal")
      return instruction(Engine::vector, size(),
                         [](Recorder&, const Tile& dst, const Tile& src) { reciprocal(dst, src); });
    refuse("opcode", opcode, "copy, tensor_reduce, tensor_scalar multiply by pointer or reciprocal");
  }

  double tensor() const {
    const std::string &opcode = csv_.cell("opcode"), &state = csv_.cell("state");
    if (state != "" && state != "warm" && state != "cold") refuse("state", state, "warm, cold or none");
    const double share = state == "cold" ? timing_.tensor.cold_share.value : 1;
    Product product;
    product.contraction = timing_.spec.matmul_contraction;
    product.rows = timing_.spec.stationary_columns;
    product.columns = size();
    product.float32 = dtype("dtype_in") == DType::f32;
    product.transpose = opcode == "transpose";
    if (opcode.starts_with("load weights")) return load_seconds(timing_, product, share);
    if (!opcode.starts_with("matmul") && opcode != "transpose")
      refuse("opcode", opcode, "load weights, matmul or transpose");
    const std::string& kind = csv_.cell("kind");
    if (kind == "interval") return pass_interval(timing_, product, share);
    if (kind == "duration") return pass_seconds(timing_, product, share);
    refuse("kind", kind, "interval or duration");
  }

  double check_time(const std::string& engine) const {
    for (const Engine e : {Engine::sync, Engine::gpsimd, Engine::vector, Engine::scalar, Engine::tensor})
      if (names_of(e)[static_cast<std::size_t>(e)] == engine) return semaphore_check(timing_, e).value;
    refuse("engine", engine, "sync, gpsimd, vector, scalar or tensor");
  }

  // What a trigger costs the engine that gives it, or the software.
  double trigger() const {
    const std::string& opcode = csv_.cell("opcode");
    const bool hardware = opcode.ends_with("hardware DGE");
    if (!hardware && !opcode.ends_with("software DGE"))
      refuse("opcode", opcode, "dma trigger hardware DGE or dma trigger software DGE");
    Recorder nki("measured", timing_.spec);
    const Tile src = nki.input("src", DType::f32, {timing_.spec.partitions, 1});
    const Tile dst = nki.sbuf(DType::f32, {timing_.spec.partitions, 1});
    dma_copy(dst, src, {.dge_mode = hardware ? DgeMode::hwdge : DgeMode::swdge});
    const Engine engine = hardware ? Engine::sync : Engine::gpsimd;
    return seconds(cost_of(*nki.program().instructions.back(), engine, nki.program(), timing_).busy);
  }

  // "packet 256 B", "packet 4 KiB"
  double packet() const {
    const std::string& opcode = csv_.cell("opcode");
    const std::string legal = "packet N B or packet N KiB";
    if (!opcode.starts_with("packet ")) refuse("opcode", opcode, legal);
    std::int64_t bytes = 0;
    std::size_t at = sizeof("packet ") - 1;
    for (; at < opcode.size() && opcode[at] >= '0' && opcode[at] <= '9' && bytes <= kMostElements; ++at)
      bytes = 10 * bytes + (opcode[at] - '0');
    const std::string_view unit = std::string_view(opcode).substr(at);
    if (bytes < 1 || (unit != " B" && unit != " KiB")) refuse("opcode", opcode, legal);
    return descriptor_seconds(timing_, static_cast<double>(unit == " KiB" ? 1024 * bytes : bytes));
  }

  const CsvReader& csv_;
  const Timing& timing_;
};

}  // namespace

std::vector<InstructionRow> validate_instructions(const Timing& timing, std::string_view table,
                                                  const std::string& file) {
  CsvReader csv(table, file,
                {"id", "engine", "opcode", "kind", "dtype_in", "dtype_out", "source", "destination",
                 "free_size", "state", "median_ns", "n"});
  std::vector<InstructionRow> rows;
  while (csv.next()) {
    const double measured = csv.number("median_ns");
    if (measured <= 0) csv.refuse("has a median_ns of " + csv.cell("median_ns"), "it must be positive");
    try {
      rows.push_back({csv.cell("id"), measured, 1e9 * Row(csv, timing).predicted()});
    } catch (const KernelError& broken) {
      csv.refuse(std::string("describes no legal instruction: ") + broken.what());
    }
  }
  return rows;
}

}  // namespace headway::chip

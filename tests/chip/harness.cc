#include "chip/harness.h"

#include <cmath>
#include <cstring>

#include "base/number_format.h"
#include "chip/rows.h"

namespace headway::chip {
namespace {

Spec load(const char* name) { return Spec::load(std::string(HEADWAY_ROOT) + "/chips/" + name + ".toml"); }

}  // namespace

const Spec& trn1() {
  static const Spec spec = load("trn1");
  return spec;
}
const Spec& trn2() {
  static const Spec spec = load("trn2");
  return spec;
}
const Spec& trn3() {
  static const Spec spec = load("trn3");
  return spec;
}

Harness::Harness(const Spec& spec, int threads)
    : nki("test", spec, &diagnostics_), pool_(std::make_unique<ThreadPool>(threads, false)), random_(20261130) {}

Machine& Harness::machine() {
  if (!machine_)
    machine_ = std::make_unique<Machine>(nki.spec(), std::vector<const Program*>{&nki.program()}, 1, *pool_,
                                         diagnostics_);
  return *machine_;
}

Core& Harness::core() { return machine().core(0); }

void Harness::set(const Tile& tile, const std::vector<double>& numbers) {
  ASSERT_EQ(static_cast<std::int64_t>(numbers.size()), tile.view().elements());
  machine().synchronise();
  const Block block = core().write("set", tile);
  std::size_t i = 0;
  for (std::int64_t r = 0; r < block.rows; ++r)
    for_each_element(block, [&](std::int64_t offset) {
      std::byte* p = block.row(r) + offset;
      const double number = numbers[i++];
      if (block.dtype == DType::i32 || block.dtype == DType::u32) {
        // Wider than float32.
        const auto bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
        std::memcpy(p, &bits, 4);
      } else if (is_packed(block.dtype)) {
        const auto bits = static_cast<std::uint32_t>(number);
        std::memcpy(p, &bits, static_cast<std::size_t>(block.element_bytes));
      } else {
        write_element(block.dtype, p, static_cast<float>(number));
      }
    });
}

std::vector<double> Harness::fill(const Tile& tile, double low, double high) {
  std::vector<double> numbers(static_cast<std::size_t>(tile.view().elements()));
  std::uniform_real_distribution<double> uniform(low, high);
  for (double& number : numbers) {
    number = uniform(random_);
    if (is_integer(tile.dtype()) || tile.dtype() == DType::boolean) number = std::floor(number);
  }
  set(tile, numbers);
  return this->numbers(tile);
}

void Harness::run() { machine().run(Machine::Tensors::keep); }

std::vector<double> Harness::numbers(const Tile& tile) {
  machine().synchronise();
  const Block block = core().read("numbers", tile);
  std::vector<double> numbers;
  for (std::int64_t r = 0; r < block.rows; ++r)
    for_each_element(block, [&](std::int64_t offset) {
      const std::byte* p = block.row(r) + offset;
      std::uint32_t bits = 0;
      std::memcpy(&bits, p, static_cast<std::size_t>(block.element_bytes));
      if (block.dtype == DType::i32) {
        numbers.push_back(static_cast<std::int32_t>(bits));
      } else if (block.dtype == DType::u32 || is_packed(block.dtype)) {
        numbers.push_back(bits);
      } else {
        numbers.push_back(static_cast<double>(read_element(block.dtype, p)));
      }
    });
  return numbers;
}

std::vector<std::uint64_t> Harness::bits(const Tile& tile) {
  machine().synchronise();
  const Block block = core().read("bits", tile);
  std::vector<std::uint64_t> all;
  for (std::int64_t r = 0; r < block.rows; ++r)
    for_each_element(block, [&](std::int64_t offset) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, block.row(r) + offset, static_cast<std::size_t>(block.element_bytes));
      all.push_back(bits);
    });
  return all;
}

bool Harness::written(const Tile& tile) {
  machine().synchronise();
  Diagnostics quiet;
  try {
    core().read("written", tile);
    return true;
  } catch (const KernelError&) {
    return false;
  }
}

double stored(DType dtype, double number) {
  alignas(4) std::byte bytes[4];
  write_element(dtype, bytes, static_cast<float>(number));
  return static_cast<double>(read_element(dtype, bytes));
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const KernelError& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

void expect_close(const std::vector<double>& got, const std::vector<double>& expected, double relative,
                  double absolute) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i])
          << "at " << i << ": " << got[i] << " instead of " << expected[i];
      continue;
    }
    ASSERT_LE(std::abs(got[i] - expected[i]), absolute + relative * std::abs(expected[i]))
        << "at " << i << ": " << got[i] << " instead of " << expected[i];
  }
}

std::vector<DType> integer_dtypes() {
  return {DType::i8, DType::i16, DType::i32, DType::u8, DType::u16, DType::u32};
}
std::vector<DType> float_dtypes() {
  return {DType::f32, DType::tf32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e4m3fn, DType::f8e5m2};
}
std::vector<DType> computable_dtypes() {
  std::vector<DType> all = float_dtypes();
  for (DType dtype : integer_dtypes()) all.push_back(dtype);
  all.push_back(DType::boolean);
  return all;
}

}  // namespace headway::chip

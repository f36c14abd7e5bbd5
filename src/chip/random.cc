#include "chip/random.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "chip/accumulator.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/row_loop.h"
#include "chip/row_scalar.h"
#include "chip/rows.h"

namespace headway::chip {
namespace {

// Every bit of the result depends on every bit of `x`: the last step of MurmurHash3.
std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// One step of the register, with the taps of the primitive polynomial x^32 + x^22 + x^2 + x + 1.
constexpr std::uint32_t step(std::uint32_t state) { return (state >> 1) ^ ((state & 1u) ? 0x80200003u : 0u); }

// 32 steps are linear in the state: what each of its bytes contributes.
using Leaps = std::array<std::array<std::uint32_t, 256>, 4>;
constexpr Leaps kLeaps = [] {
  Leaps leaps{};
  for (unsigned byte = 0; byte < 4; ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::uint32_t state = 1u << (8 * byte + bit);
      for (int i = 0; i < 32; ++i) state = step(state);
      for (unsigned low = 0; low < 1u << bit; ++low)
        leaps[byte][(1u << bit) + low] = leaps[byte][low] ^ state;
    }
  }
  return leaps;
}();

constexpr std::size_t kStateWords = 6;

void check_state(Check& check, std::string_view operand, const View& view, Engine engine) {
  if (!check.generation(3, "access to the generators' states")) return;
  if (engine == Engine::vector && check.spec.generation >= 4)
    return check.broken(Severity::unsupported, "vector-state", "engine",
                        "the Vector engine's four generators a lane are not modelled, only GpSimd's are");
  check.in_sbuf(operand, view);
  check.dtype(operand, view, {DType::u32});
  check.row_of(operand, view, view.rows(), kStateWords);
}

Engines state_engines(const Check& check) {
  if (check.spec.generation < 3) return {};
  return check.spec.generation < 4 ? Engines(Engine::gpsimd) : Engine::gpsimd | Engine::vector;
}

Cost row_cost(const Costing& costing, const View& row, Tag tag, bool pointer) {
  const std::int64_t n = row.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_any(costing, row, row) * static_cast<double>(n),
                               .tag = tag,
                               .pointer = pointer,
                               .dynamic = is_dynamic(row)});
}

}  // namespace

std::uint32_t RandomState::ShiftRegister::next() {
  state = kLeaps[0][state & 0xff] ^ kLeaps[1][(state >> 8) & 0xff] ^ kLeaps[2][(state >> 16) & 0xff] ^
          kLeaps[3][state >> 24];
  return state;
}

RandomState::RandomState() {
  seed_vector(0);
  // Numbered on from VectorE's lanes, so that no two words are alike; `mixed` is a bijection, so none is 0.
  auto number = static_cast<std::uint32_t>(vector.size());
  const auto next = [&] { return mixed(++number * 0x9e3779b9u); };
  for (Xorwow& generator : gpsimd) {
    for (std::uint32_t& word : generator.x) word = next();
    generator.counter = next();
  }
}

void RandomState::seed_vector(std::uint32_t seed) {
  for (std::uint32_t lane = 0; lane < vector.size(); ++lane) {
    const std::uint32_t state = mixed(seed + (lane + 1) * 0x9e3779b9u);
    vector[lane].state = state == 0 ? 1 : state;
  }
}

// --- rng ---

void Rng::visit(Fields& fields) { fields.view("dst", dst, Access::write); }

void Rng::check(Check& check) const {
  check.on_chip("dst", dst);
  check.dtype("dst", dst, {DType::i8, DType::i16, DType::i32, DType::u8, DType::u16, DType::u32});
}

Engines Rng::engines(const Check& check) const {
  // A kernel that leaves the engine open gets NKI's default: another engine would give other numbers.
  const bool gpsimd = check.spec.generation >= 3 && check.buffer(dst) == Buffer::sbuf;
  return engine != Engine::unknown && gpsimd ? Engine::vector | Engine::gpsimd : Engines(Engine::vector);
}

void Rng::apply(Core& core) const {
  const Block out = core.write("dst", dst);
  const auto lane = static_cast<std::size_t>(first_lane(core.program(), dst));
  core.for_rows(out.rows, out.rows * out.elements, [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* values = reinterpret_cast<std::uint32_t*>(core.scratch(thread, out.elements));
    const auto fill = [&](auto& generator) {
      auto local = generator;
      for (std::int64_t i = 0; i < out.elements; ++i) values[i] = local.next();
      generator = local;
    };
    for (std::int64_t r = begin; r < end; ++r) {
      const std::size_t at = lane + static_cast<std::size_t>(r);
      if (engine == Engine::gpsimd) {
        fill(core.random.gpsimd[at]);
      } else {
        fill(core.random.vector[at]);
      }
      write_bits(out, r, values);
    }
  });
}

// No formula is public: taken as a number of a lane a cycle.
Cost Rng::cost(const Costing& costing) const { return row_cost(costing, dst, Tag::assumed, false); }

void rng(const Tile& dst, const RngOptions& options, Here here) {
  record<Rng>(dst, here, [&](Rng& i) {
    i.dst = dst;
    i.engine = options.engine;
  });
}

// --- dropout ---

void Dropout::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.scalar("prob", prob);
}

void Dropout::check(Check& check) const {
  check.on_chip("dst", dst);
  check.on_chip("data", data);
  check.computable("data", data);
  check.same_dtype("dst", dst, "data", data);
  check.same_size("dst", dst, "data", data);
  if (!check.scalar("prob", prob, data.rows())) return;
  if (const View* view = prob.view()) {
    if (is_float(data.dtype)) {
      check.require(is_float(view->dtype), "dtype", "prob", "must be floating point, not {}",
                    headway::name_of(view->dtype));
    } else {
      check.require(view->dtype == DType::f32, "dtype", "prob", "must be float32 with data of {}, not {}",
                    headway::name_of(data.dtype), headway::name_of(view->dtype));
    }
  } else {
    check.require(prob.number() >= 0 && prob.number() <= 1, "probability", "prob",
                  "must be within 0 and 1, not {}", prob.number());
  }
}

void Dropout::apply(Core& core) const {
  const RowScalar<float> probabilities(core, "prob", prob, data.rows());
  const auto lane = static_cast<std::size_t>(first_lane(core.program(), data));
  RowLoop<std::uint32_t> loop(core);
  loop.reads("data", data);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<std::uint32_t>& s) {
    const Rows<std::uint32_t>& in = s.in[0];
    for (std::int64_t r = 0; r < s.rows; ++r) {
      const auto row = static_cast<std::size_t>(s.first + r);
      RandomState::ShiftRegister generator = core.random.vector[lane + row];
      const float probability = *probabilities.from(s.first + r).at;
      const std::uint32_t* from = in.at + r * in.stride;
      std::uint32_t* to = s.out.at + r * s.out.stride;
      for (std::int64_t i = 0; i < s.n; ++i) {
        // 24 bits make a float32 in [0, 1): probability 1 drops everything, 0 nothing.
        const float u = static_cast<float>(generator.next() >> 8) * 0x1p-24f;
        to[i] = u < probability ? 0 : from[in.single ? 0 : i];
      }
      core.random.vector[lane + row] = generator;
    }
  });
}

Cost Dropout::cost(const Costing& costing) const {
  return row_cost(costing, dst, Tag::documented, prob.view() != nullptr);
}

void dropout(const Tile& dst, const Tile& data, const Scalar& prob, Here here) {
  record<Dropout>(dst, here, [&](Dropout& i) {
    i.dst = dst;
    i.data = data;
    i.prob = prob;
  });
}

// --- set_rng_seed ---

void SetRngSeed::visit(Fields& fields) { fields.view("src_seeds", src_seeds, Access::read); }

void SetRngSeed::check(Check& check) const {
  check.on_chip("src_seeds", src_seeds);
  check.dtype("src_seeds", src_seeds, {DType::u32, DType::i32, DType::f32});
  check.row_of("src_seeds", src_seeds, 1, 1);
}

void SetRngSeed::apply(Core& core) const {
  const Block seed = core.read("src_seeds", src_seeds);
  std::uint32_t bits;
  std::memcpy(&bits, seed.row(0), sizeof bits);
  core.random.seed_vector(bits);
}

Cost SetRngSeed::cost(const Costing& costing) const {
  return row_cost(costing, src_seeds, Tag::assumed, false);
}

void set_rng_seed(const Tile& src_seeds, Here here) {
  record<SetRngSeed>(src_seeds, here, [&](SetRngSeed& i) { i.src_seeds = src_seeds; });
}

// --- rand_set_state, rand_get_state ---

void RandSetState::visit(Fields& fields) { fields.view("src_seeds", src_seeds, Access::read); }
void RandSetState::check(Check& check) const { check_state(check, "src_seeds", src_seeds, engine); }
Engines RandSetState::engines(const Check& check) const { return state_engines(check); }

void RandSetState::apply(Core& core) const {
  const Block in = core.read("src_seeds", src_seeds);
  const auto lane = static_cast<std::size_t>(first_lane(core.program(), src_seeds));
  bool stuck = false;
  for (std::int64_t r = 0; r < in.rows; ++r) {
    std::array<std::uint32_t, kStateWords> words;
    const std::uint32_t* row = read_bits(in, r, words.data());
    RandomState::Xorwow& generator = core.random.gpsimd[lane + static_cast<std::size_t>(r)];
    std::copy_n(row, generator.x.size(), generator.x.begin());
    generator.counter = row[generator.x.size()];
    stuck |= std::ranges::all_of(generator.x, [](std::uint32_t word) { return word == 0; });
  }
  if (stuck)
    core.report(Severity::warning, "zero-state", "src_seeds",
                "the first five words of a lane are all 0: they stay so, and its numbers are multiples of a "
                "constant");
}

Cost RandSetState::cost(const Costing& costing) const {
  return row_cost(costing, src_seeds, Tag::assumed, false);
}

void rand_set_state(const Tile& src_seeds, const RandStateOptions& options, Here here) {
  record<RandSetState>(src_seeds, here, [&](RandSetState& i) {
    i.src_seeds = src_seeds;
    i.engine = options.engine;
  });
}

void RandGetState::visit(Fields& fields) { fields.view("dst", dst, Access::write); }
void RandGetState::check(Check& check) const { check_state(check, "dst", dst, engine); }
Engines RandGetState::engines(const Check& check) const { return state_engines(check); }

void RandGetState::apply(Core& core) const {
  const Block out = core.write("dst", dst);
  const auto lane = static_cast<std::size_t>(first_lane(core.program(), dst));
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const RandomState::Xorwow& generator = core.random.gpsimd[lane + static_cast<std::size_t>(r)];
    std::array<std::uint32_t, kStateWords> words;
    std::ranges::copy(generator.x, words.begin());
    words.back() = generator.counter;
    write_bits(out, r, words.data());
  }
}

Cost RandGetState::cost(const Costing& costing) const { return row_cost(costing, dst, Tag::assumed, false); }

void rand_get_state(const Tile& dst, const RandStateOptions& options, Here here) {
  record<RandGetState>(dst, here, [&](RandGetState& i) {
    i.dst = dst;
    i.engine = options.engine;
  });
}

std::span<const Kind> random_instructions() {
  static const Kind kinds[] = {kind<Rng>(), kind<Dropout>(), kind<SetRngSeed>(), kind<RandSetState>(),
                               kind<RandGetState>()};
  return kinds;
}

}  // namespace headway::chip

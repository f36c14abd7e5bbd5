#include "fuzz/random_fields.h"

#include <algorithm>
#include <limits>

#include "chip/instruction.h"

namespace headway::fuzz {

using namespace headway::chip;

std::vector<std::int64_t> RandomFields::factors(std::int64_t n, int most) {
  std::vector<std::int64_t> counts = {n};
  for (const std::int64_t divisor : {2, 3, 4, 8})
    if (static_cast<int>(counts.size()) < most && counts.back() % divisor == 0 && draw_.percent(25)) {
      counts.back() /= divisor;
      counts.insert(counts.end() - 1, divisor);
    }
  return counts;
}

std::int64_t RandomFields::any_integer() {
  if (draw_.percent(70)) return draw_.between(-2, 16);
  if (draw_.percent(50))
    return draw_.pick<std::int64_t>({32, 64, 96, 128, 255, 256, 512, 4096, 65535, 65536});
  return draw_.pick<std::int64_t>(
      {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
       std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(),
       static_cast<std::int64_t>(draw_.bits())});
}

std::int64_t RandomFields::extent() {
  return draw_.pick<std::int64_t>({plan_.rows, plan_.columns, plan_.other_rows, plan_.other_columns, 1});
}

View RandomFields::any_view() {
  View view;
  view.tensor = static_cast<TensorId>(draw_.below(static_cast<std::int64_t>(program_.tensors.size()) + 1));
  view.partition = static_cast<std::int32_t>(draw_.percent(90) ? draw_.between(0, 3) * 32 : any_integer());
  view.offset = draw_.percent(80) ? draw_.between(0, 40) : any_integer();
  view.dtype = static_cast<DType>(draw_.below(kDTypes));
  view.rank = static_cast<std::uint8_t>(draw_.below(kMaxPairs + 1));
  view.dynamic = static_cast<std::int32_t>(
      draw_.percent(80) ? -1 : draw_.below(static_cast<std::int64_t>(program_.dynamic_offsets.size()) + 1));
  for (std::size_t d = 0; d < view.rank; ++d) {
    const bool small = draw_.percent(90);
    view.pairs[d] = {static_cast<std::int32_t>(small ? draw_.between(0, 40) : any_integer()),
                     static_cast<std::int32_t>(small ? draw_.between(1, 12) : any_integer())};
  }
  if (view.rank > 0 && draw_.percent(70)) view.pairs[0].step = 1;
  return view;
}

Place RandomFields::any_place() {
  return draw_.percent(plan_.hbm) ? Place::hbm : draw_.percent(plan_.psum) ? Place::psum : Place::sbuf;
}

std::int64_t RandomFields::find(Place place, DType dtype, std::int64_t rows, std::int64_t columns) {
  const auto count = static_cast<std::int64_t>(program_.tensors.size());
  const std::int64_t start = draw_.below(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = (start + i) % count;
    const Tensor& t = program_.tensors[static_cast<std::size_t>(id)];
    const bool hbm = is_hbm(t.buffer);
    if (t.dtype != dtype || hbm != (place == Place::hbm) ||
        (!hbm && (t.buffer == Buffer::psum) != (place == Place::psum)))
      continue;
    const std::int64_t elements = t.row_bytes() / size_of(t.dtype);
    if (hbm ? elements >= rows * columns : t.shape[0] >= rows && elements >= columns) return id;
  }
  return -1;
}

std::int64_t RandomFields::declare(Place place, DType dtype, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMost = 1 << 16;
  if (rows > 128 && place != Place::hbm) return -1;
  if (rows < 1 || columns < 1 || columns > kMost / rows) return -1;
  Tensor t;
  t.name = "n" + std::to_string(program_.tensors.size());
  t.dtype = dtype;
  t.buffer = place == Place::sbuf   ? Buffer::sbuf
             : place == Place::psum ? Buffer::psum
                                    : draw_.pick({Buffer::shared_hbm, Buffer::private_hbm});
  t.shape = {rows, columns};
  if (t.buffer == Buffer::psum && t.row_bytes() > 16384) return -1;
  if (place != Place::hbm && draw_.percent(20)) t.shape[0] = 128;
  program_.tensors.push_back(std::move(t));
  return static_cast<std::int64_t>(program_.tensors.size()) - 1;
}

View RandomFields::view_of(Place place, DType dtype, std::int64_t rows, std::int64_t columns) {
  const bool hbm = place == Place::hbm;
  std::int64_t chosen = draw_.percent(20) ? -1 : find(place, dtype, rows, columns);
  if (chosen < 0) chosen = declare(place, dtype, rows, columns);
  if (chosen < 0) return any_view();
  const Tensor& t = program_.tensors[static_cast<std::size_t>(chosen)];
  View view;
  view.tensor = static_cast<TensorId>(chosen);
  view.dtype = t.dtype;
  if (draw_.percent(4)) {
    const auto other = static_cast<DType>(draw_.below(kDTypes));
    if (size_of(other) == size_of(t.dtype)) view.dtype = other;
  }
  const std::int64_t elements = t.row_bytes() / size_of(t.dtype);
  const std::vector<std::int64_t> counts = factors(columns, 4);
  view.rank = static_cast<std::uint8_t>(1 + counts.size());
  view.pairs[0] = {hbm ? static_cast<std::int32_t>(columns) : 1, static_cast<std::int32_t>(rows)};
  std::int64_t step = 1, reach = hbm ? columns * (rows - 1) : 0;
  for (std::size_t d = counts.size(); d > 0; --d) {
    std::int64_t taken = step;
    // Gaps where there is room for them, and now and then a repeated extent.
    if (draw_.percent(10) && !hbm && reach + 2 * step * (counts[d - 1] - 1) < elements - step)
      taken = 2 * step;
    if (draw_.percent(4)) taken = 0;
    view.pairs[d] = {static_cast<std::int32_t>(taken), static_cast<std::int32_t>(counts[d - 1])};
    reach += taken * (counts[d - 1] - 1);
    step = std::max<std::int64_t>(taken, 1) * counts[d - 1];
  }
  if (view.rank > 2 && draw_.percent(10)) std::swap(view.pairs[1], view.pairs[2]);
  if (reach + 1 < elements && draw_.percent(30)) view.offset = draw_.below(elements - reach);
  if (!hbm) {
    const std::int64_t room = t.shape[0] - rows;
    view.partition = static_cast<std::int32_t>(draw_.percent(85) ? draw_.between(0, room / 32) * 32
                                                                 : draw_.between(0, room));
  }
  if (!program_.dynamic_offsets.empty() && draw_.percent(6))
    view.dynamic =
        static_cast<std::int32_t>(draw_.below(static_cast<std::int64_t>(program_.dynamic_offsets.size())));
  return view;
}

void RandomFields::view(std::string_view name, View& view, Access) {
  if (plan_.wild && draw_.percent(50)) {
    view = any_view();
    return;
  }
  const Wish* wish = wish_for(instruction_, name);
  if (wish && draw_.percent(90)) {
    view = view_of(wish->place == Place::any ? any_place() : wish->place,
                   wish->dtype == DType::f64 ? plan_.dtype : wish->dtype, extent_of(wish->rows, plan_),
                   extent_of(wish->columns, plan_));
    return;
  }
  const DType dtype = draw_.percent(75) ? plan_.dtype : static_cast<DType>(draw_.between(1, kDTypes - 1));
  if (draw_.percent(80)) {
    view = view_of(any_place(), dtype, plan_.rows, plan_.columns);
  } else {
    view = view_of(any_place(), dtype, draw_.percent(40) ? plan_.rows : extent(), extent());
  }
}

void RandomFields::views(std::string_view name, std::vector<View>& views, Access access) {
  views.resize(
      static_cast<std::size_t>(plan_.wild && draw_.percent(5) ? draw_.between(0, 20) : draw_.between(1, 3)));
  for (View& v : views) view(name, v, access);
}

void RandomFields::optional_view(std::string_view name, std::optional<View>& optional, Access access) {
  optional.reset();
  if (draw_.percent(50)) return;
  optional.emplace();
  if (draw_.percent(70)) {
    *optional = view_of(any_place(), draw_.percent(50) ? DType::f32 : plan_.dtype, plan_.rows, 1);
  } else {
    view(name, *optional, access);
  }
}

void RandomFields::scalar(std::string_view, Scalar& scalar) {
  if (draw_.percent(45)) {
    float value = 0;
    number("", value);
    scalar = Scalar(value);
  } else if (draw_.percent(25)) {
    scalar = Scalar(static_cast<std::int32_t>(any_integer()));
  } else {
    scalar = Scalar(plan_.wild && draw_.percent(30)
                        ? any_view()
                        : view_of(any_place(), draw_.percent(70) ? DType::f32 : plan_.dtype, plan_.rows, 1));
  }
}

void RandomFields::reg(std::string_view, Register& reg, Access) {
  reg.id = static_cast<std::uint32_t>(
      draw_.below(program_.registers + (plan_.wild ? 2 : 0) + (program_.registers == 0)));
}

void RandomFields::register_or(std::string_view name, RegisterOr& value) {
  if (draw_.percent(60)) {
    value = static_cast<std::int32_t>(draw_.percent(80) ? draw_.between(-1, 5) : any_integer());
  } else {
    Register chosen;
    reg(name, chosen, Access::read);
    value = chosen;
  }
}

void RandomFields::integer(std::string_view name, std::int64_t& value) {
  if (name == "n" && draw_.percent(80)) {
    value = draw_.between(8, 16 * plan_.columns + 16);
  } else if (draw_.percent(35)) {  // else the default
    value = draw_.percent(50) ? extent() : any_integer();
  }
}

void RandomFields::integers(std::string_view name, std::vector<std::int64_t>& values) {
  if (draw_.percent(10)) return;
  values.clear();
  const auto count_up = [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
  };
  if (draw_.percent(85)) {
    if (name == "pattern") {
      for (const std::int64_t count : factors(plan_.columns, 4)) {
        values.push_back(draw_.percent(90) ? draw_.between(-3, 20) : any_integer());
        values.push_back(count);
      }
      return;
    }
    if (name == "shuffle_mask") {
      for (int i = 0; i < 32; ++i) values.push_back(draw_.percent(99) ? draw_.below(32) : 255);
      return;
    }
    if (name == "axes") {
      values = {1, 0};
      return;
    }
    if (name == "axis") return count_up(1, 1);
    if (name == "replica_group") return count_up(0, plan_.group);
    if (name == "replica_group_sizes") {
      values = {plan_.group};
      return;
    }
    if (name == "source_target_pairs") {
      for (std::int64_t i = 0; i < plan_.group; ++i) values.insert(values.end(), {i, (i + 1) % plan_.group});
      return;
    }
    if (name == "cores") return count_up(0, program_.num_programs);
    if (name == "channel_ids") return count_up(0, draw_.between(1, 3));
    if (name == "tile_position" || name == "tile_size") return;
  }
  // Anything, often ascending.
  const std::int64_t count = draw_.percent(95) ? draw_.between(1, 4) : draw_.between(0, 40);
  if (draw_.percent(70)) return count_up(draw_.below(2), count);
  for (std::int64_t i = 0; i < count; ++i) values.push_back(any_integer());
}

void RandomFields::number(std::string_view, float& value) {
  if (draw_.percent(40)) return;
  value = draw_.pick({0.0f, 1.0f, -1.0f, 0.5f, 2.0f, -3.75f, 1e-30f, 1e30f,
                      std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()});
}

void RandomFields::numbers(std::string_view name, std::vector<float>& values) {
  if (draw_.percent(20)) return;
  values.resize(static_cast<std::size_t>(draw_.between(0, 4)));
  for (float& value : values) number(name, value);
}

void RandomFields::flag(std::string_view, bool& value) { value = draw_.percent(25) ? !value : value; }

void RandomFields::chosen(std::string_view, int& value, std::span<const std::string_view> names) {
  if (plan_.wild && draw_.percent(2)) {
    value = static_cast<int>(draw_.between(0, 255));
  } else if (draw_.percent(60)) {
    value = static_cast<int>(draw_.below(static_cast<std::int64_t>(names.size())));
  }
}

namespace {

// Counts the fields of an instruction.
class Counter : public Fields {
 public:
  int count = 0;
  void view(std::string_view, View&, Access) override { ++count; }
  void views(std::string_view, std::vector<View>&, Access) override { ++count; }
  void optional_view(std::string_view, std::optional<View>&, Access) override { ++count; }
  void scalar(std::string_view, Scalar&) override { ++count; }
  void reg(std::string_view, Register&, Access) override { ++count; }
  void register_or(std::string_view, RegisterOr&) override { ++count; }
  void integer(std::string_view, std::int64_t&) override { ++count; }
  void integers(std::string_view, std::vector<std::int64_t>&) override { ++count; }
  void number(std::string_view, float&) override { ++count; }
  void numbers(std::string_view, std::vector<float>&) override { ++count; }
  void flag(std::string_view, bool&) override { ++count; }
  void chosen(std::string_view, int&, std::span<const std::string_view>) override { ++count; }
};

// Changes the n-th field; of a view often one number only.
class Mutator : public Fields {
 public:
  Mutator(Draw& draw, RandomFields& random, int n) : draw_(draw), random_(random), left_(n) {}
  void view(std::string_view name, View& v, Access access) override {
    if (left_-- == 0) change(name, v, access);
  }
  void views(std::string_view name, std::vector<View>& vs, Access access) override {
    if (left_-- != 0) return;
    if (!vs.empty() && draw_.percent(70)) {
      change(name, vs[static_cast<std::size_t>(draw_.below(static_cast<std::int64_t>(vs.size())))], access);
    } else {
      random_.views(name, vs, access);
    }
  }
  void optional_view(std::string_view name, std::optional<View>& v, Access access) override {
    if (left_-- != 0) return;
    if (v && draw_.percent(70)) {
      change(name, *v, access);
    } else {
      random_.optional_view(name, v, access);
    }
  }
  void scalar(std::string_view name, Scalar& s) override {
    if (left_-- == 0) random_.scalar(name, s);
  }
  void reg(std::string_view name, Register& r, Access access) override {
    if (left_-- == 0) random_.reg(name, r, access);
  }
  void register_or(std::string_view name, RegisterOr& v) override {
    if (left_-- == 0) random_.register_or(name, v);
  }
  void integer(std::string_view name, std::int64_t& v) override {
    if (left_-- == 0) random_.integer(name, v);
  }
  void integers(std::string_view name, std::vector<std::int64_t>& vs) override {
    if (left_-- == 0) random_.integers(name, vs);
  }
  void number(std::string_view name, float& v) override {
    if (left_-- == 0) random_.number(name, v);
  }
  void numbers(std::string_view name, std::vector<float>& vs) override {
    if (left_-- == 0) random_.numbers(name, vs);
  }
  void flag(std::string_view, bool& v) override {
    if (left_-- == 0) v = !v;
  }
  void chosen(std::string_view name, int& v, std::span<const std::string_view> names) override {
    if (left_-- == 0) random_.chosen(name, v, names);
  }

 private:
  void change(std::string_view name, View& v, Access access) {
    if (draw_.percent(20)) return random_.view(name, v, access);
    // In unsigned arithmetic: offsets may be anything.
    const auto nudged = [&](std::int64_t value) {
      const auto bits = static_cast<std::uint64_t>(value);
      return static_cast<std::int64_t>(
          draw_.percent(70) ? bits + static_cast<std::uint64_t>(draw_.between(-2, 2)) : bits * 2);
    };
    const auto d = static_cast<std::size_t>(draw_.below(kMaxPairs));
    switch (draw_.below(7)) {
      case 0:
        v.partition =
            static_cast<std::int32_t>(draw_.percent(50) ? nudged(v.partition) : 32 * draw_.between(0, 3));
        break;
      case 1:
        v.offset = nudged(v.offset);
        break;
      case 2:
        v.pairs[d].step = static_cast<std::int32_t>(draw_.percent(30) ? 0 : nudged(v.pairs[d].step));
        break;
      case 3:
        v.pairs[d].count = static_cast<std::int32_t>(draw_.percent(10) ? 65535 : nudged(v.pairs[d].count));
        break;
      case 4:
        v.dtype = static_cast<DType>(draw_.below(kDTypes));
        break;
      case 5:
        v.rank = static_cast<std::uint8_t>(draw_.between(0, kMaxPairs));
        break;
      default:
        v.tensor = static_cast<TensorId>(draw_.between(0, 20));
    }
  }

  Draw& draw_;
  RandomFields& random_;
  int left_;
};

}  // namespace

void mutate(Draw& draw, Program& program, Instruction& instruction) {
  Counter counter;
  instruction.visit(counter);
  if (counter.count == 0 || draw.percent(5)) {
    instruction.engine = static_cast<Engine>(draw.below(7));
    return;
  }
  Plan plan;
  plan.rows = 32;
  plan.columns = 8;
  plan.other_rows = 64;
  plan.other_columns = 16;
  plan.hbm = plan.psum = 20;
  plan.wild = true;
  RandomFields random(draw, program, plan, instruction.name());
  Mutator mutator(draw, random, static_cast<int>(draw.below(counter.count)));
  instruction.visit(mutator);
}

}  // namespace headway::fuzz

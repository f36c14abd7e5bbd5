#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_reduce.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

constexpr std::int64_t kChannels = kPartitions, kTile = 512;
const DmaCopyOptions kPrepared = {.dge_mode = DgeMode::none};

// What the four loop orders share. The sources multiply delta by u for each state; the VectorE times they
// report fit four instructions a state where the loop allows it, so that product is taken out of the loop
// over states, as the compiler does.
class Scan {
 public:
  Scan(Recorder& nki, const std::string& kernel, const Tiles& inputs, std::int64_t tile)
      : delta(inputs[0]),
        u(inputs[1]),
        a(inputs[2]),
        b(inputs[3]),
        c(inputs[4]),
        channels(delta.extent(0)),
        length(delta.extent(1)),
        states(a.extent(1)),
        nki_(nki),
        broadcast_(nki, DType::f32) {
    if (u.shape() != delta.shape() || a.extent(0) != channels || b.shape() != Shape{states, length} ||
        c.shape() != b.shape())
      throw InputError(kernel, "delta, u, a, b, c must be [C, T], [C, T], [C, S], [S, T], [S, T]");
    for (const Tile& input : inputs)
      if (input.dtype() != DType::f32) throw InputError(kernel, "is written for float32");
    require_multiple(kernel, "C", channels, kChannels);
    require_multiple(kernel, "T", length, tile);
    out.push_back(nki.output("out", DType::f32, {channels, length}));
  }

  Tile load(const Tile& from) const {
    const Tile tile = nki_.sbuf(DType::f32, from.shape());
    dma_copy(tile, from, kPrepared);
    return tile;
  }
  Tile zeros(std::int64_t columns) const {
    const Tile tile = nki_.sbuf(DType::f32, {kChannels, columns});
    memset(tile, 0.0f);
    return tile;
  }
  void store(std::int64_t channel, Range part, const Tile& total) const {
    dma_copy(out[0](ds(channel, kChannels), part), total, kPrepared);
  }
  // delta u, which no state changes.
  Tile inputs_of(const Tile& d, const Tile& x) const {
    const Tile product = nki_.sbuf(DType::f32, d.shape());
    tensor_tensor(product, d, x, Alu::multiply, {.engine = Engine::vector});
    return product;
  }
  // One state over a part of the sequence, added to `total`, for d = delta and du = delta u; `initial` is
  // where it starts. Returns all its values.
  Tile state(std::int64_t s, Range part, const Tile& d, const Tile& du, const Tile& decay,
             const Scalar& initial, const Tile& total) const {
    const Shape shape = d.shape();
    const auto temporary = [&] { return nki_.sbuf(DType::f32, shape); };
    const Tile factor = temporary(), weighted = temporary(), values = temporary(), seen = temporary();
    activation(factor, Function::exp, d, {.scale = decay});
    tensor_tensor(weighted, du, broadcast_(load(b(ds(s, 1), part))), Alu::multiply,
                  {.engine = Engine::vector});
    tensor_tensor_scan(values, factor, weighted, initial, Alu::multiply, Alu::add);
    tensor_tensor(seen, values, broadcast_(load(c(ds(s, 1), part))), Alu::multiply,
                  {.engine = Engine::vector});
    tensor_tensor(total, total, seen, Alu::add, {.engine = Engine::vector});
    return values;
  }
  Tile decay(std::int64_t channel, std::int64_t s) const { return load(a(ds(channel, kChannels), ds(s, 1))); }

  const Tile &delta, &u, &a, &b, &c;
  const std::int64_t channels, length, states;
  std::vector<Tile> out;

 private:
  Recorder& nki_;
  PartitionBroadcast broadcast_;
};

void state_outer(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Scan scan(nki, "measured/scan_state_outer", inputs, 1);
  const Range whole = ds(0, scan.length);
  std::vector<Tile> totals;
  for (std::int64_t i = 0; i < scan.channels; i += kChannels) totals.push_back(scan.zeros(scan.length));
  for (std::int64_t s = 0; s < scan.states; ++s)
    for (std::int64_t i = 0; i < scan.channels; i += kChannels) {
      const Tile d = scan.load(scan.delta(ds(i, kChannels))), decay = scan.decay(i, s),
                 x = scan.load(scan.u(ds(i, kChannels)));
      scan.state(s, whole, d, scan.inputs_of(d, x), decay, 0.0f,
                 totals[static_cast<std::size_t>(i / kChannels)]);
    }
  for (std::int64_t i = 0; i < scan.channels; i += kChannels)
    scan.store(i, whole, totals[static_cast<std::size_t>(i / kChannels)]);
}

void channel_outer(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Scan scan(nki, "measured/scan_channel_outer", inputs, 1);
  const Range whole = ds(0, scan.length);
  for (std::int64_t i = 0; i < scan.channels; i += kChannels) {
    const Tile total = scan.zeros(scan.length);
    const Tile d = scan.load(scan.delta(ds(i, kChannels))), x = scan.load(scan.u(ds(i, kChannels)));
    const Tile du = scan.inputs_of(d, x);
    for (std::int64_t s = 0; s < scan.states; ++s) scan.state(s, whole, d, du, scan.decay(i, s), 0.0f, total);
    scan.store(i, whole, total);
  }
}

void tile_inner(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Scan scan(nki, "measured/scan_tile_inner", inputs, kTile);
  for (std::int64_t i = 0; i < scan.channels; i += kChannels) {
    const Tile total = scan.zeros(scan.length);
    const Tile d = scan.load(scan.delta(ds(i, kChannels))), x = scan.load(scan.u(ds(i, kChannels)));
    const Tile du = scan.inputs_of(d, x);
    for (std::int64_t s = 0; s < scan.states; ++s) {
      const Tile decay = scan.decay(i, s), carried = scan.zeros(1);
      for (std::int64_t t = 0; t < scan.length; t += kTile) {
        const auto part = [&](const Tile& tile) { return tile(ds(0, kChannels), ds(t, kTile)); };
        const Tile values = scan.state(s, ds(t, kTile), part(d), part(du), decay, carried, part(total));
        tensor_copy(carried, values(ds(0, kChannels), ds(kTile - 1, 1)));
      }
    }
    scan.store(i, ds(0, scan.length), total);
  }
}

void tile_outer(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Scan scan(nki, "measured/scan_tile_outer", inputs, kTile);
  std::vector<Tile> carried;  // of a tile of channels, each state
  for (std::int64_t i = 0; i < scan.channels; i += kChannels) carried.push_back(scan.zeros(scan.states));
  for (std::int64_t t = 0; t < scan.length; t += kTile) {
    const Range part = ds(t, kTile);
    std::vector<Tile> totals;
    for (std::int64_t i = 0; i < scan.channels; i += kChannels) totals.push_back(scan.zeros(kTile));
    for (std::int64_t i = 0; i < scan.channels; i += kChannels) {
      const auto index = static_cast<std::size_t>(i / kChannels);
      const Tile d = scan.load(scan.delta(ds(i, kChannels), part)),
                 x = scan.load(scan.u(ds(i, kChannels), part));
      const Tile du = scan.inputs_of(d, x);
      for (std::int64_t s = 0; s < scan.states; ++s) {
        const Tile last = carried[index](ds(0, kChannels), ds(s, 1));
        const Tile values =
            scan.state(s, part, d, du, scan.decay(i, s), t > 0 ? Scalar(last) : Scalar(0.0f), totals[index]);
        if (t + kTile < scan.length) tensor_copy(last, values(ds(0, kChannels), ds(kTile - 1, 1)));
      }
    }
    for (std::int64_t i = 0; i < scan.channels; i += kChannels)
      scan.store(i, part, totals[static_cast<std::size_t>(i / kChannels)]);
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  const auto channels = static_cast<std::size_t>(inputs[0].shape[0]),
             length = static_cast<std::size_t>(inputs[0].shape[1]),
             states = static_cast<std::size_t>(inputs[2].shape[1]);
  const std::vector<double>&delta = values[0], &u = values[1], &a = values[2], &b = values[3], &c = values[4];
  std::vector<double> out(channels * length, 0);
  for (std::size_t i = 0; i < channels; ++i)
    for (std::size_t s = 0; s < states; ++s) {
      double state = 0;
      for (std::size_t t = 0; t < length; ++t) {
        const std::size_t at = i * length + t;
        state = std::exp(delta[at] * a[i * states + s]) * state + delta[at] * u[at] * b[s * length + t];
        out[at] += state * c[s * length + t];
      }
    }
  return {out};
}

std::vector<Parameter> inputs() {
  return {{"delta", DType::f32, {128, 1024}},
          {"u", DType::f32, {128, 1024}},
          {"a", DType::f32, {128, 2}},
          {"b", DType::f32, {2, 1024}},
          {"c", DType::f32, {2, 1024}}};
}

}  // namespace

Kernel measured_scan_state_outer() {
  return {"measured/scan_state_outer", "selective scan, states outermost", inputs(), state_outer, reference};
}
Kernel measured_scan_channel_outer() {
  return {"measured/scan_channel_outer", "selective scan, channels outermost", inputs(), channel_outer,
          reference};
}
Kernel measured_scan_tile_inner() {
  return {"measured/scan_tile_inner", "selective scan, tiles of the sequence innermost", inputs(), tile_inner,
          reference};
}
Kernel measured_scan_tile_outer() {
  return {"measured/scan_tile_outer", "selective scan, tiles of the sequence outermost", inputs(), tile_outer,
          reference};
}

}  // namespace headway::kernels

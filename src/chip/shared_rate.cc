#include "chip/shared_rate.h"

namespace headway::chip {

Span serve(std::span<const Demand> demands, Picoseconds from) {
  Span span{from, from};
  double left = 1;  // share of the transfer
  bool begun = false;
  auto bin = static_cast<std::size_t>(std::max<Picoseconds>(from, 0) / SharedRate::kBin);
  while (left > 0) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Demand& d : demands)
        if (d.amount > 0)
          if (const std::size_t open = d.rate->open(bin); open != bin) {
            bin = open;
            moved = true;
          }
    }
    const Picoseconds begin = std::max(from, static_cast<Picoseconds>(bin) * SharedRate::kBin);
    const Picoseconds end = (static_cast<Picoseconds>(bin) + 1) * SharedRate::kBin;
    const auto width = static_cast<double>(end - begin);
    // What the rest of the bin can do for it, and what it would take alone.
    double share = left, alone = 0;
    for (const Demand& d : demands) {
      if (d.amount <= 0) continue;
      share = std::min({share, d.rate->left(bin) / d.amount, d.most * width / d.amount});
      alone = std::max(alone, left * d.amount / d.most);
    }
    for (const Demand& d : demands)
      if (d.amount > 0) d.rate->take(bin, share * d.amount);
    if (!begun) span.start = begin;
    begun = true;
    // Alone in the bin it ends when its work ends; among others, in proportion to what it gets.
    const double part = share >= left ? std::min(1.0, alone / width) : 1.0;
    span.end = begin + static_cast<Picoseconds>(part * width);
    left -= share;
    if (left < 1e-9) break;
    ++bin;
  }
  return span;
}

}  // namespace headway::chip

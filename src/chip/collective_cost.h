// How long collectives take: steps, each with the latency of a hop, and bytes.
//
// Small messages go to all others at once (mesh), medium ones by halves and doubles (RDH), large ones around
// two rings of every other rank (KangaRing); a chip whose file has no thresholds has plain rings only. Within
// a chip a rank sends at its own bandwidth, between chips at its share of the chip's links, and between
// servers, where the parts of a server exchange first, at its share of the network. Source: AWS Neuron
// documentation, Neuron Collectives.
#pragma once

#include <cstdint>

#include "chip/collectives.h"
#include "chip/engine_cost.h"

namespace headway::chip {

// The ranks of a group, and how many chips and servers they are spread over, evenly.
struct Spread {
  std::int64_t ranks = 2, chips = 1, servers = 1;
};

enum class Algorithm : std::uint8_t { mesh, halves_and_doubles, kanga_ring, ring };
// For a message of so many bytes: the largest that a rank sends or gets.
Algorithm algorithm_of(const Timing& timing, double bytes);

// Bytes that a rank sends, where each rank's source has `bytes`.
double bytes_sent(Exchange exchange, std::int64_t ranks, double bytes);

Duration collective_time(const Timing& timing, Exchange exchange, const Spread& spread, double bytes);

}  // namespace headway::chip

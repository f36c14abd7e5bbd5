#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace headway {

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Hasher::~Hasher() = default;

void Hasher::add(const void* data, std::size_t bytes) { XXH3_128bits_update(state_->xxh, data, bytes); }

std::string Hasher::hex() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::string hash_hex(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return hasher.hex();
}

std::uint64_t hash64(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace headway

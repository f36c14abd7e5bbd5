// Content hashes (XXH3, 128 bits): for telling files apart, not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headway {

class Hasher {
 public:
  Hasher();
  ~Hasher();
  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  // 32 lowercase hexadecimal digits of all that was added.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::string_view text);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);

}  // namespace headway

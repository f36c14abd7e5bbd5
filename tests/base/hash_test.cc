#include "base/hash.h"

#include <gtest/gtest.h>

namespace headway {
namespace {

TEST(Hash, IsXxh3) {
  // The published values of XXH3 for no bytes.
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2u);
}

TEST(Hash, DoesNotDependOnHowTheBytesArrive) {
  const std::string text(1000, 'x');
  Hasher hasher;
  hasher.add(text.substr(0, 1));
  hasher.add(text.substr(1, 700));
  EXPECT_NE(hasher.hex(), hash_hex(text));
  hasher.add(text.substr(701));
  EXPECT_EQ(hasher.hex(), hash_hex(text));
}

TEST(Hash, DependsOnTheSeed) { EXPECT_NE(hash64("a", 1), hash64("a", 2)); }

}  // namespace
}  // namespace headway

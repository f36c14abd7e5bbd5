// Random text for tests: mostly the characters that split patterns tell apart.
#pragma once

#include <string>

#include "base/random.h"

namespace headway::data {

inline std::string utf8(char32_t c) {
  std::string out;
  const auto put = [&](unsigned v) { out += static_cast<char>(v); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
  return out;
}

inline char32_t random_code_point(Random& random) {
  static constexpr char32_t kOften[] = {' ', ' ', ' ', '\n', '\r',   '\t',   '\'',   '\'',  '.',
                                        '!', '1', '2', 0xa0, 0x2028, 0x3000, 0x180e, 0x85,  0x17f,
                                        's', 'l', 'e', 'r',  'v',    'D',    'T',    0x301, 0x1f600};
  switch (random.below(6)) {
    case 0:
    case 1:
      return kOften[random.below(std::size(kOften))];
    case 2:
      return static_cast<char32_t>('a' + random.below(26));
    case 3:
      return static_cast<char32_t>(random.below(0x80));
    case 4:
      return static_cast<char32_t>(random.below(0xd800));
    default:
      return static_cast<char32_t>(0xe000 + random.below(0x110000 - 0xe000));
  }
}

inline std::string random_text(Random& random, int characters) {
  std::string text;
  for (int i = 0; i < characters; ++i) text += utf8(random_code_point(random));
  return text;
}

}  // namespace headway::data

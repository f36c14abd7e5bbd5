// What corpus files are made of, shared by the writer and the reader (docs/formats.md says the same in
// words).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headway::data {

inline constexpr std::string_view kCorpusFormat = "headway-corpus";
inline constexpr int kCorpusVersion = 1;
inline constexpr std::string_view kManifestName = "manifest.json";

// A shard: magic and version, zstd frames (one a group), index, footer. Numbers are little-endian.
inline constexpr std::string_view kShardMagic = "HWCORPUS";
inline constexpr std::size_t kShardHeaderBytes = 12;  // magic, u32 version
inline constexpr std::size_t kIndexEntryBytes =
    32;  // u64 offset, compressed bytes, unpacked bytes, documents
inline constexpr std::size_t kShardFooterBytes = 24;  // u64 offset of the index, u64 groups, magic

// A group before compression: u64 byte length of each document, then the documents.

inline void append_little(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

inline std::uint64_t read_little(std::string_view from, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(from[at + static_cast<std::size_t>(i)]);
  return value;
}

}  // namespace headway::data

// A corpus: documents of text in three splits, in shards on disk, with one content hash (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headway::data {

// Where documents go by the hash of their text: what is trained on, what may be looked at, what is scored.
enum class Split { train, public_val, official };
inline constexpr Split kSplits[] = {Split::train, Split::public_val, Split::official};
std::string_view name_of(Split split);

struct SplitSize {
  std::int64_t documents = 0;
  std::int64_t bytes = 0;   // of text
  std::int64_t groups = 0;  // row groups; consecutive documents where the source had none (data/prepare.h)
};

// Where documents came from.
struct CorpusSource {
  std::string name;
  std::string package;         // the Debian package, or empty
  std::string licence;         // "not stated" for users' own files
  std::int64_t documents = 0;  // kept, in all splits
  std::int64_t bytes = 0;      // of their text
};

// An opened corpus. Text is decompressed a group at a time.
class Corpus {
 public:
  // Reads the manifest. Throws InputError when `folder` holds no complete corpus, or a damaged one (a shard's
  // checksum is verified when the shard is first read).
  explicit Corpus(const std::filesystem::path& folder);
  ~Corpus();

  const std::filesystem::path& folder() const;
  // 32 hexadecimal digits over the texts of all splits, their order and their groups.
  const std::string& hash() const;
  SplitSize size(Split split) const;
  const std::vector<CorpusSource>& sources() const;
  // The documents of row group `group` of a split, in order. Thread-safe.
  std::vector<std::string> group(Split split, std::int64_t group) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace headway::data

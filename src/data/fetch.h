// Fetches the shards of a public dataset: resumed where they stopped, verified, and remembered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/http.h"

namespace headway::data {

// karpathy/climbmix-400b-shuffle: shard_00000.parquet to shard_06542.parquet, about 100 MB each.
inline constexpr const char* kClimbMixUrl =
    "https://huggingface.co/datasets/karpathy/climbmix-400b-shuffle/resolve/main";
inline constexpr int kClimbMixShards = 6543;

struct FetchOptions {
  std::string base_url = kClimbMixUrl;  // NAME is at base_url/NAME
  std::filesystem::path out;
  int shards = 0;  // the first so many, from shard_00000 on
  int retries =
      6;  // of a shard in a row without a new byte; waits 1, 2, 4 ... seconds, at most 60, between them
  bool progress = true;
};

struct FetchedShards {
  std::vector<std::filesystem::path> files;
  std::int64_t bytes = 0;       // of all files
  std::int64_t downloaded = 0;  // over the network, this time
  int kept = 0;                 // files that were there already and were found intact
};

// Brings the shards to `options.out`. A shard grows as NAME.part, is resumed from there (by a Range request;
// a server that ignores it sends the shard anew) and gets its name once it is complete: of the size the
// server stated, with the SHA-256 it stated (X-Linked-Etag or ETag, where that is one), and readable as
// Parquet to the last row. Size and hash are then recorded in fetched.json (docs/formats.md) and checked by
// later calls, which fetch a damaged shard again.
//
// `sleep` waits so many seconds. Throws InputError when the server refuses (no such file, not allowed) or
// what it sends isn't a Parquet file; SystemError when the network keeps failing or the disk is full. What
// was downloaded stays.
FetchedShards fetch_climbmix(const FetchOptions& options, Http& http, FileSystem& files,
                             const std::function<void(double seconds)>& sleep);

}  // namespace headway::data

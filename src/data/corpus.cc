#include "data/corpus.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "data/corpus_format.h"

namespace headway::data {
namespace {

constexpr const char* kRemedy = "Prepare it again with headway data prepare";

// Shards are opened, verified and mapped when first read, and stay mapped.
struct Shard {
  std::filesystem::path path;
  std::string hash;
  std::int64_t first_group = 0;  // within the split
  std::int64_t groups = 0;

  std::once_flag opened;
  std::unique_ptr<MappedFile> file;
  std::string_view index;

  void open() {
    file = std::make_unique<MappedFile>(path);
    const std::string_view all = file->view();
    if (hash_hex(all) != hash) damaged("wrong checksum");
    // The checksum vouches for what the writer wrote; the format is still checked, as another version's may
    // differ.
    if (all.size() < kShardHeaderBytes + kShardFooterBytes || !all.starts_with(kShardMagic) ||
        !all.ends_with(kShardMagic)) {
      damaged("not a corpus shard");
    }
    const auto version = static_cast<int>(read_little(all, kShardMagic.size(), 4));
    if (version != kCorpusVersion) damaged("unknown version " + std::to_string(version));
    const std::size_t footer = all.size() - kShardFooterBytes;
    const std::uint64_t index_offset = read_little(all, footer, 8);
    const std::uint64_t count = read_little(all, footer + 8, 8);
    if (count != static_cast<std::uint64_t>(groups) || index_offset > footer ||
        footer - index_offset != count * kIndexEntryBytes) {
      damaged("impossible index");
    }
    index = all.substr(index_offset, count * kIndexEntryBytes);
  }

  [[noreturn]] void damaged(const std::string& what) const {
    throw InputError(path.string(), "the shard is damaged: " + what, kRemedy);
  }
};

}  // namespace

std::string_view name_of(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::public_val:
      return "public_val";
    case Split::official:
      return "official";
  }
  throw Bug("no such split");
}

struct Corpus::Data {
  std::filesystem::path folder;
  std::string hash;
  SplitSize sizes[3];
  std::vector<std::unique_ptr<Shard>> shards[3];
  std::vector<CorpusSource> sources;
};

Corpus::Corpus(const std::filesystem::path& folder) : data_(std::make_unique<Data>()) {
  data_->folder = folder;
  const std::filesystem::path path = folder / kManifestName;
  if (!std::filesystem::exists(path)) {
    throw InputError(folder.string(), "no corpus here (no " + std::string(kManifestName) + ")",
                     "Make one with headway data prepare --out " + folder.string());
  }
  try {
    nlohmann::json manifest = nlohmann::json::parse(read_file(path));
    if (manifest.at("format") != kCorpusFormat) throw InputError(path.string(), "not a manifest of a corpus");
    if (manifest.at("version") != kCorpusVersion) {
      throw InputError(path.string(),
                       "corpus version " + manifest.at("version").dump() + " is unknown; expected " +
                           std::to_string(kCorpusVersion),
                       kRemedy);
    }
    const auto checksum = manifest.at("checksum").get<std::string>();
    manifest.erase("checksum");
    if (hash_hex(manifest.dump()) != checksum) throw InputError(path.string(), "wrong checksum", kRemedy);
    data_->hash = manifest.at("hash");
    for (const Split split : kSplits) {
      const auto& entry = manifest.at("splits").at(std::string(name_of(split)));
      SplitSize& size = data_->sizes[static_cast<int>(split)];
      size = {entry.at("documents"), entry.at("bytes"), entry.at("groups")};
      std::int64_t groups = 0;
      for (const auto& description : entry.at("shards")) {
        auto shard = std::make_unique<Shard>();
        shard->path = folder / description.at("file").get<std::string>();
        shard->hash = description.at("hash");
        shard->first_group = groups;
        shard->groups = description.at("groups");
        groups += shard->groups;
        if (!std::filesystem::exists(shard->path))
          throw InputError(shard->path.string(), "the shard is missing", kRemedy);
        data_->shards[static_cast<int>(split)].push_back(std::move(shard));
      }
      if (groups != size.groups)
        throw InputError(path.string(), "its shards don't add up to its groups", kRemedy);
    }
    for (const auto& entry : manifest.at("sources")) {
      data_->sources.push_back({entry.at("name"), entry.at("package"), entry.at("licence"),
                                entry.at("documents"), entry.at("bytes")});
    }
  } catch (const nlohmann::json::exception& error) {
    throw InputError(path.string(), std::string("damaged manifest: ") + error.what(), kRemedy);
  }
}
Corpus::~Corpus() = default;

const std::filesystem::path& Corpus::folder() const { return data_->folder; }
const std::string& Corpus::hash() const { return data_->hash; }
SplitSize Corpus::size(Split split) const { return data_->sizes[static_cast<int>(split)]; }
const std::vector<CorpusSource>& Corpus::sources() const { return data_->sources; }

std::vector<std::string> Corpus::group(Split split, std::int64_t group) const {
  HEADWAY_CHECK(group >= 0 && group < size(split).groups);
  const auto& shards = data_->shards[static_cast<int>(split)];
  const auto after =
      std::upper_bound(shards.begin(), shards.end(), group,
                       [](std::int64_t g, const auto& shard) { return g < shard->first_group; });
  Shard& shard = **(after - 1);
  std::call_once(shard.opened, [&] { shard.open(); });

  const std::size_t entry = static_cast<std::size_t>(group - shard.first_group) * kIndexEntryBytes;
  const std::uint64_t offset = read_little(shard.index, entry, 8);
  const std::uint64_t packed = read_little(shard.index, entry + 8, 8);
  const std::uint64_t unpacked = read_little(shard.index, entry + 16, 8);
  const std::uint64_t documents = read_little(shard.index, entry + 24, 8);
  const std::string_view all = shard.file->view();
  if (offset > all.size() || packed > all.size() - offset || documents > unpacked / 8 ||
      ZSTD_getFrameContentSize(all.data() + offset, packed) != unpacked) {
    shard.damaged("impossible group " + std::to_string(group));
  }
  std::string text(unpacked, '\0');
  if (ZSTD_decompress(text.data(), unpacked, all.data() + offset, packed) != unpacked) {
    shard.damaged("group " + std::to_string(group) + " can't be decompressed");
  }
  std::vector<std::string> result;
  result.reserve(documents);
  std::size_t at = documents * 8;
  for (std::uint64_t i = 0; i < documents; ++i) {
    const std::uint64_t length = read_little(text, i * 8, 8);
    if (length > text.size() - at) shard.damaged("a document reaches beyond group " + std::to_string(group));
    result.emplace_back(text, at, length);
    at += length;
  }
  if (at != text.size()) shard.damaged("bytes left over in group " + std::to_string(group));
  return result;
}

}  // namespace headway::data

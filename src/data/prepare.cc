#include "data/prepare.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/progress.h"
#include "data/corpus_writer.h"
#include "data/documents.h"

namespace headway::data {
namespace {

constexpr std::size_t kFewDocuments = 3200;
// Ranks read every world-th group, so each split of a corpus gets groups for many ranks: a sixteenth of its
// documents each, at most 1,024 in train; the others have a hundredth of the documents, and so of the group.
constexpr std::size_t kGroups = 16;
constexpr std::size_t kGroupDocuments[3] = {1024, 10, 10};  // by Split
constexpr std::size_t kReadAhead = kGroups * 1024;
constexpr std::size_t kGroupBytes = std::size_t{64} << 20;
// Two hashes of the same text: which split it goes to must say nothing about which texts are alike.
constexpr std::uint64_t kSplitSeed = 0x48575350;
constexpr std::uint64_t kIdentitySeed = 0x48574944;
constexpr std::uint64_t kOrderSeed = 0x48574f52;
// Documents are shuffled within this much text: all of a common corpus, windows of a large one.
constexpr std::size_t kShuffleBytes = std::size_t{256} << 20;

// A set of 64-bit hashes with open addressing: 16 bytes a document, where millions of documents are normal.
class HashSet {
 public:
  // False when the hash was already there.
  bool insert(std::uint64_t hash) {
    if (hash == 0) hash = 1;  // 0 marks a free slot
    if (2 * (count_ + 1) > slots_.size()) grow();
    if (!place(hash)) return false;
    ++count_;
    return true;
  }

 private:
  bool place(std::uint64_t hash) {
    for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == hash) return false;
      if (slots_[i] == 0) {
        slots_[i] = hash;
        return true;
      }
    }
  }
  void grow() {
    std::vector<std::uint64_t> old(std::max<std::size_t>(1024, slots_.size() * 2));
    old.swap(slots_);
    for (const std::uint64_t hash : old) {
      if (hash != 0) place(hash);
    }
  }

  std::vector<std::uint64_t> slots_;
  std::size_t count_ = 0;
};

std::uint64_t identity(const std::string& text) { return hash64(text, kIdentitySeed); }

// Which split a document goes to, and how many make a group there.
class Layout {
 public:
  // Reads ahead, but not further than it takes to know that there are many documents.
  Layout(const std::vector<TextSource>& sources, bool progress) {
    Progress line("looking ahead, documents", 0, progress);
    HashSet seen;
    std::vector<std::uint64_t> hashes;
    DocumentBatch batch;
    for (const TextSource& source : sources) {
      for (const auto& path : source.files) {
        const auto reader = read_documents(path);
        while (reader->next(batch)) {
          for (const std::string& text : batch.documents) {
            if (seen.insert(identity(text))) hashes.push_back(hash64(text, kSplitSeed));
          }
          line.update(static_cast<std::int64_t>(hashes.size()));
          if (hashes.size() >= kReadAhead) return;
        }
      }
    }
    if (hashes.size() < kFewDocuments) choose_among(hashes);
    std::size_t counts[3] = {};
    for (const std::uint64_t hash : hashes) ++counts[static_cast<int>(split_of(hash))];
    for (int s = 0; s < 3; ++s) {
      group_documents_[s] = std::clamp<std::size_t>(counts[s] / kGroups, 1, kGroupDocuments[s]);
    }
  }

  Split split_of(const std::string& text) const { return split_of(hash64(text, kSplitSeed)); }
  std::size_t group_documents(Split split) const { return group_documents_[static_cast<int>(split)]; }

 private:
  void choose_among(std::vector<std::uint64_t>& hashes) {
    few_ = true;
    std::sort(hashes.begin(), hashes.end());
    const std::size_t each = std::max<std::size_t>(1, std::min<std::size_t>(32, hashes.size() / 20));
    const std::size_t official = hashes.size() >= 3 ? each : 0;
    const std::size_t public_val = hashes.size() >= 2 ? each : 0;
    for (std::size_t i = 0; i < official + public_val; ++i) {
      (i < official ? official_ : public_val_).insert(hashes[i]);
    }
  }

  Split split_of(std::uint64_t hash) const {
    if (few_) {
      return official_.contains(hash)     ? Split::official
             : public_val_.contains(hash) ? Split::public_val
                                          : Split::train;
    }
    const auto percent = static_cast<int>((static_cast<unsigned __int128>(hash) * 100) >> 64);
    return percent == 0 ? Split::official : percent == 1 ? Split::public_val : Split::train;
  }

 private:
  bool few_ = false;
  std::unordered_set<std::uint64_t> official_, public_val_;
  std::size_t group_documents_[3] = {kGroupDocuments[0], kGroupDocuments[1], kGroupDocuments[2]};
};

// A document waiting to be shuffled.
struct Waiting {
  std::uint64_t order;  // a hash of its text
  Split split;
  std::string text;
};

// Documents of a split waiting for their group to be complete.
struct OpenGroup {
  std::vector<std::string> documents;
  std::size_t bytes = 0;
};

std::int64_t total_bytes(const std::vector<TextSource>& sources) {
  std::int64_t total = 0;
  for (const TextSource& source : sources) {
    for (const auto& path : source.files) {
      std::error_code error;  // a file that vanished is reported when it is read
      const auto size = std::filesystem::file_size(path, error);
      if (!error) total += static_cast<std::int64_t>(size);
    }
  }
  return total;
}

}  // namespace

PreparedCorpus prepare_corpus(const std::vector<TextSource>& sources, const std::filesystem::path& out,
                              FileSystem& files, bool progress) {
  const Layout layout(sources, progress);
  CorpusWriter writer(out, files);
  PreparedCorpus result;
  HashSet seen;
  OpenGroup open[3];
  const auto end_group = [&](Split split) {
    OpenGroup& group = open[static_cast<int>(split)];
    if (!group.documents.empty()) writer.add_group(split, group.documents);
    group = OpenGroup();
  };

  const auto add = [&](Split split, std::string&& text, bool cut) {
    OpenGroup& group = open[static_cast<int>(split)];
    group.bytes += text.size();
    group.documents.push_back(std::move(text));
    if (cut && (group.documents.size() == layout.group_documents(split) || group.bytes >= kGroupBytes)) {
      end_group(split);
    }
  };
  // Sources come one after another; training on them in that order would be learning them one after another.
  std::vector<Waiting> waiting;
  std::size_t waiting_bytes = 0;
  const auto shuffle = [&] {
    std::sort(waiting.begin(), waiting.end(),
              [](const Waiting& a, const Waiting& b) { return a.order < b.order; });
    for (Waiting& document : waiting) add(document.split, std::move(document.text), true);
    waiting.clear();
    waiting_bytes = 0;
  };

  Progress line("reading", total_bytes(sources), progress);
  std::int64_t bytes_before = 0;
  std::int64_t text_bytes = 0;
  DocumentBatch batch;
  for (const TextSource& source : sources) {
    CorpusSource& account = result.sources.emplace_back();
    account = {source.name, source.package, source.licence, 0, 0};
    for (const auto& path : source.files) {
      const auto reader = read_documents(path);
      while (reader->next(batch)) {
        if (batch.row_group) {
          shuffle();
          for (const Split split : kSplits) end_group(split);
        }
        for (std::string& text : batch.documents) {
          if (!seen.insert(identity(text))) {
            ++result.duplicates;
            continue;
          }
          const Split split = layout.split_of(text);
          ++account.documents;
          account.bytes += static_cast<std::int64_t>(text.size());
          if (batch.row_group) {
            add(split, std::move(text), false);
          } else {
            waiting_bytes += text.size();
            waiting.push_back({hash64(text, kOrderSeed), split, std::move(text)});
            if (waiting_bytes >= kShuffleBytes) shuffle();
          }
        }
        if (batch.row_group) {
          for (const Split split : kSplits) end_group(split);
        }
        line.update(bytes_before + reader->consumed(),
                    grouped((text_bytes + account.bytes) / 1'000'000) + " MB of text");
      }
      bytes_before += reader->consumed();
    }
    text_bytes += account.bytes;
  }
  shuffle();
  for (const Split split : kSplits) end_group(split);
  if (text_bytes == 0) {
    throw InputError("headway data prepare", "there is no text in what was given, so no corpus was made");
  }
  result.hash = writer.finish(result.sources);
  for (const Split split : kSplits) result.sizes[static_cast<int>(split)] = writer.size(split);
  line.finish(grouped(text_bytes) + " bytes of text");
  return result;
}

}  // namespace headway::data

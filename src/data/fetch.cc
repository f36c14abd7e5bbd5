#include "data/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/progress.h"
#include "data/parquet.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecordFormat = "headway-fetched";
constexpr int kRecordVersion = 1;
constexpr int kFaults = 2;  // how often a damaged shard is fetched again before it is the server's fault

// A file that grows at its end and may already have a beginning.
class PartFile {
 public:
  explicit PartFile(const fs::path& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail("creating");
  }
  // An empty part is nothing to resume.
  ~PartFile() {
    if (::lseek(fd_, 0, SEEK_END) == 0) ::unlink(path_.c_str());
    ::close(fd_);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::int64_t size() const {
    const off_t end = ::lseek(fd_, 0, SEEK_END);
    if (end < 0) fail("reading");
    return end;
  }
  void append(std::string_view data) {
    while (!data.empty()) {
      const ssize_t n = ::write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("writing");
      data.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void truncate() {
    if (::ftruncate(fd_, 0) != 0) fail("truncating");
  }
  void flush() {
    if (::fsync(fd_) != 0) fail("flushing");
  }

 private:
  [[noreturn]] void fail(const std::string& action) const {
    const int code = errno;
    throw SystemError(
        path_.string(), action + " failed: " + std::strerror(code),
        code == ENOSPC || code == EDQUOT ? "Free some space and run the same command again" : "");
  }

  fs::path path_;
  int fd_;
};

std::string sha256_of(std::string_view data) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(data.data(), data.size(), digest, &length, EVP_sha256(), nullptr) != 1) {
    throw SystemError("OpenSSL", "SHA-256 failed");
  }
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

// What the server says about the whole file.
struct Stated {
  std::optional<std::int64_t> bytes;
  std::string sha256;  // empty when it states none
};

std::optional<std::int64_t> number(std::string_view text) {
  if (text.empty() || text.size() > 18 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  return std::stoll(std::string(text));
}

std::string header(const HttpResponse& response, const std::string& name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

std::string sha256_in(std::string tag) {
  std::erase(tag, '"');
  const bool hexadecimal = std::all_of(tag.begin(), tag.end(),
                                       [](char c) { return std::strchr("0123456789abcdef", c) != nullptr; });
  return tag.size() == 64 && hexadecimal ? tag : "";
}

Stated stated_by(const HttpResponse& response) {
  Stated stated;
  if (response.status == 200) {
    stated.bytes = number(header(response, "content-length"));
  } else {
    const std::string range = header(response, "content-range");  // bytes 100-199/200
    if (const std::size_t slash = range.rfind('/'); slash != std::string::npos)
      stated.bytes = number(range.substr(slash + 1));
  }
  stated.sha256 = sha256_in(header(response, "x-linked-etag"));
  if (stated.sha256.empty()) stated.sha256 = sha256_in(header(response, "etag"));
  return stated;
}

// The first byte of what a 206 response brings.
std::optional<std::int64_t> range_start(const HttpResponse& response) {
  const std::string range = header(response, "content-range");
  const std::size_t dash = range.find('-');
  if (!range.starts_with("bytes ") || dash == std::string::npos) return std::nullopt;
  return number(std::string_view(range).substr(6, dash - 6));
}

// Thrown out of a transfer that can't go on but may be tried again after `wait` seconds (0: the usual wait).
struct TryAgain {
  std::string why;
  double wait = 0;
};

// What earlier calls fetched: name -> bytes, hash.
class Record {
 public:
  explicit Record(const fs::path& folder) : path_(folder / "fetched.json") {
    if (!fs::exists(path_)) return;
    try {
      nlohmann::json json = nlohmann::json::parse(read_file(path_));
      if (json.at("format") != kRecordFormat || json.at("version") != kRecordVersion) {
        throw InputError(path_.string(),
                         "not a record of fetched files of version " + std::to_string(kRecordVersion));
      }
      const auto checksum = json.at("checksum").get<std::string>();
      json.erase("checksum");
      if (hash_hex(json.dump()) != checksum) throw InputError(path_.string(), "wrong checksum", kRemedy);
      files_ = json.at("files");
    } catch (const nlohmann::json::exception& error) {
      throw InputError(path_.string(), std::string("damaged: ") + error.what(), kRemedy);
    }
  }

  bool knows(const std::string& name) const { return files_.contains(name); }
  bool matches(const std::string& name, std::string_view content) const {
    const auto& entry = files_.at(name);
    return entry.at("bytes") == content.size() && entry.at("hash") == hash_hex(content);
  }
  void add(const std::string& name, std::string_view content, const std::string& url, FileSystem& files) {
    files_[name] = {{"bytes", content.size()}, {"hash", hash_hex(content)}, {"url", url}};
    nlohmann::json json = {{"format", kRecordFormat}, {"version", kRecordVersion}, {"files", files_}};
    json["checksum"] = hash_hex(json.dump());
    files.write_atomically(path_, json.dump(2) + "\n");
  }

 private:
  static constexpr const char* kRemedy =
      "Remove it; the shards are then verified as Parquet and recorded again";
  fs::path path_;
  nlohmann::json files_ = nlohmann::json::object();
};

// Reads every row, so that each page was decompressed. The reason it failed, or nothing.
std::optional<std::string> parquet_fault(const fs::path& path) {
  try {
    const ParquetText file(path);
    for (std::int64_t i = 0; i < file.row_groups(); ++i) file.row_group(i);
    return std::nullopt;
  } catch (const InputError& error) {
    return error.what();
  }
}

class ShardDownload {
 public:
  ShardDownload(const FetchOptions& options, Http& http, const std::function<void(double)>& sleep,
                std::string name, std::string title)
      : options_(options),
        http_(http),
        sleep_(sleep),
        url_(options.base_url + (options.base_url.ends_with('/') ? "" : "/") + name),
        part_path_(options.out / (name + ".part")),
        title_(std::move(title)) {}

  const std::string& url() const { return url_; }
  const fs::path& part() const { return part_path_; }
  std::int64_t downloaded() const { return downloaded_; }

  // Returns when the part file is complete and verified.
  void run() {
    PartFile part(part_path_);
    int failures = 0;
    int faults = 0;
    while (true) {
      const std::int64_t before = downloaded_;
      TryAgain reason;
      try {
        attempt(part);
        part.flush();
        if (!fault(part)) return;
        // A beginning from another time may not fit; and what came in one piece can have been damaged on the
        // way.
        reason.why = *fault_;
        part.truncate();
        ++failures;
        if (++faults > kFaults) give_up(reason.why);
      } catch (const NetworkFailure& failure) {
        reason.why = failure.what();
        failures = downloaded_ > before ? 1 : failures + 1;
      } catch (const TryAgain& again) {
        reason = again;
        failures = downloaded_ > before ? 1 : failures + 1;
      }
      if (failures > options_.retries) give_up(reason.why);
      sleep_(reason.wait > 0 ? reason.wait
                             : std::min(60.0, static_cast<double>(1 << std::min(failures - 1, 6))));
    }
  }

 private:
  // One request for what is missing.
  void attempt(PartFile& part) {
    const std::int64_t have = part.size();
    std::unique_ptr<Progress> line;
    std::int64_t size = have;
    bool refused_range = false;
    http_.get(
        url_, have,
        [&](const HttpResponse& response) {
          if (response.status == 416) {  // nothing after `have`: complete, or longer than the file is now
            stated_ = stated_by(response);
            refused_range = true;
            return;
          }
          check(response);
          stated_ = stated_by(response);
          if (response.status == 200 && have > 0) {
            part.truncate();
            size = 0;
          } else if (response.status == 206 && range_start(response) != have) {
            part.truncate();
            throw TryAgain{"the server sent another part of the file than was asked for"};
          }
          line = std::make_unique<Progress>(title_, stated_.bytes.value_or(0), options_.progress);
        },
        [&](std::string_view data) {
          if (refused_range) return;  // the page that says so
          part.append(data);
          size += static_cast<std::int64_t>(data.size());
          downloaded_ += static_cast<std::int64_t>(data.size());
          line->update(size);
        });
    if (refused_range && stated_.bytes != have) {
      part.truncate();
      throw TryAgain{"what was there of the file is longer than the file"};
    }
    if (stated_.bytes && size < *stated_.bytes) throw TryAgain{"the connection ended early"};
  }

  void check(const HttpResponse& response) const {
    const int status = response.status;
    if (status == 200 || status == 206) return;
    const std::string text = "the server answered " + std::to_string(status);
    if (status == 429 || status >= 500) {
      throw TryAgain{text, static_cast<double>(std::min<std::int64_t>(
                               number(header(response, "retry-after")).value_or(0), 600))};
    }
    throw InputError(url_, text,
                     status == 404                    ? "There is no such file: check --base-url and --shards"
                     : status == 401 || status == 403 ? "The server doesn't let us have it: check --base-url"
                                                      : "Check --base-url");
  }

  // What is wrong with the complete part file, if anything.
  const std::optional<std::string>& fault(const PartFile& part) {
    fault_.reset();
    const std::int64_t size = part.size();
    if (stated_.bytes && size != *stated_.bytes) {
      fault_ = fmt::format("{} bytes came instead of {}", grouped(size), grouped(*stated_.bytes));
    } else if (!stated_.sha256.empty() && sha256_of(MappedFile(part_path_).view()) != stated_.sha256) {
      fault_ = "its SHA-256 is not the one that the server states";
    } else {
      fault_ = parquet_fault(part_path_);
    }
    return fault_;
  }

  [[noreturn]] void give_up(const std::string& why) const {
    if (fault_)
      throw InputError(url_, "what the server sends is damaged or no Parquet file (" + why + ")",
                       "Check --base-url");
    throw SystemError(url_, "the download failed again and again: " + why,
                      "Run the same command again: it goes on where it stopped");
  }

  const FetchOptions& options_;
  Http& http_;
  const std::function<void(double)>& sleep_;
  std::string url_;
  fs::path part_path_;
  std::string title_;
  Stated stated_;
  std::int64_t downloaded_ = 0;
  std::optional<std::string> fault_;  // of the last complete file
};

}  // namespace

FetchedShards fetch_climbmix(const FetchOptions& options, Http& http, FileSystem& files,
                             const std::function<void(double seconds)>& sleep) {
  if (options.shards < 1 || options.shards > kClimbMixShards) {
    throw InputError("--shards", fmt::format("{} shards can't be fetched; the dataset has 1 to {}",
                                             options.shards, kClimbMixShards));
  }
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error) throw SystemError(options.out.string(), "the folder can't be created: " + error.message());
  Record record(options.out);
  FetchedShards result;
  for (int i = 0; i < options.shards; ++i) {
    const std::string name = fmt::format("shard_{:05}.parquet", i);
    const fs::path path = options.out / name;
    ShardDownload download(options, http, sleep, name,
                           fmt::format("{} ({} of {}), bytes", name, i + 1, options.shards));
    bool intact = false;
    if (fs::exists(path)) {
      intact = record.knows(name) ? record.matches(name, MappedFile(path).view()) : !parquet_fault(path);
    }
    if (intact) {
      ++result.kept;
    } else {
      download.run();
      files.rename(download.part(), path);
    }
    const MappedFile content(path);
    if (!intact || !record.knows(name)) record.add(name, content.view(), download.url(), files);
    result.files.push_back(path);
    result.bytes += static_cast<std::int64_t>(content.size());
    result.downloaded += download.downloaded();
  }
  return result;
}

}  // namespace headway::data

#include "data/fetch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/local_server.h"
#include "data/temporary_folder.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

std::string shard_bytes(const std::string& name = "uncompressed") {
  return read_file(fs::path(HEADWAY_ROOT) / "tests/data/fixtures/parquet" / (name + ".parquet"));
}

// A network of files in memory. Each GET takes the next fault, if any is left.
class FakeHttp : public Http {
 public:
  enum class Fault {
    none,
    refuse_connection,
    cut,           // after half of what is missing
    cut_quietly,   // the same, but looking like a proper end
    unavailable,   // 503
    wait,          // 429 with Retry-After
    ignore_range,  // 200 with everything
    other_range,   // 206 from somewhere else
    damage,        // one byte changed
  };
  std::map<std::string, std::string> files;
  std::vector<Fault> faults;
  std::string sha256;              // stated in X-Linked-Etag unless empty
  std::vector<std::int64_t> from;  // of each request
  std::int64_t sent = 0;

  void get(const std::string& url, std::int64_t start,
           const std::function<void(const HttpResponse&)>& on_response,
           const std::function<void(std::string_view)>& on_body) override {
    Fault fault = Fault::none;
    if (from.size() < faults.size()) fault = faults[from.size()];
    from.push_back(start);
    if (fault == Fault::refuse_connection) throw NetworkFailure("connection refused");
    if (fault == Fault::unavailable) return on_response({503, {}});
    if (fault == Fault::wait) return on_response({429, {{"retry-after", "77"}}});
    const auto found = files.find(url);
    if (found == files.end()) return on_response({404, {}});
    std::string body = found->second;
    const auto size = static_cast<std::int64_t>(body.size());
    if (start > 0 && start >= size)
      return on_response({416, {{"content-range", fmt::format("bytes */{}", size)}}});
    if (fault == Fault::ignore_range) start = 0;
    if (fault == Fault::other_range) start -= 1;
    if (fault == Fault::damage) body.at(body.size() - 4000) ^= 1;
    HttpResponse response{200, {{"content-length", std::to_string(size - start)}}};
    if (start > 0) {
      response.status = 206;
      response.headers["content-range"] = fmt::format("bytes {}-{}/{}", start, size - 1, size);
    }
    if (!sha256.empty()) response.headers["x-linked-etag"] = '"' + sha256 + '"';
    on_response(response);
    std::string_view rest = std::string_view(body).substr(static_cast<std::size_t>(start));
    if (fault == Fault::cut || fault == Fault::cut_quietly) rest = rest.substr(0, rest.size() / 2);
    sent += static_cast<std::int64_t>(rest.size());
    for (std::size_t at = 0; at < rest.size(); at += 1000) on_body(rest.substr(at, 1000));
    if (fault == Fault::cut) throw NetworkFailure("connection reset");
  }
};

struct Fetch : testing::Test {
  TemporaryFolder folder;
  FakeHttp http;
  std::vector<double> sleeps;
  FetchOptions options;

  Fetch() {
    options.base_url = "http://files";
    options.out = folder / "out";
    options.shards = 1;
    options.progress = false;
    http.files["http://files/shard_00000.parquet"] = shard_bytes();
    http.files["http://files/shard_00001.parquet"] = shard_bytes("required");
  }
  FetchedShards fetch() {
    return fetch_climbmix(options, http, FileSystem::real(),
                          [&](double seconds) { sleeps.push_back(seconds); });
  }
  fs::path shard(int i) const { return options.out / fmt::format("shard_{:05}.parquet", i); }
  fs::path part() const { return options.out / "shard_00000.parquet.part"; }
  void expect_complete() const {
    EXPECT_EQ(read_file(shard(0)), shard_bytes());
    EXPECT_FALSE(fs::exists(part()));
  }
};

using Fault = FakeHttp::Fault;

TEST_F(Fetch, BringsShardsOnceAndVerifiesThemLater) {
  options.shards = 2;
  const auto first = fetch();
  EXPECT_EQ(first.files.size(), 2u);
  EXPECT_EQ(first.downloaded, first.bytes);
  EXPECT_EQ(read_file(shard(1)), shard_bytes("required"));
  EXPECT_TRUE(sleeps.empty());
  const auto second = fetch();
  EXPECT_EQ(second.kept, 2);
  EXPECT_EQ(second.downloaded, 0);
  EXPECT_EQ(http.from.size(), 2u);
  // Damage that Parquet can't see is seen by the recorded hash.
  std::string bytes = shard_bytes();
  const std::size_t at = bytes.find("kernel");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'K';
  folder.write("out/shard_00000.parquet", bytes);
  EXPECT_EQ(fetch().kept, 1);
  expect_complete();
}

TEST_F(Fetch, ResumesWhatACutConnectionLeft) {
  http.faults = {Fault::cut, Fault::cut_quietly, Fault::refuse_connection, Fault::none};
  const auto fetched = fetch();
  expect_complete();
  EXPECT_EQ(http.from.size(), 4u);
  EXPECT_EQ(http.from[0], 0);
  EXPECT_EQ(http.from[1], static_cast<std::int64_t>(shard_bytes().size() / 2));
  EXPECT_GT(http.from[2], http.from[1]);
  EXPECT_EQ(http.from[3], http.from[2]);
  EXPECT_EQ(fetched.downloaded, fetched.bytes);  // nothing came twice
}

TEST_F(Fetch, ResumesWhatAnEarlierRunLeft) {
  folder.write("out/shard_00000.parquet.part", shard_bytes().substr(0, 1234));
  fetch();
  expect_complete();
  EXPECT_EQ(http.from, std::vector<std::int64_t>{1234});
  // And a part that was complete but not yet renamed.
  fs::remove(shard(0));
  fs::remove(options.out / "fetched.json");
  folder.write("out/shard_00000.parquet.part", shard_bytes());
  const std::int64_t sent = http.sent;
  fetch();
  expect_complete();
  EXPECT_EQ(http.sent, sent);
}

TEST_F(Fetch, StartsAnewWhereRangesAreIgnored) {
  http.faults = {Fault::cut, Fault::ignore_range};
  fetch();
  expect_complete();
  EXPECT_EQ(http.from.size(), 2u);
}

TEST_F(Fetch, DoesNotTrustAnotherRange) {
  http.faults = {Fault::cut, Fault::other_range};
  fetch();
  expect_complete();
  EXPECT_EQ(http.from.back(), 0);
}

TEST_F(Fetch, StartsAnewWhenThePartIsLongerOrOfAnotherFile) {
  folder.write("out/shard_00000.parquet.part", shard_bytes() + "more");
  fetch();
  expect_complete();
  fs::remove(shard(0));
  folder.write("out/shard_00000.parquet.part", std::string(1000, 'x'));
  fetch();
  expect_complete();
}

TEST_F(Fetch, WaitsLongerAndLongerThenGivesUpAndKeepsThePart) {
  options.retries = 4;
  http.faults = {Fault::cut};
  http.faults.resize(50, Fault::unavailable);
  expect_error<SystemError>([&] { fetch(); }, "the server answered 503. Run the same command again");
  EXPECT_EQ(sleeps, (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(fs::file_size(part()), shard_bytes().size() / 2);
  EXPECT_FALSE(fs::exists(shard(0)));
  http.faults.clear();
  fetch();
  expect_complete();
}

TEST_F(Fetch, WaitsAsLongAsTheServerAsks) {
  http.faults = {Fault::wait};
  fetch();
  expect_complete();
  EXPECT_EQ(sleeps, std::vector<double>{77});
}

TEST_F(Fetch, ChecksTheStatedSha256) {
  // From sha256sum.
  http.sha256 = "47fb1b13a7caf326e4ef32c9ab4f56b024a2e48a475babd09b2a2dbea4f162e4";
  http.faults = {Fault::damage};
  fetch();
  expect_complete();
  EXPECT_EQ(http.from, (std::vector<std::int64_t>{0, 0}));

  fs::remove_all(options.out);
  http.sha256[0] = http.sha256[0] == '0' ? '1' : '0';
  http.faults.clear();
  expect_error<InputError>([&] { fetch(); }, "its SHA-256 is not the one that the server states");
  EXPECT_FALSE(fs::exists(shard(0)));
}

TEST_F(Fetch, SaysWhatTheServerRefuses) {
  http.files.clear();
  expect_error<InputError>([&] { fetch(); }, "http://files/shard_00000.parquet: the server answered 404");
  EXPECT_FALSE(fs::exists(part()));
  EXPECT_TRUE(sleeps.empty());
  http.files["http://files/shard_00000.parquet"] = "<html>Log in first</html>";
  expect_error<InputError>([&] { fetch(); }, "not a Parquet file");
  EXPECT_FALSE(fs::exists(shard(0)));
}

TEST_F(Fetch, RefusesADamagedRecordAndImpossibleCounts) {
  fetch();
  std::string record = read_file(options.out / "fetched.json");
  record[record.find("\"bytes\": ") + 9] ^= 1;
  folder.write("out/fetched.json", record);
  expect_error<InputError>([&] { fetch(); }, "fetched.json: wrong checksum");
  options.shards = 0;
  expect_error<InputError>([&] { fetch(); }, "--shards");
  options.shards = kClimbMixShards + 1;
  expect_error<InputError>([&] { fetch(); }, "--shards");
}

// The same against libcurl and a real connection.
std::int64_t range_of(const std::string& request) {
  const std::size_t at = request.find("Range: bytes=");
  return at == std::string::npos ? 0 : std::stoll(request.substr(at + 13));
}

std::string reply(const std::string& body, std::int64_t from) {
  const auto size = static_cast<std::int64_t>(body.size());
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
                     from > 0 ? "206 Partial Content" : "200 OK", size - from,
                     from > 0 ? fmt::format("Content-Range: bytes {}-{}/{}\r\n", from, size - 1, size) : "") +
         body.substr(static_cast<std::size_t>(from));
}

struct FetchOverHttp : Fetch {
  FetchedShards fetch_from(const LocalServer& server) {
    options.base_url = server.url() + "/main";
    const auto curl = curl_http();
    return fetch_climbmix(options, *curl, FileSystem::real(),
                          [&](double seconds) { sleeps.push_back(seconds); });
  }
};

TEST_F(FetchOverHttp, ResumesAfterTheServerCutTheConnection) {
  std::vector<std::int64_t> ranges;
  const LocalServer server([&](const std::string& request) {
    EXPECT_TRUE(request.starts_with("GET /main/shard_00000.parquet HTTP/1.1\r\n")) << request;
    ranges.push_back(range_of(request));
    std::string all = reply(shard_bytes(), ranges.back());
    if (ranges.size() <= 3) all.resize(all.size() - 5000);
    return all;
  });
  const auto fetched = fetch_from(server);
  expect_complete();
  EXPECT_EQ(fetched.downloaded, fetched.bytes);
  ASSERT_GE(ranges.size(), 2u);
  EXPECT_EQ(ranges[1], static_cast<std::int64_t>(shard_bytes().size()) - 5000);
}

TEST_F(FetchOverHttp, StartsAnewWhereTheServerIgnoresRanges) {
  int requests = 0;
  const LocalServer server([&](const std::string&) {
    std::string all = reply(shard_bytes(), 0);
    if (++requests == 1) all.resize(all.size() / 2);
    return all;
  });
  fetch_from(server);
  expect_complete();
  EXPECT_EQ(requests, 2);
}

TEST_F(FetchOverHttp, FollowsRedirectsAndUsesTheirChecksum) {
  std::string tag = "47fb1b13a7caf326e4ef32c9ab4f56b024a2e48a475babd09b2a2dbea4f162e4";
  const LocalServer server([&](const std::string& request) {
    if (request.starts_with("GET /main/")) {
      return "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nX-Linked-ETag: \"" + tag + "\"\r\nETag: \"" +
             std::string(64, 'a') + "\"\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n";
    }
    EXPECT_TRUE(request.starts_with("GET /elsewhere ")) << request;
    return reply(shard_bytes(), range_of(request));
  });
  fetch_from(server);
  expect_complete();
  fs::remove_all(options.out);
  tag[5] = tag[5] == '0' ? '1' : '0';
  expect_error<InputError>([&] { fetch_from(server); }, "its SHA-256 is not the one");
}

TEST_F(FetchOverHttp, GivesUpWhereNobodyAnswers) {
  options.retries = 2;
  std::string url;
  {
    const LocalServer gone([](const std::string&) { return ""; });
    expect_error<SystemError>([&] { fetch_from(gone); }, "the download failed again and again");
    url = gone.url();
  }
  options.base_url = url;
  const auto curl = curl_http();
  expect_error<SystemError>([&] { fetch_climbmix(options, *curl, FileSystem::real(), [](double) {}); },
                            "the download failed again and again");
  options.base_url = "file:///etc";
  expect_error<InputError>([&] { fetch_climbmix(options, *curl, FileSystem::real(), [](double) {}); },
                           "not a URL");
}

}  // namespace
}  // namespace headway::data

// Downloading over HTTP, behind an interface so that tests can inject a network that fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace headway::data {

// The network failed before the whole response was there: worth another try.
class NetworkFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HttpResponse {
  int status = 0;
  // Names in lower case. Headers of redirects on the way are kept where the last response has none of that
  // name.
  std::map<std::string, std::string> headers;
};

class Http {
 public:
  virtual ~Http() = default;
  // GETs `url`, following redirects, from byte `from` on (a Range header; servers may ignore it and answer
  // 200 with the whole). Calls `on_response` once, before the body, then `on_body` with its pieces in order.
  // Throws NetworkFailure when the connection fails or ends early; exceptions of the callbacks end the
  // transfer and come out as they are.
  virtual void get(const std::string& url, std::int64_t from,
                   const std::function<void(const HttpResponse&)>& on_response,
                   const std::function<void(std::string_view)>& on_body) = 0;
};

// libcurl; http and https. A transfer slower than 1 kB/s for 30 s counts as failed.
std::unique_ptr<Http> curl_http();

}  // namespace headway::data

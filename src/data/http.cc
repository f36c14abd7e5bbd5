#include "data/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <exception>

#include "base/error.h"

namespace headway::data {
namespace {

struct Transfer {
  const std::function<void(const HttpResponse&)>* on_response;
  const std::function<void(std::string_view)>* on_body;
  HttpResponse response;
  bool response_given = false;
  std::exception_ptr error;
};

bool is_redirect(int status) { return status >= 300 && status < 400 && status != 304; }

// Runs `action` of a C callback, keeping its exception for the caller of get(). False ends the transfer.
template <typename Action>
bool guarded(Transfer& transfer, Action action) {
  try {
    action();
    return true;
  } catch (...) {
    transfer.error = std::current_exception();
    return false;
  }
}

std::size_t on_header(char* data, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, count);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const bool kept = guarded(transfer, [&] {
    if (line.starts_with("HTTP/")) {
      std::erase_if(transfer.response.headers,
                    [](const auto& h) { return !h.first.starts_with("x-linked-"); });
      const std::size_t space = line.find(' ');
      transfer.response.status =
          space == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(space + 1)).c_str());
    } else if (line.empty()) {
      // The headers of one response are complete; those before a redirect or a 1xx are not the answer.
      if (transfer.response.status >= 200 && !is_redirect(transfer.response.status) &&
          !transfer.response_given) {
        transfer.response_given = true;
        (*transfer.on_response)(transfer.response);
      }
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      line.remove_prefix(colon + 1);
      while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
      transfer.response.headers[name] = line;
    }
  });
  return kept ? count : 0;
}

std::size_t on_data(char* data, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (!transfer.response_given) return count;  // the body of a redirect
  return guarded(transfer, [&] { (*transfer.on_body)({data, count}); }) ? count : 0;
}

class CurlHttp : public Http {
 public:
  CurlHttp() : curl_(curl_easy_init(), curl_easy_cleanup) {
    if (!curl_) throw SystemError("libcurl", "can't be started");
  }

  void get(const std::string& url, std::int64_t from,
           const std::function<void(const HttpResponse&)>& on_response,
           const std::function<void(std::string_view)>& on_body) override {
    Transfer transfer{&on_response, &on_body, {}, false, nullptr};
    CURL* curl = curl_.get();
    curl_easy_reset(curl);
    char message[CURL_ERROR_SIZE] = "";
    const std::string range = std::to_string(from) + "-";
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "headway");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 20L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    if (from > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
    const CURLcode code = curl_easy_perform(curl);
    if (transfer.error) std::rethrow_exception(transfer.error);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
      throw InputError(url, "not a URL that can be fetched", "Expected http:// or https://");
    }
    if (code != CURLE_OK) throw NetworkFailure(message[0] != '\0' ? message : curl_easy_strerror(code));
    if (!transfer.response_given) throw NetworkFailure("the server's answer was incomplete");
  }

 private:
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
};

}  // namespace

std::unique_ptr<Http> curl_http() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw SystemError("libcurl", curl_easy_strerror(started));
  return std::make_unique<CurlHttp>();
}

}  // namespace headway::data

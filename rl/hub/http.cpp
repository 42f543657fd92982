#include "rl/hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <string_view>

#include "runtime/core/check.h"
#include "runtime/core/environment.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::size_t kErrorBodyBytesMax = 64 << 10;
constexpr std::size_t kHeaderBytesMax = 256 << 10;

// What the callbacks of one request share.
struct Transfer {
  const HttpRequest& request;
  HttpAnswer answer;
  std::size_t header_bytes = 0;
  bool begun = false;
  Status failure;  // why a callback ended the request
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::size_t take_header(char* data, std::size_t, std::size_t bytes, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, bytes);
  if (line.starts_with("HTTP/")) transfer.answer.headers.clear();  // after 100 Continue, say
  transfer.header_bytes += bytes;
  if (transfer.header_bytes > kHeaderBytesMax) {
    transfer.failure = runtime::unavailable("the answer's headers do not end");
    return 0;
  }
  if (const std::size_t colon = line.find(':'); colon != line.npos) {
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    transfer.answer.headers[name] = trimmed(line.substr(colon + 1));
  }
  return bytes;
}

struct Callbacks {
  CURL* curl;
  Transfer& transfer;

  std::size_t take_body(std::span<const std::byte> bytes) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    const HttpRequest& request = transfer.request;
    const bool good = status >= 200 && status < 300;
    if (!good || !request.sink) {
      const std::size_t room =
          (good ? request.body_bytes_max : kErrorBodyBytesMax) -
          std::min(transfer.answer.body.size(), good ? request.body_bytes_max : kErrorBodyBytesMax);
      if (good && bytes.size() > room) {
        transfer.failure =
            runtime::resource_exhausted(request.url + ": the answer is longer than " +
                                        std::to_string(request.body_bytes_max) + " bytes");
        return 0;
      }
      transfer.answer.body.append(reinterpret_cast<const char*>(bytes.data()),
                                  std::min(room, bytes.size()));
      return bytes.size();
    }
    if (!transfer.begun) {
      transfer.begun = true;
      if (request.begin)
        transfer.failure = request.begin(static_cast<int>(status), transfer.answer.headers);
      if (!transfer.failure.ok()) return 0;
    }
    transfer.failure = request.sink(bytes);
    return transfer.failure.ok() ? bytes.size() : 0;
  }
};

std::size_t take_body(char* data, std::size_t, std::size_t bytes, void* user) {
  return static_cast<Callbacks*>(user)->take_body(std::as_bytes(std::span(data, bytes)));
}

int ask_cancelled(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& request = static_cast<Transfer*>(user)->request;
  return request.cancelled && request.cancelled() ? 1 : 0;
}

void set_options(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // threads
  curl_easy_setopt(curl, CURLOPT_NOBODY, request.head ? 1L : 0L);
  if (request.post) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.post->size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.post->data());  // borrowed
  }
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_max.count()));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "starling");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_max.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.silence_max.count()));
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* bundle = runtime::environment_variable(name);
    if (bundle == nullptr || *bundle == 0) continue;
    curl_easy_setopt(curl, CURLOPT_CAINFO, bundle);
    break;
  }
}

Status network_failure(CURLcode code, const std::string& url, const char* detail) {
  std::string host = url.substr(0, url.find('/', url.find("://") + 3));
  return runtime::unavailable(host + ": " + (*detail != 0 ? detail : curl_easy_strerror(code)));
}

}  // namespace

const std::string& HttpAnswer::header(const std::string& lower_case_name) const {
  static const std::string kNone;
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? kNone : found->second;
}

HttpClient::HttpClient() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  curl_ = curl_easy_init();
  CHECK(curl_ != nullptr);
}

HttpClient::~HttpClient() { curl_easy_cleanup(curl_); }

Result<HttpAnswer> HttpClient::perform(const HttpRequest& request) {
  CURL* curl = curl_;
  curl_easy_reset(curl);  // options; the connection stays
  Transfer transfer{request, {}, 0, false, {}};
  Callbacks callbacks{curl, transfer};
  char detail[CURL_ERROR_SIZE] = {};
  set_options(curl, request);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &callbacks);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_cancelled);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_slist* list = nullptr;
  for (const std::string& header : request.headers) list = curl_slist_append(list, header.c_str());
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = curl_easy_perform(curl);
  if (!transfer.failure.ok()) return transfer.failure;
  if (code == CURLE_ABORTED_BY_CALLBACK) return runtime::cancelled(request.url + ": cancelled");
  if (code == CURLE_OPERATION_TIMEDOUT && request.total_max.count() > 0) {
    return runtime::deadline_exceeded(request.url + ": no answer within " +
                                      std::to_string(request.total_max.count()) + " ms");
  }
  if (code != CURLE_OK) return network_failure(code, request.url, detail);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  return std::move(transfer.answer);
}

std::string percent_encoded(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return out;
}

}  // namespace rl

#include "rl/hub/hub_client.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "rl/hub/partial_file.h"
#include "runtime/core/json.h"

namespace rl {

using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;

namespace {

constexpr int kRedirectsMax = 10;
constexpr std::size_t kFilesMax = 100'000;

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty()
             ? std::optional(value)
             : std::nullopt;
}

bool may_pass(int status) { return status == 408 || status == 429 || status >= 500; }

// "https://host:port" of a URL.
std::string origin(const std::string& url) {
  const std::size_t scheme = url.find("://");
  return scheme == url.npos ? "" : url.substr(0, url.find_first_of("/?#", scheme + 3));
}

// Where a Location leads from `url`; empty: nowhere that we go.
std::string joined(const std::string& url, const std::string& location) {
  if (location.starts_with("http://") || location.starts_with("https://")) return location;
  if (location.starts_with("//") || !location.starts_with("/")) return "";
  return origin(url) + location;
}

// W/"x" as x; empty where it could not be a file's name.
std::string normal_etag(std::string text) {
  if (text.starts_with("W/")) text.erase(0, 2);
  std::erase(text, '"');
  const auto good = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), good) ? text
                                                                                            : "";
}

bool is_sha256(const std::string& etag) {
  return etag.size() == 64 && std::all_of(etag.begin(), etag.end(), [](unsigned char c) {
           return std::isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

// "<url>; rel="next"" of a Link header.
std::string next_page(const std::string& link) {
  if (link.find("rel=\"next\"") == link.npos || !link.starts_with('<')) return "";
  return link.substr(1, link.find('>') - 1);
}

// A path that stays in its folder.
bool is_plain_path(const std::string& path) {
  return !path.empty() && path.size() < 1024 && path.front() != '/' &&
         path.find('\0') == path.npos && ("/" + path + "/").find("/../") == path.npos &&
         ("/" + path + "/").find("/./") == path.npos && path.find("//") == path.npos;
}

}  // namespace

// Attempts in a row that brought nothing.
struct HubClient::Retry {
  const HubClient& client;
  int attempts = 0;
  std::chrono::milliseconds pause = client.options_.pause;

  void progressed() {
    attempts = 0;
    pause = client.options_.pause;
  }

  // Waits before the next attempt, or says why there is none.
  Status next(const Status& failure, const std::string& retry_after = {}) {
    if (++attempts >= client.options_.attempts_max) {
      return Status(failure.code(), failure.message() + " (" + std::to_string(attempts) +
                                        " attempts); what was fetched stays, try again later");
    }
    std::chrono::milliseconds wanted = pause;
    if (const auto seconds = number(retry_after))
      wanted = std::chrono::milliseconds(std::min<std::uint64_t>(*seconds, 1 << 20) * 1000);
    if (wanted > client.options_.pause_max) {
      return runtime::unavailable(failure.message() + "; the hub asks to come back in " +
                                  retry_after + " s");
    }
    pause = std::min(pause * 2, client.options_.pause_max);
    return client.wait(wanted) ? Status() : runtime::cancelled("download cancelled");
  }
};

bool HubClient::wait(std::chrono::milliseconds pause) const {
  const auto end = std::chrono::steady_clock::now() + pause;
  constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(50);
  for (auto now = std::chrono::steady_clock::now(); !cancelled_ && now < end;
       now = std::chrono::steady_clock::now()) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kSlice, end - now));
  }
  return !cancelled_;
}

std::string HubClient::resolve_url(const HubName& name, const std::string& commit,
                                   const std::string& path) const {
  std::string encoded = percent_encoded(path);
  for (std::size_t at; (at = encoded.find("%2F")) != encoded.npos;) encoded.replace(at, 3, "/");
  return options_.endpoint + "/" + name.repo + "/resolve/" + commit + "/" + encoded;
}

// Only the hub itself sees the token, not the servers that it sends us to.
Result<HttpAnswer> HubClient::follow(HttpRequest request, bool relative_only) {
  const std::vector<std::string> headers = request.headers;
  request.silence_max = options_.silence_max;
  request.connect_max = options_.connect_max;
  request.cancelled = [this] { return cancelled_.load(); };
  for (int redirects = 0; redirects <= kRedirectsMax; ++redirects) {
    request.headers = headers;
    request.headers.emplace_back("Accept-Encoding: identity");  // sizes are those of the file
    if (!options_.token.empty() && origin(request.url) == origin(options_.endpoint))
      request.headers.push_back("Authorization: Bearer " + options_.token);
    Result<HttpAnswer> answer = http_.perform(request);
    if (!answer.ok()) return answer.status();
    const std::string& location = answer->header("location");
    if (answer->status < 300 || answer->status >= 400 || location.empty()) return answer;
    if (relative_only && !location.starts_with('/')) return answer;
    const std::string to = joined(request.url, location);
    if (to.empty())
      return runtime::invalid_argument(request.url + ": redirects to " + location +
                                       ", which is not a place to fetch from");
    request.url = to;
  }
  return runtime::unavailable(request.url + ": redirects without end");
}

Status HubClient::refusal(const HttpAnswer& answer, const HubName& name,
                          const std::string& what) const {
  const std::string page = options_.endpoint + "/" + name.repo;
  const std::string& code = answer.header("x-error-code");
  const std::string login =
      options_.token.empty()
          ? "set HF_TOKEN to a token of an account that may read it, or log in with `hf auth login`"
          : "the token in use (HF_TOKEN or the login file) may not read it";
  if (code == "GatedRepo")
    return runtime::invalid_argument(name.repo + ": is gated; accept its terms at " + page +
                                     ", then " + login);
  if (code == "RevisionNotFound")
    return runtime::not_found(name.repo + ": has no revision " + name.revision + "; see " + page +
                              "/tree/main for its branches and tags");
  if (code == "EntryNotFound") return runtime::not_found(name.text() + ": has no file " + what);
  if (answer.status == 401 || answer.status == 403) {
    return runtime::invalid_argument(name.repo + ": does not exist, or is private or gated (HTTP " +
                                     std::to_string(answer.status) + " of " + options_.endpoint +
                                     "); check the name, then " + login);
  }
  if (answer.status == 404)
    return runtime::not_found(name.text() + ": not on " + options_.endpoint + " (" + what +
                              "); check the name and the revision");
  std::string message = name.text() + ": " + options_.endpoint + " answers HTTP " +
                        std::to_string(answer.status) + " to " + what;
  if (const std::string& reason = answer.header("x-error-message"); !reason.empty())
    message += ": " + reason.substr(0, 200);
  return may_pass(answer.status) ? runtime::unavailable(std::move(message))
                                 : runtime::invalid_argument(std::move(message));
}

// Small answers, with retries. HEAD stops at a redirect to another server: what the hub itself says
// about the file counts.
Result<HttpAnswer> HubClient::ask(const std::string& url, bool head, const HubName& name) {
  const std::string what = url.substr(std::min(url.size(), options_.endpoint.size()));
  for (Retry retry{*this};;) {
    HttpRequest request{.url = url, .head = head};
    Result<HttpAnswer> answer = follow(std::move(request), /*relative_only=*/head);
    Status failure = answer.ok() ? Status() : answer.status();
    if (answer.ok()) {
      if (answer->status < 400) return answer;
      failure = refusal(*answer, name, what);
    }
    if (failure.code() != ErrorCode::kUnavailable) return failure;
    if (Status status = retry.next(failure, answer.ok() ? answer->header("retry-after") : "");
        !status.ok())
      return status;
  }
}

Result<HubListing> HubClient::list(const HubName& name) {
  const std::string api = options_.endpoint + "/api/models/" + name.repo;
  Result<HttpAnswer> answer =
      ask(api + "/revision/" + percent_encoded(name.revision), /*head=*/false, name);
  if (!answer.ok()) return answer.status();
  const auto nonsense = [&] {
    return runtime::invalid_argument(
        api + ": the answer is not that of a Hugging Face hub; check HF_ENDPOINT");
  };
  const nlohmann::json info = runtime::parse_json(answer->body);
  if (!info.is_object() || !info.contains("sha") || !info["sha"].is_string()) return nonsense();
  HubListing listing;
  listing.commit = info["sha"].get<std::string>();
  if (!HubName{name.repo, listing.commit}.is_commit()) return nonsense();
  const auto add = [&](const nlohmann::json& entry, const char* key) {
    if (!entry.is_object() || !entry.contains(key) || !entry[key].is_string()) return false;
    std::string path = entry[key].get<std::string>();
    if (is_plain_path(path) && listing.files.size() < kFilesMax)
      listing.files.push_back(std::move(path));
    return true;
  };
  if (info.contains("siblings") && info["siblings"].is_array() && !info["siblings"].empty()) {
    for (const nlohmann::json& entry : info["siblings"]) {
      if (!add(entry, "rfilename")) return nonsense();
    }
    return listing;
  }
  // Hubs that list files page by page only.
  std::string page = api + "/tree/" + listing.commit + "?recursive=true";
  while (!page.empty() && listing.files.size() < kFilesMax) {
    answer = ask(page, /*head=*/false, name);
    if (!answer.ok()) return answer.status();
    const nlohmann::json tree = runtime::parse_json(answer->body);
    if (!tree.is_array()) return nonsense();
    for (const nlohmann::json& entry : tree) {
      if (entry.is_object() && entry.value("type", "") == "file" && !add(entry, "path"))
        return nonsense();
    }
    const std::string next = next_page(answer->header("link"));
    page = next.empty() || tree.empty() ? "" : joined(page, next);
  }
  return listing;
}

Result<HubFile> HubClient::look_up(const HubName& name, const std::string& commit,
                                   const std::string& path) {
  Result<HttpAnswer> answer = ask(resolve_url(name, commit, path), /*head=*/true, name);
  if (!answer.ok()) return answer.status();
  const bool elsewhere = answer->status >= 300;
  const std::string& linked = answer->header("x-linked-etag");
  const std::string& linked_size = answer->header("x-linked-size");
  HubFile file{.path = path, .etag = normal_etag(linked.empty() ? answer->header("etag") : linked)};
  const auto bytes = number(!linked_size.empty() ? linked_size
                            : elsewhere          ? ""
                                                 : answer->header("content-length"));
  if (file.etag.empty() || !bytes) {
    return runtime::invalid_argument(name.text() + ": the hub says neither hash nor size of " +
                                     path + "; check HF_ENDPOINT");
  }
  file.bytes = *bytes;
  return file;
}

// One request for what is missing.
Status HubClient::receive(const HubName& name, const std::string& url, const HubFile& file,
                          PartialFile& partial, const std::function<void(std::int64_t)>& progress,
                          std::string& retry_after) {
  HttpRequest request{.url = url};
  const std::uint64_t from = partial.bytes();
  if (from > 0) request.headers.push_back("Range: bytes=" + std::to_string(from) + "-");
  request.begin = [&](int status, const std::map<std::string, std::string>& headers) -> Status {
    if (from == 0) return {};
    const auto range = headers.find("content-range");
    if (status == 206 && range != headers.end() &&
        range->second.starts_with("bytes " + std::to_string(from) + "-"))
      return {};
    progress(-static_cast<std::int64_t>(from));  // a server without ranges sends all
    return status == 200 ? partial.restart()
                         : runtime::invalid_argument(
                               file.path + ": the hub sends another part of it than was asked for");
  };
  request.sink = [&](std::span<const std::byte> bytes) {
    const Status status = partial.append(bytes);
    if (status.ok()) progress(static_cast<std::int64_t>(bytes.size()));
    return status;
  };
  Result<HttpAnswer> answer = follow(std::move(request), /*relative_only=*/false);
  if (!answer.ok()) return answer.status();
  if (answer->status == 416) {  // beyond its end: what is there is not this file
    progress(-static_cast<std::int64_t>(partial.bytes()));
    const Status status = partial.restart();
    return status.ok() ? runtime::unavailable(file.path + ": the hub has no such part of it")
                       : status;
  }
  if (answer->status >= 300) {
    retry_after = answer->header("retry-after");
    return refusal(*answer, name, file.path);
  }
  if (partial.bytes() < file.bytes)
    return runtime::unavailable(file.path + ": the connection ended after " +
                                std::to_string(partial.bytes()) + " of " +
                                std::to_string(file.bytes) + " bytes");
  return {};
}

Status HubClient::download(const HubName& name, const std::string& commit, const HubFile& file,
                           const HubCache& cache,
                           const std::function<void(std::int64_t)>& progress) {
  Result<BlobLock> lock = BlobLock::take(cache.lock(file.etag));
  if (!lock.ok()) return lock.status();
  const std::filesystem::path blob = cache.blob(file.etag);
  std::error_code ignored;
  if (std::filesystem::exists(blob, ignored)) {  // another process was faster
    progress(static_cast<std::int64_t>(file.bytes));
    return {};
  }
  Result<PartialFile> partial = PartialFile::open(cache.incomplete(file.etag), file.bytes);
  if (!partial.ok()) return partial.status();
  progress(static_cast<std::int64_t>(partial->bytes()));
  const std::string url = resolve_url(name, commit, file.path);
  Retry retry{*this};
  for (bool wrong_before = false;;) {
    while (partial->bytes() < file.bytes) {
      const std::uint64_t before = partial->bytes();
      std::string retry_after;
      const Status status = receive(name, url, file, *partial, progress, retry_after);
      if (status.ok()) break;
      if (partial->bytes() > before) retry.progressed();
      if (status.code() == ErrorCode::kInvalidArgument)
        (void)partial->restart();  // it may be another file's beginning
      if (status.code() != ErrorCode::kUnavailable) return status;
      if (Status waited = retry.next(status, retry_after); !waited.ok()) return waited;
    }
    if (!is_sha256(file.etag)) break;
    const std::string sha256 = partial->sha256();
    if (sha256 == file.etag) break;
    const std::uint64_t bytes = partial->bytes();
    if (Status status = partial->restart(); !status.ok()) return status;
    progress(-static_cast<std::int64_t>(bytes));
    if (wrong_before) {
      return runtime::unavailable(file.path + ": its SHA-256 is " + sha256 +
                                  " where the hub announces " + file.etag +
                                  ", twice; something on the way (a proxy?) changes it");
    }
    wrong_before = true;  // an old partial file, or a broken transfer: once more from the beginning
  }
  return partial->finish(blob);
}

}  // namespace rl

// Clients for the tests of the server: whole requests by libcurl, pieces of them by a bare socket,
// and a log that can be read. All of them give up after kPatience.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

namespace hopwise::server {

constexpr std::chrono::milliseconds kPatience{20'000};

struct Answer {
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string headers;
  std::string body;
};

struct Ask {
  std::string method = "GET";
  std::string body = {};
  std::vector<std::string> headers = {};
  std::function<void(CURL*)> adjust = [](CURL*) {};
};

inline size_t KeepText(char* data, size_t size, size_t count, void* out) {
  static_cast<std::string*>(out)->append(data, size * count);
  return size * count;
}

inline Answer Fetch(const std::string& url, const Ask& ask = {}) {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_ALL);
  Answer answer;
  answer.code = kReady;
  CURL* curl = curl_easy_init();
  curl_slist* headers = nullptr;
  for (const std::string& header : ask.headers) {
    headers = curl_slist_append(headers, header.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(kPatience.count()));
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  if (ask.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (ask.method != "GET") {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, ask.method.c_str());
  }
  if (!ask.body.empty() || ask.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ask.body.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(ask.body.size()));
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &KeepText);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &KeepText);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer.headers);
  ask.adjust(curl);
  answer.code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return answer;
}

// A connection to a port of this machine on which nothing is sent but what the test says.
class Wire {
 public:
  explicit Wire(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int fd() const { return fd_; }

  // False when the other side has closed.
  [[nodiscard]] bool Send(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  // What has come when `end` stands in it, the other side has closed, or nothing comes for `limit`.
  std::string ReadTo(const std::string& end, std::chrono::milliseconds limit = kPatience) {
    std::string text;
    while (text.find(end) == std::string::npos) {
      pollfd ready{fd_, POLLIN, 0};
      if (poll(&ready, 1, static_cast<int>(limit.count())) <= 0) {
        break;
      }
      std::array<char, 4096> buffer{};
      const ssize_t n = read(fd_, buffer.data(), buffer.size());
      if (n <= 0) {
        closed_ = true;
        break;
      }
      text.append(buffer.data(), static_cast<size_t>(n));
    }
    return text;
  }
  std::string ReadToClose() { return ReadTo("\x01 never sent"); }
  // Whether a read found that the other side has closed.
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  int fd_ = -1;
  bool connected_ = false;
  bool closed_ = false;
};

// Keeps the log of the test, which may be asked for while the server writes it. Made before the
// server and gone after it.
class CapturedLog {
 public:
  CapturedLog() {
    before_ = SetLogSink(
        [this](const LogRecord& record) {
          const std::lock_guard lock(mutex_);
          lines_ += std::string(LogLevelName(record.level)) + " " + FormatLogLine(record) + "\n";
        },
        LogLevel::kInfo);
  }
  ~CapturedLog() { SetLogSink(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  [[nodiscard]] std::string Lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  LogSink before_;
  mutable std::mutex mutex_;
  std::string lines_;
};

}  // namespace hopwise::server

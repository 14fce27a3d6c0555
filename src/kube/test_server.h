// An HTTP/1.1 server on a free loopback port whose every byte is written by the test.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hopwise::kube {

struct Seen {
  std::string method, path, body;
  std::map<std::string, std::string> headers;  // by their lower-case names
  int connection = 0;                          // 1 for the first, and so on
};

class TestServer {
 public:
  // Writes to a client; false once it has gone.
  using Write = std::function<bool(std::string_view)>;
  // Answers a request, on its connection's thread; false closes the connection.
  using Handler = std::function<bool(const Seen&, const Write&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    // The only way to hand an address to the socket calls.
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, length), 0);
    EXPECT_EQ(listen(listener_, 128), 0);
    EXPECT_EQ(getsockname(listener_, any, &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Accept(); });
  }
  ~TestServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) {
        shutdown(fd, SHUT_RDWR);
      }
    }
    for (std::thread& connection : connections_) {
      connection.join();
    }
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int connections() const { return accepted_; }
  // In the order in which they came.
  [[nodiscard]] std::vector<std::string> paths() const {
    const std::lock_guard lock(mutex_);
    return paths_;
  }

 private:
  void Accept() {
    while (!stopping_) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) {
        const std::lock_guard lock(mutex_);
        open_.push_back(fd);
        connections_.emplace_back([this, fd, number = ++accepted_] { Serve(fd, number); });
      }
    }
  }
  void Serve(int fd, int number) {
    const Write write = [fd](std::string_view text) {
      while (!text.empty()) {
        const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
          return false;
        }
        text.remove_prefix(static_cast<size_t>(sent));
      }
      return true;
    };
    std::string buffer;
    Seen seen;
    seen.connection = number;
    while (ReadRequest(fd, buffer, seen)) {
      {
        const std::lock_guard lock(mutex_);
        paths_.push_back(seen.path);
      }
      if (!handler_(seen, write)) {
        break;
      }
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    close(fd);
  }
  static bool Fill(int fd, std::string& buffer) {
    std::array<char, 4096> piece{};
    const ssize_t got = recv(fd, piece.data(), piece.size(), 0);
    if (got > 0) {
      buffer.append(piece.data(), static_cast<size_t>(got));
    }
    return got > 0;
  }
  static bool ReadRequest(int fd, std::string& buffer, Seen& seen) {
    size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill(fd, buffer)) {
        return false;
      }
    }
    const std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    const size_t first = head.find(' ');
    seen.method = head.substr(0, first);
    seen.path = head.substr(first + 1, head.find(' ', first + 1) - first - 1);
    seen.headers.clear();
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t line_end = head.find("\r\n", at);
      const size_t colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      std::ranges::transform(name, name.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      seen.headers[name] = head.substr(colon + 2, line_end - colon - 2);
      at = line_end + 2;
    }
    const auto length = seen.headers.find("content-length");
    const size_t bytes = length == seen.headers.end() ? 0 : std::stoul(length->second);
    while (buffer.size() < bytes) {
      if (!Fill(fd, buffer)) {
        return false;
      }
    }
    seen.body = buffer.substr(0, bytes);
    buffer.erase(0, bytes);
    return true;
  }

  Handler handler_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<int> open_;
  std::list<std::thread> connections_;  // by the accepting thread, then by the destructor
  std::vector<std::string> paths_;
};

// A whole answer; `headers` are lines, each with its end.
inline std::string Answer(int status, std::string_view body, std::string_view headers = "") {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + std::string(headers) +
         "\r\n" + std::string(body);
}
inline TestServer::Handler Always(const std::string& answer) {
  return [answer](const Seen&, const TestServer::Write& write) { return write(answer); };
}

}  // namespace hopwise::kube

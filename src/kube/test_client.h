// For the tests of CurlTransport: a client to be used from the test's thread, and gates to hold
// things until they have been seen.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kube/curl_transport.h"
#include "kube/test_server.h"

namespace hopwise::kube {

// Beyond what any test needs on a busy machine; then it fails instead of hanging.
inline constexpr std::chrono::seconds kPatience{20};

// Closed until Open; whoever waits goes on in the end, so that no thread is left behind.
class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Waits for a condition of another thread that nobody announces.
inline bool Eventually(const std::function<bool()>& condition) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto tries = kPatience / std::chrono::milliseconds(2);
  for (int64_t i = 0; i < tries && !condition(); ++i) {
    never.wait_for(lock, std::chrono::milliseconds(2));
  }
  return condition();
}

inline Access AccessTo(const std::string& server) {
  Access access;
  access.server = server;
  access.source = "the test";
  return access;
}
inline Request Get(const std::string& path) {
  Request request;
  request.path = path;
  return request;
}

// A transport, used from the test's thread.
class Client {
 public:
  explicit Client(const Access& access, const CurlOptions& options = {})
      : transport_(std::make_unique<CurlTransport>(access, options)) {}
  explicit Client(const TestServer& server, const CurlOptions& options = {})
      : Client(AccessTo(server.url()), options) {}

  std::future<Response> Start(const Request& request) {
    auto answer = std::make_shared<std::promise<Response>>();
    std::future<Response> future = answer->get_future();
    transport_->Post([this, request, answer] {
      transport_->Send(request, [answer](Response&& r) { answer->set_value(std::move(r)); });
    });
    return future;
  }
  static Response Await(std::future<Response>& future) {
    if (future.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    return future.get();
  }
  Response Ask(const Request& request) {
    std::future<Response> future = Start(request);
    return Await(future);
  }
  CurlTransport::Counts Counts() {
    CurlTransport::Counts counts;
    transport_->Run([&] { counts = transport_->counts(); });
    return counts;
  }
  CurlTransport& transport() { return *transport_; }
  void Destroy() { transport_.reset(); }

 private:
  std::unique_ptr<CurlTransport> transport_;
};

}  // namespace hopwise::kube

// libcurl's easy handles for one API server: every option that is the same for each request, and
// what curl's errors mean. Private to CurlTransport.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "kube/access.h"
#include "kube/transport.h"

namespace hopwise::kube {

struct CurlHandle {
  struct Free {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };
  std::unique_ptr<CURL, Free> easy;
  std::array<char, CURL_ERROR_SIZE> error{};
};

struct FreeSlist {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// Sets up handles and keeps those that are not in use, so that none is made for each request.
class CurlHandles {
 public:
  CurlHandles(const Access& access, std::string user_agent);
  ~CurlHandles();
  CurlHandles(const CurlHandles&) = delete;
  CurlHandles& operator=(const CurlHandles&) = delete;

  // For those taken from now on. Connections made with another certificate are not used again.
  void SetClientCertificate(const std::string& cert_pem, const std::string& key_pem);

  // With method, URL, body and time-out of `request`, which must outlive the exchange; null when
  // memory is short.
  std::unique_ptr<CurlHandle> Take(const Request& request, bool stream);
  void Give(std::unique_ptr<CurlHandle> handle);

  // Headers of every request of this content type ("" without a body); `authorization` is the
  // header's value, or "".
  [[nodiscard]] std::shared_ptr<curl_slist> HeadersFor(const std::string& content_type,
                                                       const std::string& authorization) const;

  // For a person: which server, and what happened. No secrets.
  [[nodiscard]] std::string WhatFailed(const CurlHandle& handle, CURLcode code,
                                       Duration timeout) const;
  // The server's address without a user's name in it.
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  void FindAddress();
  void SetUp(CurlHandle& handle) const;
  void SetUpTls(CURL* easy) const;

  Access access_;
  std::string user_agent_;
  std::string base_;  // what paths are appended to
  std::string shown_;
  std::string host_header_;  // where the URL's host is not the server's
  bool loopback_ = false;
  std::unique_ptr<curl_slist, FreeSlist> connect_to_;
  std::string url_;  // to build in
  std::vector<std::unique_ptr<CurlHandle>> idle_;
};

}  // namespace hopwise::kube

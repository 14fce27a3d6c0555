#include "kube/curl_handle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/check.h"
#include "kube/curl_transport.h"

namespace hopwise::kube {
namespace {

// See curl_transport.h: found dead after 15 + 3 x 5 s when idle, after 30 s when it owes us an
// acknowledgement.
constexpr long kKeepIdleSeconds = 15;
constexpr long kKeepIntervalSeconds = 5;
constexpr int kKeepProbes = 3;
constexpr unsigned int kUserTimeoutMs = 30'000;
// The API server closes a connection that was idle for 90 s (IdleTimeout of apiserver's
// secure_serving.go); what is sent at that moment is lost.
constexpr long kMostIdleSeconds = 60;
// Lists come in megabytes: four times curl's own size, so a quarter of the reads.
constexpr long kReceiveBuffer = 64L * 1024;
// More idle handles than this were a burst of streams; they are freed.
constexpr size_t kMostIdle = 256;

long Milliseconds(Duration d) { return static_cast<long>((d.ns + 999'999) / 1'000'000); }

// An option that cannot fail but for want of memory, which ends the process elsewhere too.
template <class Value>
void Set(CURL* easy, CURLoption option, Value value) {
  HOPWISE_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

void SetBlob(CURL* easy, CURLoption option, std::string pem) {
  if (pem.empty()) {
    return;
  }
  curl_blob blob{pem.data(), pem.size(), CURL_BLOB_COPY};
  Set(easy, option, &blob);
}

// What curl has no option for. That one of these fails is no reason not to connect.
int OnSocket(void* /*unused*/, curl_socket_t socket, curlsocktype purpose) {
  if (purpose == CURLSOCKTYPE_IPCXN) {
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kKeepProbes, sizeof(kKeepProbes));
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof(kUserTimeoutMs));
  }
  return CURL_SOCKOPT_OK;
}

void AppendHeader(std::unique_ptr<curl_slist, FreeSlist>& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.release(), line.c_str());
  HOPWISE_CHECK(longer != nullptr);
  list.reset(longer);
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
std::string PartOf(CURLU* url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) {
    return "";
  }
  std::string copy = text;
  curl_free(text);
  return copy;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

void SetMethod(CURL* easy, const Request& request) {
  if (request.method == Method::kGet) {
    Set(easy, CURLOPT_HTTPGET, 1L);
    Set<const char*>(easy, CURLOPT_CUSTOMREQUEST, nullptr);
    return;
  }
  // Curl's way to send any method with a body is to post it under another name.
  Set(easy, CURLOPT_POST, 1L);
  Set(easy, CURLOPT_POSTFIELDS, request.body.c_str());
  Set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  Set<const char*>(easy, CURLOPT_CUSTOMREQUEST,
                   request.method == Method::kPost ? nullptr : MethodName(request.method).data());
}

bool InitCurl() {
  static const CURLcode kInit = curl_global_init(CURL_GLOBAL_DEFAULT);
  return kInit == CURLE_OK;
}

}  // namespace

CurlHandles::CurlHandles(const Access& access, std::string user_agent)
    : access_(access), user_agent_(std::move(user_agent)) {
  HOPWISE_CHECK(InitCurl());
  FindAddress();
}

CurlHandles::~CurlHandles() = default;

// With tls-server-name the URL bears that name, so that SNI and the certificate's check use it, and
// curl is told to connect elsewhere for it.
void CurlHandles::FindAddress() {
  base_ = access_.server;
  shown_ = access_.server;
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, access_.server.c_str(), 0) != CURLUE_OK) {
    return;  // the first request tells
  }
  const std::string host = PartOf(url.get(), CURLUPART_HOST);
  const std::string port = PartOf(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  loopback_ = IsLoopback(host);
  shown_ = fmt::format("{}://{}:{}", PartOf(url.get(), CURLUPART_SCHEME), host, port);
  if (access_.tls_server_name.empty() || !access_.server.starts_with("https://")) {
    return;
  }
  host_header_ = host + ":" + port;
  if (curl_url_set(url.get(), CURLUPART_HOST, access_.tls_server_name.c_str(), 0) != CURLUE_OK) {
    return;
  }
  base_ = PartOf(url.get(), CURLUPART_URL);
  while (base_.ends_with('/')) {
    base_.pop_back();
  }
  AppendHeader(connect_to_, fmt::format("::{}:{}", host, port));
}

void CurlHandles::SetClientCertificate(const std::string& cert_pem, const std::string& key_pem) {
  access_.client_cert_pem = cert_pem;
  access_.client_key_pem = key_pem;
}

void CurlHandles::SetUpTls(CURL* easy) const {
  Set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (access_.insecure) {
    Set(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    Set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  } else if (!access_.ca_pem.empty()) {
    // Else curl would trust the system's CAs besides.
    Set<const char*>(easy, CURLOPT_CAINFO, nullptr);
    Set<const char*>(easy, CURLOPT_CAPATH, nullptr);
    SetBlob(easy, CURLOPT_CAINFO_BLOB, access_.ca_pem);
  }
  SetBlob(easy, CURLOPT_SSLCERT_BLOB, access_.client_cert_pem);
  SetBlob(easy, CURLOPT_SSLKEY_BLOB, access_.client_key_pem);
}

void CurlHandles::SetUp(CurlHandle& handle) const {
  CURL* easy = handle.easy.get();
  // Each time, though it costs some microseconds: without it curl counts how often a handle met a
  // connection that had just been closed, over all its requests, and fails at the sixth time.
  curl_easy_reset(easy);
  Set(easy, CURLOPT_ERRORBUFFER, handle.error.data());
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_USERAGENT, user_agent_.c_str());
  // Refused while the handle still has its buffer, as after a name that did not resolve: of this
  // size, then.
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBuffer);
  Set(easy, CURLOPT_MAXAGE_CONN, kMostIdleSeconds);
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(kConnectTimeout));
  Set(easy, CURLOPT_TCP_NODELAY, 1L);
  Set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(easy, CURLOPT_TCP_KEEPIDLE, kKeepIdleSeconds);
  Set(easy, CURLOPT_TCP_KEEPINTVL, kKeepIntervalSeconds);
  Set(easy, CURLOPT_SOCKOPTFUNCTION, &OnSocket);
  // Our headers are for the server; a proxy sees none of them, and its own answer is not ours.
  Set(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  Set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!access_.proxy_url.empty()) {
    Set(easy, CURLOPT_PROXY, access_.proxy_url.c_str());
    Set(easy, CURLOPT_NOPROXY, "");
  } else if (loopback_) {
    Set(easy, CURLOPT_NOPROXY, "*");  // Go's rule: HTTPS_PROXY is not for the own machine
  }
  if (connect_to_) {
    Set(easy, CURLOPT_CONNECT_TO, connect_to_.get());
  }
  SetUpTls(easy);
}

std::unique_ptr<CurlHandle> CurlHandles::Take(const Request& request, bool stream) {
  std::unique_ptr<CurlHandle> handle;
  if (idle_.empty()) {
    handle = std::make_unique<CurlHandle>();
    handle->easy.reset(curl_easy_init());
    if (!handle->easy) {
      return nullptr;
    }
  } else {
    handle = std::move(idle_.back());
    idle_.pop_back();
  }
  SetUp(*handle);
  CURL* easy = handle->easy.get();
  handle->error[0] = '\0';
  url_.assign(base_).append(request.path);
  Set(easy, CURLOPT_URL, url_.c_str());
  SetMethod(easy, request);
  // Only large answers are compressed (above 128 KiB by the API server), and no watch is.
  const bool list = request.method == Method::kGet && !stream;
  Set<const char*>(easy, CURLOPT_ACCEPT_ENCODING, list ? "gzip" : nullptr);
  Set(easy, CURLOPT_TIMEOUT_MS, stream ? 0L : std::max(0L, Milliseconds(request.timeout)));
  return handle;
}

void CurlHandles::Give(std::unique_ptr<CurlHandle> handle) {
  if (handle != nullptr && idle_.size() < kMostIdle) {
    idle_.push_back(std::move(handle));
  }
}

std::shared_ptr<curl_slist> CurlHandles::HeadersFor(const std::string& content_type,
                                                    const std::string& authorization) const {
  std::unique_ptr<curl_slist, FreeSlist> list;
  AppendHeader(list, "Accept: application/json");
  // "Name:" keeps curl from sending a header of its own.
  AppendHeader(list, content_type.empty() ? "Content-Type:" : "Content-Type: " + content_type);
  AppendHeader(list, "Expect:");
  if (!host_header_.empty()) {
    AppendHeader(list, "Host: " + host_header_);
  }
  if (!authorization.empty()) {
    AppendHeader(list, "Authorization: " + authorization);
  }
  return {list.release(), FreeSlist()};
}

std::string CurlHandles::WhatFailed(const CurlHandle& handle, CURLcode code,
                                    Duration timeout) const {
  const std::string detail =
      handle.error[0] != '\0' ? handle.error.data() : curl_easy_strerror(code);
  const auto say = [&](std::string_view what) { return fmt::format("{}: {}", shown_, what); };
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t connected = 0;
      curl_easy_getinfo(handle.easy.get(), CURLINFO_PRETRANSFER_TIME_T, &connected);
      if (connected == 0) {
        return say("no connection within " +
                   FormatGoDuration(timeout.ns > 0 ? std::min(timeout, kConnectTimeout)
                                                   : kConnectTimeout));
      }
      return say("no complete answer within " + FormatGoDuration(timeout));
    }
    case CURLE_COULDNT_CONNECT: {
      long error = 0;
      curl_easy_getinfo(handle.easy.get(), CURLINFO_OS_ERRNO, &error);
      return say(fmt::format("cannot connect: {}{}{}", detail, error == 0 ? "" : ": ",
                             error == 0 ? "" : std::strerror(static_cast<int>(error))));
    }
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return say("cannot connect: " + detail);
    case CURLE_PEER_FAILED_VERIFICATION:
      return say(fmt::format("its certificate is not trusted: {} (checked with {})", detail,
                             access_.ca_pem.empty()
                                 ? "the CAs of this system; " + access_.source + " names none"
                                 : "the CA of " + access_.source));
    case CURLE_SSL_CACERT_BADFILE:
      return say(fmt::format("the CA of {} cannot be used: {}", access_.source, detail));
    case CURLE_SSL_CERTPROBLEM:
      return say(fmt::format("the client certificate or key of {} cannot be used: {}",
                             access_.source, detail));
    case CURLE_SSL_CONNECT_ERROR:
      return say("no TLS connection: " + detail);
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return say("the connection broke before the answer was complete: " + detail);
    default:
      return say(detail);
  }
}

}  // namespace hopwise::kube

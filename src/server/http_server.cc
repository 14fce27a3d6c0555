#include "server/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <typeinfo>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "rt/clock.h"
#include "server/tls_pair.h"

namespace hopwise::server {
namespace {

// How long a server that goes away waits for the requests it has taken.
constexpr std::chrono::seconds kDrain{5};
// TLS 1.0 and 1.1 are deprecated (RFC 8996).
constexpr const char* kTlsVersions = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
// A line of the library's own log; longer ones are cut.
constexpr size_t kLibraryLine = 512;
constexpr int kLargestPort = 65535;

// --- addresses
// ------------------------------------------------------------------------------------

Result<std::pair<std::string, int>> BadAddress(std::string_view text, std::string_view why) {
  return Invalid(
      fmt::format("the address \"{}\" {}; write host:port, :port or [IPv6]:port", text, why));
}

bool IsIpv6(const std::string& host) {
  in6_addr ignored{};
  // "%eth0" names the interface of a link-local address.
  return inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &ignored) == 1;
}

std::string Why(int error) { return std::generic_category().message(error); }

// A listening socket, or -1 and errno.
int Listen(const sockaddr* address, socklen_t size, int family, bool dual_stack) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -1;
  }
  const int on = 1;
  const int v6_only = dual_stack ? 0 : 1;
  // Connections of a server before this one that still linger do not keep the port from us.
  bool ok = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  if (family == AF_INET6) {
    ok = ok && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) == 0;
  }
  ok = ok && bind(fd, address, size) == 0 && listen(fd, SOMAXCONN) == 0;
  if (!ok) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

// On all interfaces: IPv6 and IPv4 on one socket, IPv4 alone where the machine has no IPv6.
int ListenEverywhere(int port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<uint16_t>(port));
  const int fd = Listen(reinterpret_cast<const sockaddr*>(&six), sizeof six, AF_INET6, true);
  if (fd >= 0 || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)) {
    return fd;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  return Listen(reinterpret_cast<const sockaddr*>(&four), sizeof four, AF_INET, false);
}

Result<int> ListenOn(const std::string& address, const std::string& host, int port) {
  int fd = -1;
  if (host.empty()) {
    fd = ListenEverywhere(port);
  } else {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (rc != 0) {
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot listen on {}: {}", address, gai_strerror(rc)));
    }
    for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
      fd = Listen(at->ai_addr, at->ai_addrlen, at->ai_family, false);
    }
    const int error = errno;
    freeaddrinfo(found);
    errno = error;
  }
  if (fd < 0) {
    return Fail(ErrorCode::kIo, fmt::format("cannot listen on {}: {}", address, Why(errno)));
  }
  return fd;
}

// Where a client of this machine finds the socket: "127.0.0.1:8080", "[::1]:8080".
std::pair<std::string, int> PlaceOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (storage.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(storage);
    const int port = ntohs(six.sin6_port);
    if (IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) {
      return {fmt::format("127.0.0.1:{}", port), port};
    }
    inet_ntop(AF_INET6, &six.sin6_addr, host.data(), host.size());
    return {fmt::format("[{}]:{}", host.data(), port), port};
  }
  const auto& four = reinterpret_cast<const sockaddr_in&>(storage);
  const int port = ntohs(four.sin_port);
  if (four.sin_addr.s_addr == htonl(INADDR_ANY)) {
    return {fmt::format("127.0.0.1:{}", port), port};
  }
  inet_ntop(AF_INET, &four.sin_addr, host.data(), host.size());
  return {fmt::format("{}:{}", host.data(), port), port};
}

// --- requests and answers
// -------------------------------------------------------------------------

// 0 without the header. One that is too large to count is as good as infinite.
size_t DeclaredLength(MHD_Connection* connection) {
  const char* text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
  if (text == nullptr) {
    return 0;
  }
  const std::string_view digits = text;
  size_t length = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), length);
  return error == std::errc() ? length : std::numeric_limits<size_t>::max();
}

MHD_Result AddToQuery(void* cls, MHD_ValueKind /*kind*/, const char* key, size_t key_size,
                      const char* value, size_t value_size) {
  auto& query = *static_cast<decltype(HttpRequest::query)*>(cls);
  // A parameter without "=" has no value.
  query.emplace_back(std::string(key, key_size),
                     value == nullptr ? std::string() : std::string(value, value_size));
  return MHD_YES;
}

HttpRequest RequestOf(MHD_Connection* connection, const char* path, const char* method) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, &AddToQuery, &request.query);
  const char* authorization =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
  request.authorization = authorization == nullptr ? "" : authorization;
  return request;
}

// How long the connection may lie idle from here on.
void SetIdleTimeout(MHD_Connection* connection, int seconds) {
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                            static_cast<unsigned>(std::max(seconds, 1)));
}

void FreeBody(void* body) { delete static_cast<std::string*>(body); }

// Hands the answer to the library. `extra` is one more header, if any.
MHD_Result Queue(MHD_Connection* connection, HttpResponse answer, bool close,
                 std::optional<std::pair<const char*, const char*>> extra = {}) {
  auto body = std::make_unique<std::string>(std::move(answer.body));
  MHD_Response* response = MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), body->data(), &FreeBody, body.get());
  if (response == nullptr) {
    return MHD_NO;
  }
  [[maybe_unused]] const std::string* theirs = body.release();  // the library frees it
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.c_str());
  if (close) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  }
  if (extra) {
    MHD_add_response_header(response, extra->first, extra->second);
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

HttpResponse Sentence(int status, std::string text) {
  HttpResponse answer;
  answer.status = status;
  answer.body = std::move(text) + "\n";
  return answer;
}

HttpResponse TooLarge(size_t most) {
  return Sentence(413, fmt::format("The body may have at most {} bytes.", most));
}

// The handler's answer. Whatever it does, the client gets one and nothing gets out; what an
// exception says may repeat a part of the body, so it stays out of the log.
HttpResponse Ask(const Handler& handler, const HttpRequest& request) {
  const auto failed = [&](std::string_view how) {
    Log(LogLevel::kError, "http_handler_failed",
        {{"path", request.path}, {"method", request.method}, {"how", how}});
    return Sentence(500, "The request could not be answered. The log says more.");
  };
  try {
    HttpResponse answer = handler(request);
    if (answer.status < 200 || answer.status > 599) {
      return failed(fmt::format("status {}", answer.status));
    }
    if (answer.status >= 500) {
      // 503 is what whoever is not ready says, to every probe.
      Log(answer.status == 503 ? LogLevel::kDebug : LogLevel::kWarning, "http_answer",
          {{"path", request.path}, {"method", request.method}, {"status", answer.status}});
    }
    return answer;
  } catch (const std::exception& e) {
    return failed(typeid(e).name());
  } catch (...) {
    return failed("unknown exception");
  }
}

// --- TLS
// ------------------------------------------------------------------------------------------

// What belongs to one TLS connection. It holds the pair that its handshake was given.
struct Peer {
  TlsSource& source;
  int fd = -1;
  bool begun = false;  // the first bytes have come
  std::shared_ptr<TlsPair> pair;
};

// A handshake begins with a byte of 22, a request with its method.
bool IsPlainHttp(const unsigned char* data, ssize_t size) {
  return size > 0 && data[0] >= 'A' && data[0] <= 'Z';
}

// The answer is short enough for any socket's buffer, and what the client has sent is taken in, so
// that closing the connection does not take the answer away from it.
void AnswerInPlain(int fd) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 49\r\n\r\n"
      "This port speaks HTTPS only: use an https:// URL\n";
  constexpr int kMostReads = 64;
  std::array<char, 4096> rest{};
  for (int i = 0; i < kMostReads && recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) > 0; ++i) {
  }
  [[maybe_unused]] const ssize_t sent =
      send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(fd, SHUT_WR);
}

ssize_t Pull(gnutls_transport_ptr_t from, void* data, size_t size) {
  auto& peer = *static_cast<Peer*>(from);
  const ssize_t received = recv(peer.fd, data, size, 0);
  if (received > 0 && !std::exchange(peer.begun, true) &&
      IsPlainHttp(static_cast<const unsigned char*>(data), received)) {
    AnswerInPlain(peer.fd);
    return 0;  // as if the client had left
  }
  return received;
}

int AwaitPull(gnutls_transport_ptr_t from, unsigned limit_ms) {
  const int fd = static_cast<Peer*>(from)->fd;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): GnuTLS keeps a socket's number in a pointer
  return gnutls_system_recv_timeout(reinterpret_cast<gnutls_transport_ptr_t>(intptr_t{fd}),
                                    limit_ms);
}

int HandOutPair(gnutls_session_t session, const gnutls_datum_t* /*authorities*/, int /*count*/,
                const gnutls_pk_algorithm_t* /*algorithms*/, int /*algorithm_count*/,
                gnutls_pcert_st** chain, unsigned* chain_size, gnutls_privkey_t* key) {
  auto* peer = static_cast<Peer*>(gnutls_session_get_ptr(session));
  if (peer == nullptr) {
    return GNUTLS_E_INTERNAL_ERROR;
  }
  try {
    peer->pair = peer->source.Current(rt::MonotonicNow());
  } catch (...) {
    return GNUTLS_E_MEMORY_ERROR;
  }
  if (peer->pair == nullptr) {
    return GNUTLS_E_NO_CERTIFICATE_FOUND;
  }
  *chain = peer->pair->chain.data();
  *chain_size = static_cast<unsigned>(peer->pair->chain.size());
  *key = peer->pair->key;
  return 0;
}

// The certificate must be of the CA, in time and, if it says what it is for, for clients.
int VerifyClient(gnutls_session_t session) {
  static std::array<char, sizeof GNUTLS_KP_TLS_WWW_CLIENT> purpose =
      std::to_array(GNUTLS_KP_TLS_WWW_CLIENT);
  gnutls_typed_vdata_st wanted{};
  wanted.type = GNUTLS_DT_KEY_PURPOSE_OID;
  wanted.data = reinterpret_cast<unsigned char*>(purpose.data());
  unsigned status = 0;
  const int rc = gnutls_certificate_verify_peers(session, &wanted, 1, &status);
  return rc == GNUTLS_E_SUCCESS && status == 0 ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

}  // namespace

// --- the server
// -----------------------------------------------------------------------------------

struct HttpServer::Impl {
  // One request, from its headers until its answer is sent or its connection lost.
  struct Exchange {
    HttpRequest request;
    const Handler* handler = nullptr;  // null: already refused
    size_t received = 0;               // bytes of the body, kept or not
  };

  ServerOptions options;
  std::map<std::string, Handler, std::less<>> routes;
  std::shared_ptr<TlsSource> tls;
  std::string client_ca;
  MHD_Daemon* daemon = nullptr;
  std::string place;
  int port = 0;

  std::mutex mutex;
  std::condition_variable ended;
  int open_exchanges = 0;
  std::atomic<bool> draining = false;
  std::string last_complaint;  // the library's

  Status ReadTlsFiles();
  Status Run(int fd);
  void Stop();

  // `exchange` becomes the library's context of the request.
  MHD_Result Begin(MHD_Connection* connection, const char* path, const char* method,
                   void** exchange);
  MHD_Result Continue(MHD_Connection* connection, Exchange& exchange, const char* data,
                      size_t* size);

  static MHD_Result OnRequest(void* cls, MHD_Connection* connection, const char* path,
                              const char* method, const char* version, const char* data,
                              size_t* size, void** exchange);
  static void OnCompleted(void* cls, MHD_Connection* connection, void** exchange,
                          MHD_RequestTerminationCode why);
  static void OnConnection(void* cls, MHD_Connection* connection, void** peer,
                           MHD_ConnectionNotificationCode what);
  static void OnComplaint(void* cls, const char* format, va_list arguments)
      __attribute__((format(printf, 2, 0)));
};

MHD_Result HttpServer::Impl::Begin(MHD_Connection* connection, const char* path, const char* method,
                                   void** exchange) {
  auto made = std::make_unique<Exchange>();
  Exchange& now = *made;
  {
    const std::lock_guard lock(mutex);
    ++open_exchanges;
    *exchange = made.release();
  }
  if (options.keep_alive_s > 0) {
    SetIdleTimeout(connection, options.idle_timeout_s);
  }
  // After an answer that comes before the body the library closes the connection, body unread.
  const bool close = draining;
  const auto route = routes.find(std::string_view(path));
  if (route == routes.end()) {
    return Queue(connection, Sentence(404, "Nothing is served at this path."), close);
  }
  const std::string_view word = method;
  if (word != MHD_HTTP_METHOD_GET && word != MHD_HTTP_METHOD_HEAD && word != MHD_HTTP_METHOD_POST) {
    return Queue(connection, Sentence(405, "This path answers GET, HEAD and POST only."), close,
                 std::pair(MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST"));
  }
  if (DeclaredLength(connection) > options.most_body) {
    return Queue(connection, TooLarge(options.most_body), close);
  }
  now.handler = &route->second;
  now.request = RequestOf(connection, path, method);
  return MHD_YES;
}

MHD_Result HttpServer::Impl::Continue(MHD_Connection* connection, Exchange& exchange,
                                      const char* data, size_t* size) {
  if (exchange.handler == nullptr) {
    *size = 0;
    return MHD_YES;
  }
  if (*size > 0) {
    exchange.received += *size;
    // The library takes no answer in the middle of a body. A body that said no length is read to
    // its end without being kept, so that its sender hears why; one that goes on is cut off.
    if (exchange.received > 2 * options.most_body) {
      return MHD_NO;
    }
    if (exchange.received <= options.most_body) {
      exchange.request.body.append(data, *size);
    } else {
      std::string().swap(exchange.request.body);
    }
    *size = 0;
    return MHD_YES;
  }
  if (exchange.received > options.most_body) {
    return Queue(connection, TooLarge(options.most_body), true);
  }
  HttpResponse answer = Ask(*exchange.handler, exchange.request);
  return Queue(connection, std::move(answer), draining);
}

MHD_Result HttpServer::Impl::OnRequest(void* cls, MHD_Connection* connection, const char* path,
                                       const char* method, const char* /*version*/,
                                       const char* data, size_t* size, void** exchange) {
  auto& self = *static_cast<Impl*>(cls);
  try {
    if (*exchange == nullptr) {
      return self.Begin(connection, path, method, exchange);
    }
    return self.Continue(connection, *static_cast<Exchange*>(*exchange), data, size);
  } catch (...) {  // no memory: the connection closes
    return MHD_NO;
  }
}

void HttpServer::Impl::OnCompleted(void* cls, MHD_Connection* connection, void** exchange,
                                   MHD_RequestTerminationCode why) {
  if (*exchange == nullptr) {
    return;
  }
  auto& self = *static_cast<Impl*>(cls);
  delete static_cast<Exchange*>(*exchange);
  *exchange = nullptr;
  if (self.options.keep_alive_s > 0 && why == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
    SetIdleTimeout(connection, self.options.keep_alive_s);
  }
  const std::lock_guard lock(self.mutex);
  if (--self.open_exchanges == 0) {
    self.ended.notify_all();
  }
}

// TLS only: what a connection's handshake needs must be there before the handshake.
void HttpServer::Impl::OnConnection(void* cls, MHD_Connection* connection, void** peer,
                                    MHD_ConnectionNotificationCode what) {
  auto& self = *static_cast<Impl*>(cls);
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    delete static_cast<Peer*>(*peer);
    *peer = nullptr;
    return;
  }
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  HOPWISE_CHECK(info != nullptr && info->tls_session != nullptr);
  auto* session = static_cast<gnutls_session_t>(info->tls_session);
  const MHD_ConnectionInfo* socket =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  HOPWISE_CHECK(socket != nullptr);
  auto* made = new Peer{*self.tls, socket->connect_fd, false, nullptr};
  *peer = made;
  gnutls_transport_set_ptr2(session, made,
                            // NOLINTNEXTLINE(performance-no-int-to-ptr): likewise
                            reinterpret_cast<gnutls_transport_ptr_t>(intptr_t{socket->connect_fd}));
  gnutls_transport_set_pull_function(session, &Pull);
  gnutls_transport_set_pull_timeout_function(session, &AwaitPull);
  // The library uses this pointer for pre-shared keys, which we do not.
  gnutls_session_set_ptr(session, *peer);
  if (!self.client_ca.empty()) {
    // The library itself would only ask for a certificate and take whatever comes.
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_function(session, &VerifyClient);
  }
}

void HttpServer::Impl::OnComplaint(void* cls, const char* format, va_list arguments) {
  auto& self = *static_cast<Impl*>(cls);
  std::array<char, kLibraryLine> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string text = line.data();
  text.erase(text.find_last_not_of("\r\n ") + 1);
  // Mostly clients that went away.
  Log(LogLevel::kDebug, "http_library", {{"message", text}});
  const std::lock_guard lock(self.mutex);
  self.last_complaint = std::move(text);
}

Status HttpServer::Impl::ReadTlsFiles() {
  const ServerOptions& o = options;
  if (o.cert_file.empty() != o.key_file.empty()) {
    return Invalid(fmt::format("TLS on {} needs a certificate and a key; only {} is given",
                               o.address, o.cert_file.empty() ? o.key_file : o.cert_file));
  }
  if (o.tls != nullptr) {
    HOPWISE_CHECK(o.cert_file.empty());
    tls = o.tls;
  } else if (o.cert_file.empty()) {
    return o.client_ca_file.empty()
               ? Status()
               : Invalid(fmt::format("the client CA {} on {} needs a certificate and a key of the "
                                     "server",
                                     o.client_ca_file, o.address));
  }
  if (tls == nullptr) {
    auto files = TlsFiles::Open(o.cert_file, o.key_file);
    if (!files) {
      return tl::unexpected(files.error());
    }
    tls = std::move(*files);
  }
  if (o.client_ca_file.empty()) {
    return {};
  }
  Result<std::string> ca = ReadSmallFile(o.client_ca_file);
  if (!ca) {
    return tl::unexpected(ca.error());
  }
  client_ca = std::move(*ca);
  return CheckCa(client_ca, o.client_ca_file);
}

// Takes the socket over.
Status HttpServer::Impl::Run(int fd) {
  const auto function = [](auto* f) { return reinterpret_cast<intptr_t>(f); };
  const auto number = [](size_t n) { return static_cast<intptr_t>(n); };
  const size_t connections = std::max(options.most_connections, size_t{1});
  // The library gives each thread its share of the connections.
  const size_t threads = std::clamp(options.threads, size_t{1}, connections);
  std::vector<MHD_OptionItem> items = {
      {MHD_OPTION_EXTERNAL_LOGGER, function(&OnComplaint), this},
      {MHD_OPTION_LISTEN_SOCKET, fd, nullptr},
      {MHD_OPTION_NOTIFY_COMPLETED, function(&OnCompleted), this},
      {MHD_OPTION_CONNECTION_LIMIT, number(connections), nullptr},
      {MHD_OPTION_CONNECTION_TIMEOUT, std::max(options.idle_timeout_s, 1), nullptr}};
  if (threads > 1) {
    items.push_back({MHD_OPTION_THREAD_POOL_SIZE, number(threads), nullptr});
  }
  unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG;
  if (tls) {
    flags |= MHD_USE_TLS;
    items.push_back({MHD_OPTION_NOTIFY_CONNECTION, function(&OnConnection), this});
    items.push_back({MHD_OPTION_HTTPS_CERT_CALLBACK, 0, reinterpret_cast<void*>(&HandOutPair)});
    // The library copies neither text and changes neither.
    items.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsVersions)});
    if (!client_ca.empty()) {
      items.push_back({MHD_OPTION_HTTPS_MEM_TRUST, 0, client_ca.data()});
    }
  }
  items.push_back({MHD_OPTION_END, 0, nullptr});
  std::tie(place, port) = PlaceOf(fd);
  daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &OnRequest, this, MHD_OPTION_ARRAY,
                            items.data(), MHD_OPTION_END);
  if (daemon == nullptr) {
    // The socket is left alone: the library may have closed it.
    return Fail(ErrorCode::kIo,
                fmt::format("cannot serve on {}: {}", options.address, last_complaint));
  }
  return {};
}

void HttpServer::Impl::Stop() {
  if (daemon == nullptr) {
    return;
  }
  draining = true;
  const MHD_socket listening = MHD_quiesce_daemon(daemon);
  {
    std::unique_lock lock(mutex);
    ended.wait_for(lock, kDrain, [&] { return open_exchanges == 0; });
    if (open_exchanges > 0) {
      Log(LogLevel::kWarning, "http_requests_cut_off",
          {{"address", options.address}, {"requests", open_exchanges}});
    }
  }
  MHD_stop_daemon(daemon);
  if (listening != MHD_INVALID_SOCKET) {
    close(listening);
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { impl_->Stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::Start(
    ServerOptions options, std::vector<std::pair<std::string, Handler>> routes) {
  const auto address = ParseAddress(options.address);
  if (!address) {
    return tl::unexpected(address.error());
  }
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  for (auto& [path, handler] : routes) {
    HOPWISE_CHECK(handler != nullptr);
    HOPWISE_CHECK(impl->routes.emplace(std::move(path), std::move(handler)).second);
  }
  if (Status read = impl->ReadTlsFiles(); !read) {
    return tl::unexpected(read.error());
  }
  const Result<int> fd = ListenOn(impl->options.address, address->first, address->second);
  if (!fd) {
    return tl::unexpected(fd.error());
  }
  if (Status runs = impl->Run(*fd); !runs) {
    return tl::unexpected(runs.error());
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const { return (impl_->tls ? "https://" : "http://") + impl_->place; }

Result<std::pair<std::string, int>> ParseAddress(std::string_view text) {
  if (text.find("://") != std::string_view::npos || text.find('/') != std::string_view::npos) {
    return BadAddress(text, "has a scheme or a path");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return BadAddress(text, "has no port");
  }
  std::string host(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) {
      return BadAddress(text, "has no port after its brackets");
    }
    host = host.substr(1, host.size() - 2);
    if (!IsIpv6(host)) {
      return BadAddress(text, "has no IPv6 address in its brackets");
    }
  } else if (host.find(':') != std::string::npos) {
    return BadAddress(text, "has more than one colon; an IPv6 address needs brackets");
  } else if (host.find_first_of(" \t\r\n[]") != std::string::npos) {
    return BadAddress(text, "has a host that cannot be one");
  }
  int port = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
  if (digits.empty() || error != std::errc() || end != digits.end() || port < 0 ||
      port > kLargestPort) {
    return BadAddress(text, fmt::format("has no port from 0 to {}", kLargestPort));
  }
  return std::pair(std::move(host), port);
}

}  // namespace hopwise::server

// A small HTTP(S) server: a table of paths, a handler for each, limits and time-outs.
//
// Handlers run on the server's own threads, several at once. TLS certificates are read again when
// their files change. Who speaks plain HTTP to a TLS port is told so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hopwise::server {

class TlsSource;

struct HttpRequest {
  std::string method;  // "GET", "HEAD", "POST"
  std::string path;    // without query
  std::vector<std::pair<std::string, std::string>> query;
  std::string body;
  std::string authorization;  // the header, "" when absent
};
struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};
using Handler = std::function<HttpResponse(const HttpRequest&)>;

struct ServerOptions {
  std::string address;              // ":8080", "127.0.0.1:0", "[::1]:8080"; port 0: a free one
  std::string cert_file, key_file;  // both: TLS
  std::shared_ptr<TlsSource> tls;   // in place of the files; see tls_pair.h
  std::string client_ca_file;       // with TLS: only clients with a certificate of this CA
  size_t threads = 2;
  size_t most_connections = 256;  // so that probes get through beside clients that are stuck
  size_t most_body = size_t{8} << 20U;
  int idle_timeout_s = 10;
  int keep_alive_s = 0;  // between two requests of a connection; 0: the same
};

class HttpServer {
 public:
  // Opens the port and serves. The error names the address and what the system said.
  static Result<std::unique_ptr<HttpServer>> Start(
      ServerOptions options, std::vector<std::pair<std::string, Handler>> routes);
  ~HttpServer();  // answers what is under way, then closes
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  // "http://127.0.0.1:8080"
  [[nodiscard]] std::string url() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Splits "host:port", ":port", "[v6]:port"; the error says what is wrong with it.
Result<std::pair<std::string, int>> ParseAddress(std::string_view text);

}  // namespace hopwise::server

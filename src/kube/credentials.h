// What access.cc and curl_transport.cc share about secrets: files, base64, and the programs that
// hand them out. Private to this module. No message here holds a secret.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "kube/access.h"

namespace hopwise::kube {

// A plugin may ask a person's browser or a slow identity provider; client-go waits for ever. A
// minute is beyond what any needs that nobody sits before.
inline constexpr Duration kExecTimeout = Seconds(60);

// Certificates, tokens and kubeconfigs are a few kilobytes; more than this is some other file.
inline constexpr size_t kMostFileBytes = size_t{16} << 20;

// kNotFound: it is not there; else kIo.
Result<std::string> ReadSmallFile(const std::string& path);
// For a process that ends without ceremony: a plugin under way would go on without it.
void KillPlugin();

// Standard alphabet with padding; line breaks are passed over.
Result<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

// Without the blanks and line breaks around it.
std::string TrimToken(std::string_view text);
// Printable, no blanks: what may stand in a header. "" too.
bool IsToken(std::string_view text);
Result<std::string> ReadTokenFile(const std::string& path);

// What an exec plugin answered: a token, a client certificate, or both.
struct Credential {
  std::string token, client_cert_pem, client_key_pem;
  Time expires;  // by the wall clock; not set: never
};
// Runs access.exec and waits, `limit` at most, or until `stop_fd` is readable; then the program and
// all it started are killed.
Result<Credential> RunExecPlugin(const Access& access, Duration limit, int stop_fd);

}  // namespace hopwise::kube

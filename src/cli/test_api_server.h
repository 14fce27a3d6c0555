// What stands for an API server in the tests of commands: answers by method and path, and the
// requests that came.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "cli/app.h"
#include "kube/transport.h"

namespace hopwise::cli {

struct Outcome {
  int status = 0;
  std::string out, err;
};

class TestApiServer {
 public:
  using Json = json::Json;

  // Of the path without its query, but for "?continue=" of a later page. Nothing else is there.
  void Serve(const std::string& method_and_path, const Json& answer, int status = 200) {
    answers_[method_and_path] = {status, json::Dump(answer)};
  }
  void ServeList(const std::string& path, const std::vector<Json>& items) {
    Serve("GET " + path, {{"kind", "SomeList"}, {"metadata", Json::object()}, {"items", items}});
  }
  // A Status object as the server refuses with.
  void Refuse(const std::string& method_and_path, int code, const std::string& reason,
              const std::string& message, const std::string& name = "") {
    Json status = {{"kind", "Status"}, {"reason", reason}, {"message", message}};
    status["details"] = name.empty() ? Json::object() : Json{{"name", name}};
    Serve(method_and_path, status, code);
  }
  void Unreachable() { unreachable_ = true; }

  Outcome Type(const std::vector<std::string>& args, const std::string& program = "hopwise",
               const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    Io io{in, out, err, false, false, *ParseRfc3339("2026-01-02T00:00:00Z")};
    io.connect = [this](const ClusterFlags&) -> Result<ApiServer> {
      return ApiServer{[this](kube::Request request) { return Exchange(std::move(request)); }, "ml",
                       "/home/me/.kube/config, context dev"};
    };
    const int status = MainAs(program, args, io);
    return {status, out.str(), err.str()};
  }

  [[nodiscard]] const std::vector<kube::Request>& requests() const { return requests_; }
  // The body of the only request of the method.
  [[nodiscard]] Json Sent(kube::Method method) const {
    Json sent;
    for (const kube::Request& request : requests_) {
      if (request.method == method) {
        sent = json::ParseOrNull(request.body);
      }
    }
    return sent;
  }

 private:
  kube::Response Exchange(kube::Request request) {
    kube::Response response;
    std::string path = request.path.substr(0, request.path.find('?'));
    if (const size_t token = request.path.find("continue="); token != std::string::npos) {
      path += "?" + request.path.substr(token);
    }
    const auto found = answers_.find(std::string(kube::MethodName(request.method)) + " " + path);
    requests_.push_back(std::move(request));
    if (unreachable_) {
      response.error = "cannot connect to 127.0.0.1:6443: refused";
    } else if (found == answers_.end()) {
      response.status = 404;
      response.body = R"({"kind":"Status","reason":"NotFound","details":{},)"
                      R"("message":"the server could not find the requested resource"})";
    } else {
      response.status = found->second.first;
      response.body = found->second.second;
    }
    return response;
  }

  std::map<std::string, std::pair<int, std::string>> answers_;
  std::vector<kube::Request> requests_;
  bool unreachable_ = false;
};

}  // namespace hopwise::cli

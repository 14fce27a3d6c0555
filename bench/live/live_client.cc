// What bench/live.py measures beside the scheduler, with the scheduler's own client:
//
//   create FILE [KUBECONFIG ...]
//                      makes the objects of FILE, a line {"path": ..., "body": ...} each; with
//                      "patch": true beside these, a merge patch of what is there; with "as": 1,
//                      in the name of the first KUBECONFIG, 2 of the second, and so on
//
//   lists              reads what a scheduler watches, page by page, and keeps nothing
//
//   bind NAMESPACE     binds the pods of NAMESPACE to the nodes in turn, one Binding and one Event
//                      each, through the scheduler's binder and recorder
//
//   watch NAMESPACE N  prints "ready", then watches until N pods are bound and N Events tell of it
//
// Takes the kubeconfig from $KUBECONFIG. Prints one JSON object of times in seconds.
#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "daemon/ask.h"
#include "daemon/binder.h"
#include "kube/access.h"
#include "kube/curl_transport.h"
#include "kube/events.h"
#include "kube/reflector.h"

namespace hopwise {
namespace {

using daemon::Ask;
using json::Json;

constexpr int kAtOnce = 32;
constexpr Duration kMostWatch = Seconds(300);

double SecondsOf(Duration duration) { return static_cast<double>(duration.ns) * 1e-9; }

// `kubeconfig`: "" for that of the environment.
std::unique_ptr<kube::CurlTransport> Connect(std::string kubeconfig = "") {
  kube::AccessOptions from;
  from.kubeconfig = std::move(kubeconfig);
  Result<kube::Access> access = kube::LoadAccess(from);
  if (!access) {
    std::cerr << access.error().message << "\n";
    std::exit(1);
  }
  kube::CurlOptions options;
  // Nothing but the server is to hold it back.
  options.qps = 100'000;
  options.burst = 100'000;
  options.user_agent = "hopwise-bench";
  return std::make_unique<kube::CurlTransport>(std::move(*access), std::move(options));
}

int Print(const Json& figures) {
  std::printf("%s\n", json::Dump(figures).c_str());
  std::fflush(stdout);
  return 0;
}

// --- create

// One queue for all accounts; its state belongs to the loop of the first.
class Creator {
 public:
  using Accounts = std::vector<std::unique_ptr<kube::CurlTransport>>;

  Creator(const Accounts& accounts, std::vector<Json> objects)
      : accounts_(accounts), objects_(std::move(objects)) {}

  size_t Run() {
    auto done = finished_.get_future();
    accounts_[0]->Post([this] {
      for (int i = 0; i < kAtOnce; ++i) {
        Next();
      }
    });
    done.wait();
    return failed_;
  }

 private:
  void Next() {
    if (at_ == objects_.size()) {
      if (under_way_ == 0 && !std::exchange(over_, true)) {
        finished_.set_value();
      }
      return;
    }
    const Json& object = objects_[at_++];
    kube::Request request;
    const bool patch = json::Flag(object, {"patch"}, false);
    request.method = patch ? kube::Method::kPatch : kube::Method::kPost;
    request.path = object.at("path").get<std::string>();
    request.content_type = patch ? kube::kMergePatch : kube::kJsonType;
    request.body = json::Dump(object.at("body"));
    ++under_way_;
    const auto as = static_cast<size_t>(json::Number(object, {"as"}, 0));
    if (as == 0) {
      accounts_[0]->Send(std::move(request),
                         [this](kube::Response&& response) { Ended(response); });
      return;
    }
    kube::CurlTransport& account = *accounts_.at(as);
    account.Post([this, &account, request = std::move(request)]() mutable {
      account.Send(std::move(request), [this](kube::Response&& response) {
        accounts_[0]->Post([this, response = std::move(response)] { Ended(response); });
      });
    });
  }

  void Ended(const kube::Response& response) {
    --under_way_;
    if (!response.ok() && failed_++ == 0) {
      std::cerr << response.status << " " << response.error << response.body << "\n";
    }
    Next();
  }

  const Accounts& accounts_;
  std::vector<Json> objects_;
  std::promise<void> finished_;
  size_t at_ = 0, failed_ = 0;
  int under_way_ = 0;
  bool over_ = false;
};

int Create(const std::string& path, const std::vector<std::string>& kubeconfigs) {
  std::vector<Json> objects;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    objects.push_back(json::ParseJson(line).value());
  }
  const size_t count = objects.size();
  Creator::Accounts accounts;
  accounts.push_back(Connect());
  for (const std::string& kubeconfig : kubeconfigs) {
    accounts.push_back(Connect(kubeconfig));
  }
  const Time start = accounts[0]->Now();
  Creator creator(accounts, std::move(objects));
  const size_t failed = creator.Run();
  Print({{"created", count - failed}, {"seconds", SecondsOf(accounts[0]->Now() - start)}});
  return failed == 0 ? 0 : 1;
}

// --- lists

int Lists() {
  const auto transport = Connect();
  const Time start = transport->Now();
  size_t bytes = 0;
  size_t pages = 0;
  for (const kube::Resource& resource :
       {kube::kPriorityClasses, kube::kNodes, kube::kHyperNodes, kube::kQueues, kube::kPodGroups,
        kube::kPluginPodGroups, kube::kPods}) {
    std::string token;
    do {
      const kube::Response response = daemon::AskPage(*transport, resource, token);
      if (!response.ok() && response.status != 404) {
        std::cerr << response.status << " " << response.error << "\n";
        return 1;
      }
      bytes += response.body.size();
      ++pages;
      // The list's metadata stands before its items.
      const size_t at = response.body.find("\"continue\":\"");
      token.clear();
      if (at != std::string::npos && at < 500) {
        const size_t begin = at + sizeof("\"continue\":\"") - 1;
        token = response.body.substr(begin, response.body.find('"', begin) - begin);
      }
    } while (!token.empty());
  }
  return Print(
      {{"seconds", SecondsOf(transport->Now() - start)}, {"bytes", bytes}, {"pages", pages}});
}

// --- bind

std::vector<Json> ItemsOf(kube::CurlTransport& transport, std::string path) {
  kube::Request request;
  request.path = std::move(path);
  const Json list = json::ParseJson(Ask(transport, std::move(request)).body).value();
  return {list.at("items").begin(), list.at("items").end()};
}

int Bind(const std::string& ns) {
  const auto transport = Connect();
  const std::vector<Json> nodes = ItemsOf(*transport, kube::CollectionPath(kube::kNodes));
  const std::vector<Json> pods = ItemsOf(*transport, kube::CollectionPath(kube::kPods, ns));
  std::promise<void> bound;
  std::promise<void> told;
  std::unique_ptr<kube::EventRecorder> events;
  std::unique_ptr<daemon::Binder> binder;
  size_t left = pods.size();
  size_t failed = 0;
  const Time start = transport->Now();
  transport->Run([&] {
    events = std::make_unique<kube::EventRecorder>(*transport, kube::EventRecorder::Options());
    binder = std::make_unique<daemon::Binder>(
        *transport, *events, [] { return Seconds(1'000'000); },
        [&](const daemon::BindResult& result) {
          failed += result.error.ok() ? 0U : 1U;
          if (--left == 0) {
            bound.set_value();
          }
        },
        daemon::BinderOptions());
    size_t next = 0;
    for (const Json& pod : pods) {
      binder->Bind({{ns, json::Text(pod, {"metadata", "name"}), json::Uid(pod)},
                    json::Text(nodes[next++ % nodes.size()], {"metadata", "name"})});
    }
  });
  bound.get_future().wait();
  const double bind_seconds = SecondsOf(transport->Now() - start);
  transport->Run([&] { events->Flush(kMostWatch, [&] { told.set_value(); }); });
  told.get_future().wait();
  Print({{"bound", pods.size() - failed},
         {"seconds", bind_seconds},
         {"events_seconds", SecondsOf(transport->Now() - start)}});
  transport->Run([&] {
    binder.reset();
    events.reset();
  });
  return failed == 0 ? 0 : 1;
}

// --- watch

class Watcher {
 public:
  Watcher(kube::CurlTransport& transport, const std::string& ns, size_t wanted)
      : transport_(transport), ns_(ns), wanted_(wanted) {}

  Json Run() {
    transport_.Run([this] {
      pods_ = Watch(kube::kPods, "", [this](const kube::WatchEvent& event) { SeePod(event); });
      events_ = Watch(kube::kEvents, "reason=Scheduled,involvedObject.kind=Pod,",
                      [this](const kube::WatchEvent& event) {
                        if (told_.insert(api::MetaOf(event.decoded.object).name).second) {
                          last_told_ = transport_.Now();
                        }
                      });
      transport_.After(kMostWatch, [this] { End(); });
    });
    over_.get_future().wait();
    Json figures;
    transport_.Run([&] {
      pods_.reset();
      events_.reset();
      figures = {{"pods", seen_.size()},
                 {"bound", bound_.size()},
                 {"events", told_.size()},
                 {"last_seen_to_first_bound", SecondsOf(first_bound_ - last_seen_)},
                 {"first_to_last_bound", SecondsOf(last_bound_ - first_bound_)},
                 {"last_bound_to_last_event", SecondsOf(last_told_ - last_bound_)}};
    });
    return figures;
  }

 private:
  std::unique_ptr<kube::Reflector> Watch(const kube::Resource& resource, const std::string& fields,
                                         std::function<void(const kube::WatchEvent&)> see) {
    kube::Reflector::Handlers handlers;
    handlers.events = [this, see = std::move(see)](std::vector<kube::WatchEvent>&& events) {
      for (const kube::WatchEvent& event : events) {
        see(event);
      }
      if (bound_.size() >= wanted_ && told_.size() >= wanted_) {
        End();
      }
    };
    handlers.synced = [this] {
      if (++synced_ == 2) {
        std::printf("ready\n");
        std::fflush(stdout);
      }
    };
    kube::Reflector::Options options;
    options.selector = "fieldSelector=" + kube::UrlEscape(fields + "metadata.namespace=" + ns_);
    auto reflector = std::make_unique<kube::Reflector>(transport_, resource, std::move(options),
                                                       std::move(handlers));
    reflector->Start();
    return reflector;
  }

  void SeePod(const kube::WatchEvent& event) {
    const auto* pod = std::get_if<api::Pod>(&event.decoded.object);
    if (pod == nullptr || event.type == kube::WatchEvent::Type::kDeleted) {
      return;
    }
    const Time now = transport_.Now();
    if (seen_.insert(pod->meta.name).second) {
      last_seen_ = now;
    }
    if (!pod->node_name.empty() && bound_.insert(pod->meta.name).second) {
      first_bound_ = bound_.size() == 1 ? now : first_bound_;
      last_bound_ = now;
    }
  }

  void End() {
    if (!std::exchange(ended_, true)) {
      over_.set_value();
    }
  }

  kube::CurlTransport& transport_;
  const std::string ns_;
  const size_t wanted_;
  std::unique_ptr<kube::Reflector> pods_, events_;
  std::set<std::string> seen_, bound_, told_;
  Time last_seen_, first_bound_, last_bound_, last_told_;
  int synced_ = 0;
  bool ended_ = false;
  std::promise<void> over_;
};

int Watch(const std::string& ns, size_t wanted) {
  const auto transport = Connect();
  return Print(Watcher(*transport, ns, wanted).Run());
}

int Main(const std::vector<std::string_view>& words) {
  const std::string_view command = words.empty() ? "" : words[0];
  if (command == "create" && words.size() >= 2) {
    return Create(std::string(words[1]), {words.begin() + 2, words.end()});
  }
  if (command == "lists" && words.size() == 1) {
    return Lists();
  }
  if (command == "bind" && words.size() == 2) {
    return Bind(std::string(words[1]));
  }
  if (command == "watch" && words.size() == 3) {
    return Watch(std::string(words[1]), std::stoul(std::string(words[2])));
  }
  std::cerr << "usage: live_client create FILE [KUBECONFIG ...] | lists | bind NAMESPACE | "
               "watch NAMESPACE COUNT\n";
  return 2;
}

}  // namespace
}  // namespace hopwise

int main(int argc, char** argv) {
  return hopwise::Main(std::vector<std::string_view>(argv + 1, argv + argc));
}

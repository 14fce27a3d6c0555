// Who we are to the server: tokens, files, exec plugins and certificates, and that no secret gets
// into a message.
#include "kube/credentials.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube/curl_transport.h"
#include "kube/test_client.h"
#include "kube/test_server.h"
#include "rt/clock.h"

namespace hopwise::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Write = TestServer::Write;

constexpr const char* kVersion = "client.authentication.k8s.io/v1";
constexpr const char* kSecret = "s3cretS3CRETs3cretS3CRETs3cretS3CRETs3cret";

// A folder that is gone after the test, with files and programs in it.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "credentials.XXXXXX";
    path_ = mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string File(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string Read(const std::string& name) const {
    return ReadSmallFile(File(name)).value_or("");
  }
  [[nodiscard]] std::string Write(const std::string& name, const std::string& text) const {
    // Renamed into place, as the kubelet does it: a reader sees the old or the new one.
    std::ofstream(File(name + ".new")) << text;
    std::filesystem::rename(File(name + ".new"), File(name));
    return File(name);
  }
  // A shell script that is run as the plugin; each run leaves a line in "runs".
  [[nodiscard]] Access Plugin(const std::string& script) const {
    const std::string path =
        Write("plugin", "#!/bin/sh\necho run >> '" + File("runs") + "'\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    Access access = AccessTo("https://10.0.0.1:6443");
    access.exec = ExecPlugin{kVersion, path, {}, {}, false, ""};
    return access;
  }
  [[nodiscard]] size_t Runs() const {
    return Read("runs").size() / std::string_view("run\n").size();
  }

 private:
  std::string path_;
};

std::string Printed(const std::string& status) {
  return "cat <<'END'\n{\"kind\": \"ExecCredential\", \"apiVersion\": \"" + std::string(kVersion) +
         "\", \"status\": " + status + "}\nEND\n";
}
std::string PrintsToken(const std::string& token) {
  return Printed("{\"token\": \"" + token + "\"}");
}

// Answers 200 to those who bear `token`, 401 to others.
class Guarded {
 public:
  explicit Guarded(std::string token)
      : token_(std::move(token)), server_([this](const Seen& seen, const Write& write) {
          const std::lock_guard lock(mutex_);
          const auto header = seen.headers.find("authorization");
          const std::string got = header == seen.headers.end() ? "" : header->second;
          seen_.push_back(got);
          return write(Answer(got == "Bearer " + token_ ? 200 : 401, ""));
        }) {}
  void Require(const std::string& token) {
    const std::lock_guard lock(mutex_);
    token_ = token;
  }
  // What each request bore.
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  [[nodiscard]] std::string url() const { return server_.url(); }

 private:
  std::mutex mutex_;
  std::string token_;
  std::vector<std::string> seen_;
  TestServer server_;
};

TEST(Token, StandsInEachRequestAndIsNotAskedForAgain) {
  Guarded server("right");
  Access access = AccessTo(server.url());
  access.token = "right";
  Client client(access);
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  server.Require("other");
  EXPECT_EQ(client.Ask(Get("/")).status, 401) << "there is no other";
  EXPECT_THAT(server.seen(), ElementsAre("Bearer right", "Bearer right"));
}

TEST(Password, IsSentAsBasic) {
  Guarded server("x");
  Access access = AccessTo(server.url());
  access.username = "ann";
  access.password = "open:sesame";
  Client client(access);
  client.Ask(Get("/"));
  EXPECT_THAT(server.seen(), ElementsAre("Basic " + EncodeBase64("ann:open:sesame")));
}

TEST(TokenFile, IsReadAgainAfterA401AndTheRequestSentOnceMore) {
  const Folder folder;
  Guarded server("one");
  Access access = AccessTo(server.url());
  access.token = "never";
  access.token_file = folder.Write("token", "one\n");
  Client client(access);
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  static_cast<void>(folder.Write("token", "two\n"));
  server.Require("two");
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  server.Require("three");
  EXPECT_EQ(client.Ask(Get("/")).status, 401) << "the file is the same";
  EXPECT_THAT(server.seen(), ElementsAre("Bearer one", "Bearer one", "Bearer two", "Bearer two"));
  // One that is gone is no reason to forget what it said.
  std::filesystem::remove(folder.File("token"));
  server.Require("two");
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
}

TEST(TokenFile, WithoutItThereIsNoAnswerAndWithItThereIs) {
  const Folder folder;
  Guarded server("one");
  Access access = AccessTo(server.url());
  access.token_file = folder.File("token");
  Client client(access);
  const Response none = client.Ask(Get("/"));
  EXPECT_EQ(none.status, 0);
  EXPECT_THAT(none.error, HasSubstr("no credential"));
  EXPECT_THAT(none.error, HasSubstr(folder.File("token")));
  EXPECT_TRUE(server.seen().empty());
  static_cast<void>(folder.Write("token", "one"));
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
}

TEST(ExecPlugin, IsRunOnceForAllWhoWait) {
  const Folder folder;
  Guarded server("from-plugin");
  Access access = folder.Plugin(PrintsToken("from-plugin"));
  access.server = server.url();
  Client client(access);
  std::vector<std::future<Response>> futures;
  for (int i = 0; i < 10; ++i) {
    futures.push_back(client.Start(Get("/")));
  }
  for (auto& future : futures) {
    EXPECT_EQ(Client::Await(future).status, 200);
  }
  EXPECT_EQ(folder.Runs(), 1U);
}

TEST(ExecPlugin, IsRunAgainOnceAfterA401) {
  const Folder folder;
  Guarded server("2");
  Access access = folder.Plugin("n=$(wc -l < '" + folder.File("runs") +
                                "')\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" +
                                kVersion + "\",\"status\":{\"token\":\"'$n'\"}}'\n");
  access.server = server.url();
  Client client(access);
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  EXPECT_THAT(server.seen(), ElementsAre("Bearer 1", "Bearer 2"));
  server.Require("nobody");
  EXPECT_EQ(client.Ask(Get("/")).status, 401);
  EXPECT_EQ(folder.Runs(), 3U);
}

TEST(ExecPlugin, AStreamThatWasRefusedBeginsAnewToo) {
  const Folder folder;
  Guarded server("right");
  Access access = folder.Plugin(PrintsToken("right"));
  access.server = server.url();
  Client client(access);
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  static_cast<void>(folder.Plugin(PrintsToken("other")));
  server.Require("other");
  std::promise<Response> over;
  client.transport().Run([&] {
    client.transport().Stream(
        Get("/watch"), [](std::string_view) { ADD_FAILURE() << "the refusal is no piece of it"; },
        [&](Response&& response) { over.set_value(std::move(response)); });
  });
  std::future<Response> done = over.get_future();
  EXPECT_EQ(Client::Await(done).status, 200);
  EXPECT_THAT(server.seen(), ElementsAre("Bearer right", "Bearer right", "Bearer other"));
}

TEST(ExecPlugin, WhoWaitsForItMayBeCancelled) {
  const Folder folder;
  Guarded server("t");
  Access access = folder.Plugin("while [ ! -e '" + folder.File("go") +
                                "' ]; do sleep 0.02; done\n" + PrintsToken("t"));
  access.server = server.url();
  Client client(access);
  std::atomic<int> called = 0;
  Transport::Id id = 0;
  client.transport().Run(
      [&] { id = client.transport().Send(Get("/cancelled"), [&](Response&&) { ++called; }); });
  EXPECT_TRUE(Eventually([&] { return folder.Runs() == 1; }));
  client.transport().Run([&] { client.transport().Cancel(id); });
  EXPECT_EQ(client.Counts().waiting, 0U);
  auto next = client.Start(Get("/next"));
  static_cast<void>(folder.Write("go", ""));
  EXPECT_EQ(Client::Await(next).status, 200);
  EXPECT_EQ(called, 0);
  EXPECT_EQ(server.seen().size(), 1U);
}

TEST(ExecPlugin, WhatExpiredBeforeItCameIsRefused) {
  const Folder folder;
  Access access =
      folder.Plugin(Printed(R"({"token": "t", "expirationTimestamp": "2020-01-02T03:04:05Z"})"));
  Client client(access);
  EXPECT_THAT(client.Ask(Get("/")).error, HasSubstr("expired at 2020-01-02T03:04:05Z already"));
  EXPECT_EQ(folder.Runs(), 1U);
}

TEST(ExecPlugin, IsRunAgainWhenItsCredentialExpires) {
  const Folder folder;
  Guarded server("t");
  Access access = folder.Plugin(
      "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" + std::string(kVersion) +
      "\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"'$(date -u -d '+2 seconds' "
      "+%Y-%m-%dT%H:%M:%SZ)'\"}}'\n");
  access.server = server.url();
  Client client(access);
  const Time begin = rt::WallNow();
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  EXPECT_TRUE(folder.Runs() == 1 || rt::WallNow() > begin + Seconds(1));
  EXPECT_TRUE(Eventually([&] {
    EXPECT_EQ(client.Ask(Get("/")).status, 200);
    return folder.Runs() > 1;
  }));
  EXPECT_GE(rt::WallNow(), begin + Seconds(1));
}

TEST(ExecPlugin, WhileItFailsRequestsFailWithItsReasonAndItIsNotRunForEach) {
  const Folder folder;
  Guarded server("t");
  Access access = folder.Plugin("echo 'log in first' >&2\nexit 3\n");
  access.server = server.url();
  Client client(access);
  const Time begin = rt::MonotonicNow();
  std::vector<std::future<Response>> futures;
  for (int i = 0; i < 5; ++i) {
    futures.push_back(client.Start(Get("/")));
  }
  for (auto& future : futures) {
    const Response response = Client::Await(future);
    EXPECT_EQ(response.status, 0);
    EXPECT_THAT(response.error, HasSubstr("exit code 3; it said: log in first"));
  }
  EXPECT_EQ(client.Ask(Get("/")).status, 0);
  EXPECT_GE(rt::MonotonicNow() - begin, Seconds(1)) << "the next run waits";
  EXPECT_LE(folder.Runs(), 3U);
  EXPECT_TRUE(server.seen().empty());
}

TEST(ExecPlugin, TheTransportDoesNotWaitForItAtItsEnd) {
  const Folder folder;
  Access access = folder.Plugin("sleep 300\n");
  Client client(access);
  client.transport().Run([&] { client.transport().Send(Get("/"), {}); });
  EXPECT_TRUE(Eventually([&] { return folder.Runs() == 1; }));
  const Time begin = rt::MonotonicNow();
  client.Destroy();
  EXPECT_LT(rt::MonotonicNow() - begin, Seconds(10));
}

TEST(RunExecPlugin, TellsTheProgramWhatItMayAskFor) {
  const Folder folder;
  Access access = folder.Plugin("printf %s \"$KUBERNETES_EXEC_INFO\" > '" + folder.File("info") +
                                "'\necho \"$1 $REGION $PATH\" > '" + folder.File("args") + "'\n" +
                                PrintsToken(" padded \\n"));
  access.exec->args = {"--cluster=a b"};
  access.exec->env = {{"REGION", "north"}, {"PATH", "/bin:/usr/bin"}};
  access.tls_server_name = "kube.lab";
  access.ca_pem = "PEM";
  const auto credential = RunExecPlugin(access, kExecTimeout, -1);
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->token, "padded");
  EXPECT_FALSE(credential->expires.set());
  EXPECT_EQ(folder.Read("args"), "--cluster=a b north /bin:/usr/bin\n");
  EXPECT_EQ(folder.Read("info"), R"({"apiVersion":")" + std::string(kVersion) +
                                     R"(","kind":"ExecCredential","spec":{"interactive":false}})");
  access.exec->provide_cluster_info = true;
  ASSERT_TRUE(RunExecPlugin(access, kExecTimeout, -1));
  EXPECT_THAT(folder.Read("info"),
              HasSubstr(R"("spec":{"cluster":{"certificate-authority-data":"UEVN",)"
                        R"("server":"https://10.0.0.1:6443","tls-server-name":"kube.lab"},)"));
}

TEST(RunExecPlugin, ReadsCertificatesAndTheTimeOfExpiry) {
  const Folder folder;
  const auto credential = RunExecPlugin(
      folder.Plugin(Printed(R"({"clientCertificateData": "CERT", "clientKeyData": "KEY",
                                "expirationTimestamp": "2030-01-02T03:04:05Z"})")),
      kExecTimeout, -1);
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->client_cert_pem, "CERT");
  EXPECT_EQ(credential->client_key_pem, "KEY");
  EXPECT_EQ(FormatRfc3339(credential->expires), "2030-01-02T03:04:05Z");
}

TEST(RunExecPlugin, SaysWhatIsWrongWithTheAnswerButNotTheAnswer) {
  const std::string secret = kSecret;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"echo " + secret, "ExecCredential as JSON"},
      {"echo '[\"" + secret + "\"]'", "ExecCredential as JSON"},
      {"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" + secret + "\"}'", "apiVersion"},
      {Printed("null"), "no status"},
      {Printed("{}"), "neither token"},
      {Printed("{\"clientKeyData\":\"" + secret + "\"}"), "only one of"},
      {PrintsToken("a " + secret), "a blank or a line break"},
      {Printed("{\"token\":\"t\",\"expirationTimestamp\":\"" + secret + "\"}"), "RFC 3339"},
      {"kill -9 $$", "killed by signal 9"},
      {"exit 0", "ExecCredential as JSON"},
      {"echo \"token is $TOKEN, really\" >&2; exit 1", "it said: token is ***, really"},
      {"echo got " + secret + " 0123456789abcdef0123456789abcdef eyJhbGciOi.x >&2; exit 1",
       "it said: got *** *** ***"},
      {"echo '/usr/local/bin/some-cloud-auth-plugin-2: my-cluster.eu-west-1.example.com' >&2; exit "
       "1",
       "/usr/local/bin/some-cloud-auth-plugin-2: my-cluster.eu-west-1.example.com"},
  };
  for (const auto& [script, word] : cases) {
    const Folder folder;
    Access access = folder.Plugin(script + "\n");
    access.exec->env = {{"TOKEN", "sesame open"}};
    const auto credential = RunExecPlugin(access, kExecTimeout, -1);
    ASSERT_FALSE(credential) << script;
    EXPECT_THAT(credential.error().message, HasSubstr(word)) << script;
    EXPECT_THAT(credential.error().message, HasSubstr("exec plugin " + folder.File("plugin")));
    EXPECT_THAT(credential.error().message, Not(HasSubstr(secret)));
    EXPECT_THAT(credential.error().message, Not(HasSubstr("sesame")));
  }
}

TEST(RunExecPlugin, AProgramThatIsNotThereIsToldWithTheHint) {
  Access access = AccessTo("https://h");
  access.exec = ExecPlugin{kVersion, "no-such-plugin-anywhere", {}, {}, false, ""};
  EXPECT_THAT(RunExecPlugin(access, kExecTimeout, -1).error().message,
              HasSubstr("no-such-plugin-anywhere: cannot be started: No such file or directory; "
                        "install it"));
  access.exec->install_hint = "apt-get install cloud-login";
  EXPECT_THAT(RunExecPlugin(access, kExecTimeout, -1).error().message,
              HasSubstr("; apt-get install cloud-login"));
}

// Neither holds up for the child that it leaves behind with its pipes.
TEST(RunExecPlugin, IsKilledWithAllItStartedWhenItTakesTooLongOrIsStopped) {
  const Folder folder;
  const Access slow = folder.Plugin("sleep 300 &\necho $! > '" + folder.File("child") +
                                    "'\necho waiting >&2\nwait\n");
  const auto late = RunExecPlugin(slow, Millis(500), -1);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("no answer within 500ms; it said: waiting"));
  const int child = std::atoi(folder.Read("child").c_str());
  ASSERT_GT(child, 0);
  // A zombie that nobody has reaped yet is dead too.
  EXPECT_TRUE(Eventually([&] {
    const std::string stat =
        ReadSmallFile("/proc/" + std::to_string(child) + "/stat").value_or(") Z");
    return stat.find(") Z") != std::string::npos || stat.find(") X") != std::string::npos;
  }));

  const int stop = eventfd(1, EFD_CLOEXEC);
  const auto stopped = RunExecPlugin(slow, kExecTimeout, stop);
  close(stop);
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("stopped"));

  const Folder other;
  const Access daemon =
      other.Plugin("sleep 300 &\necho $! > '" + other.File("child") + "'\n" + PrintsToken("t"));
  const Time begin = rt::MonotonicNow();
  EXPECT_TRUE(RunExecPlugin(daemon, kExecTimeout, -1));
  EXPECT_LT(rt::MonotonicNow() - begin, Seconds(30));
  kill(std::atoi(other.Read("child").c_str()), SIGKILL);
}

// --- TLS
// ------------------------------------------------------------------------------------------

// Two CAs; of the first a server's certificate for 127.0.0.1, one for kube.test, and a client's.
class Tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<Folder>();
    Make("ca", "", "");
    Make("other-ca", "", "");
    Make("server", "ca", "IP:127.0.0.1");
    Make("named", "ca", "DNS:kube.test");
    Make("client", "ca", "");
  }
  static void TearDownTestSuite() { folder.reset(); }

  static void Make(const std::string& name, const std::string& ca, const std::string& san) {
    std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
        "-nodes -days 2 -subj /CN=" +
        name + " -keyout '" + folder->File(name + ".key") + "' -out '" +
        folder->File(name + ".crt") + "'";
    if (!ca.empty()) {
      command +=
          " -CA '" + folder->File(ca + ".crt") + "' -CAkey '" + folder->File(ca + ".key") + "'";
    }
    if (!san.empty()) {
      command += " -addext subjectAltName=" + san;
    }
    command += " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }

  // `openssl s_server`: answers every GET with a page about the connection. Gone at the scope's
  // end.
  class Server {
   public:
    explicit Server(const std::string& certificate, bool wants_client = false) {
      std::vector<std::string> args = {"openssl",
                                       "s_server",
                                       "-accept",
                                       "127.0.0.1:0",
                                       "-www",
                                       "-cert",
                                       folder->File(certificate + ".crt"),
                                       "-key",
                                       folder->File(certificate + ".key"),
                                       "-CAfile",
                                       folder->File("ca.crt")};
      if (wants_client) {
        args.insert(args.end(), {"-Verify", "1", "-verify_return_error"});
      }
      std::vector<char*> argv;
      for (std::string& arg : args) {
        argv.push_back(arg.data());
      }
      argv.push_back(nullptr);
      const std::string out = folder->File("s_server.out");
      posix_spawn_file_actions_t actions;
      posix_spawn_file_actions_init(&actions);
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
      posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
      posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
      EXPECT_EQ(posix_spawnp(&pid_, "openssl", &actions, nullptr, argv.data(), environ), 0);
      posix_spawn_file_actions_destroy(&actions);
      EXPECT_TRUE(Eventually([&] {
        const std::string said = folder->Read("s_server.out");
        const size_t at = said.find("ACCEPT 127.0.0.1:");
        if (at == std::string::npos || said.find('\n', at) == std::string::npos) {
          return false;
        }
        port_ = said.substr(said.find(':', at) + 1, said.find('\n', at) - said.find(':', at) - 1);
        return true;
      }));
    }
    ~Server() {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    [[nodiscard]] Access To(const std::string& ca) const {
      Access access = AccessTo("https://127.0.0.1:" + port_);
      access.ca_pem = ca.empty() ? "" : folder->Read(ca + ".crt");
      return access;
    }

   private:
    pid_t pid_ = -1;
    std::string port_;
  };

  static Response Ask(const Access& access) {
    Client client(access);
    return client.Ask(Get("/"));
  }

  static std::unique_ptr<Folder> folder;
};
std::unique_ptr<Folder> Tls::folder;

TEST_F(Tls, TheServerMustBeOfTheCaThatWasGiven) {
  const Server server("server");
  const Response good = Ask(server.To("ca"));
  EXPECT_EQ(good.status, 200) << good.error;

  for (const std::string ca : {"other-ca", ""}) {
    const Response bad = Ask(server.To(ca));
    EXPECT_EQ(bad.status, 0);
    EXPECT_THAT(bad.error, HasSubstr("its certificate is not trusted"));
    EXPECT_THAT(bad.error, HasSubstr(ca.empty() ? "the CAs of this system; the test names none"
                                                : "checked with the CA of the test"));
  }
  Access insecure = server.To("");
  insecure.insecure = true;
  EXPECT_EQ(Ask(insecure).status, 200);

  Access broken = server.To("");
  broken.ca_pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(Ask(broken).error, HasSubstr("the CA of the test cannot be used"));
}

TEST_F(Tls, TheServerMayBearAnotherNameThanItsAddress) {
  const Server server("named");
  Access access = server.To("ca");
  EXPECT_THAT(Ask(access).error, HasSubstr("its certificate is not trusted"));
  access.tls_server_name = "kube.test";
  const Response named = Ask(access);
  EXPECT_EQ(named.status, 200) << named.error;
  access.tls_server_name = "other.test";
  EXPECT_THAT(Ask(access).error, HasSubstr("its certificate is not trusted"));
}

TEST_F(Tls, AClientCertificateComesFromTheKubeconfigOrThePlugin) {
  const Server server("server", true);
  Access access = server.To("ca");
  EXPECT_EQ(Ask(access).status, 0) << "the server wants a certificate";
  access.client_cert_pem = folder->Read("client.crt");
  access.client_key_pem = folder->Read("client.key");
  const Response known = Ask(access);
  EXPECT_EQ(known.status, 200) << known.error;
  EXPECT_NE(known.body.find("Subject: CN=client"), std::string::npos);

  Access mixed = access;
  mixed.client_key_pem = folder->Read("server.key");
  EXPECT_THAT(Ask(mixed).error, HasSubstr("the client certificate or key of the test"));

  const Folder plugin;
  const auto quoted = [](std::string pem) {
    for (size_t at = 0; (at = pem.find('\n', at)) != std::string::npos; at += 2) {
      pem.replace(at, 1, "\\n");
    }
    return "\"" + pem + "\"";
  };
  Access exec = server.To("ca");
  exec.exec = plugin
                  .Plugin(Printed("{\"clientCertificateData\": " + quoted(access.client_cert_pem) +
                                  ", \"clientKeyData\": " + quoted(access.client_key_pem) + "}"))
                  .exec;
  const Response by_plugin = Ask(exec);
  EXPECT_EQ(by_plugin.status, 200) << by_plugin.error;
}

}  // namespace
}  // namespace hopwise::kube

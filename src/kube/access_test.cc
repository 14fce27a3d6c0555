// Where the API server is: kubeconfigs as tables of texts, the pod's files, and what is said when
// something is wrong.
#include "kube/access.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/credentials.h"

namespace hopwise::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
constexpr std::string_view kOtherPem =
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

// A folder that is gone after the test.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "access.XXXXXX";
    path_ = mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Write(const std::string& name, std::string_view text) const {
    const std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Sets variables of the environment, "" to unset; as they were after the test.
class Environment {
 public:
  using Values = std::vector<std::pair<std::string, std::string>>;
  explicit Environment(const Values& values) {
    for (const auto& [name, value] : values) {
      const char* old = std::getenv(name.c_str());
      before_.emplace_back(name, old == nullptr ? "" : old);
      Put(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      Put(name, value);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void Put(const std::string& name, const std::string& value) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Values before_;
};

AccessOptions Flag(const std::string& kubeconfig) {
  AccessOptions options;
  options.kubeconfig = kubeconfig;
  return options;
}
AccessOptions InContext(const std::string& context) {
  AccessOptions options;
  options.context = context;
  return options;
}
AccessOptions Master(const std::string& server) {
  AccessOptions options;
  options.server = server;
  return options;
}

// One cluster "c", one user "u", one context "dev" of both, in use.
std::string Kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
         "clusters:\n- name: c\n  cluster: " +
         cluster + "\nusers:\n- name: u\n  user: " + user +
         "\ncontexts:\n- name: dev\n  context: {cluster: c, user: u}\n";
}

Result<Access> FromText(const std::string& text, const AccessOptions& options = {}) {
  return AccessFromKubeconfigs({{"/home/me/.kube/config", text}}, options);
}

TEST(Kubeconfig, OneContextGivesServerCredentialAndNamespace) {
  const auto access = FromText(R"(
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: prod
  cluster: {server: "https://prod:6443"}
- name: lab
  cluster:
    server: https://10.0.0.1:6443/
    tls-server-name: kube.lab
    proxy-url: http://proxy:3128
    certificate-authority-data: )" +
                               EncodeBase64(kPem) + R"(
users:
- name: me
  user:
    token: sesame
contexts:
- name: dev
  context: {cluster: lab, user: me, namespace: training}
)");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->tls_server_name, "kube.lab");
  EXPECT_EQ(access->proxy_url, "http://proxy:3128");
  EXPECT_EQ(access->ca_pem, kPem);
  EXPECT_EQ(access->token, "sesame");
  EXPECT_EQ(access->ns, "training");
  EXPECT_EQ(access->source, "/home/me/.kube/config, context dev");
  EXPECT_FALSE(access->insecure);
}

TEST(Kubeconfig, MayBeJsonAndLeaveOutKindAndVersion) {
  const auto access = FromText(
      R"({"current-context":"a","clusters":[{"name":"c","cluster":{"server":"http://h:1"}}],
          "contexts":[{"name":"a","context":{"cluster":"c","user":""}}],"users":null})");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "http://h:1");
  EXPECT_EQ(access->ns, "default");
}

TEST(Kubeconfig, AnAddressWithoutSchemeGetsHttpsWhereAnythingSpeaksOfTls) {
  EXPECT_EQ(FromText(Kubeconfig("{server: 'h:1'}", "{token: t}"))->server, "http://h:1");
  EXPECT_EQ(
      FromText(Kubeconfig("{server: 'h:1', insecure-skip-tls-verify: true}", "{token: t}"))->server,
      "https://h:1");
}

TEST(Kubeconfig, OfTwoFilesTheFirstToNameAThingWins) {
  const std::string first = Kubeconfig("{server: 'https://first'}", "{token: one}");
  const std::string second = R"(
current-context: other
clusters:
- {name: c, cluster: {server: "https://second"}}
- {name: c2, cluster: {server: "https://two"}}
users:
- {name: u, user: {token: second}}
- {name: u2, user: {token: two}}
contexts:
- {name: dev, context: {cluster: c2, user: u2}}
- {name: other, context: {cluster: c2, user: u}}
)";
  struct Case {
    std::vector<std::string> texts;
    std::string context, server, token, source;
  };
  const std::vector<Case> cases = {
      {{first, second}, "", "https://first", "one", "/0, context dev"},
      {{second, first}, "", "https://two", "second", "/0, context other"},
      {{first, second}, "other", "https://two", "one", "/1, context other"},
      {{"", second}, "", "https://two", "second", "/1, context other"},
      {{"# nothing but this\n", first}, "", "https://first", "one", "/1, context dev"},
  };
  for (const Case& c : cases) {
    std::vector<std::pair<std::string, std::string>> files;
    for (const std::string& text : c.texts) {
      files.emplace_back("/" + std::to_string(files.size()), text);
    }
    const auto access = AccessFromKubeconfigs(files, InContext(c.context));
    ASSERT_TRUE(access) << access.error().message;
    EXPECT_EQ(access->server, c.server) << c.source;
    EXPECT_EQ(access->token, c.token) << c.source;
    EXPECT_EQ(access->source, c.source);
  }
}

TEST(Kubeconfig, PathsAreRelativeToTheirFileAndDataWinsOverThem) {
  const Folder folder;
  folder.Write("pki/ca.crt", kPem);
  folder.Write("pki/me.crt", kPem);
  folder.Write("pki/me.key", kPem);
  folder.Write("token", " from-file\n");
  const std::string by_path = Kubeconfig(
      "{server: 'https://h', certificate-authority: pki/ca.crt}",
      "{client-certificate: pki/me.crt, client-key: pki/me.key, tokenFile: token, token: old, "
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login}}");
  const auto access = AccessFromKubeconfigs({{folder.path() + "/config", by_path}}, {});
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->ca_pem, kPem);
  EXPECT_EQ(access->client_cert_pem, kPem);
  EXPECT_EQ(access->client_key_pem, kPem);
  EXPECT_EQ(access->token_file, folder.path() + "/token");
  EXPECT_EQ(access->exec->command, folder.path() + "/./bin/login");

  const std::string both = Kubeconfig(
      "{server: 'https://h', certificate-authority: pki/ca.crt, "
      "certificate-authority-data: " +
          EncodeBase64(kOtherPem) + "}",
      "{token: t}");
  const auto data = AccessFromKubeconfigs({{folder.path() + "/config", both}}, {});
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->ca_pem, kOtherPem);
}

TEST(Kubeconfig, AnExecPluginKeepsAllItsFields) {
  const auto access = FromText(Kubeconfig("{server: 'https://h'}", R"(
      exec:
        apiVersion: client.authentication.k8s.io/v1beta1
        command: cloud-login
        args: [--cluster, lab]
        env: [{name: REGION, value: north}, {name: EMPTY, value: null}]
        provideClusterInfo: true
        interactiveMode: IfAvailable
        installHint: see the wiki)"));
  ASSERT_TRUE(access) << access.error().message;
  ASSERT_TRUE(access->exec);
  const ExecPlugin& exec = *access->exec;
  EXPECT_EQ(exec.api_version, "client.authentication.k8s.io/v1beta1");
  EXPECT_EQ(exec.command, "cloud-login") << "a bare name is looked up in PATH";
  EXPECT_THAT(exec.args, testing::ElementsAre("--cluster", "lab"));
  EXPECT_THAT(exec.env, testing::ElementsAre(std::pair("REGION", "north"), std::pair("EMPTY", "")));
  EXPECT_TRUE(exec.provide_cluster_info);
  EXPECT_EQ(exec.install_hint, "see the wiki");
}

TEST(Kubeconfig, MasterTakesThePlaceOfTheServerAndKeepsTheCredential) {
  const std::string text = Kubeconfig("{server: 'https://h'}", "{token: t}");
  const auto access = FromText(text, Master("https://other:7/"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://other:7");
  EXPECT_EQ(access->token, "t");
  // Nothing else is needed then.
  EXPECT_EQ(FromText("", Master("http://127.0.0.1:8080"))->server, "http://127.0.0.1:8080");
  EXPECT_THAT(FromText(text, Master("ftp://h")).error().message, HasSubstr("--master: "));
}

// Each is refused, and the message holds the words that lead to the mistake.
struct Refusal {
  std::string text;
  std::vector<std::string> words;
};
TEST(Kubeconfig, SaysWhichFileAndFieldIsWrongAndWhatToDo) {
  const std::string good = "{server: 'https://h'}";
  const std::string config = "/home/me/.kube/config";
  const std::vector<Refusal> refusals = {
      {"clusters: [", {config, "no kubeconfig", "line "}},
      {"just a text", {config, "no kubeconfig"}},
      {"kind: Pod\napiVersion: v1\nmetadata: {name: x}\n", {config, "kind", "Config", "Pod"}},
      {"kind: Config\n---\nkind: Config\n", {config, "2 documents"}},
      {"kind: Config\n", {config, "current-context", "kubectl config use-context", "none"}},
      {"", {config, "current-context"}},
      {"current-context: gone\ncontexts: [{name: a, context: {}}, {name: b}]",
       {config, "no context \"gone\"", "a, b"}},
      {"current-context: a\ncontexts: [{name: a, context: {cluster: gone}}]",
       {config, "contexts[a].cluster", "\"gone\"", "there is none"}},
      {"current-context: a\ncontexts: [{name: a}]", {config, "contexts[a].cluster: is missing"}},
      {"current-context: a\nclusters: [{name: c, cluster: {server: 'https://h'}}]\n"
       "contexts: [{name: a, context: {cluster: c, user: gone}}]",
       {config, "contexts[a].user", "\"gone\""}},
      {"clusters: [{name: c}, {name: c}]", {config, "clusters[1].name", "twice"}},
      {"clusters: {name: c}", {config, "clusters: expected a list"}},
      {Kubeconfig("{}", "{token: t}"), {"server", "missing", "https://"}},
      {Kubeconfig("{server: 'ftp://h'}", "{token: t}"), {"server", "https://"}},
      {Kubeconfig("{server: 17}", "{token: t}"), {"clusters[c].server: expected text"}},
      {Kubeconfig(good, "{token: 17}"), {config, "users[u].token: expected text", "quotes"}},
      {Kubeconfig(good, "{token: 'a b'}"), {"users[u].token", "blank"}},
      {Kubeconfig("{server: 'https://h', certificate-authority-data: '%%%='}", "{token: t}"),
       {config, "clusters[c].certificate-authority-data", "base64"}},
      {Kubeconfig("{server: 'https://h', certificate-authority-data: YWJj}", "{token: t}"),
       {"clusters[c].certificate-authority-data", "no PEM"}},
      {Kubeconfig("{server: 'https://h', certificate-authority: /does/not/exist}", "{token: t}"),
       {config, "clusters[c].certificate-authority", "/does/not/exist", "No such file"}},
      {Kubeconfig("{server: 'https://h', insecure-skip-tls-verify: true, "
                  "certificate-authority-data: " +
                      EncodeBase64(kPem) + "}",
                  "{token: t}"),
       {"clusters[c].insecure-skip-tls-verify", "excludes"}},
      {Kubeconfig("{server: 'https://h', insecure-skip-tls-verify: 'yes'}", "{token: t}"),
       {"insecure-skip-tls-verify", "true or false"}},
      {Kubeconfig(good, "{client-certificate-data: " + EncodeBase64(kPem) + "}"),
       {"users[u].client-key: is missing"}},
      {Kubeconfig(good, "{tokenFile: /does/not/exist}"),
       {"users[u].tokenFile", "/does/not/exist", "No such file"}},
      {Kubeconfig(good, "{auth-provider: {name: gcp}}"),
       {"users[u].auth-provider", "\"gcp\" is not supported", "exec"}},
      {Kubeconfig(good, "{token: t, as: admin}"), {"users[u].as", "impersonation"}},
      {Kubeconfig(good, "{exec: {apiVersion: client.authentication.k8s.io/v1}}"),
       {"users[u].exec.command", "missing"}},
      {Kubeconfig(good, "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}"),
       {"users[u].exec.apiVersion", "v1beta1", "v1alpha1"}},
      {Kubeconfig(good,
                  "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
                  "interactiveMode: Always}}"),
       {"users[u].exec.interactiveMode"}},
      {Kubeconfig(good,
                  "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
                  "args: [1]}}"),
       {"users[u].exec.args", "texts"}},
  };
  for (const Refusal& refusal : refusals) {
    const auto access = FromText(refusal.text);
    ASSERT_FALSE(access) << refusal.text;
    for (const std::string& word : refusal.words) {
      EXPECT_THAT(access.error().message, HasSubstr(word)) << refusal.text;
    }
  }
}

TEST(Kubeconfig, AFileThatCannotBeReadIsNoMissingOne) {
  const Folder folder;
  const auto access = FromText(Kubeconfig(
      "{server: 'https://h', certificate-authority: " + folder.path() + "}", "{token: t}"));
  ASSERT_FALSE(access);
  EXPECT_THAT(access.error().message, HasSubstr("Is a directory"));
}

TEST(Kubeconfig, SecretsStandNeitherInErrorsNorInWhatIsShown) {
  const std::string secret = "hunter2hunter2";
  const auto broken =
      FromText(Kubeconfig("{server: 17}", "{token: " + secret + ", password: " + secret + "}"));
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, Not(HasSubstr(secret)));

  const auto access = FromText(Kubeconfig(
      "{server: 'https://me:hunter2hunter2@h:6443', proxy-url: 'http://x:hunter2hunter2@p'}",
      "{token: hunter2hunter2, username: ann, password: hunter2hunter2, client-certificate-data: " +
          EncodeBase64(kPem) + ", client-key-data: " + EncodeBase64(kPem) + "}"));
  ASSERT_TRUE(access) << access.error().message;
  const std::string shown = access->Redacted();
  EXPECT_THAT(shown, Not(HasSubstr(secret)));
  EXPECT_THAT(shown, Not(HasSubstr("BEGIN")));
  for (const char* word : {"https://h:6443", "/home/me/.kube/config, context dev", "token",
                           "client certificate", "user name", "proxy"}) {
    EXPECT_THAT(shown, HasSubstr(word));
  }
}

TEST(Pod, FindsItsServerTokenAndNamespace) {
  const Folder folder;
  folder.Write("token", "abc\n");
  folder.Write("ca.crt", kPem);
  folder.Write("namespace", "hopwise-system\n");
  const Environment environment(
      {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  const auto access = AccessInPod(folder.path());
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->ca_pem, kPem);
  EXPECT_EQ(access->token_file, folder.path() + "/token");
  EXPECT_EQ(access->token, "") << "it changes; the file is what counts";
  EXPECT_EQ(access->ns, "hopwise-system");
  EXPECT_THAT(access->Redacted(), HasSubstr("the pod"));
}

TEST(Pod, PutsAnIpv6AddressInBracketsAndMayLackACa) {
  const Folder folder;
  folder.Write("token", "abc");
  const Environment environment(
      {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  const auto access = AccessInPod(folder.path());
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->ca_pem, "");
  EXPECT_EQ(access->ns, "default");
}

TEST(Pod, SaysWhatIsMissing) {
  const Folder folder;
  {
    const Environment environment(
        {{"KUBERNETES_SERVICE_HOST", ""}, {"KUBERNETES_SERVICE_PORT", ""}});
    EXPECT_THAT(AccessInPod(folder.path()).error().message, HasSubstr("KUBERNETES_SERVICE_HOST"));
  }
  const Environment environment(
      {{"KUBERNETES_SERVICE_HOST", "h"}, {"KUBERNETES_SERVICE_PORT", "1"}});
  EXPECT_THAT(AccessInPod(folder.path()).error().message, HasSubstr(folder.path() + "/token"));
  folder.Write("token", "\n");
  EXPECT_THAT(AccessInPod(folder.path()).error().message, HasSubstr("is empty"));
}

TEST(LoadAccess, LooksAtTheFlagThenTheListThenTheHomeFolder) {
  const Folder folder;
  const auto write = [&](const std::string& name) {
    return folder.Write(name,
                        Kubeconfig("{server: 'https://" + name.substr(0, 4) + "'}", "{token: t}"));
  };
  const std::string flag = write("flag");
  const std::string list = write("list");
  write("home/.kube/config");
  const std::vector<std::pair<std::string, std::string>> no_pod = {
      {"KUBERNETES_SERVICE_HOST", ""}, {"HOME", folder.path() + "/home"}};
  {
    const Environment environment(Environment::Values{{"KUBECONFIG", "/not/there:" + list + ":"}});
    EXPECT_EQ(LoadAccess(Flag(flag))->server, "https://flag");
    EXPECT_EQ(LoadAccess({})->server, "https://list") << "the first of the list is not there";
    EXPECT_THAT(LoadAccess({})->source, HasSubstr(list));
  }
  const Environment environment({{"KUBECONFIG", ""}, no_pod[0], no_pod[1]});
  EXPECT_EQ(LoadAccess({})->server, "https://home");
}

TEST(LoadAccess, SaysWhereItLookedWhenThereIsNothing) {
  const Folder folder;
  const Environment environment(
      {{"KUBECONFIG", ""}, {"KUBERNETES_SERVICE_HOST", ""}, {"HOME", folder.path()}});
  const auto nothing = LoadAccess({});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kNotFound);
  for (const std::string& word :
       {folder.path() + "/.kube/config", std::string("KUBECONFIG"), std::string("--kubeconfig")}) {
    EXPECT_THAT(nothing.error().message, HasSubstr(word));
  }
  const auto absent = LoadAccess(Flag("/not/there"));
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("--kubeconfig"));
  EXPECT_THAT(absent.error().message, HasSubstr("/not/there"));
  EXPECT_EQ(LoadAccess(Master("http://127.0.0.1:8080"))->server, "http://127.0.0.1:8080");

  const Environment list(Environment::Values{{"KUBECONFIG", "/not/there:/nor/this"}});
  EXPECT_THAT(LoadAccess({}).error().message, HasSubstr("/not/there:/nor/this"));
}

TEST(Base64, DecodesWhatItEncodesAndRefusesTheRest) {
  for (const std::string bytes : {"", "a", "ab", "abc", "abcd", "\x01\xff\x7f"}) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)).value(), bytes);
  }
  EXPECT_EQ(DecodeBase64(EncodeBase64(std::string("\0\0", 2))).value(), std::string("\0\0", 2));
  EXPECT_EQ(DecodeBase64("YW\nJj\r\n").value(), "abc") << "lines may be wrapped";
  for (const std::string bad : {"Y", "YW", "YWI", "YWJ", "Y===", "YW=j", "YW!j", "====", "YWJj="}) {
    EXPECT_FALSE(DecodeBase64(bad)) << bad;
  }
}

}  // namespace
}  // namespace hopwise::kube

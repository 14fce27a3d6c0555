// Paths and names, what answers mean, and how waits grow.
#include "kube/resources.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kube/backoff.h"
#include "kube/errors.h"
#include "kube/fake_transport.h"

namespace hopwise::kube {
namespace {

TEST(Paths, FollowGroupVersionNamespaceAndName) {
  EXPECT_EQ(CollectionPath(kPods), "/api/v1/pods");
  EXPECT_EQ(CollectionPath(kPods, "ml"), "/api/v1/namespaces/ml/pods");
  EXPECT_EQ(CollectionPath(kPodGroups, "ml"),
            "/apis/scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups");
  EXPECT_EQ(ObjectPath(kPods, "ml", "a"), "/api/v1/namespaces/ml/pods/a");
  EXPECT_EQ(ObjectPath(kPods, "ml", "a", "binding"), "/api/v1/namespaces/ml/pods/a/binding");
}

TEST(Paths, OfAClusterWideKindHaveNoNamespace) {
  EXPECT_EQ(CollectionPath(kNodes, "ml"), "/api/v1/nodes");
  EXPECT_EQ(ObjectPath(kQueues, "ml", "q", "status"),
            "/apis/scheduling.volcano.sh/v1beta1/queues/q/status");
}

TEST(Paths, EscapeWhatWouldEndASegmentOrAValue) {
  EXPECT_EQ(UrlEscape("az-AZ.09_~"), "az-AZ.09_~");
  EXPECT_EQ(UrlEscape("a/b c&d=%"), "a%2Fb%20c%26d%3D%25");
  EXPECT_EQ(UrlEscape("\xc3\xa9"), "%C3%A9");
  EXPECT_EQ(ObjectPath(kPods, "ml", "../x"), "/api/v1/namespaces/ml/pods/..%2Fx");
}

TEST(Names, AreAsRbacHasThem) {
  EXPECT_EQ(ResourceName(kPods), "pods");
  EXPECT_EQ(ResourceName(kPodGroups), "podgroups.scheduling.volcano.sh");
}

TEST(BackoffWaits, DoubleUpToTheMostAndStartAnewAfterAReset) {
  Backoff backoff(Millis(800), Seconds(30));
  for (const int64_t ms : {800, 1600, 3200, 6400, 12'800, 25'600, 30'000, 30'000}) {
    EXPECT_EQ(backoff.Next(0), Millis(ms));
  }
  backoff.Reset();
  EXPECT_EQ(backoff.Next(0), Millis(800));
}

TEST(BackoffWaits, LieBetweenTheWaitAndTwiceIt) {
  for (uint64_t random = 0; random < 1'000'000'000; random += 99'999'937) {
    Backoff backoff(Millis(800), Seconds(30));
    const Duration wait = backoff.Next(random * 17);
    EXPECT_GE(wait, Millis(800));
    EXPECT_LT(wait, Millis(1600));
  }
  EXPECT_GT(Backoff(Millis(800), Seconds(30)).Next(UINT64_MAX), Millis(800));
}

TEST(BackoffWaits, OfNothingAndOfTheLongestAreWaitsToo) {
  Backoff none(Duration{}, Duration{});
  EXPECT_EQ(none.Next(7), Duration{});
  Backoff longest(Duration{INT64_MAX / 3}, Duration{INT64_MAX / 2});
  longest.Next(1);
  EXPECT_EQ(longest.Next(0), Duration{INT64_MAX / 2});
}

// --- what an answer means

std::string StatusBody(const std::string& reason, const std::string& message,
                       const std::string& details = "{}") {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" +
         message + R"(","reason":")" + reason + R"(","details":)" + details + "}";
}

struct Meaning {
  std::string name;
  Response response;
  std::string verb, object;
  Failure failure;
  bool retriable;
};

TEST(AnErrorsMeaning, FollowsStatusVerbAndReason) {
  const std::vector<Meaning> table = {
      {"200", Reply(200), "list", "", Failure::kNone, false},
      {"201", Reply(201), "create", "a/b", Failure::kNone, false},
      {"no answer", Reply(0), "list", "", Failure::kUnreachable, true},
      {"400", Reply(400), "list", "", Failure::kInvalid, false},
      {"401", Reply(401), "list", "", Failure::kUnauthorized, true},
      {"403", Reply(403), "list", "", Failure::kForbidden, false},
      {"404 of a list", Reply(404, "404 page not found\n"), "list", "", Failure::kNoSuchKind,
       false},
      {"404 of a watch", Reply(404), "watch", "", Failure::kNoSuchKind, false},
      {"404 of an object", Reply(404), "patch", "ml/a", Failure::kNotFound, false},
      {"404 of a create, no such kind", Reply(404, "404 page not found"), "create", "",
       Failure::kNoSuchKind, false},
      {"404 of a create, no such namespace",
       Reply(404, StatusBody("NotFound", "namespaces x not found", R"({"name":"x"})")), "create",
       "", Failure::kNotFound, false},
      {"405", Reply(405), "delete", "a", Failure::kInvalid, false},
      {"409", Reply(409), "update", "a", Failure::kConflict, false},
      {"410", Reply(410), "list", "", Failure::kExpired, false},
      {"Expired by its reason", Reply(500, StatusBody("Expired", "too old")), "watch", "",
       Failure::kExpired, false},
      {"Gone by its reason", Reply(400, StatusBody("Gone", "gone")), "watch", "", Failure::kExpired,
       false},
      {"a version ahead of the server's",
       Reply(504, StatusBody("Timeout", "Too large resource version",
                             R"({"causes":[{"reason":"ResourceVersionTooLarge"}]})")),
       "watch", "", Failure::kExpired, false},
      {"422", Reply(422), "create", "a", Failure::kInvalid, false},
      {"429", Reply(429), "create", "a", Failure::kThrottled, true},
      {"500", Reply(500), "list", "", Failure::kServer, true},
      {"503", Reply(503), "list", "", Failure::kServer, true},
      {"302", Reply(302), "list", "", Failure::kServer, true},
  };
  for (const Meaning& c : table) {
    SCOPED_TRACE(c.name);
    const ApiError error = ErrorOf(c.response, c.verb, kPods, c.object);
    EXPECT_EQ(error.failure, c.failure);
    EXPECT_EQ(error.ok(), c.failure == Failure::kNone);
    EXPECT_EQ(error.retriable(), c.retriable);
    EXPECT_EQ(error.message.empty(), error.ok());
  }
}

TEST(AnErrorsMessage, OfAForbiddenListNamesUserVerbResourceAndWhatToGrant) {
  const ApiError error = ErrorOf(
      Reply(403, StatusBody("Forbidden",
                            R"(podgroups.scheduling.volcano.sh is forbidden: User )"
                            R"(\"system:serviceaccount:a:b\" cannot list resource )"
                            R"(\"podgroups\" in API group \"scheduling.volcano.sh\" at the )"
                            R"(cluster scope)")),
      "list", kPodGroups);
  EXPECT_EQ(error.message,
            "cannot list podgroups.scheduling.volcano.sh: forbidden: "
            "User \"system:serviceaccount:a:b\" cannot list resource \"podgroups\" in API group "
            "\"scheduling.volcano.sh\" at the cluster scope; grant the verb \"list\" on "
            "\"podgroups\" in API group \"scheduling.volcano.sh\"");
  EXPECT_EQ(error.reason, "Forbidden");
  EXPECT_EQ(error.status, 403);
}

TEST(AnErrorsMessage, OfAForbiddenSubresourceNamesTheSubresource) {
  const ApiError error = ErrorOf(
      Reply(403, StatusBody("Forbidden", R"(User \"u\" cannot patch resource \"pods/status\")")),
      "patch", kPods, "ml/a");
  EXPECT_EQ(error.message,
            "cannot patch pods ml/a: forbidden: User \"u\" cannot patch resource \"pods/status\"; "
            "grant the verb \"patch\" on \"pods/status\" in the core API group (\"\")");
}

TEST(AnErrorsMessage, OfAnAdmissionPluginAsksForNoRight) {
  const ApiError error =
      ErrorOf(Reply(403, StatusBody("Forbidden", R"(pods \"a\" is forbidden: exceeded quota: q)")),
              "create", kPods, "ml/a");
  EXPECT_EQ(error.message, "cannot create pods ml/a: pods \"a\" is forbidden: exceeded quota: q");
}

TEST(AnErrorsMessage, OfAnAdmissionWebhookAsksForNoRight) {
  const std::string said = R"(admission webhook \"validatequeue\" denied the request: no)";
  const ApiError error = ErrorOf(Reply(403, StatusBody("Forbidden", said)), "delete", kQueues, "q");
  EXPECT_EQ(
      error.message,
      "cannot delete queues.scheduling.volcano.sh q: admission webhook \"validatequeue\" denied "
      "the request: no");
}

TEST(AnErrorsMessage, OfBadCredentialsSaysWhatToDo) {
  const ApiError error =
      ErrorOf(Reply(401, StatusBody("Unauthorized", "Unauthorized")), "list", kNodes);
  EXPECT_NE(error.message.find("cannot list nodes: "), std::string::npos);
  EXPECT_NE(error.message.find("expired or wrong"), std::string::npos);
  EXPECT_NE(error.message.find("renew the token"), std::string::npos);
}

TEST(AnErrorsMessage, WithoutAnAnswerNamesServerAndCause) {
  Response response;
  response.error = "cannot connect to 127.0.0.1:6443: refused";
  EXPECT_EQ(ErrorOf(response, "watch", kPods).message,
            "cannot watch pods: no answer from the API server: "
            "cannot connect to 127.0.0.1:6443: refused");
}

TEST(AnErrorsMessage, OfABodyThatIsNoStatusShowsItsBeginningOnOneLine) {
  const ApiError error =
      ErrorOf(Reply(502, "<html>\nBad\tGateway\n" + std::string(5000, 'x')), "list", kPods);
  EXPECT_NE(error.message.find("HTTP status 502: <html> Bad Gateway xxx"), std::string::npos);
  EXPECT_LT(error.message.size(), 300U);
}

TEST(RetryAfter, IsTheHeadersElseTheStatusObjects) {
  Response response =
      Reply(429, StatusBody("TooManyRequests", "busy", R"({"retryAfterSeconds":7})"));
  EXPECT_EQ(ErrorOf(response, "list", kPods).retry_after, Seconds(7));
  response.retry_after = Seconds(2);
  EXPECT_EQ(ErrorOf(response, "list", kPods).retry_after, Seconds(2));
  EXPECT_EQ(ErrorOf(Reply(429), "list", kPods).retry_after, Duration{});
}

// Whatever a broken proxy sends: an error, never a crash.
TEST(AnErrorsMessage, SurvivesBodiesOfEveryShape) {
  const std::string deep = std::string(100'000, '[');
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("null"), deep,
        std::string(R"({"kind":"Status","message":5,"details":{"causes":[1,{"reason":2}]}})"),
        std::string(R"({"kind":"Status","details":{"retryAfterSeconds":9223372036854775807}})"),
        std::string("\xff\xfe\x00", 3)}) {
    const ApiError error = ErrorOf(Reply(500, body), "list", kPods);
    EXPECT_EQ(error.failure, Failure::kServer);
    EXPECT_LE(error.retry_after, Seconds(3600));
  }
}

}  // namespace
}  // namespace hopwise::kube

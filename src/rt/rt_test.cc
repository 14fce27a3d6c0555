// Clocks, mailbox, signals and log lines.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/clock.h"
#include "rt/files.h"
#include "rt/log_sink.h"
#include "rt/mailbox.h"
#include "rt/signals.h"

namespace hopwise::rt {
namespace {

TEST(Clock, MonotonicNeverGoesBackAndWallIsAfter2026) {
  const Time first = MonotonicNow();
  EXPECT_LE(first, MonotonicNow());
  EXPECT_EQ(FormatRfc3339(WallNow()).substr(0, 2), "20");
  EXPECT_GT(WallNow(), ParseRfc3339("2026-01-01T00:00:00Z").value());
}

TEST(Clock, KnowsWhatTheProcessUses) {
  EXPECT_GT(ResidentBytes(), 1 << 20);
  EXPECT_GE(CpuUsed().ns, 0);
}

TEST(SmallFile, IsReadWholeOrRefusedWithTheReason) {
  std::string pattern = (std::filesystem::temp_directory_path() / "hopwise-rt-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::string text(40'000, 'x');
  std::ofstream(folder / "file") << text;
  const std::string path = (folder / "file").string();
  EXPECT_EQ(ReadSmallFile(path, text.size()).value(), text);
  EXPECT_EQ(ReadSmallFile(path, text.size() - 1).error().code, ErrorCode::kTooLarge);
  const Error none = ReadSmallFile(path + "-none", 10).error();
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_EQ(none.message, "cannot read " + path + "-none: No such file or directory");
  const Error directory = ReadSmallFile(folder.string(), 10).error();
  EXPECT_EQ(directory.code, ErrorCode::kIo);
  EXPECT_EQ(directory.message, "cannot read " + folder.string() + ": Is a directory");
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadSmallFile(pipe, 10).error().message,
            "cannot read " + pipe + ": it is a pipe, not a file")
      << "and nobody waited for a writer";
  std::filesystem::remove_all(folder);
}

TEST(Mailbox, KeepsTheOrderOfEachSenderAndLosesNothing) {
  constexpr int kEach = 2000;
  Mailbox<std::pair<int, int>> mailbox;
  std::vector<std::thread> senders;
  for (int sender = 0; sender < 3; ++sender) {
    senders.emplace_back([&mailbox, sender] {
      for (int i = 0; i < kEach; ++i) {
        mailbox.Post({sender, i});
      }
    });
  }
  std::array<int, 3> next{};
  for (int taken = 0; taken < 3 * kEach;) {
    const auto messages = mailbox.Take(Seconds(10));
    ASSERT_FALSE(messages.empty()) << "after " << taken;
    for (const auto& [sender, i] : messages) {
      ASSERT_EQ(i, next.at(static_cast<size_t>(sender))++);
      ++taken;
    }
  }
  for (std::thread& sender : senders) {
    sender.join();
  }
  EXPECT_TRUE(mailbox.Take(Duration{}).empty());
}

TEST(Signals, ArriveAsCallsOnAThreadOfTheirOwn) {
  std::promise<std::pair<int, std::thread::id>> got;
  const Signals signals({SIGUSR1},
                        [&](int signal) { got.set_value({signal, std::this_thread::get_id()}); });
  kill(getpid(), SIGUSR1);
  auto future = got.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  const auto [signal, thread] = future.get();
  EXPECT_EQ(signal, SIGUSR1);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(SurviveOutput, AReaderThatIsGoneEndsNothing) {
  SurviveOutput();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  MakeLogSink(LogFormat::kText, ends[1])(LogRecord{LogLevel::kInfo, "told", {}});
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(SurviveOutput, StandardStreamsThatWereClosedAreNotTakenByOthers) {
  const int kept = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  SurviveOutput();
  const int next = open("/dev/null", O_RDONLY);
  EXPECT_GT(next, STDERR_FILENO);
  close(next);
  dup2(kept, STDIN_FILENO);
  close(kept);
}

// What a sink writes for one record, its time replaced by T.
std::string LineOf(LogFormat format, std::string_view gang = "ml/a b\n\"c\"") {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const LogSink sink = MakeLogSink(format, ends[1]);
  const std::vector<LogField> fields = {{"gang", gang}, {"pods", 16}};
  sink(LogRecord{LogLevel::kWarning, "gang_waits", fields});
  std::array<char, 512> buffer{};
  const ssize_t n = read(ends[0], buffer.data(), buffer.size());
  close(ends[0]);
  close(ends[1]);
  std::string line(buffer.data(), static_cast<size_t>(n));
  const size_t at = line.find("20");
  return line.replace(at, std::string("2026-01-02T03:04:05.678Z").size(), "T");
}

TEST(LogSink, TextIsOneAlignedLine) {
  EXPECT_EQ(LineOf(LogFormat::kText), "T warning gang_waits gang=\"ml/a b\\n\\\"c\\\"\" pods=16\n");
}

TEST(LogSink, JsonIsOneObjectWithNumbersAsNumbers) {
  EXPECT_EQ(LineOf(LogFormat::kJson), R"({"time":"T","level":"warning","event":"gang_waits",)"
                                      R"("gang":"ml/a b\u000a\"c\"","pods":16})"
                                      "\n");
}

TEST(LogSink, JsonIsUtf8WhateverIsLogged) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
      {"long \xc0\xaf", "long \xef\xbf\xbd\xef\xbf\xbd"},
      {"half \xed\xa0\x80", "half \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
  };
  for (const auto& [text, written] : cases) {
    EXPECT_NE(LineOf(LogFormat::kJson, text).find("\"gang\":\"" + written + "\""),
              std::string::npos)
        << written;
  }
}

}  // namespace
}  // namespace hopwise::rt

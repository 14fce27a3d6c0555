// The configuration's file: what counts as a change of it.
#include "daemon/config_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace hopwise::daemon {
namespace {

class ConfigFileTest : public ::testing::Test {
 protected:
  ConfigFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hopwise-conf-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "volcano-scheduler.conf";
  }
  ~ConfigFileTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  using Seen = ConfigFile::Seen;
  std::filesystem::path folder_, path_;
};

TEST_F(ConfigFileTest, OnlyAChangeOfTheContentIsAChange) {
  Write("actions: \"allocate\"\n");
  ConfigFile file(path_.string());
  ASSERT_TRUE(LoadSchedulerConf(file).has_value());
  EXPECT_EQ(file.Look(), Seen::kSame);
  std::ofstream(folder_ / "other") << "x";
  Write("actions: \"allocate\"\n");  // written again, the same
  EXPECT_EQ(file.Look(), Seen::kSame);
  Write("actions: \"enqueue, allocate\"\n");
  EXPECT_EQ(file.Look(), Seen::kChanged);
  ASSERT_TRUE(LoadSchedulerConf(file).has_value());
  EXPECT_EQ(file.Look(), Seen::kSame);
}

TEST_F(ConfigFileTest, AFileThatIsAwayIsNoChangeUntilItStaysAway) {
  Write("actions: \"allocate\"\n");
  ConfigFile file(path_.string());
  ASSERT_TRUE(LoadSchedulerConf(file).has_value());
  std::filesystem::remove(path_);
  const auto looks = static_cast<int>(kMostGone.ns / kConfigLook.ns);
  for (int i = 1; i < looks; ++i) {
    EXPECT_EQ(file.Look(), Seen::kSame);
  }
  EXPECT_EQ(file.Look(), Seen::kGone);
  EXPECT_EQ(file.Look(), Seen::kSame) << "told once";
  Write("actions: \"allocate\"\n");
  EXPECT_EQ(file.Look(), Seen::kSame) << "what it held before";
}

TEST_F(ConfigFileTest, ABadFileIsRefusedByNameAndNotReadAgainUntilItChanges) {
  Write("actions: \"fly\"\n");
  ConfigFile file(path_.string());
  const auto config = LoadSchedulerConf(file);
  ASSERT_FALSE(config.has_value());
  EXPECT_NE(config.error().message.find(path_.string()), std::string::npos);
  EXPECT_NE(config.error().message.find("fly"), std::string::npos);
  EXPECT_EQ(file.Look(), Seen::kSame);
}

TEST_F(ConfigFileTest, WhatCannotBeReadIsNamed) {
  ConfigFile file((folder_ / "absent").string());
  const auto config = LoadSchedulerConf(file);
  ASSERT_FALSE(config.has_value());
  EXPECT_NE(config.error().message.find("No such file"), std::string::npos);
}

TEST_F(ConfigFileTest, NoFileIsTheDefault) {
  ConfigFile file("");
  EXPECT_TRUE(LoadSchedulerConf(file).has_value());
  EXPECT_EQ(file.Look(), Seen::kSame);
}

}  // namespace
}  // namespace hopwise::daemon

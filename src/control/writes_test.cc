#include "control/writes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hopwise::control {
namespace {

TEST(MergeDiff, IsNullWhereNothingDiffers) {
  EXPECT_TRUE(MergeDiff({{"a", 1}}, {{"a", 1}}).is_null());
}

TEST(MergeDiff, NamesOnlyWhatDiffers) {
  const Json from = {{"a", 1}, {"b", {{"c", 2}, {"d", 3}}}, {"gone", 4}};
  const Json to = {{"a", 1}, {"b", {{"c", 5}, {"d", 3}}}, {"new", {6}}};
  const Json wanted = {{"b", {{"c", 5}}}, {"gone", nullptr}, {"new", {6}}};
  EXPECT_EQ(MergeDiff(from, to), wanted);
}

// Objects two levels deep, of few names, so that they often meet.
Json Tree(int depth) {
  Json tree = Json::object();
  for (const char* name : {"a", "b", "c"}) {
    const int kind = *rc::gen::inRange(0, depth > 0 ? 4 : 3);
    if (kind == 1) {
      tree[name] = *rc::gen::inRange(0, 3);
    } else if (kind == 2) {
      tree[name] = Json::array({*rc::gen::inRange(0, 3)});
    } else if (kind == 3) {
      tree[name] = Tree(depth - 1);
    }
  }
  return tree;
}

RC_GTEST_PROP(MergeDiff, MakesTheOneOfTheOther, ()) {
  Json from = Tree(2);
  const Json to = Tree(2);
  const Json patch = MergeDiff(from, to);
  if (!patch.is_null()) {
    from.merge_patch(patch);
  }
  RC_ASSERT(from == to);
}

}  // namespace
}  // namespace hopwise::control

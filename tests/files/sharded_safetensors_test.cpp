#include "files/sharded_safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

// A folder with files of one number for each name, and an index.
class Shards {
 public:
  void file(const std::string& name, const std::vector<std::string>& tensors) {
    std::vector<float> values;
    std::vector<TensorView> views;
    values.reserve(tensors.size());
    for (const std::string& tensor : tensors) {
      values.push_back(next_++);
      views.push_back({tensor, {DType::F32, {}}, std::as_bytes(std::span(&values.back(), 1))});
    }
    write_safetensors(folder_ / name, views);
  }
  void index(const std::string& text) { TemporaryFolder::put(path(), text); }
  void index_of(const std::map<std::string, std::string>& of) {
    std::string text = R"({"metadata":{"total_size":12},"weight_map":{)";
    for (const auto& [tensor, file] : of)
      text += (text.back() == '{' ? "\"" : ",\"") + tensor + "\":\"" + file + "\"";
    index(text + "}}");
  }
  Path path() const { return folder_ / "model.safetensors.index.json"; }
  Path operator/(const std::string& name) const { return folder_ / name; }
  // What opening them says; "" where it goes.
  std::string problem() const {
    try {
      ShardedSafetensors::of_index(path());
      return "";
    } catch (const DataError& e) {
      return e.what();
    }
  }

 private:
  TemporaryFolder folder_;
  float next_ = 1;
};

float value_of(const TensorView& t) {
  float value = 0;
  std::memcpy(&value, t.bytes.data(), sizeof value);
  return value;
}

TEST(ShardedSafetensors, ReadsSeveralFilesAsOne) {
  Shards s;
  s.file("one", {"a", "c"});
  s.file("two", {"b"});
  s.index_of({{"a", "one"}, {"b", "two"}, {"c", "one"}});
  ShardedSafetensors copy = ShardedSafetensors::of_index(s.path());
  {
    const ShardedSafetensors files = ShardedSafetensors::of_index(s.path());
    copy = files;
  }
  EXPECT_EQ(value_of(copy.at("a")), 1);
  EXPECT_EQ(value_of(copy.at("c")), 2);
  EXPECT_EQ(value_of(*copy.find("b")), 3);
  EXPECT_EQ(copy.find("d"), nullptr);
  EXPECT_THROW(copy.at("d"), DataError);
  std::string names;
  for (const TensorView* t : copy.tensors()) names += t->name;
  EXPECT_EQ(names, "acb");
  const ShardedSafetensors one = ShardedSafetensors::of_file(s / "two");
  EXPECT_EQ(one.tensors().size(), 1u);
  EXPECT_EQ(value_of(one.at("b")), 3);
}

TEST(ShardedSafetensors, SaysAllThatDoesNotBelongTogether) {
  Shards s;
  s.file("one", {"a", "b"});
  s.index_of({{"a", "one"}, {"b", "two"}, {"c", "two"}, {"d", "three"}});
  std::string said = s.problem();
  EXPECT_NE(said.find("'three' is missing, with 1 tensor\n"), said.npos) << said;
  EXPECT_NE(said.find("'two' is missing, with 2 tensors"), said.npos) << said;
  EXPECT_NE(said.find("E0615"), said.npos) << said;

  s.file("two", {"b", "e"});
  s.file("three", {"c"});
  said = s.problem();
  for (const char* line :
       {"'b' is in 'one' and in 'two'", "'e' is in 'two', and the index does not name it",
        "'c' is in 'three', and the index names 'two'",
        "'d' is not in 'three', which the index names"})
    EXPECT_NE(said.find(line), said.npos) << line << "\n" << said;

  TemporaryFolder::put(s / "two", "cut");  // every file is checked as one that stands alone
  EXPECT_NE(s.problem().find("E0610"), said.npos);
}

TEST(ShardedSafetensors, RefusesWhatIsNoIndex) {
  Shards s;
  s.file("one", {"a"});
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})",
                           R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":""}})",
                           R"({"weight_map":{"a":"../one"}})", R"({"weight_map":{"a":"/one"}})",
                           R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":"one)"}) {
    s.index(text);
    EXPECT_NE(s.problem().find("E0615"), std::string::npos) << text;
  }
  s.index(R"({"weight_map":{"a":"one"}})");
  EXPECT_EQ(s.problem(), "");
}

}  // namespace
}  // namespace aloft

// Which examples are held out for validation: one rule for all sources that lie in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "data/tokenizer_json.h"
#include "recipe/recipe.h"
#include "sources/source_kind.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

constexpr int kExamples = 40;

std::string quoted(const Path& path) { return "\"" + path.string() + "\""; }

// The labels of the validation part, in its order.
std::vector<std::int32_t> held_out(const Recipe& recipe, std::string_view source) {
  const SourceKind& kind = source_of(recipe);
  EXPECT_EQ(kind.name, source);
  const auto data = kind.open(recipe, true);
  const auto columns = data->columns();
  const auto labels = std::ranges::find(columns, "labels") - columns.begin();
  const auto examples = data->validation(recipe);
  std::vector<std::int32_t> all;
  while (const ExampleBatch* batch = examples->next()) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(batch->rows));
    const auto column = batch->columns[static_cast<std::size_t>(labels)];
    std::memcpy(rows.data(), column.data(), rows.size() * sizeof(std::int32_t));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

TEST(HeldOut, AreTheSameExamplesOfEverySource) {
  const TemporaryFolder folder;
  std::string table, lines;
  for (int i = 0; i < kExamples; ++i) {  // each has its number for a label
    table += "1," + std::to_string(i) + "\n";
    lines += "{\"text\": \"a\", \"label\": " + std::to_string(i) + "}\n";
  }
  TemporaryFolder::put(folder / "a.csv", table);
  TemporaryFolder::put(folder / "a.jsonl", lines);
  TemporaryFolder::put(folder / "tokenizer.json", tokenizer_json(word_level({"a"})).dump());
  TemporaryFolder::put(folder / "r.toml", "[data]\nvalidation = 0.3\n");
  const Path file = folder / "r.toml";
  const auto of_table = held_out(
      load_recipe(file, {{"model.family", "\"mlp\""}, {"data.csv", quoted(folder / "a.csv")}}),
      "arrays");
  EXPECT_EQ(of_table.size(), 12u);
  EXPECT_TRUE(std::ranges::is_sorted(of_table));
  EXPECT_EQ(of_table, held_out(load_recipe(file, {{"model.family", "\"bert\""},
                                                  {"data.labelled", quoted(folder / "a.jsonl")},
                                                  {"data.tokenizer.path", quoted(folder.path())}}),
                               "labelled"));
}

}  // namespace
}  // namespace aloft

#include "cli/recipe_subject.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "recipe/open_data.h"
#include "recipe/run_length.h"

namespace aloft::cli {

SettingValues facts_without_training(const Recipe& recipe) {
  const TokenizerSpec& t = recipe.data.tokenizer;
  const auto vocab = [](std::int64_t ids) { return SettingValues{{"vocab", ids}}; };
  if (recipe.model.whole("vocab") > 0) return {};
  const bool is_text = recipe.data.train_tokens.empty();
  if (is_text && t.kind == "byte") return vocab(256);
  if (is_text && t.kind == "bpe" && t.path.empty()) return vocab(t.vocab);
  try {
    return facts_of(recipe, open_data(recipe, false));
  } catch (const DataError& e) {
    if (e.code() != "E0510" && e.code() != "E0601") throw;
    constexpr std::int64_t kAssumed = 256;
    log_warning(
        "the recipe's data is not there, so its vocabulary is taken as {} ids; "
        "--set 'data.text=[\"FILE\"]' or --set model.vocab=N for the true one ({})",
        kAssumed, e.headline());
    return vocab(kAssumed);
  }
}

void settle_length_without_training(Recipe& recipe) {
  if (recipe.train.epochs <= 0) return;
  try {
    settle_length(recipe, open_data(recipe, false).train.size());
  } catch (const DataError& e) {
    if (e.code() != "E0510" && e.code() != "E0601") throw;
    throw UserError("E0725", "the recipe counts in epochs, and its data is not there")
        .saw(fmt::format("train.epochs = {:g}, and {}: {}", recipe.train.epochs, e.headline(),
                         recipe.data.train_tokens.empty() ? join(recipe.data.text, ", ")
                                                          : recipe.data.train_tokens))
        .need("the number of steps, by which the schedule goes")
        .advice("--set train.steps=N, or --set 'data.text=[\"FILE\"]'");
  }
}

void need_compiled(const Recipe& recipe) {
  if (recipe.train.mode == "graph") return;
  const auto it = recipe.origin.find("train.mode");
  throw UserError("E0723", "this verb looks at compiled programs, and the recipe asks for none")
      .at(it == recipe.origin.end() ? "default" : it->second)
      .saw("train.mode = " + recipe.train.mode)
      .advice("--set train.mode=graph");
}

void refuse_unread(const Recipe& recipe, bool (*is_read)(std::string_view key),
                   std::string_view what) {
  std::vector<std::string> unread;
  for (const auto& [key, origin] : recipe.origin)
    if (origin == kSetOrigin && !key.starts_with("precision.") && !is_read(key))
      unread.push_back(key);
  if (unread.empty()) return;
  throw UserError("E0724", fmt::format("--set {} mean{} nothing here", join(unread, ", "),
                                       unread.size() == 1 ? "s" : ""))
      .saw(fmt::format("{}, and no run is made", what))
      .advice("leave it out; `aloft train` reads it");
}

}  // namespace aloft::cli

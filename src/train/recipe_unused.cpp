#include "train/recipe_unused.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "train/recipe_fields.h"

namespace aloft {
namespace {

using nlohmann::json;

json value_of(Recipe recipe, std::string_view key) {
  for (const RecipeField& f : recipe_fields(recipe))
    if (f.key == key) return std::visit([](const auto* v) { return json(*v); }, f.target);
  return nullptr;
}

// `key` is read only where `selector` has one of `values`.
struct Condition {
  std::string_view key, selector;
  std::vector<std::string_view> values;
};

const std::vector<Condition>& conditions() {
  static const std::vector<Condition> all = {
      {"optimizer.betas", "optimizer.kind", {"adam", "adamw"}},
      {"optimizer.eps", "optimizer.kind", {"adam", "adamw"}},
      {"optimizer.momentum", "optimizer.kind", {"momentum"}},
      {"optimizer.nesterov", "optimizer.kind", {"momentum"}},
      {"schedule.step_size", "schedule.kind", {"step"}},
      {"schedule.gamma", "schedule.kind", {"step"}},
      {"schedule.decay", "schedule.kind", {"wsd"}},
      {"schedule.final_lr", "schedule.kind", {"linear", "cosine", "step", "wsd"}},
      {"data.tokenizer.vocab", "data.tokenizer.kind", {"bpe"}},
      {"data.tokenizer.byte_fallback", "data.tokenizer.kind", {"char"}},
  };
  return all;
}

class Search {
 public:
  Search(const Recipe& recipe, bool replaced) : recipe_(recipe), replaced_(replaced) {}

  std::vector<UnusedKey> unused() {
    for (const Condition& c : conditions()) {
      const auto kind = value_of(recipe_, c.selector).get<std::string>();
      if (std::find(c.values.begin(), c.values.end(), kind) == c.values.end())
        report(c.key, c.selector, fmt::format("does nothing where {} is {}", c.selector, kind));
    }
    const DataSection& d = recipe_.data;
    if (d.train_tokens.empty()) {
      report("data.validation_tokens", "data.train_tokens", "needs data.train_tokens beside it");
    } else {
      report("data.text", "data.train_tokens", "is not read where data.train_tokens is given");
      report("data.validation", "data.train_tokens",
             "divides text; beside data.train_tokens it is data.validation_tokens that counts");
    }
    report_validation();
    if (recipe_.train.sample_tokens == 0)
      report("train.sample_every", "train.sample_tokens",
             "does nothing where train.sample_tokens is 0");
    if (!d.train_tokens.empty())
      for (const char* key :
           {"data.tokenizer.kind", "data.tokenizer.vocab", "data.tokenizer.byte_fallback"})
        report(key, "data.train_tokens",
               "makes a tokenizer of text; the one that made data.train_tokens is "
               "data.tokenizer.path");
    else if (!d.tokenizer.path.empty())
      for (const char* key : {"data.tokenizer.vocab", "data.tokenizer.byte_fallback"})
        report(key, "data.tokenizer.path", "does nothing where data.tokenizer.path names one");
    return std::move(found_);
  }

 private:
  // What counts evaluations needs some.
  void report_validation() {
    const DataSection& d = recipe_.data;
    const bool is_text = d.train_tokens.empty();
    if (is_text ? d.validation > 0 : !d.validation_tokens.empty()) return;
    const char* selector = is_text ? "data.validation" : "data.validation_tokens";
    const auto asked = [&](const char* key, std::int64_t count) {
      if (count > 0)
        report(key, selector,
               fmt::format("counts evaluations; there are none without {}",
                           is_text ? "data.validation above 0" : "data.validation_tokens"));
    };
    asked("train.patience", recipe_.train.patience);
    asked("train.keep_best", recipe_.train.keep_best);
  }

  std::string origin(std::string_view key) const {
    const auto it = recipe_.origin.find(std::string(key));
    return it == recipe_.origin.end() ? "" : it->second;
  }
  void report(std::string_view key, std::string_view selector, const std::string& why) {
    const std::string from = origin(key);
    const bool is_replaced = from != kSetOrigin && origin(selector) == kSetOrigin;
    if (from.empty() || (is_replaced && !replaced_) ||
        value_of(recipe_, key) == value_of(Recipe(), key))
      return;
    found_.push_back({std::string(key), why});
  }

  const Recipe& recipe_;
  bool replaced_;
  std::vector<UnusedKey> found_;
};

}  // namespace

std::vector<UnusedKey> unused_keys(const Recipe& recipe, bool replaced) {
  return Search(recipe, replaced).unused();
}

}  // namespace aloft

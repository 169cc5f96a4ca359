#include "precision/policy.h"

#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "precision/recipe.h"

namespace aloft {

struct Policy::Kept {
  PrecisionRecipe recipe;
  std::string text;
};

Policy::Policy(const PrecisionRecipe& recipe) {
  struct Table {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<const Kept>> by_text;  // a text has all that decides
  };
  static Table* const table = new Table;  // never destroyed: policies outlive every static object
  std::string text = print_precision(recipe);
  const std::lock_guard lock(table->mutex);
  std::unique_ptr<const Kept>& kept = table->by_text[text];
  if (!kept) {
    auto made = std::make_unique<Kept>(Kept{recipe, text});
    made->recipe.auto_reason.clear();
    kept = std::move(made);
  }
  kept_ = kept.get();
}

const PrecisionRecipe& Policy::recipe() const {
  ensure(kept_ != nullptr, "a recipe is asked for where one governs");
  return kept_->recipe;
}

const std::string& Policy::str() const {
  static const std::string none;
  return kept_ ? kept_->text : none;
}

}  // namespace aloft

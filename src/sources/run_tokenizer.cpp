#include "sources/run_tokenizer.h"

#include "base/error.h"
#include "base/log.h"
#include "data/tokenizer.h"

namespace aloft {

Path own_tokenizer(const Path& run) { return run / "tokenizer"; }

bool has_given_tokenizer(const Recipe& recipe, const Path& run) {
  const Path given = recipe.folder / recipe.data.tokenizer.path;
  const auto own = load_tokenizer(own_tokenizer(run));
  std::unique_ptr<Tokenizer> found;
  try {
    found = load_tokenizer(given);
  } catch (const DataError& e) {
    log_warning("data.tokenizer.path, {}: {}: the run goes on with its own, {}", given.string(),
                e.headline(), own_tokenizer(run).string());
    return false;
  }
  if (found->fingerprint() == own->fingerprint()) return true;
  throw UserError("E0817", "this recipe cannot go on with the run: its tokenizer is another one")
      .saw(given.string())
      .need("the run's own, " + own_tokenizer(run).string())
      .advice((recipe.data.tokenizer.path == recipe.model.init
                   ? "bring the tokenizer of that folder, which the run began from, back"
                   : "leave data.tokenizer as it was") +
              std::string(", or begin a new run"));
}

}  // namespace aloft

// What helps to choose an optimizer: of each kind what it is for, and rates that it was used with.
// `aloft recipes --json` says it, and docs/optimizers.md has it as a table.
#pragma once

#include <string_view>

namespace aloft::optim {

struct Advice {
  std::string_view use;    // "transformers, language models"
  std::string_view rates;  // with their sources
};

// Of a kind of catalog.inc, whose source has a function of it beside its record: lion_advice().
// InternalError where there is no such kind.
const Advice& advice_of(std::string_view kind);

}  // namespace aloft::optim

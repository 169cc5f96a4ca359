// Inside: keys of [optimizer] that other systems have and this one needs no word for, and kinds of
// schedules that a recipe cannot have.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace aloft {

struct ForeignKey {
  std::string_view key;
  std::string_view read_as;  // the key that it is here; empty: it changes nothing
  std::string_view why;      // that is so, or why there is nothing but `only`
  // The one value that is taken, as JSON; any other is refused. Empty: true and false are.
  std::string_view only = {};
  std::string_view kind = {};  // of the optimizer that has it; empty: all have
};

std::span<const ForeignKey> foreign_keys();
// Null where the key is none of them, or of other kinds.
const ForeignKey* foreign_key(std::string_view key, std::string_view kind);

// What to write for a scheduler of torch.optim.lr_scheduler, by its name there, such as
// "kind = \"cosine\""; "" of a word that is none.
std::string schedule_instead_of(std::string_view scheduler);

}  // namespace aloft

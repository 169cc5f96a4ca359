// Inside: which model the keys of [model] mean together: a family, a published size of it, or what
// a folder of Hugging Face says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/optimizer_mistakes.h"
#include "recipe/recipe.h"
#include "recipe/recipe_leaves.h"

namespace aloft {

inline constexpr const char* kSizeOrigin = " model.size";  // behind that of the size

// The family that the leaves mean: the one that is named, or that of the size; null where neither
// is known. What the command line says beats the file.
struct FamilyMeant {
  const models::ModelFamily* family = nullptr;
  bool is_set = false;  // on the command line
};
FamilyMeant family_meant(const std::vector<Leaf>& leaves);

// "[model] size" gives the settings that no other key sets; given on the command line it beats
// those of the file.
std::optional<KeyMistake> apply_size(Recipe& recipe);

// model.init: the folder that a run begins from.
struct FolderMeant {
  Path path;  // absolute
  models::ModelSpec spec;
  bool is_set = false;  // on the command line
};
// The one that the leaves name last; a relative path begins at `folder`, or where the program was
// started if the command line says it. Nothing of the weights is read. UserError E0718 where it is
// no such folder, DataError of models/huggingface.h.
std::optional<FolderMeant> folder_meant(const std::vector<Leaf>& leaves, const Path& folder);
// Takes from it the settings that no key sets, and its tokenizer where no key of [data] says one;
// named on the command line it beats the file. Returns the mistakes: keys that say another model.
std::vector<KeyMistake> apply_folder(Recipe& recipe, const FolderMeant& init);

// `path` as it is meant: without "." from `folder` on, or from where the program was started. ".."
// stays, which behind a link is not the folder before it.
Path anchored(const Path& path, const Path& folder, bool is_set);

}  // namespace aloft

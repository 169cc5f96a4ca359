// The models among the fixtures that tools/judge makes: folders of Hugging Face of any family. A
// new one is tested by lying there.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/huggingface.h"

namespace aloft {

// Names below tests/fixtures, in their order, of all models; programs of tests start where the tree
// begins.
inline std::vector<std::string> fixture_folders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fixtures"))
    if (models::is_huggingface_folder(entry.path())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Of those that classify texts, or of language models, which are all others.
inline std::vector<std::string> fixture_encoders(bool wanted = true) {
  std::vector<std::string> names = fixture_folders();
  std::erase_if(names, [&](const std::string& name) {
    const auto spec = models::huggingface_spec("tests/fixtures/" + name);
    return models::reads_text(*spec.family) != wanted;
  });
  return names;
}
inline std::vector<std::string> fixture_models() { return fixture_encoders(false); }

}  // namespace aloft

// The models among the fixtures that tools/judge makes: folders of Hugging Face of any family. A
// new one is tested by lying there.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/huggingface.h"

namespace aloft {

// Names below tests/fixtures, in their order, of language models; programs of tests start where the
// tree begins.
inline std::vector<std::string> fixture_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fixtures"))
    if (models::is_huggingface_folder(entry.path())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace aloft

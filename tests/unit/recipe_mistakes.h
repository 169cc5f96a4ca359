// What reading a recipe says of its mistakes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "recipe/recipe.h"

namespace aloft {

// The text of E0710, or "none".
inline std::string mistakes_of(const std::string& text, const std::vector<Override>& set = {}) {
  try {
    parse_recipe(text, "r.toml", set);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0710");
    return e.what();
  }
  return "none";
}

}  // namespace aloft

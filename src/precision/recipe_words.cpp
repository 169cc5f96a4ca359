#include "precision/recipe_words.h"

#include <cctype>
#include <cstddef>

#include "base/text.h"

namespace aloft {

std::string in_recipe_words(std::string_view text) {
  const auto is_of_word = [&](std::size_t i) {
    return i < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view here = text.substr(i, 3);
    const bool is_type =
        (here == "f16" || here == "f32") && !is_of_word(i + 3) && (i == 0 || !is_of_word(i - 1));
    out += is_type ? "fp" : std::string(1, text[i]);
  }
  return out;
}

std::string shown_precision(const PrecisionRecipe& recipe) {
  const std::string printed = print_precision(recipe);
  std::string out;
  for (const std::string_view word : split(printed, ' ')) {
    const bool names_types = word.find('=') == std::string_view::npos ||
                             word.starts_with("forward=") || word.starts_with("backward=") ||
                             word.starts_with("update=");
    out += (out.empty() ? "" : " ") + (names_types ? in_recipe_words(word) : std::string(word));
  }
  return out;
}

}  // namespace aloft

#include "cli/option_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace aloft::cli {

CLI::Validator at_least(std::int64_t least) {
  return {[least](std::string& text) -> std::string {
            const auto value = parse_int(text);
            if (value && *value >= least) return "";
            return "need a whole number, " + std::to_string(least) + " or more, got " + text;
          },
          ""};
}

CLI::Validator number_between(double least, double most) {
  return {[least, most](std::string& text) -> std::string {
            double value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool is_whole = error == std::errc() && end == text.data() + text.size();
            if (is_whole && value >= least && value <= most) return "";
            return fmt::format("need a number from {:g} to {:g}, got {}", least, most, text);
          },
          ""};
}

CLI::Validator one_of(std::vector<std::string> words) {
  return {[words = std::move(words)](std::string& text) -> std::string {
            if (std::ranges::find(words, text) != words.end()) return "";
            return text + " not in {" + join(words, ", ") + "}";
          },
          ""};
}

}  // namespace aloft::cli

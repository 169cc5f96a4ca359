// What the value of an option may be.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace aloft::cli {

// Checks that an option is a whole number, `least` or more.
CLI::Validator at_least(std::int64_t least);
// Checks that an option is a number from `least` to `most`; NaN is none.
CLI::Validator number_between(double least, double most);

// As CLI::IsMember, of words that may have commas in them.
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace aloft::cli

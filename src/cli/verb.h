// A verb of the command line: one file each, one row in verbs.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace aloft::cli {

// Checks that an option is a whole number, `least` or more.
CLI::Validator at_least(std::int64_t least);
// Checks that an option is a number from `least` to `most`; NaN is none.
CLI::Validator number_between(double least, double most);
// Checks a number of threads: 0 to kMostThreads.
CLI::Validator thread_count();

// What a verb does when it is called.
using Action = std::function<ExitCode()>;

struct Verb {
  std::string_view name, summary, example;
  // Declares the verb's options on `app`; the returned action runs after they are parsed.
  Action (*setup)(CLI::App& app);
};

// Every verb, in the order of `aloft --help`.
const std::vector<Verb>& verbs();

}  // namespace aloft::cli

// A verb of the command line: one file each, one row in verbs.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace aloft::cli {

// What a verb does when it is called.
using Action = std::function<ExitCode()>;

struct Verb {
  std::string_view name, summary;
  std::string example;
  // Declares the verb's options on `app`; the returned action runs after they are parsed.
  Action (*setup)(CLI::App& app);
};

// Every verb, in the order of `aloft --help`.
const std::vector<Verb>& verbs();

}  // namespace aloft::cli

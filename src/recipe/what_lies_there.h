// What lies at a path where a model or its tokenizer was looked for, and what makes one of it: the
// lines of an error that say so.
#pragma once

#include <string>

#include "base/error.h"
#include "base/file.h"

namespace aloft {

// Adds to `e` what lies at `path` instead of a model ("saw"), what was looked for ("need"), and
// what to do ("try"), as far as it is known. `named`: the path as it was written, which may be the
// name of a model of Hugging Face's hub. EnvironmentErrors of folder.h and file.h.
void say_what_lies(Error& e, const Path& path, const std::string& named, const std::string& need);

// The same of a folder with a model that has no tokenizer beside it.
void say_no_tokenizer(Error& e, const Path& folder);
// UserError E0718: a saved model, as it was named, is to read or write text and has none.
[[noreturn]] void refuse_without_tokenizer(const std::string& model);

}  // namespace aloft

// What is written to a pipe, or stands in a file, read to its end once.
#pragma once

#include <string>

#include "base/file.h"

namespace aloft {

// As read_file(); and of a pipe, what is written to it until all of its writers have left. The
// first one is waited for, as `cat` waits. The same errors.
std::string read_stream(const Path& path, std::uint64_t limit = kDefaultReadLimit);

// What stands in stdin, to its end. EnvironmentError E0606 where the system does not give it (it is
// closed, or fails), DataError E0602 where it is more than `limit`.
std::string read_stdin(std::uint64_t limit = kDefaultReadLimit);

}  // namespace aloft

// Which source files are Aloft's own: their lines say nothing about anybody's program.
#pragma once

#include <string_view>

namespace aloft {

// Whether a source file, as its compiler names it, is one of Aloft itself: of the tree that the
// library was built from, or a header of an installed one. Programs of the tree beside src/, such
// as examples, are programs like any other.
bool is_of_library(std::string_view file);

}  // namespace aloft

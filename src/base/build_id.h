// Which code this process runs: another build of it, or of a library that it loads, has another id.
#pragma once

#include <string>

namespace aloft {

// Hexadecimal digits, from the ids that the linker gave the program and the libraries which were
// loaded at the first call; for those without one, from their files' sizes and times. Empty where
// the system tells neither: then nothing is known.
const std::string& build_id();

}  // namespace aloft

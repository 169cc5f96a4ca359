// What machine this is, in words and numbers.
#pragma once

#include <string>

namespace aloft::cli {

// The processor's name and the number of threads: "Intel(R) Xeon(R) Processor, 2 threads".
std::string machine_name();

}  // namespace aloft::cli

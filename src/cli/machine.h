// What machine this is, in words and numbers.
#pragma once

#include <cstdint>
#include <string>

namespace aloft::cli {

// The processor's name and the number of threads: "Intel(R) Xeon(R) Processor, 2 threads".
std::string machine_name();

// Largest resident size of this process so far, in bytes.
std::uint64_t peak_rss_bytes();

}  // namespace aloft::cli

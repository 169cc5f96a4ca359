// What machine this is, in words and numbers.
#pragma once

#include <string>

namespace aloft::cli {

// The processor's name and the number of threads: "Intel(R) Xeon(R) Processor, 2 threads".
std::string machine_name();

// Programs that ran or waited over the last minute, over the processors; below 0: the system does
// not say.
double load_a_processor();
// Above it a measurement meets others', and threads wait for one another.
inline constexpr double kBusy = 0.5;

}  // namespace aloft::cli

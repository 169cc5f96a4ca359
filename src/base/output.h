// What the program prints. Results go to stdout and must arrive: a full disk or a closed pipe is an
// error. Talk goes to stderr and may be lost: nobody's work ends because nobody listens.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace aloft {

// Results. EnvironmentError E0607 where stdout does not take them.
void print_result(std::string_view text);
// Hands on what is still held back. EnvironmentError E0607 where anything printed so far was lost.
void flush_results();

// Talk. Never throws; what stderr does not take is lost.
void print_talk(std::string_view text) noexcept;

template <class... Args>
requires(sizeof...(Args) > 0) void print_result(fmt::format_string<Args...> form, Args&&... args) {
  print_result(std::string_view(fmt::format(form, std::forward<Args>(args)...)));
}
template <class... Args>
requires(sizeof...(Args) > 0) void print_talk(fmt::format_string<Args...> form, Args&&... args) {
  print_talk(std::string_view(fmt::format(form, std::forward<Args>(args)...)));
}

// Opens descriptors 0, 1 and 2 on /dev/null where the program was started without them, so that no
// file of data gets one of these numbers and with it what is printed. Results are lost there as
// they are in a closed stdout: it is not open for writing. Nor is stdin for reading: an end of what
// is read would be taken for all there was. To be called before anything is opened.
void open_standard_descriptors() noexcept;

}  // namespace aloft

// Says in which try a test was when it crashed, was ended by a sanitizer, or did not come back.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

// Of what no machine has, an allocator under a sanitizer gives nothing, as any other does.
extern "C" inline __attribute__((used)) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace aloft::testing {

class LastTry {
 public:
  // Behind this a signal that ends the program prints the try first.
  static void watch() {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM})
      std::signal(signal, [](int number) {
        say();
        std::signal(number, SIG_DFL);
        std::raise(number);
      });
    if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(say);
  }
  // The try that begins; it has so many seconds.
  static void begin(const std::string& text, unsigned seconds = 60) {
    std::strncpy(text_, text.c_str(), sizeof text_ - 1);
    alarm(seconds);
  }
  static void end() { alarm(0); }

 private:
  static void say() {
    for (const char* part : {"\nlast try: ", static_cast<const char*>(text_), "\n"})
      if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
  }
  static inline char text_[2048] = "";
};

}  // namespace aloft::testing

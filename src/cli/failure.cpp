#include "cli/failure.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/system_failure.h"
#include "base/terminal.h"

namespace aloft::cli {
namespace {

std::atomic<bool> is_end_expected = false;

ExitCode tell(const Error& e) {
  print_talk(std::string_view(fit_for(Output::Err, e.what())));
  print_talk(std::string_view("\n"));
  return e.exit_code();
}

ExitCode report(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return tell(e);
  } catch (const Interrupted& e) {
    print_talk(std::string_view(e.what()));
    print_talk(std::string_view("\n"));
    return ExitCode::Interrupted;
  } catch (const std::bad_alloc&) {
    return tell(EnvironmentError("E0401", "not enough memory")
                    .advice("a smaller batch, or `ulimit -v` and the container's limit"));
  } catch (const std::filesystem::filesystem_error& e) {
    return tell(system_error(e));
  } catch (const std::system_error& e) {
    return tell(system_error(e));
  } catch (const std::exception& e) {
    return tell(InternalError(e.what()));
  } catch (...) {
    return tell(InternalError("something was thrown that is no exception"));
  }
}

[[noreturn]] void on_terminate() {
  const std::exception_ptr thrown = std::current_exception();
  const ExitCode code =
      thrown ? report_failure(thrown)
             : report_failure(std::make_exception_ptr(InternalError("the program ended itself")));
  ::_exit(static_cast<int>(code));
}

void on_exit_of_others() {
  if (is_end_expected) return;
  print_talk(
      std::string_view("error E0406: a library ended the program; its own words stand above\n"
                       "  try   fewer threads (--threads, OMP_NUM_THREADS), or more memory\n"));
  ::_exit(static_cast<int>(ExitCode::Environment));
}

// A mapped file that somebody has cut short: the system's only answer. Nothing but system calls may
// be used here.
void on_bus_error(int) {
  constexpr std::string_view kText =
      "error E0608: a file was cut short while it was in use\n"
      "  try   bring it back whole\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(static_cast<int>(ExitCode::Environment));
}

}  // namespace

ExitCode report_failure(const std::exception_ptr& thrown) noexcept {
  try {
    return report(thrown);
  } catch (...) {  // no memory even for the message
    print_talk(std::string_view("error E0401: not enough memory\n"));
    return ExitCode::Environment;
  }
}

void watch_over_the_end() {
  std::signal(SIGBUS, on_bus_error);
  std::signal(SIGXFSZ, SIG_IGN);  // above `ulimit -f` a write fails, as on a full disk
  // So does one to a pipe whose reader has left: results that are lost are an error (E0607), and a
  // reader of the progress that leaves (| head) is no reason to end hours of training.
  std::signal(SIGPIPE, SIG_IGN);
  std::set_terminate(on_terminate);
  std::atexit(on_exit_of_others);
}

void expect_the_end() noexcept { is_end_expected = true; }

}  // namespace aloft::cli

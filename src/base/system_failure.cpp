#include "base/system_failure.h"

namespace aloft {

EnvironmentError system_error(const std::filesystem::filesystem_error& e) {
  EnvironmentError error("E0606", "the system does not give access to a file or folder");
  if (!e.path1().empty()) error.add_line("file", e.path1().string());
  if (!e.path2().empty()) error.add_line("and", e.path2().string());
  error.add_line("saw", e.code().message());
  return error;
}

EnvironmentError system_error(const std::system_error& e) {
  if (e.code() == std::errc::resource_unavailable_try_again)
    return EnvironmentError("E0406", "the system does not make a thread")
        .saw(e.code().message())
        .advice(
            "--threads with a smaller number, or look at `ulimit -u` and the container's limit");
  return EnvironmentError("E0606", "the system does not give access to something").saw(e.what());
}

}  // namespace aloft

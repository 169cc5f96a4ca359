#include "run/recorded_error.h"

#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "base/system_failure.h"

namespace aloft {
namespace {

Error mistake(const std::string& what, bool of_a_listener) {
  if (of_a_listener) return UserError("E0828", "a listener of the program has failed").saw(what);
  return InternalError(what);
}

}  // namespace

Error recorded_error(const std::exception_ptr& thrown, bool of_a_listener) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return EnvironmentError("E0401", "out of memory");
  } catch (const std::filesystem::filesystem_error& error) {
    return system_error(error);
  } catch (const std::system_error& error) {
    return system_error(error);
  } catch (const std::exception& error) {
    return mistake(error.what(), of_a_listener);
  } catch (...) {
    return mistake("something that is no exception", of_a_listener);
  }
}

}  // namespace aloft

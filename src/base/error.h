// Errors: what was seen, what was needed, what to try. Three kinds (architecture, section 4), each
// with the exit code that the command line gives it. Exceptions cross the public API; an expected
// "cannot" inside is a value (std::optional, Refusal), never an exception.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/source_location.h"

namespace aloft {

// Process exit codes of the command line; stable.
enum class ExitCode : int {
  Ok = 0,
  Usage = 2,        // a wrong command line, recipe, graph or call
  Data = 3,         // a file that is missing, empty, corrupt or of the wrong kind
  Environment = 4,  // device, memory, disk, network
  Diverged = 5,     // training produced non-finite numbers beyond what the scaler may absorb
  Internal = 70,    // our bug
  Interrupted = 130,
};

// An error that a person will read. Built up by chaining:
//   throw UserError("E0203", "matmul shapes do not agree").line("lhs", "f32[8,128]").need(...);
// what() is the whole text: a headline and one indented line a fact.
class Error : public std::exception {
 public:
  // `code` as in docs/errors.md, `headline` what is wrong, in a line.
  Error(ExitCode exit, std::string code, std::string headline);

  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& code() const { return code_; }          // such as "E0203"
  const std::string& headline() const { return headline_; }  // without code and facts
  ExitCode exit_code() const { return exit_; }               // what `aloft` ends with for it

  // Appends a labelled fact: "  label  text".
  void add_line(std::string_view label, std::string_view text);

 private:
  ExitCode exit_;
  std::string code_, headline_, text_;
};

namespace internal {
// Gives the chaining calls the type of the concrete error, so that a chain can be thrown.
template <class Self>
class ErrorChain : public Error {
 public:
  using Error::Error;
  Self&& at(std::string_view place) && { return add("at", place); }
  Self&& saw(std::string_view text) && { return add("saw", text); }
  Self&& need(std::string_view text) && { return add("need", text); }
  Self&& advice(std::string_view text) && { return add("try", text); }
  Self&& line(std::string_view label, std::string_view text) && { return add(label, text); }

 private:
  Self&& add(std::string_view label, std::string_view text) {
    add_line(label, text);
    return static_cast<Self&&>(*this);
  }
};
}  // namespace internal

// Wrong input from the user: a recipe, an option, a shape, a call (exit 2).
class UserError : public internal::ErrorChain<UserError> {
 public:
  // Facts are chained behind it: .saw(...).need(...).advice(...).
  UserError(std::string code, std::string headline)
      : ErrorChain(ExitCode::Usage, std::move(code), std::move(headline)) {}
};

// A file or a byte stream that cannot be used as it is (exit 3).
class DataError : public internal::ErrorChain<DataError> {
 public:
  // Facts are chained behind it: .saw(...).need(...).advice(...).
  DataError(std::string code, std::string headline)
      : ErrorChain(ExitCode::Data, std::move(code), std::move(headline)) {}
};

// Device, memory, disk, network (exit 4).
class EnvironmentError : public internal::ErrorChain<EnvironmentError> {
 public:
  // Facts are chained behind it: .saw(...).need(...).advice(...).
  EnvironmentError(std::string code, std::string headline)
      : ErrorChain(ExitCode::Environment, std::move(code), std::move(headline)) {}
};

// Training that cannot go on (exit 5).
class DivergedError : public internal::ErrorChain<DivergedError> {
 public:
  // Facts are chained behind it: .saw(...).need(...).advice(...).
  DivergedError(std::string code, std::string headline)
      : ErrorChain(ExitCode::Diverged, std::move(code), std::move(headline)) {}
};

// Our bug (exit 70).
class InternalError : public internal::ErrorChain<InternalError> {
 public:
  // Its code is E9000.
  explicit InternalError(std::string headline)
      : ErrorChain(ExitCode::Internal, "E9000", std::move(headline)) {}
};

// Throws InternalError naming the caller's place when `ok` is false.
void ensure(bool ok, std::string_view what_should_hold,
            SourceLocation where = SourceLocation::current());

// The name in `known` nearest to `word` by edit distance, or "" where nothing is near.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known);

}  // namespace aloft

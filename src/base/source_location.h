// The caller's file and line as a default argument, like std::source_location, which clang 14
// lacks:
//   void check(bool ok, SourceLocation where = SourceLocation::current());
#pragma once

namespace aloft {

class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          unsigned line = __builtin_LINE()) {
    SourceLocation here;
    here.file_ = file;
    here.line_ = line;
    return here;
  }

  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }

 private:
  const char* file_ = "";
  unsigned line_ = 0;
};

}  // namespace aloft

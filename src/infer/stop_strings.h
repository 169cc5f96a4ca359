// Strings that end a text that grows, wherever its pieces are cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aloft {

class StopStrings {
 public:
  // UserError E0700 where one is empty.
  explicit StopStrings(std::vector<std::string> strings);

  // Adds bytes and returns what is of the text for certain: up to where a stop string begins, or
  // may begin. Nothing once it has ended.
  std::string add(std::string_view bytes);
  // Whether one of them has come.
  bool has_ended() const { return has_ended_; }
  // What was held back, where the text ends otherwise.
  std::string rest();

 private:
  std::vector<std::string> strings_;
  std::string held_;  // the longest end of the text that may be the beginning of one
  bool has_ended_ = false;
};

}  // namespace aloft

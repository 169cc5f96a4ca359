// What `aloft probe run` says at its end: lines for people, or one JSON document with the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/output.h"

namespace aloft::cli {

class ProbeAnswer {
 public:
  // `is_quiet`: no lines; a document that is asked for is no talk.
  explicit ProbeAnswer(bool is_json, bool is_quiet = false)
      : is_json_(is_json), is_quiet_(is_quiet) {}

  // Lines, each with its end. They stand in no document.
  void say(std::string_view lines) const {
    if (!is_json_ && !is_quiet_) print_result("{}", lines);
  }
  // A key of the document, which people do not see.
  void set(const char* key, nlohmann::ordered_json value) { all_[key] = std::move(value); }
  // Prints the document, where one was asked for. Nothing is said behind it.
  void end() const {
    if (is_json_) print_result("{}\n", json_text(all_, 1));
  }

 private:
  bool is_json_, is_quiet_;
  nlohmann::ordered_json all_ = nlohmann::ordered_json::object();
};

}  // namespace aloft::cli

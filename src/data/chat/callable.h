// What a template may call: functions, methods of values, macros; and how they take arguments.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/chat/value.h"

namespace aloft::chat {

// Arguments of a call, evaluated.
class Given {
 public:
  Given(std::string called, std::vector<Value> plain,
        std::vector<std::pair<std::string, Value>> named)
      : called_(std::move(called)), plain_(std::move(plain)), named_(std::move(named)) {}

  const std::string& called() const { return called_; }  // for messages: "replace"
  const std::vector<Value>& plain() const { return plain_; }
  const std::vector<std::pair<std::string, Value>>& named() const { return named_; }

  // The arguments by the names of parameters, in their order; those that are not given are null.
  // Failure where one is given that is not among them, or one of the first `needed` is not.
  std::vector<const Value*> by_names(const std::vector<std::string_view>& names,
                                     std::size_t needed) const;
  // The one argument that there must be.
  const Value& only() const;
  // Failure where there is any.
  void none() const;
  // Without the first `count` of those without a name, as a call of another function.
  Given behind(std::size_t count, std::string called) const;

 private:
  std::string called_;
  std::vector<Value> plain_;
  std::vector<std::pair<std::string, Value>> named_;
};

struct Callable {
  std::string name;
  std::function<Value(const Given& given, Work& work)> call;
};

Value make_function(std::string name, std::function<Value(const Given&, Work&)> call);

// Arguments of a type, or Failure; `fallback` where null.
std::string text_or(const Value* value, std::string_view fallback, const Given& given);
std::int64_t whole_or(const Value* value, std::int64_t fallback, const Given& given);
bool truth_or(const Value* value, bool fallback);

}  // namespace aloft::chat

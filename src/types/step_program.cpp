#include "types/step_program.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace aloft {
namespace {

class ProgramParser {
 public:
  ProgramParser(std::string_view text, int inputs) : text_(text) { program_.inputs = inputs; }

  StepProgram run() {
    while (!take("return")) {
      step();
      expect(";");
    }
    do output();
    while (take(","));
    skip_spaces();
    if (at_ != text_.size()) fail("nothing behind the outputs");
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(const std::string& need) const {
    throw UserError("E0106", "not a program of steps")
        .saw("'" + std::string(text_) + "'")
        .need(need + " at column " + std::to_string(at_ + 1))
        .advice("write it as %2 = add(%0, %1) : f32; %3 = relu(%2) : f32; return %3");
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("'" + std::string(word) + "'");
  }

  // A value that is defined already.
  int value() {
    expect("%");
    int v = 0;
    const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (ec != std::errc{} || v < 0 || v >= program_.values()) fail("a value that is defined");
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }

  std::string_view word() {
    skip_spaces();
    const std::size_t start = at_;
    const auto is_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (start == at_) fail("a name");
    return text_.substr(start, at_ - start);
  }

  // A balanced {...} with its strings.
  std::string_view block() {
    const std::size_t start = at_;
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted && c == '\\')
        ++at_;
      else if (c == '"')
        quoted = !quoted;
      else if (!quoted && c == '}')
        return text_.substr(start, ++at_ - start);
    }
    fail("'}'");
  }

  void step() {
    if (static_cast<int>(program_.steps.size()) == kMostSteps)
      fail("at most " + std::to_string(kMostSteps) + " steps");
    expect("%");
    expect(std::to_string(program_.values()));
    expect("=");
    ProgramStep s;
    s.op = word();
    expect("(");
    if (!take(")")) {
      do s.in.push_back(value());
      while (take(","));
      expect(")");
    }
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '{') s.attrs = parse_attrs(block());
    expect(":");
    const auto dtype = parse_dtype(word());
    if (!dtype) fail("an element type");
    s.dtype = *dtype;
    program_.steps.push_back(std::move(s));
  }

  void output() {
    const int v = value();
    if (v < program_.inputs) fail("a step's result, not an input");
    if (std::find(program_.out.begin(), program_.out.end(), v) != program_.out.end())
      fail("an output that is not named before");
    program_.out.push_back(v);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  StepProgram program_;
};

std::string list_of(const std::vector<int>& values) {
  std::string s;
  for (int v : values) s += (s.empty() ? "%" : ", %") + std::to_string(v);
  return s;
}

}  // namespace

std::string print(const StepProgram& program) {
  std::string s;
  int number = program.inputs;
  for (const ProgramStep& step : program.steps) {
    s += "%" + std::to_string(number++) + " = " + step.op.str() + "(" + list_of(step.in) + ")";
    if (!step.attrs.empty()) s += " " + step.attrs.str();
    s += " : " + std::string(name_of(step.dtype)) + "; ";
  }
  return s + "return " + list_of(program.out);
}

StepProgram parse_step_program(std::string_view text, int inputs) {
  return ProgramParser(text, inputs).run();
}

}  // namespace aloft

#include "observe/compare/msprobe_verdicts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "base/text.h"

namespace aloft::compare {

namespace {

// Calls whose results are not meant to be compared, or not their inputs: memory without content,
// copies, what communication writes into.
const std::set<std::string, std::less<>> kUncompared = {
    "empty",     "empty_like",        "numpy",        "to", "__setitem__", "empty_with_format",
    "new_empty", "new_empty_strided", "empty_strided"};
const std::set<std::string, std::less<>> kWithoutInputs = {
    "_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"};

bool is_no_number(const std::string& text) {
  const std::string t = lower(trim(text));
  return t == "nan" || t == "inf" || t == "-inf";
}

// "12.5%" is 0.125; "inf" infinite; other words are none.
std::optional<double> share_of(std::string_view text) {
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    if (const auto v = parse_double(text)) return *v / 100;
    return std::nullopt;
  }
  return parse_double(text);
}

// As Python prints a list in JSON.
std::string list_of(const std::vector<std::string>& messages) {
  std::string text = "[";
  for (const std::string& m : messages) {
    text += text.size() > 1 ? ", \"" : "\"";
    for (const char c : m) text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    text += '"';
  }
  return text + "]";
}

class Call {
 public:
  Call(Table& table, std::size_t begin) : table_(table) {
    for (std::size_t i = begin; i < table.rows.size(); ++i)
      (at(i, "NPU Name").find(".output.") == std::string::npos ? inputs_ : outputs_).push_back(i);
    levels_.resize(table.rows.size() - begin, 0);
    messages_.resize(levels_.size());
    begin_ = begin;
    const std::vector<std::string_view> parts = begin < table.rows.size()
                                                    ? split(at(begin, "NPU Name"), '.')
                                                    : std::vector<std::string_view>();
    const std::string_view name = parts.size() > 1 ? parts[1] : std::string_view();
    is_uncompared_ = kUncompared.contains(name);
    has_no_inputs_ = kWithoutInputs.contains(name);
  }

  void judge(Mode mode) {
    if (is_uncompared_) return finish();
    if (mode == Mode::Hash) {
      judge_hashes();
      return finish();
    }
    judge_infinities();
    for (const auto& [row, why] : table_.unreadable)
      if (row >= begin_ && !(has_no_inputs_ && is_input(row)))
        say(row, Error, "It cannot be read: " + why + ".");
    if (!has_no_inputs_) mode == Mode::Tensor ? judge_ratios() : judge_norms();
    judge_equal("NPU Requires_grad", "Bench Requires_grad",
                "The Required_Grad of NPU and Bench are inconsistent", has_no_inputs_);
    if (!has_no_inputs_) judge_scalars();
    judge_equal("NPU Dtype", "Bench Dtype", "The dtype of NPU and Bench are inconsistent.",
                has_no_inputs_);
    judge_equal("NPU Tensor Shape", "Bench Tensor Shape",
                "The shape of NPU and Bench are inconsistent.", has_no_inputs_);
    if (!has_no_inputs_) mode == Mode::Tensor ? judge_cosines() : judge_growth();
    finish();
  }

 private:
  enum Level { Warning = 1, Error = 2 };

  std::string& at(std::size_t row, std::string_view column) {
    return table_.rows[row][table_.column(column)];
  }
  bool is_tensor(std::size_t row) {
    const std::string& type = at(row, "NPU Dtype");
    return type != "N/A" && type.find("class") == std::string::npos;
  }
  bool has_bench(std::size_t row) { return at(row, "Bench Name") != "N/A"; }
  void say(std::size_t row, Level level, const std::string& text) {
    levels_[row - begin_] = std::max<int>(levels_[row - begin_], level);
    messages_[row - begin_].push_back((level == Error ? "error: " : "warning: ") + text);
  }
  std::vector<std::size_t> compared(bool outputs_alone) const {
    std::vector<std::size_t> rows = outputs_alone ? std::vector<std::size_t>() : inputs_;
    rows.insert(rows.end(), outputs_.begin(), outputs_.end());
    return rows;
  }
  bool is_input(std::size_t row) const { return std::ranges::find(inputs_, row) != inputs_.end(); }
  // The least or the most of a column that are numbers, beginning with what nothing differs at.
  double extreme(const std::vector<std::size_t>& rows, std::string_view column, bool is_least) {
    double v = is_least ? 1 : 0;
    for (const std::size_t row : rows)
      if (const auto s = share_of(at(row, column)); s && std::isfinite(*s))
        v = is_least ? std::min(v, *s) : std::max(v, *s);
    return v;
  }

  // Whether the first run's extreme is no number, and the second's not the same one: msprobe looks
  // at neither the sign nor which of the two extremes it is.
  bool is_alone_infinite(std::size_t row, const std::string& extreme) {
    const std::string ours = lower(trim(at(row, "NPU " + extreme)));
    return is_no_number(ours) && ours != lower(trim(at(row, "Bench " + extreme)));
  }
  void judge_infinities() {
    for (const std::size_t row : compared(has_no_inputs_))
      if (is_alone_infinite(row, "max") || is_alone_infinite(row, "min"))
        say(row, Error, "There is nan/inf/-inf in the maximum or minimum value of NPU.");
  }
  void judge_norms() {
    if (extreme(inputs_, "NormRelativeErr", false) >= 0.1) return;
    for (const std::size_t row : outputs_)
      if (std::abs(share_of(at(row, "NormRelativeErr")).value_or(0)) > 0.5)
        say(row, Error, "The NormRelativeErr of output is greater than 0.5.");
  }
  void judge_growth() {
    if (outputs_.empty()) return;
    const double in = extreme(inputs_, "NormRelativeErr", false);
    const double out = extreme(outputs_, "NormRelativeErr", false);
    if (in == 0 ? out > 0.1 : out / in > 10)
      say(outputs_[0], Warning, "The norm relative error of output is 10 times that of input.");
  }
  // The documented 0.6; msprobe's own program compares with 0.1.
  void judge_ratios() {
    if (outputs_.empty()) return;
    if (extreme(inputs_, "One Thousandth Err Ratio", true) > 0.9 &&
        extreme(outputs_, "One Thousandth Err Ratio", true) < 0.6)
      say(outputs_[0], Error,
          "The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6.");
  }
  void judge_cosines() {
    if (outputs_.empty()) return;
    const double in = extreme(inputs_, "Cosine", true), out = extreme(outputs_, "Cosine", true);
    if (in > 0.9 && in - out > 0.1)
      say(outputs_[0], Warning,
          "The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1");
  }
  void judge_equal(std::string_view ours, std::string_view theirs, const std::string& text,
                   bool outputs_alone) {
    for (const std::size_t row : compared(outputs_alone))
      if (has_bench(row) && at(row, ours) != at(row, theirs)) say(row, Error, text);
  }
  void judge_scalars() {
    for (const std::size_t row : inputs_) {
      const auto is_value = [&](const char* column) {
        return at(row, column).find("class") != std::string::npos;
      };
      if (has_bench(row) && is_value("NPU Dtype") && is_value("Bench Dtype") &&
          at(row, "NPU max") != at(row, "Bench max"))
        say(row, Error, "The scalar parameters of NPU and Bench are inconsistent.");
    }
  }
  void judge_hashes() {
    for (const std::size_t row : compared(has_no_inputs_)) {
      const std::string &n = at(row, "NPU MD5"), &b = at(row, "BENCH MD5");
      if (n == "N/A" && b == "N/A" && is_tensor(row) && has_bench(row))
        say(row, Warning, "Neither dump has a CRC-32 value of it.");
      if (n == b) continue;
      if (n == "N/A" || b == "N/A")
        say(row, Warning, "The parameter of NPU does not match the bench.");
      else
        say(row, Error, "The CRC-32 value of NPU differs from that of the bench.");
    }
  }

  void finish() {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      constexpr const char* kWords[] = {"pass", "warning", "error"};
      at(begin_ + i, "Result") = kWords[levels_[i]];
      at(begin_ + i, "Err_message") = list_of(messages_[i]);
    }
  }

  Table& table_;
  std::size_t begin_ = 0;
  std::vector<std::size_t> inputs_, outputs_;
  std::vector<int> levels_;
  std::vector<std::vector<std::string>> messages_;
  bool is_uncompared_ = false, has_no_inputs_ = false;
};

}  // namespace

void give_verdicts(Table& table, std::size_t begin, Mode mode) {
  if (begin < table.rows.size()) Call(table, begin).judge(mode);
}

}  // namespace aloft::compare

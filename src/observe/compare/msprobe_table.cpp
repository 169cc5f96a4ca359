#include "observe/compare/msprobe_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "files/crc32.h"
#include "observe/compare/msprobe_verdicts.h"

namespace aloft::compare {

namespace {

constexpr const char* kNone = "N/A";

// The checksum that a dump has of a tensor; of another value that of its text, in msprobe's way.
std::string hash_of(const Record& r) {
  constexpr std::string_view kOfClass = "<class '";
  if (!r.hash.empty()) return r.hash;
  if (r.is_tensor || !r.type.starts_with(kOfClass) || r.type == "<class 'NoneType'>") return kNone;
  return fmt::format("{:08x}", crc32(std::as_bytes(std::span(r.max.text))));
}

const std::vector<std::string>& names_of(Mode mode) {
  static const std::vector<std::string> both = {"NPU max",    "NPU min",     "NPU mean",
                                                "NPU l2norm", "Bench max",   "Bench min",
                                                "Bench mean", "Bench l2norm"};
  const auto make = [](std::vector<std::string> middle, bool has_figures, bool has_data) {
    std::vector<std::string> all = {"NPU Name",          "Bench Name",         "NPU Dtype",
                                    "Bench Dtype",       "NPU Tensor Shape",   "Bench Tensor Shape",
                                    "NPU Requires_grad", "Bench Requires_grad"};
    all.insert(all.end(), middle.begin(), middle.end());
    if (has_figures) all.insert(all.end(), both.begin(), both.end());
    for (const char* name : {"Requires_grad Consistent", "Result", "Err_message", "NPU_Stack_Info"})
      all.emplace_back(name);
    if (has_data) all.emplace_back("Data_name");
    return all;
  };
  static const std::vector<std::string> statistics =
      make({"Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
            "MeanRelativeErr", "NormRelativeErr"},
           true, false);
  static const std::vector<std::string> tensor =
      make({"Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
            "Five Thousandths Err Ratio"},
           true, true);
  static const std::vector<std::string> hash = make({"NPU MD5", "BENCH MD5"}, false, false);
  if (mode == Mode::Tensor) return tensor;
  return mode == Mode::Hash ? hash : statistics;
}

std::string shape_text(const Record& r) {
  if (!r.is_tensor) return r.type == kNone ? kNone : "[]";
  std::string text = "[";
  for (const std::int64_t n : r.shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

std::string grad_text(const Record& r) {
  return r.requires_grad ? (*r.requires_grad ? "True" : "False") : kNone;
}

// A truth value, a word, or nothing, as msprobe has it of what only one of the runs has.
bool is_no_number(const Figure& f) { return !f.number || f.text == "True" || f.text == "False"; }
bool is_device(const std::string& text) {
  const std::string t = lower(text);
  return std::ranges::any_of(std::array{"npu", "cpu", "cuda"},
                             [&](const char* name) { return t.find(name) != std::string::npos; });
}

// A difference of statistics and its size beside the second's, as msprobe words them.
std::pair<std::string, std::string> difference_text(const Figure& n, const Figure& b) {
  if (n.text == b.text) return {"0", "0"};
  if (n.text == kNone || b.text == kNone) return {kNone, kNone};
  if (is_no_number(n) || is_no_number(b)) {
    const char* const word = is_device(n.text) && is_device(b.text) ? kNone : "Diff";
    return {word, word};
  }
  const double x = *n.number, y = *b.number;
  if (std::isnan(x) || std::isnan(y)) return {"Nan", "Nan"};
  if (std::isinf(x) || std::isinf(y)) {
    const char* const sign = x < y ? "-inf" : "inf";
    return {sign, sign};
  }
  return {shortest(x - y), y == 0 ? "inf" : shortest(std::abs((x - y) / y * 100)) + "%"};
}

std::string text_of(const std::optional<double>& v, const char* otherwise) {
  return v ? shortest(*v) : otherwise;
}

class Rows {
 public:
  Rows(Table& table, const DumpFile& npu, Mode mode, const ElementsOf& elements_of)
      : table_(table), npu_(npu), mode_(mode), elements_of_(elements_of) {}

  void add(const EntryPair& call, const RecordPair& r, bool is_first) {
    row_.assign(table_.columns.size(), "");
    put("NPU Name", r.npu->name);
    put("Bench Name", r.bench ? r.bench->name : kNone);
    put_side("NPU", r.npu), put_side("Bench", r.bench);
    const bool is_consistent = grad_text(*r.npu) == (r.bench ? grad_text(*r.bench) : kNone);
    put("Requires_grad Consistent", is_consistent ? "True" : "False");
    const auto line = npu_.lines.find(call.npu->name);
    put("NPU_Stack_Info", is_first && line != npu_.lines.end() ? line->second : kNone);
    for (const Record* const side : {r.npu, r.bench})
      if (side && !side->unreadable.empty())
        table_.unreadable[table_.rows.size()] = side->unreadable;
    if (mode_ == Mode::Statistics) put_statistics(r);
    if (mode_ == Mode::Tensor) put_elements(r);
    if (mode_ == Mode::Hash) {
      put("NPU MD5", hash_of(*r.npu));
      put("BENCH MD5", r.bench ? hash_of(*r.bench) : kNone);
    }
    table_.rows.push_back(row_);
    table_.calls.push_back(&call);
  }

 private:
  void put(std::string_view column, std::string text) {
    row_[table_.column(column)] = std::move(text);
  }
  void put_side(const std::string& side, const Record* r) {
    put(side + " Dtype", r ? r->type : kNone);
    put(side + " Tensor Shape", r ? shape_text(*r) : kNone);
    put(side + " Requires_grad", r ? grad_text(*r) : kNone);
    if (mode_ == Mode::Hash) return;
    put(side + " max", r ? r->max.text : kNone);
    put(side + " min", r ? r->min.text : kNone);
    put(side + " mean", r ? r->mean.text : kNone);
    put(side + " l2norm", r ? r->norm.text : kNone);
  }
  static bool are_readable(const RecordPair& r) {
    return r.npu->unreadable.empty() && r.bench->unreadable.empty();
  }
  void put_statistics(const RecordPair& r) {
    struct Column {
      const char *difference, *relative;
      Figure Record::*figure;
    };
    constexpr Column kColumns[] = {{"Max diff", "MaxRelativeErr", &Record::max},
                                   {"Min diff", "MinRelativeErr", &Record::min},
                                   {"Mean diff", "MeanRelativeErr", &Record::mean},
                                   {"L2norm diff", "NormRelativeErr", &Record::norm}};
    for (const Column& c : kColumns) {
      const auto [difference, relative] =
          r.bench && are_readable(r) ? difference_text(r.npu->*c.figure, r.bench->*c.figure)
                                     : std::pair<std::string, std::string>(kNone, kNone);
      put(c.difference, difference), put(c.relative, relative);
    }
  }
  void put_elements(const RecordPair& r) {
    const ElementFigures* const f = r.bench ? elements_of_(r) : nullptr;
    put("Data_name",
        fmt::format("['{}', '{}']", r.npu->data_name.empty() ? "-1" : r.npu->data_name,
                    r.bench && !r.bench->data_name.empty() ? r.bench->data_name : "-1"));
    if (f && !f->unreadable.empty()) table_.unreadable[table_.rows.size()] = f->unreadable;
    const char* const no = r.bench ? "unsupported" : kNone;
    const auto of = [&](std::optional<double> ElementFigures::*figure) {
      return f ? text_of(f->*figure, f->problem.empty() ? "unsupported" : f->problem.c_str()) : no;
    };
    put("Cosine", of(&ElementFigures::cosine));
    put("EucDist", of(&ElementFigures::distance));
    put("MaxAbsErr", of(&ElementFigures::max_absolute));
    put("MaxRelativeErr", of(&ElementFigures::max_relative));
    put("One Thousandth Err Ratio", of(&ElementFigures::thousandth));
    put("Five Thousandths Err Ratio", of(&ElementFigures::five_thousandths));
  }

  Table& table_;
  const DumpFile& npu_;
  Mode mode_;
  const ElementsOf& elements_of_;
  std::vector<std::string> row_;
};

}  // namespace

Mode mode_of(const DumpFile& npu, const DumpFile& bench) {
  if (npu.has_elements() && bench.has_elements()) return Mode::Tensor;
  return npu.has_hashes() && bench.has_hashes() ? Mode::Hash : Mode::Statistics;
}

std::size_t Table::column(std::string_view name) const {
  const auto it = std::ranges::find(columns, name);
  ensure(it != columns.end(), "the table has the column");
  return static_cast<std::size_t>(it - columns.begin());
}

Table msprobe_table(const Pairs& pairs, const DumpFile& npu, Mode mode,
                    const ElementsOf& elements_of) {
  Table table;
  table.columns = names_of(mode);
  Rows rows(table, npu, mode, elements_of);
  for (const EntryPair& call : pairs.entries) {
    bool is_first = true;
    const std::size_t begin = table.rows.size();
    for (const RecordPair& r : call.records) {
      if (!r.npu) continue;
      rows.add(call, r, is_first);
      is_first = false;
    }
    give_verdicts(table, begin, mode);
  }
  return table;
}

}  // namespace aloft::compare

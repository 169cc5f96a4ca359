// Statistics as msprobe dumps them, so that its tools read ours: a folder a step with dump.json
// (numbers), construct.json (which call lies in which) and stack.json (from which line of the
// program). docs/probe.md says what each key is.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/probe/looked_at.h"

namespace aloft::probe {

// A module of the model that is looked at.
struct DumpedModule {
  std::string path;  // "h.0.mlp"
  std::string kind;  // "Linear"; empty of a class that does not say
};

// Which names msprobe gives to what a program takes statistics of.
class Dump {
 public:
  // `modules`: all of the model; `level`: "module" (msprobe's L0), "op" (L1) or "mix".
  Dump(std::vector<LookedAt> values, const std::vector<DumpedModule>& modules, std::string level);

  // What an op takes, in its entry's order: the record of a value that is looked at elsewhere, or
  // nothing, where nobody looks at it. Of an op of the backward pass gradients alone, as msprobe
  // has it.
  struct Taken {
    std::string entry, list;
    std::size_t number = 0;            // its place in that list
    std::optional<std::size_t> value;  // the number of the value
    std::size_t of = 0;                // of the op's first result
    std::string data_name() const;     // "Torch.linear.0.forward.input.1"
  };
  const std::vector<Taken>& taken() const { return taken_; }

  // From here on these values alone are written, and of what ops take this, and entries that have
  // any.
  void keep(const std::vector<bool>& chosen, const std::vector<bool>& taken);

  // Of a step that left these numbers, with records as record.h has them. Files are written by
  // DumpText (dump_text.h), which has the same text.
  nlohmann::ordered_json numbers(std::span<const double> all) const;
  // Of no step: types and shapes alone, with lengths as long as they may be.
  nlohmann::ordered_json structure() const;
  // The same with a number for each record: twice its own, and one more where the record says
  // requires_grad. It has no other numbers. Records are numbered as values() are, behind those as
  // taken(): what an op takes has a record of its own, of a value that has one elsewhere.
  nlohmann::ordered_json outline() const;
  std::size_t records() const { return values_.size() + taken_.size(); }
  std::size_t value_of_record(std::size_t record) const;
  // What stands before the entries.
  nlohmann::ordered_json head(const char* task) const;
  nlohmann::ordered_json construct() const;  // the same for every step, as
  nlohmann::ordered_json stack() const;      // this

  const std::vector<LookedAt>& values() const { return values_; }
  // Where value number `i` stands, as msprobe names files of tensors:
  // "Module.h.0.mlp.Mlp.forward.0.input.0".
  std::string data_name(std::size_t i) const;
  // The entry in which it stands, and the entries in their order.
  const std::string& entry_of(std::size_t i) const { return places_[i].entry; }
  const std::vector<std::string>& entries() const { return entries_; }
  // "Module.h.0.mlp.Mlp", with which names of a module's entries begin.
  std::string class_of(std::string_view path) const;

 private:
  // Where a value's record stands: under data[entry][list], at the end, or there by its own name.
  struct Place {
    std::string entry, list, parameter = {};
    bool requires_grad = false;
  };
  using RecordAt = std::function<nlohmann::ordered_json(std::size_t record, bool requires_grad)>;
  nlohmann::ordered_json with_records(const char* task, const RecordAt& record_at) const;
  // Of an entry; null where it is not written.
  using ContentOf = std::function<nlohmann::ordered_json*(const std::string& entry)>;
  void put_taken(const ContentOf& content_of, const RecordAt& record_at) const;
  nlohmann::ordered_json taps() const;
  Place place_of_call(std::string_view name) const;
  Place place_of_parameter(const LookedAt& value) const;
  Place place_of_op(const LookedAt& value);
  void note_taken();
  std::vector<bool> gradients() const;
  void order_entries();
  nlohmann::ordered_json parent_of_call(std::string_view path, std::string_view direction,
                                        const std::string& call) const;

  std::vector<LookedAt> values_;
  std::vector<DumpedModule> modules_;
  std::string level_;
  std::vector<Place> places_;  // of each value
  std::vector<bool> chosen_;   // each that is written
  std::vector<Taken> taken_;
  std::vector<bool> chosen_taken_;                      // each that is written
  std::map<std::string, std::size_t> place_of_;         // of each value, by name
  std::vector<std::string> entries_;                    // in order of appearance
  std::vector<std::pair<std::string, int>> op_counts_;  // calls of each op and phase, less one
  std::string last_call_;
};

}  // namespace aloft::probe

// A dump of a step, read: Aloft's, msprobe's (of PyTorch or MindSpore), or that of aloft_probe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "observe/compare/training.h"

namespace aloft::compare {

// Updates are what a step adds to parameters.
enum class Direction { Forward, Backward, ParametersGrad, ParametersUpdate, Other };

// What a record is to its call.
enum class Part { Input, Parameter, Output, Gradient, Update };

// A number of a record, and how tables show it.
struct Figure {
  std::optional<double> number;  // nothing where the dump has none
  std::string text = "None";
};

// A tensor, or another value, that a call took or gave.
struct Record {
  std::string name;  // "Module.h.0.ln_1.LayerNorm.forward.0.input.0"
  Part part = Part::Input;
  std::string own;   // "0", "weight"
  std::string type;  // "torch.float32"; of other values as "<class 'int'>", "N/A" of none
  bool is_tensor = false;
  // How its figures were made: in double, whatever the type (Aloft, aloft_probe), or in the
  // tensor's own type (msprobe).
  bool is_exact = false;
  std::vector<std::int64_t> shape;
  Figure max, min, mean, norm;
  // How many elements are no number, or have no end; nothing in msprobe's dumps.
  Figure nan, inf, minus_inf;
  std::optional<bool> requires_grad;
  std::string data_name;  // of the file with its elements
  std::string hash;       // CRC-32 or another word of its bytes, where the dump has that
  // What of it is none: "Norm is \"w\""; "" where all can be read. Of a shape that is none nothing
  // is left.
  std::string unreadable = {};
  bool has_shape = true;

  double elements() const;
};

// Of two records of one run, whether they are of the same tensor, which was handed on.
bool is_same_value(const Record& a, const Record& b);

// All that a dump has of a call in one direction.
struct Entry {
  std::string name;  // "Module.h.0.ln_1.LayerNorm.forward.0"
  bool is_module = false;
  // Of a module "h.0.ln_1", of a function its name: "Functional.layer_norm".
  std::string path;
  std::string kind;  // "LayerNorm"; of a function its own name: "layer_norm"
  Direction direction = Direction::Other;
  std::int64_t call = 0;
  std::vector<Record> records;
  // Of an op of Aloft's, what taps call it (docs/taps.md), "h.0.mlp/linear.backward#1"; "" of
  // others.
  std::string tap = {};
  // Of a function the path of the module that calls it, "" of what is called outside of modules;
  // nothing where the dump does not say it.
  std::optional<std::string> caller = {};

  // Which of the calls of its kind in its module it is, as the tap says; else among all, as the
  // entry's name does.
  std::int64_t number() const;
};

struct DumpFile {
  Path file;  // dump.json
  std::string task, level, framework;
  std::vector<Entry> entries;                  // in the order of the file
  std::map<std::string, std::string> lines;    // of an entry, the line of the program it came from
  std::map<std::string, std::string> parents;  // "" of an entry that lies in none
  Training training;

  bool has_elements() const;  // files of them
  bool has_hashes() const;    // of any tensor
  // The file with a record's elements; empty where there is none. Never outside the dump.
  Path elements_of(const Record& record) const;
};

// DataError E0650: a file that is not there, is not JSON or no dump; E0601, E0602; EnvironmentError
// E0606.
DumpFile read_dump(const Path& dump_json);

// The parts of an entry's name; for names that are none of a call, or longer than any, is_module is
// false, direction Other and path the whole.
Entry parse_entry_name(std::string_view name);

}  // namespace aloft::compare

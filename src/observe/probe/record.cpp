#include "observe/probe/record.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace aloft::probe {

namespace {

using Json = nlohmann::ordered_json;

// A number of a value; null where it has no elements, as msprobe has it.
struct Figure {
  bool is_there;
  double value;
};

// How many elements have which exponent, of those that some have: "-127" are all smaller, zeros
// included, "128" those that are not finite.
struct Exponents {
  const std::vector<std::int64_t>& counts;
  static std::string name(std::size_t e) { return std::to_string(static_cast<int>(e) - 127); }
};

// Each member of a record, in order.
template <class Put>
void each_member(const LookedAt& value, std::span<const double> all, bool requires_grad,
                 const Put& put) {
  const TensorStatistics s = statistics_of(value, all);
  const auto figure = [&](double v) { return Figure{s.elements > 0, v}; };
  const auto count = [](double v) { return static_cast<std::int64_t>(v); };
  put("type", std::string_view("torch.Tensor"));
  put("dtype", std::string_view(torch_name(value.type.dtype)));
  put("shape", shape_of(value, s));
  put("Max", figure(s.max));
  put("Min", figure(s.min));
  put("Mean", figure(s.mean));
  put("Norm", figure(s.norm));
  put("requires_grad", requires_grad);
  put("nan", count(s.nan));
  put("inf", count(s.positive_inf));
  put("-inf", count(s.negative_inf));
  put("zeros", count(s.zeros));
  put("underflowed", count(s.underflowed));
  put("saturated", count(s.saturated));
  if (value.has_exponents) put("exponents", Exponents{exponents_of(value, all)});
}

// "nan", "inf"; "" of a number that JSON has.
std::string_view word_of(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return "";
}

Json json_of(std::string_view text) { return text; }
Json json_of(bool value) { return value; }
Json json_of(std::int64_t value) { return value; }
Json json_of(const std::vector<std::int64_t>& shape) { return shape; }
Json json_of(const Figure& f) {
  if (!f.is_there) return nullptr;
  const std::string_view word = word_of(f.value);
  return word.empty() ? Json(f.value) : Json(word);
}
Json json_of(const Exponents& e) {
  Json own = Json::object();
  for (std::size_t i = 0; i < e.counts.size(); ++i)
    if (e.counts[i] > 0) own[Exponents::name(i)] = e.counts[i];
  return own;
}

// The text of members of a record that lies in `depth` objects and lists.
class Text {
 public:
  Text(std::string& out, int depth) : out_(out), depth_(depth) {}

  // Names and words of ours, which JSON holds as they are.
  void put(std::string_view text) {
    out_ += '"';
    out_ += text;
    out_ += '"';
  }
  void put(bool value) { out_ += value ? "true" : "false"; }
  void put(std::int64_t value) {
    std::array<char, 24> digits;
    out_.append(digits.data(),
                std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
  void put(const std::vector<std::int64_t>& shape) {
    if (shape.empty()) {
      out_ += "[]";
      return;
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      out_ += i == 0 ? '[' : ',';
      line(2);
      put(shape[i]);
    }
    line(1);
    out_ += ']';
  }
  void put(const Figure& f) {
    if (!f.is_there) {
      out_ += "null";
      return;
    }
    // Python's words, as msprobe writes them: it takes text that begins with '-' for an attack, and
    // refuses the dump (docs/decisions/0075-bare-words-of-dumps.md).
    if (std::isnan(f.value) || std::isinf(f.value)) {
      out_ += std::isnan(f.value) ? "NaN" : f.value > 0 ? "Infinity" : "-Infinity";
      return;
    }
    std::array<char, 64> digits;  // as many as nlohmann's own writer has, and the same
    out_.append(digits.data(),
                nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), f.value));
  }
  void put(const Exponents& e) {
    bool is_first = true;
    for (std::size_t i = 0; i < e.counts.size(); ++i) {
      if (e.counts[i] <= 0) continue;
      out_ += is_first ? '{' : ',';
      is_first = false;
      line(2);
      put(std::string_view(Exponents::name(i)));
      out_ += ": ";
      put(e.counts[i]);
    }
    if (is_first) {
      out_ += "{}";
      return;
    }
    line(1);
    out_ += '}';
  }
  // A new line, indented.
  void line(int deeper) {
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth_ + deeper), ' ');
  }

 private:
  std::string& out_;
  int depth_;
};

}  // namespace

std::string torch_name(DType t) {
  switch (t) {
    case DType::F64:
      return "torch.float64";
    case DType::BF16:
      return "torch.bfloat16";
    case DType::F16:
      return "torch.float16";
    default:
      return "torch.float32";
  }
}

Json record_of(const LookedAt& value, std::span<const double> all, bool requires_grad) {
  Json record = Json::object();
  // Keys that are not there yet: nlohmann's ordered object would compare each with all others.
  auto& members = record.get_ref<Json::object_t&>();
  members.reserve(16);
  each_member(value, all, requires_grad, [&](const char* key, const auto& member) {
    members.Json::object_t::Container::emplace_back(key, json_of(member));
  });
  return record;
}

void put_record(std::string& out, const LookedAt& value, std::span<const double> all,
                bool requires_grad, int depth, const Json& added) {
  Text text(out, depth);
  char before = '{';
  const auto put_key = [&](std::string_view key) {
    out += before;
    before = ',';
    text.line(1);
    text.put(key);
    out += ": ";
  };
  each_member(value, all, requires_grad, [&](const char* key, const auto& member) {
    put_key(key);
    text.put(member);
  });
  if (added.is_object())
    for (const auto& [key, member] : added.items()) {
      put_key(key);
      put_plain(out, member);
    }
  text.line(0);
  out += '}';
}

void put_plain(std::string& out, const Json& json) { out += json_text(json, 1); }

}  // namespace aloft::probe

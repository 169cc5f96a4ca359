#include "files/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"

namespace aloft {
namespace {

constexpr std::size_t kMaxRank = 64;

// Receives the JSON as events, so that nothing is built that the format does not have: a file
// cannot make it recurse, and a name that comes twice is seen (a JSON object would keep the last).
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(SafetensorsHeader& out) : out_(out) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::Start) return go(Place::Top);
    if (place_ != Place::Top) return wrong("an object");
    if (key_ == "__metadata__") return go(Place::Metadata);
    out_.entries.emplace_back().name = key_;
    fields_.clear();
    return go(Place::Tensor);
  }
  bool key(string_t& name) override {
    std::set<std::string>& known = place_ == Place::Top        ? names_
                                   : place_ == Place::Metadata ? metadata_names_
                                                               : fields_;
    if (!known.insert(name).second) return mistake("the name " + in_quotes(name) + " comes twice");
    if (place_ == Place::Top && name.empty()) return mistake("an empty name");
    if (place_ == Place::Tensor && name != "dtype" && name != "shape" && name != "data_offsets")
      return mistake("the field " + in_quotes(name) + " in tensor " + in_quotes(entry().name));
    key_ = name;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::Top) return go(Place::End);
    if (place_ == Place::Tensor && fields_.size() != 3)
      return mistake("tensor " + in_quotes(entry().name) + " without dtype, shape or data_offsets");
    return go(Place::Top);
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::Tensor || key_ == "dtype") return wrong("an array");
    numbers_.clear();
    return go(Place::Numbers);
  }
  bool end_array() override {
    if (key_ == "shape") {
      if (numbers_.size() > kMaxRank) return mistake("more than 64 dimensions");
      entry().shape = numbers_;
    } else {
      if (numbers_.size() != 2) return mistake("data_offsets that are not two numbers");
      entry().begin = numbers_[0];
      entry().end = numbers_[1];
    }
    return go(Place::Tensor);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::Numbers) return wrong("a number");
    if (value > std::uint64_t{INT64_MAX}) return mistake("a number beyond 63 bits");
    // One past the largest rank is kept, to be refused at the array's end.
    if (numbers_.size() <= kMaxRank) numbers_.push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::Metadata) {
      out_.metadata[key_] = value;
      return true;
    }
    if (place_ != Place::Tensor || key_ != "dtype") return wrong("a string");
    entry().dtype = value;
    return true;
  }
  bool null() override { return wrong("null"); }
  bool boolean(bool) override { return wrong("true or false"); }
  bool number_integer(number_integer_t) override { return wrong("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return wrong("a fraction"); }
  bool binary(binary_t&) override { return wrong("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return mistake("text that is not JSON at byte " + std::to_string(position) + " of the header");
  }

 private:
  enum class Place { Start, Top, Metadata, Tensor, Numbers, End };

  SafetensorsHeader::Entry& entry() { return out_.entries.back(); }
  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool wrong(const std::string& what) { return mistake(what + " where the format has none"); }
  bool mistake(std::string text) {
    if (out_.mistake.empty()) out_.mistake = std::move(text);
    return false;  // ends the parse
  }

  SafetensorsHeader& out_;
  Place place_ = Place::Start;
  std::string key_;
  std::set<std::string> names_, metadata_names_, fields_;
  std::vector<std::uint64_t> numbers_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  SafetensorsHeader header;
  HeaderEvents events(header);
  // The library takes a zero byte for the text's end, whatever comes behind.
  const bool whole =
      text.find('\0') == std::string_view::npos && nlohmann::json::sax_parse(text, &events);
  if (!whole && header.mistake.empty()) header.mistake = "text that is not JSON";
  return header;
}

}  // namespace aloft

// What stands around a text for a model ([CLS] before, [SEP] behind): the part `post_processor` of
// tokenizer.json.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/tokenizer.h"
#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

// Puts a text's ids, or two texts', in order among fixed ids.
class PostProcessor {
 public:
  PostProcessor();  // adds nothing; a second text follows the first
  // E0519: a type, a key or a value that is not known.
  explicit PostProcessor(const JsonPlace& place);

  Framed frame(std::span<const std::int32_t> text) const;
  Framed frame(std::span<const std::int32_t> first, std::span<const std::int32_t> second) const;

  // The largest id that it adds; -1 where it adds none.
  std::int32_t largest_id() const;

 private:
  enum class What { First, Second, Fixed };
  struct Part {
    What what = What::First;
    std::int32_t type = 0;
    std::vector<std::int32_t> ids = {};  // of Fixed
  };
  using Template = std::vector<Part>;

  void read(const JsonPlace& place);
  void read_template(const JsonPlace& place);
  void read_bert(const JsonPlace& place, bool is_roberta);
  static Template read_parts(const JsonPlace& place, const JsonPlace& special_tokens);
  static Framed fill(const Template& parts, std::span<const std::int32_t> first,
                     std::span<const std::int32_t> second);

  Template single_, pair_;
  bool is_set_ = false;
};

}  // namespace aloft::parts

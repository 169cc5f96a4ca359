#include "data/tokenizers/parts/post_processor.h"

#include <algorithm>

#include "base/text.h"
#include "data/tokenizers/parts/vocabulary.h"

namespace aloft::parts {

PostProcessor::PostProcessor()
    : single_{{What::First, 0}}, pair_{{What::First, 0}, {What::Second, 1}} {}

PostProcessor::PostProcessor(const JsonPlace& place) : PostProcessor() { read(place); }

void PostProcessor::read(const JsonPlace& place) {
  const std::string type = place.type();
  if (type == "Sequence") {
    place.know_only({"processors"});
    for (const JsonPlace& part : place.at("processors").items()) read(part);
    return;
  }
  if (type == "ByteLevel") {  // offsets, which are not kept here
    place.know_only({"add_prefix_space", "trim_offsets", "use_regex"});
    return;
  }
  const bool is_bert = type == "BertProcessing", is_roberta = type == "RobertaProcessing";
  if (type != "TemplateProcessing" && !is_bert && !is_roberta)
    place.refuse("the post-processor " + in_quotes(type),
                 "BertProcessing, ByteLevel, RobertaProcessing, Sequence or TemplateProcessing");
  if (is_set_) place.refuse("a second frame around the text", "one");
  is_set_ = true;
  if (is_bert || is_roberta) return read_bert(place, is_roberta);
  read_template(place);
}

void PostProcessor::read_template(const JsonPlace& place) {
  place.know_only({"single", "pair", "special_tokens"});
  const JsonPlace tokens = place.at("special_tokens");
  single_ = read_parts(place.at("single"), tokens);
  for (const Part& part : single_)
    if (part.what == What::Second) place.at("single").refuse("a second text", "one text");
  pair_ = read_parts(place.at("pair"), tokens);
}

PostProcessor::Template PostProcessor::read_parts(const JsonPlace& place,
                                                  const JsonPlace& special_tokens) {
  Template parts;
  for (const JsonPlace& one : place.items()) {
    one.know_keys({"SpecialToken", "Sequence"});
    const auto token = one.find("SpecialToken"), text = one.find("Sequence");
    if (token.has_value() == text.has_value())
      one.refuse("both or neither", "SpecialToken or Sequence");
    const JsonPlace& part = token ? *token : *text;
    part.know_keys({"id", "type_id"});
    const std::string name = part.at("id").text();
    const auto type = static_cast<std::int32_t>(part.at("type_id").whole(0, INT32_MAX));
    if (text) {
      if (name != "A" && name != "B") part.at("id").refuse(in_quotes(name), "A or B");
      parts.push_back({name == "A" ? What::First : What::Second, type});
      continue;
    }
    const JsonPlace said = special_tokens.at(name.c_str());
    said.know_keys({"id", "ids", "tokens"});
    Part fixed{What::Fixed, type};
    for (const JsonPlace& id : said.at("ids").items())
      fixed.ids.push_back(static_cast<std::int32_t>(id.whole(0, kMostIds - 1)));
    parts.push_back(std::move(fixed));
  }
  return parts;
}

void PostProcessor::read_bert(const JsonPlace& place, bool is_roberta) {
  if (is_roberta)
    place.know_only({"sep", "cls", "trim_offsets", "add_prefix_space"});
  else
    place.know_only({"sep", "cls"});
  const auto token = [&](const char* key, std::int32_t type) {
    const JsonPlace pair = place.at(key);  // ["[SEP]", 102]
    const auto parts = pair.items();
    if (parts.size() != 2) pair.refuse("a list of " + std::to_string(parts.size()), "two");
    return Part{What::Fixed, type, {static_cast<std::int32_t>(parts[1].whole(0, kMostIds - 1))}};
  };
  const Part cls = token("cls", 0), sep = token("sep", 0);
  const std::int32_t second = is_roberta ? 0 : 1;
  single_ = {cls, {What::First, 0}, sep};
  pair_ = {cls, {What::First, 0}, sep};
  if (is_roberta) pair_.push_back(sep);
  pair_.push_back({What::Second, second});
  pair_.push_back(token("sep", second));
}

std::int32_t PostProcessor::largest_id() const {
  std::int32_t largest = -1;
  for (const Template* parts : {&single_, &pair_})
    for (const Part& part : *parts)
      for (std::int32_t id : part.ids) largest = std::max(largest, id);
  return largest;
}

Framed PostProcessor::frame(std::span<const std::int32_t> text) const {
  return fill(single_, text, {});
}

Framed PostProcessor::frame(std::span<const std::int32_t> first,
                            std::span<const std::int32_t> second) const {
  return fill(pair_, first, second);
}

Framed PostProcessor::fill(const Template& parts, std::span<const std::int32_t> first,
                           std::span<const std::int32_t> second) {
  Framed out;
  for (const Part& part : parts) {
    const std::span<const std::int32_t> ids = part.what == What::First    ? first
                                              : part.what == What::Second ? second
                                                                          : std::span(part.ids);
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.insert(out.types.end(), ids.size(), part.type);
  }
  return out;
}

}  // namespace aloft::parts

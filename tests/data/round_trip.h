// Byte strings that break tokenizers, and the property that every one must hold on them.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace aloft {

inline std::vector<std::string> difficult_strings() {
  using namespace std::string_literals;
  std::vector<std::string> all = {
      "",
      " ",
      "  ",
      "\n",
      "\n\n\n",
      "\r\n",
      "\t",
      " \t \n\t\t  x\t y  \n ",
      "\0"s,
      "a\0b\0\0c"s,
      " leading and trailing ",
      "int  main( )\n{\n\treturn 0;\n}\n",
      "\xE2\x96\x81",                       // U+2581, SentencePiece's own mark for a space
      "\xE2\x96\x81 \xE2\x96\x81\xE2\x96",  // and cut short
      "<unk><s></s><pad><0x41><|endoftext|>",
      "\xE2\x81\x87 ",  // U+2047, what SentencePiece shows for unknown
      "na\xC3\xAFve caf\xC3\xA9 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x99\x82",
      "e\xCC\x81 vs \xC3\xA9",                     // not to be normalised
      "\xEF\xBC\xA1\xEF\xBD\x82",                  // full-width letters: NFKC would change them
      "\xC2\xA0\xE3\x80\x80\xE2\x80\x83\xC2\x85",  // no-break, ideographic, em space, next line
      "\xFF\xFE\x80\xC0\xAF",
      "\xED\xA0\x80",      // a surrogate
      "\xF4\x90\x80\x80",  // beyond Unicode
      "don't we'll I'VE it's 123 456,789.0 x2y3",
      "\xEF\xBB\xBFwith a byte order mark",
      std::string(5000, ' '),
      std::string(5000, 'a'),
      std::string(3000, '\n'),
      std::string(20000, '\xE2'),
  };
  for (int b = 0; b < 256; ++b) {
    all.push_back(std::string(1, static_cast<char>(b)));
    all.push_back("a" + std::string(1, static_cast<char>(b)) + " b");
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 300, '\0'), spaces(random() % 100, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    for (char& c : spaces) c = " \n\ta\r\xC3\xA9"[random() % 7];
    all.push_back(bytes);
    all.push_back(spaces);
  }
  return all;
}

inline void expect_round_trips(const Tokenizer& tokenizer) {
  for (const std::string& text : difficult_strings()) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    for (std::int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer.vocab_size());
    ASSERT_EQ(tokenizer.decode(ids), text);
  }
}

// Cutting at safe_cut never changes the ids.
inline void expect_safe_cuts(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> whole = tokenizer.encode(text);
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const std::size_t cut = tokenizer.safe_cut(std::string_view(text).substr(0, at));
    ASSERT_LE(cut, at);
    std::vector<std::int32_t> ids = tokenizer.encode(std::string_view(text).substr(0, cut));
    tokenizer.encode_to(std::string_view(text).substr(cut), ids);
    ASSERT_EQ(ids, whole) << "cut at " << cut;
  }
}

}  // namespace aloft

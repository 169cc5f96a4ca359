// A text that is being cut into words: pieces of it, in order. Memory is kept from text to text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aloft::parts {

struct Piece {
  std::size_t begin, end;
  bool is_first;  // begins where the whole text does
};

class Pieces {
 public:
  // Begins with all of `text` as one piece; none where it is empty. The text outlives this, or the
  // first change of it.
  void start(std::string_view text, bool is_first) {
    text_ = text;
    pieces_.clear();
    if (!text.empty()) pieces_.push_back({0, text.size(), is_first});
  }

  std::string_view text() const { return text_; }
  const std::vector<Piece>& all() const { return pieces_; }
  std::string_view of(const Piece& piece) const {
    return text_.substr(piece.begin, piece.end - piece.begin);
  }

  // Replaces every piece by parts of it: cut(text, keep) calls keep(begin, end), relative to the
  // piece. Empty parts are left out.
  template <class Cut>
  void cut(Cut cut) {
    next_.clear();
    for (const Piece& piece : pieces_)
      cut(of(piece), [&](std::size_t begin, std::size_t end) {
        if (begin < end)
          next_.push_back({piece.begin + begin, piece.begin + end, piece.is_first && begin == 0});
      });
    pieces_.swap(next_);
  }

  // Writes every piece anew: write(text, is_first, out) appends.
  template <class Write>
  void rewrite(Write write) {
    spare_.clear();
    for (Piece& piece : pieces_) {
      const std::size_t begin = spare_.size();
      write(of(piece), piece.is_first, spare_);
      piece.begin = begin;
      piece.end = spare_.size();
    }
    owned_.swap(spare_);
    text_ = owned_;
  }

 private:
  std::string_view text_;
  std::string owned_, spare_;
  std::vector<Piece> pieces_, next_;
};

}  // namespace aloft::parts

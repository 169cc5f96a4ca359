// What a call that is to be refused says, and the code that it ends in.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "base/error.h"

namespace aloft::e2e {

// What() of the UserError that `call` ends in; empty where it does not.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

// What() of the Error of whatever kind; empty where it does not end in one.
template <class Call>
std::string what_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The code of the Error that `call` ends in; empty where it does not.
template <class Call>
std::string code_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

inline void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

}  // namespace aloft::e2e

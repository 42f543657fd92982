#include "runtime/core/printable_text.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace runtime {
namespace {

TEST(PrintableText, OrdinaryTextStays) {
  for (const char* text :
       {"", "plain \\x1b", "\u00e9 \u4e2d \U0001F600 \u05d0\u0627 \u00a0\u200d", "two\n\tlines"})
    EXPECT_EQ(printable_text(text), text);
}

TEST(PrintableText, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(printable_text("\x1b[2J\x1b]0;title\x07gone\r\x7f\b"),
            "\\x1b[2J\\x1b]0;title\\x07gone\\x0d\\x7f\\x08");
  EXPECT_EQ(printable_text(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable_text("\u0080\u009b31m\u009f\u00a0"), "\\u0080\\u009b31m\\u009f\u00a0");
}

TEST(PrintableText, BidirectionalMarksAreEscaped) {
  EXPECT_EQ(printable_text("\u202a\u202b\u202c\u202d\u202e"),
            "\\u202a\\u202b\\u202c\\u202d\\u202e");
  EXPECT_EQ(printable_text("\u2066\u2067\u2068\u2069\u200e\u200f\u061c"),
            "\\u2066\\u2067\\u2068\\u2069\\u200e\\u200f\\u061c");
  EXPECT_EQ(printable_text("\u2029\u202f\u2065\u206a\u200d\u2010"),
            "\u2029\u202f\u2065\u206a\u200d\u2010");
}

TEST(PrintableText, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(printable_text("\x9b"
                           "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable_text("cut \xe2\x80"), "cut \\xe2\\x80");
  EXPECT_EQ(printable_text("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
  EXPECT_EQ(printable_text("\xe0\x80\x9b"), "\\xe0\\x80\\x9b") << "overlong";
  EXPECT_EQ(printable_text("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable_text("\xf4\x90\x80\x80\xff"), "\\xf4\\x90\\x80\\x80\\xff");
}

TEST(PrintableText, OneLine) { EXPECT_EQ(printable_text("a\n\tb", /*one_line=*/true), "a\\n\\tb"); }

TEST(PrintableText, JsonStaysTheSameForWhoParsesIt) {
  EXPECT_EQ(printable_json("{\"a\": \"\u009b31m \u202e \x7f\u00e9\"}\n"),
            "{\"a\": \"\\u009b31m \\u202e \\u007f\u00e9\"}\n");
  EXPECT_EQ(printable_json("\"\x9b\""), "\"\\ufffd\"");
}

TEST(PrintableText, OnlyTerminalsGetEscapes) {
  int terminal = -1, other = -1, pipe[2];
  ASSERT_EQ(::openpty(&terminal, &other, nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_EQ(terminal_text(other, "\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(terminal_text(pipe[1], "\x1b[2J\xff"), "\x1b[2J\xff");
  for (const int descriptor : {terminal, other, pipe[0], pipe[1]}) ::close(descriptor);
}

TEST(PrintableText, CharactersThatHaveBegunWaitForTheirEnd) {
  EXPECT_EQ(whole_characters(""), 0u);
  EXPECT_EQ(whole_characters("ab"), 2u);
  EXPECT_EQ(whole_characters("a\u00e9"), 3u);
  EXPECT_EQ(whole_characters("a\xc3"), 1u);
  EXPECT_EQ(whole_characters("a\xe2\x80"), 1u);
  EXPECT_EQ(whole_characters("a\xf0\x9f\x98"), 1u);
  EXPECT_EQ(whole_characters("a\xff"), 2u) << "nothing begins so";
  EXPECT_EQ(whole_characters("\x80\x80\x80"), 3u);
}

}  // namespace
}  // namespace runtime

// The frame of all HTML pages: one file that needs no other.
#pragma once

#include <string>

namespace rl {

struct Page {
  std::string title;  // text
  std::string body;   // HTML, inside of <main>
  std::string script;
  std::string body_class;
};

/// The whole document.
std::string page(const Page& page);

/// A box with a title (text) around HTML.
std::string card(const std::string& title, const std::string& inside);

/// A number with its name, both text, for a row of them in <div class='facts'>.
std::string fact(const std::string& name, const std::string& value);

}  // namespace rl

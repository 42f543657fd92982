#include "rl/report/page.h"

#include "rl/report/page_texts.h"
#include "rl/template/html.h"

namespace rl {

std::string page(const Page& page) {
  return "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
         "content='width=device-width,initial-scale=1'><title>" +
         html_text(page.title) + "</title><style>" + kStyle + "</style></head><body class='" +
         page.body_class + "'><main>" + page.body + "</main><script>" + page.script +
         "</script></body></html>\n";
}

std::string card(const std::string& title, const std::string& inside) {
  return "<div class='card'><h3>" + html_text(title) + "</h3>" + inside + "</div>";
}

std::string fact(const std::string& name, const std::string& value) {
  return "<div><span class='dim'>" + html_text(name) + "</span><b>" + html_text(value) +
         "</b></div>";
}

}  // namespace rl

#include "rl/report/page.h"

#include "rl/text/html.h"

namespace rl {
namespace {

constexpr const char* kStyle = R"(
:root{--ink:#1e293b;--dim:#64748b;--line:#e2e8f0;--back:#f8fafc}
body{margin:0;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back)}
main{max-width:1480px;margin:auto;padding:24px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 12px}h3{font-size:13px;font-weight:600;margin:0 0 4px;overflow-wrap:anywhere}
.dim{color:var(--dim)}.grid-of{display:grid;grid-template-columns:repeat(auto-fill,minmax(400px,1fr));gap:14px}
.card{background:#fff;border:1px solid var(--line);border-radius:8px;padding:12px}
svg{width:100%;display:block}svg text{font-size:11px;fill:var(--dim)}svg .y{text-anchor:end;dominant-baseline:middle}svg .x{text-anchor:middle}svg .end{text-anchor:end}
svg .grid{stroke:var(--line)}svg polyline{fill:none;stroke-width:1.6}
.legend{display:flex;flex-wrap:wrap;gap:2px 12px;font-size:12px;color:var(--dim)}.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:4px}
.facts{display:flex;flex-wrap:wrap;gap:12px;margin-top:14px}.facts div{background:#fff;border:1px solid var(--line);border-radius:8px;padding:8px 14px}.facts b{display:block;font-size:20px}
.sample{margin-bottom:14px}.sample pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0;font:13px/1.6 ui-monospace,monospace}.sample .out{background:var(--back);padding:8px;border-radius:6px}
.tok{border-radius:3px}body.by-advantage .tok{background:var(--a)}body.by-logprob .tok{background:var(--p)}
table{border-collapse:collapse}td,th{padding:2px 10px;text-align:left;vertical-align:top}th{color:var(--dim);font-weight:600}td.n,th.n{text-align:right}.right{color:#059669}.wrong{color:#dc2626}
details{margin-top:12px}summary{cursor:pointer;font-weight:600}button{font:inherit;padding:2px 12px;margin-right:6px;border:1px solid var(--line);border-radius:6px;background:#fff;cursor:pointer}
)";

}  // namespace

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

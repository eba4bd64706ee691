//! Self-contained HTML pages: their style, escaped text and tables.

use crate::table::Table;
use std::fmt::Write as _;

const STYLE: &str = "body{font-family:sans-serif;margin:2em auto;max-width:1200px;line-height:1.4}\
    section{border-left:4px solid #999;padding:0 1em;margin:1.5em 0}\
    section.throttling{border-color:#c81e1e}section.not-the-storage{border-color:#0072b2}\
    section.headroom{border-color:#e69f00}.small{color:#555;font-size:90%}\
    dl{display:grid;grid-template-columns:6em 1fr;gap:.2em 1em}dt{color:#555}dd{margin:0}\
    table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .7em;text-align:right;\
    border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
    svg{max-width:100%;height:auto}";

/// Returns a complete page; `body` is HTML.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n{body}</body>\n</html>\n",
        escaped(title)
    )
}

/// Returns text as HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a table with its title and notes; nothing for a table without rows and notes.
pub(crate) fn table(table: &Table) -> String {
    if !table.speaks() {
        return String::new();
    }
    let shown = table.shown();
    let mut out = String::new();
    if !table.title.is_empty() {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&table.title));
    }
    if !table.rows.is_empty() {
        out.push_str("<table><tr>");
        for (head, _) in &shown {
            let _ = write!(out, "<th>{}</th>", escaped(head));
        }
        out.push_str("</tr>\n");
        for row in &table.rows {
            out.push_str("<tr>");
            for (_, at) in &shown {
                let _ = write!(out, "<td>{}</td>", escaped(&row[*at].to_string()));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table>\n");
    }
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"small\">{}</p>", escaped(note));
    }
    out
}

/// Returns paragraphs of text.
pub(crate) fn paragraphs<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().map(|line| format!("<p>{}</p>\n", escaped(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;

    #[test]
    fn a_page_escapes_text_and_leaves_out_columns_for_machines() {
        let mut own = Table::new("a < b", &["name", "|raw", ">rate|rate_per_s"]);
        own.row(cells!["<script>", "hidden", "5"]);
        let page = page("x & y", &table(&own));
        assert!(page.contains("<title>x &amp; y</title>"), "{page}");
        assert!(page.contains("<h2>a &lt; b</h2>"), "{page}");
        assert!(page.contains("<tr><th>name</th><th>rate</th></tr>"), "{page}");
        assert!(page.contains("<tr><td>&lt;script&gt;</td><td>5</td></tr>"), "{page}");
        assert!(!page.contains("hidden"), "{page}");
    }
}

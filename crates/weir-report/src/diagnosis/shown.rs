//! A diagnosis as text, Markdown, CSV and HTML.

use super::{CapReport, DiagnosisReport, EffectPrice, EffectReport, Finding, PlotReport};
use crate::cells;
use crate::chart::{self, Chart, DrawError, Line};
use crate::number::{grouped, mib, percent, rate, time};
use crate::table::{Cell, Format, Report, Table};
use std::fmt::Write as _;

impl Report for DiagnosisReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.caps_table(), self.subjects_table()]
    }

    fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(),
            Format::Markdown => self.markdown(),
            Format::Json => crate::table::json(self),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                let heads = ["CheckID", "Priority", "FindingsGroup", "Finding", "URL", "Details"];
                // Writing to memory does not fail, and all rows have the same length.
                let mut written = writer.write_record(heads).is_ok();
                for own in &self.findings {
                    let (id, priority) = (own.check_id.to_string(), own.priority.to_string());
                    let details = details(own).join("; ");
                    let row =
                        [&id, &priority, own.group.words(), &own.finding, own.source.url, &details];
                    written &= writer.write_record(row).is_ok();
                }
                debug_assert!(written);
                String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
            }
        }
    }
}

/// All that a finding says beside its sentence.
fn details(own: &Finding) -> Vec<String> {
    let mut details = own.evidence.clone();
    details.extend(own.moments.iter().map(|moment| {
        format!("from {} to {} s: {}", short(moment.from_s), short(moment.to_s), moment.what)
    }));
    details.extend(own.ruled_out.iter().map(|out| format!("ruled out: {out}")));
    details.push(format!("do: {}", own.action));
    details.extend(own.effect.iter().map(|effect| format!("expected: {}", effect.words())));
    details.push(format!("confidence: {}", own.confidence.words()));
    details.push(format!("source: {}", own.source.title));
    details.retain(|line| !line.ends_with(": "));
    details
}

fn short(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl EffectReport {
    /// In a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "with the change that {}: {} instead of {} IOPS, {} instead of {} mean latency; {} ({})",
            self.change,
            rate(self.iops_after),
            rate(self.iops_before),
            time(self.latency_after_ns),
            time(self.latency_before_ns),
            self.price_words(),
            self.basis
        )
    }

    fn price_words(&self) -> String {
        let note = self.price_note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
        let Some(own) = &self.price else { return format!("price not known{note}") };
        let EffectPrice { currency, region, before, after, difference, unknown } = own;
        let missing = unknown.join(", ");
        match (difference, unknown.is_empty()) {
            (Some(delta), true) => {
                format!("{after} instead of {before} {currency} a month ({delta}; {region}){note}")
            }
            (Some(delta), false) => format!(
                "price {delta} {currency} a month ({region}; the rest of the price is not known: \
                 {missing}){note}"
            ),
            (None, _) => format!("price not known ({region} has none of {missing}){note}"),
        }
    }
}

impl DiagnosisReport {
    fn observed_words(&self) -> String {
        let span = short(self.span_s.1 - self.span_s.0);
        format!(
            "observed: {}; {} samples, {} s apart, {span} s in all; limits: {}",
            self.observed.join(", "),
            self.samples,
            short(self.interval_s),
            self.limits_from
        )
    }

    fn caps_table(&self) -> Table {
        let heads =
            ["cap", "of", ">limit", ">mean", ">p99", ">max", ">at 90 %", ">of samples", ">waited"];
        // Of those that JSON has, those of which there is something to see.
        let is_used = |cap: &&CapReport| cap.max > 0.0 || cap.waited_ns > 0.0;
        let left_out = self.caps.len() - self.caps.iter().filter(is_used).count();
        let title = match left_out {
            0 => "Limits".to_owned(),
            count => format!("Limits (not shown: {count} of which nothing was used)"),
        };
        let mut table = Table::new(&title, &heads);
        for cap in self.caps.iter().filter(is_used) {
            let of = |value: f64| amount(cap, value);
            let bound = if cap.is_upper_bound { " (at most)" } else { "" };
            table.row(cells![
                format!("{}{bound}", cap.cap),
                cap.owner.as_str(),
                of(cap.limit),
                of(cap.mean),
                of(cap.p99),
                of(cap.max),
                grouped(cap.near_limit_count),
                grouped(cap.samples),
                time(cap.waited_ns),
            ]);
        }
        table
    }

    fn subjects_table(&self) -> Table {
        let heads =
            ["name", "is", "tier", ">IOPS", ">MiB/s", ">latency", ">medium", ">waited", "held at"];
        let mut table = Table::new("Files and disks", &heads);
        for own in &self.subjects {
            let known = |ns: Option<f64>| ns.map_or_else(Cell::none, time);
            table.row(cells![
                own.name.as_str(),
                own.kind,
                own.tier.as_deref().unwrap_or("-"),
                own.iops.map_or_else(Cell::none, rate),
                own.bytes_per_s.map_or_else(Cell::none, mib),
                known(own.latency_ns),
                known(own.medium_ns),
                own.waited_share.map_or_else(Cell::none, percent),
                own.cap.as_deref().unwrap_or("-"),
            ]);
        }
        table
    }

    fn text(&self) -> String {
        let mut out = format!("{}: {}\n", self.verdict.words(), self.summary);
        let _ = writeln!(out, "{}", self.observed_words());
        for own in &self.findings {
            let _ = writeln!(
                out,
                "\n[{}] {} ({}, priority {}, confidence {})\n    {}",
                own.check_id,
                own.rule,
                own.group.words(),
                own.priority,
                own.confidence.words(),
                own.finding
            );
            let mut line = |head: &str, text: &str| {
                let _ = writeln!(out, "    {head:<9} {text}");
            };
            own.evidence.iter().for_each(|text| line("because", text));
            for moment in &own.moments {
                let (from, to) = (short(moment.from_s), short(moment.to_s));
                line("at", &format!("{from} to {to} s: {}", moment.what));
            }
            own.ruled_out.iter().for_each(|text| line("not", text));
            if !own.action.is_empty() {
                line("do", &own.action);
            }
            own.effect.iter().for_each(|effect| line("expected", &effect.words()));
            line("source", own.source.title);
        }
        for table in self.tables() {
            if !table.rows.is_empty() {
                let _ =
                    write!(out, "\n{}", crate::table::Listing(vec![table]).render(Format::Text));
            }
        }
        self.notes.iter().for_each(|note| {
            let _ = writeln!(out, "\n{note}");
        });
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!(
            "# {}\n\n{}\n\n{}\n",
            self.verdict.words(),
            self.summary,
            self.observed_words()
        );
        for own in &self.findings {
            let _ = writeln!(
                out,
                "\n## {} {}\n\n{}\n\n{}, priority {}, confidence {}. [{}]({})\n",
                own.check_id,
                own.rule,
                own.finding,
                own.group.words(),
                own.priority,
                own.confidence.words(),
                own.source.title,
                own.source.url
            );
            for detail in details(own).iter().filter(|line| !line.starts_with("confidence: ")) {
                let _ = writeln!(out, "- {detail}");
            }
        }
        for table in self.tables() {
            if !table.rows.is_empty() {
                let _ = write!(
                    out,
                    "\n{}",
                    crate::table::Listing(vec![table]).render(Format::Markdown)
                );
            }
        }
        self.notes.iter().for_each(|note| {
            let _ = writeln!(out, "\n{note}");
        });
        out
    }

    /// One page that needs nothing beside it, with plots of each file against its limits.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if the library that draws gives up.
    pub fn html(&self) -> Result<String, DrawError> {
        let mut body = String::new();
        let word = escaped(self.verdict.words());
        let _ = write!(
            body,
            "<h1>{word}</h1>\n<p class=\"summary\">{}</p>\n<p>{}</p>\n",
            escaped(&self.summary),
            escaped(&self.observed_words())
        );
        for own in &self.findings {
            let _ = write!(
                body,
                "<section class=\"{}\"><h2>{} {}</h2>\n<p><b>{}</b></p>\n<p class=\"small\">{}, \
                 priority {}, confidence {}; {}</p>\n<dl>\n",
                escaped(&own.group.words().replace(' ', "-").to_ascii_lowercase()),
                own.check_id,
                escaped(own.rule),
                escaped(&own.finding),
                escaped(own.group.words()),
                own.priority,
                own.confidence.words(),
                escaped(own.source.title)
            );
            let mut item = |head: &str, text: &str| {
                let _ = writeln!(body, "<dt>{head}</dt><dd>{}</dd>", escaped(text));
            };
            own.evidence.iter().for_each(|text| item("because", text));
            for moment in &own.moments {
                let (from, to) = (short(moment.from_s), short(moment.to_s));
                item("at", &format!("{from} to {to} s: {}", moment.what));
            }
            own.ruled_out.iter().for_each(|text| item("not", text));
            if !own.action.is_empty() {
                item("do", &own.action);
            }
            own.effect.iter().for_each(|effect| item("expected", &effect.words()));
            body.push_str("</dl></section>\n");
        }
        for table in self.tables() {
            body.push_str(&html_table(&table));
        }
        let rows: Vec<Vec<Chart>> = self.plots.iter().map(charts).collect();
        if !rows.is_empty() {
            body.push_str("<h2>Over time, and the limits</h2>\n");
            body.push_str(&chart::svg(&rows)?);
        }
        self.notes.iter().for_each(|note| {
            let _ = writeln!(body, "<p>{}</p>", escaped(note));
        });
        Ok(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{word}</title>\n\
             <style>{STYLE}</style></head>\n<body>\n{body}</body>\n</html>\n"
        ))
    }
}

const STYLE: &str = "body{font-family:sans-serif;margin:2em auto;max-width:1200px;line-height:1.4}\
    section{border-left:4px solid #999;padding:0 1em;margin:1.5em 0}\
    section.throttling{border-color:#c81e1e}section.not-the-storage{border-color:#0072b2}\
    section.headroom{border-color:#e69f00}.small{color:#555;font-size:90%}\
    dl{display:grid;grid-template-columns:6em 1fr;gap:.2em 1em}dt{color:#555}dd{margin:0}\
    table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .7em;text-align:right;\
    border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
    svg{max-width:100%;height:auto}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn html_table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut out = format!("<h2>{}</h2>\n<table><tr>", escaped(&table.title));
    for head in &table.heads {
        let _ = write!(out, "<th>{}</th>", escaped(head.trim_start_matches('>')));
    }
    out.push_str("</tr>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escaped(&cell.to_string()));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    out
}

fn amount(cap: &CapReport, value: f64) -> String {
    match cap.is_bytes {
        true => format!("{} MiB/s", rate(value / f64::from(1 << 20))),
        false => format!("{} IOPS", rate(value)),
    }
}

/// A row of pictures: operations, bytes and latency of one.
fn charts(plot: &PlotReport) -> Vec<Chart> {
    let line = |title: &str, points: &[(f64, Option<f64>)], scale: f64, limit: Option<f64>| {
        let points = points.iter().map(|(at, value)| (*at, value.map(|value| value * scale)));
        Chart {
            title: format!("{}: {title}", plot.name),
            lines: vec![Line { name: String::new(), points: points.collect() }],
            is_stacked: false,
            limit: limit.map(|limit| limit * scale),
        }
    };
    let mib = 1.0 / f64::from(1 << 20);
    let mut row = vec![
        line("IOPS", &plot.iops, 1.0, plot.iops_limit),
        line("MiB/s", &plot.bytes_per_s, mib, plot.bytes_per_s_limit),
    ];
    if plot.latency_ms.iter().any(|(_, value)| value.is_some()) {
        row.push(line("latency in ms", &plot.latency_ms, 1.0, None));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::super::{Confidence, Group, MomentReport, SourceReport, VerdictName};
    use super::*;

    fn report() -> DiagnosisReport {
        let finding = Finding {
            check_id: 101,
            rule: "disk-operations",
            priority: 10,
            group: Group::Throttling,
            finding: "data <1> is held, \"really\"".to_owned(),
            subject: "data".to_owned(),
            cap: Some("disk_iops".to_owned()),
            confidence: Confidence::High,
            evidence: vec!["it took 40 ms".to_owned()],
            moments: vec![MomentReport { from_s: 1.0, to_s: 2.5, what: "500 IOPS".to_owned() }],
            ruled_out: vec!["disk_bytes: 4 %".to_owned()],
            action: "grow it".to_owned(),
            effect: None,
            source: SourceReport { title: "an article", url: "docs/DIAGNOSIS.md#disk-operations" },
        };
        let plot = PlotReport {
            name: "data".to_owned(),
            iops: vec![(0.5, Some(480.0)), (1.5, Some(500.0))],
            iops_limit: Some(500.0),
            ..PlotReport::default()
        };
        DiagnosisReport {
            verdict: VerdictName::Throttled,
            summary: "data is held".to_owned(),
            findings: vec![finding],
            plots: vec![plot],
            ..DiagnosisReport::default()
        }
    }

    #[test]
    fn csv_has_the_shape_that_administrators_know() {
        let csv = report().render(Format::Csv);
        let expect = "CheckID,Priority,FindingsGroup,Finding,URL,Details\n101,10,Throttling,\
            \"data <1> is held, \"\"really\"\"\",docs/DIAGNOSIS.md#disk-operations,it took 40 ms; \
            from 1 to 2.5 s: 500 IOPS; ruled out: disk_bytes: 4 %; do: grow it; confidence: high; \
            source: an article\n";
        assert_eq!(csv, expect);
    }

    #[test]
    fn a_page_escapes_what_others_have_named() {
        let page = report().html().unwrap();
        assert!(page.contains("data &lt;1&gt; is held, &quot;really&quot;"));
        assert!(!page.contains("<1>") && page.contains("<svg"));
    }

    #[test]
    fn limits_of_which_nothing_is_used_are_counted_and_not_shown() {
        let cap = |owner: &str, max: f64, waited_ns: f64| CapReport {
            cap: "disk_iops".to_owned(),
            owner: owner.to_owned(),
            limit: 500.0,
            is_bytes: false,
            mean: max,
            p99: max,
            max,
            near_limit_count: 0,
            samples: 60,
            near_limit_share: 0.0,
            waited_ns,
            is_upper_bound: false,
        };
        let caps = vec![
            cap("used", 5.0, 0.0),
            cap("waited", 0.0, 1e9),
            cap("idle", 0.0, 0.0),
            cap("still", 0.0, 0.0),
        ];
        let report = DiagnosisReport { caps, ..report() };
        let shown = [report.render(Format::Text), report.render(Format::Markdown)];
        for text in shown.into_iter().chain([report.html().unwrap()]) {
            assert!(text.contains("Limits (not shown: 2 of which nothing was used)"), "{text}");
            assert!(text.contains("waited") && !text.contains("idle"), "{text}");
        }
        let json = report.render(Format::Json);
        assert!(json.contains("\"idle\"") && json.contains("\"still\""), "{json}");
    }

    #[test]
    fn text_says_first_what_it_comes_to() {
        let text = report().render(Format::Text);
        assert!(text.starts_with("throttled: data is held\n"), "{text}");
        let order = ["because", "at        1 to 2.5 s", "not", "do        grow it", "source"];
        let places: Vec<_> = order.iter().map(|word| text.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
        assert!(report().render(Format::Json).contains("\"verdict\": \"throttled\""));
    }
}

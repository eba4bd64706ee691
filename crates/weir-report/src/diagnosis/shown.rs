//! A diagnosis as text, Markdown and CSV.
//!
//! Text leads with the verdict, then a table of the findings, then evidence and fix of each, then
//! the files and disks. `--verbose` adds the time spans, what was ruled out, the sources, the
//! limits, and findings that have no effect on the observed load.

use super::{CapReport, DiagnosisReport, EffectPrice, EffectReport, Finding, VerdictName};
use crate::cells;
use crate::number::{grouped, mib, percent, rate, time};
use crate::screen::{Colour, Screen};
use crate::table::{Cell, Report, Table};
use std::fmt::Write as _;

/// Findings of this priority and above have no effect on the observed load.
const NO_EFFECT: u8 = 200;

/// Lines of evidence and files that are shown without `--verbose`.
const SHORT: usize = 8;

impl Report for DiagnosisReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.caps_table(), self.subjects_table()]
    }

    fn text(&self, screen: &Screen) -> String {
        let mut out = self.verdict_line(screen) + "\n";
        let (shown, rest): (Vec<&Finding>, Vec<&Finding>) =
            self.findings.iter().partition(|own| screen.is_verbose() || own.priority < NO_EFFECT);
        if !shown.is_empty() {
            let _ = write!(out, "\n{}", findings_table(&shown).block(screen));
        }
        for own in &shown {
            let _ = write!(out, "\n{}", finding_text(own, screen));
        }
        let tables = match screen.is_verbose() {
            true => self.tables(),
            false => vec![self.short_subjects_table()],
        };
        for table in tables.iter().filter(|table| !table.rows.is_empty()) {
            let _ = write!(out, "\n{}", table.block(screen));
        }
        let mut notes = vec![self.input_line()];
        notes.extend(self.notes.iter().cloned());
        if !rest.is_empty() {
            let names = rest.iter().map(|own| format!("{} {}", own.check_id, own.rule));
            let names = names.collect::<Vec<_>>().join(", ");
            notes.push(format!("no effect on the observed load (--verbose shows them): {names}"));
        }
        for note in notes {
            let _ = writeln!(out, "\n{}", screen.prose(&note, 2));
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out =
            format!("# {}\n\n{}\n\n{}\n", self.verdict.words(), self.summary, self.input_line());
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
        for table in self.tables().iter().filter(|table| !table.rows.is_empty()) {
            let _ = write!(out, "\n**{}**\n\n{}\n", table.title, table.markdown());
        }
        self.notes.iter().for_each(|note| {
            let _ = writeln!(out, "\n{note}");
        });
        out
    }

    fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let heads = ["CheckID", "Priority", "FindingsGroup", "Finding", "URL", "Details"];
        // Writing to memory does not fail, and all rows have the same length.
        let mut written = writer.write_record(heads).is_ok();
        for own in &self.findings {
            let (id, priority) = (own.check_id.to_string(), own.priority.to_string());
            let details = details(own).join("; ");
            let row = [&id, &priority, own.group.words(), &own.finding, own.source.url, &details];
            written &= writer.write_record(row).is_ok();
        }
        debug_assert!(written);
        String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
    }
}

/// Returns the table of findings: one row each, by priority and then by wait time.
fn findings_table(findings: &[&Finding]) -> Table {
    let heads = [">id", "finding", "subject", "limit", ">wait time", "confidence"];
    let mut table = Table::new("", &heads);
    for own in findings {
        let subject = match own.subjects.len() {
            0 | 1 => own.subject.clone(),
            count => format!("{} and {} more", own.subject, count - 1),
        };
        table.row(cells![
            own.check_id.to_string(),
            own.rule,
            subject,
            own.limit_words().map_or_else(Cell::none, Cell::from),
            if own.wait_ns > 0.0 { time(own.wait_ns) } else { Cell::none() },
            own.confidence.words(),
        ]);
    }
    table
}

/// Returns a finding with its evidence and fix.
fn finding_text(own: &Finding, screen: &Screen) -> String {
    let title = format!("{} {}: {}", own.check_id, own.rule, own.finding);
    let mut out = screen.prose(&title, 4) + "\n";
    let mut lines: Vec<(&str, String)> = Vec::new();
    let shown = if screen.is_verbose() { usize::MAX } else { SHORT };
    lines.extend(own.evidence.iter().take(shown).map(|text| ("evidence", text.clone())));
    if own.evidence.len() > shown {
        let more = format!("{} more lines with --verbose", own.evidence.len() - shown);
        lines.push(("evidence", more));
    }
    if screen.is_verbose() {
        lines.extend(moment_lines(own).into_iter().map(|text| ("when", text)));
        lines.extend(own.ruled_out.iter().map(|text| ("ruled out", text.clone())));
    }
    if !own.action.is_empty() {
        lines.push(("fix", own.action.clone()));
    }
    lines.extend(own.effect.iter().map(|effect| ("expected", effect.words())));
    if screen.is_verbose() {
        let group = own.group.words();
        lines.push(("priority", format!("{} ({group})", own.priority)));
        lines.push(("source", own.source.title.to_owned()));
    }
    let mut last = "";
    for (label, text) in lines {
        let (head, hanging) = if label == last { ("", 0) } else { (label, 10) };
        let _ = writeln!(out, "{}", screen.prose(&format!("    {head:<9} {text}"), hanging));
        last = label;
    }
    out
}

pub(super) fn moment_lines(own: &Finding) -> Vec<String> {
    let line = |moment: &super::MomentReport| {
        format!("{} to {} s: {}", short(moment.from_s), short(moment.to_s), moment.description)
    };
    own.moments.iter().map(line).collect()
}

impl Finding {
    /// Returns the limit of each subject with its unit.
    fn limit_words(&self) -> Option<String> {
        self.limit.map(|limit| amount(self.is_bytes, limit))
    }
}

/// Returns everything about a finding except its sentence, line by line.
fn details(own: &Finding) -> Vec<String> {
    let mut details = own.evidence.clone();
    details.extend(moment_lines(own).into_iter().map(|line| format!("from {line}")));
    details.extend(own.ruled_out.iter().map(|out| format!("ruled out: {out}")));
    details.push(format!("fix: {}", own.action));
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
    /// Returns the effect in a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "with {}: {} instead of {} IOPS, {} instead of {} mean latency; {} ({})",
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
        let Some(own) = &self.price else { return format!("price unknown{note}") };
        let EffectPrice { currency, region, before, after, difference, unknown } = own;
        let missing = unknown.join(", ");
        match (difference, unknown.is_empty()) {
            (Some(delta), true) => {
                format!("{after} instead of {before} {currency} a month ({delta}; {region}){note}")
            }
            (Some(delta), false) => format!(
                "{delta} {currency} a month ({region}; without {missing}, whose price is \
                 unknown){note}"
            ),
            (None, _) => format!("price unknown ({region} has no price of {missing}){note}"),
        }
    }
}

impl DiagnosisReport {
    /// Returns the verdict in one sentence, coloured where the screen has colours.
    fn verdict_line(&self, screen: &Screen) -> String {
        let colour = match self.verdict {
            VerdictName::Throttled => Colour::Red,
            VerdictName::NotTheStorage => Colour::Cyan,
            VerdictName::Healthy => Colour::Green,
            VerdictName::NotEnoughEvidence => Colour::Yellow,
        };
        let words = self.verdict.words();
        let line = screen.prose(&format!("{words}: {}", self.summary), 4);
        line.replacen(words, &screen.paint(colour, words), 1)
    }

    /// Returns the inputs, their samples, and the source of the limits.
    pub(super) fn input_line(&self) -> String {
        let span = short(self.span_s.1 - self.span_s.0);
        format!(
            "inputs: {}; {} samples, {} s apart, {span} s in all; limits: {}",
            self.inputs.join(", "),
            self.samples,
            short(self.interval_s),
            self.limits_source
        )
    }

    fn caps_table(&self) -> Table {
        let heads = [
            "limit",
            "owner",
            ">value",
            ">mean",
            ">p99",
            ">max",
            ">samples at 90 %",
            ">samples",
            ">wait time",
        ];
        // JSON has all of them.
        let is_used = |cap: &&CapReport| cap.max > 0.0 || cap.wait_ns > 0.0;
        let left_out = self.caps.len() - self.caps.iter().filter(is_used).count();
        let title = match left_out {
            0 => "Limits".to_owned(),
            count => format!("Limits ({count} unused limits are not shown)"),
        };
        let mut table = Table::new(&title, &heads);
        for cap in self.caps.iter().filter(is_used) {
            let shown = |value: f64| amount(cap.is_bytes, value);
            let bound = if cap.is_upper_bound { " (upper bound)" } else { "" };
            table.row(cells![
                format!("{}{bound}", cap.cap),
                cap.owner.as_str(),
                shown(cap.limit),
                shown(cap.mean),
                shown(cap.p99),
                shown(cap.max),
                grouped(cap.near_limit_count),
                grouped(cap.samples),
                time(cap.wait_ns),
            ]);
        }
        table
    }

    fn subjects_table(&self) -> Table {
        let heads = [
            "name",
            "kind",
            "tier",
            ">IOPS",
            ">MiB/s",
            ">latency",
            ">unloaded",
            ">wait",
            "throttled by",
        ];
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
                known(own.unloaded_latency_ns),
                own.wait_share.map_or_else(Cell::none, percent),
                own.cap.as_deref().unwrap_or("-"),
            ]);
        }
        table
    }

    /// Returns the files and disks with the longest wait times, without empty columns.
    fn short_subjects_table(&self) -> Table {
        let mut table = self.subjects_table();
        let all = self.subjects.len();
        for at in (0..table.heads.len()).rev() {
            if table.rows.iter().all(|row| row[at] == Cell::none()) {
                table.heads.remove(at);
                table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            }
        }
        if all > SHORT {
            table.rows.truncate(SHORT);
            table.title = format!("{} ({SHORT} of {all}, --verbose shows all)", table.title);
        }
        table
    }
}

/// Returns a rate or limit with its unit.
fn amount(is_bytes: bool, value: f64) -> String {
    match is_bytes {
        true => format!("{} MiB/s", rate(value / f64::from(1 << 20))),
        false => format!("{} IOPS", rate(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Confidence, Group, MomentReport, PlotReport, SourceReport, SubjectReport};
    use super::*;
    use crate::Format;

    fn report() -> DiagnosisReport {
        let finding = Finding {
            check_id: 101,
            rule: "disk-operations",
            priority: 10,
            group: Group::Throttling,
            finding: "data <1> is throttled, \"really\"".to_owned(),
            subject: "data".to_owned(),
            subjects: vec!["data".to_owned()],
            cap: Some("disk_iops".to_owned()),
            limit: Some(500.0),
            is_bytes: false,
            wait_ns: 90e9,
            confidence: Confidence::High,
            evidence: vec!["it took 40 ms".to_owned()],
            moments: vec![MomentReport {
                from_s: 1.0,
                to_s: 2.5,
                description: "500 IOPS".to_owned(),
            }],
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
            summary: "data is throttled".to_owned(),
            findings: vec![finding],
            plots: vec![plot],
            ..DiagnosisReport::default()
        }
    }

    #[test]
    fn csv_has_the_shape_that_administrators_know() {
        let csv = report().render(Format::Csv);
        let expect = "CheckID,Priority,FindingsGroup,Finding,URL,Details\n101,10,Throttling,\
            \"data <1> is throttled, \"\"really\"\"\",docs/DIAGNOSIS.md#disk-operations,it took 40 ms; \
            from 1 to 2.5 s: 500 IOPS; ruled out: disk_bytes: 4 %; fix: grow it; confidence: high; \
            source: an article\n";
        assert_eq!(csv, expect);
    }

    #[test]
    fn a_page_escapes_what_others_have_named() {
        let page = report().page().unwrap().html("now");
        assert!(page.contains("data &lt;1&gt; is throttled, &quot;really&quot;"));
        assert!(!page.contains("<1>") && page.contains("<svg"));
    }

    #[test]
    fn unused_limits_are_counted_and_not_shown() {
        let cap = |owner: &str, max: f64, wait_ns: f64| CapReport {
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
            wait_ns,
            is_upper_bound: false,
        };
        let caps = vec![
            cap("used", 5.0, 0.0),
            cap("waited", 0.0, 1e9),
            cap("idle", 0.0, 0.0),
            cap("still", 0.0, 0.0),
        ];
        let report = DiagnosisReport { caps, ..report() };
        let verbose = Screen::unlimited().with_details(true);
        let shown = [report.text(&verbose), report.render(Format::Markdown)];
        for text in shown.into_iter().chain([report.page().unwrap().html("now")]) {
            assert!(text.contains("Limits (2 unused limits are not shown)"), "{text}");
            assert!(text.contains("waited") && !text.contains("idle"), "{text}");
        }
        let json = report.render(Format::Json);
        assert!(json.contains("\"idle\"") && json.contains("\"still\""), "{json}");
    }

    #[test]
    fn text_leads_with_the_verdict_and_the_findings() {
        let text = report().render(Format::Text);
        let begin = "throttled: data is throttled\n\n  id  finding          subject  limit     wait \
                     time  confidence\n 101  disk-operations  data     500 IOPS     90.0 s  high\n";
        assert!(text.starts_with(begin), "{text}");
        let order = ["101 disk-operations: ", "evidence  it took 40 ms", "fix       grow it"];
        let places: Vec<_> = order.iter().map(|word| text.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
        assert!(!text.contains("ruled out") && !text.contains("an article"), "{text}");
        assert!(report().render(Format::Json).contains("\"verdict\": \"throttled\""));
    }

    #[test]
    fn the_short_table_has_no_empty_columns() {
        let own = SubjectReport {
            name: "data".to_owned(),
            kind: "disk",
            tier: None,
            iops: Some(5.0),
            bytes_per_s: None,
            latency_ns: Some(2e6),
            unloaded_latency_ns: None,
            wait_share: None,
            cap: None,
            basis: "",
        };
        let report = DiagnosisReport { subjects: vec![own], ..report() };
        let text = report.text(&Screen::unlimited());
        assert!(text.contains("\n name  kind  IOPS  latency\n"), "{text}");
        let verbose = report.text(&Screen::unlimited().with_details(true));
        assert!(verbose.contains("throttled by"), "{verbose}");
    }

    #[test]
    fn lines_of_the_same_label_have_one_indent() {
        let mut report = report();
        report.findings[0].evidence = vec!["first ".repeat(20), "second ".repeat(20)];
        let text = report.text(&Screen::of_width(60));
        let lines = text.lines().filter(|line| line.trim_start().starts_with("second"));
        assert!(lines.clone().count() > 1, "{text}");
        lines.for_each(|line| assert!(line.starts_with("              second"), "{text}"));
    }

    #[test]
    fn details_are_shown_on_demand() {
        let mut report = report();
        let minor = Finding { check_id: 404, priority: 200, ..report.findings[0].clone() };
        report.findings.push(minor);
        let text = report.text(&Screen::unlimited());
        let rest = "no effect on the observed load (--verbose shows them): 404 disk-operations";
        assert!(text.contains(rest) && !text.contains("404 disk-operations: "), "{text}");
        let text = report.text(&Screen::unlimited().with_details(true));
        let order = ["evidence", "when      1 to 2.5 s: 500 IOPS", "ruled out disk_bytes: 4 %"];
        let order = order.iter().chain(&["fix", "source    an article"]);
        let places: Vec<_> = order.map(|word| text.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
        assert!(text.contains("404 disk-operations: "), "{text}");
    }

    #[test]
    fn a_verdict_has_a_colour_only_on_a_screen_with_colours() {
        let plain = report().text(&Screen::of_width(80));
        assert!(!plain.contains('\u{1b}'), "{plain}");
        let coloured = report().text(&Screen::of_width(80).with_colours(true));
        assert!(coloured.starts_with("\u{1b}[1;31mthrottled\u{1b}[0m: data"), "{coloured}");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let mut report = report();
        report.findings[0].finding = "data is throttled by its limit ".repeat(9);
        report.findings[0].evidence = vec!["a word ".repeat(40)];
        report.summary = "something ".repeat(30);
        for width in [60, 80] {
            for is_verbose in [false, true] {
                let text = report.text(&Screen::of_width(width).with_details(is_verbose));
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width), "{widest:?}\n{text}");
            }
        }
    }
}

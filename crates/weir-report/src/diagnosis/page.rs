//! A diagnosis as an HTML page with plots.

use super::shown::moment_lines;
use super::{DiagnosisReport, PlotReport};
use crate::chart::{Chart, DrawError, Line};
use crate::page::{Page, escaped};
use crate::table::Report;
use std::fmt::Write as _;

impl DiagnosisReport {
    /// Returns the page of the diagnosis, with plots of each file against its limits.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a plot cannot be drawn.
    pub fn page(&self) -> Result<Page, DrawError> {
        let mut body = String::new();
        let _ = write!(
            body,
            "<p class=\"summary\">{}</p>\n<p>{}</p>\n",
            escaped(&self.summary),
            escaped(&self.input_line())
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
            own.evidence.iter().for_each(|text| item("evidence", text));
            moment_lines(own).iter().for_each(|text| item("when", text));
            own.ruled_out.iter().for_each(|text| item("ruled out", text));
            if !own.action.is_empty() {
                item("fix", &own.action);
            }
            own.effect.iter().for_each(|effect| item("expected", &effect.words()));
            body.push_str("</dl></section>\n");
        }
        let rows: Vec<Vec<Chart>> = self.plots.iter().map(charts).collect();
        let page = Page::new(self.verdict.words()).html_part(&body).tables(&self.tables());
        let page = page.charts("Rates over time and their limits", &rows)?;
        Ok(page.paragraphs(self.notes.iter().map(String::as_str)))
    }
}

/// Returns the plots of a subject: IOPS, throughput and latency.
fn charts(plot: &PlotReport) -> Vec<Chart> {
    let line = |title: &str, points: &[(f64, Option<f64>)], scale: f64, limit: Option<f64>| {
        let points = points.iter().map(|(at, value)| (*at, value.map(|value| value * scale)));
        Chart {
            title: format!("{}: {title}", plot.name),
            lines: vec![Line { name: String::new(), points: points.collect() }],
            is_stacked: false,
            limit: limit.map(|limit| limit * scale),
            burst: None,
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

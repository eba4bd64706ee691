//! The result of the recovery of a database.

use crate::cells;
use crate::number::{float, grouped, mib, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// A successful recovery: no acknowledged transaction is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecoveryReport {
    /// Set if the database is new.
    pub is_new: bool,
    /// Bytes of replayed log.
    pub log_bytes: u64,
    /// Replayed transactions.
    pub transactions: u64,
    /// The last transaction.
    pub commit: u64,
    /// Page changes up to it, the sum of all page versions.
    pub changes: u64,
    /// The last acknowledged transaction, if recorded.
    pub acknowledged: Option<u64>,
    /// Checked pages.
    pub pages_read: u64,
    /// Pages rebuilt from the log because they were old or torn.
    pub pages_rebuilt: u64,
    /// Torn pages among them.
    pub torn_pages: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Notes.
    pub notes: Vec<String>,
}

impl Report for RecoveryReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            ">MiB of log|log_bytes",
            ">transactions replayed|transactions",
            ">last transaction|commit",
            ">acknowledged|acknowledged",
            ">changes|changes",
            ">pages checked|pages_read",
            ">rebuilt|pages_rebuilt",
            ">torn|torn_pages",
            ">time|seconds",
        ];
        let mut table = Table::new("", &heads);
        table.row(cells![
            mib(float(self.log_bytes)),
            grouped(self.transactions),
            grouped(self.commit),
            self.acknowledged.map_or_else(Cell::none, grouped),
            grouped(self.changes),
            grouped(self.pages_read),
            grouped(self.pages_rebuilt),
            grouped(self.torn_pages),
            time(self.seconds * 1e9),
        ]);
        table.notes.push(match self {
            Self { is_new: true, .. } => "the database is new".to_owned(),
            Self { acknowledged: None, .. } => "all pages match the log".to_owned(),
            _ => {
                "all acknowledged transactions are present, and all pages match the log".to_owned()
            }
        });
        table.notes.extend(self.notes.iter().cloned());
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Format;

    #[test]
    fn an_unproved_result_is_not_claimed() {
        let said = |acknowledged: Option<u64>, notes: &[&str]| {
            let notes = notes.iter().map(|note| (*note).to_owned()).collect();
            let report =
                RecoveryReport { commit: 7, acknowledged, notes, ..RecoveryReport::default() };
            (report.render(Format::Text), report.render(Format::Json))
        };
        let (text, json) = said(Some(5), &[]);
        let all = "all acknowledged transactions are present, and all pages match the log\n";
        assert!(text.ends_with(all) && json.contains("\"acknowledged\": 5"), "{text}{json}");
        let (text, json) = said(None, &["no number"]);
        assert!(text.ends_with("\nall pages match the log\nno number\n"), "{text}");
        assert!(json.contains("\"acknowledged\": null"), "{json}");
    }
}

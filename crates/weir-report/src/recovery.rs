//! What the recovery of a database found and did.

use crate::cells;
use crate::number::{float, grouped, mib, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// A recovery that succeeded: nothing that is known to be acknowledged is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecoveryReport {
    /// The database had never run.
    pub is_new: bool,
    /// Bytes of log that were read again.
    pub log_bytes: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// The last transaction.
    pub commit: u64,
    /// How often pages were changed up to it, which the versions of all pages add up to.
    pub changes: u64,
    /// The last transaction that is known to have been acknowledged, if that was noted.
    pub acknowledged: Option<u64>,
    /// Pages that were read and checked.
    pub pages_read: u64,
    /// Pages of which the log had a newer version, or that were torn, and were written.
    pub pages_rebuilt: u64,
    /// Those of them that were torn.
    pub torn_pages: u64,
    /// How long it took.
    pub seconds: f64,
    /// What a reader should know.
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
            Self { is_new: true, .. } => "the database had never run".to_owned(),
            Self { acknowledged: None, .. } => "all pages are as the log says".to_owned(),
            _ => "all that was acknowledged is there, and all pages are as the log says".to_owned(),
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
    fn what_is_not_proved_is_not_claimed() {
        let said = |acknowledged: Option<u64>, notes: &[&str]| {
            let notes = notes.iter().map(|note| (*note).to_owned()).collect();
            let report =
                RecoveryReport { commit: 7, acknowledged, notes, ..RecoveryReport::default() };
            (report.render(Format::Text), report.render(Format::Json))
        };
        let (text, json) = said(Some(5), &[]);
        let all = "all that was acknowledged is there, and all pages are as the log says\n";
        assert!(text.ends_with(all) && json.contains("\"acknowledged\": 5"), "{text}{json}");
        let (text, json) = said(None, &["no number"]);
        assert!(text.ends_with("\nall pages are as the log says\nno number\n"), "{text}");
        assert!(json.contains("\"acknowledged\": null"), "{json}");
    }
}

//! The buffer configuration printed by trace flags 3213, 3014 and 3004, to the client or to the
//! error log.
//!
//! ```text
//! Backup/Restore buffer configuration parameters
//! BufferCount:                13
//! MaxTransferSize:            1024 KB
//! Backup(Sales): Number of data file readers = 4
//! ```

use super::ended::{Ended, between, leading};
use weir_observe::attribute;

/// Buffers and readers of a backup, as far as they are printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Trace {
    readers: Option<u64>,
    buffers: Option<u64>,
    sets: Option<u64>,
    max_transfer: Option<u64>,
    is_compressed: Option<bool>,
    /// Streams named by lines, which are the stripes.
    streams: u64,
    /// Targets named by lines.
    targets: Vec<String>,
}

impl Trace {
    /// Takes a line; returns whether it belongs to the trace.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let line = line.trim();
        let lower = line.to_ascii_lowercase();
        let kib = |text: &str| -> Option<u64> {
            let by = match text.trim_start_matches(|c: char| c.is_ascii_digit()).trim() {
                "kb" => 1 << 10,
                "mb" => 1 << 20,
                _ => return None,
            };
            leading(text)?.checked_mul(by)
        };
        if let Some((name, value)) = lower.split_once(':') {
            let value = value.trim();
            let slot = match name.trim() {
                "buffercount" => Some((&mut self.buffers, leading(value))),
                "sets of buffers" => Some((&mut self.sets, leading(value))),
                "maxtransfersize" => Some((&mut self.max_transfer, kib(value))),
                "memory limit"
                | "min maxtransfersize"
                | "total buffer space"
                | "tabular data device count"
                | "fulltext data device count"
                | "filestream device count"
                | "txf device count"
                | "filesystem i/o alignment"
                | "media buffer count"
                | "media buffer size"
                | "encode buffer count" => return true,
                _ => None,
            };
            if let Some((slot, value)) = slot {
                *slot = value.or(*slot);
                return true;
            }
        }
        for before in ["number of data file readers = ", "dbreadercount = "] {
            if let Some((_, value)) = lower.split_once(before) {
                self.readers = leading(value).or(self.readers);
                return true;
            }
        }
        if let Some((_, options)) = lower.split_once("effective options:") {
            self.is_compressed = between(options, "compression=", ",").map(|flag| flag != "0");
            return true;
        }
        if let Some((_, rest)) = line.split_once("BackupStream(") {
            let stream = leading(rest).unwrap_or(0).min(63);
            self.streams = self.streams.max(stream + 1);
            if let Some((_, path)) = rest.split_once(" to the device ")
                && self.targets.len() < 64
            {
                self.targets.push(path.to_owned());
            }
            return true;
        }
        lower.starts_with("backup(") || lower.starts_with("restore(") || is_of_it(&lower)
    }

    /// Adds the facts to a backup.
    pub(super) fn tell(self, ended: &mut Ended) {
        ended.number(attribute::READERS, self.readers);
        ended.number(attribute::BUFFER_COUNT, self.buffers);
        ended.number(attribute::BUFFER_SETS, self.sets);
        ended.number(attribute::MAX_TRANSFER_BYTES, self.max_transfer);
        ended.number(attribute::STRIPES, Some(self.streams).filter(|count| *count > 0));
        let is_compressed = self.is_compressed == Some(true) || self.sets == Some(3);
        ended.text(attribute::COMPRESSION, is_compressed.then_some("on"));
        for target in &self.targets {
            ended.target(target);
        }
    }
}

fn is_of_it(lower: &str) -> bool {
    [
        "backup/restore buffer configuration",
        "shared backup bufferq count",
        "backup database started",
    ]
    .iter()
    .any(|begin| lower.starts_with(begin))
}

/// Returns the database in a line of the trace: `Backup(Sales): ..`.
pub(super) fn database(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("Backup(").or_else(|| line.strip_prefix("Restore("))?;
    rest.split_once("):").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_trace_flags() {
        let mut own = Trace::default();
        for line in [
            "Backup: DBReaderCount = 4",
            "Memory limit: 895MB",
            "BufferCount:                13",
            "Sets Of Buffers:            1",
            "MaxTransferSize:            1024 KB",
            "Backup(Sales): Effective options: Checksum=1, Compression=1, Encryption=0, BufferCount=7",
            "Backup(Sales): BackupStream(1): Writing leading metadata to the device D:\\b\\2.bak",
        ] {
            assert!(own.take(line), "{line}");
        }
        assert!(!own.take("10 percent processed."));
        let mut ended = Ended::default();
        own.tell(&mut ended);
        let number =
            |name| ended.facts.iter().find(|(own, _)| *own == name).map(|own| own.1.clone());
        assert_eq!(number(attribute::READERS), Some(4.into()));
        assert_eq!(number(attribute::BUFFER_COUNT), Some(13.into()));
        assert_eq!(number(attribute::MAX_TRANSFER_BYTES), Some((1 << 20).into()));
        assert_eq!(number(attribute::STRIPES), Some(2.into()));
        assert_eq!(number(attribute::COMPRESSION), Some("on".into()));
        assert_eq!(ended.targets, ["D:\\b"]);
        assert_eq!(database("Backup(a b): Done"), Some("a b"));
    }
}

//! The line that SQL Server prints at the end of a backup or restore (message 3014).
//!
//! ```text
//! BACKUP DATABASE successfully processed 5122010 pages in 243.504 seconds (164.332 MB/sec).
//! BACKUP DATABASE...FILE=<name> WITH DIFFERENTIAL successfully processed 40 pages in ..
//! RESTORE DATABASE ... FILE=<name> successfully processed 23288 pages in ..
//! ```
//!
//! The rate is `(8192 x data pages + 512 x log blocks) / 2^20 / seconds`, cut to three decimals. Of
//! the log only its pages are printed, which are its blocks of 512 bytes over 16, rounded up. So the
//! rate tells the bytes, and cannot be above that of whole pages.

use super::ended::float;

/// Bytes of a page.
pub(super) const PAGE: f64 = 8192.0;
/// Bytes of a block of the log.
const BLOCK: f64 = 512.0;
const MIB: f64 = 1_048_576.0;
/// The rate is truncated to this precision.
const CUT: f64 = 0.001;

/// The parsed line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) is_restore: bool,
    /// `full`, `differential`, `log`, `file`.
    pub(super) what: &'static str,
    pub(super) pages: u64,
    pub(super) seconds: f64,
    /// MiB per second, if it is printed.
    pub(super) rate: Option<f64>,
}

impl Message {
    /// Returns whether a line is this message, complete or not.
    pub(super) fn is_one(line: &str) -> bool {
        line.contains(" successfully processed ")
            && ["BACKUP DATABASE", "BACKUP LOG", "RESTORE DATABASE", "RESTORE LOG"]
                .iter()
                .any(|verb| line.contains(verb))
    }

    /// Parses a line.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (head, rest) = line.split_once(" successfully processed ")?;
        let start = head.find("BACKUP ").or_else(|| head.find("RESTORE "))?;
        let head = &head[start..];
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [pages, "pages", "in", seconds, "seconds", rate @ ..] = &words[..] else { return None };
        // Some locales print a comma in place of the point.
        let number = |text: &str| text.replace(',', ".").parse::<f64>().ok();
        let rate = match rate {
            [rate, unit, ..] if unit.starts_with("MB/sec") => {
                Some(number(rate.strip_prefix('(')?)?)
            }
            _ => None,
        };
        let is = |word: &str| head.contains(word);
        let what = match () {
            () if is(" LOG") => "log",
            () if is("FILE=") => "file",
            () if is("DIFFERENTIAL") => "differential",
            () => "full",
        };
        let (pages, seconds) = (pages.parse().ok()?, number(seconds)?);
        let is_right = |value: f64| value.is_finite() && value >= 0.0;
        (is_right(seconds) && rate.is_none_or(is_right)).then_some(Self {
            is_restore: head.starts_with("RESTORE"),
            what,
            pages,
            seconds,
            rate,
        })
    }

    /// Returns the bytes processed, and a remark if the printed rate does not fit. `log` is the
    /// number of log pages among all pages, if known.
    pub(super) fn bytes(&self, log: Option<u64>) -> (f64, Option<String>) {
        let all = float(self.pages) * PAGE;
        let Some(rate) = self.rate.filter(|_| self.seconds > 0.0) else { return (all, None) };
        let log = match self.what {
            "log" => self.pages,
            _ => log.unwrap_or(self.pages).min(self.pages),
        };
        // The last page of the log has at least one block.
        let least = all - float(log) * PAGE + (float(log) * 16.0 - 15.0).max(0.0) * BLOCK;
        let per_s = |bytes: f64| bytes / MIB / self.seconds;
        if rate > per_s(all) + CUT || rate + CUT < per_s(least) {
            let remark = format!(
                "prints {rate:.3} MB/sec, but {} pages in {:.3} seconds are {:.3}: the bytes are \
                 those of the pages (FILESTREAM data and old versions are counted differently)",
                self.pages,
                self.seconds,
                per_s(all)
            );
            return (all, Some(remark));
        }
        // The rate is truncated, so the bytes are between this and a little more, in whole blocks.
        let from = rate * MIB * self.seconds;
        let bytes = (from / BLOCK).ceil() * BLOCK;
        let is_whole = per_s(all) < rate + CUT;
        (if is_whole { all } else { bytes.clamp(least, all) }, None)
    }
}

/// Parses `Processed 584 pages for database 'Sales', file 'Sales_log' on file 1.`: pages,
/// database.
pub(super) fn processed(line: &str) -> Option<(u64, &str)> {
    let (pages, rest) = line.trim_start().strip_prefix("Processed ")?.split_once(' ')?;
    let rest = rest.strip_prefix("pages for database '")?;
    Some((pages.parse().ok()?, rest.split("', file '").next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: (bool, &str, u64, f64, f64)) {
        let own = Message::parse(line).unwrap_or_else(|| panic!("{line}"));
        let got = (own.is_restore, own.what, own.pages, own.seconds, own.rate.unwrap_or(-1.0));
        assert_eq!(got, expect);
    }

    #[test]
    fn all_forms_of_the_line() {
        let end = "successfully processed 40 pages in 0.342 seconds (0.913 MB/sec).";
        let line = |head: &str| format!("{head} {end}");
        check(&line("BACKUP DATABASE"), (false, "full", 40, 0.342, 0.913));
        let text = "BACKUP DATABASE WITH DIFFERENTIAL";
        check(&line(text), (false, "differential", 40, 0.342, 0.913));
        check(&line("BACKUP DATABASE...FILE=<name>"), (false, "file", 40, 0.342, 0.913));
        check(&line("BACKUP LOG"), (false, "log", 40, 0.342, 0.913));
        check(&line("RESTORE DATABASE"), (true, "full", 40, 0.342, 0.913));
        check(&line("RESTORE DATABASE ... FILE=<name>"), (true, "file", 40, 0.342, 0.913));
        check(&line("RESTORE LOG"), (true, "log", 40, 0.342, 0.913));
        let text =
            "Msg 3014: BACKUP LOG successfully processed 3 pages in 0,054 seconds (0,406 MB/sec).";
        check(text, (false, "log", 3, 0.054, 0.406));
        for wrong in ["BACKUP LOG successfully processed", "successfully processed 3 pages in x"] {
            assert_eq!(Message::parse(wrong), None);
        }
        assert_eq!(
            processed("Processed 2 pages for database 'a b', file 'l' on file 1."),
            Some((2, "a b"))
        );
    }

    /// Returns the bytes by the published rule, from data pages and blocks of the log.
    #[track_caller]
    fn bytes(what: &'static str, (data, log): (u64, u64), seconds: f64, rate: f64, blocks: u64) {
        let pages = data + log;
        let own = Message { is_restore: false, what, pages, seconds, rate: Some(rate) };
        let (bytes, remark) = own.bytes(Some(log));
        assert_eq!(remark, None);
        let expect = float(data) * PAGE + float(blocks) * BLOCK;
        // The uncertainty of bytes computed from three decimals of the rate.
        let fuzzy = CUT * MIB * seconds + BLOCK;
        assert!((bytes - expect).abs() <= fuzzy, "{bytes} and not {expect}");
    }

    #[test]
    fn published_rates_show_the_block_size_of_the_log() {
        bytes("full", (584, 1), 0.037, 123.350, 3);
        bytes("full", (472, 2), 0.108, 34.229, 19);
        bytes("full", (296, 2), 0.064, 36.376, 32);
        bytes("differential", (296, 2), 0.049, 47.433, 24);
        bytes("log", (0, 3), 0.054, 0.406, 45);
        bytes("log", (0, 32), 0.012, 20.507, 504);
        bytes("full", (20_932_274, 0), 290.145, 563.626, 0);
        bytes("full", (5_122_010, 0), 243.504, 164.332, 0);
    }

    #[test]
    fn a_contradictory_rate_is_reported() {
        let check = |what, pages, seconds, rate| {
            let own = Message { is_restore: false, what, pages, seconds, rate: Some(rate) };
            own.bytes(None).1.is_some()
        };
        // A rate that no number of blocks gives, and one above that of the pages.
        assert!(check("log", 5, 0.031, 1.0));
        assert!(check("full", 100, 1.0, 0.9));
        assert!(!check("full", 100, 1.0, 0.781));
        // The rule of SQL Server 2005.
        let old = Message {
            is_restore: false,
            what: "differential",
            pages: 185,
            seconds: 0.342,
            rate: Some(4.41),
        };
        assert!(old.bytes(Some(1)).1.is_some());
    }
}

//! `vmstat -d`: the counters of disks, once or repeatedly.

use super::disks::{Column, Disks, counter};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::metric as m;

pub(crate) const KIND: Kind = Kind {
    name: "vmstat-d",
    about: "disk counters from vmstat -d",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["disk-"]),
        Sign::Word(&["reads"]),
        Sign::Word(&["writes"]),
        Sign::Word(&["merged", "sectors"]),
    ]],
};

const SECTOR: f64 = 512.0;
/// Milliseconds in a second.
const SECOND: f64 = 1000.0;

fn recognizes(text: &str) -> bool {
    let mut groups: Option<Vec<String>> = None;
    text.lines().any(|line| {
        let is_head = groups.as_ref().is_some_and(|groups| Head::parse(groups, line).is_some());
        groups = groups_of(line);
        is_head
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Vmstat {
        lines: Lines::new(input),
        options: options.clone(),
        disks: Disks::default(),
        groups: None,
        head: None,
        told: false,
    }))
}

/// Returns the groups of columns in a title line: `disk- ----reads---- ---writes--- ---IO---`.
fn groups_of(line: &str) -> Option<Vec<String>> {
    let at = line.find("disk-")?;
    let words = line.get(at..)?.split_whitespace().map(|word| word.trim_matches('-').to_owned());
    Some(words.skip(1).collect())
}

/// Returns the meaning of a column in a group.
fn column(group: &str, name: &str) -> Option<Column> {
    Some(match (group, name) {
        ("reads", "total") => (&m::READS, 1.0),
        ("reads", "merged") => (&m::READS_MERGED, 1.0),
        ("reads", "sectors") => (&m::READ_BYTES, SECTOR),
        ("reads", "ms") => (&m::IO_STALL_READ_MS, 1.0),
        ("writes", "total") => (&m::WRITES, 1.0),
        ("writes", "merged") => (&m::WRITES_MERGED, 1.0),
        ("writes", "sectors") => (&m::WRITE_BYTES, SECTOR),
        ("writes", "ms") => (&m::IO_STALL_WRITE_MS, 1.0),
        ("IO", "cur") => (&m::QUEUE_LENGTH, 1.0),
        ("IO", "sec") => (&m::BUSY_MS, SECOND),
        _ => return None,
    })
}

/// The columns of a head.
#[derive(Debug, Clone, PartialEq)]
struct Head {
    /// Number of words that a collector writes before the first column.
    before: usize,
    columns: Vec<Option<Column>>,
    /// True if times after the columns are UTC.
    is_utc: bool,
}

impl Head {
    /// Parses the head below a title line.
    fn parse(groups: &[String], line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        let before = words.iter().position(|word| *word == "total")?;
        let mut groups = groups.iter();
        let mut group = "";
        let mut columns = Vec::new();
        let mut names = words.iter().skip(before);
        for name in names.by_ref() {
            if matches!(*name, "total" | "cur") {
                group = groups.next()?;
            }
            columns.push(column(group, name));
            if *name == "sec" {
                break;
            }
        }
        let is_utc = names.any(|zone| matches!(*zone, "UTC" | "GMT"));
        columns.iter().any(Option::is_some).then_some(Self { before, columns, is_utc })
    }
}

struct Vmstat {
    lines: Lines<Bytes>,
    options: Options,
    disks: Disks,
    groups: Option<Vec<String>>,
    head: Option<Head>,
    told: bool,
}

impl ReadSamples for Vmstat {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        self.disks.begin();
        let (mut devices, mut at) = (0_u64, None);
        while let Some(line) = self.lines.next_line()? {
            if let Some(groups) = groups_of(&line) {
                self.groups = Some(groups);
                continue;
            }
            if let Some(groups) = self.groups.take() {
                let Some(head) = Head::parse(&groups, &line) else {
                    let reason = "below the groups of columns are not their names";
                    return Err(ImportError::at(self.lines.number(), reason));
                };
                self.head = Some(head);
                continue;
            }
            let words: Vec<_> = line.split_whitespace().collect();
            let Some((head, name)) =
                self.head.as_ref().and_then(|head| Some((head, *words.get(head.before)?)))
            else {
                if !words.is_empty() {
                    sheet.skipped("lines that are not devices", self.lines.number(), &line);
                }
                continue;
            };
            if self.disks.has(name) {
                self.lines.put_back(line);
                break;
            }
            let moment = self.moment(head, &words);
            if self.device(sheet, name, &words)? {
                at = if devices == 0 { moment } else { at };
                devices += 1;
            }
        }
        Ok((devices > 0).then(|| self.at(sheet, at)))
    }
}

impl Vmstat {
    fn at(&mut self, sheet: &mut Sheet, at: Option<i64>) -> At {
        if let Some(at) = at {
            return At::Wall(at);
        }
        if !self.told {
            self.told = true;
            sheet.note("it has no times: snapshots are assumed to be evenly spaced");
        }
        At::Since(self.options.step().nanos().saturating_mul(self.disks.snapshot() - 1))
    }

    /// Returns the time of a row, before or after its columns.
    fn moment(&self, head: &Head, words: &[&str]) -> Option<i64> {
        let end = head.before + 1 + head.columns.len();
        let before = words.get(..head.before)?.join(" ");
        let zone = if head.is_utc { " UTC" } else { "" };
        let behind = || format!("{}{zone}", words.get(end..).unwrap_or_default().join(" "));
        let clock = self.options.clock;
        clock.moment(&before).or_else(|| clock.moment(&behind()))
    }

    /// Writes the counters of a device; returns whether there are any.
    fn device(
        &mut self,
        sheet: &mut Sheet,
        name: &str,
        words: &[&str],
    ) -> Result<bool, ImportError> {
        let Some(head) = &self.head else { return Ok(false) };
        let from = head.before + 1;
        let expected = head.columns.len();
        let own = words.get(from..from + expected);
        let read = |own: &[&str]| {
            let value = |word: &&str| {
                counter(word).map(Some).ok_or_else(|| format!("{word:?} is not a whole number"))
            };
            own.iter().map(value).collect::<Result<Vec<_>, _>>()
        };
        let values = own.map_or_else(
            || {
                let count = words.len().saturating_sub(from);
                Err(format!("a device has {count} columns, but its header has {expected}"))
            },
            read,
        );
        match values {
            Ok(values) => {
                self.disks.put(sheet, name, &head.columns, &values);
                Ok(true)
            }
            Err(_) if self.lines.was_open() => {
                sheet.note("its last line was truncated and is left out");
                Ok(false)
            }
            Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_by_their_groups() {
        let groups = groups_of("disk- ---reads--- ---writes--- ---IO---").expect("groups");
        assert_eq!(groups, ["reads", "writes", "IO"]);
        let head =
            Head::parse(&groups, "  total sectors ms  total ms  cur sec  UTC").expect("a head");
        let metrics: Vec<_> =
            head.columns.iter().map(|column| column.map(|(measure, _)| measure.name)).collect();
        assert_eq!(
            metrics,
            [
                Some("reads"),
                Some("read_bytes"),
                Some("io_stall_read_ms"),
                Some("writes"),
                Some("io_stall_write_ms"),
                Some("queue_length"),
                Some("busy_ms"),
            ]
        );
        assert!(head.is_utc);
        assert_eq!(Head::parse(&groups, "nothing of it"), None);
    }
}

//! The columns of the list, and its order.

use crate::line::Line;
use crate::text::{NONE, count, mebibytes, milliseconds, share};
use std::cmp::Ordering;
use weir_report::number::float;
use weir_report::status::lasting;

/// A column of the list. The list can be sorted by each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Kind,
    Iops,
    IopsLimit,
    IopsShare,
    Bytes,
    BytesLimit,
    BytesShare,
    Latency,
    P99,
    Depth,
    Hits,
    Waiting,
    WaitsAt,
    Credits,
    Lasts,
}

use Column::{
    Bytes, BytesLimit, BytesShare, Credits, Depth, Hits, Iops, IopsLimit, IopsShare, Kind, Lasts,
    Latency, Name, P99, Waiting, WaitsAt,
};

impl Column {
    /// All columns, from left to right.
    pub(crate) const ALL: [Self; 16] = [
        Name, Kind, Iops, IopsLimit, IopsShare, Bytes, BytesLimit, BytesShare, Latency, P99, Depth,
        Hits, Waiting, WaitsAt, Credits, Lasts,
    ];
    /// The columns after the name, the most important first: a narrow terminal shows these.
    const BY_IMPORTANCE: [Self; 15] = [
        Iops, IopsShare, Bytes, BytesShare, Latency, Credits, WaitsAt, Waiting, Lasts, Kind,
        IopsLimit, BytesLimit, Depth, P99, Hits,
    ];
    /// Returns the columns that fit into `width` and their widths, from left to right.
    pub(crate) fn fitting(width: usize) -> Vec<(Self, usize)> {
        let mut left = width.saturating_sub(Name.width().0);
        let mut shown = vec![Name];
        for column in Self::BY_IMPORTANCE {
            let needed = column.width().0 + 1;
            if needed > left {
                break;
            }
            left -= needed;
            shown.push(column);
        }
        let mut widen = |column: Self| {
            let (least, most) = column.width();
            let more = (most - least).min(left);
            left -= more;
            (column, least + more)
        };
        let columns = Self::ALL.into_iter().filter(|column| shown.contains(column));
        columns.map(&mut widen).collect()
    }

    /// Returns its smallest and its largest width, without the gap before it.
    const fn width(self) -> (usize, usize) {
        let fixed = match self {
            Name => return (12, 32),
            Kind => return (8, 14),
            // The longest name of a cap.
            WaitsAt => return (19, 25),
            IopsShare | BytesShare | Depth | Hits => 6,
            Iops | Bytes | IopsLimit | BytesLimit => 7,
            Credits | Latency | P99 | Waiting => 8,
            Lasts => 12,
        };
        (fixed, fixed)
    }

    pub(crate) const fn is_left(self) -> bool {
        matches!(self, Name | Kind | WaitsAt)
    }

    /// Returns its heading.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Name => "NAME",
            Kind => "TIER",
            Iops => "IOPS",
            IopsLimit | BytesLimit => "LIMIT",
            IopsShare | BytesShare => "FULL",
            Bytes => "MiB/s",
            Latency => "LATENCY",
            P99 => "P99",
            Depth => "DEPTH",
            Hits => "HITS",
            Waiting => "WAITING",
            WaitsAt => "MOSTLY AT",
            Credits => "CREDITS",
            Lasts => "LAST",
        }
    }

    /// Returns its name in a sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Name => "name",
            Kind => "tier",
            Iops => "IOPS",
            IopsLimit => "IOPS limit",
            IopsShare => "share of the IOPS limit",
            Bytes => "MiB/s",
            BytesLimit => "MiB/s limit",
            BytesShare => "share of the MiB/s limit",
            Latency => "latency",
            P99 => "99th percentile of the latency",
            Depth => "queue depth",
            Hits => "cache hits",
            Waiting => "waiting requests",
            WaitsAt => "cap of the longest wait",
            Credits => "burst credits",
            Lasts => "time until the credits are used up",
        }
    }

    /// Returns the column to the right, or with `is_back` to the left, around the end.
    pub(crate) fn next(self, is_back: bool) -> Self {
        let len = Self::ALL.len();
        let at = Self::ALL.iter().position(|own| *own == self).unwrap_or(0);
        Self::ALL[(at + if is_back { len - 1 } else { 1 }) % len]
    }

    /// Returns the text of a cell.
    pub(crate) fn cell(self, line: &Line) -> String {
        let limit = |kind| line.fullest(kind).map_or(f64::NAN, |cap| float(cap.now));
        match self {
            Name => line.name.clone(),
            // All sizes of a provider begin alike.
            Kind => line.kind.strip_prefix("Standard_").unwrap_or(&line.kind).to_owned(),
            Iops => count(line.iops()),
            IopsLimit => count(limit("_iops")),
            IopsShare => estimated(line, "_iops"),
            Bytes => mebibytes(line.bytes()),
            BytesLimit => mebibytes(limit("_bytes")),
            BytesShare => estimated(line, "_bytes"),
            Latency => milliseconds(line.latency_ms()),
            P99 => milliseconds(line.p99_ms()),
            Depth => count(line.depth()),
            Hits => share(line.hit_rate()),
            Waiting => count(line.waiting()),
            WaitsAt => line.waits().first().map_or(NONE, |(cap, _)| *cap).to_owned(),
            Credits => share(line.credits()),
            Lasts => match line.credits_last_s {
                None => NONE.to_owned(),
                Some(last) if last >= 86_400.0 => "over a day".to_owned(),
                Some(last) => lasting(last),
            },
        }
    }

    /// Returns the figure that the column sorts by; `None` if it sorts by text.
    fn figure(self, line: &Line) -> Option<f64> {
        let limit = |kind| line.fullest(kind).map_or(f64::NAN, |cap| float(cap.now));
        Some(match self {
            Name | Kind | WaitsAt => return None,
            Iops => line.iops(),
            IopsLimit => limit("_iops"),
            IopsShare => line.full("_iops"),
            Bytes => line.bytes(),
            BytesLimit => limit("_bytes"),
            BytesShare => line.full("_bytes"),
            Latency => line.latency_ms(),
            P99 => line.p99_ms(),
            Depth => line.depth(),
            Hits => line.hit_rate(),
            Waiting => line.waiting(),
            Credits => line.credits(),
            Lasts => line.credits_last_s.unwrap_or(f64::NAN),
        })
    }

    /// Sorts lines: hosts before volumes; texts from A, figures from the largest, and credits from
    /// those that run out first, unless the order is reversed. Lines without a figure are last, and
    /// equal ones are sorted by name.
    pub(crate) fn sort(self, lines: &mut [Line], is_reversed: bool) {
        let is_smallest_first = matches!(self, Name | Kind | WaitsAt | Credits | Lasts);
        let directed = |order: Ordering, is_reversed: bool| match is_reversed {
            true => order.reverse(),
            false => order,
        };
        let by_column = |a: &Line, b: &Line| match (self.figure(a), self.figure(b)) {
            (Some(x), Some(y)) => {
                let order = directed(x.total_cmp(&y), is_smallest_first == is_reversed);
                x.is_nan().cmp(&y.is_nan()).then(order)
            }
            _ => {
                let (a, b) = (self.cell(a), self.cell(b));
                let none = |text: &str| text.is_empty() || text == NONE;
                none(&a).cmp(&none(&b)).then(directed(a.cmp(&b), is_reversed))
            }
        };
        lines.sort_by(|a, b| {
            let by_name = a.name.cmp(&b.name);
            b.is_host().cmp(&a.is_host()).then(by_column(a, b)).then(by_name)
        });
    }
}

/// Returns the used part of a limit, marked if it is an estimate.
fn estimated(line: &Line, kind: &str) -> String {
    match line.fullest(kind) {
        Some(cap) if cap.is_estimate => format!("~{}", share(line.full(kind))),
        _ => share(line.full(kind)),
    }
}

//! What a file of a database went through: its latencies, measured here, and what held
//! its requests, which the server's engine knows.

use std::collections::BTreeMap;
use weir_report::number::float;
use weir_report::oltp::FileReport;
use weir_units::{Bytes, Span};
use weir_workload::oltp::FileOp;

/// The share of a file's time from which on it is told that it was the machine's.
const MACHINE: f64 = 0.1;

/// What was counted of one kind of operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpTotals {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their latency, all together.
    pub stall: Span,
}

impl OpTotals {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            count: self.count - earlier.count,
            bytes: self.bytes - earlier.bytes,
            stall: self.stall.saturating_sub(earlier.stall),
        }
    }

    fn mean_ns(&self) -> f64 {
        ratio(self.stall.nanos(), self.count)
    }
}

/// What was counted of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTotals {
    /// Its reads.
    pub read: OpTotals,
    /// Its writes.
    pub write: OpTotals,
}

/// What held the requests of a file since the server's start, as its engine counts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Time waited per cap, in nanoseconds.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took, in nanoseconds.
    pub medium_ns: u64,
    /// It is not that of the file alone, or that of parts of its requests.
    pub is_shared: bool,
}

impl Held {
    /// What was added since `earlier`, an older reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |cap: &String| earlier.waits_ns.get(cap).copied().unwrap_or(0);
        let waits = self.waits_ns.iter().map(|(cap, ns)| (cap.clone(), ns - before(cap).min(*ns)));
        Self {
            waits_ns: waits.collect(),
            medium_ns: self.medium_ns.saturating_sub(earlier.medium_ns),
            is_shared: self.is_shared,
        }
    }

    fn waited_ns(&self) -> u64 {
        self.waits_ns.values().sum()
    }

    fn all_ns(&self) -> u64 {
        self.waited_ns() + self.medium_ns
    }

    /// A part of it, of a file whose requests took `stall`: what is not the file's own says
    /// how they were held, not for how long.
    fn of_own(&self, ns: u64, stall: u64) -> u64 {
        if self.is_shared { scaled(stall, ns, self.all_ns()) } else { ns }
    }

    /// The share of a cap in all that held the requests.
    pub(super) fn share_of(&self, cap: &str) -> f64 {
        ratio(self.waits_ns.get(cap).copied().unwrap_or(0), self.all_ns())
    }
}

impl FileTotals {
    pub(super) fn record(&mut self, op: FileOp, bytes: u64, stall: Span) {
        let totals = match op {
            FileOp::Read => &mut self.read,
            FileOp::Write => &mut self.write,
        };
        totals.count += 1;
        totals.bytes += bytes;
        totals.stall += stall;
    }

    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self { read: self.read.since(&earlier.read), write: self.write.since(&earlier.write) }
    }

    /// What of the latency of reads and of writes was waited at caps. The engine counts
    /// both together: each has the part that it has of their latency.
    #[must_use]
    pub fn queued(&self, held: &Held) -> (Span, Span) {
        let stall = (self.read.stall + self.write.stall).nanos();
        let queued = held.of_own(held.waited_ns(), stall).min(stall);
        let part = |op: &OpTotals| Span::from_nanos(scaled(queued, op.stall.nanos(), stall));
        (part(&self.read), part(&self.write))
    }

    /// As a report has it; who the file is, the caller knows.
    pub(super) fn report(&self, held: Option<&Held>, size: Bytes, sample: Span) -> FileReport {
        let Self { read, write } = self;
        let (none, is_known) = (Held::default(), held.is_some_and(|held| !held.is_shared));
        let held = held.unwrap_or(&none);
        let ms = |ns: u64| ns / 1_000_000;
        let stall = (read.stall + write.stall).nanos();
        let (queued_read, queued_write) = self.queued(held);
        let of_own = |ns: u64| held.of_own(ns, stall);
        FileReport {
            sample_ms: ms(sample.nanos()),
            num_of_reads: read.count,
            num_of_bytes_read: read.bytes,
            io_stall_read_ms: ms(read.stall.nanos()),
            io_stall_queued_read_ms: ms(queued_read.nanos()),
            num_of_writes: write.count,
            num_of_bytes_written: write.bytes,
            io_stall_write_ms: ms(write.stall.nanos()),
            io_stall_queued_write_ms: ms(queued_write.nanos()),
            io_stall: ms(stall),
            size_on_disk_bytes: size.get(),
            read_mean_ns: read.mean_ns(),
            write_mean_ns: write.mean_ns(),
            waits_ns: held.waits_ns.iter().map(|(cap, ns)| (cap.clone(), of_own(*ns))).collect(),
            medium_ns: of_own(held.medium_ns),
            machine_ns: is_known.then(|| stall.saturating_sub(held.all_ns())),
            ..FileReport::default()
        }
    }

    /// What a reader must know of a file of which the machine took a good part of the time.
    pub(super) fn machine_note(&self, file: &str, machine_ns: Option<u64>) -> Option<String> {
        let share = ratio(machine_ns?, (self.read.stall + self.write.stall).nanos());
        (share > MACHINE).then(|| {
            format!(
                "{:.0} % of the time of {file:?} was this machine's, not the layout's: the figures \
                 are too low",
                share * 100.0
            )
        })
    }
}

/// `whole` x `n` / `of`; nothing of nothing is zero.
fn scaled(whole: u64, n: u64, of: u64) -> u64 {
    let scaled = (u128::from(whole) * u128::from(n)).checked_div(u128::from(of));
    u64::try_from(scaled.unwrap_or(0)).unwrap_or(u64::MAX)
}

fn ratio(n: u64, of: u64) -> f64 {
    if of > 0 { float(n) / float(of) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(reads_ms: u64, writes_ms: u64) -> FileTotals {
        let mut totals = FileTotals::default();
        totals.record(FileOp::Read, 8192, Span::from_millis(reads_ms));
        totals.record(FileOp::Write, 65_536, Span::from_millis(writes_ms));
        totals
    }

    fn held(disk_ms: u64, medium_ms: u64, is_shared: bool) -> Held {
        let waits_ns = BTreeMap::from([("disk_iops".to_owned(), disk_ms * 1_000_000)]);
        Held { waits_ns, medium_ns: medium_ms * 1_000_000, is_shared }
    }

    #[test]
    fn what_held_a_file_is_divided_as_its_latency() {
        let check = |held: Held, queued: (u64, u64), disk: u64, medium: u64| {
            let report = totals(30, 10).report(Some(&held), Bytes::gib(1), Span::from_secs(1));
            let got = (report.io_stall_queued_read_ms, report.io_stall_queued_write_ms);
            assert_eq!((got, report.io_stall), (queued, 40), "{held:?}");
            assert_eq!(report.waits_ns["disk_iops"], disk * 1_000_000);
            assert_eq!(report.medium_ns, medium * 1_000_000);
        };
        check(held(20, 19, false), (15, 5), 20, 19);
        // Of four parts three are a cap's.
        check(held(300, 100, true), (22, 7), 30, 10);
        // No more is queued than there is.
        check(held(50, 1, false), (30, 10), 50, 1);
        check(held(0, 0, true), (0, 0), 0, 0);
    }

    #[test]
    fn what_the_engine_does_not_explain_is_the_machines() {
        let check = |held: Option<Held>, machine_ms: Option<u64>, note: Option<&str>| {
            let totals = totals(30, 10);
            let report = totals.report(held.as_ref(), Bytes::gib(1), Span::from_secs(1));
            assert_eq!(report.machine_ns, machine_ms.map(|ms| ms * 1_000_000), "{held:?}");
            let said = totals.machine_note("log", report.machine_ns);
            assert_eq!(said.as_deref(), note, "{held:?}");
        };
        let note = "25 % of the time of \"log\" was this machine's, not the layout's: the figures \
                    are too low";
        check(Some(held(20, 10, false)), Some(10), Some(note));
        check(Some(held(26, 10, false)), Some(4), None);
        check(Some(held(50, 1, false)), Some(0), None);
        // What is divided, or not known at all, says nothing of the machine.
        check(Some(held(20, 10, true)), None, None);
        check(None, None, None);
    }
}

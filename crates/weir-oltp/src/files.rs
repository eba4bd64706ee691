//! The I/O of a database file, counted in the same way by both clocks.

use crate::database::FileOp;
use weir_core::ServiceTime;
use weir_report::number::float;
use weir_report::oltp::FileReport;
use weir_units::{Bytes, Span};

/// Counters of one kind of operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpTally {
    /// The number of operations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their latencies.
    pub stall: Span,
    /// The part of it that was waited at caps.
    pub queued: Span,
}

impl OpTally {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            count: self.count - earlier.count,
            bytes: self.bytes - earlier.bytes,
            stall: self.stall.saturating_sub(earlier.stall),
            queued: self.queued.saturating_sub(earlier.queued),
        }
    }

    fn mean_ns(&self) -> f64 {
        if self.count > 0 { float(self.stall.nanos()) / float(self.count) } else { 0.0 }
    }
}

/// Counters of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTally {
    /// Its reads.
    pub read: OpTally,
    /// Its writes.
    pub write: OpTally,
    /// The service time of both.
    pub service: ServiceTime,
}

impl FileTally {
    /// Counts an I/O.
    pub fn record(&mut self, op: FileOp, bytes: u64, stall: Span, service: &ServiceTime) {
        let tally = match op {
            FileOp::Read => &mut self.read,
            FileOp::Write => &mut self.write,
        };
        tally.count += 1;
        tally.bytes += bytes;
        tally.stall += stall;
        tally.queued += service.waits.total();
        self.service += *service;
    }

    /// Returns the difference from `earlier`, an older reading of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            read: self.read.since(&earlier.read),
            write: self.write.since(&earlier.write),
            service: self.service.since(&earlier.service),
        }
    }

    /// Returns the sum of all latencies.
    #[must_use]
    pub fn stall(&self) -> Span {
        self.read.stall + self.write.stall
    }

    /// Returns the counters as a report has them. The caller adds the name of the file.
    #[must_use]
    pub fn report(&self, size: Bytes, sample: Span) -> FileReport {
        let ms = |span: Span| span.nanos() / 1_000_000;
        let Self { read, write, service } = self;
        let named = |(cap, time): (weir_core::Cap, Span)| (cap.name().to_owned(), time.nanos());
        FileReport {
            sample_ms: ms(sample),
            num_of_reads: read.count,
            num_of_bytes_read: read.bytes,
            io_stall_read_ms: ms(read.stall),
            io_stall_queued_read_ms: ms(read.queued),
            num_of_writes: write.count,
            num_of_bytes_written: write.bytes,
            io_stall_write_ms: ms(write.stall),
            io_stall_queued_write_ms: ms(write.queued),
            io_stall: ms(self.stall()),
            size_on_disk_bytes: size.get(),
            read_mean_ns: read.mean_ns(),
            write_mean_ns: write.mean_ns(),
            waits_ns: service.waits.iter().map(named).collect(),
            medium_ns: service.medium.nanos(),
            ..FileReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::{Cap, Waits};

    #[test]
    fn reads_and_writes_are_counted_apart() {
        let ms = Span::from_millis;
        let service = |queued: u64, medium: u64| {
            let mut waits = Waits::default();
            waits.charge(Cap::DiskIops, ms(queued));
            ServiceTime { waits, medium: ms(medium) }
        };
        let mut tally = FileTally::default();
        tally.record(FileOp::Read, 8192, ms(30), &service(20, 10));
        let before = tally;
        tally.record(FileOp::Write, 65_536, ms(9), &service(2, 4));
        tally.record(FileOp::Write, 65_536, ms(5), &service(0, 4));
        let report = tally.report(Bytes::gib(1), Span::from_secs(1));
        let got = (report.num_of_reads, report.num_of_writes, report.num_of_bytes_written);
        assert_eq!(got, (1, 2, 131_072));
        let queued = (report.io_stall_queued_read_ms, report.io_stall_queued_write_ms);
        assert_eq!((queued, report.io_stall), ((20, 2), 44));
        assert_eq!((report.waits_ns["disk_iops"], report.medium_ns), (22_000_000, 18_000_000));
        let since = tally.since(&before);
        assert_eq!((since.read, since.write), (OpTally::default(), tally.write));
        assert_eq!(since.service.medium, ms(8));
    }
}

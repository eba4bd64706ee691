//! What a file of a database went through.

use crate::named;
use crate::observing::cap_times;
use weir_core::{Completion, Op, Waits};
use weir_observe::run::FileCounters;
use weir_report::number::float;
use weir_report::oltp::FileReport;
use weir_units::{Bytes, Span};

/// Counters of one kind of operation.
#[derive(Debug, Clone, Copy, Default)]
struct OpStats {
    count: u64,
    bytes: u64,
    stall: Span,
    /// What of the stall was waited at caps.
    queued: Span,
}

impl OpStats {
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
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileStats {
    read: OpStats,
    write: OpStats,
    waits: Waits,
    medium: Span,
}

impl FileStats {
    pub(super) fn record(&mut self, completion: &Completion) {
        let op = if completion.op == Op::Read { &mut self.read } else { &mut self.write };
        op.count += 1;
        op.bytes += completion.len;
        op.stall += completion.at - completion.arrived;
        op.queued += completion.waits.total();
        self.waits += completion.waits;
        self.medium += completion.medium;
    }

    /// What was counted since `earlier`, an older reading of the same counters.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            read: self.read.since(&earlier.read),
            write: self.write.since(&earlier.write),
            waits: self.waits.since(&earlier.waits),
            medium: self.medium.saturating_sub(earlier.medium),
        }
    }

    /// As an observation has them.
    pub(super) fn sample(&self, size: Bytes) -> FileCounters {
        let (read, write) = (&self.read, &self.write);
        FileCounters {
            reads: read.count,
            read_bytes: read.bytes,
            read_stall_ns: read.stall.nanos(),
            read_queued_ns: read.queued.nanos(),
            writes: write.count,
            write_bytes: write.bytes,
            write_stall_ns: write.stall.nanos(),
            write_queued_ns: write.queued.nanos(),
            size_bytes: size.get(),
            waits: cap_times(&self.waits),
            medium_ns: self.medium.nanos(),
        }
    }

    /// As a report has them; who the file is, the caller knows.
    pub(super) fn report(&self, size: Bytes, sample: Span) -> FileReport {
        let ms = |span: Span| span.nanos() / 1_000_000;
        let (read, write) = (&self.read, &self.write);
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
            io_stall: ms(read.stall + write.stall),
            size_on_disk_bytes: size.get(),
            read_mean_ns: read.mean_ns(),
            write_mean_ns: write.mean_ns(),
            waits_ns: named(&self.waits),
            medium_ns: self.medium.nanos(),
            ..FileReport::default()
        }
    }
}

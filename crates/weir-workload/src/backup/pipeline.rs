//! The pipeline of a backup: readers, a pool of buffers, and a writer for each stripe.
//!
//! ```text
//!  volume --> reader --> [ buffers ] --> encoder --> stripe's queue --> writer --> target
//!                 ^                                                       |
//!                 +------------------ free buffers <----------------------+
//! ```
//!
//! A reader takes a free buffer, fills it from its volume, and hands it to the stripes in turn. The
//! writer of a stripe writes its buffers in their order, several at a time, and frees them. Where all
//! buffers wait to be written, readers wait for a free one (BACKUPBUFFER); where none is filled,
//! writers wait for data (BACKUPIO). A source is read once from its beginning, adjacent ranges in one
//! transfer.

use super::buffers::{Buffers, WRITE_DEPTH};
use std::collections::VecDeque;
use std::ops::Range;
use weir_units::{Bytes, Instant, Span};

/// The sources and targets of a backup, and its buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The sources, each with its ranges to read in their order.
    pub sources: Vec<Source>,
    /// For each stripe the place that it is written to, and the byte at which it begins there.
    pub stripes: Vec<(u32, u64)>,
    /// The buffers.
    pub buffers: Buffers,
    /// The compressed size in thousandths of the original; a thousand without compression.
    pub compressed_per_mille: u32,
    /// The time that a processor takes to compress a MiB; nothing without compression.
    pub compression_per_mib: Span,
    /// Threads that compress at once.
    pub encoders: u32,
}

impl Plan {
    /// Returns the bytes of all sources.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let ranges = self.sources.iter().flat_map(|source| &source.ranges);
        ranges.map(|range| range.end - range.start).sum()
    }
}

/// A place that a reader reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The place, as the layout counts them.
    pub place: u32,
    /// The ranges to read, in their order.
    pub ranges: Vec<Range<u64>>,
}

/// A transfer of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The place that it is of.
    pub place: u32,
    /// Its first byte there.
    pub offset: u64,
    /// Its bytes.
    pub len: u32,
    /// It is a write to a stripe, not a read of a source.
    pub is_write: bool,
    /// The buffer, by which its completion is told.
    pub buffer: u32,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of the sources that were read.
    pub read: u64,
    /// Bytes that were written to stripes.
    pub written: u64,
    /// Time in which a reader had no free buffer, over all readers.
    pub waited_for_buffer: Span,
    /// Time in which a writer had nothing to write, over all writers.
    pub waited_for_data: Span,
}

#[derive(Debug)]
struct Reader {
    place: u32,
    ranges: VecDeque<Range<u64>>,
    in_flight: u32,
}

#[derive(Debug, Default)]
struct Writer {
    place: u32,
    /// The next byte of the place.
    offset: u64,
    /// Buffers to write, and the bytes in them.
    queue: VecDeque<(u32, u32)>,
    in_flight: u32,
}

/// A buffer's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffer {
    Free,
    /// It is filled by a reader.
    Reading {
        reader: u32,
        len: u32,
    },
    /// Its compression ends at this time.
    Encoding {
        done: Instant,
        len: u32,
    },
    /// It waits for the writer of a stripe, or is written.
    Writing {
        writer: u32,
        len: u32,
    },
}

/// A backup that runs. [`poll_transfer`](Self::poll_transfer) until it returns nothing, then
/// [`handle_completion`](Self::handle_completion) or [`handle_timeout`](Self::handle_timeout) at
/// [`poll_deadline`](Self::poll_deadline).
#[derive(Debug)]
pub struct Pipeline {
    plan: Plan,
    readers: Vec<Reader>,
    writers: Vec<Writer>,
    buffers: Vec<Buffer>,
    free: Vec<u32>,
    /// Buffers that wait for an encoder, in their order.
    to_encode: VecDeque<(u32, u32)>,
    encoding: u32,
    /// The reader that is asked first, and the stripe that the next buffer goes to.
    next_reader: usize,
    next_writer: usize,
    totals: Totals,
    now: Instant,
}

impl Pipeline {
    /// Sets up the pipeline of a plan that was checked: it has a source, a stripe and a buffer.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let reader = |source: &Source| Reader {
            place: source.place,
            ranges: source.ranges.iter().filter(|range| !range.is_empty()).cloned().collect(),
            in_flight: 0,
        };
        let writer = |(place, offset): &(u32, u64)| Writer {
            place: *place,
            offset: *offset,
            ..Writer::default()
        };
        Self {
            readers: plan.sources.iter().map(reader).collect(),
            writers: plan.stripes.iter().map(writer).collect(),
            buffers: vec![Buffer::Free; plan.buffers.count as usize],
            free: (0..plan.buffers.count).rev().collect(),
            to_encode: VecDeque::new(),
            encoding: 0,
            next_reader: 0,
            next_writer: 0,
            totals: Totals::default(),
            now: Instant::ZERO,
            plan,
        }
    }

    /// Starts counting waits at `now`.
    pub fn start(&mut self, now: Instant) {
        self.now = now;
    }

    /// Returns what it reads and writes.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns whether everything was read and written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.free.len() == self.buffers.len()
            && self.readers.iter().all(|own| own.ranges.is_empty())
    }

    /// Returns the totals since the start.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns how many buffers hold data, or are about to.
    #[must_use]
    pub fn used(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    /// Returns how many writes are in flight to all stripes.
    #[must_use]
    pub fn writes_in_flight(&self) -> u32 {
        self.writers.iter().map(|own| own.in_flight).sum()
    }

    /// Returns the next transfer to start now. Writes come first: they free buffers.
    pub fn poll_transfer(&mut self) -> Option<Transfer> {
        self.poll_write().or_else(|| self.poll_read())
    }

    /// Returns when the next compression ends.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        let done = |own: &Buffer| match own {
            Buffer::Encoding { done, .. } => Some(*done),
            _ => None,
        };
        self.buffers.iter().filter_map(done).min()
    }

    /// Ends the compressions whose time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pass(now);
        for at in 0..self.buffers.len() {
            if let Buffer::Encoding { done, len } = self.buffers[at]
                && done <= now
            {
                self.encoding -= 1;
                self.hand_over(index(at), self.compressed(len));
            }
        }
        self.encode();
    }

    /// Takes in that the transfer of a buffer has ended.
    ///
    /// # Panics
    ///
    /// If the buffer has no transfer in flight.
    pub fn handle_completion(&mut self, now: Instant, buffer: u32) {
        self.pass(now);
        match self.buffers[buffer as usize] {
            Buffer::Reading { reader, len } => {
                self.readers[reader as usize].in_flight -= 1;
                self.totals.read += u64::from(len);
                if self.plan.encoders == 0 || self.plan.compression_per_mib == Span::ZERO {
                    self.hand_over(buffer, self.compressed(len));
                } else {
                    self.to_encode.push_back((buffer, len));
                    self.encode();
                }
            }
            Buffer::Writing { writer, len } => {
                self.writers[writer as usize].in_flight -= 1;
                self.totals.written += u64::from(len);
                self.buffers[buffer as usize] = Buffer::Free;
                self.free.push(buffer);
            }
            other => unreachable!("buffer {buffer} has no transfer in flight: {other:?}"),
        }
    }

    /// Adds the time until `now` to what readers and writers waited.
    fn pass(&mut self, now: Instant) {
        let passed = now.since(self.now);
        self.now = self.now.max(now);
        let is_waiting = |own: &&Reader| !own.ranges.is_empty() && own.in_flight == 0;
        let readers = self.readers.iter().filter(is_waiting).count() as u64;
        let writers = self.writers.iter().filter(|own| own.in_flight == 0).count() as u64;
        let times = |count: u64| Span::from_nanos(passed.nanos().saturating_mul(count));
        self.totals.waited_for_buffer += times(readers);
        self.totals.waited_for_data += times(writers);
    }

    fn poll_write(&mut self) -> Option<Transfer> {
        let writer = self.writers.iter_mut();
        let mut ready = writer.filter(|own| own.in_flight < WRITE_DEPTH && !own.queue.is_empty());
        let writer = ready.next()?;
        let (buffer, len) = writer.queue.pop_front()?;
        let (place, offset) = (writer.place, writer.offset);
        writer.in_flight += 1;
        writer.offset += u64::from(len);
        Some(Transfer { place, offset, len, is_write: true, buffer })
    }

    fn poll_read(&mut self) -> Option<Transfer> {
        let count = self.readers.len();
        let order = (0..count).map(|at| (self.next_reader + at) % count);
        // A reader with fewer reads in flight goes first, so that none has all the buffers.
        let with_work = order.filter(|at| !self.readers[*at].ranges.is_empty());
        let at = with_work.min_by_key(|at| self.readers[*at].in_flight)?;
        let buffer = self.free.pop()?;
        self.next_reader = (at + 1) % count;
        let reader = &mut self.readers[at];
        let range = reader.ranges.front_mut()?;
        let most = self.plan.buffers.max_transfer.get();
        let len = (range.end - range.start).min(most).min(u32::MAX.into());
        let offset = range.start;
        range.start += len;
        if range.is_empty() {
            reader.ranges.pop_front();
        }
        reader.in_flight += 1;
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        self.buffers[buffer as usize] = Buffer::Reading { reader: index(at), len };
        Some(Transfer { place: reader.place, offset, len, is_write: false, buffer })
    }

    /// Starts compressions as long as there are threads for them.
    fn encode(&mut self) {
        while self.encoding < self.plan.encoders {
            let Some((buffer, len)) = self.to_encode.pop_front() else { return };
            let nanos = u128::from(self.plan.compression_per_mib.nanos()) * u128::from(len);
            let nanos = u64::try_from(nanos >> 20).unwrap_or(u64::MAX).max(1);
            let done = self.now + Span::from_nanos(nanos);
            self.buffers[buffer as usize] = Buffer::Encoding { done, len };
            self.encoding += 1;
        }
    }

    /// Hands a buffer to the next stripe.
    fn hand_over(&mut self, buffer: u32, len: u32) {
        let writer = self.next_writer;
        self.next_writer = (writer + 1) % self.writers.len();
        self.buffers[buffer as usize] = Buffer::Writing { writer: index(writer), len };
        self.writers[writer].queue.push_back((buffer, len));
    }

    /// Returns the compressed size of bytes, in whole sectors.
    fn compressed(&self, len: u32) -> u32 {
        let bytes = u64::from(len) * u64::from(self.plan.compressed_per_mille.min(1000)) / 1000;
        let sectors = bytes.div_ceil(512).max(1) * 512;
        u32::try_from(sectors).unwrap_or(len).min(len.max(512))
    }
}

/// Returns a place in one of the lists, none of which is longer than a `u32` counts.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns what SQL Server prints as MB/sec: pages of 8,192 bytes in 2^20 bytes a second.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a printed rate")]
pub fn printed_rate(bytes: Bytes, elapsed: Span) -> Option<f64> {
    let seconds = elapsed.nanos() as f64 / 1e9;
    (seconds > 0.0).then(|| bytes.get() as f64 / f64::from(1 << 20) / seconds)
}

#[cfg(test)]
mod tests {
    use super::super::buffers::MAX_TRANSFER;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn plan(sources: &[u64], stripes: u32) -> Plan {
        let source = |(place, len): (u32, &u64)| {
            let ranges = std::iter::once(0..*len).collect();
            Source { place, ranges }
        };
        let readers = u32::try_from(sources.len()).expect("few");
        Plan {
            sources: (0..).zip(sources).map(source).collect(),
            stripes: (0..stripes).map(|stripe| (100 + stripe, 0)).collect(),
            buffers: Buffers::new((readers, stripes), false, MAX_TRANSFER, None),
            compressed_per_mille: 1000,
            compression_per_mib: Span::ZERO,
            encoders: 0,
        }
    }

    /// Runs a pipeline whose transfers each take as long as `cost` says, and returns all of them.
    fn run(plan: Plan, cost: impl Fn(&Transfer) -> Span) -> (Pipeline, Vec<Transfer>, Span) {
        let mut pipeline = Pipeline::new(plan);
        let (mut now, mut in_flight, mut all) = (Instant::ZERO, Vec::new(), Vec::new());
        while !pipeline.is_done() {
            while let Some(transfer) = pipeline.poll_transfer() {
                in_flight.push((now + cost(&transfer), transfer.buffer));
                all.push(transfer);
            }
            let next = in_flight.iter().map(|(at, _)| *at).chain(pipeline.poll_deadline()).min();
            now = next.expect("something is in flight");
            pipeline.handle_timeout(now);
            let done: Vec<_> = in_flight.extract_if(.., |(at, _)| *at <= now).collect();
            for (_, buffer) in done {
                pipeline.handle_completion(now, buffer);
            }
        }
        let elapsed = now.since(Instant::ZERO);
        (pipeline, all, elapsed)
    }

    #[test]
    fn each_byte_is_read_once_and_stripes_take_turns() {
        let (pipeline, all, _) = run(plan(&[7 * MIB + 4096, 3 * MIB], 4), |_| Span::from_millis(1));
        let reads: Vec<_> = all.iter().filter(|own| !own.is_write).collect();
        for (place, len) in [(0, 7 * MIB + 4096), (1, 3 * MIB)] {
            let mut next = 0;
            for read in reads.iter().filter(|own| own.place == place) {
                assert_eq!(read.offset, next);
                next += u64::from(read.len);
            }
            assert_eq!(next, len);
        }
        let written = |place| all.iter().filter(|own| own.is_write && own.place == place).count();
        assert_eq!([100, 101, 102, 103].map(written), [3, 3, 3, 2]);
        assert_eq!(pipeline.totals().read, 10 * MIB + 4096);
        assert_eq!(pipeline.totals().written, 10 * MIB + 4096);
    }

    #[test]
    fn a_slow_target_holds_readers_at_the_buffers() {
        let cost = |own: &Transfer| Span::from_millis(if own.is_write { 100 } else { 1 });
        let (pipeline, _, elapsed) = run(plan(&[400 * MIB], 1), cost);
        // Four writes at a time, and the read of the fourth buffer between two rounds.
        assert!((10_000..10_100).contains(&(elapsed.nanos() / 1_000_000)), "{elapsed}");
        assert!(pipeline.totals().waited_for_buffer > Span::from_secs(9));
        assert!(pipeline.totals().waited_for_data <= Span::from_millis(1));
    }

    #[test]
    fn more_stripes_have_more_writes_in_flight() {
        let cost = |own: &Transfer| Span::from_millis(if own.is_write { 100 } else { 1 });
        let (_, _, one) = run(plan(&[400 * MIB], 1), cost);
        let (_, _, four) = run(plan(&[400 * MIB], 4), cost);
        assert!(four.nanos() * 39 / 10 < one.nanos(), "{four} {one}");
    }

    #[test]
    fn compression_shrinks_writes_and_takes_its_time() {
        let compressed = Plan {
            compressed_per_mille: 250,
            compression_per_mib: Span::from_millis(5),
            encoders: 2,
            ..plan(&[100 * MIB], 2)
        };
        let (pipeline, all, elapsed) = run(compressed, |_| Span::from_micros(10));
        assert!(all.iter().filter(|own| own.is_write).all(|own| own.len == 256 << 10));
        assert_eq!(pipeline.totals().written, 25 * MIB);
        // A hundred MiB at 5 ms each by two threads.
        assert_eq!(elapsed.nanos() / 1_000_000, 250);
    }
}

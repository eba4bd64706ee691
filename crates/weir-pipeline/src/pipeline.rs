//! The pipeline of a backup: readers, a pool of buffers, and a writer for each stripe.
//!
//! ```text
//!  volume --> reader --> [ buffers ] --> encoder --> stripe's queue --> writer --> target
//!                 ^                                                       |
//!                 +------------------ free buffers <----------------------+
//! ```
//!
//! A reader takes a free buffer and fills it from its volume. Filled buffers are assigned to the
//! stripes in turn and encoded: hashed, compressed, encrypted. The writer of a stripe writes its
//! buffers in order, several at a time, and frees them. If all buffers wait to be written, readers
//! wait for a free one (BACKUPBUFFER); if none is filled, writers wait for data (BACKUPIO). A
//! source is read once from its beginning, adjacent ranges in one transfer.
//!
//! Reads, encodings and writes are events: the driver starts them and reports their end. In virtual
//! time, [`Encodings`](crate::Encodings) determines the time of an encoding; in wall time, threads
//! encode.

use crate::buffers::{Buffers, WRITE_DEPTH};
use std::collections::VecDeque;
use std::ops::Range;
use weir_core::meter::Meter;
use weir_units::{Bytes, BytesPerSec, Instant, Span};

/// Zeros that one buffer stands for.
pub const MAX_ZEROS: u64 = 1 << 30;

/// The sources and targets of a backup, and its buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The sources, each with its ranges to read in their order.
    pub sources: Vec<Source>,
    /// For each stripe, its place and its first byte there.
    pub stripes: Vec<(u32, u64)>,
    /// The buffers.
    pub buffers: Buffers,
    /// The compressed size in thousandths of the original; a thousand without compression.
    pub compressed_per_mille: u32,
    /// The time that a processor takes to compress a MiB; nothing without compression.
    pub compression_per_mib: Span,
    /// Threads that encode at once; with none, encoding takes no time and changes nothing.
    pub encoders: u32,
    /// The maximum rate of reads, over all sources.
    pub limit: Option<BytesPerSec>,
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
    /// The number of the place in the layout.
    pub place: u32,
    /// The ranges to read, in their order.
    pub ranges: Vec<Range<u64>>,
}

/// A transfer of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The place.
    pub place: u32,
    /// Its first byte there.
    pub offset: u64,
    /// Its bytes.
    pub len: u32,
    /// It is a write to a stripe, not a read of a source.
    pub is_write: bool,
    /// It is a range of zeros, which is not read. It completes like any other transfer.
    pub is_zeros: bool,
    /// The buffer, for its completion.
    pub buffer: u32,
    /// The stripe of a write, or the source of a read, by their numbers in the plan.
    pub lane: u32,
}

/// A buffer to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encode {
    /// The buffer, for the end of its encoding.
    pub buffer: u32,
    /// The bytes in it.
    pub len: u32,
    /// The stripe that it goes to.
    pub stripe: u32,
    /// Its number among the buffers of that stripe.
    pub sequence: u64,
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
    /// Time in which a read waited for the limit of the plan.
    pub waited_for_limit: Span,
}

/// A range of a source.
#[derive(Debug)]
struct Piece {
    range: Range<u64>,
    is_zeros: bool,
}

#[derive(Debug)]
struct Reader {
    place: u32,
    pieces: VecDeque<Piece>,
    /// More ranges will be added.
    is_open: bool,
    in_flight: u32,
}

#[derive(Debug, Default)]
struct Writer {
    place: u32,
    /// The next byte of the place.
    offset: u64,
    /// Buffers to write, encoded or not.
    queue: VecDeque<u32>,
    /// The number of buffers assigned to it so far.
    sequence: u64,
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
        is_zeros: bool,
    },
    /// It waits for an encoder, or is encoded.
    Encoding,
    /// It waits for the writer of a stripe.
    Ready {
        len: u32,
    },
    /// It is written.
    Writing {
        writer: u32,
        len: u32,
    },
}

/// A backup that runs. [`poll_encode`](Self::poll_encode) and [`poll_transfer`](Self::poll_transfer)
/// until they return nothing, then [`handle_completion`](Self::handle_completion) of a transfer or
/// [`handle_encoded`](Self::handle_encoded) of an encoding.
#[derive(Debug)]
pub struct Pipeline {
    plan: Plan,
    readers: Vec<Reader>,
    writers: Vec<Writer>,
    buffers: Vec<Buffer>,
    free: Vec<u32>,
    /// Buffers that wait for an encoder, in their order.
    to_encode: VecDeque<Encode>,
    encoding: u32,
    /// The next reader in turn, and the stripe of the next buffer.
    next_reader: usize,
    next_writer: usize,
    /// The limit of the plan, and the time at which it admits the pending read.
    meter: Option<Meter>,
    limited_until: Option<Instant>,
    /// Bytes of added ranges.
    added: u64,
    totals: Totals,
    now: Instant,
}

impl Pipeline {
    /// Makes the pipeline of a checked plan, which has a source, a stripe and a buffer.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let reader = |source: &Source| Reader {
            place: source.place,
            pieces: source.ranges.iter().filter_map(|range| piece(range.clone(), false)).collect(),
            is_open: false,
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
            meter: plan.limit.map(|limit| Meter::new(limit.per_sec())),
            limited_until: None,
            added: 0,
            totals: Totals::default(),
            now: Instant::ZERO,
            plan,
        }
    }

    /// Starts counting waits at `now`.
    pub fn start(&mut self, now: Instant) {
        self.now = now;
    }

    /// Returns the plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Notes whether ranges of a source, by its number in the plan, are added while the backup runs.
    ///
    /// # Panics
    ///
    /// If there is no such source.
    pub fn set_open(&mut self, reader: usize, is_open: bool) {
        self.readers[reader].is_open = is_open;
    }

    /// Adds a range of a source, behind the others. Ranges of zeros are not read.
    ///
    /// # Panics
    ///
    /// If there is no such source.
    pub fn add(&mut self, reader: usize, range: Range<u64>, is_zeros: bool) {
        self.added += if is_zeros { 0 } else { range.end.saturating_sub(range.start) };
        self.readers[reader].pieces.extend(piece(range, is_zeros));
    }

    /// Returns the number of ranges of a source that were not read yet.
    ///
    /// # Panics
    ///
    /// If there is no such source.
    #[must_use]
    pub fn pieces(&self, reader: usize) -> usize {
        self.readers[reader].pieces.len()
    }

    /// Returns the bytes to read of all sources, as far as they are known.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.plan.bytes().saturating_add(self.added)
    }

    /// Returns whether everything was read and written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.free.len() == self.buffers.len()
            && self.readers.iter().all(|own| own.pieces.is_empty() && !own.is_open)
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

    /// Returns the next transfer to start now. Writes come first: they free buffers.
    pub fn poll_transfer(&mut self, now: Instant) -> Option<Transfer> {
        self.poll_write().or_else(|| self.poll_read(now))
    }

    /// Returns when the limit of the plan admits the next read, if that read waits for nothing else.
    #[must_use]
    pub const fn poll_deadline(&self) -> Option<Instant> {
        self.limited_until
    }

    /// Returns the next buffer to encode now.
    pub fn poll_encode(&mut self) -> Option<Encode> {
        if self.encoding >= self.plan.encoders {
            return None;
        }
        let encode = self.to_encode.pop_front()?;
        self.encoding += 1;
        Some(encode)
    }

    /// Takes the end of an encoding into `len` bytes.
    ///
    /// # Panics
    ///
    /// If the buffer is not encoded.
    pub fn handle_encoded(&mut self, now: Instant, buffer: u32, len: u32) {
        self.pass(now);
        let own = &mut self.buffers[buffer as usize];
        assert!(matches!(own, Buffer::Encoding), "buffer {buffer} is not encoded: {own:?}");
        *own = Buffer::Ready { len };
        self.encoding -= 1;
    }

    /// Takes the completion of a buffer's transfer.
    ///
    /// # Panics
    ///
    /// If the buffer has no transfer in flight.
    pub fn handle_completion(&mut self, now: Instant, buffer: u32) {
        self.pass(now);
        match self.buffers[buffer as usize] {
            Buffer::Reading { reader, len, is_zeros } => {
                self.readers[reader as usize].in_flight -= 1;
                self.totals.read += if is_zeros { 0 } else { u64::from(len) };
                self.give(buffer, len);
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

    /// Adds the time until `now` to the waits of readers and writers.
    fn pass(&mut self, now: Instant) {
        let passed = now.since(self.now);
        self.now = self.now.max(now);
        let is_limited = self.limited_until.is_some();
        let is_waiting =
            |own: &&Reader| !is_limited && !own.pieces.is_empty() && own.in_flight == 0;
        let readers = self.readers.iter().filter(is_waiting).count() as u64;
        let writers = self.writers.iter().filter(|own| own.in_flight == 0).count() as u64;
        let times = |count: u64| Span::from_nanos(passed.nanos().saturating_mul(count));
        self.totals.waited_for_buffer += times(readers);
        self.totals.waited_for_data += times(writers);
        self.totals.waited_for_limit += times(is_limited.into());
    }

    /// Returns the next write to start now.
    pub fn poll_write(&mut self) -> Option<Transfer> {
        let buffers = &self.buffers;
        let front = |own: &Writer| match own.queue.front().map(|at| buffers[*at as usize]) {
            Some(Buffer::Ready { len }) if own.in_flight < WRITE_DEPTH => Some(len),
            _ => None,
        };
        let mut ready = self.writers.iter().enumerate();
        let (at, len) = ready.find_map(|(at, own)| Some((at, front(own)?)))?;
        let writer = &mut self.writers[at];
        let buffer = writer.queue.pop_front()?;
        let (place, offset) = (writer.place, writer.offset);
        writer.in_flight += 1;
        writer.offset += u64::from(len);
        self.buffers[buffer as usize] = Buffer::Writing { writer: index(at), len };
        let lane = index(at);
        Some(Transfer { place, offset, len, is_write: true, is_zeros: false, buffer, lane })
    }

    /// Returns the next read to start now.
    pub fn poll_read(&mut self, now: Instant) -> Option<Transfer> {
        self.limit(now);
        if self.limited_until.is_some() {
            return None;
        }
        let count = self.readers.len();
        let order = (0..count).map(|at| (self.next_reader + at) % count);
        // A reader with fewer reads in flight goes first, so that none has all the buffers.
        let with_work = order.filter(|at| !self.readers[*at].pieces.is_empty());
        let at = with_work.min_by_key(|at| self.readers[*at].in_flight)?;
        let buffer = self.free.pop()?;
        self.next_reader = (at + 1) % count;
        let reader = &mut self.readers[at];
        let Piece { range, is_zeros } = reader.pieces.front_mut()?;
        let is_zeros = *is_zeros;
        let most = if is_zeros { MAX_ZEROS } else { self.plan.buffers.max_transfer.get() };
        let len = (range.end - range.start).min(most).min(u32::MAX.into());
        let offset = range.start;
        range.start += len;
        if range.is_empty() {
            reader.pieces.pop_front();
        }
        reader.in_flight += 1;
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        if let Some(meter) = self.meter.as_mut().filter(|_| !is_zeros) {
            meter.charge(now, len.into());
        }
        self.buffers[buffer as usize] = Buffer::Reading { reader: index(at), len, is_zeros };
        let (place, lane) = (reader.place, index(at));
        Some(Transfer { place, offset, len, is_write: false, is_zeros, buffer, lane })
    }

    /// Updates whether only the limit delays the next read.
    fn limit(&mut self, now: Instant) {
        let Some(meter) = &self.meter else { return };
        let admits_at = meter.admits_at(now);
        let has_work = self.readers.iter().any(|own| !own.pieces.is_empty());
        let waits = admits_at > now && has_work && !self.free.is_empty();
        let until = waits.then_some(admits_at);
        self.pass(now);
        self.limited_until = until;
    }

    /// Assigns a filled buffer to the next stripe.
    fn give(&mut self, buffer: u32, len: u32) {
        let at = self.next_writer;
        self.next_writer = (at + 1) % self.writers.len();
        let writer = &mut self.writers[at];
        writer.queue.push_back(buffer);
        let encode = Encode { buffer, len, stripe: index(at), sequence: writer.sequence };
        writer.sequence += 1;
        if self.plan.encoders == 0 {
            self.buffers[buffer as usize] = Buffer::Ready { len };
        } else {
            self.buffers[buffer as usize] = Buffer::Encoding;
            self.to_encode.push_back(encode);
        }
    }
}

/// Returns a range that is not empty as a piece.
fn piece(range: Range<u64>, is_zeros: bool) -> Option<Piece> {
    (!range.is_empty()).then_some(Piece { range, is_zeros })
}

/// Returns an index in one of the lists, which all have fewer than 2^32 elements.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns the rate that SQL Server prints as MB/sec: whole pages, in units of 2^20 bytes.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a printed rate")]
pub fn printed_rate(bytes: Bytes, elapsed: Span) -> Option<f64> {
    let seconds = elapsed.nanos() as f64 / 1e9;
    (seconds > 0.0).then(|| bytes.get() as f64 / f64::from(1 << 20) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encodings;
    use crate::buffers::MAX_TRANSFER;

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
            limit: None,
        }
    }

    /// Runs a pipeline whose transfers take the time `cost` returns, and returns all of them.
    fn run(plan: Plan, cost: impl Fn(&Transfer) -> Span) -> (Pipeline, Vec<Transfer>, Span) {
        let mut encodings = Encodings::new(&plan);
        let mut pipeline = Pipeline::new(plan);
        let (mut now, mut in_flight, mut all) = (Instant::ZERO, Vec::new(), Vec::new());
        while !pipeline.is_done() {
            while let Some(transfer) = pipeline.poll_transfer(now) {
                in_flight.push((now + cost(&transfer), transfer.buffer));
                all.push(transfer);
            }
            while let Some(encode) = pipeline.poll_encode() {
                encodings.start(now, &encode);
            }
            let next = in_flight.iter().map(|(at, _)| *at).chain(encodings.poll_deadline());
            let next = next.chain(pipeline.poll_deadline()).min();
            now = next.expect("something is in flight");
            while let Some((buffer, len)) = encodings.poll_done(now) {
                pipeline.handle_encoded(now, buffer, len);
            }
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
    fn a_slow_target_makes_readers_wait_for_buffers() {
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
    fn compression_reduces_writes_and_takes_time() {
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

    #[test]
    fn a_limit_admits_reads_at_its_rate_exactly() {
        let mib_per_s = |n: u64| BytesPerSec::new(n * MIB);
        let limited = |n| Plan { limit: mib_per_s(n), ..plan(&[60 * MIB, 40 * MIB], 2) };
        let cost = |own: &Transfer| Span::from_micros(if own.is_write { 200 } else { 100 });
        // The last of a hundred reads starts when the limit has admitted the 99 before it.
        let (pipeline, _, elapsed) = run(limited(100), cost);
        assert_eq!(elapsed, Span::from_millis(990) + Span::from_micros(300));
        assert_eq!(pipeline.totals().waited_for_buffer, Span::ZERO);
        let waited = pipeline.totals().waited_for_limit;
        assert_eq!(waited, Span::from_millis(990));
        // A rate with a remainder: 1,048,576 bytes at 30,000,000 in a second.
        let uneven = Plan { limit: BytesPerSec::new(30_000_000), ..plan(&[10 * MIB], 1) };
        let (_, _, elapsed) = run(uneven, |_| Span::ZERO);
        assert_eq!(elapsed.nanos(), (9 * MIB * 1_000_000_000).div_ceil(30_000_000));
        // A limit above the pipeline's own speed has no effect.
        let (_, _, fast) = run(limited(1 << 20), cost);
        let (_, _, unlimited) = run(plan(&[60 * MIB, 40 * MIB], 2), cost);
        assert!(fast < unlimited + Span::from_micros(100), "{fast} {unlimited}");
    }

    #[test]
    fn a_stripe_is_written_in_order_of_assignment() {
        let mut pipeline = Pipeline::new(Plan { encoders: 4, ..plan(&[4 * MIB], 1) });
        let now = Instant::ZERO;
        let reads: Vec<_> = std::iter::from_fn(|| pipeline.poll_transfer(now)).collect();
        for read in &reads {
            pipeline.handle_completion(now, read.buffer);
        }
        let encodes: Vec<_> = std::iter::from_fn(|| pipeline.poll_encode()).collect();
        assert_eq!(encodes.iter().map(|own| own.sequence).collect::<Vec<_>>(), [0, 1, 2, 3]);
        for encode in encodes[1..].iter().rev() {
            pipeline.handle_encoded(now, encode.buffer, 512);
            assert_eq!(pipeline.poll_transfer(now), None, "the first is not encoded");
        }
        pipeline.handle_encoded(now, encodes[0].buffer, 1024);
        let writes: Vec<_> = std::iter::from_fn(|| pipeline.poll_transfer(now)).collect();
        let order: Vec<_> = writes.iter().map(|own| (own.buffer, own.offset)).collect();
        let buffers = encodes.iter().map(|own| own.buffer);
        assert_eq!(order, buffers.zip([0, 1024, 1536, 2048]).collect::<Vec<_>>());
    }

    #[test]
    fn ranges_may_be_added_during_a_run_and_zeros_are_not_read() {
        let mut pipeline = Pipeline::new(plan(&[0], 1));
        let now = Instant::ZERO;
        pipeline.set_open(0, true);
        assert_eq!((pipeline.is_done(), pipeline.poll_transfer(now)), (false, None));
        pipeline.add(0, 0..4096, false);
        pipeline.add(0, 4096..4096, false);
        pipeline.add(0, 4096..(1 << 30) + 8192, true);
        assert_eq!(pipeline.pieces(0), 2);
        pipeline.set_open(0, false);
        let reads: Vec<_> = std::iter::from_fn(|| pipeline.poll_transfer(now)).collect();
        let ranges: Vec<_> = reads.iter().map(|own| (own.offset, own.len, own.is_zeros)).collect();
        let expect = [(0, 4096, false), (4096, 1 << 30, true), ((1 << 30) + 4096, 4096, true)];
        assert_eq!(ranges, expect);
        for read in &reads {
            pipeline.handle_completion(now, read.buffer);
        }
        assert_eq!(pipeline.totals().read, 4096);
        while let Some(write) = pipeline.poll_transfer(now) {
            pipeline.handle_completion(now, write.buffer);
        }
        assert!(pipeline.is_done());
    }
}

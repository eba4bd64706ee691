//! The parts of frozen sources that were read, told to the server as the backup goes on.
//!
//! A server keeps the old contents of blocks that change while a source is frozen. It can drop
//! them where the source was read, and need not keep those that change later. A source is read in
//! ascending order, so the parts below its lowest read in flight are done: data that was read, and
//! holes and unchanged ranges that never are.
//!
//! A thread tells the server, since it may take time to free the space. The event loop collects
//! meanwhile, and hands over everything that is new at the next opportunity.

use crate::error::BackupError;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;
use weir_pipeline::Transfer;

/// Bytes of a source that are told together, except at its end.
const BATCH: u64 = 8 << 20;

/// Takes in which ranges of a source are not read again.
pub trait ReadDone: Send {
    /// Takes in that a range was read. Ranges come in ascending order, each adjacent to the one
    /// before; the last one ends beyond the source.
    ///
    /// # Errors
    /// When the server does not take it: the source cannot be read any more either.
    fn read_done(&mut self, range: Range<u64>) -> Result<(), BackupError>;
}

/// How far a source was read.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The first bytes of reads in flight.
    in_flight: BTreeSet<u64>,
    /// The end of the last read that was started.
    until: u64,
    told: u64,
}

impl Mark {
    pub(super) fn start(&mut self, read: &Transfer) {
        self.in_flight.insert(read.offset);
    }

    /// Takes in that a read was answered; `length` bytes, or the zeros that it stands for.
    pub(super) fn complete(&mut self, read: &Transfer) {
        self.in_flight.remove(&read.offset);
        self.until = self.until.max(read.offset.saturating_add(read.len.into()));
    }

    /// Returns the end of the part that is done.
    fn done(&self, is_ended: bool) -> u64 {
        match self.in_flight.first() {
            Some(first) => self.until.min(*first),
            None if is_ended => u64::MAX,
            None => self.until,
        }
    }

    /// Returns the range to tell next, if it is worth it.
    fn next(&self, is_ended: bool) -> Option<Range<u64>> {
        let done = self.done(is_ended);
        (done.saturating_sub(self.told) >= BATCH).then_some(self.told..done)
    }
}

type Told = (usize, Range<u64>);

/// The thread that tells, and the sources that it tells about.
#[derive(Debug)]
pub(super) struct Telling {
    marks: Vec<Option<Mark>>,
    sender: Option<SyncSender<Told>>,
    failed: Receiver<BackupError>,
    thread: Option<JoinHandle<()>>,
}

impl Telling {
    /// Starts a thread if any of the sources wants to hear.
    pub(super) fn start(mut sources: Vec<Option<Box<dyn ReadDone>>>) -> Result<Self, BackupError> {
        let marks: Vec<_> =
            sources.iter().map(|own| own.as_ref().map(|_| Mark::default())).collect();
        let (has_failed, failed) = channel();
        if sources.iter().all(Option::is_none) {
            return Ok(Self { marks, sender: None, failed, thread: None });
        }
        // One range waits while another is told; the rest is collected in the marks.
        let (sender, told) = sync_channel::<Told>(1);
        let tell = move || {
            while let Ok((source, range)) = told.recv() {
                let Some(own) = &mut sources[source] else { continue };
                if let Err(error) = own.read_done(range) {
                    // The receiver is gone if the backup has already failed.
                    let _ = has_failed.send(error);
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("backup-read-done".to_owned()).spawn(tell);
        let failed_to_start = |source| BackupError::System { action: "starting a thread", source };
        let thread = Some(thread.map_err(failed_to_start)?);
        Ok(Self { marks, sender: Some(sender), failed, thread })
    }

    /// Returns the mark of a source that wants to hear.
    pub(super) fn mark(&mut self, source: u32) -> Option<&mut Mark> {
        self.marks.get_mut(source as usize)?.as_mut()
    }

    /// Hands over what is new, if the thread can take it. `is_ended` says whether all ranges of a
    /// source were started.
    pub(super) fn tell(&mut self, is_ended: impl Fn(usize) -> bool) -> Result<(), BackupError> {
        let Some(sender) = &self.sender else { return Ok(()) };
        for (at, mark) in self.marks.iter_mut().enumerate() {
            let Some(mark) = mark else { continue };
            let Some(range) = mark.next(is_ended(at)) else { continue };
            match sender.try_send((at, range.clone())) {
                Ok(()) => mark.told = range.end,
                Err(TrySendError::Full(_)) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return self.outcome(),
            }
        }
        Ok(())
    }

    /// Hands over the rest: all sources were read. Returns when everything was told.
    pub(super) fn finish(&mut self) -> Result<(), BackupError> {
        let Some(sender) = self.sender.take() else { return Ok(()) };
        for (at, mark) in self.marks.iter_mut().enumerate() {
            if let Some(range) = mark.as_ref().and_then(|mark| mark.next(true)) {
                // A thread that has failed says why.
                let _ = sender.send((at, range));
            }
        }
        drop(sender);
        self.join();
        self.outcome()
    }

    fn outcome(&self) -> Result<(), BackupError> {
        match self.failed.try_recv() {
            Ok(error) => Err(error),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(()),
        }
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.sender = None;
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn read(offset: u64, len: u32) -> Transfer {
        let (place, buffer, lane, is_write, is_zeros) = (0, 0, 0, false, false);
        Transfer { place, offset, len, is_write, is_zeros, buffer, lane }
    }

    #[test]
    fn ranges_below_the_lowest_read_in_flight_are_done() {
        let mib = 1 << 20;
        let mut mark = Mark::default();
        let reads = [read(0, 4 << 20), read(4 * mib, 4 << 20), read(20 * mib, 4 << 20)];
        reads.iter().for_each(|own| mark.start(own));
        assert_eq!(mark.next(false), None);
        mark.complete(&reads[1]);
        mark.complete(&reads[2]);
        assert_eq!((mark.done(false), mark.next(true)), (0, None));
        mark.complete(&reads[0]);
        // The hole from 8 to 20 MiB is done too.
        assert_eq!(mark.next(false), Some(0..24 * mib));
        mark.told = 24 * mib;
        assert_eq!(mark.next(false), None, "a short range waits for more");
        assert_eq!(mark.next(true), Some(24 * mib..u64::MAX));
        mark.told = u64::MAX;
        assert_eq!(mark.next(true), None, "the end is told once");
    }

    /// Collects what it hears, and fails when it is told to.
    struct Heard(Arc<Mutex<Vec<Range<u64>>>>, u64);

    impl ReadDone for Heard {
        fn read_done(&mut self, range: Range<u64>) -> Result<(), BackupError> {
            if range.start >= self.1 {
                return Err(BackupError::Failed("the server has gone".to_owned()));
            }
            self.0.lock().expect("no panic").push(range);
            Ok(())
        }
    }

    #[test]
    fn ranges_are_told_without_gaps_and_a_failure_is_the_backups() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let last = 100 * BATCH;
        let mut telling =
            Telling::start(vec![None, Some(Box::new(Heard(Arc::clone(&heard), last)))])
                .expect("a thread");
        assert!(telling.mark(0).is_none());
        let mut error = None;
        for at in 0..u64::MAX / BATCH {
            let own = read(at * BATCH, u32::try_from(BATCH).expect("small"));
            let mark = telling.mark(1).expect("it wants to hear");
            mark.start(&own);
            mark.complete(&own);
            if let Err(told) = telling.tell(|_| false) {
                error = Some(told.to_string());
                break;
            }
        }
        assert!(error.is_some_and(|error| error.contains("the server has gone")));
        drop(telling);
        let heard = heard.lock().expect("no panic");
        let mut at = 0;
        for range in heard.iter() {
            assert_eq!(range.start, at);
            at = range.end;
        }
        assert!(at >= last, "{at}");
    }
}

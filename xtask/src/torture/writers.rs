//! Writers of a round, each in a thread with what it alone changes.

use super::server::{Served, lost, wait_for_answers};
use super::system::End;
use crate::error::XtaskError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of a round.
#[derive(Debug, Default)]
pub(super) struct Progress {
    answers: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    /// Returns whether the writers have to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts an answer.
    pub(super) fn count(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// The writers of a round that has ended.
pub(super) struct Ended<W, E> {
    /// Each writer with its result.
    pub(super) writers: Vec<(W, Result<(), E>)>,
    /// A writer ended before the server did.
    pub(super) is_early: bool,
}

impl<W, E> Ended<W, E> {
    /// Returns the writers. Without a server every request fails, so an error counts only if there was one; `told`
    /// describes it.
    pub(super) fn sound(
        self,
        end: End,
        told: impl Fn(&W, &E) -> String,
    ) -> Result<Vec<W>, XtaskError> {
        let has_server = self.is_early || end == End::Stop;
        let check = |(writer, wrote): (W, Result<(), E>)| match wrote {
            Err(error) if has_server => Err(lost(&told(&writer, &error))),
            _ => Ok(writer),
        };
        self.writers.into_iter().map(check).collect()
    }
}

/// Runs `write` for each writer until there are some answers. Ends the server before the writers end, unless
/// the caller stops it afterwards.
pub(super) fn run<W: Send, E: Send>(
    served: &mut Served,
    writers: Vec<W>,
    answers: u64,
    end: End,
    write: impl Fn(&mut W, &Progress) -> Result<(), E> + Sync,
) -> Result<Ended<W, E>, XtaskError> {
    run_while(served, writers, end, write, |load| load.wait_for(answers))
}

/// The writers of a round, while they work.
pub(super) struct Load<'a> {
    progress: &'a Progress,
    has_ended: &'a dyn Fn() -> bool,
}

impl Load<'_> {
    /// Waits until there are some answers, or a writer has ended.
    pub(super) fn wait_for(&self, answers: u64) -> Result<(), XtaskError> {
        let is_so = || (self.has_ended)() || self.answers() >= answers;
        wait_for_answers(|| self.answers(), is_so)
    }

    /// Returns the number of answers.
    pub(super) fn answers(&self) -> u64 {
        self.progress.answers.load(Ordering::Relaxed)
    }
}

/// As [`run`], but until `work` has ended.
pub(super) fn run_while<W: Send, E: Send>(
    served: &mut Served,
    writers: Vec<W>,
    end: End,
    write: impl Fn(&mut W, &Progress) -> Result<(), E> + Sync,
    work: impl FnOnce(&Load<'_>) -> Result<(), XtaskError>,
) -> Result<Ended<W, E>, XtaskError> {
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let (progress, write) = (&progress, &write);
        let start = |mut writer: W| {
            scope.spawn(move || {
                let result = write(&mut writer, progress);
                (writer, result)
            })
        };
        let threads: Vec<_> = writers.into_iter().map(start).collect();
        let has_ended = || threads.iter().any(|own| own.is_finished());
        let worked = work(&Load { progress, has_ended: &has_ended });
        let is_early = has_ended();
        let ended = match (&worked, end) {
            (Ok(()), End::Stop) => Ok(()),
            (Ok(()), End::Crash) => served.crash(),
            _ => served.kill(),
        };
        progress.is_over.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let writers = threads.into_iter().map(join).collect();
        worked.and(ended).map(|()| Ended { writers, is_early })
    })
}

//! Ctrl-C and SIGTERM during a campaign.

use crate::error::XtaskError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

/// The first signal that asked for an end.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Catches the signals: the first one is kept and answered with `words` on stderr, a second one ends the
    /// process at once.
    ///
    /// # Errors
    ///
    /// [`XtaskError::System`] if signals cannot be caught.
    pub fn catch(words: &'static str) -> Result<Self, XtaskError> {
        let failed = |source| XtaskError::System { doing: "catching signals", source };
        let own = Self::default();
        let kept = Arc::clone(&own.0);
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        let wait = move || {
            for signal in signals.forever() {
                if kept.swap(signal, Ordering::Relaxed) != 0 {
                    // It fails only for signals without a default action.
                    let _ = emulate_default_handler(signal);
                }
                let _ = writeln!(io::stderr(), "{words}");
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
        Ok(own)
    }

    /// Returns whether a signal came.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns the exit code for the signal, by the convention of shells.
    #[must_use]
    pub fn code(&self) -> Option<u8> {
        let signal = self.0.load(Ordering::Relaxed);
        (signal != 0).then(|| u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }
}

/// Makes a command that Ctrl-C in a terminal does not reach, so that it ends when the campaign ends it.
pub(crate) fn in_own_group(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command
}

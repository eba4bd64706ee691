//! Signals that end the process.

use crate::error::{CliError, FAILED};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, iterator, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use weir_backup::Cancel;

/// The signals that end a run in an orderly way. A second one ends the process at once.
pub(crate) struct Signals([(u8, Arc<AtomicBool>); 2]);

impl Signals {
    /// Starts to catch the signals.
    pub(crate) fn catch() -> Result<Self, CliError> {
        Ok(Self([catch(SIGINT)?, catch(SIGTERM)?]))
    }

    /// Returns a request to stop that is made when a signal is received.
    pub(crate) fn cancel(&self) -> Cancel {
        Cancel::new(self.0.iter().map(|(_, flag)| Arc::clone(flag)))
    }

    /// Returns the exit code for a received signal, by the convention of shells.
    pub(crate) fn code(&self) -> Option<u8> {
        let came = self.0.iter().find(|(_, flag)| flag.load(Ordering::Relaxed));
        came.map(|(code, _)| *code)
    }
}

/// Makes a signal end the process after `clean`, for work of which nothing is worth keeping.
pub(crate) fn clean_at_end(clean: impl Fn() + Send + 'static) -> Result<(), CliError> {
    let failed = |source| CliError::System { context: "catching signals", source };
    let mut signals = iterator::Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            clean();
            low_level::exit(128 + signal);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(())
}

fn catch(signal: i32) -> Result<(u8, Arc<AtomicBool>), CliError> {
    let code = 128 + signal;
    let flag = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))
        .and_then(|_| flag::register(signal, Arc::clone(&flag)))
        .map_err(|source| CliError::System { context: "catching signals", source })?;
    Ok((u8::try_from(code).unwrap_or(FAILED), flag))
}

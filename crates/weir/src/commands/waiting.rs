//! What a verb that serves waits for, until it is to end.

use crate::error::{CliError, FAILED};
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use weir_server::{Listening, Notice};

/// What ends the waiting, or interrupts it. `T` is the end of what is served by itself.
enum Wake<T> {
    Signal,
    Notice(Notice),
    Ended(T),
}

/// Waits for signals, for notices of a server and for the end of what is served.
pub(super) struct Waiting<T> {
    wake: Sender<Wake<T>>,
    wakes: Receiver<Wake<T>>,
}

impl<T: Send + 'static> Waiting<T> {
    /// From here on signals are caught, so that none during the start is lost.
    pub(super) fn begin() -> Result<Self, CliError> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(catching)?;
        let (wake, wakes) = channel();
        let signalled = wake.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                // Nobody hears it once what is served is stopping.
                drop(signalled.send(Wake::Signal));
            }
        });
        Ok(Self { wake, wakes })
    }

    /// What is to hear a server's notices.
    pub(super) fn notices(&self) -> Listening {
        let wake = self.wake.clone();
        Listening::with(move |notice| drop(wake.send(Wake::Notice(notice))))
    }

    /// Whoever knows of the end calls it.
    pub(super) fn ending(&self) -> impl FnOnce(T) + Send + 'static {
        let wake = self.wake.clone();
        move |end| drop(wake.send(Wake::Ended(end)))
    }

    /// Says the notices until it is to end: by a signal, with a host, or by itself, which
    /// is returned. From then on the next signal ends the process at once: a medium may
    /// hang.
    pub(super) fn wait(self) -> Result<Option<T>, CliError> {
        let mut ended = None;
        for wake in self.wakes {
            match wake {
                Wake::Signal => break,
                Wake::Ended(end) => {
                    ended = Some(end);
                    break;
                }
                Wake::Notice(notice) => {
                    output::talk(&format!("weir: {notice}"));
                    if matches!(notice, Notice::HostEnded { .. }) {
                        break;
                    }
                }
            }
        }
        let impatient = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, i32::from(FAILED), Arc::clone(&impatient))
                .map_err(catching)?;
        }
        Ok(ended)
    }
}

fn catching(source: std::io::Error) -> CliError {
    CliError::System { context: "catching signals", source }
}

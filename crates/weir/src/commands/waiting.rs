//! The wait of a serving verb until it should end.

use crate::error::{CliError, FAILED};
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use weir_server::{Listening, Notice, Server, ServerError};

/// An event during the wait. `T` is the result of a service that ends by itself.
enum Wake<T> {
    Signal,
    Notice(Notice),
    Ended(T),
}

/// A wait for signals, for notices of a server and for the end of the service.
pub(super) struct Waiting<T> {
    wake: Sender<Wake<T>>,
    wakes: Receiver<Wake<T>>,
}

impl<T: Send + 'static> Waiting<T> {
    /// Starts to catch signals, so that none is lost during the start.
    pub(super) fn begin() -> Result<Self, CliError> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(catching)?;
        let (wake, wakes) = channel();
        let signalled = wake.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                // The receiver is gone once the service stops.
                drop(signalled.send(Wake::Signal));
            }
        });
        Ok(Self { wake, wakes })
    }

    /// Returns the receiver of a server's notices.
    pub(super) fn notices(&self) -> Listening {
        let wake = self.wake.clone();
        Listening::with(move |notice| drop(wake.send(Wake::Notice(notice))))
    }

    /// Returns a function to call at the end of the service.
    pub(super) fn ending(&self) -> impl FnOnce(T) + Send + 'static {
        let wake = self.wake.clone();
        move |end| drop(wake.send(Wake::Ended(end)))
    }

    /// Prints notices until a signal arrives, the host crashes or the service ends by itself; returns
    /// the result of the latter. A further signal then ends the process at once, since a medium
    /// can hang.
    pub(super) fn wait(self) -> Result<Option<T>, CliError> {
        let mut ended = None;
        for wake in &self.wakes {
            match wake {
                Wake::Signal => break,
                Wake::Ended(end) => {
                    ended = Some(end);
                    break;
                }
                Wake::Notice(notice) => {
                    tell(&notice);
                    if matches!(notice, Notice::HostEnded { .. }) {
                        break;
                    }
                }
            }
        }
        // Those that came before the signal was seen.
        for wake in self.wakes.try_iter() {
            if let Wake::Notice(notice) = wake {
                tell(&notice);
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

fn tell(notice: &Notice) {
    let who = if notice.is_audit() { "audit" } else { "weir" };
    output::talk(&format!("{who}: {notice}"));
}

/// Stops a server, and prints the number of refused requests that had no line of their own.
pub(super) fn stop(server: Server) -> Result<(), ServerError> {
    let audit = server.handle().audit().clone();
    let stopped = server.stop();
    audit.rest().iter().for_each(|count| output::talk(&format!("audit: {count}")));
    stopped
}

fn catching(source: std::io::Error) -> CliError {
    CliError::System { context: "catching signals", source }
}

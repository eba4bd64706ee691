//! The threads: one asks the server, one reads keys, one waits for signals, and the main thread
//! draws.

use crate::screen::Screen;
use crate::top::{Top, Wish};
use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use weir_report::status::Status;
use weir_server::ServerError;
use weir_server::control::{Request, ask};
use weir_wall::Clock;

/// The longest time between two attempts to reach a server that has stopped.
const RETRY: Duration = Duration::from_secs(1);

/// The time after which a reading that has not come is missed.
const LATE: Duration = Duration::from_secs(3);

/// The settings of [`run`].
#[derive(Debug, Clone)]
pub struct Options {
    /// The control socket.
    pub control: PathBuf,
    /// The time between two readings.
    pub every: Duration,
    /// Nothing is coloured.
    pub is_plain: bool,
}

/// An error that ends [`run`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopError {
    /// The server does not answer at the start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server's answer has another form.
    #[error("the server runs another release of weir: {0}")]
    Release(#[source] serde_json::Error),
    /// The terminal cannot be used.
    #[error("using the terminal: {0}")]
    Terminal(#[source] io::Error),
    /// A thread cannot be started.
    #[error("starting a thread: {0}")]
    System(#[source] io::Error),
    /// A thread ended by a panic, which it has printed.
    #[error("weir top failed; please report the message above")]
    Failed,
}

/// An event for the main thread.
enum Wake {
    Reading(Result<Status, TopError>),
    Input(io::Result<Event>),
    Answer(Result<String, String>),
    Signal,
    Panicked,
}

/// Shows a server until the user quits.
///
/// # Errors
///
/// [`TopError`]. A server that stops answering later is no error: its last figures stay until it
/// answers again.
pub fn run(options: &Options) -> Result<(), TopError> {
    let mut top = Top::new(options.is_plain);
    top.take(now_ms(), read(&options.control)?);
    let (wake, wakes) = channel();
    catch_signals(wake.clone())?;
    let (_stop, stopped) = channel();
    keep_asking(options.clone(), wake.clone(), stopped)?;
    let mut screen = Screen::enter().map_err(TopError::Terminal)?;
    keep_reading_keys(wake.clone())?;
    screen.draw(&mut top).map_err(TopError::Terminal)?;
    let change = |volume, tier| set_tier(options.control.clone(), (volume, tier), wake.clone());
    let late = options.every + LATE;
    let clock = Clock::start();
    let mut heard = clock.now();
    loop {
        let silence = Duration::from_nanos((clock.now() - heard).nanos());
        match wakes.recv_timeout(late.saturating_sub(silence)) {
            // Events that have arrived meanwhile are in the same picture.
            Ok(first) => {
                for wake in std::iter::once(first).chain(wakes.try_iter()) {
                    if matches!(wake, Wake::Reading(_)) {
                        heard = clock.now();
                    }
                    if took(wake, &mut top, &change)? == Next::End {
                        return Ok(());
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                heard = clock.now();
                top.lost(&format!("no answer within {} s", late.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(TopError::Failed),
        }
        screen.draw(&mut top).map_err(TopError::Terminal)?;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Draw,
    End,
}

/// Takes an event. `change` sends a change of a volume's tier to the server.
fn took(
    wake: Wake,
    top: &mut Top,
    change: &impl Fn(String, String) -> Result<(), TopError>,
) -> Result<Next, TopError> {
    match wake {
        Wake::Signal => return Ok(Next::End),
        Wake::Panicked => return Err(TopError::Failed),
        Wake::Reading(Ok(status)) => top.take(now_ms(), status),
        Wake::Reading(Err(error)) => top.lost(&reason(&error)),
        Wake::Answer(answer) => top.answered(answer),
        // A new size is seen by the drawing.
        Wake::Input(Ok(event)) => match event.as_key_event().and_then(|key| top.key(key)) {
            None => {}
            Some(Wish::Quit) => return Ok(Next::End),
            Some(Wish::SetTier { volume, tier }) => change(volume, tier)?,
        },
        Wake::Input(Err(error)) => return Err(TopError::Terminal(error)),
    }
    Ok(Next::Draw)
}

/// Returns the reason of an error; the socket is known to the user.
fn reason(error: &TopError) -> String {
    match error {
        TopError::Server(ServerError::Control { reason, .. }) => reason.clone(),
        error => error.to_string(),
    }
}

fn now_ms() -> u64 {
    weir_wall::calendar() / 1_000_000
}

fn read(control: &Path) -> Result<Status, TopError> {
    let value = ask(control, &Request::Status)?;
    serde_json::from_value(value).map_err(TopError::Release)
}

/// Starts a thread, of which a panic ends the program.
fn spawn(
    name: &str,
    wake: Sender<Wake>,
    work: impl FnOnce(&Sender<Wake>) + Send + 'static,
) -> Result<(), TopError> {
    struct Told(Sender<Wake>);
    impl Drop for Told {
        fn drop(&mut self) {
            if thread::panicking() {
                // The receiver is gone only at the end.
                drop(self.0.send(Wake::Panicked));
            }
        }
    }
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        let told = Told(wake);
        work(&told.0);
    });
    thread.map(drop).map_err(TopError::System)
}

fn catch_signals(wake: Sender<Wake>) -> Result<(), TopError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(TopError::System)?;
    spawn("signals", wake, move |wake| {
        for _ in signals.forever() {
            drop(wake.send(Wake::Signal));
        }
    })
}

/// Asks the server at each interval, until the sender of `stopped` is gone.
fn keep_asking(
    options: Options,
    wake: Sender<Wake>,
    stopped: Receiver<()>,
) -> Result<(), TopError> {
    spawn("readings", wake, move |wake| {
        let mut pause = options.every;
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let reading = read(&options.control);
            pause = if reading.is_ok() { options.every } else { options.every.min(RETRY) };
            if wake.send(Wake::Reading(reading)).is_err() {
                return;
            }
        }
    })
}

fn keep_reading_keys(wake: Sender<Wake>) -> Result<(), TopError> {
    spawn("keys", wake, |wake| {
        loop {
            let input = event::read();
            let is_end = input.is_err();
            if wake.send(Wake::Input(input)).is_err() || is_end {
                return;
            }
        }
    })
}

/// Sends a change to the server. A change of a busy medium may take long, so it has a thread.
fn set_tier(
    control: PathBuf,
    (volume, tier): (String, String),
    wake: Sender<Wake>,
) -> Result<(), TopError> {
    spawn("change", wake, move |wake| {
        let request = Request::SetTier { volume: volume.clone(), tier: tier.clone() };
        let answer = match ask(&control, &request) {
            Ok(done) => {
                let tier = done["tier"].as_str().unwrap_or(&tier);
                Ok(format!("{volume} has the limits of {tier}"))
            }
            Err(error) => Err(format!("{volume} is unchanged: {error}")),
        };
        drop(wake.send(Wake::Answer(answer)));
    })
}

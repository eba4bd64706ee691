//! Caught panics with their location, without output on stderr.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::env;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::Path;
use std::sync::Once;

thread_local! {
    /// `Some` while this thread catches panics.
    static CAUGHT: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// A panic of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Panic {
    /// File, line and column.
    pub(super) place: String,
    pub(super) message: String,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked at {}: {}", self.place, self.message)
    }
}

/// Runs `action` and returns its panic, if there is one.
pub(super) fn catch(action: impl FnOnce()) -> Result<(), Panic> {
    install();
    CAUGHT.set(Some(Panic::default()));
    // The closure owns everything that a panic leaves inconsistent.
    let result = panic::catch_unwind(AssertUnwindSafe(action));
    let caught = CAUGHT.take().unwrap_or_default();
    result.map_err(|_| caught)
}

/// Installs a hook before the present one, for panics that [`catch`] catches.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_ours = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(caught) => {
                    *caught = describe(info);
                    true
                }
                None => false,
            });
            if !is_ours {
                previous(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Panic {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    // A panic in the standard library, for example of an overflowing sum, is located at its caller.
    let place = if Path::new(&place).is_relative() { place } else { caller().unwrap_or(place) };
    let payload = info.payload();
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("(no message)").to_owned();
    Panic { place, message }
}

/// Returns the first location on the stack in this repository, apart from this file. Lines have the
/// form `at ./crates/weir-core/src/engine.rs:387:45`, relative to the working directory.
fn caller() -> Option<String> {
    let stack = Backtrace::force_capture().to_string();
    let here = env::current_dir().unwrap_or_default();
    let root = crate::root();
    let places = stack.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let absolute = places.map(|place| here.join(place.strip_prefix("./").unwrap_or(place)));
    let mut ours = absolute.filter_map(|place| Some(place.strip_prefix(&root).ok()?.to_owned()));
    ours.find(|place| !is_this_file(place)).map(|place| place.display().to_string())
}

/// Returns whether a location, which ends with line and column, is in this file.
fn is_this_file(place: &Path) -> bool {
    place.to_string_lossy().starts_with(concat!(file!(), ":"))
}

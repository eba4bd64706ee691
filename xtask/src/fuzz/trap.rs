//! Panics caught with their place, and without the noise on stderr.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::env;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::Path;
use std::sync::Once;

thread_local! {
    /// `Some` while this thread's panics are caught.
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

/// Calls `action`; gives its panic, if it does.
pub(super) fn catch(action: impl FnOnce()) -> Result<(), Panic> {
    install();
    CAUGHT.set(Some(Panic::default()));
    // What a panic leaves half done is dropped with the closure.
    let result = panic::catch_unwind(AssertUnwindSafe(action));
    let caught = CAUGHT.take().unwrap_or_default();
    result.map_err(|_| caught)
}

/// Puts a hook before the present one that keeps what [`catch`] catches.
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
    // Of a sum that overflows, say, the standard library is the place; who called
    // it tells one finding from another.
    let place = if Path::new(&place).is_relative() { place } else { caller().unwrap_or(place) };
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("(no message)").to_owned();
    Panic { place, message }
}

/// The first place on the stack that is in this repository and not in this file,
/// from lines like `at ./crates/weir-core/src/engine.rs:387:45`, which are relative
/// to the working directory where they can be.
fn caller() -> Option<String> {
    let stack = Backtrace::force_capture().to_string();
    let here = env::current_dir().unwrap_or_default();
    let root = crate::root();
    let places = stack.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let absolute = places.map(|place| here.join(place.strip_prefix("./").unwrap_or(place)));
    let mut ours = absolute.filter_map(|place| Some(place.strip_prefix(&root).ok()?.to_owned()));
    ours.find(|place| !is_this_file(place)).map(|place| place.display().to_string())
}

/// Whether a place, which ends with line and column, is in this file.
fn is_this_file(place: &Path) -> bool {
    place.to_string_lossy().starts_with(concat!(file!(), ":"))
}

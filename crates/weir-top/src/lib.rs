//! `weir top`: the live state of a running server in a terminal.
//!
//! Everything is read through the control socket. One thread asks the server, one reads keys, one
//! waits for signals; the main thread owns the [`Top`] and draws it after each event.
//!
//! | module | holds |
//! |---|---|
//! | [`top`] | the state: readings and keys in, wishes out; no clock, no terminal |
//! | `line` | a volume or host with its figures |
//! | `column` | the columns of the list, and its order |
//! | [`draw`] | the picture of the state |
//! | `palette` | the styles of the picture |
//! | `text` | names and numbers that fit into columns |
//! | [`screen`] | the terminal, restored at the end |
//! | `run` | the threads |

#![forbid(unsafe_code)]

mod column;
pub mod draw;
mod line;
mod palette;
mod run;
pub mod screen;
mod text;
pub mod top;

pub use run::{Options, TopError, run};
pub use top::{Top, Wish};

//! The observation: what a storage system counted over time, and the file that keeps it.
//!
//! An observation is the same thing wherever it came from, a virtual run, a wall run or
//! a real server, so that whoever reads one reads them all. It has *entities* (hosts,
//! volumes, files, databases, waits) with what is known of their limits, *series*
//! (a metric of an entity), and *samples* (the values of the series at a time).
//! `docs/OBSERVATION.md` says what the entities and metrics are called and has the file
//! byte by byte.
//!
//! ```text
//!   run, or reader of a real system                     tables, plots, diagnosis
//!              |                                                   ^
//!           Writer  -->  header, chunk, chunk, ..., end  -->    Reader
//! ```
//!
//! Writer and reader hold one chunk at a time, so a day of a thousand files is as little
//! trouble as a minute of one.
//!
//! | module | holds |
//! |---|---|
//! | [`header`] | who is observed and what is counted |
//! | [`metric`] | the standard names |
//! | [`observation`] | columns, chunks, and a whole observation in memory |
//! | [`mod@format`] | the file: [`Writer`] and [`Reader`] |
//! | [`run`] | a run of Weir as samples: plain counters that any driver can fill |
//! | [`view`] | which series of an entity are its I/O, its waits, its load |
//! | [`import`] | what other people's systems say, as observations |
//! | [`joined`] | several observations as one, sample by sample |
//! | `join` | several sheets side by side in one observation |
//! | [`live`] | observing real systems while they run |
//! | [`load`] | what somebody did from one sample to the next, whoever counted it and how |
//! | [`rates`] | from counters to rates, through gaps and restarts, in bounded memory |
//! | [`sizing`] | what a system asks of its storage, by role |
//! | [`snapshot`] | what everybody had counted at a time |
//! | [`between`] | what everybody did between two times |
//! | `times` | how far apart samples are, and their gaps |
//! | [`when`] | times of an observation, as somebody asks for them |
//! | [`waits`] | waits by category |

#![forbid(unsafe_code)]

pub mod between;
pub mod format;
pub mod header;
pub mod import;
mod join;
pub mod joined;
pub mod live;
pub mod load;
pub mod metric;
pub mod observation;
pub mod rates;
pub mod run;
pub mod sizing;
pub mod snapshot;
mod times;
pub mod view;
pub mod waits;
pub mod when;

pub use format::{Ending, ReadError, Reader, WriteError, Writer};
pub use header::{
    Attribute, Contents, Counting, Entity, EntityId, EntityKind, Header, LayoutText, Series,
    SeriesId, Source, SourceKind, Unit,
};
pub use joined::Block;
pub use observation::{Chunk, Column, Note, Observation};

//! Observations: the counters of a storage system over time, and the file format for them.
//!
//! Runs in virtual and wall time and real servers produce the same kind of observation. It has
//! *entities* (hosts, volumes, files, databases, waits) with their limits, *series* (a metric of
//! an entity), and *samples* (the values of all series at a time). `docs/OBSERVATION.md` lists
//! the names of entities and metrics and describes each byte of a file.
//!
//! ```text
//!   run, or importer                                    tables, plots, diagnosis
//!              |                                                   ^
//!           Writer  -->  header, chunk, chunk, ..., end  -->    Reader
//! ```
//!
//! Writer and reader hold one or two chunks at a time, whatever the length of the observation.
//!
//! | module | holds |
//! |---|---|
//! | [`header`] | entities, series, and the origin of an observation |
//! | [`metric`], [`attribute`] | the standard names, with units |
//! | [`columns`] | values by sample: columns, chunks, and notes |
//! | [`observation`] | a whole observation in memory |
//! | [`mod@format`] | the file: [`Writer`] and [`Reader`] |
//! | [`run`] | a run of Weir as samples, from the plain counters of any driver |
//! | [`view`] | the series of an entity by purpose: its I/O, its waits, its load |
//! | [`joined`] | several observations as one, sample by sample |
//! | [`load`] | the load of an entity between two samples, whatever its source counts |
//! | [`rates`] | counters to rates, across gaps and resets, in bounded memory |
//! | [`sizing`] | the demand of a system by role |
//! | [`snapshot`] | the newest counters of all entities: a baseline |
//! | [`between`] | the activity of all entities between two times |
//! | `times` | distances and gaps between samples |
//! | [`moment`] | times in the notations of other programs |
//! | [`when`] | times of an observation as users write them |
//! | [`waits`] | waits by category |

#![forbid(unsafe_code)]

pub mod attribute;
pub mod between;
pub mod columns;
pub mod format;
pub mod header;
pub mod joined;
pub mod load;
pub mod metric;
pub mod moment;
pub mod observation;
pub mod rates;
pub mod run;
pub mod sizing;
pub mod snapshot;
mod times;
pub mod view;
pub mod waits;
pub mod when;

pub use columns::{Chunk, Column, Note};
pub use format::{Ending, ReadError, Reader, WriteError, Writer};
pub use header::{
    Attribute, Contents, Counting, Entity, EntityId, EntityKind, Header, LayoutText, Series,
    SeriesId, Source, SourceKind, Unit,
};
pub use joined::Block;
pub use observation::Observation;

//! Importers: counters, logs, results and traces of other programs become observations.
//!
//! ```text
//!  bytes --> text: encoding, lines --> a reader for the kind --> sheet: entities, series, values
//!                                                                 |
//!                    several inputs, by their times  -->  merge  -+-> Writer
//! ```
//!
//! A reader finds its columns by their names, in any order, takes units from headers, and lists
//! the columns that it did not use. It streams: its memory does not grow with the input. Missing
//! values stay missing. Impossible input (a counter that goes back, a cut line, a repeated time)
//! is reported in a note.
//!
//! The modules form three layers; a module imports only from its own layer and those above it in
//! this table. An importer is one file, which defines a [`Kind`], and one line in the list of its
//! group.
//!
//! | layer | module | holds |
//! |---|---|---|
//! | shared tools | `error`, `options` | errors, and the options of an import |
//! | | `ahead` | reading and decompression in a thread of its own |
//! | | `compressed` | inputs compressed with gzip, xz or zstd |
//! | | `text` | encodings and lines |
//! | | `number` | numbers in various notations |
//! | | `table` | tables: delimited, with columns of fixed width, in Markdown |
//! | | `results`, `rows` | result sets of databases, and the choice of their reader |
//! | | `values`, `brackets` | consecutive JSON values, and the nesting of their brackets |
//! | | `timing`, `window` | the times of rows, and values in the order of their times |
//! | | `in_turn` | a lookup that expects the same names in the same order again |
//! | | `sheet` | the entities, series and values that a reader fills |
//! | | `presence` | entities that are missing from some samples |
//! | | `join` | several sheets side by side in one observation |
//! | | `kind` | a kind of input: how it is recognized and read |
//! | | `near` | the kinds nearest to an unknown input |
//! | importers | `linux` | iostat, vmstat, sar and the like |
//! | | `windows` | performance counters of Windows |
//! | | `sql` | SQL Server and Azure SQL |
//! | | `postgres` | PostgreSQL |
//! | | `backup` | logs and histories of backups and restores |
//! | | `bench` | results of benchmarks |
//! | | `trace` | block traces |
//! | | `cloud` | metrics of clouds |
//! | import | `importers` | the list of importers |
//! | | `detect` | detection of the kind of an input |
//! | | `watched` | the point at which an input changes to another kind |
//! | | `input`, `together` | inputs, and those that are read together |
//! | | `merge` | from sheets to an observation |
//! | | `requests` | block traces as single requests |
//! | | [`recorded`] | traces to replay, of Weir and of other tools |
//! | | [`live`] | observation of running systems |

#![forbid(unsafe_code)]

mod ahead;
mod backup;
mod bench;
mod brackets;
mod cloud;
mod compressed;
mod detect;
mod error;
mod importers;
mod in_turn;
mod input;
mod join;
mod kind;
mod linux;
pub mod live;
mod merge;
mod near;
mod number;
mod options;
mod postgres;
mod presence;
pub mod recorded;
mod requests;
mod results;
mod rows;
mod sheet;
mod sql;
mod table;
mod text;
mod timing;
mod together;
mod trace;
mod values;
mod watched;
mod window;
mod windows;

pub use compressed::decompressed;
pub use detect::nearest;
pub use error::{ImportError, Nearest};
pub use importers::{kind_named, kinds};
pub use input::{Failure, Input};
pub use kind::{Bytes, Kind};
pub use merge::{Summary, import};
pub use options::{BackupMedia, FileCounts, Options, TimeUnit};
pub use requests::{Requests, trace_kind};
pub use sheet::{At, ReadSamples, Sheet};

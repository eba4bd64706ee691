//! Report types: the only serialized output types, and their text, JSON, CSV and Markdown.
//!
//! A report is a struct that serializes as it stands (that is its JSON) and that
//! can be laid out as [`Table`]s (that is its text, CSV and Markdown). Field names
//! are stable; times are nanoseconds or seconds as the name says, sizes bytes,
//! rates per second.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | tables and the four formats |
//! | [`screen`] | width, colours and detail of text |
//! | [`number`] | numbers for people |
//! | [`status`] | a running server |
//! | [`run`] | a workload that ran, in virtual or wall time |
//! | [`replay`] | a trace that was recorded or replayed |
//! | [`oltp`] | a database under load that ran |
//! | [`backup_plan`] | disks that a backup fits within its window |
//! | [`backup_run`] | a backup that was made in wall time |
//! | [`backup_internals`] | what SQL Server logs of a backup |
//! | [`recovery`] | the result of the recovery of a database |
//! | [`backups`] | backups that are kept: lists, verifications, retention, restores |
//! | [`observe`] | the contents of an observation |
//! | [`check`] | the damage of a data folder |
//! | [`checklist`] | the storage requirements of an application |
//! | [`percentiles`] | the same over time |
//! | [`fit`] | whether a layout carries a need |
//! | [`tune`] | the record of a tuned layout |
//! | [`fleet`] | the packing of a fleet onto instances, with price and lower bound |
//! | [`fleet_diagnosis`] | the diagnosis of a fleet |
//! | [`plan`] | a layout for a need, its price, and what comes next |
//! | [`compare`] | one need on several clouds |
//! | [`comparison`] | systems side by side, with their differences |
//! | [`between`] | the difference of two snapshots |
//! | [`bars`] | bar charts |
//! | [`chart`] | pictures over time, as SVG and HTML |
//! | [`scatter`] | pictures of pairs of values |
//! | [`sweep`] | the parameter of a sweep that moves a metric most |
//! | [`diagnosis`] | the result of a diagnosis |
//! | [`lab`] | published figures and Weir's figures |
//! | [`causes`] | messages of errors, with their causes |
//! | `answer` | reports that begin with their answer |
//! | `page` | self-contained HTML pages |
//! | `finite` | for tests: floats of a report that are NaN or infinite |

#![forbid(unsafe_code)]

mod answer;
pub mod backup;
pub mod backup_internals;
pub mod backup_plan;
pub mod backup_run;
pub mod backups;
pub mod bars;
pub mod between;
pub mod causes;
pub mod chart;
pub mod check;
pub mod checklist;
mod columns;
pub mod compare;
pub mod comparison;
pub mod diagnosis;
#[cfg(feature = "finite")]
pub mod finite;
pub mod fit;
pub mod fleet;
pub mod fleet_diagnosis;
pub mod lab;
pub mod number;
pub mod observe;
pub mod oltp;
pub mod page;
pub mod percentiles;
pub mod plan;
pub mod recovery;
pub mod replay;
pub mod run;
mod scale;
pub mod scatter;
pub mod screen;
pub mod status;
pub mod sweep;
pub mod table;
pub mod tune;

pub use page::Page;
pub use screen::Screen;
pub use table::{Format, Report, Table};

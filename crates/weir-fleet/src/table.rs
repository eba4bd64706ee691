//! Observations as tables in Parquet.
//!
//! A table has all that an observation has, in rows: `docs/OBSERVATION.md` lists the columns. Programs
//! that read a table and write it again therefore keep the observation, which facts in the metadata of
//! a file would not survive.
//!
//! | module | holds |
//! |---|---|
//! | [`schema`] | the columns |
//! | [`facts`] | entities, series, notes and origin as rows, and back |
//! | [`value`] | values as floats that return to the same integer |
//! | [`mod@write`] | the table of an observation, or of a part of it |
//! | [`mod@read`] | the tables of one observation, sample by sample |

pub mod facts;
pub mod read;
pub mod schema;
pub mod value;
pub mod write;

pub(crate) use facts::DIFFERENT;
pub use facts::Described;
pub use read::Tables;
pub use write::Table;

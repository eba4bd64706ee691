//! Faults of job files and of their placement.

use crate::block_map::{MOST_BLOCKS, MOST_BLOCKS_OF_A_RUN};
use crate::job::{MAX_BLOCK, MAX_CLONES, MAX_DEPTH};
use crate::position::Position;
use std::sync::Arc;
use thiserror::Error;
use weir_units::Bytes;

/// An invalid job file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FioError {
    /// An option before the first `[section]`.
    #[error("{at}: {text:?} stands outside of a section; put it under [global] or a [job name]")]
    OutsideSection {
        /// The position.
        at: Position,
        /// The line.
        text: String,
    },
    /// A section line that is not `[name]`.
    #[error("{at}: {text:?} is not a section; write [name] alone on its line")]
    BadSection {
        /// The position.
        at: Position,
        /// The line.
        text: String,
    },
    /// A `[section]` in an included file, which fio does not allow.
    #[error("{at}: an included file cannot start a section ({text:?}); move it to the job file")]
    SectionInInclude {
        /// The position.
        at: Position,
        /// The line.
        text: String,
    },
    /// An include that could not be read.
    #[error("{at}: cannot include {name:?}: {source}")]
    Include {
        /// The position of the `include`.
        at: Position,
        /// The included file.
        name: String,
        /// The error of the source.
        source: std::io::Error,
    },
    /// Too many nested includes.
    #[error("{at}: {name:?} is included more than {limit} levels deep; does it include itself?")]
    IncludeTooDeep {
        /// The position of the innermost `include`.
        at: Position,
        /// The included file.
        name: String,
        /// Maximum depth.
        limit: usize,
    },
    /// A change of a section that the file does not have.
    #[error("{file}: there is no section [{section}]{}The sections are: {known}",
        if nearest.is_some() { format!("{} ", weir_units::did_you_mean(nearest)) } else { ". ".into() })]
    NoSection {
        /// The job file.
        file: String,
        /// The section.
        section: String,
        /// The nearest section that there is.
        nearest: Option<String>,
        /// The sections of the file.
        known: String,
    },
    /// An option that fio does not have.
    #[error("{at}: unknown option {option:?}{}", weir_units::did_you_mean(nearest))]
    UnknownOption {
        /// The position.
        at: Position,
        /// The name in the file.
        option: String,
        /// The nearest known name.
        nearest: Option<&'static str>,
    },
    /// An option that fio knows, that changes the I/O, and that is not modelled.
    #[error("{at}: option {text:?} is not supported and changes the I/O: {why}")]
    Unsupported {
        /// The position.
        at: Position,
        /// The option's name.
        option: &'static str,
        /// The option with its value, as in the file.
        text: String,
        /// The change to the I/O.
        why: &'static str,
    },
    /// An invalid value.
    #[error("{at}: {option}={value}: {kind}")]
    BadValue {
        /// The position.
        at: Position,
        /// The option's name.
        option: &'static str,
        /// The value with expanded variables.
        value: String,
        /// The fault.
        kind: ValueError,
    },
    /// Two options of one job that exclude each other.
    #[error("{at}: job {job:?}: {why}")]
    Conflict {
        /// The position of the later one.
        at: Position,
        /// The job.
        job: String,
        /// The reason.
        why: &'static str,
    },
    /// A file without a job section.
    #[error("{file}: no job in this file; add a [job name] section")]
    NoJobs {
        /// The file.
        file: Arc<str>,
    },
    /// A job that does not fit its placement.
    #[error("{at}: job {job:?}: {kind}")]
    Placement {
        /// The position of its section.
        at: Position,
        /// The job.
        job: String,
        /// The reason.
        kind: PlacementError,
    },
}

/// A fault of an option's value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValueError {
    /// An option that needs a value has none.
    #[error("a value is missing")]
    Missing,
    /// The value is empty because a variable is not set.
    #[error("the environment variable {name} is not set")]
    Unset {
        /// The variable.
        name: String,
    },
    /// `${` without its `}`.
    #[error("a ${{...}} is not closed")]
    OpenVariable,
    /// A template that was not filled in.
    #[error("this is a placeholder of a template; fill it in first")]
    Placeholder,
    /// `$ncpus` and others, which depend on the machine that fio runs on.
    #[error("{keyword} depends on the machine; write the number")]
    MachineFact {
        /// The keyword.
        keyword: &'static str,
    },
    /// A blank after the `=`. fio reads `bs= 8k` as 8 bytes and rejects `rw= read`.
    #[error("remove the blank after '=': fio misreads or refuses such a value")]
    LeadingBlank,
    /// Not a whole number.
    #[error("{text:?} is not a whole number")]
    NotANumber {
        /// The invalid part.
        text: String,
    },
    /// `(1024*4)`: fio calculates it, Weir does not.
    #[error("write the result instead of an expression")]
    Expression,
    /// A size suffix that does not exist.
    #[error(
        "unknown unit {unit:?}; use k, m, g, t, p, or KiB, MiB, ... as fio's kb_base defines them"
    )]
    SizeUnit {
        /// The suffix.
        unit: String,
    },
    /// A time suffix that fio would silently read as microseconds.
    #[error(
        "unknown time unit {unit:?}, which fio reads as microseconds; use us, ms, s, m, h or d"
    )]
    TimeUnit {
        /// The suffix.
        unit: String,
    },
    /// Outside of the option's range.
    #[error("must be {min} to {max}")]
    OutOfRange {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// Larger than a 64-bit integer.
    #[error("is too large")]
    TooLarge,
    /// A block size of zero, or larger than a request.
    #[error("a block is 1 byte to {MAX_BLOCK} bytes")]
    BlockSize,
    /// More clones than a run can hold.
    #[error("numjobs is 1 to {MAX_CLONES}")]
    Clones,
    /// A queue depth beyond the maximum.
    #[error("iodepth is 1 to {MAX_DEPTH}")]
    Depth,
    /// A flag that is neither 0 nor 1.
    #[error("must be 0 or 1")]
    NotAFlag,
    /// A word that the option does not have.
    #[error("must be one of {}{}", allowed.join(", "), weir_units::did_you_mean(nearest))]
    NotOneOf {
        /// The allowed words.
        allowed: &'static [&'static str],
        /// The nearest allowed word.
        nearest: Option<&'static str>,
    },
    /// An I/O engine that does not do block I/O, or that fio does not have.
    #[error("I/O engine not supported; use {}", allowed.join(", "))]
    Engine {
        /// The supported engines.
        allowed: &'static [&'static str],
    },
    /// A range without its second half.
    #[error("a range is written MIN-MAX, for example 1k-4k")]
    NotARange,
    /// `bssplit` shares that do not add up to 100.
    #[error("the percentages add up to {sum}, not 100")]
    Shares {
        /// Their sum.
        sum: u64,
    },
    /// Zones that are larger than the file.
    #[error("the sizes of the zones add up to {sum} %, more than 100")]
    ZoneSizes {
        /// Their sum.
        sum: u64,
    },
    /// A parameter of a distribution out of range.
    #[error("{what}")]
    Parameter {
        /// The allowed range.
        what: &'static str,
    },
    /// More than three parts separated by commas.
    #[error("takes at most three values: read,write,trim")]
    TooManyParts,
}

/// The reason why a job does not fit its placement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// No region was given.
    #[error("needs at least one region to work on")]
    NoRegion,
    /// The region ends before the job's range does.
    #[error(
        "offset {} and size {} reach past the end of its file or volume of {}; lower one of them",
        .offset.exact(), .size.exact(), .len.exact()
    )]
    PastTheEnd {
        /// The start of the job's range in the region.
        offset: Bytes,
        /// The length of the job's range.
        size: Bytes,
        /// The length of the region.
        len: Bytes,
    },
    /// The random map of I/Os of several sizes has more blocks than a map may have.
    #[error(
        "the random map of its range would have {blocks} blocks of {}, more than {most}; \
         a file has at most {MOST_BLOCKS}, and all files of a run {MOST_BLOCKS_OF_A_RUN}; give a larger \
         smallest block, a smaller size, fewer jobs, norandommap or softrandommap", .block.exact()
    )]
    LargeMap {
        /// The smallest block.
        block: Bytes,
        /// The blocks of the range.
        blocks: u64,
        /// Maximum blocks of the map.
        most: u64,
    },
    /// A range smaller than one block.
    #[error("not one block of {} fits into its range of {}", .block.exact(), .span.exact())]
    TooSmall {
        /// The smallest block.
        block: Bytes,
        /// The range.
        span: Bytes,
    },
    /// More processes than a run can hold.
    #[error("more than {limit} processes in one run")]
    TooManyProcesses {
        /// The limit.
        limit: u32,
    },
}

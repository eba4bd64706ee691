//! The arguments of the verbs that read files of other tools.

use clap::Args;
use weir_import::{FileCounts, TimeUnit};
use weir_units::Span;

/// Options for reading the files of other tools.
#[derive(Debug, Default, Args)]
pub(crate) struct ImportArgs {
    /// Read all input files as this kind instead of detecting it; weir observe kinds lists the
    /// kinds.
    #[arg(long = "as", value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Sampling interval for inputs without timestamps, for example 5s.
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<Span>,
    /// Start time of inputs without dates, for example "2026-11-22 14:00:00".
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<String>,
    /// Unit of the times in a block trace that does not state it: s, ms, us, ns or 100ns. Use it if
    /// a note says that the unit was assumed.
    #[arg(long, value_name = "UNIT", value_parser = TimeUnit::NAMES)]
    pub(crate) time_unit: Option<String>,
    /// Meaning of the counts of files in a SKU assessment of SQL Server: per-second, or per-query
    /// with the interval of the queries in --every.
    #[arg(long, value_name = "MEANING", value_parser = FileCounts::NAMES)]
    pub(crate) file_counts: Option<String>,
    #[command(flatten)]
    pub(crate) clock: ClockArgs,
}

impl ImportArgs {
    /// Returns the first option that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.all_given().next()
    }

    /// Returns the first option that is given, except for the kind.
    pub(crate) fn given_for_own(&self) -> Option<&'static str> {
        self.all_given().find(|name| *name != "--as")
    }

    /// Returns the first option that is given, except for the clock: verbs that take times read those by it, too.
    pub(crate) fn given_for_files(&self) -> Option<&'static str> {
        self.all_given().find(|name| !["--utc-offset", "--day-first"].contains(name))
    }

    fn all_given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.kind.is_some(), "--as"),
            (self.every.is_some(), "--every"),
            (self.start.is_some(), "--start"),
            (self.time_unit.is_some(), "--time-unit"),
            (self.file_counts.is_some(), "--file-counts"),
            (self.clock.utc_offset.is_some(), "--utc-offset"),
            (self.clock.day_first, "--day-first"),
        ];
        all.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

/// Options for reading times without a zone and ambiguous dates.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct ClockArgs {
    /// UTC offset of times without a zone, for example +01:00.
    #[arg(long, value_name = "OFFSET")]
    pub(crate) utc_offset: Option<String>,
    /// Read 05/06/2026 as 5 June instead of 6 May.
    #[arg(long)]
    pub(crate) day_first: bool,
}

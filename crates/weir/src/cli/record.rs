//! The arguments of `weir record`, and of replays.

use super::{ImportArgs, OutputArgs, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_sim::checks::MOST_DEPTH;
use weir_trace::{Sample, Window};
use weir_units::Span;
use weir_workload::replay::Pace;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
                        weir record web_0.csv --out web.weirtrace --from 1h --to 2h\n  \
                        weir record --control /tmp/weir.sock --out served.weirtrace --duration 10min\n  \
                        weir record --device /dev/sda --out sda.weirtrace --duration 1min\n  \
                        weir sim layout.toml web.weirtrace --map web/0=data\n\n\
                        docs/TRACES.md describes the file and what a replay keeps. Exit codes: 0 \
                        recorded; 1 requests are missing: the recorder was too slow, or the trace \
                        was cut off; 2 wrong input; 3 the recording failed or ended early, and what \
                        was written is kept.")]
pub(crate) struct RecordArgs {
    /// Block trace of another tool, or a trace of Weir, to convert. weir observe kinds lists the
    /// kinds. Give all files of a binary trace of blktrace together.
    #[arg(value_name = "TRACE", required_unless_present_any = ["control", "devices"])]
    pub(crate) traces: Vec<PathBuf>,
    /// Record the requests to the volumes of the server with this control socket, through any of
    /// its front ends; --device selects volumes and stripes.
    #[arg(long, value_name = "PATH", conflicts_with = "traces")]
    pub(crate) control: Option<PathBuf>,
    /// Record a server or a block device for this time, for example 10min. Without this option,
    /// Ctrl-C ends the recording.
    #[arg(long, value_name = "TIME", conflicts_with = "traces", value_parser = some_time)]
    pub(crate) duration: Option<Span>,
    /// File to write; its name should end in .weirtrace.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The part of a trace to use.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options of traces")]
pub(crate) struct PartArgs {
    /// Use only the requests of this device of the trace. May be repeated. Without a trace, weir
    /// record records this block device of Linux, for example /dev/sda, as root.
    #[arg(long = "device", value_name = "NAME")]
    pub(crate) devices: Vec<String>,
    /// Begin at this time since the start of the trace, for example 10min. That is its first request,
    /// or the start of a recording of Weir.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Span>,
    /// End before this time since the start of the trace, for example 1h.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) to: Option<Span>,
    /// Use a sample of the requests, for example 1/10. Rates shrink in proportion.
    #[arg(long, value_name = "1/N")]
    pub(crate) sample: Option<Sample>,
}

impl PartArgs {
    pub(crate) const fn window(&self) -> Window {
        Window { from: self.from, to: self.to }
    }

    /// Returns the first option that is given.
    fn given(&self) -> Option<&'static str> {
        let devices = (!self.devices.is_empty()).then_some("--device");
        devices.or_else(|| self.given_without_devices())
    }

    /// Returns the first option that is given, except for devices.
    pub(crate) fn given_without_devices(&self) -> Option<&'static str> {
        let given = [
            (self.from.is_some(), "--from"),
            (self.to.is_some(), "--to"),
            (self.sample.is_some(), "--sample"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

/// Options of a replay in either clock.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options of traces")]
pub(crate) struct ReplayArgs {
    /// Times of issue: recorded, a factor such as 2x or 0.5x, or closed: a request waits for those
    /// that had completed before it arrived [default: recorded].
    #[arg(long, value_name = "PACE")]
    pub(crate) pace: Option<Pace>,
    /// Keep this many requests of each trace in flight instead of following recorded latencies;
    /// needs --pace closed.
    #[arg(long, value_name = "N", requires = "pace", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DEPTH)))]
    pub(crate) depth: Option<u32>,
    /// Move requests that lie beyond the end of a volume into it, instead of refusing them.
    #[arg(long)]
    pub(crate) wrap: bool,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

impl ReplayArgs {
    /// Returns the first option that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [(self.pace.is_some(), "--pace"), (self.wrap, "--wrap")];
        let own = given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name);
        own.or_else(|| self.part.given())
    }
}

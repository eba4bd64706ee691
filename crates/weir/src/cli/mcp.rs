//! The arguments of `weir mcp`.

use super::number::count_in;
use super::{some_bytes, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_units::{Bytes, Span};

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Folder whose files the tools may read. May be repeated. Without it, the tools read no files.
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    /// Longest time of a call; it is killed afterwards.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = some_time)]
    pub(crate) timeout: Span,
    /// Largest answer of a call.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = some_bytes)]
    pub(crate) max_output: Bytes,
    /// Most memory of a call.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = some_bytes)]
    pub(crate) max_memory: Bytes,
    /// Largest file that a call reads.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = some_bytes)]
    pub(crate) max_file: Bytes,
    /// Number of calls at a time; others wait.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count_in::<usize>(1..=64))]
    pub(crate) calls: usize,
}

//! Result sets of SQL Server and of Azure SQL, as sqlcmd, Management Studio, Azure Data Studio and
//! collectors save them.
//!
//! An input may have several result sets of several kinds, which are recognized by their columns.
//!
//! | module | holds |
//! |---|---|
//! | `identity` | columns that identify the file of a row |
//! | `files` | files: `sys.dm_io_virtual_file_stats`, `sys.master_files` and similar |
//! | `interval` | `file_stats` of qpi: activity of files in an interval |
//! | `assessment` | aggregated counters of a SKU assessment |
//! | `counters` | `sys.dm_os_performance_counters` |
//! | `waits` | `sys.dm_os_wait_stats` and tables of waits by minutes |
//! | `resources` | `sys.dm_db_resource_stats`, `sys.server_resource_stats`, governed limits |
//! | `pivots` | the pivoted tables of telegraf's first `sqlserver` plugin |

pub(crate) mod assessment;
mod counters;
mod files;
mod identity;
mod interval;
mod pivots;
mod resources;
mod waits;

use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::results::{ResultSet, heads};
use crate::rows::{ReadRows, RowReader};
use crate::sheet::ReadSamples;

pub(crate) const KIND: Kind = Kind {
    name: "sqlserver",
    about: "result sets of SQL Server: files, waits, counters, resources",
    recognizes: By::Text(recognizes),
    open,
    signs: &[
        &[
            Sign::Word(&["num_of_reads", "num_of_bytes_read"]),
            Sign::Word(&["num_of_writes", "num_of_bytes_written"]),
            Sign::Word(&[
                "io_stall",
                "io_stall_read_ms",
                "read_io_latency_ms",
                "avg_read_stall_ms",
            ]),
            Sign::Word(&["database_name", "db_name", "database_id"]),
        ],
        &[
            Sign::Word(&["wait_type"]),
            Sign::Word(&["waiting_tasks_count", "WaitingTasks"]),
            Sign::Word(&["wait_time_ms", "wait_s", "WaitTimesPerMinute"]),
        ],
        &[Sign::Word(&["object_name"]), Sign::Word(&["counter_name"]), Sign::Word(&["cntr_value"])],
        &[
            Sign::Word(&["end_time"]),
            Sign::Word(&["avg_cpu_percent"]),
            Sign::Word(&["avg_data_io_percent", "io_requests"]),
        ],
        &[
            Sign::Word(&["physical_name", "PhysicalFullName"]),
            Sign::Word(&["type_desc", "FileType"]),
            Sign::Word(&["size_mb", "SizeMB", "size"]),
            Sign::Word(&["file_id", "LogicalName"]),
        ],
        &[Sign::Word(&["measurement"]), Sign::Word(&["servername"]), Sign::Word(&["type"])],
    ],
};

pub(crate) fn recognizes(text: &str) -> bool {
    heads(text).iter().any(|set| plan(set).is_some())
}

pub(crate) fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    RowReader::open(input, options, plan)
}

/// Returns the reader of a result set; the most specific first.
pub(crate) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    pivots::plan(set)
        .or_else(|| counters::plan(set))
        .or_else(|| waits::plan(set))
        .or_else(|| interval::plan(set))
        .or_else(|| resources::plan(set))
        .or_else(|| files::plan(set))
}

//! iostat, vmstat, sar and related tools.
//!
//! | module | holds |
//! |---|---|
//! | `iostat` | `iostat` as text, of old and new sysstat |
//! | `iostat_json` | `iostat -o JSON` |
//! | `sar` | `sar` as text |
//! | `sadf_d`, `sadf_p`, `sadf_j`, `sadf_x` | `sadf -d`, `-p`, `-j` and `-x` |
//! | `vmstat`, `vmstat_d` | `vmstat` and `vmstat -d` |
//! | `diskstats` | `/proc/diskstats` |
//! | `diskstats_json` | the same as JSON |
//! | `line` | lines with times, and banners |
//! | `quantity` | numbers with units |
//! | `activity` | the columns of sar and sadf |
//! | `by_table` | a reader of output that is grouped by table |
//! | `processors` | processor time, by the names of all these tools |
//! | `held` | values of incomplete samples |
//! | `record` | a JSON object with numbers and texts |
//! | `pages` | heads of vmstat: of a run, or of a page |
//! | `report` | a report of iostat |
//! | `runs`, `singles` | consecutive runs of iostat in one input |
//! | `statistics` | the JSON format of sysstat |
//! | `disks` | counters of disks, device by device |

mod activity;
mod by_table;
mod disks;
pub(crate) mod diskstats;
mod diskstats_json;
mod held;
mod iostat;
mod iostat_json;
pub(crate) mod line;
mod pages;
mod processors;
mod quantity;
mod record;
mod report;
mod runs;
mod sadf_d;
mod sadf_j;
mod sadf_p;
mod sadf_x;
mod sar;
mod singles;
mod statistics;
mod vmstat;
mod vmstat_d;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[
    diskstats_json::KIND,
    iostat_json::KIND,
    sadf_j::KIND,
    sadf_x::KIND,
    sadf_d::KIND,
    sadf_p::KIND,
    iostat::KIND,
    sar::KIND,
    vmstat::KIND,
    vmstat_d::KIND,
    diskstats::KIND,
];

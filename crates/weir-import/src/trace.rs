//! Block traces: single I/Os, summed into samples.
//!
//! ```text
//!  a trace --> one request after the other --> summing: counters, queue, places --> samples
//!                                          --> collecting: order, latencies     --> requests
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `request` | requests between a reader and its sink |
//! | `summing` | single requests to samples |
//! | `collecting` | single requests in order of arrival |
//! | `opened` | an open trace |
//! | `rows` | traces as tables with one request per row |
//! | `csv` | tables whose head names their columns |
//! | `msr` | traces of MSR Cambridge |
//! | `cloudphysics` | traces of CloudPhysics, as text |
//! | `spc` | traces of the Storage Performance Council |
//! | `disksim` | traces for `DiskSim`, in ASCII |
//! | `simulator` | common parts of traces for simulators |
//! | `mqsim` | traces for `MQSim`, in ASCII |
//! | `blkparse` | output of blkparse |
//! | `ftrace` | block events of the Linux kernel |
//! | `blktrace` | binary output of blktrace |
//! | `pairing` | events of the block layer, paired to requests |
//! | `iolog` | I/O logs of fio, versions 2 and 3 |
//! | `vscsi` | traces of CloudPhysics, in their original format |
//! | `oracle_general` | traces for caches: times, objects and sizes |
//! | `weirtrace` | traces of Weir itself |
//! | `scsi` | SCSI commands |
//! | `record` | records of fixed length |

mod blkparse;
pub(crate) mod blktrace;
mod cloudphysics;
mod collecting;
mod csv;
mod disksim;
mod ftrace;
mod iolog;
mod mqsim;
mod msr;
mod opened;
mod oracle_general;
mod pairing;
mod record;
mod request;
mod rows;
mod scsi;
mod simulator;
mod spc;
mod summing;
mod vscsi;
mod weirtrace;

pub(crate) use collecting::Collector;
pub(crate) use opened::Trace;
pub(crate) use request::Origin;

use crate::error::ImportError;
use crate::kind::{Bytes, Kind};
use crate::options::Options;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[
    weirtrace::KIND,
    iolog::KIND,
    blkparse::KIND,
    ftrace::KIND,
    msr::KIND,
    cloudphysics::KIND,
    spc::KIND,
    disksim::KIND,
    mqsim::KIND,
    csv::KIND,
    blktrace::KIND,
    vscsi::KIND,
    oracle_general::KIND,
];

/// The kinds whose unit of times can be set. The times of the others have a unit.
pub(crate) const WITH_TIME_UNIT: [Kind; 6] =
    [msr::KIND, cloudphysics::KIND, spc::KIND, disksim::KIND, mqsim::KIND, csv::KIND];

/// A function that opens a trace.
pub(crate) type OpenTrace = fn(Bytes, &Options) -> Result<Trace, ImportError>;

/// The kinds with the functions that open them.
const OPENERS: [(Kind, OpenTrace); KINDS.len()] = [
    (weirtrace::KIND, weirtrace::open_trace),
    (iolog::KIND, iolog::open_trace),
    (blkparse::KIND, blkparse::open_trace),
    (ftrace::KIND, ftrace::open_trace),
    (msr::KIND, msr::open_trace),
    (cloudphysics::KIND, cloudphysics::open_trace),
    (spc::KIND, spc::open_trace),
    (disksim::KIND, disksim::open_trace),
    (mqsim::KIND, mqsim::open_trace),
    (csv::KIND, csv::open_trace),
    (blktrace::KIND, blktrace::open_trace),
    (vscsi::KIND, vscsi::open_trace),
    (oracle_general::KIND, oracle_general::open_trace),
];

/// Returns the function that opens a trace of a kind; `None` for other kinds of input.
pub(crate) fn opener(kind: Kind) -> Option<OpenTrace> {
    OPENERS.into_iter().find(|(own, _)| *own == kind).map(|(_, open)| open)
}

/// Returns the kinds of traces.
pub(crate) fn trace_kinds() -> impl Iterator<Item = Kind> {
    KINDS.iter().copied()
}

//! Block traces: single I/Os, summed into samples.
//!
//! ```text
//!  a trace --> one request after the other --> summing: counters, queue, places --> samples
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `summing` | single requests to samples |
//! | `rows` | traces as tables with one request per row |
//! | `csv` | tables whose head names their columns |
//! | `msr` | traces of MSR Cambridge |
//! | `cloudphysics` | traces of CloudPhysics, as text |
//! | `spc` | traces of the Storage Performance Council |
//! | `disksim` | traces for `DiskSim`, in ASCII |
//! | `simulator` | common parts of traces for simulators |
//! | `mqsim` | traces for `MQSim`, in ASCII |
//! | `blkparse` | output of blkparse |
//! | `blktrace` | binary output of blktrace |
//! | `pairing` | events of the block layer, paired to requests |
//! | `iolog` | I/O logs of fio, versions 2 and 3 |
//! | `vscsi` | traces of CloudPhysics, in their original format |
//! | `oracle_general` | traces for caches: times, objects and sizes |
//! | `scsi` | SCSI commands |
//! | `record` | records of fixed length |

mod blkparse;
pub(crate) mod blktrace;
mod cloudphysics;
mod csv;
mod disksim;
mod iolog;
mod mqsim;
mod msr;
mod oracle_general;
mod pairing;
mod record;
mod rows;
mod scsi;
mod simulator;
mod spc;
mod summing;
mod vscsi;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[
    iolog::KIND,
    blkparse::KIND,
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

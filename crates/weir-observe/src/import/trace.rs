//! Block traces: every single I/O, summed into samples.
//!
//! ```text
//!  a trace --> one request after the other --> summing: counters, queue, places --> samples
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`summing`] | from single requests to samples |
//! | [`rows`] | traces that are tables: a request a row |
//! | [`csv`] | tables whose head names their columns |
//! | [`msr`] | the traces of MSR Cambridge |
//! | [`cloudphysics`] | those of CloudPhysics, as text |
//! | [`spc`] | those of the Storage Performance Council |
//! | [`disksim`] | those for `DiskSim`, in ASCII |
//! | [`mqsim`] | those for `MQSim`, in ASCII |
//! | [`blkparse`] | what blkparse prints |
//! | [`iolog`] | what fio did, in its versions 2 and 3 |
//! | [`vscsi`] | those of CloudPhysics, as they were taken |
//! | [`oracle_general`] | the format of caches: times, objects and sizes |
//! | [`scsi`] | commands of SCSI |
//! | [`record`] | records of fixed length |

pub mod blkparse;
pub mod cloudphysics;
pub mod csv;
pub mod disksim;
pub mod iolog;
pub mod mqsim;
pub mod msr;
pub mod oracle_general;
pub mod record;
pub mod rows;
pub mod scsi;
pub mod spc;
pub mod summing;
pub mod vscsi;

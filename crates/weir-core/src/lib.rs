//! The limits of cloud storage as one state machine.
//!
//! An [`Engine`] is one compiled host: its volumes, its stripes, its caps and its
//! cache. It has no clock, no threads and no files. A driver hands it requests
//! with the time they came (`now` in) and asks when it next wants to be called
//! (a deadline out); the server does so with the wall clock and the simulator
//! with a virtual one, and both get the same admissions from the same trace.
//!
//! ```text
//!   request --> stripe split --> cache --> disk gate --> host gates --> medium --> completion
//!                                  |                        ^
//!                                  +------ read hit --------+
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | the input of an engine |
//! | [`engine`] | the state machine and its calling order |
//! | [`waits`] | the caps by name, and the time charged to each |
//! | [`meter`] | one rate, exact |
//! | `gate` | meters in sequence and the queue before them |
//! | `cache` | the blocks in the host cache |
//! | `writeback` | dirty blocks of a ReadWrite cache |
//! | `blocks` | sets of blocks |
//! | [`medium`] | latency of the storage itself |
//! | [`stripe`] | the layout of a stripe |
//! | [`trace`] | a fingerprint of a run |
//! | `timers` | pending alarms |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod blocks;
mod cache;
pub mod engine;
mod gate;
pub mod medium;
pub mod meter;
pub mod spec;
pub mod stripe;
mod timers;
pub mod trace;
pub mod waits;
mod writeback;

pub use cache::BLOCK as CACHE_BLOCK;
pub use engine::{Completion, DeviceId, Engine, Event, Op, Refused, Request, Totals, VolumeId};
pub use medium::{Latency, LatencyError};
pub use spec::{
    CacheMode, CacheSpec, DeviceSpec, DiskLimits, GateLimits, HostSpec, Limit, Medium, Place,
    Reserve, SpecError, VolumeSpec,
};
pub use trace::TraceHash;
pub use waits::{Cap, CapUnit, ServiceTime, Waits};

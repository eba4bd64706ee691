//! The rules, one per file.
//!
//! A rule looks at a [`Case`](crate::Case) and makes findings of it. Its number and name never
//! change, since people filter by them. `docs/DIAGNOSIS.md` explains each under its name.

mod add_files;
#[cfg(test)]
mod advice;
mod at_disk;
mod at_host;
mod at_log_rate;
mod at_stripe;
mod backup;
mod backup_cached;
mod backup_limit;
mod backup_local_ssd;
mod backup_options;
mod backup_stripes;
mod backup_targets;
mod bought;
mod bursts_or_slow;
mod cache_pressure;
mod ceiling;
mod client;
mod coarse_samples;
mod consumed;
mod cpu;
mod credits;
mod credits_out;
mod credits_soon;
mod data_uncached;
mod depth_high;
mod depth_low;
mod earlier;
mod files;
mod full_queue;
mod hits_unknown;
mod instance_storage;
mod large_io;
mod list;
mod locks;
mod log_cached;
mod log_first;
mod many_small_files;
mod memory_grants;
mod near_limit;
mod no_latency;
mod no_limits;
mod no_operations;
mod not_storage;
mod one_sample;
mod page_latch;
mod parallelism;
mod queued;
mod rule;
mod short_episode;
mod signs;
mod slow_medium;
mod small_file;
mod stores;
mod stripe_columns;
mod stripe_unit;
mod tempdb_contention;
mod tempdb_files;
mod throttled;
mod throttling;
mod tier_edge;
mod too_short;
mod unequal_files;
mod vm_below_disks;
mod wait_times;
mod waits;
mod writes_cached;

pub(crate) use files::InstanceStorage;
pub(crate) use instance_storage::storage_for;
pub use list::{RULES, run};
pub(crate) use rule::BLIND;
pub use rule::{Candidate, Rule, source};

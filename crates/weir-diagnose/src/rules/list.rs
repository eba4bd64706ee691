//! The list of rules, and how they are run.

use super::rule::{Candidate, Rule};
use super::{
    add_files, at_disk, at_host, at_log_rate, at_stripe, backup_cached, backup_limit,
    backup_local_ssd, backup_options, backup_stripes, backup_targets, bursts_or_slow,
    cache_pressure, ceiling, client, coarse_samples, consumed, cpu, credits_out, credits_soon,
    data_uncached, depth_high, depth_low, full_queue, hits_unknown, instance_storage, large_io,
    locks, log_cached, log_first, many_small_files, memory_grants, near_limit, no_latency,
    no_limits, no_operations, one_sample, page_latch, parallelism, queued, short_episode,
    slow_medium, small_file, stripe_columns, stripe_unit, tempdb_contention, tier_edge, too_short,
    unequal_files, vm_below_disks, writes_cached,
};
use crate::case::Case;

/// All rules.
pub const RULES: &[Rule] = &[
    at_disk::IN_OPERATIONS,
    at_disk::IN_BYTES,
    at_stripe::RULE,
    at_host::UNCACHED,
    at_host::CACHED,
    at_log_rate::RULE,
    small_file::RULE,
    unequal_files::RULE,
    many_small_files::RULE,
    log_first::RULE,
    tier_edge::RULE,
    log_cached::RULE,
    data_uncached::RULE,
    writes_cached::RULE,
    vm_below_disks::RULE,
    stripe_columns::RULE,
    stripe_unit::RULE,
    depth_low::RULE,
    depth_high::RULE,
    large_io::RULE,
    instance_storage::RULE,
    add_files::RULE,
    credits_out::RULE,
    consumed::RULE,
    queued::RULE,
    ceiling::RULE,
    near_limit::RULE,
    full_queue::RULE,
    credits_soon::RULE,
    backup_cached::RULE,
    backup_targets::RULE,
    backup_stripes::RULE,
    backup_local_ssd::RULE,
    cpu::RULE,
    locks::RULE,
    client::RULE,
    memory_grants::RULE,
    tempdb_contention::RULE,
    page_latch::RULE,
    parallelism::RULE,
    slow_medium::RULE,
    cache_pressure::RULE,
    no_limits::RULE,
    no_latency::RULE,
    coarse_samples::RULE,
    too_short::RULE,
    hits_unknown::RULE,
    one_sample::RULE,
    bursts_or_slow::RULE,
    no_operations::RULE,
    short_episode::RULE,
    backup_limit::RULE,
    backup_options::BUFFERS,
    backup_options::TRANSFERS,
    backup_options::STRIPES,
];

/// Runs all rules. Findings are sorted by priority, then by wait time.
#[must_use]
pub fn run(case: &Case<'_>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = RULES.iter().flat_map(|rule| (rule.find)(case, rule)).collect();
    backup_limit::without_repeats(case, &mut found);
    found.sort_by(|one, other| {
        let (one_is, other_is) = (&one.finding, &other.finding);
        let priority = one_is.priority.cmp(&other_is.priority);
        let waited = other.wait_ns.total_cmp(&one.wait_ns);
        let name = (one_is.check_id, &one_is.subject).cmp(&(other_is.check_id, &other_is.subject));
        priority.then(waited).then(name)
    });
    found
}

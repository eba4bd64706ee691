//! The table of all options of fio, with their support.

use super::draft::Draft;
use super::set;
use super::value::Value;
use crate::error::ValueError;

/// The treatment of an option.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// It is read into the job.
    Set(fn(&mut Draft, Value) -> Result<(), ValueError>),
    /// It does not change the I/O, for this reason.
    Ignored(&'static str),
    /// It changes the I/O in this way, which is not modelled.
    Refused(&'static str),
    /// Only these values do not change the I/O.
    Only(&'static [&'static str], &'static str),
}

use Meaning::{Ignored, Only, Refused, Set};

/// Returns the documented name and meaning of `name`, which may be an alias.
pub(super) fn find(name: &str) -> Option<(&'static str, Meaning)> {
    let (names, meaning) = OPTIONS.iter().find(|(names, _)| names.contains(&name))?;
    Some((names[0], *meaning))
}

/// Returns all names and aliases.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().flat_map(|(names, _)| names.iter().copied())
}

const OFF: &[&str] = &["0"];

const PROCESS: &str = "how fio runs its processes; Weir has none";
const MEMORY: &str = "where fio keeps its buffers";
const CONTENT: &str = "what is written, not where or when";
const LOGS: &str = "fio's own logs; Weir has its report";
const STATS: &str = "fio's own statistics; Weir has its report";
const FILES: &str = "how fio makes its files; Weir's volumes are there";
const CACHE: &str = "the page cache of the machine that runs fio";
const ENGINE: &str = "a detail of the I/O engine below the number of I/Os in flight";
const RANDOM: &str = "Weir has one generator, seeded";
const NO_VERIFY: &str = "only with verify, which is not supported";
const NO_TARGET: &str = "only with latency_target, which is not supported";
const NO_LOG: &str = "only with read_iolog, which is not supported";
const ON_ERROR: &str = "what fio does after an error";

const READ_BACK: &str = "it reads back what was written";
const BATCHES: &str = "it submits or reaps I/O in batches";
const ADAPTS: &str = "it adapts the load to measured latency";
const MIN_RATE: &str = "it ends the job when it is too slow";
const ZONES: &str = "it works zone by zone";
const MANY_FILES: &str = "it spreads the job over files in its own way";
const REPLAY: &str = "it replays a trace instead of the job";
const EXITS: &str = "it ends other jobs early";
const OTHER_JOB: &str = "it waits for another job by name; use stonewall";

#[rustfmt::skip]
const OPTIONS: &[(&[&str], Meaning)] = &[
    // Operations, sizes and offsets.
    (&["rw", "readwrite"], Set(set::rw)),
    (&["rwmixread"], Set(set::rwmixread)),
    (&["rwmixwrite"], Set(set::rwmixwrite)),
    (&["bs", "blocksize"], Set(set::bs)),
    (&["ba", "blockalign"], Set(set::ba)),
    (&["bsrange", "blocksize_range"], Set(set::bsrange)),
    (&["bssplit"], Set(set::bssplit)),
    (&["percentage_random"], Set(set::percentage_random)),
    (&["random_distribution"], Set(set::random_distribution)),
    (&["norandommap"], Set(set::norandommap)),
    (&["randseed"], Set(set::randseed)),
    (&["randrepeat"], Set(set::randrepeat)),
    (&["sync"], Set(set::sync)),
    (&["fsync"], Set(set::fsync)),
    (&["fdatasync"], Set(set::fdatasync)),
    (&["end_fsync"], Set(set::end_fsync)),
    (&["fsync_on_close"], Set(set::fsync_on_close)),
    (&["rw_sequencer"], Only(&["sequential"], "it repeats offsets")),
    (&["bs_unaligned", "blocksize_unaligned"], Only(OFF, "it makes sizes that are no multiple of the smallest")),
    (&["bs_is_seq_rand"], Only(OFF, "it gives sequential and random I/O different sizes")),
    (&["random_generator"], Set(set::random_generator)),
    (&["allrandrepeat"], Ignored(RANDOM)),
    (&["softrandommap"], Set(set::softrandommap)),
    (&["write_barrier"], Only(OFF, "it makes some writes barriers")),
    (&["sync_file_range"], Refused("it flushes ranges while it writes")),
    (&["atomic"], Only(OFF, "it asks for atomic writes")),
    (&["percentage_sequential"], Refused("fio has dropped it; use percentage_random")),
    (&["rwmixcycle"], Refused("fio has dropped it; use rwmixread")),

    // Files and devices.
    (&["filename"], Set(set::filename)),
    (&["directory"], Set(set::directory)),
    (&["size"], Set(set::size)),
    (&["io_size", "io_limit"], Set(set::io_size)),
    (&["offset", "fileoffset"], Set(set::offset)),
    (&["offset_increment"], Set(set::offset_increment)),
    (&["offset_align"], Only(OFF, "it moves the start of the range")),
    (&["filename_format"], Refused("it names files, and so who shares them, in its own way")),
    (&["opendir"], Refused(MANY_FILES)),
    (&["nrfiles", "nr_files"], Only(&["1"], MANY_FILES)),
    (&["openfiles"], Only(&["0", "1"], MANY_FILES)),
    (&["filesize"], Refused("it sizes files apart from the job; use size")),
    (&["file_service_type"], Only(&["roundrobin", "roundrobin:1"], MANY_FILES)),
    (&["file_append"], Only(OFF, "it writes behind the end of the file")),
    (&["fill_device", "fill_fs"], Only(OFF, "it writes until the device is full")),
    (&["unique_filename"], Ignored(FILES)),
    (&["lockfile"], Only(&["none"], "it makes processes wait for each other")),
    (&["zonemode"], Only(&["none"], ZONES)),
    (&["zonesize"], Only(OFF, ZONES)),
    (&["zonecapacity"], Only(OFF, ZONES)),
    (&["zonerange"], Only(OFF, ZONES)),
    (&["zoneskip"], Only(OFF, ZONES)),
    (&["read_beyond_wp"], Only(OFF, ZONES)),
    (&["max_open_zones"], Only(OFF, ZONES)),
    (&["job_max_open_zones"], Only(OFF, ZONES)),
    (&["ignore_zone_limits"], Only(OFF, ZONES)),
    (&["zone_reset_threshold"], Refused(ZONES)),
    (&["zone_reset_frequency"], Refused(ZONES)),

    // Time and queue depth.
    (&["iodepth"], Set(set::iodepth)),
    (&["ioengine"], Set(set::ioengine)),
    (&["direct"], Set(set::direct)),
    (&["buffered"], Set(set::buffered)),
    (&["numjobs"], Set(set::numjobs)),
    (&["runtime", "timeout"], Set(set::runtime)),
    (&["time_based"], Set(set::time_based)),
    (&["ramp_time"], Set(set::ramp_time)),
    (&["startdelay"], Set(set::startdelay)),
    (&["loops"], Set(set::loops)),
    (&["number_ios"], Set(set::number_ios)),
    (&["rate"], Set(set::rate)),
    (&["rate_iops"], Set(set::rate_iops)),
    (&["io_submit_mode"], Set(set::io_submit_mode)),
    (&["thinktime"], Set(set::thinktime)),
    (&["thinktime_blocks"], Set(set::thinktime_blocks)),
    (&["thinktime_blocks_type"], Set(set::thinktime_blocks_type)),
    (&["thinktime_spin"], Ignored("thinking takes the same time whether it spins or sleeps")),
    (&["thinktime_iotime"], Only(OFF, "it thinks after a time of I/O")),
    (&["stonewall", "wait_for_previous"], Set(set::stonewall)),
    (&["iodepth_batch", "iodepth_batch_submit"], Only(&["1"], BATCHES)),
    (&["iodepth_batch_complete_min", "iodepth_batch_complete"], Only(&["1"], BATCHES)),
    (&["iodepth_batch_complete_max"], Only(&["0", "1"], BATCHES)),
    (&["iodepth_low"], Only(OFF, "it lets the queue run low before refilling it")),
    (&["serialize_overlap"], Only(OFF, "it makes overlapping I/O wait")),
    (&["rate_min", "ratemin"], Only(OFF, MIN_RATE)),
    (&["rate_iops_min"], Only(OFF, MIN_RATE)),
    (&["rate_cycle", "ratecycle"], Ignored("only with rate_min, which is not supported")),
    (&["rate_process"], Set(set::rate_process)),
    (&["rate_ignore_thinktime"], Only(OFF, "it does not catch up after thinking")),
    (&["max_latency"], Only(OFF, "it ends the job after a slow I/O")),
    (&["latency_target"], Only(OFF, ADAPTS)),
    (&["latency_window"], Ignored(NO_TARGET)),
    (&["latency_percentile"], Ignored(NO_TARGET)),
    (&["latency_run"], Ignored(NO_TARGET)),
    (&["steadystate", "ss"], Refused("it ends the job when its speed is steady")),
    (&["steadystate_duration", "ss_dur"], Refused("it ends the job when its speed is steady")),
    (&["steadystate_ramp_time", "ss_ramp"], Refused("it ends the job when its speed is steady")),
    (&["flow"], Only(OFF, "it balances jobs against each other")),
    (&["flow_id"], Ignored("only with flow, which is not supported")),
    (&["flow_watermark"], Ignored("only with flow, which is not supported")),
    (&["flow_sleep"], Ignored("only with flow, which is not supported")),
    (&["wait_for"], Refused(OTHER_JOB)),
    (&["exitall"], Only(OFF, EXITS)),
    (&["exit_what"], Ignored("only with exitall, which is not supported")),
    (&["exitall_on_error"], Ignored(ON_ERROR)),

    // I/O beside that of the job.
    (&["verify"], Only(OFF, READ_BACK)),
    (&["verify_only"], Only(OFF, READ_BACK)),
    (&["do_verify"], Ignored(NO_VERIFY)),
    (&["verifysort"], Ignored(NO_VERIFY)),
    (&["verifysort_nr"], Ignored(NO_VERIFY)),
    (&["verify_interval"], Ignored(NO_VERIFY)),
    (&["verify_offset"], Ignored(NO_VERIFY)),
    (&["verify_pattern"], Ignored(NO_VERIFY)),
    (&["verify_fatal"], Ignored(NO_VERIFY)),
    (&["verify_dump"], Ignored(NO_VERIFY)),
    (&["verify_async"], Ignored(NO_VERIFY)),
    (&["verify_async_cpus"], Ignored(NO_VERIFY)),
    (&["verify_backlog"], Ignored(NO_VERIFY)),
    (&["verify_backlog_batch"], Ignored(NO_VERIFY)),
    (&["experimental_verify"], Ignored(NO_VERIFY)),
    (&["verify_state_load"], Ignored(NO_VERIFY)),
    (&["verify_state_save"], Ignored(NO_VERIFY)),
    (&["trim_percentage"], Only(OFF, "it trims blocks that were verified")),
    (&["trim_verify_zero"], Ignored(NO_VERIFY)),
    (&["trim_backlog"], Ignored(NO_VERIFY)),
    (&["trim_backlog_batch"], Ignored(NO_VERIFY)),
    (&["pre_read"], Only(OFF, "it reads the files before the job")),
    (&["create_only"], Only(OFF, "it does no I/O of the job")),
    (&["read_iolog"], Refused(REPLAY)),
    (&["merge_blktrace_file"], Refused(REPLAY)),
    (&["merge_blktrace_scalars"], Refused(REPLAY)),
    (&["merge_blktrace_iters"], Refused(REPLAY)),
    (&["write_iolog"], Ignored(LOGS)),
    (&["read_iolog_chunked"], Ignored(NO_LOG)),
    (&["replay_no_stall"], Ignored(NO_LOG)),
    (&["replay_redirect"], Ignored(NO_LOG)),
    (&["replay_scale"], Ignored(NO_LOG)),
    (&["replay_align"], Ignored(NO_LOG)),
    (&["replay_time_scale"], Ignored(NO_LOG)),
    (&["replay_skip"], Ignored(NO_LOG)),
    (&["exec_prerun"], Refused("it runs a program before the job")),
    (&["exec_postrun"], Refused("it runs a program after the job")),
    (&["profile"], Refused("it replaces the job by a built-in one")),

    // Naming and reporting.
    (&["name"], Set(set::name)),
    (&["kb_base"], Set(set::kb_base)),
    (&["group_reporting"], Set(set::group_reporting)),
    (&["new_group"], Set(set::new_group)),
    (&["description"], Ignored("text for the reader")),
    (&["unit_base"], Ignored(STATS)),
    (&["unified_rw_reporting"], Ignored(STATS)),
    (&["stats"], Ignored(STATS)),
    (&["clat_percentiles"], Ignored(STATS)),
    (&["lat_percentiles"], Ignored(STATS)),
    (&["slat_percentiles"], Ignored(STATS)),
    (&["percentile_list"], Ignored(STATS)),
    (&["significant_figures"], Ignored(STATS)),
    (&["disk_util"], Ignored(STATS)),
    (&["gtod_reduce"], Ignored(STATS)),
    (&["disable_lat"], Ignored(STATS)),
    (&["disable_clat"], Ignored(STATS)),
    (&["disable_slat"], Ignored(STATS)),
    (&["disable_bw_measurement", "disable_bw"], Ignored(STATS)),
    (&["gtod_cpu"], Ignored(STATS)),
    (&["clocksource"], Ignored(STATS)),
    (&["block_error_percentiles"], Ignored(STATS)),
    (&["bwavgtime"], Ignored(STATS)),
    (&["iopsavgtime"], Ignored(STATS)),
    (&["per_job_logs"], Ignored(LOGS)),
    (&["write_bw_log"], Ignored(LOGS)),
    (&["write_lat_log"], Ignored(LOGS)),
    (&["write_iops_log"], Ignored(LOGS)),
    (&["write_hist_log"], Ignored(LOGS)),
    (&["log_entries"], Ignored(LOGS)),
    (&["log_avg_msec"], Ignored(LOGS)),
    (&["log_hist_msec"], Ignored(LOGS)),
    (&["log_hist_coarseness"], Ignored(LOGS)),
    (&["log_max_value"], Ignored(LOGS)),
    (&["log_offset"], Ignored(LOGS)),
    (&["log_prio"], Ignored(LOGS)),
    (&["log_compression"], Ignored(LOGS)),
    (&["log_compression_cpus"], Ignored(LOGS)),
    (&["log_store_compressed"], Ignored(LOGS)),
    (&["log_unix_epoch"], Ignored(LOGS)),
    (&["log_alternate_epoch"], Ignored(LOGS)),
    (&["log_alternate_epoch_clock_id"], Ignored(LOGS)),
    (&["continue_on_error"], Ignored(ON_ERROR)),
    (&["ignore_error"], Ignored(ON_ERROR)),
    (&["error_dump"], Ignored(ON_ERROR)),

    // The machine on which fio runs.
    (&["thread"], Ignored(PROCESS)),
    (&["nice"], Ignored(PROCESS)),
    (&["prio"], Ignored(PROCESS)),
    (&["prioclass"], Ignored(PROCESS)),
    (&["cpumask"], Ignored(PROCESS)),
    (&["cpus_allowed"], Ignored(PROCESS)),
    (&["cpus_allowed_policy"], Ignored(PROCESS)),
    (&["numa_cpu_nodes"], Ignored(PROCESS)),
    (&["numa_mem_policy"], Ignored(PROCESS)),
    (&["cgroup"], Ignored(PROCESS)),
    (&["cgroup_nodelete"], Ignored(PROCESS)),
    (&["cgroup_weight"], Ignored(PROCESS)),
    (&["uid"], Ignored(PROCESS)),
    (&["gid"], Ignored(PROCESS)),
    (&["mem", "iomem"], Ignored(MEMORY)),
    (&["iomem_align", "mem_align"], Ignored(MEMORY)),
    (&["lockmem"], Ignored(MEMORY)),
    (&["hugepage-size"], Ignored(MEMORY)),
    (&["gpu_dev_id"], Ignored(MEMORY)),
    (&["invalidate"], Ignored(CACHE)),
    (&["fadvise_hint"], Ignored(CACHE)),
    (&["write_hint"], Ignored(CACHE)),
    (&["ioscheduler"], Ignored("the kernel's scheduler; Weir stands behind it")),
    (&["zero_buffers"], Ignored(CONTENT)),
    (&["refill_buffers"], Ignored(CONTENT)),
    (&["scramble_buffers"], Ignored(CONTENT)),
    (&["buffer_pattern"], Ignored(CONTENT)),
    (&["buffer_compress_percentage"], Ignored(CONTENT)),
    (&["buffer_compress_chunk"], Ignored(CONTENT)),
    (&["dedupe_percentage"], Ignored(CONTENT)),
    (&["dedupe_mode"], Ignored(CONTENT)),
    (&["dedupe_working_set_percentage"], Ignored(CONTENT)),
    (&["dedupe_global"], Ignored(CONTENT)),
    (&["fallocate"], Ignored(FILES)),
    (&["overwrite"], Ignored(FILES)),
    (&["create_serialize"], Ignored(FILES)),
    (&["create_fsync"], Ignored(FILES)),
    (&["create_on_open"], Ignored(FILES)),
    (&["allow_file_create"], Ignored(FILES)),
    (&["allow_mounted_write"], Ignored(FILES)),
    (&["unlink"], Ignored(FILES)),
    (&["unlink_each_loop"], Ignored(FILES)),

    // Options of single engines.
    (&["userspace_reap"], Ignored(ENGINE)),
    (&["hipri"], Ignored(ENGINE)),
    (&["hipri_percentage"], Ignored(ENGINE)),
    (&["fixedbufs"], Ignored(ENGINE)),
    (&["registerfiles"], Ignored(ENGINE)),
    (&["sqthread_poll"], Ignored(ENGINE)),
    (&["sqthread_poll_cpu"], Ignored(ENGINE)),
    (&["nonvectored"], Ignored(ENGINE)),
    (&["force_async"], Ignored(ENGINE)),
    (&["nowait"], Ignored(ENGINE)),
    (&["uncached"], Ignored(ENGINE)),
    (&["cmdprio_percentage"], Ignored(ENGINE)),
    (&["cmdprio_class"], Ignored(ENGINE)),
    (&["cmdprio"], Ignored(ENGINE)),
    (&["cmdprio_bssplit"], Ignored(ENGINE)),
    (&["uri"], Ignored("the layout says where the volume is")),
    (&["clustername"], Ignored("the layout says where the volume is")),
    (&["rbdname"], Ignored("the layout says where the volume is")),
    (&["pool"], Ignored("the layout says where the volume is")),
    (&["clientname"], Ignored("the layout says where the volume is")),
    (&["busy_poll"], Ignored(ENGINE)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_twice() {
        let unique: BTreeSet<_> = names().collect();
        assert_eq!(unique.len(), names().count());
    }
}

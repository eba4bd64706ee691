//! The job file for fio: one section for each process, in the order of the processes.
//!
//! Every field of a [`JobSpec`] is written or rejected. `complete` names all fields, so that a new
//! one is not forgotten.

use crate::error::RunnerError;
use std::fmt::Write;
use weir_proto::Uri;
use weir_units::{Bytes, Span};
use weir_workload::job::{
    Blocks, Distribution, Extent, Generator, Mix, Order, PerOp, Rate, RateProcess, Submit,
    ThinkCount, Zone,
};
use weir_workload::{JobSpec, Placed, Region};

/// The largest block of fio's nbd engine.
const MAX_BLOCK: u32 = 64 << 20;

/// Returns the name of a process's section.
pub(super) fn section(process: usize) -> String {
    format!("process{process}")
}

/// Writes the job file for `placed`.
pub(super) fn write(placed: &[Placed], uris: &[Uri], seed: u64) -> Result<String, RunnerError> {
    let mut order: Vec<usize> = (0..placed.len()).collect();
    order.sort_by_key(|process| placed[*process].spec.wave);
    let mut text = String::new();
    let mut wave = None;
    for process in order {
        let Placed { spec, .. } = &placed[process];
        let mut options = options(&placed[process], uris, seed)
            .map_err(|what| RunnerError::NotWithFio { job: spec.name.clone(), what })?;
        if wave.replace(spec.wave).is_some_and(|last| last != spec.wave) {
            options.set("stonewall", 1);
        }
        text += &format!("[{}]\n{}", section(process), options.0);
    }
    Ok(text)
}

/// Lines of a section.
struct Lines(String);

impl Lines {
    fn set(&mut self, option: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{option}={value}");
    }

    fn set_if(&mut self, condition: bool, option: &str, value: impl std::fmt::Display) {
        if condition {
            self.set(option, value);
        }
    }
}

type Refused = &'static str;

/// Does not compile if a job has a field that is not listed here.
fn complete(spec: &JobSpec) {
    let JobSpec {
        // `what`
        mix: _,
        order: _,
        read_percent: _,
        blocks: _,
        align: _,
        percent_random: _,
        distribution: _,
        random_map: _,
        soft_random_map: _,
        generator: _,
        // `range`
        size: _,
        io_size: _,
        offset: _,
        offset_increment: _,
        loops: _,
        number_ios: _,
        // `when`
        depth: _,
        engine: _,
        runtime: _,
        time_based: _,
        ramp_time: _,
        start_delay: _,
        rate: _,
        rate_process: _,
        submit: _,
        think: _,
        // `flushes`
        data_sync: _,
        fsync: _,
        fdatasync: _,
        end_fsync: _,
        // `options`: every clone has a section, on the region of its target.
        seed: _,
        clones: _,
        target: _,
        // `write`
        wave: _,
        // Groups are formed from fio's report, not by fio.
        name: _,
        group_reporting: _,
        group: _,
        // Does not affect the requests.
        at: _,
        direct: _,
        rand_repeat: _,
    } = spec;
}

fn options(placed: &Placed, uris: &[Uri], seed: u64) -> Result<Lines, Refused> {
    let Placed { spec, clone, regions } = placed;
    complete(spec);
    let [region] = regions.as_slice() else {
        return Err("filename names several files, and fio's nbd engine has one");
    };
    let uri = uris.get(region.device as usize);
    let uri = uri.unwrap_or_else(|| panic!("device {} has no URI", region.device));
    let mut lines = Lines(String::new());
    lines.set("ioengine", "nbd");
    lines.set("uri", uri);
    what(spec, &mut lines)?;
    range(spec, *clone, *region, &mut lines);
    when(spec, &mut lines)?;
    flushes(spec, &mut lines)?;
    lines.set("randseed", fold(seed, spec.seed));
    Ok(lines)
}

/// fio multiplies its seed by the number of the process, so it must not be zero.
fn fold(seed: u64, own: Option<u64>) -> u64 {
    let mixed = seed.rotate_left(17) ^ own.unwrap_or(0);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) | 1
}

/// Operations, sizes and offsets.
fn what(spec: &JobSpec, lines: &mut Lines) -> Result<(), Refused> {
    lines.set("rw", pattern(spec)?);
    lines.set_if(spec.mix == Mix::ReadWrite, "rwmixread", spec.read_percent);
    let (option, sizes) = block_sizes(spec)?;
    lines.set(option, sizes);
    if spec.align != PerOp::all(None) {
        let align = |op: usize| {
            let own = spec.align.as_array()[op].map(Bytes::get);
            own.unwrap_or_else(|| spec.blocks.as_array()[op].min().into())
        };
        lines.set("blockalign", format!("{},{},{}", align(0), align(1), align(2)));
    }
    let PerOp { read, write, trim } = spec.percent_random;
    let all = [read, write, trim].iter().all(|percent| *percent == 100);
    lines.set_if(!all, "percentage_random", format!("{read},{write},{trim}"));
    if let Some(distribution) = distribution(spec)? {
        lines.set("random_distribution", distribution);
    }
    lines.set_if(!spec.random_map, "norandommap", 1);
    lines.set_if(spec.soft_random_map, "softrandommap", 1);
    lines.set_if(spec.generator == Generator::Lfsr, "random_generator", "lfsr");
    Ok(())
}

fn pattern(spec: &JobSpec) -> Result<String, Refused> {
    let mix = match spec.mix {
        Mix::Read => "read",
        Mix::Write => "write",
        Mix::Trim => "trim",
        Mix::ReadWrite => "rw",
        Mix::TrimWrite => "trimwrite",
    };
    match spec.order {
        Order::Sequential { gap: 0 } => Ok(mix.to_owned()),
        // It wraps at the end of the file, and here the export is the file.
        Order::Sequential { .. } => Err("rw with holes ends elsewhere on fio's nbd engine"),
        Order::Random { every: 1 } => Ok(format!("rand{mix}")),
        Order::Random { every } => Ok(format!("rand{mix}:{every}")),
    }
}

/// Returns the values of the directions that occur, and the first of them for the other directions.
fn used<'a, T>(spec: &JobSpec, values: &'a PerOp<T>) -> [&'a T; 3] {
    let (values, used) = (values.as_array(), spec.mix.uses());
    let first = used.iter().position(|used| *used).unwrap_or(0);
    std::array::from_fn(|op| values[if used[op] { op } else { first }])
}

/// Returns the option that can state the sizes of all directions, and its value.
fn block_sizes(spec: &JobSpec) -> Result<(&'static str, String), Refused> {
    if spec.max_block() > MAX_BLOCK {
        return Err("bs is above 64 MiB, the largest request of fio's nbd engine");
    }
    let smallest = spec.blocks.clone().map(|blocks| Blocks::Fixed(blocks.min()));
    let mut blocks = used(spec, &spec.blocks);
    for (told, own) in blocks.iter_mut().zip(smallest.as_array()) {
        // fio's random map has the smallest blocks of all directions, used or not.
        if spec.cuts_at_touched_blocks() && own.min() < told.min() {
            *told = own;
        }
    }
    let any = |kind: fn(&Blocks) -> bool| blocks.iter().any(|block| kind(block));
    let (option, value): (_, fn(&Blocks) -> String) = match (
        any(|block| matches!(block, Blocks::Range { .. })),
        any(|block| matches!(block, Blocks::Split(_))),
    ) {
        (true, true) => return Err("bsrange beside bssplit cannot be told to fio once more"),
        (true, false) => ("bsrange", |block| format!("{}-{}", block.min(), block.max())),
        (false, true) => ("bssplit", |block| match block {
            Blocks::Split(sizes) => sizes
                .iter()
                .map(|(size, percent): &(u32, u8)| format!("{size}/{percent}"))
                .collect::<Vec<_>>()
                .join(":"),
            other => format!("{}/100", other.min()),
        }),
        (false, false) => ("bs", |block| block.min().to_string()),
    };
    Ok((option, blocks.map(value).join(",")))
}

fn distribution(spec: &JobSpec) -> Result<Option<String>, Refused> {
    Ok(Some(match &spec.distribution {
        Distribution::Uniform => return Ok(None),
        Distribution::Zipf { theta } => format!("zipf:{theta}"),
        Distribution::Pareto { h } => format!("pareto:{h}"),
        Distribution::Normal { deviation } => format!("normal:{deviation}"),
        Distribution::Zoned(zones) => {
            let [first, others @ ..] = used(spec, zones);
            if others.iter().any(|zones| *zones != first) {
                return Err("random_distribution has other zones for each direction, which fio \
                            documents but refuses");
            }
            if first.iter().all(|zone| matches!(zone.size, Extent::Percent(_))) {
                format!("zoned:{}", zone_list(first))
            } else if first.iter().all(|zone| matches!(zone.size, Extent::Bytes(_))) {
                format!("zoned_abs:{}", zone_list(first))
            } else {
                return Err("random_distribution has zones of both kinds");
            }
        }
    }))
}

fn zone_list(zones: &[Zone]) -> String {
    zones
        .iter()
        .map(|zone: &Zone| match zone.size {
            Extent::Percent(size) => format!("{}/{size}", zone.access),
            Extent::Bytes(size) => format!("{}/{}", zone.access, size.get()),
        })
        .collect::<Vec<_>>()
        .join(":")
}

/// Writes the part of the export that is used.
fn range(spec: &JobSpec, clone: u32, region: Region, lines: &mut Lines) {
    let (offset, size) = spec.range(clone, (0, 1), region.len.get());
    lines.set("offset", region.base.get().saturating_add(offset));
    lines.set("size", size);
    if let Some(io_size) = spec.io_size {
        lines.set("io_size", io_size.resolve(size));
    }
    lines.set_if(spec.loops > 1, "loops", spec.loops);
    if let Some(ios) = spec.number_ios {
        lines.set("number_ios", ios);
    }
}

/// Depth, times and rates.
fn when(spec: &JobSpec, lines: &mut Lines) -> Result<(), Refused> {
    lines.set("iodepth", spec.effective_depth());
    if let Some(runtime) = spec.runtime {
        lines.set("runtime", micros(runtime));
        lines.set_if(spec.time_based, "time_based", 1);
    }
    lines.set_if(spec.ramp_time > Span::ZERO, "ramp_time", micros(spec.ramp_time));
    lines.set_if(spec.start_delay > Span::ZERO, "startdelay", micros(spec.start_delay));
    let (mut bytes, mut iops) = ([0; 3], [0; 3]);
    for (op, rate) in spec.rate.as_array().into_iter().enumerate() {
        match rate {
            None => {}
            Some(Rate::Bytes(rate)) => bytes[op] = rate.get(),
            Some(Rate::Iops(rate)) => iops[op] = rate.get(),
        }
    }
    for (option, [read, write, trim]) in [("rate", bytes), ("rate_iops", iops)] {
        lines.set_if(read + write + trim > 0, option, format!("{read},{write},{trim}"));
    }
    match spec.rate_process {
        RateProcess::Linear => {}
        RateProcess::Poisson => lines.set("rate_process", "poisson"),
        RateProcess::Jittered => {
            return Err(
                "fio has no rate_process with one request at a random time in each interval",
            );
        }
    }
    // It has no effect without a rate.
    if spec.submit == Submit::Offload && spec.rate != PerOp::default() {
        return Err("io_submit_mode=offload makes fio's nbd engine crash");
    }
    if let Some(think) = spec.think {
        lines.set("thinktime", micros(think.time));
        lines.set("thinktime_blocks", think.blocks);
        let issued = think.count == ThinkCount::Issued;
        lines.set_if(issued, "thinktime_blocks_type", "issue");
    }
    Ok(())
}

fn micros(span: Span) -> String {
    format!("{}us", span.nanos().div_ceil(1_000))
}

fn flushes(spec: &JobSpec, lines: &mut Lines) -> Result<(), Refused> {
    if spec.data_sync {
        return Err("sync has no effect on fio's nbd engine");
    }
    if spec.fdatasync > 0 {
        return Err("fdatasync is refused by fio's nbd engine; fsync does the same there");
    }
    lines.set_if(spec.fsync > 0, "fsync", spec.fsync);
    lines.set_if(spec.end_fsync, "end_fsync", 1);
    Ok(())
}

#[cfg(test)]
mod tests;

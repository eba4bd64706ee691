//! Readers of the supported options: a short function per option, named after it. The table in
//! `options` calls them.

use super::draft::Draft;
use super::value::Value;
use crate::error::ValueError;
use crate::job::{
    Distribution, Engine, Extent, Generator, MAX_BLOCK, MAX_CLONES, MAX_DEPTH, Mix, Order, PerOp,
    RateProcess, Submit, ThinkCount, Zone,
};

type Result<T = ()> = std::result::Result<T, ValueError>;

/// Maximum rate that pacing adds up exactly.
const MAX_RATE: u64 = 1 << 62;

const PATTERNS: &[&str] = &[
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

pub(super) fn rw(draft: &mut Draft, value: Value) -> Result {
    let text = value.text()?;
    let (pattern, modifier) = match text.split_once(':') {
        Some((pattern, modifier)) => (pattern, Some(modifier)),
        None => (text, None),
    };
    if !PATTERNS.contains(&pattern) {
        return not_one_of(pattern, PATTERNS);
    }
    let (random, operations) = match pattern.strip_prefix("rand") {
        Some(operations) => (true, operations),
        None => (false, pattern),
    };
    draft.mix = match operations {
        "read" => Mix::Read,
        "write" => Mix::Write,
        "trim" => Mix::Trim,
        "trimwrite" => Mix::TrimWrite,
        _ => Mix::ReadWrite,
    };
    let modifier = modifier.map(|text| Value::new(Some(text), draft.kb_base));
    draft.order = if random {
        let every = modifier.map_or(Ok(1), |n| n.small(1, u32::MAX))?;
        Order::Random { every }
    } else {
        let gap = modifier.map_or(Ok(0), |n| n.number(0, u64::MAX >> 1))?;
        Order::Sequential { gap }
    };
    Ok(())
}

pub(super) fn kb_base(draft: &mut Draft, value: Value) -> Result {
    draft.kb_base = match value.text()? {
        "1024" => 1024,
        "1000" => 1000,
        text => return not_one_of(text, &["1024", "1000"]),
    };
    Ok(())
}

pub(super) fn name(draft: &mut Draft, value: Value) -> Result {
    draft.name = Some(value.text()?.to_owned());
    Ok(())
}

pub(super) fn filename(draft: &mut Draft, value: Value) -> Result {
    draft.filename = colon_list(value.text()?);
    Ok(())
}

pub(super) fn directory(draft: &mut Draft, value: Value) -> Result {
    draft.directory = colon_list(value.text()?);
    Ok(())
}

/// Splits `a:b`; a colon in a name is written `\:`.
fn colon_list(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ':' if !escaped => names.push(String::new()),
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            _ => names.last_mut().into_iter().for_each(|name| name.push(c)),
        }
        escaped = false;
    }
    names.retain(|name| !name.is_empty());
    names
}

pub(super) fn rwmixread(draft: &mut Draft, value: Value) -> Result {
    draft.read_percent = percent(value)?;
    Ok(())
}

pub(super) fn rwmixwrite(draft: &mut Draft, value: Value) -> Result {
    draft.read_percent = 100 - percent(value)?;
    Ok(())
}

fn percent(value: Value) -> Result<u8> {
    let n = value.small(0, 100)?;
    u8::try_from(n).map_err(|_| ValueError::OutOfRange { min: 0, max: 100 })
}

fn block(value: Value) -> Result<u32> {
    block_size(value.number(0, u64::MAX)?)
}

fn block_size(n: u64) -> Result<u32> {
    u32::try_from(n).ok().filter(|n| (1..=MAX_BLOCK).contains(n)).ok_or(ValueError::BlockSize)
}

pub(super) fn bs(draft: &mut Draft, value: Value) -> Result {
    draft.bs = value.per_op(&draft.bs, block)?;
    Ok(())
}

pub(super) fn ba(draft: &mut Draft, value: Value) -> Result {
    draft.align = value.per_op(&draft.align, |v| block(v).map(Some))?;
    Ok(())
}

pub(super) fn bsrange(draft: &mut Draft, value: Value) -> Result {
    draft.bsrange = value.per_op(&draft.bsrange, |v| {
        let (min, max) = v.range()?;
        Ok(Some((block_size(min)?, block_size(max)?)))
    })?;
    Ok(())
}

pub(super) fn bssplit(draft: &mut Draft, value: Value) -> Result {
    draft.bssplit = value.per_op(&draft.bssplit, |v| {
        let sizes = v.split(block, percent)?;
        Ok(Some(shares(sizes, 100)?))
    })?;
    Ok(())
}

/// Gives entries without a share an equal part of the rest of 100. A share of 0 counts as none, as
/// in fio.
fn shares<K>(entries: Vec<(K, Option<u8>)>, total: u64) -> Result<Vec<(K, u8)>> {
    let given = |share: &Option<u8>| share.filter(|share| *share > 0);
    let sum: u64 = entries.iter().filter_map(|(_, share)| given(share)).map(u64::from).sum();
    let open = entries.iter().filter(|(_, share)| given(share).is_none()).count() as u64;
    if sum > total || (open == 0 && sum < total) {
        return Err(ValueError::Shares { sum });
    }
    let left = total - sum;
    let mut shared = 0;
    let fill = |(key, share): (K, Option<u8>)| {
        let share = given(&share).unwrap_or_else(|| {
            // The parts add up to exactly the rest.
            let part = left * (shared + 1) / open - left * shared / open;
            shared += 1;
            u8::try_from(part).unwrap_or(u8::MAX)
        });
        (key, share)
    };
    Ok(entries.into_iter().map(fill).filter(|(_, share)| *share > 0).collect())
}

pub(super) fn percentage_random(draft: &mut Draft, value: Value) -> Result {
    draft.percent_random = value.per_op(&draft.percent_random, percent)?;
    Ok(())
}

const DISTRIBUTIONS: &[&str] = &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];

pub(super) fn random_distribution(draft: &mut Draft, value: Value) -> Result {
    let text = value.text()?;
    let (kind, parameter) = match text.split_once(':') {
        Some((kind, parameter)) => (kind, Some(parameter)),
        None => (text, None),
    };
    if parameter.is_some_and(|p| p.contains(':')) && !kind.starts_with("zoned") {
        return Err(ValueError::Parameter {
            what: "a centre of the distribution is not supported",
        });
    }
    let inside = |n: f64, inside: bool, what| {
        if inside { Ok(n) } else { Err(ValueError::Parameter { what }) }
    };
    draft.distribution = match kind {
        "random" => Distribution::Uniform,
        "zipf" => {
            let n = Value::parameter(parameter, 1.1)?;
            let theta = inside(n, n > 0.0 && n != 1.0, "theta must be more than 0 and not 1")?;
            Distribution::Zipf { theta }
        }
        "pareto" => {
            let n = Value::parameter(parameter, 0.2)?;
            Distribution::Pareto { h: inside(n, n > 0.0 && n < 1.0, "h must be between 0 and 1")? }
        }
        "normal" => {
            let n = Value::parameter(parameter, 0.0)?;
            let what = "the deviation must be 0 to less than 100";
            Distribution::Normal { deviation: inside(n, (0.0..100.0).contains(&n), what)? }
        }
        "zoned" | "zoned_abs" => {
            let zones = Value::new(parameter, draft.kb_base);
            let parse: fn(Value) -> Result<Vec<Zone>> =
                if kind == "zoned" { relative_zones } else { absolute_zones };
            Distribution::Zoned(zones.per_op(&PerOp::default(), parse)?)
        }
        _ => return not_one_of(kind, DISTRIBUTIONS),
    };
    Ok(())
}

fn relative_zones(value: Value) -> Result<Vec<Zone>> {
    let zones = value.split(percent, percent)?;
    let given: u64 = zones.iter().filter_map(|(_, size)| *size).map(u64::from).sum();
    if given > 100 {
        return Err(ValueError::ZoneSizes { sum: given });
    }
    let open = zones.iter().filter(|(_, size)| size.is_none_or(|size| size == 0)).count() as u64;
    let rest = 100_u64.saturating_sub(given).checked_div(open).unwrap_or(0);
    let size = |size: Option<u8>| match size {
        None | Some(0) => u32::try_from(rest).unwrap_or(0),
        Some(size) => size.into(),
    };
    let zones = zones.into_iter().map(|(access, s)| (access, Extent::Percent(size(s))));
    checked_zones(zones.collect())
}

fn absolute_zones(value: Value) -> Result<Vec<Zone>> {
    let zones = value.split(percent, Value::extent)?.into_iter();
    checked_zones(zones.map(|(access, size)| (access, size.unwrap_or(Extent::ZERO))).collect())
}

fn checked_zones(zones: Vec<(u8, Extent)>) -> Result<Vec<Zone>> {
    let sum = zones.iter().map(|(access, _)| u64::from(*access)).sum();
    if sum != 100 {
        return Err(ValueError::Shares { sum });
    }
    Ok(zones.into_iter().map(|(access, size)| Zone { access, size }).collect())
}

pub(super) fn norandommap(draft: &mut Draft, value: Value) -> Result {
    draft.norandommap = value.flag()?;
    Ok(())
}

pub(super) fn softrandommap(draft: &mut Draft, value: Value) -> Result {
    draft.softrandommap = value.boolean()?;
    Ok(())
}

pub(super) fn random_generator(draft: &mut Draft, value: Value) -> Result {
    draft.generator = match value.text()? {
        "tausworthe" | "tausworthe64" => Generator::Tausworthe,
        "lfsr" => Generator::Lfsr,
        text => return not_one_of(text, &["tausworthe", "tausworthe64", "lfsr"]),
    };
    Ok(())
}

pub(super) fn iodepth(draft: &mut Draft, value: Value) -> Result {
    draft.depth = value.small(1, MAX_DEPTH).map_err(range_to(ValueError::Depth))?;
    Ok(())
}

pub(super) fn numjobs(draft: &mut Draft, value: Value) -> Result {
    draft.clones = value.small(1, MAX_CLONES).map_err(range_to(ValueError::Clones))?;
    Ok(())
}

fn range_to(better: ValueError) -> impl FnOnce(ValueError) -> ValueError {
    |kind| if matches!(kind, ValueError::OutOfRange { .. }) { better } else { kind }
}

/// Engines that keep `iodepth` I/Os in flight.
const QUEUED: &[&str] =
    &["libaio", "io_uring", "posixaio", "solarisaio", "windowsaio", "nbd", "rbd", "null"];
/// Engines that wait for each I/O.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "sg"];
const ENGINES: &[&str] = &[
    "libaio",
    "io_uring",
    "posixaio",
    "windowsaio",
    "nbd",
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
];

pub(super) fn ioengine(draft: &mut Draft, value: Value) -> Result {
    let text = value.text()?;
    let known = |engines: &[&'static str]| engines.iter().find(|name| **name == text).copied();
    draft.engine = match (known(QUEUED), known(SYNCHRONOUS)) {
        (Some(name), _) => Engine { name, queued: true },
        (None, Some(name)) => Engine { name, queued: false },
        (None, None) => return Err(ValueError::Engine { allowed: ENGINES }),
    };
    Ok(())
}

pub(super) fn direct(draft: &mut Draft, value: Value) -> Result {
    draft.direct = value.boolean()?;
    Ok(())
}

pub(super) fn buffered(draft: &mut Draft, value: Value) -> Result {
    draft.direct = !value.boolean()?;
    Ok(())
}

pub(super) fn size(draft: &mut Draft, value: Value) -> Result {
    draft.size = Some(value.extent()?).filter(|size| *size != Extent::ZERO);
    Ok(())
}

pub(super) fn io_size(draft: &mut Draft, value: Value) -> Result {
    draft.io_size = Some(value.extent()?).filter(|size| *size != Extent::ZERO);
    Ok(())
}

pub(super) fn offset(draft: &mut Draft, value: Value) -> Result {
    draft.offset = value.extent()?;
    Ok(())
}

pub(super) fn offset_increment(draft: &mut Draft, value: Value) -> Result {
    draft.offset_increment = value.extent()?;
    Ok(())
}

pub(super) fn runtime(draft: &mut Draft, value: Value) -> Result {
    let span = value.seconds()?;
    draft.runtime = (span.nanos() > 0).then_some(span);
    Ok(())
}

pub(super) fn time_based(draft: &mut Draft, value: Value) -> Result {
    draft.time_based = value.flag()?;
    Ok(())
}

pub(super) fn ramp_time(draft: &mut Draft, value: Value) -> Result {
    draft.ramp_time = value.seconds()?;
    Ok(())
}

pub(super) fn startdelay(draft: &mut Draft, value: Value) -> Result {
    draft.start_delay = value.seconds()?;
    Ok(())
}

pub(super) fn loops(draft: &mut Draft, value: Value) -> Result {
    draft.loops = value.small(0, u32::MAX)?.max(1);
    Ok(())
}

pub(super) fn number_ios(draft: &mut Draft, value: Value) -> Result {
    draft.number_ios = value.number(0, u64::MAX)?;
    Ok(())
}

pub(super) fn rate(draft: &mut Draft, value: Value) -> Result {
    draft.rate = value.per_op(&draft.rate, |v| v.number(0, MAX_RATE))?;
    Ok(())
}

pub(super) fn rate_iops(draft: &mut Draft, value: Value) -> Result {
    // Times the largest block, it must stay below the maximum of pacing.
    let max = MAX_RATE / u64::from(MAX_BLOCK);
    draft.rate_iops = value.per_op(&draft.rate_iops, |v| v.number(0, max))?;
    Ok(())
}

pub(super) fn rate_process(draft: &mut Draft, value: Value) -> Result {
    draft.rate_process = match value.text()? {
        "linear" => RateProcess::Linear,
        "poisson" => RateProcess::Poisson,
        text => return not_one_of(text, &["linear", "poisson"]),
    };
    Ok(())
}

pub(super) fn io_submit_mode(draft: &mut Draft, value: Value) -> Result {
    draft.submit = match value.text()? {
        "inline" => Submit::Inline,
        "offload" => Submit::Offload,
        text => return not_one_of(text, &["inline", "offload"]),
    };
    Ok(())
}

pub(super) fn thinktime(draft: &mut Draft, value: Value) -> Result {
    draft.think_time = value.micros()?;
    Ok(())
}

pub(super) fn thinktime_blocks(draft: &mut Draft, value: Value) -> Result {
    draft.think_blocks = value.small(1, u32::MAX)?;
    Ok(())
}

pub(super) fn thinktime_blocks_type(draft: &mut Draft, value: Value) -> Result {
    draft.think_count = match value.text()? {
        "complete" => ThinkCount::Completed,
        "issue" => ThinkCount::Issued,
        text => return not_one_of(text, &["complete", "issue"]),
    };
    Ok(())
}

pub(super) fn randseed(draft: &mut Draft, value: Value) -> Result {
    draft.seed = Some(value.number(0, u64::MAX)?);
    Ok(())
}

pub(super) fn randrepeat(draft: &mut Draft, value: Value) -> Result {
    draft.rand_repeat = value.boolean()?;
    Ok(())
}

pub(super) fn sync(draft: &mut Draft, value: Value) -> Result {
    draft.data_sync = match value.text()? {
        "none" | "0" => false,
        "sync" | "1" | "dsync" => true,
        text => return not_one_of(text, &["none", "sync", "dsync", "0", "1"]),
    };
    Ok(())
}

pub(super) fn fsync(draft: &mut Draft, value: Value) -> Result {
    draft.fsync = value.small(0, u32::MAX)?;
    Ok(())
}

pub(super) fn fdatasync(draft: &mut Draft, value: Value) -> Result {
    draft.fdatasync = value.small(0, u32::MAX)?;
    Ok(())
}

pub(super) fn end_fsync(draft: &mut Draft, value: Value) -> Result {
    draft.end_fsync = value.boolean()?;
    Ok(())
}

pub(super) fn fsync_on_close(draft: &mut Draft, value: Value) -> Result {
    draft.fsync_on_close = value.boolean()?;
    Ok(())
}

pub(super) fn group_reporting(draft: &mut Draft, value: Value) -> Result {
    draft.group_reporting = value.flag()?;
    Ok(())
}

pub(super) fn new_group(draft: &mut Draft, value: Value) -> Result {
    draft.new_group = value.flag()?;
    Ok(())
}

pub(super) fn stonewall(draft: &mut Draft, value: Value) -> Result {
    draft.stonewall = value.flag()?;
    Ok(())
}

fn not_one_of<T>(text: &str, allowed: &'static [&'static str]) -> Result<T> {
    Err(ValueError::NotOneOf {
        allowed,
        nearest: weir_units::nearest(text, allowed.iter().copied()),
    })
}

//! `weir plan --from`: what is needed, as an observation says it.

use crate::cli::{ImportArgs, PlanArgs};
use crate::commands::observe::Source;
use crate::error::CliError;
use std::path::PathBuf;
use weir_observe::sizing::{Roles, Sized, Sizer};
use weir_plan::need::{NeedFile, RoleKeys, WHOLE, in_percent};
use weir_report::number::{float, percent};
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// Where nothing else is said, one sample in a hundred may ask for more.
const PERCENTILE: f64 = 99.0;

/// What is shorter says little of the hours and days that come.
const SHORT: f64 = 3_600.0;

/// And so do fewer samples.
const FEW: u64 = 60;

/// Samples that are longer hide peaks within them.
const COARSE: f64 = 60.0;

/// Latency of which so much is spent at caps is that of somebody who is throttled.
const THROTTLED: f64 = 0.1;

/// How an observation becomes a need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure<'a> {
    percentile: f64,
    /// In millionths of what was observed.
    growth: u64,
    roles: &'a [(String, String)],
}

impl<'a> Measure<'a> {
    pub(super) fn of(args: &'a PlanArgs) -> Self {
        let percentile = args.percentile.unwrap_or(PERCENTILE);
        Self { percentile, growth: args.growth.unwrap_or(0), roles: &args.role }
    }
}

/// Puts into `file` what the observation in `paths` says of each role, and returns what is to be
/// said of it.
pub(super) fn fill(
    file: &mut NeedFile,
    paths: &[PathBuf],
    measure: Measure<'_>,
) -> Result<Vec<String>, CliError> {
    let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let source = Source::any(paths, &ImportArgs::default())?;
    let (header, _) = source.survey()?;
    let contents = &header.contents;
    let said = Roles { said: measure.roles.iter().cloned().collect() };
    let sizer = Sizer::new(contents, &said);
    let mut sizer = sizer.map_err(|(missing, known)| {
        let words = format!(
            "{name}: nobody in it is called {}; it has {}",
            missing.join(", "),
            known.join(", ")
        );
        CliError::Refused(words)
    })?;
    source.each(|at, row| sizer.sample(at, row))?;
    let sized = sizer.finish(contents, measure.percentile / 100.0);
    if sized.is_empty() {
        return Err(CliError::Refused(format!(
            "{name}: it says nothing of operations from one sample to the next, so there is nothing \
             to size from; it needs counters or rates of files or disks at two times at least"
        )));
    }
    let mut notes = vec![format!(
        "{name}: {} were observed; rates are the {} percentile of all samples{}",
        weir_report::number::time(sizer.seconds() * 1e9),
        ordinal(measure.percentile),
        match measure.growth {
            0 => String::new(),
            growth => format!(", and what was observed grows by {} %", in_percent(growth)),
        }
    )];
    for own in &sized {
        let keys = match own.role.as_str() {
            "data" => &mut file.data,
            "log" => &mut file.log,
            "tempdb" => &mut file.tempdb,
            _ => &mut file.backup,
        };
        put(keys, own, measure, &name)?;
        notes.extend(said_of(own));
    }
    notes.extend(short(&sized, sizer.seconds()));
    if measure.roles.is_empty() && header.contents.entities.len() > 1 && sized.len() == 1 {
        notes.push(format!(
            "all of {} are taken for {}; where devices lie on each other they count twice: choose \
             with --role NAME=ROLE",
            sized[0].of.join(", "),
            sized[0].role
        ));
    }
    Ok(notes)
}

/// What was observed of a role, beside what a file says of it that cannot be observed.
fn put(
    keys: &mut Option<RoleKeys>,
    own: &Sized,
    measure: Measure<'_>,
    name: &str,
) -> Result<(), CliError> {
    let role = &own.role;
    let keys = keys.get_or_insert_default();
    let stray = [
        ("iops", keys.iops.is_some()),
        ("throughput", keys.throughput.is_some()),
        ("request", keys.request.is_some()),
        ("reads", keys.reads.is_some()),
    ];
    if let Some((key, _)) = stray.into_iter().find(|(_, is_said)| *is_said) {
        let words = format!("{role}: {name} says its {key}, and so does the need; keep one");
        return Err(CliError::Refused(words));
    }
    let grown = |n: f64| n * (1.0 + float(measure.growth) / float(WHOLE));
    if keys.size.is_none() {
        keys.size = own.size.filter(|size| *size > 0).map(|size| {
            // Whole GiB: files are made of such.
            let gib = whole(grown(float(size)) / float(1 << 30));
            Bytes::gib(gib.max(1))
        });
    }
    if keys.size.is_none() {
        let how = if role == "data" { "--size SIZE, or " } else { "" };
        let words = format!(
            "{name}: it does not say how much is stored as {role}; give {how}size in [{role}] of \
             --need FILE"
        );
        return Err(CliError::Refused(words));
    }
    let iops = whole(grown(own.iops));
    let request = own.request.map(|bytes| whole(bytes).max(1).next_multiple_of(512));
    keys.iops = Iops::new(iops);
    keys.request = request.map(Bytes::new).filter(|_| iops > 0);
    // The peak of bytes, where it is more than the peak of operations brings.
    let bytes = own.bytes.map_or(0, |bytes| whole(grown(bytes)));
    let brought = iops.saturating_mul(request.unwrap_or(0));
    keys.throughput = BytesPerSec::new(bytes).filter(|rate| rate.get() > brought && iops > 0);
    keys.reads = own.reads.map(|reads| {
        let tenths = whole((reads * 1_000.0).floor()).min(1_000);
        format!("{}.{} %", tenths / 10, tenths % 10)
    });
    Ok(())
}

/// What is to be said of a role.
fn said_of(own: &Sized) -> Option<String> {
    let waited = own.waited.filter(|part| *part > THROTTLED)?;
    Some(format!(
        "{}: {} of its latency were spent waiting at caps: it was throttled, and asks for more than \
         was seen (weir diagnose says which cap); plan with --headroom, or observe where it is not",
        own.role,
        percent(waited)
    ))
}

/// What is lacking where an observation is short or coarse.
fn short(sized: &[Sized], seconds: f64) -> Vec<String> {
    let samples = sized.iter().map(|own| own.samples).max().unwrap_or(0);
    let mut notes = Vec::new();
    if seconds < SHORT || samples < FEW {
        notes.push(format!(
            "{samples} samples in {} are little to size from: peaks of a day, a week and the end of \
             the month are not in it; observe an hour at least, better a week",
            weir_report::number::time(seconds * 1e9)
        ));
    }
    if samples > 0 && seconds / float(samples) > COARSE {
        notes.push(format!(
            "a sample is {} long: what is shorter than that is averaged away; observe every second",
            Span::from_secs(whole(seconds / float(samples)))
        ));
    }
    notes
}

fn ordinal(n: f64) -> String {
    let text = n.to_string();
    let is_teen = ["11", "12", "13"].iter().any(|teen| text.ends_with(teen));
    let end = match text.chars().last() {
        _ if is_teen || text.contains('.') => "th",
        Some('1') => "st",
        Some('2') => "nd",
        Some('3') => "rd",
        _ => "th",
    };
    format!("{text}{end}")
}

/// Rounded up; rates and sizes are far below 2^53.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded on both sides before"
)]
fn whole(n: f64) -> u64 {
    n.ceil().clamp(0.0, 4e18) as u64
}

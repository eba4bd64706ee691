//! The need of a system, measured from an observation.
//!
//! The rates of a role are a percentile of all samples. The demand of a throttled system exceeds its observed
//! rates; it is estimated from the diagnosis.
//!
//! | module | holds |
//! |---|---|
//! | `demanded` | the demand of throttled files and disks |
//! | `keys` | from the observed rates of a role to the keys of a need |

mod demanded;
mod keys;

use crate::DEFAULT_EDITION;
use crate::error::PlanError;
use crate::need::NeedFile;
use crate::share::in_percent;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_observe::Header;
use weir_observe::sizing::{Roles, Sized, Sizer};
use weir_observe::when::Hours;
use weir_report::number::{float, percent, time, whole};
use weir_units::{Instant, Span};

/// The default percentile: one sample in a hundred may ask for more.
const PERCENTILE: f64 = 99.0;

/// Shorter observations, in seconds, say little about hours and days.
const SHORT: f64 = 3_600.0;

/// Observations with fewer samples say little, too.
const FEW: u64 = 60;

/// Longer sampling intervals, in seconds, hide peaks.
const COARSE: f64 = 60.0;

/// A role is throttled if this share of its latency is waits at caps.
const THROTTLED: f64 = 0.1;

/// How an observation is measured.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The percentile of the rates, above 0 and at most 100.
    pub percentile: f64,
    /// Growth in millionths of the observed rates and sizes.
    pub growth: u64,
    /// Entities and their roles. If there are any, all others are ignored.
    pub roles: Roles,
    /// True if the observed rates of a throttled system are used as they are.
    pub is_as_observed: bool,
    /// True if a size that neither the need nor the observation has is an error.
    pub is_size_asked: bool,
    /// The hours of the day to measure; all by default.
    pub hours: Option<Hours>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            percentile: PERCENTILE,
            growth: 0,
            roles: Roles::default(),
            is_as_observed: false,
            is_size_asked: false,
            hours: None,
        }
    }
}

/// Parses a percentile.
///
/// # Errors
///
/// A message that says what was expected.
pub fn percentile(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
    let wrong =
        || format!("{text:?} is not a number above 0 and up to 100, for example 99 or 99.9");
    number.filter(|n| *n > 0.0 && *n <= 100.0).ok_or_else(wrong)
}

/// Parses an entity and its role, for example `sdc=data`.
///
/// # Errors
///
/// A message that says what was expected.
pub fn role(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((name, role @ ("data" | "log" | "tempdb" | "backup"))) if !name.is_empty() => {
            Ok((name.to_owned(), role.to_owned()))
        }
        _ => Err("write NAME=ROLE, for example sdc=data; roles are data, log, tempdb and \
                 backup"
            .to_owned()),
    }
}

/// An observation whose samples can be read several times.
pub trait Samples {
    /// The error of a reader.
    type Error: From<PlanError>;

    /// Returns the header with all declared entities.
    ///
    /// # Errors
    ///
    /// The error of the reader.
    fn header(&self) -> Result<Header, Self::Error>;

    /// Passes all samples to `take`.
    ///
    /// # Errors
    ///
    /// The error of the reader.
    fn each(&self, take: &mut dyn FnMut(Instant, &[Option<i64>])) -> Result<(), Self::Error>;
}

/// Returns the layout of the observed system: the named one, or the one stored by a run of Weir.
/// Without a layout, the observation gives the limits.
fn layout_of(header: &Header, named: Option<Layout>, catalog: &Catalog) -> Option<Layout> {
    match (named, &header.layout) {
        (Some(layout), _) => Some(layout),
        (None, Some(kept)) => Layout::parse(&kept.name, &kept.text, catalog).ok(),
        (None, None) => None,
    }
}

/// Fills `file` with the rates and sizes that `samples`, called `name`, have for each role; returns notes
/// about them. `present` is the layout of the observed system, by default that of the observed run.
///
/// # Errors
///
/// The error of the reader, or [`PlanError::Need`] if the observation lacks what is asked for.
pub fn fill<S: Samples>(
    file: &mut NeedFile,
    (name, samples): (&str, &S),
    measure: &Measure,
    (present, catalog): (Option<Layout>, &Catalog),
) -> Result<Vec<String>, S::Error> {
    let refused = |reason: String| S::Error::from(PlanError::need(name, reason));
    let header = samples.header()?;
    let contents = &header.contents;
    let mut sizer = Sizer::new(contents, &measure.roles).map_err(|(missing, known)| {
        refused(format!("has no {}; it has {}", missing.join(", "), known.join(", ")))
    })?;
    if let Some(hours) = measure.hours {
        let start = header.start_unix_ns.ok_or_else(|| {
            refused("has no dates, so that it has no hours of the day".to_owned())
        })?;
        sizer = sizer.within(hours, start);
    }
    samples.each(&mut |at, row| sizer.sample(at, row))?;
    if measure.hours.is_some() && sizer.seconds() <= 0.0 {
        return Err(refused("has no samples of these hours of the day".to_owned()));
    }
    let mut sized = sizer.finish(contents, measure.percentile / 100.0);
    if sized.is_empty() {
        let reason = "has no rates to size from; it needs counters or rates of files or disks at two \
                      times at least";
        return Err(refused(reason.to_owned()));
    }
    let mut notes = vec![format!(
        "{name}: {} observed; rates are the {} percentile of all samples{}",
        time(sizer.seconds() * 1e9),
        ordinal(measure.percentile),
        match measure.growth {
            0 => String::new(),
            growth => format!(", plus {} % growth", in_percent(growth)),
        }
    )];
    let layout = layout_of(&header, present, catalog);
    let of_layout = layout.as_ref().and_then(|layout| layout.edition.as_deref());
    let planned = file.edition.as_deref().or(of_layout).unwrap_or(DEFAULT_EDITION);
    let planned = catalog.edition(planned).ok();
    let demands = demanded::demands(samples, contents, layout.as_ref(), (catalog, planned))?;
    for own in &mut sized {
        // At a limit of 500 per second, a second may contain the end of the 501st request.
        own.iops = (own.iops - float(own.samples) / sizer.seconds().max(1.0)).max(0.0);
        let raised = demanded::raise(own, &demands, measure.is_as_observed);
        let keys = match own.role.as_str() {
            "data" => &mut file.data,
            "log" => &mut file.log,
            "tempdb" => &mut file.tempdb,
            _ => &mut file.backup,
        };
        let keys = keys.get_or_insert_default();
        keys.take_observed(own, measure.growth, name)?;
        if measure.is_size_asked {
            keys.check_size(&own.role, name)?;
        }
        notes.extend(said_of(own).filter(|_| raised.is_empty()));
        notes.extend(raised);
    }
    notes.extend(short(&sized, sizer.seconds()));
    if measure.roles.said.is_empty() && header.contents.entities.len() > 1 && sized.len() == 1 {
        notes.push(format!(
            "{} all count as {}; devices on top of each other count twice, so choose with --role \
             NAME=ROLE",
            sized[0].of.join(", "),
            sized[0].role
        ));
    }
    Ok(notes)
}

/// Returns the note about a role that was throttled.
fn said_of(own: &Sized) -> Option<String> {
    let waited = own.waited.filter(|part| *part > THROTTLED)?;
    Some(format!(
        "{}: {} of its latency were waits at caps, so it was throttled and its demand exceeds the \
         observed rates (weir diagnose names the cap); allow for it with --growth, or observe it \
         without the limit",
        own.role,
        percent(waited)
    ))
}

/// Returns notes about an observation that is short or coarse.
fn short(sized: &[Sized], seconds: f64) -> Vec<String> {
    let samples = sized.iter().map(|own| own.samples).max().unwrap_or(0);
    let mut notes = Vec::new();
    if seconds < SHORT || samples < FEW {
        notes.push(format!(
            "{samples} samples in {} miss the peaks of a day, a week and the end of a month; \
             observe for an hour at least, better a week",
            time(seconds * 1e9)
        ));
    }
    if samples > 0 && seconds / float(samples) > COARSE {
        notes.push(format!(
            "the sampling interval is {}: shorter peaks are averaged out; sample every second",
            Span::from_secs(whole((seconds / float(samples)).ceil()))
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

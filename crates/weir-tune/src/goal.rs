//! The goal of a search for changes.

use crate::error::TuneError;
use crate::load::Load;
use crate::measure::Measured;
use std::fmt;
use std::str::FromStr;
use weir_layout::Role;
use weir_plan::verify::Got;
use weir_report::number::{float, mib, percent, rate, time};
use weir_units::{BytesPerSec, Iops, ParseError, Span};

/// Without targets, waits at limits may be at most this share of the time at storage, or of the
/// response time of databases. `weir plan`
/// calls a role throttled by the same share.
pub const WAITED: f64 = 0.1;

/// A rate is reached if it falls short by at most this share; a latency may exceed its target by the
/// same share, because percentiles are accurate to 1 %. As in the verification of plans.
const TOLERANCE: f64 = 0.02;

/// A rate that is predicted to fall short by more than this share may miss its target on a real system.
const SURE: f64 = 0.005;

/// Waits at limits that are predicted to be a larger share may exceed [`WAITED`] on a real system.
const SURE_WAITED: f64 = 0.09;

/// A metric with a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Operations per second, at least.
    Iops(u64),
    /// Bytes per second, at least.
    Throughput(u64),
    /// Median latency, at most.
    Latency(Span),
    /// 99th percentile of the latency, at most.
    P99(Span),
    /// Transactions per minute, at least.
    Transactions(u64),
    /// Mean response time of the transactions, at most.
    Response(Span),
}

impl Target {
    /// Names of all metrics.
    pub const NAMES: [&'static str; 6] =
        ["iops", "throughput", "latency", "p99", "transactions", "response"];

    /// Returns the name of the metric.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops(_) => "iops",
            Self::Throughput(_) => "throughput",
            Self::Latency(_) => "latency",
            Self::P99(_) => "p99",
            Self::Transactions(_) => "transactions",
            Self::Response(_) => "response",
        }
    }

    /// Returns the measured value of the metric; `None` if the load does not have it.
    #[must_use]
    pub fn value(self, measured: &Measured) -> Option<f64> {
        Some(match self {
            Self::Iops(_) => measured.iops,
            Self::Throughput(_) => measured.bytes_per_s,
            Self::Latency(_) => float(measured.median_ns),
            Self::P99(_) => float(measured.p99_ns),
            Self::Transactions(_) => measured.transactions_per_min?,
            Self::Response(_) => measured.response_ns?,
        })
    }

    /// Returns the target as a number in the unit of [`value`](Self::value).
    #[must_use]
    pub fn asked(self) -> f64 {
        match self {
            Self::Iops(n) | Self::Throughput(n) | Self::Transactions(n) => float(n),
            Self::Latency(most) | Self::P99(most) | Self::Response(most) => float(most.nanos()),
        }
    }

    /// Returns whether less is better.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Latency(_) | Self::P99(_) | Self::Response(_))
    }

    /// Returns whether a measurement reaches the target, except for these shares of a latency and of a rate.
    fn is_met(self, measured: &Measured, (late, short): (f64, f64)) -> bool {
        self.value(measured).is_some_and(|value| match self.is_latency() {
            true => value <= self.asked() * (1.0 + late),
            false => value >= self.asked() * (1.0 - short),
        })
    }

    /// Returns a value of the metric with its unit.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Iops(_) => format!("{} IOPS", rate(value)),
            Self::Throughput(_) => format!("{} MiB/s", mib(value)),
            Self::Latency(_) | Self::P99(_) | Self::Response(_) => time(value).to_string(),
            Self::Transactions(_) => format!("{} transactions/min", rate(value)),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            format!("{text:?} has no target; write METRIC=VALUE, for example iops=8000")
        })?;
        let (name, value) = (name.trim(), value.trim());
        let wrong = |error: &dyn fmt::Display| format!("{name}: {error}");
        let count = || {
            let own: Iops = value.parse().map_err(|error| rate_error(name, &error))?;
            Ok::<u64, String>(own.get())
        };
        let span = || {
            let own: Span = value.parse().map_err(|error| wrong(&error))?;
            match own {
                Span::ZERO => Err(format!("{name}: is 0; give the longest latency, like 5ms")),
                own => Ok(own),
            }
        };
        Ok(match name {
            "iops" => Self::Iops(count()?),
            "throughput" => {
                let own: BytesPerSec = value.parse().map_err(|error| rate_error(name, &error))?;
                Self::Throughput(own.get())
            }
            "latency" => Self::Latency(span()?),
            "p99" => Self::P99(span()?),
            "transactions" => Self::Transactions(count()?),
            "response" => Self::Response(span()?),
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("{name:?} is not a metric; use {known}"));
            }
        })
    }
}

/// Returns the message for a rate that cannot be a goal.
fn rate_error(name: &str, error: &ParseError) -> String {
    match error {
        ParseError::NotPositive { .. } => {
            format!("{name} must be more than 0; give the lowest rate to reach")
        }
        _ => format!("{name}: {error}"),
    }
}

/// The goal of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goal {
    /// The targets. Without any, a need has to be met, jobs may wait at limits for [`WAITED`] of their
    /// time at storage, and databases for that share of their response time.
    pub targets: Vec<Target>,
}

impl Goal {
    /// Checks that the load has all metrics of the goal.
    ///
    /// # Errors
    ///
    /// [`TuneError::Goal`] with the metric.
    pub fn check(&self, load: &Load) -> Result<(), TuneError> {
        let wrong = |metric, reason| Err(TuneError::Goal { metric, reason });
        for (at, target) in self.targets.iter().enumerate() {
            let metric = target.name();
            if self.targets[..at].iter().any(|own| own.name() == metric) {
                return wrong(metric, "is given twice; leave out one");
            }
            match (load, target) {
                (Load::Needs(_), _) => {
                    return wrong(metric, "the need states its own targets; change them there");
                }
                (Load::Jobs(_), Target::Transactions(_) | Target::Response(_)) => {
                    return wrong(metric, "jobs have no transactions; use iops or throughput");
                }
                (Load::Databases(..), Target::Latency(_) | Target::P99(_)) => {
                    return wrong(
                        metric,
                        "the counters of databases have no percentiles; use transactions or response",
                    );
                }
                _ => {}
            }
        }
        let (latency, p99) = (self.span("latency"), self.span("p99"));
        if let (Some(latency), Some(p99)) = (latency, p99)
            && p99 < latency
        {
            return wrong("p99", "is below the median of --goal latency; raise it");
        }
        Ok(())
    }

    fn span(&self, name: &str) -> Option<Span> {
        let own = self.targets.iter().find(|own| own.name() == name)?;
        match own {
            Target::Latency(most) | Target::P99(most) => Some(*most),
            _ => None,
        }
    }

    /// Returns whether a measurement reaches the goal.
    #[must_use]
    pub fn is_met(&self, measured: &Measured) -> bool {
        if !measured.roles.is_empty() {
            return measured.lacks.is_empty() && measured.roles.iter().all(Got::is_met);
        }
        match self.targets.is_empty() {
            true => measured.waited() <= WAITED,
            false => self.targets.iter().all(|own| own.is_met(measured, (TOLERANCE, TOLERANCE))),
        }
    }

    /// Returns whether a prediction reaches the goal with a margin: it uses only a part of the tolerance of
    /// [`is_met`](Self::is_met), and the rest is left for its error.
    pub(crate) fn is_surely_met(&self, predicted: &Measured) -> bool {
        let are_sure = match self.targets.is_empty() {
            true => !predicted.roles.is_empty() || predicted.waited() <= SURE_WAITED,
            false => self.targets.iter().all(|own| own.is_met(predicted, (0.0, SURE))),
        };
        self.is_met(predicted) && predicted.roles.iter().all(is_sure) && are_sure
    }

    /// Returns the largest factor by which a rate must grow, of the targets and of the roles that `counts` accepts;
    /// `None` if none falls short.
    pub(crate) fn lack(&self, measured: &Measured, counts: impl Fn(Role) -> bool) -> Option<f64> {
        let roles = measured.roles.iter().filter(|own| counts(own.role));
        let roles = roles.map(|own| own.part().recip());
        let rates = self.targets.iter().filter(|own| !own.is_latency());
        let rates = rates.filter_map(|own| Some(own.asked() / own.value(measured)?));
        roles.chain(rates).filter(|own| own.is_finite() && *own > 1.0).reduce(f64::max)
    }

    /// Returns the goal in words.
    #[must_use]
    pub fn words(&self, load: &Load) -> String {
        match (self.targets.is_empty(), load) {
            (true, Load::Needs(_)) => "the need is met".to_owned(),
            (true, _) => {
                let (most, time) = (percent(WAITED), load.time());
                format!("waits at limits are at most {most} of the {time}")
            }
            (false, _) => {
                let words = self.targets.iter().map(|own| {
                    let bound = if own.is_latency() { "at most" } else { "at least" };
                    format!("{} {bound} {}", own.name(), own.words(own.asked()))
                });
                words.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Returns whether a role is predicted to meet its need with a margin; see [`Goal::is_surely_met`].
pub(crate) fn is_sure(own: &Got) -> bool {
    let is_in_time = own.asked_latency.is_none_or(|most| own.median <= most.nanos());
    own.is_met() && own.part() >= 1.0 - SURE && is_in_time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Place;
    use weir_core::Cap;

    #[test]
    fn targets_are_read_and_bad_ones_refused() {
        let read = |text: &str| text.parse::<Target>();
        assert_eq!(read("iops=8000"), Ok(Target::Iops(8_000)));
        assert_eq!(read(" latency = 5ms"), Ok(Target::Latency(Span::from_millis(5))));
        assert_eq!(read("throughput=200 MiB/s"), Ok(Target::Throughput(200 << 20)));
        for (text, part) in [
            ("iops", "METRIC=VALUE"),
            ("speed=3", "is not a metric"),
            ("latency=0ms", "is 0"),
            ("iops=0", "iops must be more than 0; give the lowest rate to reach"),
            ("throughput=0 MB/s", "throughput must be more than 0; give the lowest rate to reach"),
            ("iops=many", "iops:"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_goal_is_met_within_two_per_cent() {
        let goal = Goal { targets: vec![Target::Iops(1_000), Target::P99(Span::from_millis(10))] };
        let met = |iops, p99_ns| goal.is_met(&Measured { iops, p99_ns, ..Measured::default() });
        assert!(met(981.0, 10_100_000));
        assert!(!met(979.0, 10_100_000));
        assert!(!met(981.0, 10_300_000));
        assert!(Goal::default().is_met(&Measured::default()));
    }

    #[test]
    fn a_prediction_within_the_tolerance_is_not_sure() {
        let goal = Goal { targets: vec![Target::Iops(1_000), Target::P99(Span::from_millis(10))] };
        let sure =
            |iops, p99_ns| goal.is_surely_met(&Measured { iops, p99_ns, ..Measured::default() });
        assert!(sure(995.0, 10_000_000));
        assert!(!sure(994.0, 10_000_000));
        assert!(!sure(995.0, 10_000_001));
        let waited = |waits_ns| {
            let place = Place { host: 0, export: None, cap: Cap::DiskIops };
            let waits = vec![(place, waits_ns)];
            Goal::default().is_surely_met(&Measured {
                waits,
                storage_ns: 1_000,
                ..Measured::default()
            })
        };
        assert!(waited(90) && !waited(91));
        let role = |got, median| {
            let (asked_latency, asked) = (Some(Span::from_nanos(100)), 1_000);
            is_sure(&Got { got, median, asked_latency, asked, ..role() })
        };
        assert!(role(995.0, 100));
        assert!(!role(994.0, 100) && !role(995.0, 101));
    }

    fn role() -> Got {
        Got {
            role: Role::Data,
            request: 8192,
            asked: 900,
            bytes: None,
            got: 600.0,
            latency: 0.0,
            median: 0,
            p99: 0,
            asked_latency: None,
            grows: false,
        }
    }

    #[test]
    fn the_lack_is_that_of_the_rate_that_falls_short_most() {
        let throughput = Target::Throughput(1 << 20);
        let goal = Goal { targets: vec![Target::Iops(900), throughput, Target::P99(Span::ZERO)] };
        let lack = |iops, bytes_per_s| {
            goal.lack(&Measured { iops, bytes_per_s, p99_ns: 5, ..Measured::default() }, |_| true)
        };
        assert_eq!(lack(600.0, float(1 << 20)), Some(1.5));
        assert_eq!(lack(600.0, float(1 << 19)), Some(2.0));
        assert_eq!(lack(900.0, float(1 << 20)), None);
        assert_eq!(lack(0.0, float(1 << 20)), None, "without a load nothing is known");
        let log = Got { role: Role::Log, got: 300.0, ..role() };
        let measured = Measured { roles: vec![role(), log], ..Measured::default() };
        let lack = |only| Goal::default().lack(&measured, |role| role == only);
        assert_eq!((lack(Role::Data), lack(Role::Log)), (Some(1.5), Some(3.0)));
    }

    #[test]
    fn goals_that_contradict_themselves_are_refused() {
        let jobs = Load::Jobs(weir_workload::JobFile::default());
        let twice = Goal { targets: vec![Target::Iops(1), Target::Iops(2)] };
        assert!(twice.check(&jobs).unwrap_err().to_string().contains("given twice"));
        let (ten, five) = (Span::from_millis(10), Span::from_millis(5));
        let inverse = Goal { targets: vec![Target::Latency(ten), Target::P99(five)] };
        assert!(inverse.check(&jobs).unwrap_err().to_string().contains("below the median"));
        let of_database = Goal { targets: vec![Target::Transactions(1)] };
        assert!(of_database.check(&jobs).is_err());
    }
}

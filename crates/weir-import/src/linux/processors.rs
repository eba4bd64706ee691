//! Processor time, by the names of all these tools.
//!
//! Processors are busy when they are neither idle nor waiting for I/O. Detailed output splits user
//! time into parts, which are added up again, so that shares do not depend on the options of the
//! tool.

use weir_observe::metric::{self as m, Metric};

/// Percentages of a sample, by use of the time.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Processors {
    user: Option<f64>,
    system: Option<f64>,
    wait: Option<f64>,
    steal: Option<f64>,
    idle: Option<f64>,
}

/// A use of processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    User,
    System,
    Wait,
    Steal,
    Idle,
}

impl Part {
    /// Returns the use in a column, if it is a column of processors.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix('%').unwrap_or(name) {
            "usr" | "user" | "us" | "nice" | "guest" | "gnice" | "gu" => Self::User,
            "sys" | "system" | "sy" | "irq" | "soft" => Self::System,
            "iowait" | "wa" => Self::Wait,
            "steal" | "st" => Self::Steal,
            "idle" | "id" => Self::Idle,
            _ => return None,
        })
    }
}

impl Processors {
    /// Returns whether a column is one of processors.
    pub(super) fn has(name: &str) -> bool {
        Part::named(name).is_some()
    }

    /// Adds a column's percentage; returns whether it is a column of processors.
    pub(super) fn add(&mut self, name: &str, percent: f64) -> bool {
        let part = Part::named(name);
        part.into_iter().for_each(|part| self.add_to(part, percent));
        part.is_some()
    }

    /// Adds a percentage to a use.
    pub(super) fn add_to(&mut self, part: Part, percent: f64) {
        let sum = match part {
            Part::User => &mut self.user,
            Part::System => &mut self.system,
            Part::Wait => &mut self.wait,
            Part::Steal => &mut self.steal,
            Part::Idle => &mut self.idle,
        };
        *sum = Some(sum.unwrap_or(0.0) + percent);
    }

    /// Returns the known shares, as fractions of one.
    pub(super) fn shares(self) -> impl Iterator<Item = (&'static Metric, f64)> {
        // Shares add up to something: all zeros mean that the tool has no figures.
        let parts = [self.user, self.system, self.wait, self.steal, self.idle];
        let is_known = parts.iter().flatten().any(|percent| *percent > 0.0);
        let all = if is_known { self } else { Self::default() };
        all.known_shares()
    }

    fn known_shares(self) -> impl Iterator<Item = (&'static Metric, f64)> {
        let busy = self.idle.map(|idle| (100.0 - idle - self.wait.unwrap_or(0.0)).max(0.0));
        let all: [(&'static Metric, Option<f64>); 6] = [
            (&m::CPU, busy),
            (&m::CPU_USER, self.user),
            (&m::CPU_SYSTEM, self.system),
            (&m::CPU_IOWAIT, self.wait),
            (&m::CPU_STEAL, self.steal),
            (&m::CPU_IDLE, self.idle),
        ];
        all.into_iter().filter_map(|(measure, percent)| Some((measure, percent? / 100.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_alone_say_nothing() {
        let mut all = Processors::default();
        for name in ["%user", "%system", "%iowait", "%idle"] {
            all.add(name, 0.0);
        }
        assert_eq!(all.shares().count(), 0);
    }

    #[test]
    fn parts_are_joined() {
        let mut all = Processors::default();
        for (name, percent) in
            [("%usr", 10.0), ("%nice", 1.0), ("%guest", 4.0), ("%idle", 60.0), ("%iowait", 20.0)]
        {
            assert!(all.add(name, percent), "{name}");
        }
        assert!(!all.add("MHz", 2000.0));
        let shares: Vec<_> = all.shares().map(|(m, share)| (m.name, share)).collect();
        assert_eq!(
            shares,
            [("cpu", 0.2), ("cpu_user", 0.15), ("cpu_iowait", 0.2), ("cpu_idle", 0.6)]
        );
    }
}

//! The verdict on a soak: whether the last third of its samples is like the second. The first third is the
//! time in which caches, pools and the heap find their size.

use std::fmt;
use weir_units::Span;

/// A sample of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// The time since the start.
    pub at: Span,
    /// Resident bytes.
    pub memory: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
    /// Bytes that the data folder takes.
    pub space: u64,
    /// Requests over NBD since the last sample.
    pub requests: u64,
    /// Their median latency.
    pub p50: Span,
    /// The latency that 99 % of them do not exceed.
    pub p99: Span,
}

/// A quantity that must stay flat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Memory,
    Descriptors,
    Threads,
    Space,
    Latency,
}

/// The compared statistic of a measure in the second and the last third of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compared {
    measure: Measure,
    second: u64,
    last: u64,
    bound: u64,
}

/// The comparison of the last third of the samples with the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    all: Vec<Compared>,
    /// Requests over NBD in the last third.
    requests: u64,
}

const MEASURES: [Measure; 5] =
    [Measure::Memory, Measure::Descriptors, Measure::Threads, Measure::Space, Measure::Latency];

impl Measure {
    /// Returns the quantity in a sample.
    fn read(self, sample: &Sample) -> u64 {
        match self {
            Self::Memory => sample.memory,
            Self::Descriptors => sample.descriptors,
            Self::Threads => sample.threads,
            Self::Space => sample.space,
            Self::Latency => sample.p50.nanos(),
        }
    }

    /// Returns the statistic that is compared: the median, which hides single peaks, or the 20th percentile.
    ///
    /// A backup and its clients add a dozen descriptors and threads while they run, on a slow machine for
    /// more than half of the time. Clients that reconnect have none for a moment, so the lowest count varies
    /// by as much. The 20th percentile hides both; a leak raises it.
    fn statistic(self, samples: &[Sample]) -> u64 {
        let mut values: Vec<u64> = samples.iter().map(|sample| self.read(sample)).collect();
        values.sort_unstable();
        let at = match self {
            Self::Descriptors | Self::Threads => values.len() / 5,
            Self::Memory | Self::Space | Self::Latency => values.len() / 2,
        };
        values.get(at).copied().unwrap_or_default()
    }

    /// Returns the highest value of the last third for one of the second.
    ///
    /// The margins are for what these statistics do not hide: the heap keeps what it was given,
    /// and a client that leaves is noticed late. Latency is bounded loosely, since other programs on the
    /// machine change it at any time; a queue that is never emptied or a list that only grows exceeds any
    /// factor.
    const fn bound(self, second: u64) -> u64 {
        match self {
            Self::Memory => second + second / 10 + (8 << 20),
            Self::Descriptors | Self::Threads => second + 8,
            Self::Space => second + second / 10 + (16 << 20),
            Self::Latency => second * 3 + Span::from_millis(10).nanos(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Descriptors => "descriptors (p20)",
            Self::Threads => "threads (p20)",
            Self::Space => "data folder",
            Self::Latency => "median latency",
        }
    }

    fn words(self, value: u64) -> String {
        match self {
            Self::Memory | Self::Space => mebibytes(value),
            Self::Descriptors | Self::Threads => value.to_string(),
            Self::Latency => millis(Span::from_nanos(value)),
        }
    }
}

impl Verdict {
    /// Compares the thirds of a run.
    #[must_use]
    pub fn compare_thirds(samples: &[Sample]) -> Self {
        let third = samples.len() / 3;
        let (second, last) = samples[third..].split_at((samples.len() - third) / 2);
        let compare = |measure: Measure| {
            let (second, last) = (measure.statistic(second), measure.statistic(last));
            Compared { measure, second, last, bound: measure.bound(second) }
        };
        let requests = last.iter().map(|sample| sample.requests).sum();
        Self { all: MEASURES.map(compare).to_vec(), requests }
    }

    /// Returns whether everything stayed within its bounds, and there was a load.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.requests > 0 && self.exceeded().is_empty()
    }

    /// Returns whether other programs may be the cause, so that a longer run can tell: there was a load, and a bound was
    /// exceeded.
    #[must_use]
    pub fn may_be_noise(&self) -> bool {
        self.requests > 0 && !self.is_flat()
    }

    /// Returns a clause for each measure that exceeds its bound.
    fn exceeded(&self) -> Vec<String> {
        let exceeded = self.all.iter().filter(|own| own.last > own.bound);
        let words = |own: &Compared| {
            let [last, bound] = [own.last, own.bound].map(|value| own.measure.words(value));
            format!("{} of {last} exceeds {bound}", own.measure.name())
        };
        exceeded.map(words).collect()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "measure             second third    last third         bound")?;
        for Compared { measure, second, last, bound } in &self.all {
            let [second, last_words, most] = [second, last, bound].map(|own| measure.words(*own));
            let mark = if last > bound { "  EXCEEDED" } else { "" };
            writeln!(f, "{:<18} {second:>13} {last_words:>13} {most:>13}{mark}", measure.name())?;
        }
        match (self.is_flat(), self.requests) {
            (true, _) => write!(f, "flat"),
            (false, 0) => write!(f, "NO REQUESTS in the last third"),
            (false, _) => write!(f, "NOT FLAT: {}", self.exceeded().join(", ")),
        }
    }
}

impl Sample {
    /// The head of a table of samples.
    pub(super) const HEAD: &str =
        "    time    memory  descriptors  threads  data folder  requests        p50        p99";
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6} s {:>9} {:>12} {:>8} {:>12} {:>9} {:>10} {:>10}",
            self.at.nanos() / 1_000_000_000,
            mebibytes(self.memory),
            self.descriptors,
            self.threads,
            mebibytes(self.space),
            self.requests,
            millis(self.p50),
            millis(self.p99)
        )
    }
}

fn mebibytes(bytes: u64) -> String {
    let tenths = (bytes * 10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

fn millis(span: Span) -> String {
    let hundredths = span.nanos() / 10_000;
    format!("{}.{:02} ms", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns sixty samples with noise, changed by `grow`, which gets their numbers.
    fn samples(grow: impl Fn(u64, &mut Sample)) -> Vec<Sample> {
        let sample = |at: u64| {
            let mut own = Sample {
                at: Span::from_secs(at * 2),
                memory: (40 << 20) + ((at % 7) << 18),
                descriptors: 60 + at % 5,
                threads: 20,
                space: (160 << 20) + ((at % 3) << 20),
                requests: 1000,
                p50: Span::from_micros(15_000 + at % 4 * 900),
                p99: Span::from_millis(60),
            };
            grow(at, &mut own);
            own
        };
        (0..60).map(sample).collect()
    }

    fn exceeded(grow: impl Fn(u64, &mut Sample)) -> Vec<Measure> {
        let verdict = Verdict::compare_thirds(&samples(grow));
        let all: Vec<Measure> =
            verdict.all.iter().filter(|own| own.last > own.bound).map(|own| own.measure).collect();
        assert_eq!(verdict.is_flat(), all.is_empty(), "{verdict}");
        assert_eq!(verdict.may_be_noise(), !all.is_empty(), "{verdict}");
        all
    }

    #[test]
    fn noise_single_peaks_and_a_warm_up_are_no_leaks() {
        assert_eq!(exceeded(|_, _| {}), []);
        let peaks = |at: u64, own: &mut Sample| {
            if at.is_multiple_of(9) {
                own.memory *= 2;
                own.descriptors += 50;
                own.p50 = Span::from_secs(1);
            }
        };
        assert_eq!(exceeded(peaks), []);
        assert_eq!(exceeded(|at, own| own.memory += at.min(20) << 20), []);
        // Slow backups take a minority of the second third, and most of the last one; clients that reconnect
        // are missing from a sample of the second.
        let backups = |at: u64, own: &mut Sample| {
            let runs = if at < 40 { at.is_multiple_of(3) } else { at % 10 < 7 };
            if runs {
                own.descriptors += 12;
                own.threads += 9;
            }
            if at == 30 {
                own.descriptors -= 9;
                own.threads -= 9;
            }
        };
        assert_eq!(exceeded(backups), []);
    }

    #[test]
    fn a_leak_of_each_kind_is_found() {
        assert_eq!(exceeded(|at, own| own.memory += at << 20), [Measure::Memory]);
        assert_eq!(exceeded(|at, own| own.descriptors += at), [Measure::Descriptors]);
        assert_eq!(exceeded(|at, own| own.threads += at), [Measure::Threads]);
        assert_eq!(exceeded(|at, own| own.space += at << 22), [Measure::Space]);
        let slower = |at: u64, own: &mut Sample| {
            own.p50 = Span::from_micros(15_000 * (1 + at * at * at / 1000));
        };
        assert_eq!(exceeded(slower), [Measure::Latency]);
    }

    #[test]
    fn a_run_without_requests_proves_nothing() {
        let verdict = Verdict::compare_thirds(&samples(|_, own| own.requests = 0));
        assert!(!verdict.is_flat() && !verdict.may_be_noise());
        assert!(verdict.to_string().ends_with("NO REQUESTS in the last third"), "{verdict}");
        assert!(!Verdict::compare_thirds(&[]).is_flat());
    }

    #[test]
    fn the_table_names_what_exceeds_its_bound() {
        let text = Verdict::compare_thirds(&samples(|at, own| own.threads += at)).to_string();
        let line = text.lines().find(|line| line.starts_with("threads (p20)")).expect("a line");
        assert_eq!(line, "threads (p20)                 44            64            52  EXCEEDED");
        assert!(text.ends_with("NOT FLAT: threads (p20) of 64 exceeds 52"), "{text}");
    }
}

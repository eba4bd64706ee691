//! Parts of a trace: a window of time, some devices, a sample.

use crate::read::{ReadTrace, TraceError};
use crate::request::Request;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use weir_units::{Instant, Span};

/// A window of a trace, in time since its start. Its end is not part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub from: Option<Span>,
    /// Its end.
    pub to: Option<Span>,
}

/// A sample of one request in N.
///
/// A fixed hash of the request's number decides, so that the same trace gives the same sample and
/// a pattern that repeats every N requests is not caught or missed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample(u64);

impl Sample {
    /// Returns whether the sample contains the request of this number.
    fn contains(self, number: u64) -> bool {
        // SplitMix64, by Sebastiano Vigna; public domain.
        let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)).is_multiple_of(self.0)
    }
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = text.strip_prefix("1/").and_then(|part| part.parse().ok());
        match part {
            Some(0) | None => Err("expected 1/N with N of at least 1, for example 1/10".to_owned()),
            Some(part) => Ok(Self(part)),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1/{}", self.0)
    }
}

/// A part of a trace. Times count from the start of its window.
#[derive(Debug)]
pub struct Selection<T> {
    trace: T,
    window: Window,
    sample: Option<Sample>,
    /// Names of the devices that it has; all if empty.
    wanted: Vec<String>,
    /// For each device of the trace, whether it is wanted.
    is_wanted: Vec<bool>,
    read: u64,
    has_ended: bool,
    /// It ended at the end of its window.
    is_part: bool,
}

impl<T: ReadTrace> Selection<T> {
    /// Selects from a trace. Without names of devices, it has all of them.
    pub fn new(mut trace: T, window: Window, sample: Option<Sample>, wanted: Vec<String>) -> Self {
        if let Some(from) = window.from {
            trace.skip_before(Instant::ZERO + from);
        }
        let wanted = wanted.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let is_wanted = Vec::new();
        Self { trace, window, sample, wanted, is_wanted, read: 0, has_ended: false, is_part: false }
    }

    /// Returns the trace.
    pub const fn trace(&self) -> &T {
        &self.trace
    }

    /// Returns the trace.
    pub const fn trace_mut(&mut self) -> &mut T {
        &mut self.trace
    }

    /// Returns whether it ended at the end of its window, and not at that of the trace.
    #[must_use]
    pub const fn is_part(&self) -> bool {
        self.is_part
    }

    fn wants(&mut self, device: u32) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        let known = self.is_wanted.len();
        let new = self.trace.devices().iter().skip(known).map(|name| self.wanted.contains(name));
        self.is_wanted.extend(new);
        self.is_wanted.get(device as usize).copied().unwrap_or(false)
    }
}

impl<T: ReadTrace> ReadTrace for Selection<T> {
    fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
        let from = self.window.from.unwrap_or_default();
        while !self.has_ended {
            let Some(mut request) = self.trace.next_request()? else { break };
            let since = request.at - Instant::ZERO;
            if self.window.to.is_some_and(|to| since >= to) {
                self.is_part = true;
                break;
            }
            if since < from || !self.wants(request.device) {
                continue;
            }
            self.read += 1;
            if self.sample.is_none_or(|sample| sample.contains(self.read)) {
                request.at = Instant::ZERO + since.saturating_sub(from);
                return Ok(Some(request));
            }
        }
        self.has_ended = true;
        Ok(None)
    }

    fn devices(&self) -> &[String] {
        self.trace.devices()
    }

    fn wanted(&self) -> usize {
        match self.wanted.len() {
            0 => self.trace.wanted(),
            wanted => wanted,
        }
    }

    fn missing(&self) -> Vec<&str> {
        let is_there = |name: &&str| self.trace.devices().iter().any(|device| device == name);
        self.wanted.iter().map(String::as_str).filter(|name| !is_there(name)).collect()
    }

    fn notes(&self) -> Vec<String> {
        self.trace.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Kind;

    /// A request each second, in turn on two devices.
    struct Steady(u64, Vec<String>);

    impl ReadTrace for Steady {
        fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
            let at = Instant::ZERO + Span::from_secs(self.0);
            let device = u32::from(self.0 % 2 == 1);
            self.0 += 1;
            let (kind, offset, len) = (Kind::Read, 0, 512);
            let request = Request { at, device, kind, offset, len, latency: None };
            Ok((self.0 <= 1000).then_some(request))
        }

        fn devices(&self) -> &[String] {
            &self.1
        }

        fn notes(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn seconds(window: Window, sample: Option<&str>, wanted: &[&str]) -> Vec<u64> {
        let trace = Steady(0, vec!["a".to_owned(), "b".to_owned()]);
        let sample = sample.map(|text| text.parse().expect("a sample"));
        let wanted = wanted.iter().map(|name| (*name).to_owned()).collect();
        let mut selection = Selection::new(trace, window, sample, wanted);
        let next = || selection.next_request().expect("a trace");
        std::iter::from_fn(next).map(|request| request.at.nanos() / 1_000_000_000).collect()
    }

    #[test]
    fn a_window_counts_from_its_start_and_excludes_its_end() {
        let window = |from: u64, to: u64| Window {
            from: Some(Span::from_secs(from)),
            to: Some(Span::from_secs(to)),
        };
        assert_eq!(seconds(window(10, 13), None, &[]), [0, 1, 2]);
        assert_eq!(seconds(window(10, 14), None, &["b"]), [1, 3]);
        assert!(seconds(window(1000, 2000), None, &[]).is_empty());
    }

    #[test]
    fn devices_that_a_trace_does_not_have_are_missing() {
        let trace = Steady(0, vec!["a".to_owned(), "b".to_owned()]);
        let wanted = vec!["b".to_owned(), "c".to_owned()];
        let selection = Selection::new(trace, Window::default(), None, wanted);
        assert_eq!(selection.missing(), ["c"]);
    }

    #[test]
    fn a_sample_has_its_part_of_each_device() {
        let whole = Window::default();
        assert_eq!(seconds(whole, Some("1/1"), &[]).len(), 1000);
        for device in ["a", "b"] {
            let count = seconds(whole, Some("1/10"), &[device]).len();
            assert!((35..=65).contains(&count), "{count} of 500");
        }
        for wrong in ["1/0", "0.1", "1/", "2/3"] {
            assert!(wrong.parse::<Sample>().is_err(), "{wrong}");
        }
    }
}

//! A line for each refused request, at a bounded rate.
//!
//! ```text
//! 2026-11-29T02:10:11.123Z refused front=nbd client="10.0.0.7:51234" what="export \"data\"" why=".."
//! 2026-11-29T02:11:20.500Z suppressed front=nbd refusals=1234
//! ```
//!
//! Texts of clients are quoted and escaped, so that no client can break or forge a line. They are paths, names
//! and the headers `Host`, `Origin` and `Sec-Fetch-Site`, never queries, other headers or payloads, which may
//! have secrets.

use crate::notice::{Listening, Notice};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_units::{Instant, Span};
use weir_wall::{Clock, calendar};

/// Lines of a front end that are given at once.
const BURST: u32 = 20;
/// The time after which one more is given.
const REFILL: Span = Span::from_secs(6);
/// Characters of a text that are shown.
const MOST: usize = 200;

/// A part of a server that refuses requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontEnd {
    /// NBD.
    Nbd,
    /// Blobs over REST.
    Blob,
    /// The live page and the metrics.
    Web,
    /// The control socket.
    Control,
}

impl FrontEnd {
    const fn name(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::Blob => "blob",
            Self::Web => "web",
            Self::Control => "control",
        }
    }
}

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The time, in nanoseconds since 1970.
    pub time: u64,
    /// The part of the server that refused it.
    pub front: FrontEnd,
    /// The address of the client, or its process.
    pub client: String,
    /// The request.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, front, client, what, why } = self;
        write!(f, "{} refused front={}", Time(*time), front.name())?;
        write!(f, " client={} what={} why={}", Quoted(client), Quoted(what), Quoted(why))
    }
}

/// Refusals without lines of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppressed {
    /// The time, in nanoseconds since 1970.
    pub time: u64,
    /// The part of the server that refused the requests.
    pub front: FrontEnd,
    /// Their number since the last count.
    pub refusals: u64,
}

impl fmt::Display for Suppressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, front, refusals } = self;
        write!(f, "{} suppressed front={} refusals={refusals}", Time(*time), front.name())
    }
}

/// A time as RFC 3339 has it, in UTC.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0 / 1_000_000).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{time:.3}")
    }
}

/// A text in quotes, in one line and of a bounded length.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(MOST).collect();
        let rest = if shown.len() < self.0.len() { ".." } else { "" };
        write!(f, "{:?}", shown + rest)
    }
}

/// The audit of a server. It passes refusals on as notices.
#[derive(Debug, Clone)]
pub struct Audit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    notices: Listening,
    budgets: Mutex<[Budget; 4]>,
}

/// The lines that a front end may still give.
#[derive(Debug, Clone, Copy)]
struct Budget {
    lines: u32,
    /// Since when one more line is due.
    since: Instant,
    suppressed: u64,
}

/// The lines that a refusal leads to.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    is_shown: bool,
    /// Suppressed refusals whose number is told before it.
    suppressed: u64,
}

impl Audit {
    /// Builds an audit that tells `notices`.
    #[must_use]
    pub fn new(notices: Listening) -> Self {
        let clock = Clock::start();
        let budgets = Mutex::new([Budget::new(clock.now()); 4]);
        Self(Arc::new(Inner { clock, notices, budgets }))
    }

    /// Returns the receiver of all notices of the server.
    pub(crate) fn notices(&self) -> &Listening {
        &self.0.notices
    }

    /// Records a refused request. `what` must have no secrets.
    pub fn refuse(
        &self,
        front: FrontEnd,
        client: &dyn fmt::Display,
        what: &dyn fmt::Display,
        why: &dyn fmt::Display,
    ) {
        let verdict = self.budgets()[front as usize].take(self.0.clock.now());
        let time = calendar();
        if verdict.suppressed > 0 {
            let refusals = verdict.suppressed;
            self.0.notices.tell(Notice::Suppressed(Suppressed { time, front, refusals }));
        }
        if verdict.is_shown {
            let (client, what, why) = (client.to_string(), what.to_string(), why.to_string());
            self.0.notices.tell(Notice::Refused(Refusal { time, front, client, what, why }));
        }
    }

    /// Returns the counts of refusals that were not shown and not counted yet, for the end.
    #[must_use]
    pub fn rest(&self) -> Vec<Suppressed> {
        let mut budgets = self.budgets();
        let fronts = [FrontEnd::Nbd, FrontEnd::Blob, FrontEnd::Web, FrontEnd::Control];
        let counts = fronts.map(|front| {
            let refusals = std::mem::take(&mut budgets[front as usize].suppressed);
            Suppressed { time: calendar(), front, refusals }
        });
        counts.into_iter().filter(|own| own.refusals > 0).collect()
    }

    fn budgets(&self) -> MutexGuard<'_, [Budget; 4]> {
        self.0.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Budget {
    const fn new(now: Instant) -> Self {
        Self { lines: BURST, since: now, suppressed: 0 }
    }

    /// Takes a line at `now`, if there is one.
    fn take(&mut self, now: Instant) -> Verdict {
        while self.lines < BURST && now - self.since >= REFILL {
            self.lines += 1;
            self.since += REFILL;
        }
        if self.lines == BURST {
            self.since = now;
        }
        let is_shown = self.lines > 0;
        if !is_shown {
            self.suppressed += 1;
            return Verdict { is_shown, suppressed: 0 };
        }
        self.lines -= 1;
        Verdict { is_shown, suppressed: std::mem::take(&mut self.suppressed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_client_breaks_or_forges_a_line() {
        let check = |what: &str, expect: &str| {
            let refusal = Refusal {
                time: 1_795_918_211_123_456_789,
                front: FrontEnd::Nbd,
                client: "10.0.0.7:51234".to_owned(),
                what: what.to_owned(),
                why: "it is not allowed".to_owned(),
            };
            let start =
                "2026-11-29T02:10:11.123Z refused front=nbd client=\"10.0.0.7:51234\" what=";
            assert_eq!(
                refusal.to_string(),
                format!("{start}{expect} why=\"it is not allowed\""),
                "{what:?}"
            );
        };
        check("export data", "\"export data\"");
        check("a\nb\r\u{1b}[2J", r#""a\nb\r\u{1b}[2J""#);
        check("a\" why=\"none\\", r#""a\" why=\"none\\""#);
        // Ends of lines and directions of text in Unicode.
        check("\u{2028}\u{85}\u{202e}x", r#""\u{2028}\u{85}\u{202e}x""#);
        check(&"x".repeat(500), &format!("\"{}..\"", "x".repeat(200)));
    }

    #[test]
    fn a_flood_of_refusals_gives_few_lines_and_their_number() {
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let mut budget = Budget::new(at(0));
        let shown = |budget: &mut Budget, second, count: u32| {
            let verdicts = (0..count).map(|_| budget.take(at(second)));
            verdicts.fold((0, 0), |(lines, counted), own| {
                (lines + u32::from(own.is_shown), counted + own.suppressed)
            })
        };
        assert_eq!(shown(&mut budget, 1, 1000), (20, 0));
        assert_eq!(shown(&mut budget, 2, 1000), (0, 0));
        // One more line, and with it the count.
        assert_eq!(shown(&mut budget, 7, 1000), (1, 1980));
        assert_eq!(budget.suppressed, 999);
        // A long silence does not save up more lines than at the start.
        assert_eq!(shown(&mut budget, 100_000, 30), (20, 999));
    }

    #[test]
    fn each_front_end_has_lines_of_its_own_and_the_rest_is_counted_at_the_end() {
        let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let hear = Arc::clone(&told);
        let audit = Audit::new(Listening::with(move |notice| hear.lock().unwrap().push(notice)));
        for _ in 0..50 {
            audit.refuse(FrontEnd::Blob, &"a", &"b", &"c");
        }
        audit.refuse(FrontEnd::Nbd, &"a", &"b", &"c");
        let told = std::mem::take(&mut *told.lock().unwrap());
        let of = |front| {
            let is_own = |own: &&Notice| matches!(own, Notice::Refused(own) if own.front == front);
            told.iter().filter(is_own).count()
        };
        assert_eq!((of(FrontEnd::Blob), of(FrontEnd::Nbd)), (20, 1));
        let rest: Vec<_> = audit.rest().iter().map(|own| (own.front, own.refusals)).collect();
        assert_eq!(rest, [(FrontEnd::Blob, 30)]);
        assert_eq!(audit.rest(), []);
    }
}

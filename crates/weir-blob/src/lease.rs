//! Leases: exclusive write access for a limited time.
//!
//! ```text
//!   available --acquire--> leased --break--> breaking --time--> broken
//!       ^                   |  ^                                  |
//!       +-----release-------+  +------------acquire---------------+
//! ```
//!
//! Source: the tables of "Lease Blob", Microsoft. An expired lease can be renewed by its holder until
//! the resource changes, and acquired by any client.

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The lease of a resource, which may be available.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    id: Option<String>,
    /// Duration in seconds; `None` for an infinite lease.
    duration: Option<u64>,
    /// End of the lease, or of its break period.
    until: Option<Moment>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    #[default]
    Available,
    Leased,
    Breaking,
}

/// The states of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "see the module")]
pub enum State {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

impl State {
    /// Returns the value of `x-ms-lease-state`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Leased => "leased",
            Self::Expired => "expired",
            Self::Breaking => "breaking",
            Self::Broken => "broken",
        }
    }

    /// Returns the value of `x-ms-lease-status`.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Leased | Self::Breaking => "locked",
            _ => "unlocked",
        }
    }
}

/// The kind of leased resource, which determines error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says it")]
pub enum Leased {
    Blob,
    Container,
}

/// The result of a lease operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// HTTP status.
    pub status: u16,
    /// The lease id, if the response contains it.
    pub id: Option<String>,
    /// Remaining seconds of the break period.
    pub left: Option<u64>,
}

impl Lease {
    /// Returns the state at `now`.
    #[must_use]
    pub fn state(&self, now: Moment) -> State {
        let over = self.until.is_some_and(|until| until <= now);
        match (self.stage, over) {
            (Stage::Available, _) => State::Available,
            (Stage::Leased, false) => State::Leased,
            (Stage::Leased, true) => State::Expired,
            (Stage::Breaking, false) => State::Breaking,
            (Stage::Breaking, true) => State::Broken,
        }
    }

    /// Returns the end of exclusive access; `None` if the lease is not held.
    #[must_use]
    pub(crate) fn held_until(&self, now: Moment) -> Option<Moment> {
        match self.state(now) {
            State::Leased | State::Breaking => Some(self.until.unwrap_or(Moment::FAR)),
            _ => None,
        }
    }

    /// Builds the lease that a writing client of the blob's export is represented by.
    #[must_use]
    pub fn of_export() -> Self {
        let id = Some(String::new());
        Self { id, duration: None, until: None, stage: Stage::Leased }
    }

    /// Returns `infinite` or `fixed`; `None` if the resource is not leased.
    #[must_use]
    pub fn duration(&self, now: Moment) -> Option<&'static str> {
        let leased = self.state(now) == State::Leased;
        leased.then_some(if self.duration.is_some() { "fixed" } else { "infinite" })
    }

    /// Checks that a request with the lease id `given` may write.
    ///
    /// # Errors
    ///
    /// [`Code::LeaseIdMissing`] and related codes.
    pub(crate) fn check_write(&self, of: Leased, given: Option<&str>, now: Moment) -> Result<()> {
        match (self.state(now), given) {
            (State::Leased | State::Breaking, None) => Err(Code::LeaseIdMissing.into()),
            (_, None) => Ok(()),
            (_, Some(given)) => self.check_given(of, given, now),
        }
    }

    /// Checks that a request with the lease id `given` may read.
    ///
    /// # Errors
    ///
    /// As for [`check_write`](Self::check_write), except that no id is needed.
    pub(crate) fn check_read(&self, of: Leased, given: Option<&str>, now: Moment) -> Result<()> {
        given.map_or(Ok(()), |given| self.check_given(of, given, now))
    }

    fn check_given(&self, of: Leased, given: &str, now: Moment) -> Result<()> {
        let (mismatch, absent) = match of {
            Leased::Blob => {
                (Code::LeaseIdMismatchWithBlobOperation, Code::LeaseNotPresentWithBlobOperation)
            }
            Leased::Container => (
                Code::LeaseIdMismatchWithContainerOperation,
                Code::LeaseNotPresentWithContainerOperation,
            ),
        };
        let is_own = self.is(given);
        Err(match self.state(now) {
            State::Leased | State::Breaking if is_own => return Ok(()),
            State::Leased | State::Breaking => mismatch,
            State::Expired | State::Broken if is_own => Code::LeaseLost,
            _ => absent,
        }
        .into())
    }

    fn is(&self, id: &str) -> bool {
        self.id.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(id))
    }

    /// Executes a lease operation at the request's `now`. `new_id` returns a unique id.
    ///
    /// # Errors
    ///
    /// The codes of the tables. The lease is then unchanged.
    pub fn act(&mut self, head: &Head, new_id: impl FnOnce() -> String) -> Result<Done> {
        let now = head.now;
        let action = head.needs("x-ms-lease-action")?;
        let proposed = head.header("x-ms-proposed-lease-id");
        if let Some(proposed) = proposed
            && !is_guid(proposed)
        {
            return Err(Fault::header("x-ms-proposed-lease-id", proposed));
        }
        let own = || head.needs("x-ms-lease-id");
        let done = |status, id: &Option<String>| Done { status, id: id.clone(), left: None };
        match action.to_ascii_lowercase().as_str() {
            "acquire" => {
                let duration = parse_duration(head)?;
                self.acquire(proposed.map(str::to_owned), duration, now, new_id)?;
                Ok(done(201, &self.id))
            }
            "renew" => self.renew(own()?, now).map(|()| done(200, &self.id)),
            "change" => {
                let proposed = head.needs("x-ms-proposed-lease-id")?;
                self.change(own()?, proposed, now).map(|()| done(200, &self.id))
            }
            "release" => self.release(own()?).map(|()| done(200, &None)),
            "break" => {
                let period = head.number("x-ms-lease-break-period")?;
                if let Some(period) = period.filter(|period| *period > 60) {
                    return Err(Fault::header("x-ms-lease-break-period", &period.to_string()));
                }
                let left = self.break_it(period, now)?;
                Ok(Done { status: 202, id: None, left: Some(left) })
            }
            _ => Err(Fault::header("x-ms-lease-action", action)),
        }
    }

    fn acquire(
        &mut self,
        proposed: Option<String>,
        duration: Option<u64>,
        now: Moment,
        new_id: impl FnOnce() -> String,
    ) -> Result<()> {
        let is_own = proposed.as_deref().is_some_and(|id| self.is(id));
        match self.state(now) {
            State::Leased if !is_own => return Err(Code::LeaseAlreadyPresent.into()),
            State::Breaking if is_own => {
                return Err(Code::LeaseIsBreakingAndCannotBeAcquired.into());
            }
            State::Breaking => return Err(Code::LeaseAlreadyPresent.into()),
            _ => {}
        }
        self.id = Some(proposed.unwrap_or_else(new_id));
        self.duration = duration;
        self.stage = Stage::Leased;
        self.until = duration.map(|secs| now.plus_secs(secs));
        Ok(())
    }

    fn renew(&mut self, id: &str, now: Moment) -> Result<()> {
        match self.state(now) {
            // Also of a lease that a change has ended.
            State::Available => Err(Code::LeaseIdMismatchWithLeaseOperation.into()),
            _ if !self.is(id) => Err(Code::LeaseIdMismatchWithLeaseOperation.into()),
            State::Breaking | State::Broken => Err(Code::LeaseIsBrokenAndCannotBeRenewed.into()),
            State::Leased | State::Expired => {
                self.until = self.duration.map(|secs| now.plus_secs(secs));
                Ok(())
            }
        }
    }

    fn change(&mut self, id: &str, proposed: &str, now: Moment) -> Result<()> {
        match self.state(now) {
            State::Leased if self.is(id) || self.is(proposed) => {
                self.id = Some(proposed.to_owned());
                Ok(())
            }
            State::Breaking if self.is(id) => Err(Code::LeaseIsBreakingAndCannotBeChanged.into()),
            State::Leased | State::Breaking => Err(Code::LeaseIdMismatchWithLeaseOperation.into()),
            _ => Err(Code::LeaseNotPresentWithLeaseOperation.into()),
        }
    }

    fn release(&mut self, id: &str) -> Result<()> {
        if self.stage == Stage::Available || !self.is(id) {
            return Err(Code::LeaseIdMismatchWithLeaseOperation.into());
        }
        *self = Self::default();
        Ok(())
    }

    /// Starts the break period and returns its length in seconds, rounded. Breaking again can only
    /// shorten the period.
    fn break_it(&mut self, period: Option<u64>, now: Moment) -> Result<u64> {
        let end = match self.state(now) {
            State::Available => return Err(Code::LeaseNotPresentWithLeaseOperation.into()),
            State::Expired | State::Broken => now,
            State::Leased | State::Breaking => {
                let asked = period.map(|secs| now.plus_secs(secs));
                // An infinite lease without a period ends at once.
                asked.into_iter().chain(self.until).min().unwrap_or(now)
            }
        };
        self.stage = Stage::Breaking;
        self.until = Some(end);
        Ok((end.0.saturating_sub(now.0) + SECOND / 2) / SECOND)
    }

    /// Ends a lease that has expired or is broken, because the resource changes. Its holder must not
    /// renew it, since that would hide the change.
    pub(crate) fn end_unless_held(&mut self, now: Moment) {
        if matches!(self.state(now), State::Expired | State::Broken) {
            *self = Self::default();
        }
    }
}

fn parse_duration(head: &Head) -> Result<Option<u64>> {
    match head.needs("x-ms-lease-duration")? {
        "-1" => Ok(None),
        text => match text.parse() {
            Ok(secs @ 15..=60) => Ok(Some(secs)),
            _ => Err(Fault::header("x-ms-lease-duration", text)),
        },
    }
}

/// Returns whether `text` has 32 hexadecimal digits, with or without hyphens and braces.
fn is_guid(text: &str) -> bool {
    let bare = text.trim_matches(['{', '}', '(', ')']);
    let digits = bare.chars().filter(|c| *c != '-');
    let hex = bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    hex && digits.count() == 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "ca761232-ed42-11ce-bacd-00aa0057b223";

    /// Acts at a time in nanoseconds. Returns the remaining time, or the code.
    fn act(lease: &mut Lease, at: u64, headers: &[(&'static str, &str)]) -> Result<Option<u64>> {
        let mut head = crate::tests::head();
        head.now = Moment(at);
        head.headers.insert("x-ms-lease-id", ID.parse().unwrap());
        for (name, value) in headers {
            head.headers.insert(*name, value.parse().unwrap());
        }
        lease.act(&head, || ID.to_owned()).map(|done| done.left)
    }

    fn acquired(duration: &str) -> Lease {
        let mut lease = Lease::default();
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", duration)];
        act(&mut lease, 0, &acquire).unwrap();
        lease
    }

    #[test]
    fn breaking_again_does_not_prolong_the_break_period() {
        let mut lease = acquired("15");
        let step = [("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "3")];
        let left: Vec<_> = (0..6).map(|n| act(&mut lease, n * 501_000_000, &step)).collect();
        assert_eq!(left, [3, 2, 2, 1, 1, 0].map(|secs| Ok(Some(secs))));
        assert_eq!(lease.state(Moment(3 * SECOND - 1)), State::Breaking);
        assert_eq!(lease.state(Moment(3 * SECOND)), State::Broken);
        assert_eq!(act(&mut acquired("-1"), 0, &step[..1]), Ok(Some(0)));
        let long = [step[0], ("x-ms-lease-break-period", "60")];
        assert_eq!(act(&mut acquired("15"), SECOND, &long), Ok(Some(14)));
    }

    #[test]
    fn an_expired_lease_cannot_be_renewed_after_a_change() {
        let (at, renew) = (16 * SECOND, [("x-ms-lease-action", "renew")]);
        let mut lease = acquired("15");
        assert_eq!(act(&mut lease.clone(), at, &renew), Ok(None));
        lease.end_unless_held(Moment(SECOND));
        assert_eq!(act(&mut lease.clone(), at, &renew), Ok(None));
        lease.end_unless_held(Moment(at));
        let refused = act(&mut lease, at, &renew);
        assert_eq!(refused, Err(Code::LeaseIdMismatchWithLeaseOperation.into()));
    }
}

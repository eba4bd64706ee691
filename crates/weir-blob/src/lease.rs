//! Leases: who alone may write, for how long.
//!
//! ```text
//!   available --acquire--> leased --break--> breaking --time--> broken
//!       ^                   |  ^                                  |
//!       +-----release-------+  +------------acquire---------------+
//! ```
//!
//! As in the tables of "Lease Blob", Microsoft. A lease that has run out may be renewed by
//! its holder, and acquired by anybody.

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// A lease, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    id: Option<String>,
    /// In seconds; without an end if not said.
    duration: Option<u64>,
    /// When it runs out, or is broken.
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

/// How it stands.
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
    /// As in `x-ms-lease-state`.
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

    /// As in `x-ms-lease-status`.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Leased | Self::Breaking => "locked",
            _ => "unlocked",
        }
    }
}

/// What is leased, for the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says it")]
pub enum Leased {
    Blob,
    Container,
}

/// What came of an action on a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The status of the answer.
    pub status: u16,
    /// The lease, if the answer names it.
    pub id: Option<String>,
    /// Seconds until it is broken.
    pub left: Option<u64>,
}

impl Lease {
    /// How it stands at `now`.
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

    /// Until when nobody else may write; `None` if anybody may.
    #[must_use]
    pub fn held_until(&self, now: Moment) -> Option<Moment> {
        match self.state(now) {
            State::Leased | State::Breaking => Some(self.until.unwrap_or(Moment::FAR)),
            _ => None,
        }
    }

    /// The lease of a client of the blob's export that writes to it.
    #[must_use]
    pub fn of_export() -> Self {
        let id = Some(String::new());
        Self { id, duration: None, until: None, stage: Stage::Leased }
    }

    /// `infinite` or `fixed`, while it is leased.
    #[must_use]
    pub fn duration(&self, now: Moment) -> Option<&'static str> {
        let leased = self.state(now) == State::Leased;
        leased.then_some(if self.duration.is_some() { "fixed" } else { "infinite" })
    }

    /// Whether a request that gives the lease `given` may change what is leased.
    ///
    /// # Errors
    ///
    /// [`Code::LeaseIdMissing`] and its kin.
    pub fn check_write(&self, of: Leased, given: Option<&str>, now: Moment) -> Result<()> {
        match (self.state(now), given) {
            (State::Leased | State::Breaking, None) => Err(Code::LeaseIdMissing.into()),
            (_, None) => Ok(()),
            (_, Some(given)) => self.check_given(of, given, now),
        }
    }

    /// Whether a request that gives the lease `given` may read what is leased.
    ///
    /// # Errors
    ///
    /// As of [`check_write`](Self::check_write), but that none needs to be given.
    pub fn check_read(&self, of: Leased, given: Option<&str>, now: Moment) -> Result<()> {
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

    /// Does what a request asks of the lease at its `now`. `new_id` makes an id that was
    /// never used.
    ///
    /// # Errors
    ///
    /// The codes of the tables; nothing is changed then.
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
                let duration = duration_of(head)?;
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
            State::Available => Err(Code::LeaseNotPresentWithLeaseOperation.into()),
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

    /// Returns how many seconds are left until it is broken.
    fn break_it(&mut self, period: Option<u64>, now: Moment) -> Result<u64> {
        let nanos = |until: Moment| until.0.saturating_sub(now.0);
        let left = match self.state(now) {
            State::Available => return Err(Code::LeaseNotPresentWithLeaseOperation.into()),
            State::Expired | State::Broken => 0,
            State::Leased | State::Breaking => {
                let most = self.until.map(|until| nanos(until).div_ceil(1_000_000_000));
                match (period, most) {
                    (Some(period), Some(most)) => period.min(most),
                    (Some(period), None) => period,
                    (None, Some(most)) => most,
                    (None, None) => 0,
                }
            }
        };
        self.stage = Stage::Breaking;
        self.until = Some(now.plus_secs(left));
        Ok(left)
    }
}

fn duration_of(head: &Head) -> Result<Option<u64>> {
    match head.needs("x-ms-lease-duration")? {
        "-1" => Ok(None),
        text => match text.parse() {
            Ok(secs @ 15..=60) => Ok(Some(secs)),
            _ => Err(Fault::header("x-ms-lease-duration", text)),
        },
    }
}

/// 32 hexadecimal digits, with or without the usual hyphens and braces.
fn is_guid(text: &str) -> bool {
    let bare = text.trim_matches(['{', '}', '(', ')']);
    let digits = bare.chars().filter(|c| *c != '-');
    let hex = bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    hex && digits.count() == 32
}

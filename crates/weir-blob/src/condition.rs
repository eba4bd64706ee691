//! Conditional requests: conditions on ETags, times and tags.

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::tags::{self, Tags};
use crate::time::Moment;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An ETag. Every state of a resource has a different one, even across a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Etag(pub u64);

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016X}", self.0)
    }
}

impl Etag {
    /// Returns the value of an `ETag` header.
    #[must_use]
    pub fn quoted(self) -> String {
        format!("\"{self}\"")
    }

    /// Returns whether a condition's list contains it, quoted or not, or is `*`.
    fn is_in(self, list: &str) -> bool {
        let own = self.to_string();
        list.split(',')
            .map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'))
            .any(|tag| tag == "*" || tag.eq_ignore_ascii_case(&own))
    }
}

/// The properties of a resource that conditions are checked against.
#[derive(Debug, Clone, Copy)]
pub struct State<'a> {
    /// The resource's ETag.
    pub etag: Etag,
    /// Time of the last change.
    pub modified: Moment,
    /// The blob's tags.
    pub tags: &'a Tags,
}

/// The conditions of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    matches: Option<String>,
    none_match: Option<String>,
    modified_since: Option<Moment>,
    unmodified_since: Option<Moment>,
    tags: Option<tags::Condition>,
}

/// The resource that conditions apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The resource of the request.
    Target,
    /// The source of a copy.
    Source,
}

impl Conditions {
    /// Parses the conditions of a request.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidHeaderValue`].
    pub fn parse(head: &Head, subject: Subject) -> Result<Self> {
        let name = |own: &'static str, source: &'static str| match subject {
            Subject::Target => own,
            Subject::Source => source,
        };
        let text = |name: &str| head.header(name).map(str::to_owned);
        let time = |name: &str| -> Result<Option<Moment>> {
            let parse = |text| Moment::parse_http(text).ok_or_else(|| Fault::header(name, text));
            head.header(name).map(parse).transpose()
        };
        let tags = name("x-ms-if-tags", "x-ms-source-if-tags");
        Ok(Self {
            matches: text(name("if-match", "x-ms-source-if-match")),
            none_match: text(name("if-none-match", "x-ms-source-if-none-match")),
            modified_since: time(name("if-modified-since", "x-ms-source-if-modified-since"))?,
            unmodified_since: time(name("if-unmodified-since", "x-ms-source-if-unmodified-since"))?,
            tags: head.header(tags).map(|text| tags::Condition::parse(text, tags)).transpose()?,
        })
    }

    /// Returns whether there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the conditions for a read.
    ///
    /// # Errors
    ///
    /// [`Code::ConditionNotMet`], with status 304 if the client's copy is current.
    /// [`Code::UnsatisfiableCondition`] for `If-None-Match: *`, which no existing resource meets.
    pub(crate) fn check_read(&self, state: State<'_>) -> Result<()> {
        if self.none_match.as_deref() == Some("*") {
            return Err(Code::UnsatisfiableCondition.into());
        }
        self.check_write(state).map_err(|fault| {
            let has_it = self.none_match.is_some() || self.modified_since.is_some();
            let holds = Self { none_match: None, modified_since: None, ..self.clone() };
            if has_it && holds.check_write(state).is_ok() {
                fault.with_status(StatusCode::NOT_MODIFIED)
            } else {
                fault
            }
        })
    }

    /// Checks the conditions for a write.
    ///
    /// # Errors
    ///
    /// [`Code::ConditionNotMet`].
    pub(crate) fn check_write(&self, state: State<'_>) -> Result<()> {
        // HTTP dates have a resolution of one second.
        let modified = state.modified.secs();
        let matches = self.matches.as_deref().is_none_or(|list| state.etag.is_in(list));
        let unmodified = self.unmodified_since.is_none_or(|since| modified <= since.secs());
        let tags = self.tags.as_ref().is_none_or(|condition| condition.holds(state.tags));
        // If both are given, either of them suffices.
        let is_other = self.none_match.as_deref().map(|list| !state.etag.is_in(list));
        let is_newer = self.modified_since.map(|since| modified > since.secs());
        let is_new = match (is_other, is_newer) {
            (None, None) => true,
            (a, b) => a == Some(true) || b == Some(true),
        };
        if matches && unmodified && tags && is_new {
            Ok(())
        } else {
            Err(Code::ConditionNotMet.into())
        }
    }

    /// Checks the conditions for the source of a copy.
    ///
    /// # Errors
    ///
    /// [`Code::SourceConditionNotMet`].
    pub(crate) fn check_source(&self, state: State<'_>) -> Result<()> {
        self.check_write(state).map_err(|_| Code::SourceConditionNotMet.into())
    }

    /// Checks the conditions for creating a resource, which may replace the existing one in
    /// `state`.
    ///
    /// # Errors
    ///
    /// [`Code::BlobAlreadyExists`] if the request excludes replacement, [`Code::ConditionNotMet`].
    pub(crate) fn check_make(&self, state: Option<State<'_>>) -> Result<()> {
        match state {
            Some(_) if self.none_match.as_deref() == Some("*") => {
                Err(Code::BlobAlreadyExists.into())
            }
            Some(state) => self.check_write(state),
            None if self.matches.is_some() || self.tags.is_some() => {
                Err(Code::ConditionNotMet.into())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODIFIED: Moment = Moment(1_795_305_909_500_000_000);
    const AT: &str = "Sun, 22 Nov 2026 00:05:09 GMT";
    const BEFORE: &str = "Sun, 22 Nov 2026 00:05:08 GMT";

    fn conditions(headers: &[(&'static str, &str)]) -> Conditions {
        let mut head = crate::tests::head();
        for (name, value) in headers {
            head.headers.insert(*name, value.parse().unwrap());
        }
        Conditions::parse(&head, Subject::Target).unwrap()
    }

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], write: bool, read: u16) {
        let tags = Tags::default();
        let state = State { etag: Etag(0xAB), modified: MODIFIED, tags: &tags };
        let conditions = conditions(headers);
        assert_eq!(conditions.check_write(state).is_ok(), write, "{headers:?}");
        let got = conditions.check_read(state).map_or_else(|f| f.status().as_u16(), |()| 200);
        assert_eq!(got, read, "{headers:?}");
    }

    #[test]
    fn conditions_are_evaluated() {
        check(&[], true, 200);
        check(&[("if-match", "\"0x00000000000000AB\"")], true, 200);
        check(&[("if-match", "0x00000000000000AB")], true, 200);
        check(&[("if-match", "*")], true, 200);
        check(&[("if-match", "\"0x1\", \"0x00000000000000AB\"")], true, 200);
        check(&[("if-match", "\"0x1\"")], false, 412);
        check(&[("if-none-match", "\"0x00000000000000AB\"")], false, 304);
        check(&[("if-none-match", "\"0x1\"")], true, 200);
        check(&[("if-modified-since", AT)], false, 304);
        check(&[("if-modified-since", BEFORE)], true, 200);
        check(&[("if-unmodified-since", AT)], true, 200);
        check(&[("if-unmodified-since", BEFORE)], false, 412);
        check(&[("if-none-match", "\"0x1\""), ("if-modified-since", AT)], true, 200);
        check(&[("if-none-match", "*"), ("if-unmodified-since", BEFORE)], false, 400);
    }

    #[test]
    fn if_none_match_excludes_replacement() {
        let tags = Tags::default();
        let state = State { etag: Etag(1), modified: MODIFIED, tags: &tags };
        let new = conditions(&[("if-none-match", "*")]);
        assert_eq!(new.check_make(None), Ok(()));
        assert_eq!(new.check_make(Some(state)), Err(Code::BlobAlreadyExists.into()));
        let old = conditions(&[("if-match", "*")]);
        assert_eq!(old.check_make(None), Err(Code::ConditionNotMet.into()));
        assert_eq!(old.check_make(Some(state)), Ok(()));
    }
}

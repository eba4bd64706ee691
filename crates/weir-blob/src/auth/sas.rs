//! Shared access signatures: verification of the signed text, and permissions.
//!
//! Source: "Create an account SAS" and "Create a service SAS", Microsoft. Versions before
//! 2015-04-05 are not supported.

use super::account::Account;
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::time::Moment;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Also the message for unknown accounts, so that it does not show which exist.
pub(super) const NOT_SIGNED: &str = "the signature did not match";

/// A stored access policy of a container, which signatures can refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Identifier within the container.
    pub id: String,
    /// Start of validity.
    pub start: Option<String>,
    /// End of validity.
    pub expiry: Option<String>,
    /// Permission letters.
    pub permission: Option<String>,
}

/// The policies of containers, by account and container.
pub type Policies = BTreeMap<(String, String), Vec<Policy>>;

/// The permissions of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permits {
    /// The permission letters.
    pub permissions: String,
    /// The resources that they apply to.
    pub scope: Scope,
}

/// The resources that a signature applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// An account, with the resource types `s`, `c` and `o` that it permits.
    Account(String),
    /// A container and its blobs.
    Container,
    /// A blob.
    Blob,
    /// A snapshot of a blob.
    Snapshot,
}

/// The resource type of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The account's service.
    Service,
    /// A container.
    Container,
    /// A blob.
    Object,
    /// Any of them: the requests within are checked on their own.
    Any,
}

impl Permits {
    /// Checks that one of `letters` is permitted on `level`. A service SAS permits listing and finding
    /// the blobs of a container, and access to them, but no other operation on the container.
    ///
    /// # Errors
    ///
    /// [`Code::AuthorizationPermissionMismatch`], [`Code::AuthorizationResourceTypeMismatch`].
    pub fn check(&self, level: Level, letters: &str, only_lists: bool) -> Result<()> {
        let reaches = match (&self.scope, level) {
            (Scope::Account(levels), Level::Service) => levels.contains('s'),
            (Scope::Account(levels), Level::Container) => levels.contains('c'),
            (Scope::Account(levels), Level::Object) => levels.contains('o'),
            (Scope::Account(levels), Level::Any) => levels.contains(['s', 'c', 'o']),
            (Scope::Container, Level::Object | Level::Any) => true,
            (Scope::Container, Level::Container) => only_lists,
            (Scope::Blob | Scope::Snapshot, Level::Object) => true,
            _ => false,
        };
        if !reaches {
            let code = match self.scope {
                Scope::Account(_) => Code::AuthorizationResourceTypeMismatch,
                _ => Code::AuthorizationFailure,
            };
            return Err(code.into());
        }
        if letters.chars().any(|letter| self.permissions.contains(letter)) {
            Ok(())
        } else {
            Err(Code::AuthorizationPermissionMismatch.into())
        }
    }
}

/// Verifies a signature and returns its permissions.
pub(super) fn verify(head: &Head, account: &Account, policies: &Policies) -> Result<Permits> {
    let version = head.param("sv").ok_or_else(|| Fault::unauthenticated("sv is mandatory"))?;
    if Moment::parse_iso(version).is_none() || version < "2015-04-05" {
        return Err(Fault::unauthenticated("sv is not 2015-04-05 or later"));
    }
    if head.param("skoid").is_some() {
        return Err(Fault::not_implemented("user delegation SAS"));
    }
    if head.param("ss").is_some() {
        verify_account(head, account, version)
    } else {
        verify_service(head, account, version, policies)
    }
}

fn verify_account(head: &Head, account: &Account, version: &str) -> Result<Permits> {
    let get = |name: &str| head.param(name).unwrap_or_default();
    let mut lines = vec![&*account.name];
    lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(get));
    if version >= "2020-12-06" {
        lines.push(get("ses"));
    }
    check_signature(head, account, &format!("{}\n", lines.join("\n")))?;
    let none = Policy::default();
    check_terms(head, &none)?;
    if !get("ss").contains('b') {
        return Err(Code::AuthorizationServiceMismatch.into());
    }
    let scope = Scope::Account(get("srt").to_owned());
    Ok(Permits { permissions: get("sp").to_owned(), scope })
}

fn verify_service(
    head: &Head,
    account: &Account,
    version: &str,
    policies: &Policies,
) -> Result<Permits> {
    let get = |name: &str| head.param(name).unwrap_or_default();
    let container = head.target.container.as_deref();
    let container = container.ok_or(Code::AuthorizationResourceTypeMismatch)?;
    let blob = head.target.blob.as_deref();
    let scope = match (get("sr"), blob) {
        ("c", _) => Scope::Container,
        ("b", Some(_)) => Scope::Blob,
        ("bs", Some(_)) => Scope::Snapshot,
        ("b" | "bs", None) => return Err(Code::AuthorizationFailure.into()),
        ("d", _) => return Err(Fault::not_implemented("directory SAS")),
        _ => return Err(Fault::unauthenticated("sr is not c, b or bs")),
    };
    let signed = |resource: &str| {
        let mut lines = ["sp", "st", "se"].map(get).to_vec();
        lines.push(resource);
        lines.extend(["si", "sip", "spr", "sv"].map(get));
        if version >= "2018-11-09" {
            lines.push(get("sr"));
            lines.push(if scope == Scope::Snapshot { get("snapshot") } else { "" });
        }
        if version >= "2020-12-06" {
            lines.push(get("ses"));
        }
        lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(get));
        check_signature(head, account, &lines.join("\n"))
    };
    let resource = format!("/blob/{}/{container}", account.name);
    match blob.filter(|_| scope != Scope::Container) {
        None => signed(&resource)?,
        Some(blob) => {
            // Clients sign the name as they have it, which may have backslashes.
            let as_sent = name_as_sent(&head.path, blob).filter(|name| name != blob);
            let as_sent = as_sent.map(|name| signed(&format!("{resource}/{name}")));
            let as_read = signed(&format!("{resource}/{blob}"));
            as_sent.map_or(as_read.clone(), |own| own.or(as_read))?;
        }
    }
    // A signature for a snapshot needs one; a signature for a blob includes its snapshots.
    if scope == Scope::Snapshot && head.param("snapshot").is_none() {
        return Err(Code::AuthorizationFailure.into());
    }
    let none = Policy::default();
    let policy = match head.param("si") {
        None => &none,
        Some(id) => {
            let key = (account.name.clone(), container.to_owned());
            let kept = policies.get(&key).into_iter().flatten().find(|policy| policy.id == id);
            kept.ok_or_else(|| {
                Fault::unauthenticated("the container has no policy with the signed identifier")
            })?
        }
    };
    check_terms(head, policy)?;
    let permissions = match (head.param("sp"), &policy.permission) {
        (Some(_), Some(_)) => {
            return Err(Fault::unauthenticated("sp is in both the signature and its policy"));
        }
        (Some(own), None) => own.to_owned(),
        (None, kept) => kept.clone().unwrap_or_default(),
    };
    Ok(Permits { permissions, scope })
}

/// Returns the name of a blob as it is in the path, with backslashes for some of its slashes.
fn name_as_sent(path: &str, blob: &str) -> Option<String> {
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let name = path.get(path.len().checked_sub(blob.len())?..)?;
    (name.replace('\\', "/") == blob).then(|| name.to_owned())
}

fn check_signature(head: &Head, account: &Account, text: &str) -> Result<()> {
    let signature = head.param("sig").unwrap_or_default();
    if account.signed(text, signature) { Ok(()) } else { Err(Fault::unauthenticated(NOT_SIGNED)) }
}

/// Checks the times, addresses and protocols that a signature is restricted to.
fn check_terms(head: &Head, policy: &Policy) -> Result<()> {
    let time = |name: &str, kept: &Option<String>| -> Result<Option<Moment>> {
        let text = match (head.param(name), kept) {
            (Some(_), Some(_)) => {
                return Err(Fault::unauthenticated(
                    "a time is in both the signature and its policy",
                ));
            }
            (Some(own), None) => own,
            (None, Some(kept)) => kept,
            (None, None) => return Ok(None),
        };
        Moment::parse_iso(text)
            .map(Some)
            .ok_or_else(|| Fault::unauthenticated("st or se is not a time"))
    };
    if time("st", &policy.start)?.is_some_and(|start| head.now < start) {
        return Err(Fault::unauthenticated("the signature is not valid yet"));
    }
    match time("se", &policy.expiry)? {
        None => return Err(Fault::unauthenticated("se is mandatory")),
        Some(expiry) if head.now >= expiry => {
            return Err(Fault::unauthenticated("the signature has expired"));
        }
        Some(_) => {}
    }
    match head.param("spr") {
        None | Some("https,http" | "http,https") => {}
        Some("https") if head.secure => {}
        Some(_) => return Err(Code::AuthorizationProtocolMismatch.into()),
    }
    if let Some(range) = head.param("sip")
        && !in_range(head.from.to_canonical(), range)
    {
        let from = head.from.to_canonical().to_string();
        return Err(Fault::from(Code::AuthorizationSourceIPMismatch).with("SourceIP", from));
    }
    Ok(())
}

/// Returns whether an address is `a`, or within `a-b`.
fn in_range(from: IpAddr, range: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<IpAddr>(), last.parse::<IpAddr>()) {
        (Ok(first), Ok(last)) => first <= from && from <= last,
        _ => false,
    }
}

#[cfg(test)]
mod tests;

//! Shared access signatures: what is signed, and what it permits.
//!
//! As in "Create an account SAS" and "Create a service SAS", Microsoft. A version before
//! 2015-04-05 is not known here.

use super::account::Account;
use super::failed;
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Also for an account that there is not: nobody learns which there are.
pub(super) const NOT_SIGNED: &str = "the signature did not match";

/// A policy that is kept with a container, which signatures can refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Its name.
    pub id: String,
    /// From when on it permits something.
    pub start: Option<String>,
    /// Until when.
    pub expiry: Option<String>,
    /// What it permits.
    pub permission: Option<String>,
}

/// The policies of containers, by account and container.
pub type Policies = BTreeMap<(String, String), Vec<Policy>>;

/// What a signature permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permits {
    /// The letters of what may be done.
    pub permissions: String,
    /// On what.
    pub scope: Scope,
}

/// What a signature is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// An account: the levels `s`, `c`, `o` that it names.
    Account(String),
    /// A container and its blobs.
    Container,
    /// A blob.
    Blob,
    /// A snapshot of a blob.
    Snapshot,
}

/// On which level a request works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// All of the account.
    Service,
    /// A container.
    Container,
    /// A blob.
    Object,
}

impl Permits {
    /// Whether this permits one of `letters` on `level`. A signature of a service, not of
    /// an account, does nothing to containers but list them and what is in them.
    ///
    /// # Errors
    ///
    /// [`Code::AuthorizationPermissionMismatch`], [`Code::AuthorizationResourceTypeMismatch`].
    pub fn check(&self, level: Level, letters: &str, is_list: bool) -> Result<()> {
        let reaches = match (&self.scope, level) {
            (Scope::Account(levels), Level::Service) => levels.contains('s'),
            (Scope::Account(levels), Level::Container) => levels.contains('c'),
            (Scope::Account(levels), Level::Object) => levels.contains('o'),
            (Scope::Container, Level::Object) => true,
            (Scope::Container, Level::Container) => is_list,
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

/// Checks a signature: what it permits.
pub(super) fn verify(head: &Head, account: &Account, policies: &Policies) -> Result<Permits> {
    let version = head.param("sv").ok_or_else(|| failed("sv is mandatory"))?;
    if Moment::parse_iso(version).is_none() || version < "2015-04-05" {
        return Err(failed("sv is not a version from 2015-04-05 on"));
    }
    if head.param("skoid").is_some() {
        return Err(Fault::not_implemented("a signature by a user delegation key"));
    }
    if head.param("ss").is_some() {
        of_account(head, account, version)
    } else {
        of_service(head, account, version, policies)
    }
}

fn of_account(head: &Head, account: &Account, version: &str) -> Result<Permits> {
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

fn of_service(
    head: &Head,
    account: &Account,
    version: &str,
    policies: &Policies,
) -> Result<Permits> {
    let get = |name: &str| head.param(name).unwrap_or_default();
    let container = head.target.container.as_deref();
    let container = container.ok_or(Code::AuthorizationResourceTypeMismatch)?;
    let blob = head.target.blob.as_deref();
    let (scope, resource) = match (get("sr"), blob) {
        ("c", _) => (Scope::Container, format!("/blob/{}/{container}", account.name)),
        ("b", Some(blob)) => (Scope::Blob, format!("/blob/{}/{container}/{blob}", account.name)),
        ("bs", Some(blob)) => {
            (Scope::Snapshot, format!("/blob/{}/{container}/{blob}", account.name))
        }
        ("b" | "bs", None) => return Err(Code::AuthorizationFailure.into()),
        ("d", _) => return Err(Fault::not_implemented("a signature of a directory")),
        _ => return Err(failed("sr is not c, b or bs")),
    };
    let mut lines = ["sp", "st", "se"].map(get).to_vec();
    lines.push(&resource);
    lines.extend(["si", "sip", "spr", "sv"].map(get));
    if version >= "2018-11-09" {
        lines.push(get("sr"));
        lines.push(if scope == Scope::Snapshot { get("snapshot") } else { "" });
    }
    if version >= "2020-12-06" {
        lines.push(get("ses"));
    }
    lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(get));
    check_signature(head, account, &lines.join("\n"))?;
    // Only a snapshot that was signed for is one; a blob's signature covers its snapshots.
    if scope == Scope::Snapshot && head.param("snapshot").is_none() {
        return Err(Code::AuthorizationFailure.into());
    }
    let none = Policy::default();
    let policy = match head.param("si") {
        None => &none,
        Some(id) => {
            let key = (account.name.clone(), container.to_owned());
            let kept = policies.get(&key).into_iter().flatten().find(|policy| policy.id == id);
            kept.ok_or_else(|| failed("the signed identifier is not one of the container's"))?
        }
    };
    check_terms(head, policy)?;
    let permissions = match (head.param("sp"), &policy.permission) {
        (Some(_), Some(_)) => return Err(failed("sp is in the signature and in its policy")),
        (Some(own), None) => own.to_owned(),
        (None, kept) => kept.clone().unwrap_or_default(),
    };
    Ok(Permits { permissions, scope })
}

fn check_signature(head: &Head, account: &Account, text: &str) -> Result<()> {
    let signature = head.param("sig").unwrap_or_default();
    if account.signed(text, signature) { Ok(()) } else { Err(failed(NOT_SIGNED)) }
}

/// The times, addresses and protocols that it is good for.
fn check_terms(head: &Head, policy: &Policy) -> Result<()> {
    let time = |name: &str, kept: &Option<String>| -> Result<Option<Moment>> {
        let text = match (head.param(name), kept) {
            (Some(_), Some(_)) => return Err(failed("a time is in the signature and its policy")),
            (Some(own), None) => own,
            (None, Some(kept)) => kept,
            (None, None) => return Ok(None),
        };
        Moment::parse_iso(text).map(Some).ok_or_else(|| failed("st or se is not a time"))
    };
    if time("st", &policy.start)?.is_some_and(|start| head.now < start) {
        return Err(failed("the signature is not valid yet"));
    }
    match time("se", &policy.expiry)? {
        None => return Err(failed("se is mandatory")),
        Some(expiry) if head.now >= expiry => return Err(failed("the signature has expired")),
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

/// Whether an address is one of `a` or `a-b`.
fn in_range(from: IpAddr, range: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<IpAddr>(), last.parse::<IpAddr>()) {
        (Ok(first), Ok(last)) => first <= from && from <= last,
        _ => false,
    }
}

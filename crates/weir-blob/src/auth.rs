//! Authentication: Shared Key, shared access signatures, and public access.
//!
//! | module | holds |
//! |---|---|
//! | `account` | accounts and their keys |
//! | `shared_key` | the signature of a request by an account's key |
//! | `sas` | shared access signatures: the signed text and its permissions |
//!
//! A request that fails authentication receives only the service's error code. It does not show
//! whether the account, the container or the blob exists.

pub mod account;
pub mod sas;
mod shared_key;

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use account::{Account, Accounts};
use sas::Permits;

/// Maximum difference between a signed request's date and the server's clock.
const SKEW: u64 = 15 * 60;

/// The identity that a request was authenticated as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The owner of the account.
    Owner,
    /// The holder of a shared access signature with these permissions.
    Signed(Permits),
    /// A request without a signature.
    Anonymous,
}

/// Authenticates a request.
///
/// # Errors
///
/// [`Code::AuthenticationFailed`] and related codes.
pub(crate) fn authenticate(
    head: &Head,
    accounts: &Accounts,
    policies: &sas::Policies,
) -> Result<Caller> {
    let account = accounts.get(&head.target.account);
    if let Some(authorization) = head.header("authorization") {
        let owner = shared_key::parse(authorization)?;
        let account = account.filter(|account| account.name == owner.account);
        check_date(head)?;
        let Some(account) = account else {
            return Err(Fault::unauthenticated(shared_key::NOT_SIGNED));
        };
        check_reach(account, head)?;
        shared_key::verify(head, account, &owner)?;
        return Ok(Caller::Owner);
    }
    if head.param("sig").is_some() {
        let Some(account) = account else { return Err(Fault::unauthenticated(sas::NOT_SIGNED)) };
        check_reach(account, head)?;
        return sas::verify(head, account, policies).map(Caller::Signed);
    }
    if head.headers.contains_key("authorization") {
        return Err(Code::InvalidAuthenticationInfo.into());
    }
    Ok(Caller::Anonymous)
}

/// Refuses the published key of the development account from other machines.
fn check_reach(account: &Account, head: &Head) -> Result<()> {
    if account.is_for(head.from) {
        Ok(())
    } else {
        Err(Fault::unauthenticated("the well-known key is for loopback alone"))
    }
}

/// Refuses requests signed long ago, which may be replays.
fn check_date(head: &Head) -> Result<()> {
    let text = head.header("x-ms-date").or_else(|| head.header("date"));
    let date = text.and_then(crate::time::Moment::parse_http);
    let Some(date) = date else {
        return Err(Fault::unauthenticated("the date header is missing or invalid"));
    };
    if date.secs().abs_diff(head.now.secs()) > SKEW {
        return Err(Fault::unauthenticated(
            "the date is more than 15 minutes from the server's clock",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use account::WELL_KNOWN;

    fn reach(from: [u8; 4], anywhere: bool) -> Option<Code> {
        let signed_at = crate::time::Moment(NOW);
        authenticated(from, anywhere, signed_at).err().map(|fault| fault.code)
    }

    const NOW: u64 = 1_795_305_909_000_000_000;

    fn authenticated(
        from: [u8; 4],
        anywhere: bool,
        signed_at: crate::time::Moment,
    ) -> Result<Caller> {
        let mut head = crate::tests::head();
        head.from = from.into();
        WELL_KNOWN.clone_into(&mut head.target.account);
        head.now = crate::time::Moment(NOW);
        let mut accounts = Accounts::default();
        accounts.add(Account::well_known(anywhere));
        let date = signed_at.http();
        let text = format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\n/{WELL_KNOWN}/acc");
        let signature = Account::well_known(anywhere).sign(&text);
        let authorization = format!("SharedKey {WELL_KNOWN}:{signature}");
        head.headers.insert("x-ms-date", date.parse().unwrap());
        head.headers.insert("authorization", authorization.parse().unwrap());
        authenticate(&head, &accounts, &sas::Policies::new())
    }

    #[test]
    fn the_date_of_a_request_is_at_most_15_minutes_from_the_clock() {
        let signed_at = |secs: i64| {
            let at = NOW.saturating_add_signed(secs * 1_000_000_000);
            authenticated([127, 0, 0, 1], false, crate::time::Moment(at)).is_ok()
        };
        assert!(signed_at(-900) && signed_at(0) && signed_at(900));
        assert!(!signed_at(-901) && !signed_at(901));
    }

    #[test]
    fn the_published_key_is_restricted_to_this_machine() {
        assert_eq!(reach([127, 0, 0, 1], false), None);
        assert_eq!(reach([10, 0, 0, 1], false), Some(Code::AuthenticationFailed));
        assert_eq!(reach([10, 0, 0, 1], true), None);
    }
}

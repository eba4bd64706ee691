//! Memory for the bodies of requests and responses.
//!
//! Each account has a budget of its own, and a client address has half of it. So neither a holder of a
//! signature nor a single machine can keep others from transferring data. Requests beyond a budget
//! wait for their turn.

use crate::fault::{Code, Fault, Result};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory of all accounts together, in KiB.
const ALL_KIB: usize = 256 << 10;
/// Least memory of an account, in KiB. Half of it holds the largest document.
const LEAST_KIB: usize = 16 << 10;
/// Timeout for a wait for memory.
const PATIENCE: Duration = Duration::from_secs(30);
/// Addresses that are remembered before the unused ones are forgotten.
const MANY: usize = 1024;

/// The memory of all accounts.
#[derive(Debug)]
pub(crate) struct Rooms {
    /// In KiB.
    per_account: usize,
    accounts: RefCell<HashMap<String, Arc<Semaphore>>>,
    addresses: RefCell<HashMap<(String, IpAddr), Weak<Semaphore>>>,
}

/// Reserved memory. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    _of_account: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
    /// Keeps the budget of the address known while memory of it is reserved.
    _address: Arc<Semaphore>,
}

impl Rooms {
    /// Divides the memory among a number of accounts.
    pub(crate) fn new(accounts: usize) -> Self {
        Self {
            per_account: (ALL_KIB / accounts.max(1)).max(LEAST_KIB),
            accounts: RefCell::default(),
            addresses: RefCell::default(),
        }
    }

    /// Reserves memory for `len` bytes. A longer body gets the whole budget of its address.
    ///
    /// # Errors
    ///
    /// [`Code::ServerBusy`] if the account or the address has used its budget for too long.
    pub(crate) async fn reserve(&self, account: &str, from: IpAddr, len: u64) -> Result<Room> {
        let reserved = tokio::time::timeout(PATIENCE, self.wait(account, from, len)).await;
        let busy = || {
            let mut fault = Fault::from(Code::ServerBusy)
                .because("Other transfers of the account use all of its memory.");
            fault.retry_after = Some(1);
            fault
        };
        reserved.map_err(|_| busy())?
    }

    /// Does the same without a timeout.
    ///
    /// # Errors
    ///
    /// The service is ending.
    pub(crate) async fn wait(&self, account: &str, from: IpAddr, len: u64) -> Result<Room> {
        let most = self.per_account / 2;
        let kib = usize::try_from(len.div_ceil(1024)).unwrap_or(most).min(most);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let address = self.address(account, from);
        let of_address = Arc::clone(&address).acquire_many_owned(kib).await;
        let of_account = self.account(account).acquire_many_owned(kib).await;
        Ok(Room {
            _of_account: of_account.map_err(Fault::internal)?,
            _of_address: of_address.map_err(Fault::internal)?,
            _address: address,
        })
    }

    /// Returns whether an account or an address uses more than half of its budget.
    pub(crate) fn is_short(&self) -> bool {
        let accounts = self.accounts.borrow();
        let addresses = self.addresses.borrow();
        let half = self.per_account / 2;
        accounts.values().any(|own| own.available_permits() < half)
            || addresses
                .values()
                .filter_map(Weak::upgrade)
                .any(|own| own.available_permits() < half / 2)
    }

    fn account(&self, name: &str) -> Arc<Semaphore> {
        let mut accounts = self.accounts.borrow_mut();
        if let Some(own) = accounts.get(name) {
            return Arc::clone(own);
        }
        let own = Arc::new(Semaphore::new(self.per_account));
        accounts.insert(name.to_owned(), Arc::clone(&own));
        own
    }

    fn address(&self, account: &str, from: IpAddr) -> Arc<Semaphore> {
        let mut addresses = self.addresses.borrow_mut();
        let key = (account.to_owned(), from.to_canonical());
        if let Some(own) = addresses.get(&key).and_then(Weak::upgrade) {
            return own;
        }
        if addresses.len() > MANY {
            addresses.retain(|_, own| own.strong_count() > 0);
        }
        let own = Arc::new(Semaphore::new(self.per_account / 2));
        addresses.insert(key, Arc::downgrade(&own));
        own
    }
}

impl Room {
    /// Returns bytes that keep the memory reserved until they are dropped.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Held { bytes, _room: self })
    }
}

struct Held {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    /// Reserves memory; `None` if that has to wait.
    fn reserve(rooms: &Rooms, account: &str, from: IpAddr, len: u64) -> Option<Room> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(rooms.wait(account, from, len)).poll(&mut context) {
            Poll::Ready(room) => Some(room.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn no_account_and_no_address_takes_the_memory_of_others() {
        let rooms = Rooms::new(2);
        let page = 4 << 20;
        let fill = |account, from| -> Vec<Room> {
            std::iter::from_fn(|| reserve(&rooms, account, from, page)).collect()
        };
        // 128 MiB for each of two accounts, half of it for an address.
        let few: Vec<_> = (0..8).map(|_| reserve(&rooms, "a", HERE, page)).collect();
        assert!(!rooms.is_short());
        let more = reserve(&rooms, "a", HERE, 1);
        assert!(rooms.is_short());
        drop((few, more));
        let first = fill("a", HERE);
        assert_eq!(first.len(), 16);
        assert!(reserve(&rooms, "a", HERE, 1).is_none());
        let second = fill("a", THERE);
        assert_eq!(second.len(), 16);
        assert!(reserve(&rooms, "a", [10, 0, 0, 2].into(), 1).is_none());
        assert_eq!(fill("b", HERE).len(), 16);
        drop(first);
        assert_eq!(fill("a", HERE).len(), 16);
    }

    #[test]
    fn a_body_that_is_longer_than_its_budget_gets_all_of_it() {
        let rooms = Rooms::new(100);
        let all = reserve(&rooms, "a", HERE, u64::MAX).unwrap();
        assert!(reserve(&rooms, "a", HERE, 1).is_none());
        assert!(reserve(&rooms, "a", THERE, 8 << 20).is_some());
        let bytes = all.hold(Bytes::from_static(b"sent later"));
        let part = bytes.slice(..4);
        drop(bytes);
        assert!(reserve(&rooms, "a", HERE, 1).is_none());
        drop(part);
        assert!(reserve(&rooms, "a", HERE, 1).is_some());
    }
}

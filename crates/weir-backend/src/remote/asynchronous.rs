//! Operations that end later, without a thread that waits for them.

use super::{Asked, RemoteStore, within};
use crate::book::Action;
use crate::line::{Given, Owner};
use crate::unflushed::Payload;
use std::sync::Arc;
use weir_store::{AsyncStore, Operation, Outcome, Then};

impl AsyncStore for RemoteStore {
    /// Takes operations that fit into one request to the server.
    fn submit(&self, operation: Operation, then: Then) -> Option<(Operation, Then)> {
        let is_one = |offset, len: usize| {
            len > 0
                && len <= self.terms.longest as usize
                && self.edges.is_aligned(offset, len as u64)
        };
        let (asked, action, under_way) = match &operation {
            Operation::Read { offset, len } if is_one(*offset, *len) => {
                let (offset, len) = (*offset, *len as u64);
                let action = Action::Read { len: u32::try_from(len).unwrap_or(u32::MAX) };
                (Asked::Read { offset, len }, action, None)
            }
            Operation::Write { offset, data, durably } if is_one(*offset, data.len()) => {
                let Some(under_way) = self.edges.begin() else { return Some((operation, then)) };
                let (offset, len) = (*offset, data.len() as u64);
                let action = self.write_action(Payload::bytes(Arc::clone(data)), *durably);
                (Asked::Write { offset, len }, action, Some(under_way))
            }
            Operation::Sync => (Asked::Flush, Action::Flush, None),
            _ => return Some((operation, then)),
        };
        let (offset, wanted) = match asked {
            Asked::Read { offset, len } => (offset, len),
            Asked::Write { offset, .. } => (offset, 0),
            _ => (0, 0),
        };
        if let Err(error) = self.check(offset, action.len()) {
            then.call(Err(error));
            return None;
        }
        let export = Arc::clone(&self.export);
        let owner = Owner::new(move |result| {
            drop(under_way);
            then.call(match result {
                Ok(Given::Data(bytes)) if bytes.len() as u64 == wanted => Ok(Outcome::Bytes(bytes)),
                Ok(Given::Durable) => Ok(Outcome::Durable),
                Ok(_) if wanted == 0 => Ok(Outcome::Done),
                Ok(given) => {
                    let bytes = if let Given::Data(bytes) = given { bytes.len() } else { 0 };
                    Err(export.left_out(within(wanted).saturating_sub(bytes), &asked))
                }
                Err(reason) => Err(export.not_given(&asked, reason)),
            });
        });
        self.line.submit(offset, action, owner);
        None
    }

    fn kick(&self) {
        self.line.kick();
    }
}

//! Operations on an account.

use super::shared::Service;
use crate::body::{Body, Reply};
use crate::fault::Result;
use crate::head::Head;
use crate::journal::Change;
use crate::record::Key;

/// Returns the account's type. Premium page blobs require this one.
pub(super) fn info() -> Reply {
    Reply::new(200)
        .with("x-ms-sku-name", "Premium_LRS")
        .with("x-ms-account-kind", "StorageV2")
        .with("x-ms-is-hns-enabled", "false")
}

impl Service {
    pub(super) fn get_properties(&self, head: &Head) -> Reply {
        let properties = self.state.borrow().properties(&head.target.account);
        Reply::new(200).xml(properties.document())
    }

    pub(super) async fn set_properties(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        let document = self.document(head, body).await?;
        let account = &head.target.account;
        let changed = self.state.borrow().properties(account).changed(&document)?;
        self.state.borrow_mut().set_properties(account, changed.clone());
        self.commit(vec![Change::put(Key::Service(account.clone()), &changed)]).await?;
        Ok(Reply::new(202))
    }
}

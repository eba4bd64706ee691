//! Operations on an account.

use super::shared::Service;
use crate::body::{Body, Reply};
use crate::fault::{Fault, Result};
use crate::head::Head;
use crate::journal::Change;
use crate::record::Key;
use crate::tags::Condition;
use crate::time::Moment;
use crate::xml::Writer;

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

    /// Finds blobs by a condition on their tags.
    pub(super) fn find_blobs(&self, head: &Head) -> Result<Reply> {
        let text = head.param("where").unwrap_or_default();
        let wrong = |_| Fault::query("where", text, "it is not a condition on tags");
        let condition = Condition::parse(text, "where").map_err(wrong)?;
        let state = self.state.borrow();
        let mut writer = Writer::new();
        let service = self.service_url(head);
        writer.with("EnumerationResults", &[("ServiceEndpoint", &service)], |writer| {
            writer.leaf("Where", text);
            writer.within("Blobs", |writer| {
                let only = head.target.container.as_deref();
                let containers = state.containers(&head.target.account);
                for (container, held) in
                    containers.filter(|(name, _)| only.is_none_or(|o| o == *name))
                {
                    for ((name, at), blob) in &held.blobs {
                        let mut tags = blob.tags.clone();
                        tags.insert("@container".to_owned(), container.to_owned());
                        if *at != Moment::FAR || blob.tags.is_empty() || !condition.holds(&tags) {
                            continue;
                        }
                        writer.within("Blob", |writer| {
                            writer.name(name);
                            writer.leaf("ContainerName", container);
                            super::blob::write_tags(writer, &blob.tags);
                        });
                    }
                }
            });
            writer.leaf("NextMarker", "");
        });
        Ok(Reply::new(200).xml(writer.done()))
    }
}

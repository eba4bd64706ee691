//! Containers.

use super::shared::{Service, new_id, parse_metadata};
use crate::auth::sas::Policy;
use crate::body::{Body, Reply};
use crate::condition::{Conditions, Etag, Subject};
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::journal::Change;
use crate::lease::{Lease, Leased};
use crate::record::{Container, Key, Public};
use crate::tags::Tags;
use crate::time::Moment;
use crate::xml::{Element, Writer};

/// Maximum number of access policies of a container.
const MOST_POLICIES: usize = 5;

pub(super) fn parse_public(head: &Head) -> Result<Public> {
    match head.header("x-ms-blob-public-access") {
        None => Ok(Public::Private),
        Some("blob") => Ok(Public::Blob),
        Some("container") => Ok(Public::Container),
        Some(other) => Err(Fault::header("x-ms-blob-public-access", other)),
    }
}

/// Adds the headers of a lease.
pub(super) fn with_lease(reply: Reply, lease: &Lease, now: Moment) -> Reply {
    let state = lease.state(now);
    reply
        .with("x-ms-lease-status", state.status())
        .with("x-ms-lease-state", state.name())
        .with_some("x-ms-lease-duration", lease.duration(now))
}

fn stamped(reply: Reply, record: &Container) -> Reply {
    reply.with("etag", record.etag.quoted()).with("last-modified", record.modified.http())
}

impl Service {
    pub(super) async fn create_container(&self, head: &Head) -> Result<Reply> {
        let (account, name) = (&head.target.account, head.container()?);
        if self.state.borrow().container(account, name).is_ok() {
            return Err(Code::ContainerAlreadyExists.into());
        }
        let at = self.next();
        let record = Container {
            etag: Etag(at.0),
            modified: at,
            metadata: parse_metadata(head)?,
            public: parse_public(head)?,
            policies: Vec::new(),
            lease: Lease::default(),
        };
        let reply = stamped(Reply::new(201), &record);
        let change = Change::put(Key::Container(account.clone(), name.to_owned()), &record);
        self.state.borrow_mut().put_container(account, name, record);
        self.commit(vec![change]).await?;
        Ok(reply)
    }

    pub(super) fn get_container(&self, head: &Head) -> Result<Reply> {
        let state = self.state.borrow();
        let record = &state.container(&head.target.account, head.container()?)?.record;
        let given = head.header("x-ms-lease-id");
        record.lease.check_read(Leased::Container, given, head.now)?;
        let mut reply = stamped(Reply::new(200), record)
            .with_some("x-ms-blob-public-access", record.public.name())
            .with("x-ms-has-immutability-policy", "false")
            .with("x-ms-has-legal-hold", "false")
            .with("x-ms-default-encryption-scope", "$account-encryption-key")
            .with("x-ms-deny-encryption-scope-override", "false");
        for (name, value) in &record.metadata {
            reply.set(&format!("x-ms-meta-{name}"), value);
        }
        Ok(with_lease(reply, &record.lease, head.now))
    }

    /// Checks the lease and the conditions of a change to a container.
    fn check_container(&self, head: &Head, record: &Container) -> Result<()> {
        let conditions = Conditions::parse(head, Subject::Target)?;
        let tags = Tags::new();
        let (etag, modified) = (record.etag, record.modified);
        conditions.check_write(crate::condition::State { etag, modified, tags: &tags })?;
        let given = head.header("x-ms-lease-id");
        // The lease of a container protects it from deletion only.
        record.lease.check_read(Leased::Container, given, head.now)
    }

    async fn change_container(
        &self,
        head: &Head,
        renews: bool,
        change: impl FnOnce(&mut Container) -> Result<()>,
    ) -> Result<Reply> {
        let (account, name) = (&head.target.account, head.container()?);
        let mut record = self.state.borrow().container(account, name)?.record.clone();
        change(&mut record)?;
        if renews {
            let at = self.next();
            record.etag = Etag(at.0);
            record.modified = at;
        }
        let reply = stamped(Reply::new(200), &record);
        let put = Change::put(Key::Container(account.clone(), name.to_owned()), &record);
        self.state.borrow_mut().put_container(account, name, record);
        self.commit(vec![put]).await?;
        Ok(reply)
    }

    pub(super) async fn set_container_metadata(&self, head: &Head) -> Result<Reply> {
        let metadata = parse_metadata(head)?;
        self.change_container(head, true, |record: &mut Container| {
            self.check_container(head, record)?;
            record.metadata = metadata;
            Ok(())
        })
        .await
    }

    pub(super) fn get_acl(&self, head: &Head) -> Result<Reply> {
        let state = self.state.borrow();
        let record = &state.container(&head.target.account, head.container()?)?.record;
        let mut writer = Writer::new();
        writer.within("SignedIdentifiers", |writer| {
            for policy in &record.policies {
                writer.within("SignedIdentifier", |writer| {
                    writer.leaf("Id", &policy.id);
                    writer.within("AccessPolicy", |writer| {
                        writer.maybe("Start", policy.start.as_deref());
                        writer.maybe("Expiry", policy.expiry.as_deref());
                        writer.maybe("Permission", policy.permission.as_deref());
                    });
                });
            }
        });
        let reply = stamped(Reply::new(200), record)
            .with_some("x-ms-blob-public-access", record.public.name());
        Ok(reply.xml(writer.done()))
    }

    pub(super) async fn set_acl(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        let document = self.document(head, body).await?;
        let (public, policies) = (parse_public(head)?, parse_policies(&document)?);
        let change = |record: &mut Container| {
            self.check_container(head, record)?;
            record.public = public;
            record.policies = policies;
            Ok(())
        };
        self.change_container(head, true, change).await
    }

    pub(super) async fn lease_container(&self, head: &Head) -> Result<Reply> {
        let mut done = None;
        let change = |record: &mut Container| {
            done = Some(record.lease.act(head, new_id)?);
            Ok(())
        };
        let mut reply = self.change_container(head, false, change).await?;
        let Some(done) = done else { return Ok(reply) };
        reply.status = Reply::new(done.status).status;
        Ok(reply.with_some("x-ms-lease-id", done.id).with_some("x-ms-lease-time", done.left))
    }

    pub(super) async fn delete_container(&self, head: &Head) -> Result<Reply> {
        let (account, name) = (&head.target.account, head.container()?);
        {
            let state = self.state.borrow();
            let record = &state.container(account, name)?.record;
            self.check_container(head, record)?;
            let given = head.header("x-ms-lease-id");
            record.lease.check_write(Leased::Container, given, head.now)?;
        }
        let taken = self.state.borrow_mut().take_container(account, name);
        let Some((held, changes)) = taken else { return Err(Code::ContainerNotFound.into()) };
        self.commit(changes).await?;
        for block in held.uncommitted.values().flatten() {
            self.pieces.forget(block.piece);
        }
        let gone: Vec<_> = held.blobs.into_values().collect();
        self.forget_all(&gone).await?;
        Ok(Reply::new(202))
    }
}

pub(super) fn parse_policies(document: &[u8]) -> Result<Vec<Policy>> {
    let Some(root) = Element::parse(document)? else { return Ok(Vec::new()) };
    if root.name != "SignedIdentifiers" || root.children.len() > MOST_POLICIES {
        return Err(Code::InvalidXmlDocument.into());
    }
    let policy = |element: &Element| {
        let id = element.text_of("Id").filter(|id| !id.is_empty() && id.len() <= 64);
        let id = id.ok_or(Code::InvalidXmlNodeValue)?;
        let access = element.child("AccessPolicy");
        let text = |name: &str| {
            let text = access.and_then(|access| access.text_of(name));
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let (start, expiry, permission) = (text("Start"), text("Expiry"), text("Permission"));
        for time in [&start, &expiry].into_iter().flatten() {
            Moment::parse_iso(time).ok_or(Code::InvalidXmlNodeValue)?;
        }
        Ok(Policy { id: id.to_owned(), start, expiry, permission })
    };
    root.children.iter().map(policy).collect()
}

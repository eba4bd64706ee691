//! Batches of requests that delete blobs or set their tiers.

use super::shared::{Service, new_id};
use crate::batch::{self, Part, Writer};
use crate::body::{Body, Reply};
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::http::refusal;
use crate::operation::Operation;
use http::header::HOST;
use std::rc::Rc;

/// Maximum size of a batch.
const MOST: usize = 4 << 20;

impl Service {
    /// Executes the requests of a batch, each with its own signature, one after the other. A malformed
    /// batch gets a single error response, as from the service.
    pub(super) async fn submit_batch(
        self: &Rc<Self>,
        head: &Head,
        body: &mut Body,
    ) -> Result<Reply> {
        let content_type = head.needs("content-type")?;
        let _room = self.room_for(head, MOST).await?;
        let document = body.all(MOST).await?;
        let mut writer = Writer::new(&new_id());
        match batch::parse(content_type, &document) {
            Ok(parts) => {
                for Part { id, mut request } in parts {
                    if let (None, Some(host)) = (request.headers.get(HOST), head.headers.get(HOST))
                    {
                        request.headers.insert(HOST, host.clone());
                    }
                    let of = (head.from, head.secure, head.now);
                    let request = Head::read(request, of, |name| self.is_account(name));
                    let reply = match request {
                        Ok(request) => {
                            let reply = self.answer_part(head, &request).await;
                            reply.inspect_err(|fault| self.tell_refused(&request, fault))
                        }
                        Err(fault) => Err(fault),
                    };
                    writer.add(id.as_deref(), &self.part_of_batch(head, reply));
                }
            }
            Err(fault) => writer.add(None, &self.part_of_batch(head, Err(fault))),
        }
        Ok(writer.done())
    }

    async fn answer_part(self: &Rc<Self>, batch: &Head, request: &Head) -> Result<Reply> {
        let operation = Operation::parse(request)?;
        let is_inside =
            batch.target.container.is_none() || batch.target.container == request.target.container;
        let is_inside = is_inside && batch.target.account == request.target.account;
        if !is_inside || !matches!(operation, Operation::DeleteBlob | Operation::SetTier) {
            let reason = "A batch deletes blobs of its account or container, or sets their tiers.";
            return Err(Fault::from(Code::InvalidInput).because(reason));
        }
        // Boxed, because a request of a batch is answered like any other.
        Box::pin(self.answer(request, &mut Body::empty())).await
    }

    /// Adds the headers that every response has.
    fn part_of_batch(&self, head: &Head, reply: Result<Reply>) -> Reply {
        let id = self.request_id();
        let reply = reply.unwrap_or_else(|fault| refusal(&fault, &id, head.now, false));
        reply.with("x-ms-request-id", &id).with_some("x-ms-version", head.header("x-ms-version"))
    }
}

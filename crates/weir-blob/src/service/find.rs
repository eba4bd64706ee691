//! Finding blobs by their tags.

use super::blob::write_tags;
use super::list::max_results;
use super::shared::Service;
use crate::body::Reply;
use crate::fault::{Fault, Result};
use crate::head::Head;
use crate::query::Query;
use crate::time::Moment;
use crate::xml::Writer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Builds a marker from the last blob of a page.
fn marker((container, name): (&str, &str)) -> String {
    URL_SAFE_NO_PAD.encode(format!("{container}\0{name}"))
}

/// Reads a marker. The list continues after the blob that it stands for.
fn read_marker(head: &Head) -> Result<(String, String)> {
    let Some(text) = head.param("marker") else { return Ok((String::new(), String::new())) };
    let wrong = || Fault::query("marker", text, "it is not a marker of this service");
    let decoded = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
    let decoded = String::from_utf8(decoded).map_err(|_| wrong())?;
    let (container, name) = decoded.split_once('\0').ok_or_else(wrong)?;
    Ok((container.to_owned(), name.to_owned()))
}

impl Service {
    /// Finds blobs of the account or of a container. The response has the tags that the query names.
    pub(super) fn find_blobs(&self, head: &Head) -> Result<Reply> {
        let text = head.param("where").unwrap_or_default();
        let query = Query::parse(text)?;
        let (most, after) = (max_results(head)?, read_marker(head)?);
        let only = head.target.container.as_deref();
        let state = self.state.borrow();
        if let Some(only) = only {
            state.container(&head.target.account, only)?;
        }
        let containers = state.containers(&head.target.account);
        let containers = containers.filter(|(name, _)| only.is_none_or(|only| only == *name));
        let blobs = containers.flat_map(|(container, held)| {
            let base = held.blobs.iter().filter(|((_, at), _)| *at == Moment::FAR);
            base.map(move |((name, _), blob)| ((container, &**name), &blob.tags))
        });
        let mut found = blobs.filter(|(place, tags)| {
            *place > (&*after.0, &*after.1) && !tags.is_empty() && query.finds(place.0, tags)
        });
        let (mut writer, mut last) = (Writer::new(), None);
        let service = self.service_url(head);
        writer.with("EnumerationResults", &[("ServiceEndpoint", &service)], |writer| {
            writer.leaf("Where", text);
            writer.within("Blobs", |writer| {
                for ((container, name), tags) in found.by_ref().take(most) {
                    last = Some((container, name));
                    writer.within("Blob", |writer| {
                        writer.name(name);
                        writer.leaf("ContainerName", container);
                        write_tags(writer, query.shown(tags));
                    });
                }
            });
            let next = found.next().and(last).map(marker);
            writer.leaf("NextMarker", next.as_deref().unwrap_or_default());
        });
        Ok(Reply::new(200).xml(writer.done()))
    }
}

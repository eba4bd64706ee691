//! Lists of containers and blobs.

use super::blob;
use super::shared::Service;
use crate::body::Reply;
use crate::fault::{Fault, Result};
use crate::head::Head;
use crate::lease::Lease;
use crate::record::{Blob, Container};
use crate::state::{Place, base};
use crate::time::Moment;
use crate::xml::Writer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::ops::Bound;

/// Maximum number of entries in a response.
const MOST: usize = 5000;

pub(super) fn max_results(head: &Head) -> Result<usize> {
    match head.param("maxresults") {
        None => Ok(MOST),
        Some(text) => match text.parse() {
            Ok(n @ 1..) => Ok(usize::min(n, MOST)),
            _ => Err(Fault::query("maxresults", text, "it is not a positive number")),
        },
    }
}

/// Returns the values of the `include` parameter.
fn includes(head: &Head) -> Vec<String> {
    let all = head.query.iter().filter(|(name, _)| name.eq_ignore_ascii_case("include"));
    let parts = all.flat_map(|(_, value)| value.split(','));
    parts.map(|part| part.trim().to_ascii_lowercase()).collect()
}

/// Begins the markers that are encoded.
const ENCODED: char = '?';

/// Builds a continuation marker from the last entry of a page: its name. Those of snapshots, and of
/// names that XML could change, are encoded.
fn marker(name: &str, at: Moment) -> String {
    let is_plain = at == Moment::FAR
        && !name.starts_with(ENCODED)
        && name.trim() == name
        && !name.contains(|c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
    if is_plain {
        return name.to_owned();
    }
    format!("{ENCODED}{}", URL_SAFE_NO_PAD.encode(format!("{}\0{name}", at.0)))
}

/// Reads a marker. The list continues after the place that it stands for.
pub(super) fn read_marker(head: &Head) -> Result<Option<Place>> {
    let Some(text) = head.param("marker") else { return Ok(None) };
    let Some(encoded) = text.strip_prefix(ENCODED) else { return Ok(Some(base(text))) };
    let wrong = || Fault::query("marker", text, "it is not a marker of this service");
    let decoded = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| wrong())?;
    let decoded = String::from_utf8(decoded).map_err(|_| wrong())?;
    let (at, name) = decoded.split_once('\0').ok_or_else(wrong)?;
    Ok(Some((name.to_owned(), Moment(at.parse().map_err(|_| wrong())?))))
}

/// Returns the beginning of the names of the listed blobs, which have slashes for backslashes.
fn blob_prefix(head: &Head) -> String {
    head.param("prefix").unwrap_or_default().replace('\\', "/")
}

/// Writes the parameters of the request, which the response repeats.
fn write_question(writer: &mut Writer, head: &Head) {
    for (element, param) in [
        ("Prefix", "prefix"),
        ("Marker", "marker"),
        ("MaxResults", "maxresults"),
        ("Delimiter", "delimiter"),
    ] {
        writer.maybe(element, head.param(param));
    }
}

fn write_lease(writer: &mut Writer, lease: &Lease, now: Moment) {
    let state = lease.state(now);
    writer.leaf("LeaseStatus", state.status());
    writer.leaf("LeaseState", state.name());
    writer.maybe("LeaseDuration", lease.duration(now));
}

fn write_container(writer: &mut Writer, name: &str, record: &Container, now: Moment, meta: bool) {
    writer.within("Container", |writer| {
        writer.leaf("Name", name);
        writer.within("Properties", |writer| {
            writer.leaf("Last-Modified", &record.modified.http());
            writer.leaf("Etag", &record.etag.quoted());
            write_lease(writer, &record.lease, now);
            writer.maybe("PublicAccess", record.public.name());
            writer.leaf("DefaultEncryptionScope", "$account-encryption-key");
            writer.leaf("DenyEncryptionScopeOverride", "false");
            writer.leaf("HasImmutabilityPolicy", "false");
            writer.leaf("HasLegalHold", "false");
        });
        if meta {
            write_metadata(writer, &record.metadata);
        }
    });
}

fn write_metadata(writer: &mut Writer, metadata: &crate::record::Metadata) {
    writer.within("Metadata", |writer| {
        metadata.iter().for_each(|(name, value)| writer.leaf(name, value));
    });
}

impl Service {
    /// Returns the URL under which the client addressed the account.
    pub(super) fn service_url(&self, head: &Head) -> String {
        let scheme = if head.secure { "https" } else { "http" };
        let host = head.header("host").unwrap_or("localhost");
        let account = &head.target.account;
        match host.split_once('.') {
            Some((first, _)) if first == account => format!("{scheme}://{host}/"),
            _ => format!("{scheme}://{host}/{account}/"),
        }
    }

    pub(super) fn list_containers(&self, head: &Head) -> Result<Reply> {
        let (most, prefix) = (max_results(head)?, head.param("prefix").unwrap_or_default());
        let meta = includes(head).iter().any(|include| include == "metadata");
        let after = read_marker(head)?.map(|(name, _)| name).unwrap_or_default();
        let state = self.state.borrow();
        let account = &head.target.account;
        let found = state.containers(account);
        let mut found = found.filter(|(name, _)| **name > *after && name.starts_with(prefix));
        let (mut writer, mut last) = (Writer::new(), "");
        let service = self.service_url(head);
        writer.with("EnumerationResults", &[("ServiceEndpoint", &service)], |writer| {
            write_question(writer, head);
            writer.within("Containers", |writer| {
                for (name, held) in found.by_ref().take(most) {
                    write_container(writer, name, &held.record, head.now, meta);
                    last = name;
                }
            });
            let next = found.next().map(|_| marker(last, Moment::FAR));
            writer.leaf("NextMarker", next.as_deref().unwrap_or_default());
        });
        Ok(Reply::new(200).xml(writer.done()))
    }

    pub(super) fn list_blobs(&self, head: &Head) -> Result<Reply> {
        let (most, prefix) = (max_results(head)?, blob_prefix(head));
        let includes = includes(head);
        let includes = |name: &str| includes.iter().any(|include| include == name);
        // There are no versions and no deleted blobs that a list could include.
        let what = ListOptions {
            snapshots: includes("snapshots"),
            metadata: includes("metadata"),
            tags: includes("tags"),
            uncommitted: includes("uncommittedblobs"),
            delimiter: head.param("delimiter"),
            prefix: &prefix,
        };
        let after = read_marker(head)?;
        let first = (prefix.clone(), Moment(0));
        let from = after.as_ref().map_or(Bound::Included(&first), Bound::Excluded);
        let container = head.container()?;
        let state = self.state.borrow();
        let held = state.container(&head.target.account, container)?;
        let uncommitted = held.uncommitted.keys().filter(|_| what.uncommitted);
        let uncommitted = uncommitted.filter(|name| !held.blobs.contains_key(&base(name)));
        let uncommitted =
            uncommitted.filter(|name| after.as_ref().is_none_or(|(after, _)| *name > after));
        let blobs = held.blobs.range::<Place, _>((from, Bound::Unbounded));
        let blobs = blobs.map(|((name, at), blob)| (name, *at, Some(&**blob)));
        let mut all = merge(blobs, uncommitted.map(|name| (name, Moment::FAR, None)));
        let mut writer = Writer::new();
        let service = self.service_url(head);
        let attributes = [("ServiceEndpoint", &*service), ("ContainerName", container)];
        writer.with("EnumerationResults", &attributes, |writer| {
            write_question(writer, head);
            let mut next = None;
            writer.within("Blobs", |writer| {
                let limit = Limit { after: after.as_ref().map(|(name, _)| &**name), most };
                next = self.write_blobs(writer, &mut all, &what, limit, head.now);
            });
            writer.leaf("NextMarker", next.as_deref().unwrap_or_default());
        });
        Ok(Reply::new(200).xml(writer.done()))
    }

    /// Writes the blobs of a page. Returns the marker of the next one.
    fn write_blobs<'a>(
        &self,
        writer: &mut Writer,
        all: &mut dyn Iterator<Item = (&'a String, Moment, Option<&'a Blob>)>,
        what: &ListOptions<'_>,
        limit: Limit<'_>,
        now: Moment,
    ) -> Option<String> {
        let mut written = 0;
        // A page may end with a folder, whose other blobs are not on the next one either.
        let mut folder: Option<&str> = limit.after;
        let mut last = ("", Moment::FAR);
        for (name, at, blob) in all {
            let Some(rest) = name.strip_prefix(what.prefix) else {
                if **name > *what.prefix {
                    return None;
                }
                continue;
            };
            if at != Moment::FAR && !what.snapshots {
                continue;
            }
            let end = what.delimiter.and_then(|d| rest.find(d).map(|at| at + d.len()));
            let group = end.map(|end| &name[..what.prefix.len() + end]);
            if group.is_some() && group == folder {
                continue;
            }
            if written == limit.most {
                return Some(marker(last.0, last.1));
            }
            written += 1;
            folder = group;
            last = group.map_or((&**name, at), |group| (group, Moment::FAR));
            match (group, blob) {
                (Some(group), _) => writer.within("BlobPrefix", |writer| writer.name(group)),
                (None, Some(blob)) => self.write_blob(writer, (name, at), blob, what, now),
                (None, None) => writer.within("Blob", |writer| {
                    writer.name(name);
                    writer.within("Properties", |writer| {
                        writer.leaf("Content-Length", "0");
                        writer.leaf("BlobType", "BlockBlob");
                    });
                }),
            }
        }
        None
    }

    fn write_blob(
        &self,
        writer: &mut Writer,
        (name, at): (&str, Moment),
        blob: &Blob,
        what: &ListOptions<'_>,
        now: Moment,
    ) {
        writer.within("Blob", |writer| {
            writer.name(name);
            if at != Moment::FAR {
                writer.leaf("Snapshot", &at.iso());
            }
            writer.within("Properties", |writer| {
                self.write_properties(writer, blob);
                if at == Moment::FAR {
                    write_lease(writer, &self.lease(blob), now);
                }
                if !blob.tags.is_empty() {
                    writer.leaf("TagCount", &blob.tags.len().to_string());
                }
            });
            if what.metadata {
                write_metadata(writer, &blob.metadata);
            }
            if what.tags && !blob.tags.is_empty() {
                blob::write_tags(writer, &blob.tags);
            }
        });
    }

    fn write_properties(&self, writer: &mut Writer, blob: &Blob) {
        writer.leaf("Creation-Time", &blob.created.http());
        writer.leaf("Last-Modified", &blob.modified.http());
        writer.leaf("Etag", &blob.etag.to_string());
        writer.leaf("Content-Length", &blob.len().to_string());
        let headers = &blob.headers;
        writer.leaf("Content-Type", headers.content_type.as_deref().unwrap_or(blob::TYPE));
        writer.leaf("Content-Encoding", headers.encoding.as_deref().unwrap_or_default());
        writer.leaf("Content-Language", headers.language.as_deref().unwrap_or_default());
        writer.leaf("Content-MD5", headers.md5.as_deref().unwrap_or_default());
        writer.leaf("Cache-Control", headers.cache_control.as_deref().unwrap_or_default());
        writer.leaf("Content-Disposition", headers.disposition.as_deref().unwrap_or_default());
        if let Some(page) = blob.page() {
            writer.leaf("x-ms-blob-sequence-number", &page.sequence.to_string());
        }
        writer.leaf("BlobType", blob.kind());
        if blob.sealed {
            writer.leaf("Sealed", "true");
        }
        let (tier, inferred) = self.tier_of(blob);
        writer.maybe("AccessTier", tier.as_deref());
        if inferred {
            writer.leaf("AccessTierInferred", "true");
        }
        writer.maybe("AccessTierChangeTime", blob.tier_changed.map(Moment::http).as_deref());
        if let Some(copy) = &blob.copy {
            writer.leaf("CopyId", &copy.id);
            writer.leaf("CopyStatus", copy.status.name());
            writer.leaf("CopySource", &copy.source);
            writer.leaf("CopyProgress", &format!("{}/{}", copy.progress.0, copy.progress.1));
            writer.maybe("CopyCompletionTime", copy.completed.map(Moment::http).as_deref());
            writer.maybe("CopyStatusDescription", copy.description.as_deref());
        }
        writer.leaf("ServerEncrypted", "false");
        if let Some(increment) = blob.page().and_then(|page| page.incremental.as_ref()) {
            writer.leaf("IncrementalCopy", "true");
            writer.leaf("CopyDestinationSnapshot", &increment.made.iso());
        }
    }
}

/// The parts of a list request.
struct ListOptions<'a> {
    snapshots: bool,
    metadata: bool,
    tags: bool,
    uncommitted: bool,
    delimiter: Option<&'a str>,
    prefix: &'a str,
}

/// The limits of a page.
#[derive(Clone, Copy)]
struct Limit<'a> {
    /// Last name on the page before.
    after: Option<&'a str>,
    most: usize,
}

type Entry<'a> = (&'a String, Moment, Option<&'a Blob>);

/// Merges two sorted lists.
fn merge<'a>(
    a: impl Iterator<Item = Entry<'a>>,
    b: impl Iterator<Item = Entry<'a>>,
) -> impl Iterator<Item = Entry<'a>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(first), Some(second)) if second.0 < first.0 => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_round_trip() {
        let at = Moment(1_795_305_909_000_000_000);
        for (name, at) in
            [("a/b", Moment::FAR), ("?a", Moment::FAR), (" a", Moment::FAR), ("a", at)]
        {
            let mut head = crate::tests::head();
            head.query.push(("marker".to_owned(), marker(name, at)));
            assert_eq!(read_marker(&head), Ok(Some((name.to_owned(), at))), "{name}");
        }
        assert_eq!(marker("a/b", Moment::FAR), "a/b");
    }

    #[test]
    fn a_backslash_in_a_prefix_is_a_slash() {
        let mut head = crate::tests::head();
        assert_eq!(blob_prefix(&head), "");
        head.query.push(("prefix".to_owned(), "a\\b/c".to_owned()));
        assert_eq!(blob_prefix(&head), "a/b/c");
    }
}

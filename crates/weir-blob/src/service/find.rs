//! Finding blobs by their tags.

use super::blob::write_tags;
use super::list::max_results;
use super::shared::Service;
use crate::body::Reply;
use crate::fault::{Fault, Result};
use crate::head::Head;
use crate::query::Query;
use crate::state::{Place, State};
use crate::tags::Tags;
use crate::time::Moment;
use crate::xml::Writer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::ops::Bound;

/// Maximum number of blobs and snapshots that a request looks at, because others wait for it. A page may
/// have no blobs and a marker.
const MOST_VISITS: usize = 20_000;

/// A place in the order of the search: container and blob.
type Visit = (String, Place);

/// Builds a marker from the last place that a page includes.
fn marker(container: &str, (name, at): &Place) -> String {
    URL_SAFE_NO_PAD.encode(format!("{container}\0{}\0{name}", at.0))
}

/// Reads a marker. The list continues after the place that it stands for.
fn read_marker(head: &Head) -> Result<Option<Visit>> {
    let Some(text) = head.param("marker") else { return Ok(None) };
    let wrong = || Fault::query("marker", text, "it is not a marker of this service");
    let decoded = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
    let decoded = String::from_utf8(decoded).map_err(|_| wrong())?;
    let mut parts = decoded.splitn(3, '\0');
    let mut next = || parts.next().ok_or_else(wrong);
    let (container, at, name) = (next()?, next()?, next()?);
    let at = Moment(at.parse().map_err(|_| wrong())?);
    Ok(Some((container.to_owned(), (name.to_owned(), at))))
}

/// A search for blobs.
struct Search<'a> {
    account: &'a str,
    /// The container of the request.
    only: Option<&'a str>,
    query: &'a Query,
    after: Option<&'a Visit>,
    most: usize,
    most_visits: usize,
}

/// The result of a search: containers, names and tags, and the marker of the next page.
#[derive(Debug, Default)]
struct Page<'a> {
    found: Vec<(&'a str, &'a str, &'a Tags)>,
    next: Option<String>,
}

impl Search<'_> {
    fn run<'a>(&self, state: &'a State) -> Page<'a> {
        let mut page = Page::default();
        let (mut visits, mut last) = (0, None);
        let only = self.only.or_else(|| self.query.container());
        let first = self.after.map_or("", |(container, _)| container);
        let first = only.map_or(first, |only| only.max(first));
        let containers = state.containers_from(self.account, first);
        let containers = containers.take_while(|(name, _)| only.is_none_or(|only| *name <= only));
        for (container, held) in containers.filter(|(name, _)| self.query.includes(name)) {
            let after = self.after.filter(|(own, _)| own == container).map(|(_, place)| place);
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            for (place, blob) in held.blobs.range::<Place, _>((from, Bound::Unbounded)) {
                let is_found = place.1 == Moment::FAR
                    && !blob.tags.is_empty()
                    && self.query.finds(container, &blob.tags);
                if visits == self.most_visits || (is_found && page.found.len() == self.most) {
                    page.next = last.map(|(container, place)| marker(container, place));
                    return page;
                }
                (visits, last) = (visits + 1, Some((container, place)));
                if is_found {
                    page.found.push((container, &place.0, &blob.tags));
                }
            }
        }
        page
    }
}

impl Service {
    /// Finds blobs of the account or of a container. The response has the tags that the query names.
    pub(super) fn find_blobs(&self, head: &Head) -> Result<Reply> {
        let text = head.param("where").unwrap_or_default();
        let query = Query::parse(text)?;
        let (most, after) = (max_results(head)?, read_marker(head)?);
        let (account, only) = (&*head.target.account, head.target.container.as_deref());
        let state = self.state.borrow();
        if let Some(only) = only {
            state.container(account, only)?;
        }
        let (query, after, most_visits) = (&query, after.as_ref(), MOST_VISITS);
        let page = Search { account, only, query, after, most, most_visits }.run(&state);
        let mut writer = Writer::new();
        let service = self.service_url(head);
        writer.with("EnumerationResults", &[("ServiceEndpoint", &service)], |writer| {
            writer.leaf("Where", text);
            writer.within("Blobs", |writer| {
                for (container, name, tags) in page.found {
                    writer.within("Blob", |writer| {
                        writer.name(name);
                        writer.leaf("ContainerName", container);
                        write_tags(writer, query.shown(tags));
                    });
                }
            });
            writer.leaf("NextMarker", page.next.as_deref().unwrap_or_default());
        });
        Ok(Reply::new(200).xml(writer.done()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Key;
    use crate::state::Names;
    use serde_json::{Value, json};

    fn record(container: &str, blob: &str, at: Option<Moment>, color: &str) -> (Key, Value) {
        let names = Names { account: "a", container, blob };
        let content = json!({ "block": { "blocks": [] } });
        let tags = json!({ "color": color });
        let blob =
            json!({ "created": 1, "modified": 1, "etag": 1, "tags": tags, "content": content });
        (names.key(at), blob)
    }

    /// Returns a state with red and blue blobs in three containers, one of them with snapshots.
    fn state() -> State {
        let mut records = Vec::new();
        for container in ["c1", "c2", "c3"] {
            let key = Key::Container("a".to_owned(), container.to_owned());
            records.push((key, json!({ "etag": 1, "modified": 1 })));
            for n in 0..10 {
                let color = if n % 5 == 4 { "red" } else { "blue" };
                records.push(record(container, &format!("b{n}"), None, color));
            }
        }
        records.extend((1..8).map(|at| record("c2", "b4", Some(Moment(at)), "red")));
        State::load(records).expect("a state")
    }

    /// Returns the blobs on each page.
    fn pages(text: &str, only: Option<&str>, most: usize, most_visits: usize) -> Vec<Vec<String>> {
        let (state, query) = (state(), Query::parse(text).expect("a query"));
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let search = Search {
                account: "a",
                only,
                query: &query,
                after: after.as_ref(),
                most,
                most_visits,
            };
            let page = search.run(&state);
            let found = page.found.iter().map(|(container, name, _)| format!("{container}/{name}"));
            pages.push(found.collect());
            assert!(pages.len() < 100, "{text} does not end");
            let Some(next) = page.next else { return pages };
            let mut head = crate::tests::head();
            head.query.push(("marker".to_owned(), next));
            after = read_marker(&head).expect("a marker");
        }
    }

    #[test]
    fn a_search_looks_at_a_limited_number_of_blobs_per_page() {
        let all = ["c1/b4", "c1/b9", "c2/b4", "c2/b9", "c3/b4", "c3/b9"];
        for (most, most_visits, expect) in [
            (5000, 1000, 1),
            (5000, 37, 1),
            (5000, 36, 2),
            (5000, 4, 10),
            (5000, 1, 37),
            (2, 1000, 3),
            (1, 1000, 6),
        ] {
            let pages = pages("color='red'", None, most, most_visits);
            assert_eq!(pages.concat(), all, "{most} {most_visits}");
            assert_eq!(pages.len(), expect, "{most} {most_visits}");
        }
        assert!(pages("color='red'", None, 5000, 4)[0].is_empty());
    }

    #[test]
    fn a_search_leaves_out_other_containers() {
        for (text, only, expect) in [
            ("@container='c3' and color='red'", None, &["c3/b4", "c3/b9"][..]),
            ("color='red'", Some("c3"), &["c3/b4", "c3/b9"]),
            ("@container='c1' and @container='c3' and color='red'", None, &[]),
            ("@container='c1' and color='red'", Some("c3"), &[]),
            ("@container='none' and color='red'", None, &[]),
        ] {
            // The blobs of the other containers would need several pages.
            let pages = pages(text, only, 5000, 10);
            assert_eq!(pages, [expect], "{text} {only:?}");
        }
    }
}

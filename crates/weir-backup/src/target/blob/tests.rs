use super::*;
use crate::format::{BackupId, Kind};
use crate::library::{Library, State};
use crate::place::Place;
use crate::target::PlaceSpec;
use crate::testing::http::{Asked, Endpoint, Reply};
use crate::testing::identity;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longer than anything takes that is not waiting for a dead endpoint.
const LONG: Duration = Duration::from_secs(25);

#[test]
fn a_list_of_blobs_is_read() {
    let text = "\u{feff}<?xml version=\"1.0\"?><EnumerationResults><Blobs><Blob><Name>a/b &amp; \
                c.weirbak</Name><Properties><Content-Length>1024</Content-Length><Last-Modified>\
                Wed, 09 Sep 2009 09:20:02 GMT</Last-Modified></Properties>\
                <Metadata><Name>no</Name></Metadata></Blob><Blob><Name>d</Name></Blob></Blobs>\
                <NextMarker>2!m</NextMarker></EnumerationResults>";
    let (all, marker) = parse_list(text.as_bytes()).expect("a list");
    let first = Listed {
        name: "a/b & c.weirbak".to_owned(),
        length: 1024,
        is_page: false,
        modified_unix_ms: Some(1_252_488_002_000),
    };
    let second = Listed { name: "d".to_owned(), ..Listed::default() };
    assert_eq!(all, [first, second]);
    assert_eq!(marker, "2!m");
    assert!(parse_list(b"<a><b></a>").is_err());
}

#[test]
fn ids_of_blocks_are_equally_long() {
    assert_eq!(block_id(0).len(), block_id(u64::MAX).len());
}

fn answer(status: u16) -> Reply {
    Reply::Answer(status, Vec::new(), Vec::new())
}

fn url(endpoint: &Endpoint) -> ContainerUrl {
    ContainerUrl::parse(&endpoint.url).unwrap()
}

/// An endpoint that keeps what is put, except that `reply` may say something else.
fn keeping(reply: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Endpoint {
    let kept: Mutex<Vec<Asked>> = Mutex::default();
    Endpoint::new(move |asked| {
        let path = asked.target.split('?').next().unwrap().to_owned();
        let is_it = |own: &Asked| own.target.split('?').next() == Some(path.as_str());
        let is_part = asked.target.contains("comp=block&") || asked.target.contains("comp=page");
        let mut kept = kept.lock().unwrap();
        let at = kept.iter().position(is_it);
        let done = match (asked.method.as_str(), at) {
            ("PUT", Some(_)) if asked.header("if-none-match").is_some() => answer(412),
            ("PUT", _) => {
                if !is_part {
                    kept.retain(|own| !is_it(own));
                    kept.push(asked.clone());
                }
                answer(201)
            }
            ("HEAD", Some(at)) => {
                let writer = kept[at].header(WRITER).unwrap_or_default().to_owned();
                Reply::Answer(200, vec![(WRITER.to_owned(), writer)], Vec::new())
            }
            ("DELETE", Some(at)) => {
                kept.remove(at);
                answer(202)
            }
            _ => answer(404),
        };
        reply(asked).unwrap_or(done)
    })
}

/// The first conditional PUT is done and its answer lost; the second one is refused.
#[test]
fn a_put_whose_answer_was_lost_is_recognised() {
    for kind in [BlobKind::Block, BlobKind::Page(4096)] {
        let lost = AtomicBool::new(false);
        let endpoint = keeping(move |asked| {
            let is_first = asked.method == "PUT"
                && asked.header("if-none-match").is_some()
                && !lost.swap(true, Ordering::Relaxed);
            is_first.then_some(Reply::Lost)
        });
        let blob = StripeBlob::create(&url(&endpoint), "s-01of01.weirbak", kind).unwrap();
        blob.write_at(0, &identity(1, 1, None).header(0)).unwrap();
        blob.publish().unwrap();
        let conditional = |own: &&Asked| own.header("if-none-match").is_some();
        assert_eq!(endpoint.asked().iter().filter(conditional).count(), 2);
    }
}

#[test]
fn a_blob_of_somebody_else_is_no_own_one() {
    // It came between the look and the end.
    let other = |asked: &Asked| {
        let reply = match asked.method.as_str() {
            "PUT" if asked.target.contains("blocklist") => answer(412),
            "HEAD" => Reply::Answer(200, vec![(WRITER.to_owned(), "x".to_owned())], Vec::new()),
            _ => return None,
        };
        Some(reply)
    };
    let looks = AtomicUsize::new(0);
    let endpoint = keeping(move |asked| {
        let is_look = asked.method == "HEAD" && looks.fetch_add(1, Ordering::Relaxed) == 0;
        if is_look { None } else { other(asked) }
    });
    let blob = StripeBlob::create(&url(&endpoint), "s-01of01.weirbak", BlobKind::Block).unwrap();
    blob.write_at(0, &identity(1, 1, None).header(0)).unwrap();
    let error = blob.publish().unwrap_err();
    assert!(error.is_input() && error.to_string().contains("412"), "{error}");
    blob.discard().unwrap();
    // Existing data is left alone; only the marker is removed.
    let deleted = |own: &&Asked| own.method == "DELETE";
    let deleted: Vec<_> = endpoint.asked().iter().filter(deleted).cloned().collect();
    assert!(matches!(&deleted[..], [own] if own.target.ends_with(".weirbak.tmp")), "{deleted:?}");
}

/// Uncommitted blocks are invisible: the marker shows the differential, and the full it builds on.
#[test]
fn a_block_blob_that_is_written_is_seen_by_its_marker() {
    let endpoint = keeping(|_| None);
    let own = identity(2, 1, Some(1));
    let mut blob = StripeBlob::create(&url(&endpoint), &own.file_name(0), BlobKind::Block).unwrap();
    blob.marker.every = Span::ZERO;
    blob.write_at(0, &own.header(0)).unwrap();
    blob.write_at(512, &[1; 512]).unwrap();
    let is_marker = |own: &&Asked| own.method == "PUT" && own.target.ends_with(".weirbak.tmp");
    let markers: Vec<_> = endpoint.asked().iter().filter(is_marker).cloned().collect();
    // The second one tells that the backup goes on.
    assert_eq!(markers.len(), 2);
    assert!(markers.iter().all(|marker| marker.body == own.header(0)));

    // A place that lists it knows the differential, its full backup, and when it was written to.
    let (name, header) = (own.file_name(0), own.header(0).to_vec());
    let listing = Endpoint::new(move |asked| {
        if !asked.target.contains("comp=list") {
            return Reply::Answer(206, Vec::new(), header.clone());
        }
        let list = format!(
            "<E><Blobs><Blob><Name>{name}.tmp</Name><Properties><Content-Length>512\
             </Content-Length><Last-Modified>Wed, 09 Sep 2009 09:20:02 GMT</Last-Modified>\
             </Properties></Blob></Blobs></E>"
        );
        Reply::Answer(200, Vec::new(), list.into_bytes())
    });
    let place: Box<dyn Place> = Box::new(Container::new(url(&listing)));
    let library = Library::open(vec![place]).unwrap();
    let [entry] = library.entries() else { panic!("{library:?}") };
    assert_eq!(entry.identity.kind, Kind::Differential);
    assert_eq!(entry.identity.base, Some(BackupId::from_bytes([1; 16])));
    assert!(!entry.is_complete());
    assert_eq!(entry.modified_unix_ms, Some(1_252_488_002_000));

    // Nothing of it is left at the end.
    blob.publish().unwrap();
    let gone = endpoint
        .asked()
        .into_iter()
        .any(|own| own.method == "DELETE" && own.target.ends_with(".weirbak.tmp"));
    assert!(gone);
}

#[test]
fn a_request_to_stop_ends_the_wait_for_a_dead_endpoint() {
    let endpoint = Endpoint::new(|_| Reply::Silence);
    let flag = Arc::new(AtomicBool::new(false));
    let cancel = crate::Cancel::new([Arc::clone(&flag)]);
    let spec = PlaceSpec::parse(&endpoint.url).unwrap().with_cancel(&cancel);
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let mut place = spec.open().unwrap();
        drop(done.send(place.list().map(|_| ())));
    });
    while endpoint.asked().is_empty() {
        std::thread::yield_now();
    }
    flag.store(true, Ordering::Relaxed);
    let ended = ended.recv_timeout(LONG).expect("it waits on");
    assert!(matches!(ended, Err(BackupError::Interrupted)), "{ended:?}");
}

#[test]
fn a_stripe_that_is_cancelled_ends_its_writes() {
    let endpoint = Endpoint::new(|asked| match asked.method.as_str() {
        "HEAD" => answer(404),
        _ => Reply::Silence,
    });
    let blob = StripeBlob::create(&url(&endpoint), "s-01of01.weirbak", BlobKind::Block).unwrap();
    let blob = Arc::new(blob);
    let (own, (done, ended)) = (Arc::clone(&blob), channel());
    std::thread::spawn(move || drop(done.send(own.write_at(512, &[1; 512]))));
    while endpoint.asked().len() < 2 {
        std::thread::yield_now();
    }
    blob.cancel();
    let ended = ended.recv_timeout(LONG).expect("it waits on");
    assert!(matches!(ended, Err(BackupError::Interrupted)), "{ended:?}");
}

/// An endpoint with one page blob of the stripe 1 of a backup, and its marker if it is being written.
fn page_blob(bytes: Vec<u8>, is_written: bool) -> Endpoint {
    let name = identity(1, 2, None).file_name(0);
    Endpoint::new(move |asked| {
        let length = bytes.len();
        if asked.target.contains("comp=list") {
            let date = "<Last-Modified>Wed, 09 Sep 2009 09:20:02 GMT</Last-Modified>";
            let marker = match is_written {
                true => format!(
                    "<Blob><Name>{name}.tmp</Name><Properties><Content-Length>512</Content-Length>\
                     {date}<BlobType>BlockBlob</BlobType></Properties></Blob>"
                ),
                false => String::new(),
            };
            let list = format!(
                "<E><Blobs><Blob><Name>{name}</Name><Properties><Content-Length>{length}\
                 </Content-Length>{date}<BlobType>PageBlob</BlobType></Properties></Blob>{marker}\
                 </Blobs></E>"
            );
            return Reply::Answer(200, Vec::new(), list.into_bytes());
        }
        if bytes.is_empty() {
            return answer(403);
        }
        let range = asked.header("x-ms-range").unwrap().strip_prefix("bytes=").unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let part = start.parse::<usize>().unwrap()..end.parse::<usize>().unwrap() + 1;
        Reply::Answer(206, Vec::new(), bytes[part].to_vec())
    })
}

#[test]
fn a_damaged_page_blob_was_finished_unless_its_marker_says_otherwise() {
    let own = identity(1, 2, None);
    let sources = [crate::testing::source("data", 9000, 1)];
    let mut bytes = crate::memory::write(&own, &sources, 4096, None, None).unwrap().remove(0);
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    for (is_written, state) in [(false, State::Damaged), (true, State::Incomplete)] {
        let endpoint = page_blob(bytes.clone(), is_written);
        let place: Box<dyn Place> = Box::new(Container::new(url(&endpoint)));
        let library = Library::open(vec![place]).unwrap();
        let [entry] = library.entries() else { panic!("{library:?}") };
        assert_eq!(entry.state, state, "{:?}", entry.gaps);
    }
    // One that cannot be read at all is no unfinished one either: nothing is pruned beside it.
    let endpoint = page_blob(Vec::new(), false);
    let place: Box<dyn Place> = Box::new(Container::new(url(&endpoint)));
    let library = Library::open(vec![place]).unwrap();
    assert!(library.strangers().any(|found| found.is_published), "{library:?}");
}

/// The marker of a page blob is there before the blob, and goes after it.
#[test]
fn a_page_blob_has_a_marker_while_it_is_written() {
    let own = identity(1, 1, None);
    for is_published in [true, false] {
        let endpoint = keeping(|_| None);
        let kind = BlobKind::Page(4096);
        let blob = StripeBlob::create(&url(&endpoint), &own.file_name(0), kind).unwrap();
        blob.write_at(0, &own.header(0)).unwrap();
        if is_published {
            blob.publish().unwrap()
        } else {
            blob.discard().unwrap()
        }
        let is_marker = |asked: &Asked| asked.target.ends_with(".weirbak.tmp");
        let asked: Vec<(String, bool)> =
            endpoint.asked().iter().map(|own| (own.method.clone(), is_marker(own))).collect();
        let asked: Vec<(&str, bool)> = asked.iter().map(|(own, is)| (own.as_str(), *is)).collect();
        let mut expect =
            vec![("HEAD", false), ("PUT", true), ("PUT", false), ("PUT", true), ("PUT", false)];
        expect.extend((!is_published).then_some(("DELETE", false)));
        expect.push(("DELETE", true));
        assert_eq!(asked, expect);
    }
}

#[test]
fn a_commit_without_an_answer_is_looked_up() {
    // It is done, and no answer comes.
    let lost = |asked: &Asked| asked.target.contains("blocklist").then_some(Reply::Lost);
    let endpoint = keeping(lost);
    let make = |endpoint: &Endpoint| {
        let kind = BlobKind::Block;
        let mut blob = StripeBlob::create(&url(endpoint), "s-01of01.weirbak", kind).unwrap();
        blob.client.retrying = Duration::ZERO;
        blob.write_at(0, &identity(1, 1, None).header(0)).unwrap();
        blob
    };
    make(&endpoint).publish().unwrap();

    // It is not done.
    let refused = |asked: &Asked| asked.target.contains("blocklist").then(|| answer(500));
    let endpoint = Endpoint::new(move |asked| match asked.method.as_str() {
        "HEAD" => answer(404),
        _ => refused(asked).unwrap_or_else(|| answer(201)),
    });
    let blob = make(&endpoint);
    let error = blob.publish().unwrap_err().to_string();
    assert!(error.contains("refused with 500"), "{error}");
    blob.discard().unwrap();

    // It is done or will be, and the next attempt is refused, since the signature has expired.
    let puts = AtomicUsize::new(0);
    let late = Endpoint::new(move |asked| match asked.method.as_str() {
        "HEAD" => answer(404),
        _ if !asked.target.contains("blocklist") => answer(201),
        _ if puts.fetch_add(1, Ordering::Relaxed) == 0 => Reply::Lost,
        _ => answer(403),
    });
    let mut blob = make(&late);
    blob.client.retrying = Duration::from_secs(30);
    let error = blob.publish().unwrap_err().to_string();
    assert!(error.contains("refused with 403"), "{error}");
    let error = blob.discard().unwrap_err().to_string();
    assert!(error.contains("is not there, but a request that got no answer may still make it"));
    assert!(late.asked().iter().all(|own| own.method != "DELETE"), "the marker stays");

    // The endpoint does not answer.
    let looks = AtomicUsize::new(0);
    let endpoint = keeping(move |asked| {
        let is_later = asked.method == "HEAD" && looks.fetch_add(1, Ordering::Relaxed) > 0;
        if is_later { Some(answer(500)) } else { lost(asked) }
    });
    let blob = make(&endpoint);
    blob.publish().unwrap_err();
    let error = blob.discard().unwrap_err().to_string();
    assert!(error.starts_with("it is not known whether http://"), "{error}");
    // The marker stays, so that it is looked at.
    assert!(endpoint.asked().iter().all(|own| own.method != "DELETE"));
}

#[test]
fn a_service_that_is_busy_for_long_is_asked_again() {
    let busy = AtomicUsize::new(0);
    let endpoint = Endpoint::new(move |_| match busy.fetch_add(1, Ordering::Relaxed) {
        0..6 => Reply::Answer(503, vec![("retry-after".to_owned(), "0".to_owned())], Vec::new()),
        _ => answer(404),
    });
    StripeBlob::create(&url(&endpoint), "s-01of01.weirbak", BlobKind::Block).unwrap();
    assert_eq!(endpoint.asked().len(), 7);
}

#[test]
fn a_request_without_a_signature_is_told_how_to_get_one() {
    for status in [403, 404, 409] {
        let endpoint = Endpoint::new(move |_| answer(status));
        let check = |url: ContainerUrl| Container::new(url).check().unwrap_err().to_string();
        let text = check(url(&endpoint).with_sas(""));
        assert!(text.contains("give one with --sas-file FILE"), "{text}");
        let text = check(url(&endpoint).with_sas("sig=secret"));
        assert!(!text.contains("sas-file") && !text.contains("secret"), "{text}");
    }
}

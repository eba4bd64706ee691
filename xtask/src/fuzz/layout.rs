//! Invariants of a layout file: it is read, or rejected with a message; a layout compiles to an
//! engine; and the engine accounts for every nanosecond of a few requests at the ends of its
//! exports.

use std::sync::LazyLock;
use weir_catalog::Catalog;
use weir_core::engine::MAX_REQUEST;
use weir_core::{CacheMode, Completion, Engine, Event, Op, Request, VolumeId};
use weir_layout::{Export, Host, Layout};
use weir_units::{Bytes, Instant};

const FILE: &str = "fuzz.toml";
/// Maximum number of exports that get requests.
const MAX_EXPORTS: usize = 6;
/// Maximum number of deadlines to follow per host.
const MAX_STEPS: usize = 2_000;
/// Maximum size of a request to a stripe, which splits it at each unit, possibly of 512 bytes.
const MAX_STRIPED: u64 = 64 << 10;
/// Maximum size of a write to a read-write cache or of a discard, which the engine processes in
/// blocks of 4 KiB.
const MAX_BLOCKWISE: u64 = 1 << 20;

/// Near the end of the clock, instants saturate.
const LAST: Instant = Instant::from_nanos(u64::MAX / 8 * 7);

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Layout::parse(FILE, &text, &CATALOG) {
        Ok(layout) => layout.hosts.iter().for_each(|host| {
            change(host, &layout);
            drive(host);
        }),
        Err(error) => {
            let message = error.to_string();
            let kind = error.kind.to_string();
            assert!(message.starts_with(FILE), "the message names no file: {message}");
            assert!(!kind.trim().is_empty(), "the message says nothing: {message}");
            if let Some((line, column)) = error.place.at {
                let named = text.split('\n').nth(line - 1);
                let room = named.map_or(0, |named| named.chars().count() + 1);
                assert!((1..=room).contains(&column), "{message}: there is no such place");
            }
        }
    }
}

/// Applies sizes and cache modes that a client of the control socket may request.
fn change(host: &Host, layout: &Layout) {
    let edition = layout.edition.as_deref().and_then(|name| CATALOG.edition(name).ok());
    let said = |result: Result<_, weir_layout::error::Kind>| {
        if let Err(kind) = result {
            assert!(!kind.to_string().trim().is_empty(), "a change was refused without a word");
        }
    };
    for volume in (0..host.volumes.len().min(MAX_EXPORTS)).map(VolumeId) {
        for size in [0, 512, 4095, 100 << 30, 32 << 40, 1 << 60, u64::MAX] {
            said(host.resized(volume, Bytes::new(size), edition));
        }
        for mode in CacheMode::ALL {
            said(host.recached(volume, mode, edition));
        }
    }
}

/// Compiles a host and sends requests through it.
fn drive(host: &Host) {
    let mut engine = Engine::new(host.spec.clone())
        .unwrap_or_else(|error| panic!("a layout was accepted that has no engine: {error}"));
    let mut taken = 0_usize;
    let mut now = Instant::ZERO;
    let mut last_event = Instant::ZERO;
    for export in host.exports.iter().take(MAX_EXPORTS) {
        for request in requests(host, export) {
            engine
                .handle_request(now, &request)
                .unwrap_or_else(|refused| panic!("{request:?} of {export:?}: {refused}"));
            taken += 1;
        }
    }
    let mut steps = 0..MAX_STEPS;
    loop {
        while let Some(event) = engine.poll_event() {
            let Event::Completed(completion) = event else { continue };
            taken =
                taken.checked_sub(1).unwrap_or_else(|| panic!("{completion:?} is one too many"));
            check_times(&completion, now);
            assert!(completion.at >= last_event, "{completion:?} comes before {last_event:?}");
            last_event = completion.at;
        }
        match engine.poll_deadline() {
            Some(at) if at < LAST && steps.next().is_some() => {
                assert!(at >= now, "a deadline has passed: {at:?} at {now:?}");
                now = at;
                engine.handle_timeout(now);
            }
            Some(_) => return,
            None => break,
        }
    }
    assert_eq!((taken, engine.outstanding()), (0, 0), "requests wait for nothing");
}

/// Returns a few requests at the first and the last bytes.
fn requests(host: &Host, export: &Export) -> Vec<Request> {
    let size = export.size.get();
    assert!(export.unit.is_some() || size > 0, "{export:?} is empty");
    let most = match export.unit {
        Some(_) => MAX_STRIPED,
        None if export
            .volumes
            .iter()
            .any(|v: &VolumeId| host.spec.volumes[v.0].cache == CacheMode::ReadWrite) =>
        {
            MAX_BLOCKWISE
        }
        None => MAX_REQUEST,
    };
    let mixed = [Op::Read, Op::Write, Op::WriteThrough, Op::Discard, Op::Read, Op::Flush];
    let ops = mixed.into_iter().chain([Op::Write, Op::Read, Op::Write, Op::Read, Op::Write]);
    ops.flat_map(|op| {
        let len = size.min(if op == Op::Discard { most.min(MAX_BLOCKWISE) } else { most });
        let at = |offset| Request { device: export.device, op, offset, len, tag: 0 };
        // A stripe whose columns are smaller than its unit is empty.
        let some = if len == 0 { 0 } else { 2 };
        [at(0), at(size - len)].into_iter().take(some)
    })
    .collect()
}

/// Checks that every nanosecond of a request is charged to a limit or to the medium.
fn check_times(completion: &Completion, now: Instant) {
    let Completion { arrived, at, waits, medium, .. } = completion;
    assert!(arrived <= at && *at <= now, "{completion:?} at {now:?}");
    assert_eq!(*at - *arrived, waits.total() + *medium, "the times do not add up: {completion:?}");
}

//! Invariants of an OLTP description: it is read, or rejected with a message, and the database's
//! I/O stays in its files.

use std::collections::VecDeque;
use weir_oltp::model::Growth;
use weir_oltp::{Database, Description, FileAbout, Model, OltpError};
use weir_units::{Bytes, Instant, Span};

/// Maximum number of users and pages of a database that runs, because they take memory.
const MAX_USERS: u32 = 1_000;
const MAX_PAGES: u64 = 1 << 15;
/// Maximum number of I/Os and of polls in a run.
const MAX_IOS: usize = 400;
const MAX_STEPS: usize = 2_000;

const FILES: [(&str, Bytes); 5] = [
    ("data", Bytes::gib(64)),
    ("more", Bytes::mib(100)),
    ("log", Bytes::gib(1)),
    ("small", Bytes::kib(100)),
    ("temp", Bytes::mib(64)),
];

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let description = match Description::parse("fuzz.toml", &text) {
        Err(error) => return said(&error),
        Ok(description) => description,
    };
    let mut files = FILES.map(|(name, size)| FileAbout::new(name, size));
    // The small file grows.
    files[3].growth = Some(Growth { by: Bytes::kib(64), most: Bytes::mib(1) });
    assert_eq!(description.check_roles(&files), Ok(()), "nothing is said of the files");
    match description.model(&files, 1) {
        Err(error) => said(&error),
        Ok(model) if is_small(&model) => drive(Database::new(model)),
        Ok(_) => {}
    }
}

fn said(error: &OltpError) {
    assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
}

fn is_small(model: &Model) -> bool {
    let tempdb = model.tempdb.as_ref().map_or(0, |tempdb| tempdb.size.get() / 8192);
    model.users <= MAX_USERS
        && model.working_set.max(tempdb) <= MAX_PAGES
        && model.mix.iter().all(|kind| {
            [kind.reads, kind.writes, kind.new_pages].into_iter().all(|mean: f64| mean <= 1_000.0)
        })
        && model.mix.iter().all(|kind| kind.hot_writes.max(kind.tempdb_pages) <= 1_000)
}

/// Completes each I/O a millisecond after it is issued, in order.
fn drive(mut database: Database) {
    let mut now = Instant::ZERO;
    let mut in_flight: VecDeque<(Instant, u32)> = VecDeque::new();
    let mut ios = 0;
    let mut sizes = FILES.map(|(_, size)| size);
    for _ in 0..MAX_STEPS {
        while let Some(growth) = database.poll_growth() {
            let size = &mut sizes[growth.file as usize];
            assert!(*size < growth.size && growth.size <= Bytes::mib(1), "{growth:?}");
            *size = growth.size;
            database.handle_growth(now, true);
        }
        while let Some(io) = database.poll_io() {
            let size = sizes[io.file as usize];
            let end = io.offset.checked_add(io.len);
            assert!(io.len > 0 && end.is_some_and(|end| end <= size.get()), "{io:?} of {size}");
            in_flight.push_back((now + Span::from_millis(1), io.tag));
            ios += 1;
            if ios == MAX_IOS {
                return;
            }
        }
        let completion = in_flight.front().map(|(at, _)| *at);
        let next = completion.into_iter().chain(database.poll_deadline()).min();
        let Some(next) = next else { panic!("a database waits for nothing") };
        assert!(next >= now, "{next:?} is before {now:?}");
        now = next;
        while let Some((at, tag)) = in_flight.front().copied()
            && at <= now
        {
            in_flight.pop_front();
            database.handle_completion(now, tag, Span::ZERO);
        }
        database.handle_timeout(now);
    }
}

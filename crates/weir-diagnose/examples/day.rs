//! Writes an observation of a day of so many files at one second, as SQL Server counts them, to
//! time its diagnosis: `cargo run --release -p weir-diagnose --example day -- 1000 day.weirobs`.
//!
//! With a third argument it also writes the same as CSV for others to read, a row per file and
//! sample: second, file, reads, writes, bytes read and written, stalls in ms.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use weir_import::Sheet;
use weir_observe::metric as m;
use weir_observe::{Attribute, EntityKind, Header, Source, SourceKind, Writer};
use weir_random::Rng;
use weir_units::{Instant, Span};

const SECONDS: u64 = 86_400;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: day FILES OUT [CSV]";
    let files: u64 = args.next().ok_or(usage)?.parse()?;
    let out = args.next().ok_or(usage)?;
    let mut csv = args.next().map(File::create).transpose()?.map(BufWriter::new);
    let mut sheet = Sheet::default();
    let host = sheet.entity(EntityKind::Host, "server", None);
    let database = sheet.entity(EntityKind::Database, "db", Some(host));
    let measures = [
        m::NUM_OF_READS,
        m::NUM_OF_WRITES,
        m::NUM_OF_BYTES_READ,
        m::NUM_OF_BYTES_WRITTEN,
        m::IO_STALL_READ_MS,
        m::IO_STALL_WRITE_MS,
    ];
    let ids: Vec<_> = (0..files)
        .map(|file| {
            let id = sheet.entity(EntityKind::File, &format!("data{file}"), Some(database));
            measures.iter().for_each(|measure| {
                sheet.series(id, measure);
            });
            id
        })
        .collect();
    let about = BTreeMap::new();
    let source =
        Source { kind: SourceKind::Other("example".to_owned()), by: "day".to_owned(), about };
    let mut header = Header::new(source);
    header.contents = sheet.contents().clone();
    for id in ids {
        let own = &mut header.contents.entities[id.0 as usize];
        own.attributes.insert("size_bytes".to_owned(), Attribute::Number(100 << 30));
        own.attributes.insert("role".to_owned(), Attribute::Text("data".to_owned()));
    }
    let mut writer = Writer::new(BufWriter::new(File::create(out)?), &header)?;
    let mut rng = Rng::from_state(1);
    let mut counts = vec![[0_u64; 6]; usize::try_from(files)?];
    let mut row: Vec<Option<i64>> = Vec::new();
    if let Some(csv) = &mut csv {
        writeln!(csv, "second,file,reads,writes,read_bytes,write_bytes,read_ms,write_ms")?;
    }
    for second in 0..=SECONDS {
        row.clear();
        for (file, counts) in counts.iter_mut().enumerate() {
            // One file of ten is throttled at 500 IOPS for an hour.
            let is_held = file % 10 == 0 && (36_000..39_600).contains(&second);
            let busy = if is_held { 300 } else { rng.next_u64() % 120 };
            let (reads, writes) = (busy, busy * 2 / 3);
            let each_us = if is_held { 40_000 } else { 2_500 + rng.next_u64() % 1_000 };
            counts[0] += reads;
            counts[1] += writes;
            counts[2] += reads * 8192;
            counts[3] += writes * 8192;
            counts[4] += reads * each_us / 1000;
            counts[5] += writes * each_us / 1000;
            for (measure, count) in measures.iter().zip(counts.iter()) {
                #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
                row.push(measure.stored(*count as f64));
            }
            if let Some(csv) = &mut csv {
                let [a, b, c, d, e, f] = counts;
                writeln!(csv, "{second},{file},{a},{b},{c},{d},{e},{f}")?;
            }
        }
        writer.sample(Instant::ZERO + Span::from_secs(second), &row)?;
    }
    writer.finish(true)?.flush()?;
    if let Some(mut csv) = csv {
        csv.flush()?;
    }
    Ok(())
}

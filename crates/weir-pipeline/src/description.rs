//! The file `backup.toml`: the description of a backup.
//!
//! ```toml
//! [backup]
//! sources = ["data"]
//! to = ["backup1", "backup2"]
//! stripes = 8
//! size = "50GiB"
//! ```

use crate::buffers::{Buffers, LARGEST_TRANSFER, MAX_TRANSFER, MIN_TRANSFER};
use crate::error::{BackupError, BackupFault};
use crate::pipeline::{Plan, Source};
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use weir_units::{Bytes, BytesPerSec, Span};

/// Maximum stripes of a media set of SQL Server.
const MAX_STRIPES: u32 = 64;
/// Maximum buffers: 64 GiB of 4 MiB each.
const MAX_BUFFERS: u32 = 16 << 10;
const MAX_READERS: u32 = 64;
/// The bytes of a page.
pub const PAGE: u64 = 8192;
/// A whole in thousandths.
const WHOLE: f64 = 1000.0;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    backup: Keys,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    sources: Spanned<Vec<Spanned<String>>>,
    to: Spanned<Vec<Spanned<String>>>,
    stripes: Option<Spanned<u32>>,
    readers: Option<Spanned<u32>>,
    size: Option<Spanned<Bytes>>,
    max_transfer_size: Option<Spanned<Bytes>>,
    buffer_count: Option<Spanned<u32>>,
    compression: Option<CompressionKeys>,
    limit: Option<BytesPerSec>,
    start: Option<Span>,
    setup: Option<Span>,
}

/// The effect of compression, and its cost.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompressionKeys {
    /// The compressed size as a share of the original.
    ratio: Spanned<f64>,
    /// The bytes that a processor compresses in a second.
    rate: Spanned<Bytes>,
    /// Processors that compress at once.
    threads: Spanned<u32>,
}

/// A place of a layout, with the properties that a backup needs.
#[derive(Debug, Clone, Copy)]
pub struct PlaceAbout<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size.
    pub size: Bytes,
    /// The bytes of it in use, if the layout states them.
    pub used: Option<Bytes>,
}

/// A description of a backup that is valid on its own.
#[derive(Debug, Clone)]
pub struct Description {
    /// The start of the backup, from that of the run.
    pub start: Span,
    /// The time from its start to the first transfer: checkpoint, allocation maps, files.
    pub setup: Span,
    file: String,
    text: String,
    keys: Keys,
}

/// A file and its text, for positions in messages.
#[derive(Clone, Copy)]
struct Text<'a> {
    file: &'a str,
    text: &'a str,
}

impl Text<'_> {
    fn error(&self, span: Option<Range<usize>>, fault: BackupFault) -> BackupError {
        let at = span.map(|span| {
            let before = self.text.get(..span.start).unwrap_or(self.text);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
            (before.matches('\n').count() + 1, column + 1)
        });
        BackupError { file: self.file.to_owned(), at, fault: Box::new(fault) }
    }

    /// Returns an error at `value` unless it is within a range.
    fn check<T: Copy + PartialOrd + std::fmt::Display>(
        &self,
        key: &'static str,
        value: Option<&Spanned<T>>,
        (least, most): (T, T),
    ) -> Result<(), BackupError> {
        let Some(value) = value else { return Ok(()) };
        let own = *value.get_ref();
        if least <= own && own <= most {
            return Ok(());
        }
        let allowed = format!("{least} to {most}");
        let fault = BackupFault::Range { key, value: own.to_string(), allowed };
        Err(self.error(Some(value.span()), fault))
    }
}

impl Description {
    /// Returns whether a text has a `[backup]` table, even if it is invalid otherwise.
    #[must_use]
    pub fn recognizes(text: &str) -> bool {
        text.lines().any(|line| line.trim_end() == "[backup]")
    }

    /// Reads a description. `file` is its name in messages.
    ///
    /// # Errors
    ///
    /// [`BackupError`] with file, line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, BackupError> {
        let source = Text { file, text };
        let parsed: Result<File, _> = toml::from_str(text);
        let File { backup: keys } = parsed.map_err(|error| {
            let message = weir_units::parser_message(error.message());
            source.error(error.span(), BackupFault::Syntax { message })
        })?;
        for (key, list) in [("sources", &keys.sources), ("to", &keys.to)] {
            if list.get_ref().is_empty() {
                return Err(source.error(Some(list.span()), BackupFault::Empty { key }));
            }
        }
        source.check("stripes", keys.stripes.as_ref(), (1, MAX_STRIPES))?;
        source.check("readers", keys.readers.as_ref(), (1, MAX_READERS))?;
        let transfers = (MIN_TRANSFER, LARGEST_TRANSFER);
        source.check("max_transfer_size", keys.max_transfer_size.as_ref(), transfers)?;
        if let Some(size) = &keys.max_transfer_size
            && size.get_ref().get() % MIN_TRANSFER.get() != 0
        {
            let (value, unit) = (*size.get_ref(), MIN_TRANSFER);
            return Err(source.error(Some(size.span()), BackupFault::Transfer { value, unit }));
        }
        source.check("buffer_count", keys.buffer_count.as_ref(), (1, MAX_BUFFERS))?;
        if let Some(own) = &keys.compression {
            source.check("compression.ratio", Some(&own.ratio), (0.001, 1.0))?;
            let rates = (Bytes::mib(1), Bytes::gib(1 << 10));
            source.check("compression.rate", Some(&own.rate), rates)?;
            source.check("compression.threads", Some(&own.threads), (1, 1024))?;
        }
        let most = u32::try_from(keys.to.get_ref().len()).unwrap_or(u32::MAX);
        if keys.stripes.is_none() && most > MAX_STRIPES {
            let (value, allowed) = (most.to_string(), format!("1 to {MAX_STRIPES} targets"));
            let fault = BackupFault::Range { key: "to", value, allowed };
            return Err(source.error(Some(keys.to.span()), fault));
        }
        let (start, setup) = (keys.start.unwrap_or_default(), keys.setup.unwrap_or_default());
        Ok(Self { start, setup, file: file.to_owned(), text: text.to_owned(), keys })
    }

    /// Returns the name of the backup: that of its file, without the extension.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = Path::new(&self.file).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Returns the maximum rate of reads.
    #[must_use]
    pub const fn limit(&self) -> Option<BytesPerSec> {
        self.keys.limit
    }

    /// Places the backup on a layout, whose files, volumes and stripes are `places`.
    ///
    /// # Errors
    ///
    /// [`BackupError`] for a place that is not there, is a source and a target, or is too small.
    pub fn plan(&self, places: &[PlaceAbout<'_>]) -> Result<Plan, BackupError> {
        let sources = self.find(places, "sources", &self.keys.sources)?;
        let targets = self.find(places, "to", &self.keys.to)?;
        let names = self.keys.to.get_ref();
        if let Some(at) = targets.iter().position(|target| sources.contains(target)) {
            let name = names[at].get_ref().clone();
            return Err(self.error(names[at].span(), BackupFault::SourceIsTarget { name }));
        }
        let stripes =
            self.keys.stripes.as_ref().map_or(targets.len(), |own| *own.get_ref() as usize);
        if let Some(name) = names.get(stripes) {
            let fault = BackupFault::Unused { name: name.get_ref().clone(), stripes };
            return Err(self.error(name.span(), fault));
        }
        let ranges = self.ranges(places, &sources)?;
        let readers = self.keys.readers.as_ref().map_or(1, |own| *own.get_ref());
        let sources: Vec<_> = sources.iter().zip(ranges).collect();
        let split = sources.iter().flat_map(|(place, len)| split(**place, *len, readers));
        let sources: Vec<Source> = split.collect();
        let (ratio, rate, threads) = match &self.keys.compression {
            Some(own) => (*own.ratio.get_ref(), own.rate.get_ref().get(), *own.threads.get_ref()),
            None => (1.0, 0, 0),
        };
        let transfer =
            self.keys.max_transfer_size.as_ref().map_or(MAX_TRANSFER, |own| *own.get_ref());
        let counts = (count(sources.len()), count(stripes));
        let stated = self.keys.buffer_count.as_ref().map(|own| *own.get_ref());
        let buffers = Buffers::new(counts, self.keys.compression.is_some(), transfer, stated);
        let plan = Plan {
            stripes: self.stripes(places, &targets, (stripes, &sources))?,
            sources,
            buffers,
            compressed_per_mille: per_mille(ratio),
            compression_per_mib: match rate {
                0 => Span::ZERO,
                rate => Span::from_nanos((1_000_000_000 << 20) / rate),
            },
            encoders: threads,
            limit: self.keys.limit,
        };
        Ok(plan)
    }

    /// Reduces the bytes to `size`, and the time before the first transfer in the same proportion,
    /// unless they are fewer.
    ///
    /// # Errors
    ///
    /// [`BackupError`] as from [`Self::plan`].
    pub fn scaled(mut self, places: &[PlaceAbout<'_>], size: Bytes) -> Result<Self, BackupError> {
        let whole = self.plan(places)?.bytes();
        if size.get() < whole {
            let setup = u128::from(self.setup.nanos()) * u128::from(size.get());
            let setup = setup / u128::from(whole);
            self.setup = Span::from_nanos(u64::try_from(setup).unwrap_or(u64::MAX));
            let span = self.keys.size.as_ref().map_or(0..0, Spanned::span);
            self.keys.size = Some(Spanned::new(span, size));
        }
        Ok(self)
    }

    fn error(&self, span: Range<usize>, fault: BackupFault) -> BackupError {
        Text { file: &self.file, text: &self.text }.error(Some(span), fault)
    }

    /// Finds the places that a key names.
    fn find(
        &self,
        places: &[PlaceAbout<'_>],
        key: &'static str,
        names: &Spanned<Vec<Spanned<String>>>,
    ) -> Result<Vec<u32>, BackupError> {
        let mut found = Vec::new();
        for name in names.get_ref() {
            let at = places.iter().position(|place| place.name == name.get_ref());
            let Some(at) = at.map(count) else {
                let fault = BackupFault::missing(
                    key,
                    name.get_ref(),
                    places.iter().map(|place| place.name),
                );
                return Err(self.error(name.span(), fault));
            };
            if found.contains(&at) {
                let name_of = name.get_ref().clone();
                return Err(self.error(name.span(), BackupFault::Twice { key, name: name_of }));
            }
            found.push(at);
        }
        Ok(found)
    }

    /// Returns the bytes to read of each source: those in use, or the stated size in proportion to
    /// the sizes of the sources.
    fn ranges(&self, places: &[PlaceAbout<'_>], sources: &[u32]) -> Result<Vec<u64>, BackupError> {
        let own = |at: &u32| &places[*at as usize];
        let sizes: Vec<u64> = sources.iter().map(|at| own(at).size.get()).collect();
        let Some(size) = &self.keys.size else {
            return Ok(sources
                .iter()
                .map(|at| own(at).used.unwrap_or(own(at).size).get())
                .collect());
        };
        let all: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
        let wanted = size.get_ref().get();
        if u128::from(wanted) > all || wanted == 0 {
            let all = Bytes::new(u64::try_from(all).unwrap_or(u64::MAX));
            let fault = BackupFault::Size { size: *size.get_ref(), sources: all };
            return Err(self.error(size.span(), fault));
        }
        let mut rest = wanted;
        let mut ranges = Vec::new();
        for (at, size) in sizes.iter().enumerate() {
            let part = u128::from(wanted) * u128::from(*size) / all.max(1);
            let part = u64::try_from(part).unwrap_or(u64::MAX).div_ceil(PAGE) * PAGE;
            let part = if at + 1 == sizes.len() { rest } else { part.min(rest) };
            rest -= part;
            ranges.push(part.min(*size));
        }
        Ok(ranges)
    }

    /// Lays the stripes on the targets in turn, one behind the other, and checks their room.
    fn stripes(
        &self,
        places: &[PlaceAbout<'_>],
        targets: &[u32],
        (stripes, sources): (usize, &[Source]),
    ) -> Result<Vec<(u32, u64)>, BackupError> {
        let ranges = sources.iter().flat_map(|source| &source.ranges);
        let bytes: u64 = ranges.map(|range| range.end - range.start).sum();
        // A stripe may get a transfer more than its share. Compressed bytes are never more.
        let transfers = bytes.div_ceil(MIN_TRANSFER.get());
        let share = transfers.div_ceil(count(stripes).into());
        let room = share.saturating_add(LARGEST_TRANSFER.get() / MIN_TRANSFER.get());
        let room = room.saturating_mul(MIN_TRANSFER.get());
        let mut used = vec![0_u64; targets.len()];
        let mut all = Vec::new();
        for stripe in 0..stripes {
            let at = stripe % targets.len();
            let place = &places[targets[at] as usize];
            all.push((targets[at], used[at]));
            used[at] = used[at].saturating_add(room);
            if used[at] > place.size.get() {
                let name = &self.keys.to.get_ref()[at];
                let on_it = count(stripes.div_ceil(targets.len()));
                let needs = Bytes::new(room.saturating_mul(on_it.into()));
                let fault =
                    BackupFault::Room { name: place.name.to_owned(), size: place.size, needs };
                return Err(self.error(name.span(), fault));
            }
        }
        Ok(all)
    }
}

/// Splits a source among its readers, in whole pages.
fn split(place: u32, len: u64, readers: u32) -> impl Iterator<Item = Source> {
    let pages = len.div_ceil(PAGE);
    (0..u64::from(readers)).filter_map(move |reader| {
        let edge = |reader: u64| (pages * reader / u64::from(readers) * PAGE).min(len);
        let range = edge(reader)..edge(reader + 1);
        (!range.is_empty()).then(|| Source { place, ranges: vec![range] })
    })
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0.001 and 1, in thousandths"
)]
fn per_mille(share: f64) -> u32 {
    (share * WHOLE).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [PlaceAbout<'_>; 3] = [
        PlaceAbout { name: "data", size: Bytes::gib(100), used: None },
        PlaceAbout { name: "backup1", size: Bytes::gib(64), used: None },
        PlaceAbout { name: "backup2", size: Bytes::gib(64), used: None },
    ];
    const TEXT: &str = "[backup]\nsources = [\"data\"]\nto = [\"backup1\", \"backup2\"]\n";

    fn plan(more: &str) -> Result<Plan, String> {
        let description = Description::parse("backup.toml", &format!("{TEXT}{more}"));
        description.and_then(|own| own.plan(&PLACES)).map_err(|error| error.to_string())
    }

    #[test]
    fn stripes_take_turns_on_the_targets() {
        let own = plan("stripes = 4\nsize = \"50GiB\"\nreaders = 4\n").expect("a plan");
        let places: Vec<_> = own.stripes.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [1, 2, 1, 2]);
        assert_eq!((own.sources.len(), own.buffers.count), (4, 28));
        let bytes: u64 = own.sources.iter().flat_map(|s| &s.ranges).map(|r| r.end - r.start).sum();
        assert_eq!(bytes, 50 << 30);
    }

    #[test]
    fn a_limit_is_a_rate() {
        assert_eq!(plan("").expect("a plan").limit, None);
        let own = plan("limit = \"100 MB/s\"\n").expect("a plan");
        assert_eq!(own.limit, BytesPerSec::new(100_000_000));
    }

    #[test]
    fn compression_has_three_sets_of_buffers() {
        let more =
            "size = \"1GiB\"\ncompression = { ratio = 0.4, rate = \"100MiB\", threads = 2 }\n";
        let own = plan(more).expect("a plan");
        assert_eq!((own.buffers.sets, own.compressed_per_mille, own.encoders), (3, 400, 2));
        assert_eq!(own.compression_per_mib, Span::from_millis(10));
    }

    #[track_caller]
    fn check(more: &str, expect: &str) {
        let error = plan(more).expect_err("it is refused");
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn invalid_descriptions_are_rejected_with_a_position() {
        check("stripes = 0\n", "backup.toml:4:11: stripes = 0: give 1 to 64");
        check("stripes = 65\n", "stripes = 65: give 1 to 64");
        check("stripes = 1\n", "\"backup2\" gets none of the 1 stripes");
        check("max_transfer_size = \"8MiB\"\n", "give 64 KiB to 4 MiB");
        check("max_transfer_size = \"100000 B\"\n", "is not a multiple of 64 KiB");
        check("size = \"200GiB\"\n", "and at most the size of the sources, 100 GiB");
        check("stripe = 2\n", "unknown field `stripe`");
        check("limit = \"100\"\n", "\"100\" has no unit; write for example 200 MiB/s");
        check("limit = \"0 MB/s\"\n", "must be more than zero");
        check("stripes = 2\nsize = \"100GiB\"\nreaders = 65\n", "readers = 65: give 1 to 64");
        let same = TEXT.replace("\"backup2\"", "\"data\"");
        let error = Description::parse("b.toml", &same).and_then(|own| own.plan(&PLACES));
        let error = error.expect_err("it is refused").to_string();
        assert_eq!(error, "b.toml:3:18: \"data\" is a source and a target; write to another place");
        let small = [PLACES[0], PlaceAbout { size: Bytes::gib(10), ..PLACES[1] }, PLACES[2]];
        let error = Description::parse("b.toml", TEXT).and_then(|own| own.plan(&small));
        let error = error.expect_err("it is refused").to_string();
        assert!(error.contains("\"backup1\" of 10 GiB is too small"), "{error}");
        let error = Description::parse("b.toml", &TEXT.replace("backup2", "backup3"));
        let error = error.and_then(|own| own.plan(&PLACES)).expect_err("it is refused").to_string();
        assert!(error.contains("to = \"backup3\" is not in the layout; did you mean"), "{error}");
    }
}

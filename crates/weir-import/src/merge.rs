//! The import of several inputs into one observation, by their times.

use crate::detect::detect;
use crate::error::ImportError;
use crate::input::{Failure, Input};
use crate::join::{Join, Places};
use crate::kind::By;
use crate::options::Options;
use crate::presence::Presence;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::together::{with_media, with_traces_together};
use crate::watched::{Lately, watched};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use weir_observe::columns::Note;
use weir_observe::format::Writer;
use weir_observe::header::{Header, Source, SourceKind};
use weir_observe::metric::INTERVAL_NS;
use weir_observe::{attribute, metric};
use weir_units::{Instant, Span};

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Name, kind and number of samples of each input.
    pub inputs: Vec<(String, &'static str, u64)>,
    /// Samples in the observation.
    pub samples: u64,
    /// Entities in the observation.
    pub entities: usize,
    /// Series in the observation.
    pub series: usize,
    /// Notes on the numbers.
    pub notes: Vec<String>,
}

/// An input that is being read.
struct OpenInput {
    name: String,
    kind: &'static str,
    /// True if the user stated the kind.
    is_said: bool,
    reader: Box<dyn ReadSamples>,
    /// The text read recently, if it is text.
    lately: Option<Lately>,
    sheet: Sheet,
    /// The first sample, while the second is in the sheet. Only the second shows the interval over
    /// which the rates of the first hold.
    first: Option<(At, Vec<Option<i64>>)>,
    /// Time of the sample in the sheet.
    at: Option<At>,
    /// Its start relative to other inputs without dates.
    offset: u64,
    samples: u64,
    late: u64,
    presence: Presence,
    /// Start of its first sampling interval.
    begins: i64,
    /// Entities and columns of its sheet in the observation.
    places: Places,
}

/// Reads inputs into one observation.
///
/// # Errors
///
/// The input at fault, and the reason.
pub fn import<W: Write>(
    inputs: Vec<Input>,
    options: &Options,
    out: W,
) -> Result<(W, Summary), Failure> {
    let inputs = with_traces_together(inputs)?;
    let (inputs, own, media) = with_media(inputs, options)?;
    let options = &own;
    let mut sources = Vec::new();
    for input in inputs {
        let name = input.name.clone();
        sources.push(open(input, options).map_err(|error| (name, error))?);
    }
    let kinds: Vec<_> = sources.iter().map(|source| source.kind).collect();
    let ignored = options.ignored(&kinds);
    space_out(&mut sources, options)?;
    let start = start_of(&sources, options)?;
    for source in &mut sources {
        source.begins = source.begins(&start, options);
        // An earlier source may have reported the same entities.
        if source.begins > start.base {
            source.state_first_interval(options);
        }
    }
    let writer = Writer::new(out, &header_of(&sources, &start, options)).map_err(of_all)?;
    let mut merge = Merge::new(writer, start.base, beginnings(&sources, &start, options));
    while let Some(now) = sources.iter().filter_map(|source| source.moment(start.undated)).min() {
        for source in &mut sources {
            source.mark_idle(start.base);
            merge.join.declare(&source.sheet, &mut source.places).map_err(of_all)?;
        }
        for source in &mut sources {
            if source.moment(start.undated) == Some(now) {
                let row = source.first.as_ref().map_or(&source.sheet.row, |(_, row)| row);
                merge.join.take(row, &source.places);
                source.advance(now, &start).map_err(|error| (source.name.clone(), error))?;
            }
        }
        merge.write(now).map_err(of_all)?;
    }
    let (samples, entities, series) = merge.join.counts();
    if samples == 0 {
        let reason = "it yielded no samples".to_owned();
        let name = sources.first().map(|source| source.name.clone()).unwrap_or_default();
        return Err((name, ImportError::Empty { reason }));
    }
    let told = sources.iter_mut().flat_map(OpenInput::told);
    let notes: Vec<_> = ignored.into_iter().chain(told).collect();
    let out = merge.finish(&notes).map_err(of_all)?;
    let inputs = sources.into_iter().map(|source| (source.name, source.kind, source.samples));
    let inputs = inputs.chain(media);
    Ok((out, Summary { inputs: inputs.collect(), samples, entities, series, notes }))
}

/// Wraps an error of the output, which no input causes.
fn of_all(error: weir_observe::WriteError) -> Failure {
    (String::new(), ImportError::from(error))
}

fn header_of(sources: &[OpenInput], start: &Start, options: &Options) -> Header {
    let mut about = BTreeMap::new();
    for source in sources {
        for (what, value) in &source.sheet.about {
            let is_alone = sources.len() == 1;
            let what = if is_alone { what.clone() } else { format!("{} {what}", source.name) };
            about.insert(what, value.clone());
        }
    }
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    let kinds: Vec<_> = sources.iter().map(|source| source.kind).collect();
    about.insert("inputs".to_owned(), names.join(", "));
    about.insert("kinds".to_owned(), kinds.join(", "));
    if options.clock.offset != 0 {
        about.insert("utc_offset".to_owned(), weir_observe::when::zone(options.clock.offset));
    }
    let kind = SourceKind::Other("import".to_owned());
    Header {
        start_unix_ns: start.known,
        interval_ns: options.every.map(Span::nanos),
        ..Header::new(Source { kind, by: options.by.clone(), about })
    }
}

fn open(mut input: Input, options: &Options) -> Result<OpenInput, ImportError> {
    let kind = match input.kind {
        Some(kind) => kind,
        None => detect(input.bytes.fill_buf()?)?,
    };
    let options = Options { name: input.name.clone(), ..options.clone() };
    let (bytes, lately) = match kind.recognizes {
        By::Bytes(_) => (input.bytes, None),
        By::Text(_) | By::Stated => {
            let (bytes, lately) = watched(input.bytes);
            (bytes, Some(lately))
        }
    };
    let opened = kind.open(bytes, &options);
    let opened = opened.map_err(|error| two_kinds(error, kind.name, lately.as_ref()));
    let mut source = OpenInput {
        name: input.name,
        kind: kind.name,
        is_said: input.kind.is_some(),
        reader: opened?,
        lately,
        sheet: Sheet::default(),
        first: None,
        at: None,
        offset: 0,
        samples: 0,
        late: 0,
        presence: Presence::default(),
        begins: 0,
        places: Places::default(),
    };
    let Some(first) = source.next_sample()? else {
        let reason = format!("it was read as {}, but has no samples", kind.about);
        return Err(ImportError::Empty { reason });
    };
    let row = source.sheet.row.clone();
    source.sheet.row.iter_mut().for_each(|value| *value = None);
    source.at = source.next_sample()?;
    source.first = Some((first, row));
    Ok(source)
}

/// Times outside of these years, in nanoseconds since 1970, indicate a wrong unit or a broken
/// input.
const EARLIEST: i64 = 631_152_000_000_000_000;
const LATEST: i64 = 4_102_444_800_000_000_000;
/// The longest time from the beginning of an input to a sample: a hundred years.
const LONGEST: u64 = 3_155_760_000_000_000_000;

/// Rejects an impossible time.
fn check_time(at: At) -> Result<(), ImportError> {
    let reason = match at {
        At::Wall(at) if !(EARLIEST..=LATEST).contains(&at) => {
            let at = weir_observe::when::written(at, 0);
            format!(
                "a sample is of {at}, which is not between 1990 and 2100: check the unit of its \
                 times"
            )
        }
        At::Since(nanos) if nanos > LONGEST => {
            "a sample is more than a hundred years after the first: check the unit of its times"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(ImportError::Times(reason))
}

/// Returns the error, or that another kind of input begins there.
fn two_kinds(error: ImportError, before: &'static str, lately: Option<&Lately>) -> ImportError {
    let ImportError::Malformed { line: Some(line), reason } = error else { return error };
    let Some(kind) = lately.and_then(|lately| lately.begins(line, before)) else {
        return ImportError::Malformed { line: Some(line), reason };
    };
    let begins = match kind.name == before {
        true => format!("another table of {before}"),
        false => kind.name.to_owned(),
    };
    ImportError::TwoKinds { line, begins, before: before.to_owned(), reason: Some(reason) }
}

/// Spaces out snapshots without times, one per file, in the given order and by the stated
/// interval.
fn space_out(sources: &mut [OpenInput], options: &Options) -> Result<(), Failure> {
    for at in 1..sources.len() {
        let (before, rest) = sources.split_at_mut(at);
        let own = &mut rest[0];
        let is_like =
            |other: &&OpenInput| own.is_snapshot() && other.is_snapshot() && other.kind == own.kind;
        let Some(last) = before.iter().rev().find(is_like) else { continue };
        let Some(every) = options.every else {
            let other = &last.name;
            let reason = format!(
                "it has no time, and neither has {other}; say how far they are \
                 apart, with --every"
            );
            return Err((own.name.clone(), ImportError::Times(reason)));
        };
        own.offset = last.offset.saturating_add(every.nanos());
    }
    Ok(())
}

/// The start of the observation.
struct Start {
    /// The moment that times count from.
    base: i64,
    /// The actual moment, if it is known.
    known: Option<i64>,
    /// Start of inputs without dates.
    undated: i64,
}

fn start_of(sources: &[OpenInput], options: &Options) -> Result<Start, Failure> {
    let is_undated = |source: &&OpenInput| matches!(source.now(), Some(At::Since(_)));
    let undated = sources.iter().find(is_undated);
    let has_dates = sources.iter().any(|source| matches!(source.now(), Some(At::Wall(_))));
    if let (Some(undated), true, None) = (undated, has_dates, options.start) {
        let reason = "it has no dates and other inputs have; say when it begins, with --start";
        return Err((undated.name.clone(), ImportError::Times(reason.to_owned())));
    }
    let start = options.start.filter(|_| undated.is_some());
    let is_known = has_dates || start.is_some();
    let undated = start.unwrap_or(0);
    let begins = |source: &OpenInput| {
        let begins = source.moment(undated)?.saturating_sub(source.lead(options));
        // Its own start, or the interval before it.
        let own = if is_undated(&source) { undated } else { begins };
        Some(begins.min(own))
    };
    let base = sources.iter().filter_map(begins).min().unwrap_or(0);
    Ok(Start { base, known: is_known.then_some(base), undated })
}

/// Returns the starts of the intervals of first rates, the last one first.
fn beginnings(sources: &[OpenInput], start: &Start, options: &Options) -> Vec<i64> {
    let with_lead = sources.iter().filter(|source| source.lead(options) > 0);
    let mut all: Vec<_> = with_lead.map(|source| source.begins(start, options)).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.dedup();
    all
}

impl OpenInput {
    /// Returns whether the input is a single sample without a time.
    fn is_snapshot(&self) -> bool {
        self.at.is_none() && matches!(self.first, Some((At::Since(0), _)))
    }

    /// Returns the time of the next sample.
    fn now(&self) -> Option<At> {
        self.first.as_ref().map_or(self.at, |(at, _)| Some(*at))
    }

    /// Returns the interval of the rates of the first sample: that of the second, if there is one.
    fn lead(&self, options: &Options) -> i64 {
        let Some((first, row)) = &self.first else { return 0 };
        let series = row.iter().zip(&self.sheet.contents.series);
        // A level describes a moment; a rate describes the interval before.
        let has_rates =
            series.clone().any(|(value, own)| value.is_some() && metric::is_rate(&own.metric));
        // A report without devices is one of idle devices, and a backup describes its duration.
        let is_of_time = has_rates || self.sheet.held.is_some();
        if !is_of_time && self.sheet.reports != Reports::AllButIdle {
            return 0;
        }
        // Times that count from a start of their own show the interval of the first rates.
        if let At::Since(nanos @ 1..) = first {
            return i64::try_from(*nanos).unwrap_or(0);
        }
        if let Some(held) = self.sheet.held {
            return held;
        }
        let step = i64::try_from(options.step().nanos()).unwrap_or(0);
        let between = match (*first, self.at) {
            (At::Wall(first), Some(At::Wall(second))) => second.checked_sub(first),
            (At::Since(first), Some(At::Since(second))) => {
                second.checked_sub(first).and_then(|nanos| i64::try_from(nanos).ok())
            }
            _ => None,
        };
        between.filter(|nanos| *nanos > 0).unwrap_or(step)
    }

    /// Returns the start of the next sample's interval, as far as it is the first.
    fn begins(&self, start: &Start, options: &Options) -> i64 {
        let first = self.moment(start.undated).unwrap_or(start.base);
        first.saturating_sub(self.lead(options))
    }

    /// States the interval of the first sample's rates, if it is known.
    ///
    /// A file with one report does not state it. If an earlier input has the same entities, the
    /// rates would otherwise hold since its last report.
    fn state_first_interval(&mut self, options: &Options) {
        let is_known = self.at.is_some() || self.sheet.held.is_some() || options.every.is_some();
        let lead = self.lead(options);
        let Some((_, row)) = self.first.as_mut().filter(|_| lead > 0) else { return };
        if !is_known {
            let seconds = options.step();
            self.sheet.note(format!(
                "it has one report, which does not state the interval of its rates: {seconds} is \
                 assumed; state it with --every"
            ));
        }
        let series = row.iter().zip(&self.sheet.contents.series);
        let with_rates =
            series.filter(|(value, own)| value.is_some() && metric::is_rate(&own.metric));
        let entities: BTreeSet<_> = with_rates.map(|(_, own)| own.entity).collect();
        for entity in entities {
            let series = self.sheet.series(entity, &INTERVAL_NS);
            row.resize(self.sheet.row.len(), None);
            #[expect(clippy::cast_precision_loss, reason = "intervals are far below 2^53 ns")]
            let stored = INTERVAL_NS.stored(lead as f64);
            row[series.0 as usize] = row[series.0 as usize].or(stored);
        }
    }

    /// Marks devices that were idle until their first sample, before they are declared.
    fn mark_idle(&mut self, base: i64) {
        let since = u64::try_from(self.begins.saturating_sub(base)).unwrap_or(0);
        for entity in std::mem::take(&mut self.presence.idle_until_now) {
            self.sheet.attribute(entity, attribute::IDLE_SINCE_NS, since);
        }
    }

    /// Returns the time of the next sample, in nanoseconds since 1970 or since the beginning, with
    /// inputs without dates starting at `undated`.
    fn moment(&self, undated: i64) -> Option<i64> {
        match self.now()? {
            At::Wall(at) => Some(at),
            At::Since(nanos) => {
                Some(undated.saturating_add_unsigned(nanos.saturating_add(self.offset)))
            }
        }
    }

    /// Advances to a sample later than `now`.
    fn advance(&mut self, now: i64, start: &Start) -> Result<(), ImportError> {
        self.samples += 1;
        // The second sample is in the sheet already.
        let mut is_there = self.first.take().is_some();
        loop {
            if !std::mem::take(&mut is_there) {
                self.sheet.row.iter_mut().for_each(|value| *value = None);
                self.at = self.next_sample()?;
            }
            match self.moment(start.undated) {
                Some(at) if at <= now => self.late += 1,
                _ => return Ok(()),
            }
        }
    }

    /// Reads to the next sample.
    fn next_sample(&mut self) -> Result<Option<At>, ImportError> {
        let read = self.reader.next_sample(&mut self.sheet);
        let at = read.map_err(|error| two_kinds(error, self.kind, self.lately.as_ref()))?;
        if let Some(at) = at {
            if let Err(error) = check_time(at) {
                // At the end the reader may know the cause of wrong times.
                while self.reader.next_sample(&mut self.sheet)?.is_some() {}
                return Err(error);
            }
            self.presence.complete(&mut self.sheet, at);
            self.check_hosts()?;
        }
        // A run of skipped lines is complete once other lines follow.
        if at.is_none() || self.sheet.skipped.len() > 1 || self.samples == 0 {
            self.check_skipped()?;
        }
        Ok(at)
    }

    /// Rejects reports of two hosts that leave out idle devices.
    fn check_hosts(&self) -> Result<(), ImportError> {
        let is_checked = self.sheet.reports == Reports::AllButIdle;
        let Some((one, other)) = self.presence.two_hosts().filter(|_| is_checked) else {
            return Ok(());
        };
        let reason = format!("it contains reports of {one} and of {other}: split it by host");
        Err(ImportError::whole(reason))
    }

    /// Rejects input that would lose one of two kinds, unless the user states the kind.
    fn check_skipped(&mut self) -> Result<(), ImportError> {
        for run in std::mem::take(&mut self.sheet.skipped) {
            // A head without rows loses nothing.
            if self.is_said || run.text.lines().count() < 2 {
                continue;
            }
            let Ok(kind) = detect(run.text.as_bytes()) else { continue };
            if kind.name == self.kind {
                continue;
            }
            let (own, other) = (self.kind.to_owned(), kind.name.to_owned());
            let (line, begins, before) = match run.is_before {
                true => (run.last + 1, own, other),
                false => (run.first, other, own),
            };
            return Err(ImportError::TwoKinds { line, begins, before, reason: None });
        }
        Ok(())
    }

    /// Returns the notes for the end.
    fn told(&mut self) -> Vec<String> {
        let mut notes: Vec<_> = std::mem::take(&mut self.sheet.notes);
        if self.late > 0 {
            notes.push(format!(
                "{} samples that were not later than the previous one are left out",
                self.late
            ));
        }
        notes.extend(self.presence.notes());
        notes.extend(self.sheet.told_unused());
        notes.iter().map(|note| format!("{}: {note}", self.name)).collect()
    }
}

/// A join whose rows have moments; starts of first intervals are between them.
struct Merge<W: Write> {
    join: Join<W>,
    /// The moment that times count from.
    base: i64,
    /// Remaining starts of first intervals; see [`beginnings`].
    beginnings: Vec<i64>,
    /// Moment of the last sample written.
    written: Option<i64>,
}

impl<W: Write> Merge<W> {
    fn new(writer: Writer<W>, base: i64, beginnings: Vec<i64>) -> Self {
        Self { join: Join::new(writer), base, beginnings, written: None }
    }

    fn finish(mut self, notes: &[String]) -> Result<W, weir_observe::WriteError> {
        for text in notes {
            self.join.note(&Note { at_ns: 0, text: text.clone() })?;
        }
        self.join.finish(true)
    }

    /// Writes the row of a moment. Rates hold since the row before, so a row without values marks
    /// the start of a source's first interval, unless there is a sample at that moment.
    fn write(&mut self, now: i64) -> Result<(), weir_observe::WriteError> {
        while let Some(begin) = self.beginnings.pop_if(|begin| *begin <= now) {
            if begin < now && self.written != Some(begin) {
                self.join.write_nothing(self.time(begin))?;
            }
        }
        self.written = Some(now);
        self.join.write(self.time(now))
    }

    fn time(&self, moment: i64) -> Instant {
        let since = u64::try_from(moment.saturating_sub(self.base)).unwrap_or(0);
        Instant::ZERO + Span::from_nanos(since)
    }
}

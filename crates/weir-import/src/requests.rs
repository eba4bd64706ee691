//! Traces of other tools as requests, for recording and replay.

use crate::detect::detect;
use crate::error::ImportError;
use crate::input::{Failure, Input};
use crate::kind::Kind;
use crate::options::Options;
use crate::sheet::Sheet;
use crate::together::with_traces_together;
use crate::trace::{Collector, Origin, Trace, opener, trace_kinds};
use std::fmt;
use std::io::BufRead;
use weir_trace::{ReadTrace, Request, TraceError};
use weir_units::Instant;

/// A trace of another tool, as requests in order of arrival. Times count from the first request.
pub struct Requests {
    name: String,
    kind: Kind,
    trace: Trace,
    collector: Collector,
    sheet: Sheet,
    /// Time of the first request.
    first: Option<Instant>,
    has_ended: bool,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("name", &self.name).field("kind", &self.kind).finish()
    }
}

impl Requests {
    /// Opens traces. The files of a binary trace, `NAME.blktrace.0` and so on, are one trace.
    ///
    /// # Errors
    ///
    /// The input at fault, and the reason.
    pub fn open(inputs: Vec<Input>, options: &Options) -> Result<Vec<Self>, Failure> {
        let inputs = with_traces_together(inputs)?;
        let open = |input: Input| {
            let name = input.name.clone();
            Self::open_one(input, options).map_err(|error| (name, error))
        };
        inputs.into_iter().map(open).collect()
    }

    fn open_one(mut input: Input, options: &Options) -> Result<Self, ImportError> {
        let kind = match input.kind {
            Some(kind) => kind,
            None => detect(input.bytes.fill_buf()?)?,
        };
        let Some(open) = opener(kind) else {
            let traces: Vec<_> = trace_kinds().map(|kind| kind.name).collect();
            return Err(ImportError::whole(format!(
                "it is {}, which has no single requests; block traces are {}",
                kind.about,
                traces.join(", ")
            )));
        };
        let options = Options { name: input.name.clone(), ..options.clone() };
        let trace = open(input.bytes, &options)?;
        let (collector, sheet) = (Collector::new(), Sheet::default());
        Ok(Self { name: input.name, kind, trace, collector, sheet, first: None, has_ended: false })
    }

    /// Returns the name of the input.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of the input.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of events that the source of the trace dropped, so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.trace.reader.lost()
    }

    /// Returns the time of the first request in nanoseconds since 1970, once it is read and if it
    /// is known.
    #[must_use]
    pub fn start_unix_ns(&self) -> Option<i64> {
        let first = self.first.filter(|_| self.trace.origin == Origin::Epoch)?;
        i64::try_from(first.nanos()).ok()
    }

    /// Returns the next request; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the input cannot be read further.
    pub fn next_request(&mut self) -> Result<Option<Request>, ImportError> {
        loop {
            if let Some(request) = self.collector.pop() {
                let first = *self.first.get_or_insert(request.at);
                let at = Instant::ZERO + (request.at - first);
                return Ok(Some(Request { at, ..request }));
            }
            if self.has_ended {
                return Ok(None);
            }
            if !self.trace.reader.next(&mut self.collector, &mut self.sheet)? {
                self.has_ended = true;
                self.collector.finish()?;
            }
        }
    }
}

impl ReadTrace for Requests {
    fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
        Ok(Self::next_request(self)?)
    }

    fn devices(&self) -> &[String] {
        &self.collector.devices
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.sheet.notes.clone();
        notes.extend(self.collector.notes());
        notes.extend(self.sheet.told_unused());
        notes
    }
}

/// Returns the kind of an input that begins with `begin`, if it is a block trace.
#[must_use]
pub fn trace_kind(begin: &[u8]) -> Option<Kind> {
    detect(begin).ok().filter(|kind| opener(*kind).is_some())
}

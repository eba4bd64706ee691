//! Results of diskspd, as XML (`-Rxml`).
//!
//! ```text
//!  Results
//!    System                ComputerName, RunTime
//!    Profile/TimeSpans     parameters
//!    TimeSpan              TestTimeSeconds, CpuUtilization/Average, Latency/Bucket
//!      Thread/Target       I/O of a thread to a target
//! ```

use super::job::{self, BOTH, Facts, MS, READ, WRITE};
use super::run::{Io, Run, Runs};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::VecDeque;
use weir_observe::metric as m;

pub(crate) const KIND: Kind = Kind {
    name: "diskspd-xml",
    about: "results of diskspd, as XML",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Xml,
        Sign::Word(&["Results"]),
        Sign::Word(&["TimeSpan"]),
        Sign::Word(&["Profile"]),
    ]],
};

/// The most bytes of a document, which is kept in memory.
const LONGEST: usize = 256 << 20;
/// The deepest nesting of elements.
const DEEPEST: usize = 64;

fn recognizes(text: &str) -> bool {
    let ours = ["<TimeSpan>", "<TimeSpans>", "<Profile>", "<ComputerName>", "<TestTimeSeconds>"];
    text.contains("<Results>") && ours.iter().any(|name| text.contains(name))
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(DiskspdXml {
        lines: Lines::new(input),
        options: options.clone(),
        runs: Runs::default(),
        results: Element::default(),
        spans: VecDeque::new(),
    }))
}

struct DiskspdXml {
    lines: Lines<Bytes>,
    options: Options,
    runs: Runs,
    results: Element,
    /// Remaining timespans of the current document, with their indices.
    spans: VecDeque<(usize, Element)>,
}

impl ReadSamples for DiskspdXml {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        loop {
            if let Some((place, span)) = self.spans.pop_front() {
                let run = self.run(&span);
                if run.targets.is_empty() {
                    sheet.note(format!("timespan {} has no results: left out", place + 1));
                    continue;
                }
                if span.child("Iops").is_some() {
                    sheet.unused("Iops by intervals");
                }
                let plan = self.results.path(&["Profile", "TimeSpans"]);
                let plan = plan.and_then(|all| all.all("TimeSpan").nth(place));
                let run =
                    Run { warmup: plan.and_then(|p| p.number("Warmup")).unwrap_or(0.0), ..run };
                return Ok(Some(self.runs.put(sheet, &run, |path| facts(plan, path))));
            }
            let Some((text, line)) = self.document()? else { return Ok(None) };
            let mut results = parse(&text, line)?;
            let (spans, rest) =
                results.children.into_iter().partition(|child| child.name == "TimeSpan");
            let spans: Vec<Element> = spans;
            results.children = rest;
            self.results = results;
            self.spans = spans.into_iter().enumerate().collect();
            if let Some(version) = self.results.path(&["System", "Tool", "Version"]) {
                sheet.about("diskspd", &version.text);
            }
        }
    }
}

impl DiskspdXml {
    /// Returns the text of the next document, and the line that it begins in.
    fn document(&mut self) -> Result<Option<(String, u64)>, ImportError> {
        let mut text = String::new();
        let mut begins = 0;
        while let Some(line) = self.lines.next_line()? {
            let line = match (text.is_empty(), line.find("<Results>")) {
                (true, None) => continue,
                (true, Some(at)) => {
                    begins = self.lines.number();
                    &line[at..]
                }
                (false, _) => &line[..],
            };
            if let Some(at) = line.find("</Results>") {
                text.push_str(&line[..at + "</Results>".len()]);
                return Ok(Some((text, begins)));
            }
            text.push_str(line);
            text.push('\n');
            if text.len() > LONGEST {
                let reason = format!("a document has more than {} MiB", LONGEST >> 20);
                return Err(ImportError::at(begins, reason));
            }
        }
        if text.is_empty() {
            return Ok(None);
        }
        let reason = format!("the results that begin in line {begins} are truncated here");
        Err(ImportError::at(self.lines.number(), reason))
    }

    fn run(&self, span: &Element) -> Run {
        let system = self.results.child("System");
        let said = |name: &str| system.and_then(|s| s.child(name)).map(|e| e.text.clone());
        let mut run = Run {
            host: said("ComputerName"),
            began: said("RunTime").and_then(|text| self.options.clock.moment(&text)),
            seconds: span.number("TestTimeSeconds").unwrap_or(0.0),
            ..Run::default()
        };
        let cpu = span.path(&["CpuUtilization", "Average"]);
        for (name, measure) in [
            ("UsagePercent", &m::CPU),
            ("UserPercent", &m::CPU_USER),
            ("KernelPercent", &m::CPU_SYSTEM),
            ("IdlePercent", &m::CPU_IDLE),
        ] {
            let percent = cpu.and_then(|cpu| cpu.number(name));
            run.cpu.extend(percent.map(|percent| (measure, percent / 100.0)));
        }
        for thread in span.all("Thread") {
            for target in thread.all("Target") {
                add_target(&mut run, target);
            }
        }
        tails(&mut run, span);
        run
    }
}

/// Adds the I/O of a thread to a target.
fn add_target(run: &mut Run, from: &Element) {
    let seconds = run.seconds;
    let io = |count: &str, bytes: &str, latency: &str, stddev: &str| {
        let count = from.number(count)?;
        Some(Io {
            count,
            bytes: from.number(bytes)?,
            per_s: if seconds > 0.0 { count / seconds } else { return None },
            latency_sum: from.number(latency).map(|ms| ms * MS * count),
            stddev: from.number(stddev).map(|ms| ms * MS),
        })
    };
    let both = io("IOCount", "BytesCount", "AverageLatencyMilliseconds", "LatencyStdev");
    let reads = io("ReadCount", "ReadBytes", "AverageReadLatencyMilliseconds", "ReadLatencyStdev");
    let writes =
        io("WriteCount", "WriteBytes", "AverageWriteLatencyMilliseconds", "WriteLatencyStdev");
    let path = from.child("Path").map_or("target", |path| &path.text);
    let target = run.target(path);
    target.size = target.size.or_else(|| from.number("FileSize").and_then(job::whole));
    target.threads += 1;
    for (slot, io) in
        [(&mut target.both, both), (&mut target.reads, reads), (&mut target.writes, writes)]
    {
        match (slot, io) {
            (Some(sum), Some(io)) => sum.add(&io),
            (slot, Some(io)) => *slot = Some(io),
            _ => {}
        }
    }
}

/// Reads the latency distribution of all targets.
fn tails(run: &mut Run, span: &Element) {
    let Some(latency) = span.child("Latency") else { return };
    for bucket in latency.all("Bucket") {
        let Some(percent) = bucket.number("Percentile") else { continue };
        for (name, of) in [
            ("ReadMilliseconds", &READ),
            ("WriteMilliseconds", &WRITE),
            ("TotalMilliseconds", &BOTH),
        ] {
            let measure = match percent {
                p if p <= 0.0 => of.tail("min"),
                p if p >= 100.0 => of.tail("max"),
                p => of.percentile(p),
            };
            let nanos = bucket.number(name).map(|ms| ms * MS);
            run.tails.extend(measure.zip(nanos));
        }
    }
}

/// Returns the parameters of a timespan for a target.
fn facts(plan: Option<&Element>, path: &str) -> Facts {
    let targets = plan.and_then(|plan| plan.child("Targets"));
    let is_it = |target: &&Element| target.child("Path").is_some_and(|own| own.text == path);
    let Some(target) = targets.and_then(|all| all.all("Target").find(is_it)) else {
        return Facts::new();
    };
    let number = |name: &str| target.number(name).and_then(job::whole);
    let random = match (number("RandomRatio"), number("Random"), number("StrideSize")) {
        (Some(percent), _, _) => Some(percent),
        (None, Some(_), _) => Some(100),
        (None, None, Some(_)) => Some(0),
        _ => None,
    };
    let all = [
        ("block_bytes", number("BlockSize")),
        ("read_percent", number("WriteRatio").and_then(|writes| 100_u64.checked_sub(writes))),
        ("random_percent", random),
        ("outstanding_per_thread", number("RequestCount")),
        ("threads", number("ThreadsPerFile")),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?.into()))).collect()
}

/// An element with its children. Attributes count as children, since newer versions write some
/// elements of older ones as attributes.
#[derive(Debug, Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    fn path(&self, names: &[&str]) -> Option<&Self> {
        names.iter().try_fold(self, |element, name| element.child(name))
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.child(name)?.text.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

fn parse(text: &str, begins: u64) -> Result<Element, ImportError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().trim_text(true);
    let wrong = |position: u64, reason: String| {
        let before = usize::try_from(position).ok().and_then(|end| text.get(..end));
        let lines = before.map_or(0, |text| text.matches('\n').count());
        ImportError::at(begins + u64::try_from(lines).unwrap_or(0), reason)
    };
    let mut stack: Vec<Element> = vec![Element::default()];
    loop {
        let event = reader
            .read_event()
            .map_err(|error| wrong(reader.error_position(), format!("invalid XML: {error}")))?;
        let position = reader.buffer_position();
        match event {
            Event::Start(tag) => {
                if stack.len() > DEEPEST {
                    return Err(wrong(position, format!("more than {DEEPEST} elements deep")));
                }
                stack.push(element(&tag));
            }
            Event::Empty(tag) => close(&mut stack, element(&tag)),
            Event::Text(text) => append(&mut stack, &String::from_utf8_lossy(&text)),
            Event::GeneralRef(name) => append(&mut stack, entity(&String::from_utf8_lossy(&name))),
            Event::End(_) => {
                if let Some(done) = stack.pop() {
                    close(&mut stack, done);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let results = stack.pop().and_then(|mut root| root.children.pop());
    results.ok_or_else(|| wrong(0, "there are no results".to_owned()))
}

fn element(tag: &quick_xml::events::BytesStart<'_>) -> Element {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let attribute = |a: quick_xml::events::attributes::Attribute<'_>| Element {
        name: text(a.key.as_ref()),
        text: text(&a.value),
        children: Vec::new(),
    };
    let children = tag.attributes().flatten().map(attribute).collect();
    Element { name: text(tag.name().as_ref()), text: String::new(), children }
}

fn append(stack: &mut [Element], text: &str) {
    if let Some(last) = stack.last_mut() {
        last.text.push_str(text);
    }
}

fn close(stack: &mut [Element], done: Element) {
    if let Some(last) = stack.last_mut() {
        last.children.push(done);
    }
}

/// Returns a character that XML must escape.
fn entity(name: &str) -> &'static str {
    match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "apos" => "'",
        "quot" => "\"",
        _ => "?",
    }
}

//! Access specifications of Iometer (`.icf`): jobs without results.
//!
//! ```text
//!  Version 1.1.0
//!  'TEST SETUP ...
//!  'ACCESS SPECIFICATIONS ...
//!  'Access specification name,default assignment
//!      4 KiB; 50% Read; 100% random,NONE
//!  'size,% of size,% reads,% random,delay,burst,align,reply
//!      4096,100,50,100,0,1,4096,0
//! ```
//!
//! A line that begins with `'` names the values of the following lines. The layout of 1998 has
//! blanks between them and no names of specifications.

use super::job::{self, Facts, whole};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::collections::HashMap;

pub(crate) const KIND: Kind = Kind {
    name: "iometer-icf",
    about: "access specifications of Iometer",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["Version "]),
        Sign::Text(&["'TEST SETUP", "'ACCESS SPECIFICATIONS", "'RESULTS DISPLAY"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    let has = |head: &str| text.lines().any(|line| line.trim_start().starts_with(head));
    text.trim_start().starts_with("Version ")
        && (has("'TEST SETUP") || has("'ACCESS SPECIFICATIONS") || has("'RESULTS DISPLAY"))
}

fn open(input: Bytes, _: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Iometer {
        lines: Lines::new(input),
        heading: Vec::new(),
        specifications: Vec::new(),
        outstanding: None,
        assigned: HashMap::new(),
        done: false,
    }))
}

/// Kinds of accesses with their shares.
#[derive(Debug, Default)]
struct Specification {
    name: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    bytes: f64,
    /// Percentage of accesses with this size.
    share: f64,
    reads: f64,
    random: f64,
    align: Option<f64>,
}

struct Iometer {
    lines: Lines<Bytes>,
    /// Names in the last line that began with a quote.
    heading: Vec<String>,
    specifications: Vec<Specification>,
    /// Queue depth of the current worker.
    outstanding: Option<u64>,
    /// Queue depth of specifications, by the first worker that each is assigned to.
    assigned: HashMap<String, u64>,
    done: bool,
}

impl ReadSamples for Iometer {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        self.read(sheet)?;
        if self.specifications.is_empty() {
            return Ok(None);
        }
        sheet.note("it is a specification for Iometer and has no results");
        for (specification, place) in self.specifications.iter().zip(1..) {
            let id = match &specification.name[..] {
                "" => job::job(sheet, None, &format!("access specification {place}")),
                name => job::job(sheet, None, name),
            };
            for (name, value) in specification.facts() {
                sheet.attribute(id, name, value);
            }
            if let Some(outstanding) = self.assigned.get(&specification.name) {
                sheet.attribute(id, "outstanding", *outstanding);
            }
        }
        Ok(Some(At::Since(0)))
    }
}

impl Iometer {
    fn read(&mut self, sheet: &mut Sheet) -> Result<(), ImportError> {
        while let Some(line) = self.lines.next_line()? {
            let text = line.trim();
            if let Some(heading) = text.strip_prefix('\'') {
                self.heading = heading.split(',').map(|name| name.trim().to_lowercase()).collect();
                continue;
            }
            if text.is_empty() {
                continue;
            }
            let is_part = self.heading.iter().any(|name| name == "% of size");
            let about = self.heading.first().map_or("", String::as_str);
            match if is_part { "size" } else { about } {
                "access specification name" => {
                    let name = text.rsplit_once(',').map_or(text, |(name, _)| name);
                    let name = name.trim().to_owned();
                    self.specifications.push(Specification { name, parts: Vec::new() });
                }
                "size" => {
                    if let Some(part) = self.part(text)? {
                        if self.specifications.is_empty() {
                            self.specifications.push(Specification::default());
                        }
                        if let Some(last) = self.specifications.last_mut() {
                            last.parts.push(part);
                        }
                    } else {
                        sheet.note("its last line was truncated and is left out");
                    }
                }
                "worker" => self.outstanding = None,
                "number of outstanding ios" => {
                    let count = text.split([',', ' ']).next().unwrap_or_default();
                    self.outstanding = count.parse().ok();
                }
                "assigned access specs" => {
                    if let Some(outstanding) = self.outstanding {
                        self.assigned.entry(text.to_owned()).or_insert(outstanding);
                    }
                }
                "test description" => sheet.about("test", text),
                _ => {}
            }
        }
        self.specifications.retain(|specification| !specification.parts.is_empty());
        Ok(())
    }

    /// Parses a line of a specification; `None` if it was cut.
    fn part(&self, text: &str) -> Result<Option<Part>, ImportError> {
        let fields: Vec<&str> = if text.contains(',') {
            text.split(',').map(str::trim).filter(|field| !field.is_empty()).collect()
        } else {
            text.split_whitespace().collect()
        };
        let at = |name: &str| self.heading.iter().position(|own| own == name);
        let number = |name: &str| -> Result<f64, String> {
            let at = at(name).ok_or_else(|| format!("there is no column {name:?}"))?;
            let text = fields.get(at).ok_or_else(|| format!("there is no {name:?}"))?;
            text.parse().map_err(|_| format!("{name:?} is {text:?}, which is not a number"))
        };
        let part = || -> Result<Part, String> {
            Ok(Part {
                bytes: number("size")?,
                share: number("% of size")?,
                reads: number("% reads")?,
                random: number("% random")?,
                align: number("align").ok(),
            })
        };
        match part() {
            Ok(part) => Ok(Some(part)),
            Err(_) if self.lines.was_open() => Ok(None),
            Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
        }
    }
}

impl Specification {
    /// Returns its attributes: the mean of several parts by their shares, and each part as text.
    fn facts(&self) -> Facts {
        let all: f64 = self.parts.iter().map(|part| part.share).sum();
        let mean = |of: fn(&Part) -> f64| {
            let sum: f64 = self.parts.iter().map(|part| of(part) * part.share).sum();
            if all > 0.0 { whole(sum / all) } else { None }
        };
        let mut facts = Facts::new();
        let mut add = |name: &'static str, value: Option<u64>| {
            facts.extend(value.map(|value| (name, value.into())));
        };
        add("block_bytes", mean(|part| part.bytes));
        add("read_percent", mean(|part| part.reads));
        add("random_percent", mean(|part| part.random));
        if let [part] = self.parts[..] {
            add("align_bytes", part.align.and_then(whole));
        } else {
            let text = |part: &Part| {
                let Part { bytes, share, reads, random, .. } = part;
                format!("{share}%: {bytes} B, {reads}% reads, {random}% random")
            };
            let all: Vec<_> = self.parts.iter().map(text).collect();
            facts.push(("parts", all.join("; ").as_str().into()));
        }
        facts
    }
}

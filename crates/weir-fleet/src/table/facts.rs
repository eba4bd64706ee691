//! Entities, series, notes and the origin of an observation as rows, and back.

use std::collections::BTreeMap;
use weir_observe::{
    Attribute, Contents, Counting, Ending, Entity, EntityId, EntityKind, Header, LayoutText, Note,
    Series, Source, SourceKind, Unit,
};

/// A row without a sample. Empty fields are missing values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fact {
    /// `about`, `entity`, `attribute`, `series` or `note`.
    pub row: String,
    /// Kind of the entity.
    pub kind: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The name of its parent.
    pub parent: Option<String>,
    /// Unit of the series.
    pub unit: Option<String>,
    /// Counting of the series.
    pub counting: Option<String>,
    /// Index of the entity.
    pub entity: Option<i64>,
    /// Index of the series.
    pub series: Option<i64>,
    /// Name of the attribute, metric or fact.
    pub key: Option<String>,
    /// Text.
    pub text: Option<String>,
    /// The index of a parent, the scale of a series, the time of a note, an exact attribute.
    pub raw: Option<i64>,
    /// An attribute that is a number.
    pub value: Option<f64>,
}

/// Everything of an observation but its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Origin, entities and series.
    pub header: Header,
    /// Notes.
    pub notes: Vec<Note>,
    /// How the recording ended, and what is missing.
    pub ending: Ending,
}

/// The names of a counting in a table.
pub(super) const fn counting_name(counting: Counting) -> &'static str {
    match counting {
        Counting::Cumulative => "cumulative",
        Counting::Gauge => "gauge",
    }
}

impl Described {
    /// Describes an observation that was read.
    #[must_use]
    pub fn new(header: Header, notes: Vec<Note>, ending: &Ending) -> Self {
        Self { header, notes, ending: ending.clone() }
    }

    /// Returns the rows.
    #[must_use]
    pub fn facts(&self) -> Vec<Fact> {
        let mut all = self.about();
        let contents = &self.header.contents;
        for (id, entity) in (0..).map(EntityId).zip(&contents.entities) {
            let own = labelled("entity", contents, id);
            let raw = entity.parent.map(|parent| parent.0.into());
            all.push(Fact { raw, ..own });
            for (key, attribute) in &entity.attributes {
                let own = labelled("attribute", contents, id);
                let own = Fact { key: Some(key.clone()), ..own };
                all.push(match attribute {
                    Attribute::Text(text) => Fact { text: Some(text.clone()), ..own },
                    Attribute::Number(number) => numbered(*number, own),
                });
            }
        }
        for (id, series) in (0..).zip(&contents.series) {
            all.push(Fact {
                unit: Some(series.unit.name().to_owned()),
                counting: Some(counting_name(series.counting).to_owned()),
                series: Some(id),
                key: Some(series.metric.clone()),
                raw: Some(series.scale.into()),
                ..labelled("series", contents, series.entity)
            });
        }
        // Times of notes are texts: a damaged file may have any.
        all.extend(self.notes.iter().map(|note| Fact {
            row: "note".to_owned(),
            key: Some(note.at_ns.to_string()),
            text: Some(note.text.clone()),
            ..Fact::default()
        }));
        all
    }

    fn about(&self) -> Vec<Fact> {
        let Header { source, start_unix_ns, interval_ns, layout, .. } = &self.header;
        let mut all = vec![
            ("source".to_owned(), source.kind.name().to_owned()),
            ("by".to_owned(), source.by.clone()),
        ];
        all.extend(source.about.iter().map(|(key, text)| (format!("about.{key}"), text.clone())));
        all.extend(start_unix_ns.map(|ns| ("start_unix_ns".to_owned(), ns.to_string())));
        all.extend(interval_ns.map(|ns| ("interval_ns".to_owned(), ns.to_string())));
        if let Some(layout) = layout {
            all.push(("layout.name".to_owned(), layout.name.clone()));
            all.push(("layout.text".to_owned(), layout.text.clone()));
        }
        let ending = ending_facts(&self.ending).into_iter();
        all.extend(ending.map(|(key, text)| (key.to_owned(), text)));
        let fact = |(key, text)| Fact {
            row: "about".to_owned(),
            key: Some(key),
            text: Some(text),
            ..Fact::default()
        };
        all.into_iter().map(fact).collect()
    }

    /// Reads the rows of one or several files of an observation. Files repeat rows.
    ///
    /// # Errors
    ///
    /// The reason why they describe no observation.
    pub fn read(facts: impl IntoIterator<Item = Fact>) -> Result<Self, String> {
        let mut read = Rows::default();
        for fact in facts {
            read.take(fact)?;
        }
        read.finish()
    }
}

/// Returns the kind of an ending with its numbers; nothing for a complete observation.
fn ending_facts(ending: &Ending) -> Vec<(&'static str, String)> {
    let kind = |name: &str| ("ending", name.to_owned());
    match ending {
        Ending::Complete => Vec::new(),
        Ending::Cut { left_over } => vec![kind("cut"), ("ending.left_over", left_over.to_string())],
        Ending::Gaps { blocks, at, samples } => {
            let mut all = vec![
                kind("gaps"),
                ("ending.blocks", blocks.to_string()),
                ("ending.at", at.to_string()),
            ];
            all.extend(samples.map(|own| ("ending.samples", own.to_string())));
            all
        }
        Ending::Damaged { at, reason } => {
            vec![kind("damaged"), ("ending.at", at.to_string()), ("ending.reason", reason.clone())]
        }
        // Endings that are not known here are those of a recording that did not end by itself.
        _ => vec![kind("interrupted")],
    }
}

/// Takes the ending out of the facts about an observation.
fn ending(about: &mut BTreeMap<String, String>) -> Result<Ending, String> {
    let Some(kind) = about.remove("ending") else { return Ok(Ending::Complete) };
    let mut number = |key: &str| -> Result<Option<u64>, String> {
        let Some(text) = about.remove(key) else { return Ok(None) };
        let wrong = |_| format!("{key} is {text:?}, expected a whole number");
        text.parse().map(Some).map_err(wrong)
    };
    let missing = |key: &str| format!("there is no row about {key:?}");
    match kind.as_str() {
        "interrupted" => Ok(Ending::Interrupted),
        "cut" => {
            let left_over = number("ending.left_over")?;
            Ok(Ending::Cut { left_over: left_over.ok_or_else(|| missing("ending.left_over"))? })
        }
        "gaps" => Ok(Ending::Gaps {
            blocks: number("ending.blocks")?.ok_or_else(|| missing("ending.blocks"))?,
            at: number("ending.at")?.ok_or_else(|| missing("ending.at"))?,
            samples: number("ending.samples")?,
        }),
        "damaged" => {
            let at = number("ending.at")?.ok_or_else(|| missing("ending.at"))?;
            let reason = about.remove("ending.reason").ok_or_else(|| missing("ending.reason"))?;
            Ok(Ending::Damaged { at, reason })
        }
        other => Err(format!(
            "ending is {other:?}, expected interrupted, cut, gaps or damaged; leave it out if the \
             observation is complete"
        )),
    }
}

fn labelled(row: &str, contents: &Contents, id: EntityId) -> Fact {
    let entity = contents.entity(id);
    let parent = entity.and_then(|own| contents.entity(own.parent?));
    Fact {
        row: row.to_owned(),
        kind: entity.map(|own| own.kind.name().to_owned()),
        name: entity.map(|own| own.name.clone()),
        parent: parent.map(|own| own.name.clone()),
        entity: Some(id.0.into()),
        ..Fact::default()
    }
}

/// Adds a number, exactly: floats have 53 bits, and a column of integers a sign.
fn numbered(number: u64, own: Fact) -> Fact {
    let value = Some(weir_report::number::float(number));
    match i64::try_from(number) {
        Ok(raw) => Fact { value, raw: Some(raw), ..own },
        Err(_) => Fact { value, text: Some(number.to_string()), ..own },
    }
}

/// The rows read so far, by what they describe.
#[derive(Default)]
struct Rows {
    about: BTreeMap<String, String>,
    entities: BTreeMap<i64, Fact>,
    attributes: BTreeMap<(i64, String), Attribute>,
    series: BTreeMap<i64, Fact>,
    notes: Vec<Note>,
}

impl Rows {
    fn take(&mut self, fact: Fact) -> Result<(), String> {
        let of = |what: &str| format!("a row of kind {:?} has no {what}", fact.row);
        match fact.row.as_str() {
            "about" => {
                let key = fact.key.clone().ok_or_else(|| of("key"))?;
                let text = fact.text.ok_or_else(|| format!("{key} has no text"))?;
                once(&mut self.about, key.clone(), text, || key)
            }
            "entity" => {
                let id = fact.entity.ok_or_else(|| of("entity"))?;
                once(&mut self.entities, id, fact, || format!("entity {id}"))
            }
            "attribute" => {
                let id = fact.entity.ok_or_else(|| of("entity"))?;
                let key = fact.key.clone().ok_or_else(|| of("key"))?;
                let words = format!("{key} of entity {id}");
                let value = attribute(&fact).ok_or_else(|| format!("{words} has no value"))?;
                once(&mut self.attributes, (id, key), value, || words)
            }
            "series" => {
                let id = fact.series.ok_or_else(|| of("series"))?;
                once(&mut self.series, id, fact, || format!("series {id}"))
            }
            "note" => {
                let at_ns = fact.key.as_deref().and_then(|key| key.parse().ok());
                let at_ns = at_ns.ok_or_else(|| of("time as its key"))?;
                let note = Note { at_ns, text: fact.text.unwrap_or_default() };
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                Ok(())
            }
            other => Err(format!(
                "a row without offset_ns is of kind {other:?}; expected about, entity, attribute, \
                 series or note"
            )),
        }
    }

    fn finish(mut self) -> Result<Described, String> {
        let mut contents = Contents::default();
        let mut attributes = std::mem::take(&mut self.attributes).into_iter().peekable();
        for (expect, (id, fact)) in (0..).zip(std::mem::take(&mut self.entities)) {
            is_next("entity", expect, id)?;
            let kind = fact.kind.ok_or_else(|| format!("entity {id} has no kind"))?;
            let name = fact.name.ok_or_else(|| format!("entity {id} has no name"))?;
            let parent = fact.raw.map(|raw| index("entity", raw)).transpose()?.map(EntityId);
            let mut entity = Entity::new(EntityKind::from(kind), &name, parent);
            while let Some(((_, key), value)) = attributes.next_if(|((own, _), _)| *own == id) {
                entity.attributes.insert(key, value);
            }
            contents.entities.push(entity);
        }
        if let Some(((id, key), _)) = attributes.next() {
            return Err(format!("{key} is an attribute of entity {id}, which does not exist"));
        }
        for (expect, (id, fact)) in (0..).zip(std::mem::take(&mut self.series)) {
            is_next("series", expect, id)?;
            contents.series.push(series(id, fact)?);
        }
        let notes = std::mem::take(&mut self.notes);
        let (header, ending) = self.header(contents)?;
        Ok(Described { header, notes, ending })
    }

    fn header(mut self, contents: Contents) -> Result<(Header, Ending), String> {
        let ending = ending(&mut self.about)?;
        let mut take = |key: &str| self.about.remove(key);
        let missing = |key: &str| format!("there is no row about {key:?}");
        let kind = SourceKind::from(take("source").ok_or_else(|| missing("source"))?);
        let by = take("by").ok_or_else(|| missing("by"))?;
        let wrong = |key: &str, text: &str| format!("{key} is {text:?}, expected a whole number");
        let start = take("start_unix_ns")
            .map(|text| text.parse().map_err(|_| wrong("start_unix_ns", &text)))
            .transpose()?;
        let interval = take("interval_ns")
            .map(|text| text.parse().map_err(|_| wrong("interval_ns", &text)))
            .transpose()?;
        let layout = take("layout.text").map(|text| {
            let name = take("layout.name").unwrap_or_default();
            LayoutText { name, text }
        });
        let mut about = BTreeMap::new();
        for (key, text) in self.about {
            let own = key.strip_prefix("about.").ok_or_else(|| {
                format!("a row about {key:?} is not part of an observation; leave it out")
            })?;
            about.insert(own.to_owned(), text);
        }
        let source = Source { kind, by, about };
        let header =
            Header { source, start_unix_ns: start, interval_ns: interval, layout, contents };
        Ok((header, ending))
    }
}

/// Words of the error that only rows of different observations cause.
pub(crate) const DIFFERENT: &str = "they are of different observations";

/// Keeps a row; a different one for the same thing is of another observation.
fn once<K: Ord, V: PartialEq>(
    known: &mut BTreeMap<K, V>,
    key: K,
    value: V,
    words: impl FnOnce() -> String,
) -> Result<(), String> {
    match known.get(&key) {
        Some(own) if *own != value => {
            Err(format!("{} differs between rows: {DIFFERENT}; import them one at a time", words()))
        }
        Some(_) => Ok(()),
        None => {
            known.insert(key, value);
            Ok(())
        }
    }
}

fn attribute(fact: &Fact) -> Option<Attribute> {
    let Some(value) = fact.value else { return fact.text.clone().map(Attribute::Text) };
    let raw = fact.raw.and_then(|raw| u64::try_from(raw).ok());
    let text = || fact.text.as_deref().and_then(|text| text.parse().ok());
    let rounded = || super::value::unscaled(value, 0).and_then(|raw| u64::try_from(raw).ok());
    raw.or_else(text).or_else(rounded).map(Attribute::Number)
}

fn series(id: i64, fact: Fact) -> Result<Series, String> {
    let missing = |what: &str| format!("series {id} has no {what}");
    let entity = fact.entity.ok_or_else(|| missing("entity"))?;
    let counting = match fact.counting.as_deref() {
        Some("cumulative") => Counting::Cumulative,
        Some("gauge") => Counting::Gauge,
        other => {
            let own = other.unwrap_or_default();
            return Err(format!(
                "series {id} has the counting {own:?}, expected cumulative or gauge"
            ));
        }
    };
    let scale = fact.raw.unwrap_or(0);
    let scale = i8::try_from(scale).map_err(|_| format!("series {id} has the scale {scale}"))?;
    Ok(Series {
        entity: EntityId(index("entity", entity)?),
        metric: fact.key.ok_or_else(|| missing("metric as its key"))?,
        unit: Unit::from(fact.unit.ok_or_else(|| missing("unit"))?),
        counting,
        scale,
    })
}

fn is_next(what: &str, expect: i64, id: i64) -> Result<(), String> {
    match id == expect {
        true => Ok(()),
        false => Err(format!("the row of {what} {expect} is missing")),
    }
}

fn index(what: &str, id: i64) -> Result<u32, String> {
    u32::try_from(id).map_err(|_| format!("there is no {what} {id}"))
}

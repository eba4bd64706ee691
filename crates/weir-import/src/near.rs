//! The kinds nearest to an unknown input.
//!
//! Each kind has signs that its inputs show: words of their heads, keys of their documents, rows
//! with a number of fields. For an unrecognized input, the message names the kinds that share most
//! signs with it, and the missing signs.

use crate::error::Nearest;
use crate::kind::{Kind, Sign};
use std::collections::HashSet;

/// The most kinds named.
const NAMED: usize = 3;
/// The bytes of an input that are searched for signs.
const GLANCE: usize = 1 << 16;

/// Returns the kinds that share most signs with the beginning of a text, the nearest first.
pub(crate) fn nearest(text: &str, kinds: impl Iterator<Item = Kind>) -> Vec<Nearest> {
    let seen = Seen::new(text);
    let tables = kinds.flat_map(|kind| kind.signs.iter().map(move |signs| (kind.name, signs)));
    let mut all: Vec<_> = tables.filter_map(|(kind, signs)| seen.rate(kind, signs)).collect();
    // If two kinds match equally, the one that lacks less is nearer.
    all.sort_by_key(|(points, own)| (std::cmp::Reverse(*points), own.lacks.len()));
    let mut named: Vec<Nearest> = Vec::new();
    for (_, own) in all {
        if named.len() < NAMED && named.iter().all(|other| other.kind != own.kind) {
            named.push(own);
        }
    }
    named
}

/// The signs of an input.
struct Seen<'a> {
    text: &'a str,
    words: HashSet<String>,
    first_row: &'a str,
}

impl<'a> Seen<'a> {
    fn new(text: &'a str) -> Self {
        let mut end = text.len().min(GLANCE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].trim_start_matches('\u{feff}');
        let is_end = |c: char| c.is_whitespace() || ",;|\"<>{}[]=:()".contains(c);
        let words = text.split(is_end).filter(|word| !word.is_empty());
        let words = words.map(str::to_ascii_lowercase).collect();
        let first_row = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Self { text, words, first_row }
    }

    /// Returns the signs of a kind that are present, and their weight; `None` if there are none.
    fn rate(&self, kind: &'static str, signs: &[Sign]) -> Option<(u32, Nearest)> {
        let mut own = Nearest { kind, has: Vec::new(), lacks: Vec::new() };
        let mut points = 0;
        for sign in signs {
            match self.find(sign) {
                Some(found) => {
                    // One word may match two signs.
                    if !own.has.contains(&found) {
                        own.has.push(found);
                    }
                    points += sign.points();
                }
                None => own.lacks.push(sign.to_string()),
            }
        }
        (points > 0).then_some((points, own))
    }

    /// Returns the matching words of a sign, if it is present.
    fn find(&self, sign: &Sign) -> Option<String> {
        match sign {
            Sign::Word(words) => {
                let is_there = |word: &&&str| self.words.contains(&word.to_ascii_lowercase());
                words.iter().find(is_there).map(|word| format!("{word:?}"))
            }
            Sign::Text(texts) => {
                let found = texts.iter().find(|text| self.text.contains(**text));
                found.map(|text| format!("{text:?}"))
            }
            Sign::Json => self.text.trim_start().starts_with(['{', '[']).then(|| sign.to_string()),
            Sign::Xml => self.text.trim_start().starts_with('<').then(|| sign.to_string()),
            Sign::Rows(separator, least, most) => {
                let fields: Vec<_> = match separator {
                    ' ' => self.first_row.split_whitespace().collect(),
                    _ => self.first_row.split(*separator).map(str::trim).collect(),
                };
                let numbers = fields.iter().filter(|field| field.parse::<f64>().is_ok()).count();
                let fits = (*least..=*most).contains(&fields.len()) && numbers * 2 > fields.len();
                fits.then(|| format!("rows of {} fields", fields.len()))
            }
        }
    }
}

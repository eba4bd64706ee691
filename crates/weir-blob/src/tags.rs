//! Blob tags and conditions on them.

use crate::fault::{Code, Fault, Result};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

/// The tags of a blob.
pub type Tags = BTreeMap<String, String>;

const MOST: usize = 10;

/// Returns whether names and values of tags may contain a character.
pub(crate) fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || " +-./:=_".contains(c)
}

/// Checks tags against the service's rules.
///
/// # Errors
///
/// [`Code::TagsTooLarge`], [`Code::InvalidInput`].
pub fn check(tags: &Tags) -> Result<()> {
    for (name, value) in tags {
        if name.is_empty() || name.len() > 128 || value.len() > 256 {
            return Err(Code::TagsTooLarge.into());
        }
        if !name.chars().chain(value.chars()).all(is_allowed) {
            return Err(Code::InvalidInput.into());
        }
    }
    if tags.len() > MOST { Err(Code::TagsTooLarge.into()) } else { Ok(()) }
}

/// Reads the `x-ms-tags` header: `name=value&name=value`, percent-encoded.
///
/// # Errors
///
/// [`Code::InvalidHeaderValue`], and the errors of [`check`].
pub(crate) fn parse_header(text: &str) -> Result<Tags> {
    let bad = || Fault::header("x-ms-tags", text);
    let decode = |part: &str| {
        let plain = part.replace('+', " ");
        percent_decode_str(&plain).decode_utf8().map(|text| text.into_owned()).map_err(|_| bad())
    };
    let mut tags = Tags::new();
    for pair in text.split('&') {
        let (name, value) = pair.split_once('=').ok_or_else(bad)?;
        if tags.insert(decode(name)?, decode(value)?).is_some() {
            return Err(bad());
        }
    }
    check(&tags)?;
    Ok(tags)
}

/// A condition on tags, for example `"color" = 'red' AND "size" > '5'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A comparison of a tag.
    Tag {
        /// The tag's name.
        name: String,
        /// The operator.
        is: Is,
        /// The value to compare with.
        value: String,
    },
    /// Both conditions.
    And(Box<Condition>, Box<Condition>),
    /// At least one condition.
    Or(Box<Condition>, Box<Condition>),
}

/// A comparison operator for text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says it")]
pub enum Is {
    Equal,
    Other,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Is {
    /// Compares the value of a tag with that of a condition.
    #[must_use]
    pub(crate) fn holds(self, own: &str, value: &str) -> bool {
        match self {
            Self::Equal => own == value,
            Self::Other => own != value,
            Self::Less => own < value,
            Self::LessOrEqual => own <= value,
            Self::Greater => own > value,
            Self::GreaterOrEqual => own >= value,
        }
    }
}

/// Maximum nesting depth of conditions.
const DEEP: usize = 16;

impl Condition {
    /// Parses a condition from the header or parameter `name`.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidHeaderValue`].
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let mut parser = Parser { rest: text, depth: 0 };
        match parser.any().filter(|_| parser.rest.trim().is_empty()) {
            Some(condition) => Ok(condition),
            None => Err(Fault::header(name, text)),
        }
    }

    /// Evaluates the condition. Comparisons of missing tags are false.
    #[must_use]
    pub fn holds(&self, tags: &Tags) -> bool {
        match self {
            Self::And(a, b) => a.holds(tags) && b.holds(tags),
            Self::Or(a, b) => a.holds(tags) || b.holds(tags),
            Self::Tag { name, is, value } => tags.get(name).is_some_and(|own| is.holds(own, value)),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let is_word = token.chars().all(char::is_alphabetic);
        let Some(start) = rest.get(..token.len()) else { return false };
        let after = &rest[token.len()..];
        let ends = !is_word || !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let eaten = start.eq_ignore_ascii_case(token) && ends;
        if eaten {
            self.rest = after;
        }
        eaten
    }

    fn any(&mut self) -> Option<Condition> {
        let mut left = self.all()?;
        while self.eat("OR") {
            left = Condition::Or(Box::new(left), Box::new(self.all()?));
        }
        Some(left)
    }

    fn all(&mut self) -> Option<Condition> {
        let mut left = self.one()?;
        while self.eat("AND") {
            left = Condition::And(Box::new(left), Box::new(self.one()?));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Condition> {
        if self.eat("(") {
            self.depth += 1;
            let inner = if self.depth > DEEP { None } else { self.any() }?;
            self.depth -= 1;
            return self.eat(")").then_some(inner);
        }
        let name = self.name()?;
        let signs = [
            ("<>", Is::Other),
            ("<=", Is::LessOrEqual),
            (">=", Is::GreaterOrEqual),
            ("=", Is::Equal),
            ("<", Is::Less),
            (">", Is::Greater),
        ];
        let (_, is) = signs.into_iter().find(|(sign, _)| self.eat(sign))?;
        let value = self.quoted('\'')?;
        if !name.chars().chain(value.chars()).all(is_allowed) {
            return None;
        }
        Some(Condition::Tag { name, is, value })
    }

    fn name(&mut self) -> Option<String> {
        if let Some(name) = self.quoted('"') {
            return Some(name);
        }
        let rest = self.rest.trim_start();
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let end = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.rest = &rest[end..];
        (!name.is_empty()).then_some(name)
    }

    /// Parses quoted text. Tags contain no quotes.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let rest = self.rest.trim_start().strip_prefix(quote)?;
        let (text, after) = rest.split_once(quote)?;
        self.rest = after;
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<bool>) {
        let tags = [("color", "red"), ("size", "5")];
        let tags = tags.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        let got = Condition::parse(text, "x-ms-if-tags").ok().map(|c| c.holds(&tags));
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn conditions_are_parsed_and_evaluated() {
        check("\"color\" = 'red'", Some(true));
        check("color='blue'", Some(false));
        check("\"color\" <> 'blue' AND \"size\" >= '5'", Some(true));
        check("color='blue' OR size<'6'", Some(true));
        check("color='blue' and (size<'6' or size>'1')", Some(false));
        check("\"none\" <> 'x'", Some(false));
        check("\"color\" <> '$'", None);
        check("@container = 'a'", None);
        check("color = red", None);
        check("color", None);
        check("color = 'red", None);
        check("color = 'red' AND", None);
        check("", None);
        check(&"(".repeat(10_000), None);
    }

    #[test]
    fn tag_headers_are_parsed() {
        let tags = parse_header("a=b&c%20d=e%2Ff").unwrap();
        assert_eq!(tags["c d"], "e/f");
        assert!(parse_header("a").is_err());
        assert!(parse_header("a=1&a=2").is_err());
        assert_eq!(parse_header("a=%3F").unwrap_err().code, Code::InvalidInput);
        let many: Vec<String> = (0..11).map(|n| format!("t{n}=v")).collect();
        assert_eq!(parse_header(&many.join("&")).unwrap_err().code, Code::TagsTooLarge);
    }
}

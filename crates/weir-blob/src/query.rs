//! The queries of Find Blobs by Tags: comparisons of tags, all of which a blob must meet.
//!
//! ```text
//! @container = 'logs' AND "color" = 'red' AND size >= '5'
//! ```
//!
//! Source: "Find Blobs by Tags", Microsoft. Unlike conditions of requests, queries have no `OR`, `<>` or
//! parentheses.

use crate::fault::{Code, Fault, Result};
use crate::tags::{Is, Tags, is_allowed};
use std::collections::BTreeSet;

/// Maximum number of tags in a query.
const MOST: usize = 10;
const MOST_NAME: usize = 128;
const MOST_VALUE: usize = 256;
const CONTAINER: &str = "@container";

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Names of containers, all of which the blob's must equal.
    containers: Vec<String>,
    /// Comparisons of tags: name, operator and value.
    tests: Vec<(String, Is, String)>,
}

impl Query {
    /// Parses the parameter `where`.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidQueryParameterValue`] with the position.
    pub fn parse(text: &str) -> Result<Self> {
        let mut query = Self::default();
        let mut parser = Parser { text, at: 0 };
        loop {
            parser.read_test(&mut query)?;
            match parser.word() {
                "" if parser.rest().is_empty() => break,
                word if word.eq_ignore_ascii_case("and") => parser.at += word.len(),
                _ => return Err(parser.wrong("expected AND or the end of the query")),
            }
        }
        let names: BTreeSet<&str> = query.tests.iter().map(|(name, ..)| &**name).collect();
        if names.len() > MOST {
            let message = format!("there can be at most {MOST} unique tags in a query");
            return Err(refused(format!("Error parsing query: {message}")));
        }
        Ok(query)
    }

    /// Returns a container that all blobs that are found are in.
    #[must_use]
    pub fn container(&self) -> Option<&str> {
        self.containers.first().map(|name| &**name)
    }

    /// Returns whether a blob of that container may be found.
    #[must_use]
    pub fn includes(&self, container: &str) -> bool {
        self.containers.iter().all(|own| own == container)
    }

    /// Returns whether a blob of that container with these tags is found.
    #[must_use]
    pub fn finds(&self, container: &str, tags: &Tags) -> bool {
        self.includes(container)
            && self
                .tests
                .iter()
                .all(|(name, is, value)| tags.get(name).is_some_and(|own| is.holds(own, value)))
    }

    /// Returns the tags that the query names, which a response contains.
    pub fn shown<'a>(&self, tags: &'a Tags) -> impl Iterator<Item = (&'a String, &'a String)> {
        tags.iter().filter(|(name, _)| self.tests.iter().any(|(own, ..)| own == *name))
    }
}

fn refused(message: String) -> Fault {
    Fault::from(Code::InvalidQueryParameterValue)
        .with("QueryParameterName", "where".to_owned())
        .saying(message)
}

struct Parser<'a> {
    text: &'a str,
    /// Position in bytes.
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn wrong(&self, reason: &str) -> Fault {
        let position = self.text.get(..self.at).unwrap_or_default().chars().count() + 1;
        let place = format!("Error parsing query at or near character position {position}");
        refused(format!("{place}: {reason}"))
    }

    /// Returns the letters, digits and underscores that follow.
    fn word(&mut self) -> &'a str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        end.map_or(rest, |end| &rest[..end])
    }

    fn quoted(&mut self, quote: char) -> Result<Option<&'a str>> {
        self.skip_spaces();
        let Some(inner) = self.rest().strip_prefix(quote) else { return Ok(None) };
        let (text, _) = inner.split_once(quote).ok_or_else(|| self.wrong("unterminated text"))?;
        if let Some(c) = text.chars().find(|c| !is_allowed(*c)) {
            return Err(self.wrong(&format!("'{c}' not permitted in tag name or value")));
        }
        self.at += text.len() + 2 * quote.len_utf8();
        Ok(Some(text))
    }

    fn name(&mut self) -> Result<&'a str> {
        if let Some(name) = self.quoted('"')? {
            return Ok(name);
        }
        let start = self.at;
        if self.rest().starts_with('@') {
            self.at += 1;
        }
        let word = self.word();
        self.at += word.len();
        let name = &self.text[start..self.at];
        if name.starts_with('@') && name != CONTAINER {
            self.at = start;
            return Err(self.wrong(&format!("unsupported parameter '{name}'")));
        }
        if name.is_empty() { Err(self.wrong("expected the name of a tag")) } else { Ok(name) }
    }

    fn read_test(&mut self, query: &mut Query) -> Result<()> {
        self.skip_spaces();
        let name = self.name()?;
        if name.is_empty() || name.len() > MOST_NAME {
            let reason = format!("tag must be between 1 and {MOST_NAME} characters in length");
            return Err(self.wrong(&reason));
        }
        self.skip_spaces();
        let signs = [
            ("<=", Is::LessOrEqual),
            (">=", Is::GreaterOrEqual),
            ("=", Is::Equal),
            ("<", Is::Less),
            (">", Is::Greater),
        ];
        let found = signs.into_iter().find(|(sign, _)| self.rest().starts_with(sign));
        let found = found.filter(|(_, is)| name != CONTAINER || *is == Is::Equal);
        let (sign, is) = found.ok_or_else(|| self.wrong("expected an operator"))?;
        self.at += sign.len();
        let value = self.quoted('\'')?;
        let value = value.ok_or_else(|| self.wrong("expected a value in single quotes"))?;
        if value.len() > MOST_VALUE {
            let reason =
                format!("tag value must be between 0 and {MOST_VALUE} characters in length");
            return Err(self.wrong(&reason));
        }
        if name == CONTAINER {
            query.containers.push(value.to_owned());
        } else {
            query.tests.push((name.to_owned(), is, value.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: bool) {
        let tags = [("color", "red"), ("a b", "5")];
        let tags = tags.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        assert_eq!(Query::parse(text).unwrap().finds("con", &tags), expect, "{text}");
    }

    #[track_caller]
    fn refused(text: &str, expect: &str) {
        let fault = Query::parse(text).unwrap_err();
        assert_eq!(fault.code, Code::InvalidQueryParameterValue, "{text}");
        assert!(fault.message().contains(expect), "{text}: {fault}");
    }

    #[test]
    fn queries_are_parsed_and_evaluated() {
        check("color='red'", true);
        check("\"a b\" >= '5' and color < 'rf'", true);
        check("@container = 'con' AND color = 'red'", true);
        check("@container='other' AND color='red'", false);
        check("none='x'", false);
        check("\"a b\">'5'", false);
    }

    #[test]
    fn a_refused_query_has_the_position_and_the_reason() {
        refused("", "position 1: expected the name of a tag");
        refused("astring", "position 8: expected an operator");
        refused("a<>'b'", "position 3: expected a value");
        refused("a='b' or c='d'", "position 7: expected AND");
        refused("'a b'='c'", "position 1: expected the name");
        refused("a='b' and @container1='c'", "position 11: unsupported parameter '@container1'");
        refused("@container>'c'", "expected an operator");
        refused("a='b @'", "'@' not permitted in tag name or value");
        refused("a='b", "unterminated");
        refused(&format!("{}='b'", "a".repeat(129)), "tag must be between 1 and 128 characters");
        refused(&format!("a='{}'", "b".repeat(257)), "tag value must be between 0 and 256");
        let many: Vec<String> = (0..11).map(|n| format!("t{n}='v'")).collect();
        refused(&many.join(" and "), "there can be at most 10 unique tags in a query");
        check(&format!("color='red' and {}", vec!["color='red'"; 20].join(" and ")), true);
    }
}

//! XML as the protocol uses it: small documents without namespaces or significant attributes.

use crate::fault::{Code, Result};
use quick_xml::events::Event;
use quick_xml::{Reader, escape};
use std::fmt::Write as _;

/// Maximum nesting depth.
const DEEP: usize = 16;

/// A parsed element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Element name.
    pub name: String,
    /// Its text, concatenated.
    pub text: String,
    /// Child elements.
    pub children: Vec<Element>,
}

impl Element {
    /// Parses a document; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidXmlDocument`].
    pub fn parse(document: &[u8]) -> Result<Option<Self>> {
        let text = std::str::from_utf8(document).map_err(|_| Code::InvalidXmlDocument)?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        let mut open: Vec<Self> = Vec::new();
        let mut root = None;
        loop {
            let event = reader.read_event().map_err(|_| Code::InvalidXmlDocument)?;
            let done = match event {
                Event::Start(start) => {
                    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                    if open.len() >= DEEP || root.is_some() {
                        return Err(Code::InvalidXmlDocument.into());
                    }
                    open.push(Self { name, ..Self::default() });
                    None
                }
                Event::Empty(start) => {
                    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                    Some(Self { name, ..Self::default() })
                }
                Event::End(_) => open.pop(),
                Event::Text(text) => {
                    if let Some(element) = open.last_mut() {
                        let text = text.decode().map_err(|_| Code::InvalidXmlDocument)?;
                        element.text.push_str(&text);
                    }
                    None
                }
                Event::GeneralRef(reference) => {
                    let name = reference.decode().map_err(|_| Code::InvalidXmlDocument)?;
                    let text = escape::unescape(&format!("&{name};"))
                        .map_err(|_| Code::InvalidXmlDocument)?
                        .into_owned();
                    if let Some(element) = open.last_mut() {
                        element.text.push_str(&text);
                    }
                    None
                }
                Event::CData(data) => {
                    if let Some(element) = open.last_mut() {
                        element.text.push_str(&String::from_utf8_lossy(&data));
                    }
                    None
                }
                Event::Eof => break,
                _ => None,
            };
            if let Some(element) = done {
                match open.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None if root.is_none() => root = Some(element),
                    None => return Err(Code::InvalidXmlDocument.into()),
                }
            }
        }
        if open.is_empty() { Ok(root) } else { Err(Code::InvalidXmlDocument.into()) }
    }

    /// Parses a document whose root element is `name`.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidXmlDocument`].
    pub fn root(document: &[u8], name: &str) -> Result<Self> {
        let root = Self::parse(document)?.filter(|root| root.name == name);
        root.ok_or_else(|| Code::InvalidXmlDocument.into())
    }

    /// Returns the first child element with that name.
    #[must_use]
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the trimmed text of the first child element with that name.
    #[must_use]
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim())
    }
}

/// An XML document under construction.
#[derive(Debug)]
pub struct Writer(String);

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// Creates an empty document.
    #[must_use]
    pub fn new() -> Self {
        Self(String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>"))
    }

    /// Writes an element with text.
    pub fn leaf(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            let _ = write!(self.0, "<{name} />");
        } else {
            let _ = write!(self.0, "<{name}>{}</{name}>", escape::escape(text));
        }
    }

    /// Writes an element if there is text.
    pub fn maybe(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.leaf(name, text);
        }
    }

    /// Writes the name of a blob, which may contain characters that XML cannot represent.
    pub fn name(&mut self, name: &str) {
        if name.contains(|c| matches!(c, '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')) {
            let all = percent_encoding::NON_ALPHANUMERIC;
            let encoded = percent_encoding::utf8_percent_encode(name, all);
            let _ = write!(self.0, "<Name Encoded=\"true\">{encoded}</Name>");
        } else {
            self.leaf("Name", name);
        }
    }

    /// Writes an element with the children that `fill` writes.
    pub fn within(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name}>");
        fill(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// Writes an element with attributes and the children that `fill` writes.
    pub fn with(&mut self, name: &str, attributes: &[(&str, &str)], fill: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.0, " {attribute}=\"{}\"", escape::escape(*value));
        }
        self.0.push('>');
        fill(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// Returns the document.
    #[must_use]
    pub fn done(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_documents_are_parsed_back() {
        let mut writer = Writer::new();
        writer.with("Root", &[("A", "a\"<b")], |writer| {
            writer.name("a & b < c");
            writer.within("List", |writer| writer.leaf("Empty", ""));
        });
        let text = writer.done();
        let root = Element::root(text.as_bytes(), "Root").unwrap();
        assert_eq!(root.text_of("Name"), Some("a & b < c"));
        assert_eq!(root.child("List").unwrap().children[0].name, "Empty");
    }

    #[track_caller]
    fn refused(document: &str) {
        assert_eq!(Element::root(document.as_bytes(), "a"), Err(Code::InvalidXmlDocument.into()));
    }

    #[test]
    fn malformed_documents_are_refused() {
        for document in ["", "<a>", "<a></b>", "<b/>", "<a/><a/>", "text", "<a>&unknown;</a>"] {
            refused(document);
        }
        refused(&"<a>".repeat(100));
        // Custom entities are not expanded.
        refused("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>");
    }
}

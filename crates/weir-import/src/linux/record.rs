//! A JSON object with numbers and texts, in the order of the text. sysstat writes one for each
//! device and time, and building a map of each would take longer than parsing it.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Names and values in order; empty for anything but an object.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Record<'a>(pub(super) Vec<(Cow<'a, str>, Field<'a>)>);

/// A value.
#[derive(Debug, PartialEq)]
pub(super) enum Field<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Other,
}

/// A visitor that makes a `T`.
struct Reads<T>(PhantomData<T>);

impl<'de> Visitor<'de> for Reads<Field<'de>> {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Field::Number(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "as all numbers of JSON")]
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Field::Number(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "as all numbers of JSON")]
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Field::Number(number as f64))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Field::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Reads(PhantomData::<Field<'de>>))
    }
}

impl<'de> Visitor<'de> for Reads<Record<'de>> {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut record = Vec::with_capacity(24);
        while let Some((name, value)) = all.next_entry::<Field<'_>, Field<'_>>()? {
            if let Field::Text(name) = name {
                record.push((name, value));
            }
        }
        Ok(Record(record))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Record<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(Reads(PhantomData::<Record<'de>>))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_others_in_order() {
        let text = r#"{"n": "sda", "r/s": 1.5, "k": 3, "x": [1, {}], "\u0041": null, "m": -2}"#;
        let record: Record<'_> = serde_json::from_str(text).expect("a record");
        let expect = [
            ("n", Field::Text("sda".into())),
            ("r/s", Field::Number(1.5)),
            ("k", Field::Number(3.0)),
            ("x", Field::Other),
            ("A", Field::Other),
            ("m", Field::Number(-2.0)),
        ];
        assert_eq!(record.0, expect.map(|(name, value)| (name.into(), value)));
        assert!(serde_json::from_str::<Record<'_>>("[1]").is_err());
    }
}

//! Quantities in files are strings with a unit; `Iops` may be a plain integer.

use crate::{Bytes, BytesPerSec, Iops, Money, Share, Span};
use core::fmt;
use core::str::FromStr;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

struct Quantity<T>(core::marker::PhantomData<T>, &'static str);

impl<T: FromStr<Err = crate::ParseError>> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        alloc::format!("{n}").parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<T, E> {
        alloc::format!("{n}").parse().map_err(E::custom)
    }
}

macro_rules! quantity {
    ($type:ty, $expecting:literal, $exact:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Quantity(core::marker::PhantomData, $expecting))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&$exact(*self))
            }
        }
    };
}

quantity!(Bytes, "a size with a unit, like \"64 KiB\"", Bytes::exact);
quantity!(BytesPerSec, "a rate with a unit, like \"200 MiB/s\"", core::convert::identity);
quantity!(Iops, "operations per second, like 5000", core::convert::identity);
quantity!(Span, "a time with a unit, like \"10ms\"", core::convert::identity);
quantity!(Share, "a percentage like \"50 %\"", core::convert::identity);
quantity!(Money, "an amount like \"135.17\"", Money::exact);

//! A side with its measured profile.

use crate::price::Price;
use crate::profile::Profile;
use weir_report::diagnosis::VerdictName;

/// A side with its measured profile.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) price: Option<Price>,
    pub(crate) notes: Vec<String>,
}

/// The verdict of a diagnosis.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) verdict: VerdictName,
    pub(crate) summary: String,
}

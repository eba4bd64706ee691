//! The shape of `lab.toml`, and the labs that are built in.

use crate::error::LabError;
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use weir_report::lab::{Basis, Compare, Tolerance};
use weir_units::{Bytes, Span};

static LABS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../labs");

/// A lab as its file says it.
#[derive(Debug, Clone)]
pub struct Lab {
    /// The folder's name.
    pub name: String,
    /// What it holds.
    pub file: LabFile,
}

/// `lab.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFile {
    /// What it shows.
    pub title: String,
    /// The article's number.
    pub article: String,
    /// The layout's file in the folder ...
    pub layout: Option<String>,
    /// ... or the layout itself.
    pub layout_text: Option<String>,
    /// How long each job runs in virtual time, as the article has it.
    pub runtime: Span,
    /// How long it runs in wall time, if not as long as the others.
    pub wall_runtime: Option<Span>,
    /// The size of each job's file in wall time, if not the common one.
    pub wall_size: Option<Bytes>,
    /// The runs.
    pub run: Vec<RunKeys>,
    /// The figures.
    pub figure: Vec<FigureKeys>,
}

/// One run of a lab.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunKeys {
    /// Its name.
    pub id: String,
    /// The job file in the folder ...
    pub jobs: Option<String>,
    /// ... or the jobs themselves.
    pub jobs_text: Option<String>,
    /// An export whose files are read once before, so that the cache holds them.
    pub warm_up: Option<String>,
    /// Report over stretches of this length.
    pub every: Option<Span>,
}

/// One published figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureKeys {
    /// Its name.
    pub id: String,
    /// The run it is read from.
    pub run: String,
    /// A run to divide it by.
    pub per: Option<String>,
    /// What is read; see `metric`.
    pub metric: String,
    /// The number that was published ...
    pub published: Option<f64>,
    /// ... or, where the article says it in words, what they allow.
    pub expected: Option<f64>,
    /// Where in the article.
    pub place: String,
    /// What it rests on.
    pub basis: BasisKey,
    /// How it is compared; equal if left out.
    #[serde(default)]
    pub compare: CompareKey,
    /// The tolerance, if not the usual one: 2 % virtual, 3 % wall.
    pub tolerance: Option<ToleranceKeys>,
    /// What it counts, if the metric does not say.
    pub unit: Option<String>,
    /// Contradictions of the article, or how to read it.
    pub note: Option<String>,
}

/// [`Basis`] as it is written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BasisKey {
    /// From the limits alone.
    Cap,
    /// A parameter was fitted.
    Calibrated,
    /// Order and rough ratio.
    Direction,
}

impl From<BasisKey> for Basis {
    fn from(key: BasisKey) -> Self {
        match key {
            BasisKey::Cap => Self::Cap,
            BasisKey::Calibrated => Self::Calibrated,
            BasisKey::Direction => Self::Direction,
        }
    }
}

/// [`Compare`] as it is written.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompareKey {
    /// Equal.
    #[default]
    Equal,
    /// At least.
    AtLeast,
    /// At most.
    AtMost,
}

impl From<CompareKey> for Compare {
    fn from(key: CompareKey) -> Self {
        match key {
            CompareKey::Equal => Self::Equal,
            CompareKey::AtLeast => Self::AtLeast,
            CompareKey::AtMost => Self::AtMost,
        }
    }
}

/// [`Tolerance`] as it is written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToleranceKeys {
    /// In virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: f64,
    /// In wall time.
    pub wall: f64,
}

impl FigureKeys {
    /// The tolerance that holds.
    #[must_use]
    pub fn tolerance(&self) -> Tolerance {
        let ToleranceKeys { virtual_time, wall } =
            self.tolerance.unwrap_or(ToleranceKeys { virtual_time: 0.02, wall: 0.03 });
        Tolerance { virtual_time, wall }
    }
}

impl Lab {
    fn read(dir: &Dir<'_>) -> Result<Self, LabError> {
        let name = dir.path().to_string_lossy().into_owned();
        let damaged = |reason: String| LabError::Lab { lab: name.clone(), reason };
        let path = dir.path().join("lab.toml");
        let text = LABS.get_file(&path).and_then(include_dir::File::contents_utf8);
        let text = text.ok_or_else(|| damaged("lab.toml is missing".to_owned()))?;
        let file: LabFile =
            toml::from_str(text).map_err(|error| damaged(format!("lab.toml: {error}")))?;
        for figure in &file.figure {
            if figure.published.is_some() == figure.expected.is_some() {
                let reason = format!("figure {:?}: give published or expected", figure.id);
                return Err(damaged(reason));
            }
            for run in std::iter::once(&figure.run).chain(&figure.per) {
                if !file.run.iter().any(|known| known.id == *run) {
                    let reason = format!("figure {:?}: there is no run {run:?}", figure.id);
                    return Err(damaged(reason));
                }
            }
        }
        Ok(Self { name, file })
    }

    /// A text of the lab: itself, or a file of its folder.
    pub(crate) fn text<'a>(
        &'a self,
        own: Option<&'a String>,
        file: Option<&'a String>,
    ) -> Result<(String, &'a str), LabError> {
        let damaged = |reason: String| LabError::Lab { lab: self.name.clone(), reason };
        match (own, file) {
            (Some(text), None) => Ok((format!("labs/{}/lab.toml", self.name), text)),
            (None, Some(file)) => {
                let path = format!("{}/{file}", self.name);
                let text = LABS.get_file(&path).and_then(include_dir::File::contents_utf8);
                let text = text.ok_or_else(|| damaged(format!("{file} is missing")))?;
                Ok((format!("labs/{path}"), text))
            }
            _ => Err(damaged("give either a file or a text".to_owned())),
        }
    }
}

/// All labs, by name.
///
/// # Errors
///
/// [`LabError::Lab`] for one that cannot be read, which a test rules out.
pub fn all() -> Result<Vec<Lab>, LabError> {
    let mut labs = LABS.dirs().map(Lab::read).collect::<Result<Vec<_>, _>>()?;
    labs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(labs)
}

/// The lab of that name.
///
/// # Errors
///
/// [`LabError::Unknown`] with the names near to it, and all that there are.
pub fn find(name: &str) -> Result<Lab, LabError> {
    let labs = all()?;
    if let Some(lab) = labs.iter().find(|lab| lab.name == name) {
        return Ok(lab.clone());
    }
    let known: Vec<String> = labs.into_iter().map(|lab| lab.name).collect();
    let near = known.iter().filter(|known| is_near(name, known)).cloned().collect();
    Err(LabError::Unknown { name: name.to_owned(), near, known })
}

/// Whether `name` is a part of `known`, more than it, or has a typing error.
fn is_near(name: &str, known: &str) -> bool {
    let name = name.to_lowercase();
    let part = name.len() >= 3 && (known.contains(&name) || name.contains(known));
    part || strsim::osa_distance(&name, known) <= (name.len() / 3).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lab_reads_and_has_figures() {
        let labs = all().expect("sound labs");
        let names: Vec<&str> = labs.iter().map(|lab| lab.name.as_str()).collect();
        assert_eq!(
            names,
            ["cache-warmup", "ds14-benchmark", "io-size", "queue-depth", "stripe", "vm-cap"]
        );
        assert!(labs.iter().all(|lab| lab.file.figure.len() >= 3));
    }

    #[test]
    fn an_unknown_lab_is_said_with_the_near_ones_and_all() {
        let check = |name: &str, near: &str| {
            let error = find(name).expect_err("no such lab").to_string();
            let known = "cache-warmup, ds14-benchmark, io-size, queue-depth, stripe, vm-cap";
            assert_eq!(error, format!("there is no lab {name:?}{near}; there are: {known}"));
        };
        check("ds14", "; did you mean \"ds14-benchmark\"?");
        check("DS14-benchmarc", "; did you mean \"ds14-benchmark\"?");
        check("stripes", "; did you mean \"stripe\"?");
        check("cap", "; did you mean \"vm-cap\"?");
        check("e-d", "; did you mean \"queue-depth\"?");
        check("vm-size", "; did you mean \"io-size\"?");
        check("oltp", "");
        check("", "");
    }
}

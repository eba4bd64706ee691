//! The shape of `lab.toml`, and the labs that are built in.

use crate::error::LabError;
use crate::figure::{FigureKeys, Wanted};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use weir_units::{Bytes, Span};

static LABS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../labs");

/// The job of a warm-up, which is not measured.
pub(crate) const WARM_UP: &str = "warm-up";

/// A lab.
#[derive(Debug, Clone)]
pub struct Lab {
    /// The folder's name.
    pub name: String,
    /// The contents of `lab.toml`.
    pub file: LabFile,
}

/// `lab.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFile {
    /// The title.
    pub title: String,
    /// The number of the article.
    pub article: String,
    /// The layout, as a file of the folder ...
    pub layout: Option<String>,
    /// ... or as text.
    pub layout_text: Option<String>,
    /// Runtime of each fio job in virtual time, as in the article.
    pub runtime: Option<Span>,
    /// Runtime of each fio job in wall time, if it is not the default.
    pub wall_runtime: Option<Span>,
    /// Maximum file size of each job in wall time, if it is not the default.
    pub wall_size: Option<Bytes>,
    /// The reason why the databases or jobs do not run in wall time.
    pub not_in_wall_time: Option<String>,
    /// Published figures without a run.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The runs.
    pub run: Vec<RunKeys>,
    /// The figures.
    pub figure: Vec<FigureKeys>,
}

/// A published figure that cannot be expressed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name.
    pub id: String,
    /// The reason.
    pub why: String,
}

/// A run of a lab: fio jobs, databases or a backup on a layout, a layout alone, a need, or
/// a layout to tune.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunKeys {
    /// Its name.
    pub id: String,
    /// The layout of this run, appended to that of the lab, as a file of the folder ...
    pub layout: Option<String>,
    /// ... or as text.
    pub layout_text: Option<String>,
    /// The fio jobs, as a file of the folder ...
    pub jobs: Option<String>,
    /// ... or as text.
    pub jobs_text: Option<String>,
    /// The OLTP descriptions of one or more databases, as files of the folder ...
    pub oltp: Option<OneOrMore>,
    /// ... or as texts.
    pub oltp_text: Option<OneOrMore>,
    /// The descriptions of one or more backups, as files of the folder ...
    pub backup: Option<OneOrMore>,
    /// ... or as texts.
    pub backup_text: Option<OneOrMore>,
    /// A need to plan for; the run then has no layout.
    pub need_text: Option<String>,
    /// A goal, for example `transactions=300000`: the layout is tuned for its databases.
    pub tune: Option<String>,
    /// The simulated time of the databases of a tuned layout, instead of their own.
    pub tune_runtime: Option<Span>,
    /// The reason why this run does not run in wall time.
    pub not_in_wall_time: Option<String>,
    /// An export whose files are read once first, to warm the cache.
    pub warm_up: Option<String>,
    /// The interval of the time series.
    pub every: Option<Span>,
}

/// One text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    More(Vec<String>),
}

impl OneOrMore {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::More(more) => more,
        }
    }
}

/// A text of a lab, with its name for messages.
type Named<'a> = (String, &'a str);

impl Lab {
    fn read(dir: &Dir<'_>) -> Result<Self, LabError> {
        let name = dir.path().to_string_lossy().into_owned();
        let damaged = |reason: String| LabError::Lab { lab: name.clone(), reason };
        let path = dir.path().join("lab.toml");
        let text = LABS
            .get_file(&path)
            .and_then(include_dir::File::contents_utf8)
            .ok_or_else(|| damaged("lab.toml is missing".to_owned()))?;
        let file: LabFile =
            toml::from_str(text).map_err(|error| damaged(format!("lab.toml: {error}")))?;
        let lab = Self { name, file };
        lab.wanted()?;
        Ok(lab)
    }

    fn damaged(&self, reason: String) -> LabError {
        LabError::Lab { lab: self.name.clone(), reason }
    }

    /// Returns the figures, one by one.
    ///
    /// # Errors
    ///
    /// [`LabError::Lab`] for a figure without a value, or with an unknown run.
    pub(crate) fn wanted(&self) -> Result<Vec<Wanted<'_>>, LabError> {
        let runs: Vec<&str> = self.file.run.iter().map(|run| run.id.as_str()).collect();
        let mut wanted = Vec::new();
        for figure in &self.file.figure {
            wanted.extend(
                figure
                    .wanted(&runs)
                    .map_err(|reason| self.damaged(format!("figure {:?}: {reason}", figure.id)))?,
            );
        }
        Ok(wanted)
    }

    /// Returns the number of figures.
    #[must_use]
    pub fn figures(&self) -> usize {
        // The figures were checked when the lab was read.
        self.wanted().map_or(0, |wanted| wanted.len())
    }

    /// Returns a text of the lab, or the file of its folder.
    fn text<'a>(
        &'a self,
        own: Option<&'a String>,
        file: Option<&'a String>,
    ) -> Result<Option<Named<'a>>, LabError> {
        match (own, file) {
            (None, None) => Ok(None),
            (Some(text), None) => Ok(Some((format!("labs/{}/lab.toml", self.name), text))),
            (None, Some(file)) => {
                let path = format!("{}/{file}", self.name);
                let text = LABS
                    .get_file(&path)
                    .and_then(include_dir::File::contents_utf8)
                    .ok_or_else(|| self.damaged(format!("{file} is missing")))?;
                Ok(Some((format!("labs/{path}"), text)))
            }
            _ => Err(self.damaged("give either a file or a text".to_owned())),
        }
    }

    /// Returns the layout of a run: that of the lab, followed by that of the run.
    pub(crate) fn layout_of(&self, run: &RunKeys) -> Result<(String, String), LabError> {
        let common = self.text(self.file.layout_text.as_ref(), self.file.layout.as_ref())?;
        let own = self.text(run.layout_text.as_ref(), run.layout.as_ref())?;
        let place = |(name, _): Named<'_>| format!("{name}, run {:?}", run.id);
        let Some(place) = common.clone().or_else(|| own.clone()).map(place) else {
            return Err(self.damaged(format!("run {:?} has no layout", run.id)));
        };
        let texts = [common, own].into_iter().flatten();
        Ok((place, texts.map(|(_, text)| text).collect::<Vec<_>>().join("\n")))
    }

    /// Returns the fio jobs of a run, if it has any.
    pub(crate) fn jobs_of<'a>(&'a self, run: &'a RunKeys) -> Result<Option<Named<'a>>, LabError> {
        self.text(run.jobs_text.as_ref(), run.jobs.as_ref())
    }

    /// Returns the descriptions of the backups of a run.
    pub(crate) fn backups_of<'a>(&'a self, run: &'a RunKeys) -> Result<Vec<Named<'a>>, LabError> {
        self.texts(run.backup_text.as_ref(), run.backup.as_ref())
    }

    /// Returns the OLTP descriptions of a run; empty if it has no database.
    pub(crate) fn oltp_of<'a>(&'a self, run: &'a RunKeys) -> Result<Vec<Named<'a>>, LabError> {
        self.texts(run.oltp_text.as_ref(), run.oltp.as_ref())
    }

    /// Returns the texts in the lab file, then those in files of the folder.
    fn texts<'a>(
        &'a self,
        own: Option<&'a OneOrMore>,
        files: Option<&'a OneOrMore>,
    ) -> Result<Vec<Named<'a>>, LabError> {
        let texts = own.into_iter().flat_map(OneOrMore::all).map(|text| (Some(text), None));
        let files = files.into_iter().flat_map(OneOrMore::all).map(|file| (None, Some(file)));
        let named = texts.chain(files).map(|(text, file)| self.text(text, file));
        Ok(named.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

/// Returns all labs, by name.
///
/// # Errors
///
/// [`LabError::Lab`] for an invalid lab, which a test rules out.
pub fn all() -> Result<Vec<Lab>, LabError> {
    let mut labs = LABS.dirs().map(Lab::read).collect::<Result<Vec<_>, _>>()?;
    labs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(labs)
}

/// Returns the lab with a name.
///
/// # Errors
///
/// [`LabError::Unknown`] with similar names and all known ones.
pub fn find(name: &str) -> Result<Lab, LabError> {
    let labs = all()?;
    if let Some(lab) = labs.iter().find(|lab| lab.name == name) {
        return Ok(lab.clone());
    }
    let known: Vec<String> = labs.into_iter().map(|lab| lab.name).collect();
    let near = known.iter().filter(|known| is_near(name, known)).cloned().collect();
    Err(LabError::Unknown { name: name.to_owned(), near, known })
}

/// Returns whether `name` is part of `known`, contains it, or has a typing error.
fn is_near(name: &str, known: &str) -> bool {
    let name = name.to_lowercase();
    let part = name.len() >= 3 && (known.contains(&name) || name.contains(known));
    part || weir_units::is_near(&name, known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::WIDE;
    use weir_report::lab::Basis;

    const NAMES: [&str; 16] = [
        "backup-targets",
        "cache-warmup",
        "cost-16k-iops",
        "ds14-benchmark",
        "hammerdb-presize",
        "io-size",
        "log-governor",
        "mi-allocation",
        "mi-file-size",
        "noisy-neighbour",
        "premium-limits",
        "published",
        "queue-depth",
        "stripe",
        "tempdb-scale-out",
        "vm-cap",
    ];

    #[test]
    fn every_lab_reads_and_has_figures() {
        let labs = all().expect("sound labs");
        let names: Vec<&str> = labs.iter().map(|lab| lab.name.as_str()).collect();
        assert_eq!(names, NAMES);
        assert!(labs.iter().all(|lab| lab.figures() >= 3));
    }

    /// The table of labs/README.md.
    #[test]
    fn the_documentation_counts_the_figures_by_their_basis() {
        let labs = all().expect("sound labs");
        let figures: Vec<_> =
            labs.iter().flat_map(|lab| lab.wanted().expect("sound figures")).collect();
        let count = |is: &dyn Fn(&Wanted<'_>) -> bool| figures.iter().filter(|own| is(own)).count();
        let is_wide = |own: &Wanted<'_>| {
            let expected = own.expected.number();
            expected.is_some_and(|value| own.keys.tolerance().share_of(value) > WIDE + 1e-9)
        };
        let mut rows = Vec::new();
        let bases =
            [Basis::Exact, Basis::Cap, Basis::Calibrated, Basis::Prediction, Basis::Direction];
        for basis in bases {
            rows.push((basis.name(), count(&|own| own.keys.basis == basis)));
        }
        rows.push(("all", figures.len()));
        rows.push(("of these with a tolerance above 5 %", count(&is_wide)));
        rows.push(("of these explained misses", count(&|own| own.explained.is_some())));
        let table: String = rows.iter().map(|(name, n)| format!("| {name} | {n} |\n")).collect();
        let readme = LABS.get_file("README.md").and_then(include_dir::File::contents_utf8);
        assert!(
            readme.expect("a README").contains(&table),
            "labs/README.md has another table than\n{table}"
        );
    }

    /// Splits a line of CSV.
    fn cells(line: &str) -> Vec<String> {
        let (mut cells, mut is_quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells.push(String::new()),
                _ => cells.last_mut().expect("a cell").push(c),
            }
        }
        cells
    }

    #[test]
    fn every_published_measurement_is_a_figure_or_left_out() {
        let lab = find("published").expect("a lab");
        let rows = LABS.get_file("published/measurements.csv");
        let rows = rows.and_then(include_dir::File::contents_utf8).expect("measurements");
        let wanted = lab.wanted().expect("sound figures");
        let mut count = 0;
        for row in rows.lines().skip(1).map(cells) {
            let id = format!("{} {}", row[0], row[3]);
            let published: f64 = row[4].parse().expect("a number");
            let figure = wanted.iter().find(|own| own.id == id);
            let is_left_out = lab.file.left_out.iter().any(|own| own.id == id);
            assert_eq!(figure.is_some(), !is_left_out, "{id}");
            if let Some(figure) = figure {
                let value = figure.published.as_ref().and_then(weir_report::lab::Value::number);
                assert_eq!(value, Some(published), "{id}");
            }
            count += 1;
        }
        assert_eq!(count, wanted.len() + lab.file.left_out.len());
    }

    #[test]
    fn every_lab_of_databases_or_backups_lists_its_fitted_parameters() {
        for lab in all().expect("sound labs") {
            let databases = lab.file.run.iter().any(|run: &RunKeys| {
                run.oltp.is_some() || run.backup.is_some() || run.backup_text.is_some()
            });
            let readme = LABS.get_file(format!("{}/README.md", lab.name));
            let text = readme.and_then(include_dir::File::contents_utf8).unwrap_or_default();
            assert!(!databases || text.contains("## Fitted parameters"), "{}", lab.name);
        }
    }

    #[test]
    fn a_run_has_the_lab_s_layout_and_its_own_behind_it() {
        let lab = |common: &str, own: &str| {
            let file = format!(
                "title = \"\"\narticle = \"\"\nfigure = []\n{common}\n[[run]]\nid = \"r\"\n{own}"
            );
            Lab { name: "l".into(), file: toml::from_str(&file).expect("a lab") }
        };
        let check = |common: &str, own: &str, expect: Result<&str, &str>| {
            let lab = lab(common, own);
            let text = lab
                .layout_of(&lab.file.run[0])
                .map(|(_, text)| text)
                .map_err(|error| error.to_string());
            assert_eq!(text.as_deref().map_err(String::as_str), expect);
        };
        let text = |text: &str| format!("layout_text = \"{text}\"");
        check(&text("a"), &text("b"), Ok("a\nb"));
        check(&text("a"), "", Ok("a"));
        check("", &text("b"), Ok("b"));
        check("", "", Err("lab l: run \"r\" has no layout"));
        check("", "layout = \"x\"", Err("lab l: x is missing"));
        let two = format!("layout = \"x\"\n{}", text("b"));
        check("", &two, Err("lab l: give either a file or a text"));
    }

    #[test]
    fn an_unknown_lab_is_an_error_with_similar_names() {
        let check = |name: &str, near: &str| {
            let error = find(name).expect_err("no such lab").to_string();
            let known = NAMES.join(", ");
            assert_eq!(error, format!("there is no lab {name:?}{near}; there are: {known}"));
        };
        check("ds14", "; did you mean \"ds14-benchmark\"?");
        check("DS14-benchmarc", "; did you mean \"ds14-benchmark\"?");
        check("stripes", "; did you mean \"stripe\"?");
        check("cap", "; did you mean \"vm-cap\"?");
        check("e-d", "; did you mean \"queue-depth\"?");
        check("vm-size", "; did you mean \"io-size\"?");
        check("presize", "; did you mean \"hammerdb-presize\"?");
        check("oltp", "");
        check("", "");
    }
}

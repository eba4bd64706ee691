//! The figures of `lab.toml`, as they are written and one by one.

use serde::Deserialize;
use std::collections::BTreeMap;
use weir_report::lab::{Basis, Compare, Explained, Tolerance, Value};

/// A published figure, or a column of a published table with one value per run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureKeys {
    /// The name. Figures of a column get the name of their run as a suffix.
    pub id: String,
    /// The run of the figure; left out for a column.
    pub run: Option<String>,
    /// The run to divide by.
    pub per: Option<String>,
    /// The database, if the run has several: the name of its description.
    pub database: Option<String>,
    /// The backup, if the run has several: the name of its description.
    pub backup: Option<String>,
    /// The measured metric; see `metric`.
    pub metric: String,
    /// The published value ...
    pub published: Option<ByRun<Value>>,
    /// ... or the range that the words of the article allow.
    pub expected: Option<ByRun<Value>>,
    /// The place in the article.
    pub place: String,
    /// The basis of the figure.
    pub basis: Basis,
    /// The comparison, equality by default.
    #[serde(default)]
    pub compare: Compare,
    /// The tolerance, if it is not the default: 2 % in virtual time, 3 % in wall time, none for
    /// exact figures.
    pub tolerance: Option<Tolerance>,
    /// The reason for a tolerance above 5 %.
    pub tolerance_reason: Option<String>,
    /// The unit, if the metric does not determine it.
    pub unit: Option<String>,
    /// The class of the figure, by which hits are counted, for example `latency`.
    pub class: Option<String>,
    /// Contradictions of the article, or how to read it.
    pub note: Option<String>,
    /// The reason of a known miss.
    pub explained: Option<ByRun<Explained>>,
}

/// A tolerance above this share of its value needs a reason.
pub const WIDE: f64 = 0.05;

/// One value, or one for each run.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ByRun<T> {
    /// The value of the run that the figure names.
    One(T),
    /// Values by the name of the run.
    Each(BTreeMap<String, T>),
}

impl<T: Clone> ByRun<T> {
    fn for_run(&self, run: &str) -> Option<T> {
        match self {
            Self::One(value) => Some(value.clone()),
            Self::Each(values) => values.get(run).cloned(),
        }
    }

    fn runs(&self) -> Option<Vec<&str>> {
        match self {
            Self::One(_) => None,
            Self::Each(values) => Some(values.keys().map(String::as_str).collect()),
        }
    }
}

/// A figure of one run.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    pub(crate) keys: &'a FigureKeys,
    pub(crate) id: String,
    pub(crate) run: &'a str,
    pub(crate) published: Option<Value>,
    pub(crate) expected: Value,
    pub(crate) explained: Option<Explained>,
}

impl FigureKeys {
    /// Returns the tolerance that applies.
    #[must_use]
    pub fn tolerance(&self) -> Tolerance {
        self.tolerance.unwrap_or(match self.basis {
            Basis::Exact => Tolerance::Points { points: 0.0 },
            _ => Tolerance::Relative { virtual_time: 0.02, wall: 0.03 },
        })
    }

    /// Rejects a tolerance that proves nothing, or that is wide without a reason.
    fn check_tolerance(&self, expected: &Value) -> Result<(), String> {
        let Some(expected) = expected.number() else { return Ok(()) };
        let tolerance = self.tolerance();
        if self.compare != Compare::AtMost && tolerance.reaches_zero(expected) {
            return Err(format!(
                "its tolerance, {tolerance}, reaches zero from {expected}; narrow it, or let the figure miss and explain it"
            ));
        }
        if tolerance.share_of(expected) > WIDE + 1e-9 && self.tolerance_reason.is_none() {
            return Err(format!(
                "its tolerance, {tolerance}, is wider than {:.0} % of {expected}; say why with tolerance_reason, or narrow it",
                100.0 * WIDE
            ));
        }
        Ok(())
    }

    /// Returns the figures in the order of `runs`, or the error.
    pub(crate) fn wanted<'a>(&'a self, runs: &[&'a str]) -> Result<Vec<Wanted<'a>>, String> {
        let value = match (&self.published, &self.expected) {
            (Some(value), None) | (None, Some(value)) => value,
            _ => return Err("give published or expected".to_owned()),
        };
        let explained = self.explained.as_ref().and_then(ByRun::runs).unwrap_or_default();
        let named = value
            .runs()
            .unwrap_or_default()
            .into_iter()
            .chain(explained)
            .chain(self.run.as_deref())
            .chain(self.per.as_deref());
        for run in named {
            if !runs.contains(&run) {
                return Err(format!("there is no run {run:?}"));
            }
        }
        let (of, column): (Vec<&str>, bool) = match (&self.run, value.runs()) {
            (Some(run), None) => (vec![run], false),
            (None, Some(own)) => {
                (runs.iter().copied().filter(|run| own.contains(run)).collect(), true)
            }
            _ => return Err("give either run, or its values by run".to_owned()),
        };
        for run in &of {
            value.for_run(run).map_or(Ok(()), |expected| self.check_tolerance(&expected))?;
        }
        let wanted = of.into_iter().filter_map(|run| {
            let expected = value.for_run(run)?;
            Some(Wanted {
                keys: self,
                id: if column { format!("{}: {run}", self.id) } else { self.id.clone() },
                run,
                published: self.published.is_some().then(|| expected.clone()),
                expected,
                explained: self.explained.as_ref().and_then(|explained| explained.for_run(run)),
            })
        });
        Ok(wanted.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(keys: &str) -> FigureKeys {
        let rest = "id = \"f\"\nmetric = \"iops\"\nplace = \"p\"\nbasis = \"cap\"\n";
        toml::from_str(&format!("{rest}{keys}")).expect(keys)
    }

    const RUNS: [&str; 3] = ["b", "a", "c"];

    #[test]
    fn a_column_is_a_figure_for_each_run_in_their_order() {
        let column = figure(
            "published = { a = 100, b = \"WRITELOG\" }\n\
             explained = { a = { gives = 2, why = \"w\" } }\n\
             tolerance = { points = 15 }\ntolerance_reason = \"r\"",
        );
        let wanted = column.wanted(&RUNS).expect("figures");
        let shown = wanted.iter().map(|w| (w.id.as_str(), w.run, w.expected.to_string()));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [("f: b", "b", "WRITELOG".to_owned()), ("f: a", "a", "100".to_owned())]
        );
        assert_eq!(wanted[0].explained, None);
        let why = wanted[1].explained.as_ref().map(|explained| explained.why.as_str());
        assert_eq!(why, Some("w"));
        assert_eq!(column.tolerance(), Tolerance::Points { points: 15.0 });
    }

    #[test]
    fn one_figure_is_of_one_run() {
        let one = figure(
            "run = \"c\"\nexpected = 5000\ntolerance = { factor = 2 }\ntolerance_reason = \"r\"",
        );
        let wanted = one.wanted(&RUNS).expect("a figure");
        assert_eq!((wanted.len(), wanted[0].id.as_str(), wanted[0].run), (1, "f", "c"));
        assert_eq!(wanted[0].published, None);
        assert_eq!(one.tolerance(), Tolerance::Factor { factor: 2.0 });
        assert_eq!(
            figure("tolerance = { virtual = 0.1, wall = 0.2 }").tolerance(),
            Tolerance::Relative { virtual_time: 0.1, wall: 0.2 }
        );
        assert_eq!(figure("").tolerance(), Tolerance::Relative { virtual_time: 0.02, wall: 0.03 });
        let exact = FigureKeys { basis: Basis::Exact, ..figure("") };
        assert_eq!(exact.tolerance(), Tolerance::Points { points: 0.0 });
    }

    #[test]
    fn figures_without_run_or_value_are_rejected() {
        let check = |keys: &str, expect: &str| {
            assert_eq!(figure(keys).wanted(&RUNS).expect_err(keys), expect);
        };
        check("run = \"a\"", "give published or expected");
        check("run = \"a\"\npublished = 1\nexpected = 1", "give published or expected");
        check("published = 1", "give either run, or its values by run");
        check("run = \"a\"\npublished = { a = 1 }", "give either run, or its values by run");
        check("run = \"x\"\npublished = 1", "there is no run \"x\"");
        check("run = \"a\"\nper = \"x\"\npublished = 1", "there is no run \"x\"");
        check("published = { x = 1 }", "there is no run \"x\"");
        let explained = "explained = { x = { gives = 1, why = \"\" } }";
        check(&format!("published = {{ a = 1 }}\n{explained}"), "there is no run \"x\"");
    }

    #[test]
    fn a_tolerance_that_proves_nothing_or_has_no_reason_is_refused() {
        let wanted = |keys: &str| {
            figure(&format!("run = \"a\"\n{keys}")).wanted(&RUNS).map(|wanted| wanted.len())
        };
        let check = |keys: &str, expect: &str| assert_eq!(wanted(keys).expect_err(keys), expect);
        let reason = "tolerance_reason = \"r\"";
        check(
            &format!("published = 12\ntolerance = {{ points = 15 }}\n{reason}"),
            "its tolerance, +/- 15, reaches zero from 12; narrow it, or let the figure miss and explain it",
        );
        check(
            &format!(
                "expected = 12\ncompare = \"at-least\"\ntolerance = {{ virtual = 1, wall = 0.1 }}\n{reason}"
            ),
            "its tolerance, 100 / 10 %, reaches zero from 12; narrow it, or let the figure miss and explain it",
        );
        check(
            "published = 100\ntolerance = { virtual = 0.02, wall = 0.1 }",
            "its tolerance, 2 / 10 %, is wider than 5 % of 100; say why with tolerance_reason, or narrow it",
        );
        check(
            "published = 10\ntolerance = { factor = 2 }",
            "its tolerance, x 2, is wider than 5 % of 10; say why with tolerance_reason, or narrow it",
        );
        check(
            "published = 0\ntolerance = { points = 1 }",
            "its tolerance, +/- 1, reaches zero from 0; narrow it, or let the figure miss and explain it",
        );
        let sound = [
            "published = 0\ntolerance = { points = 0 }",
            "published = 100\ntolerance = { points = 5 }",
            "expected = 1\ncompare = \"at-most\"\ntolerance = { points = 2 }\ntolerance_reason = \"r\"",
            "published = 10\ntolerance = { factor = 2 }\ntolerance_reason = \"r\"",
        ];
        for keys in sound {
            assert_eq!(wanted(keys), Ok(1), "{keys}");
        }
    }

    #[test]
    fn an_unknown_tolerance_is_refused() {
        let keys = "id = \"f\"\nmetric = \"m\"\nplace = \"p\"\nbasis = \"cap\"\ntolerance = ";
        for wrong in ["{ points = 1, factor = 2 }", "{ virtual = 0.1 }", "0.1"] {
            assert!(toml::from_str::<FigureKeys>(&format!("{keys}{wrong}")).is_err(), "{wrong}");
        }
    }
}

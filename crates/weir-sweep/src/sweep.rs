//! A sweep file with the files that it refers to, checked.

use crate::base::{Base, Case, Inputs, Load, NamedText, Rejected, Target, Workload};
use crate::design::{Axis, Design};
use crate::error::SweepError;
use crate::file::SweepFile;
use crate::measure::{self, NoMetrics};
use crate::results::{Column, Columns, reserved};
use crate::value::{Kind, Value};
use std::collections::BTreeSet;
use weir_random::Rng;

/// Points at which a value is tried before it counts as wrong.
const TRIED: usize = 100;

/// A sweep that can run.
#[derive(Debug)]
pub struct Sweep {
    name: String,
    file: SweepFile,
    design: Design,
    base: Base,
    /// The keys that each parameter changes.
    targets: Vec<Vec<Target>>,
    /// The kind of each parameter's values.
    kinds: Vec<Kind>,
    columns: Columns,
    identity: String,
}

impl Sweep {
    /// Reads a sweep, and checks each value of each parameter.
    ///
    /// # Errors
    ///
    /// [`SweepError`] for a wrong file, a parameter that changes nothing, or a value that no point
    /// accepts.
    pub fn new(inputs: Inputs<'_>) -> Result<Self, SweepError> {
        let file = SweepFile::parse(&inputs.sweep.name, &inputs.sweep.text)?;
        let name = inputs.sweep.name.clone();
        let design = Design::new(&name, &file)?;
        let texts = Texts::from_inputs(&inputs);
        let base = Base::new(inputs, &file).map_err(SweepError::Base)?;
        let plain = base.case(std::iter::empty());
        let plain = plain.map_err(|rejected| SweepError::Base(rejected.reason))?;
        let wrong = |parameter: &str, reason| SweepError::Parameter {
            file: name.clone(),
            parameter: parameter.to_owned(),
            reason,
        };
        let targets = file
            .parameters
            .iter()
            .map(|keys| base.targets(keys, &file).map_err(|reason| wrong(&keys.name, reason)));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        let columns = columns(&design, &plain.workload)
            .map_err(|(parameter, reason)| wrong(&parameter, reason))?;
        let identity = texts.identity(&base);
        let kinds = design.axes().iter().map(Axis::kind).collect();
        let sweep = Self { name, file, design, base, targets, kinds, columns, identity };
        sweep.check()?;
        Ok(sweep)
    }

    /// Returns the name of the sweep file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of points.
    #[must_use]
    pub const fn points(&self) -> u64 {
        self.design.count()
    }

    /// Returns the columns of the results.
    #[must_use]
    pub const fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns a hash of everything that the results depend on.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the keys of the sweep file.
    #[must_use]
    pub const fn file(&self) -> &SweepFile {
        &self.file
    }

    /// Returns the start of a point's row, up to the parameters.
    pub(crate) fn head(&self, point: u64) -> Vec<String> {
        let own = [
            self.identity.clone(),
            self.points().to_string(),
            point.to_string(),
            self.file.seed.to_string(),
        ];
        let values = self.design.values(point);
        let fields = self.kinds.iter().zip(&values).map(|(kind, own)| kind.field(own));
        own.into_iter().chain(fields).collect()
    }

    /// Simulates a point: the end of its row, from the status on. `None` if `stop` ends it early.
    pub(crate) fn simulate(
        &self,
        point: u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<Result<Vec<String>, SweepError>> {
        let metrics = self.columns.metrics();
        let measured = match self.case(&self.design.values(point)) {
            Ok(case) => match measure::measure(&case, &self.file, stop).transpose()? {
                Err(NoMetrics::Failed(error)) => return Some(Err(error)),
                Err(NoMetrics::Invalid(reason)) => Err(reason),
                Ok(metrics) => Ok(metrics),
            },
            Err(rejected) => Err(rejected.reason),
        };
        let (status, reason, mut fields) = match measured {
            Ok(found) => ("ok", String::new(), metrics.map(|own| found.field(&own.name)).collect()),
            Err(reason) => ("invalid", reason, metrics.map(|_| String::new()).collect::<Vec<_>>()),
        };
        let mut tail = vec![status.to_owned(), reason];
        tail.append(&mut fields);
        Some(Ok(tail))
    }

    fn case(&self, values: &[Value]) -> Result<Case, Rejected> {
        let settings = self.targets.iter().zip(values);
        self.base.case(settings.flat_map(|(own, value)| own.iter().map(move |to| (to, value))))
    }

    /// Checks each value alone, and at other points if it fails alone.
    fn check(&self) -> Result<(), SweepError> {
        for (at, axis) in self.design.axes().iter().enumerate() {
            for value in axis.samples() {
                let alone = self.targets[at].iter().map(|target| (target, &value));
                let Err(rejected) = self.accept(at, self.base.case(alone)) else { continue };
                if rejected.is_final || !self.is_accepted(at, &value) {
                    return Err(SweepError::Value {
                        file: self.name.clone(),
                        parameter: axis.name.clone(),
                        value: value.to_string(),
                        reason: rejected.reason,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns whether some of the points with a value accept it.
    fn is_accepted(&self, at: usize, value: &Value) -> bool {
        let count = self.points();
        let mut rng = Rng::new(&[self.file.seed, at as u64]);
        (0..TRIED).any(|_| {
            let mut values = self.design.values(rng.below(count));
            values[at] = value.clone();
            self.accept(at, self.case(&values)).is_ok()
        })
    }

    /// Rejects an option of a job that has no effect.
    fn accept(&self, at: usize, case: Result<Case, Rejected>) -> Result<(), Rejected> {
        let Case { workload: Workload::Jobs(jobs), .. } = case? else { return Ok(()) };
        for target in &self.targets[at] {
            let Target::Option { option, .. } = target else { continue };
            if let Some(ignored) = jobs.ignored.iter().find(|own| own.option == option.as_str()) {
                let reason = format!("{}: {option} has no effect: {}", ignored.at, ignored.why);
                return Err(Rejected::here(reason));
            }
        }
        Ok(())
    }
}

/// Returns the columns, or the parameter whose name is wrong.
fn columns(design: &Design, workload: &Workload) -> Result<Columns, (String, String)> {
    let metrics = measure::metrics(workload);
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut parameters = Vec::new();
    for axis in design.axes() {
        let wrong = |reason: String| Err((axis.name.clone(), reason));
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if axis.name.is_empty() || axis.name.len() > 64 || !axis.name.chars().all(is_letter) {
            return wrong("a name has 1 to 64 letters, digits, '_', '-' and '.'".to_owned());
        }
        let column = Column::parameter(axis);
        if reserved(&column.name) || metrics.iter().any(|own| own.name == column.name) {
            return wrong(format!("results have a column {} of their own; rename it", column.name));
        }
        if !taken.insert(column.name.clone()) {
            return wrong(format!("another parameter has the column {}; rename it", column.name));
        }
        parameters.push(column);
    }
    Ok(Columns::new(parameters, metrics))
}

/// The texts that the results depend on.
struct Texts(Vec<String>);

impl Texts {
    fn from_inputs(inputs: &Inputs<'_>) -> Self {
        let text = |file: &NamedText| file.text.clone();
        let mut all = vec![inputs.version.to_owned(), inputs.sweep.text.clone()];
        all.push(inputs.layout.text.clone());
        let load: Vec<String> = match &inputs.workload {
            Load::Texts(files) => files.iter().map(text).collect(),
            Load::Traces(own) => own.hashes.clone(),
        };
        all.push(load.len().to_string());
        all.extend(load);
        all.extend(inputs.edition.iter().map(text));
        all.extend(inputs.editions.iter().cloned());
        Self(all)
    }

    /// Returns a hash of the texts, and of the surroundings that the base has read.
    fn identity(self, base: &Base) -> String {
        let mut hash = blake3::Hasher::new();
        let mut add = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        self.0.iter().for_each(|text| add(text));
        for (key, text) in base.surroundings() {
            // The key of an include has a path, and shards may run in other folders.
            add(key.split(' ').next().unwrap_or_default());
            add(&text.unwrap_or_default());
        }
        hash.finalize().to_hex()[..16].to_owned()
    }
}

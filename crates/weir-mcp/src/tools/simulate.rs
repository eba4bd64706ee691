//! `weir sim`.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use crate::texts;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of `simulate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Simulate {
    /// Layout file.
    layout: Option<String>,
    /// Layout in TOML, instead of a file.
    layout_text: Option<String>,
    /// fio job files, or descriptions of databases and backups (.toml).
    #[serde(default)]
    #[schemars(length(max = 16))]
    jobs: Vec<String>,
    /// fio job file as text, instead of files.
    job_text: Option<String>,
    /// Description of a database or backup in TOML, instead of files.
    description_text: Option<String>,
    /// Runtime of each job, for example 30s.
    runtime: Option<String>,
    /// Seed of the random numbers.
    seed: Option<u64>,
    /// Adds each interval of this length to the answer, for example 10s.
    every: Option<String>,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

impl Call for Simulate {
    fn verb(&self) -> Vec<&str> {
        vec!["sim"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        arguments.layout(self.layout.as_deref(), self.layout_text.as_deref())?;
        let texts = [&self.job_text, &self.description_text];
        let given = texts.iter().filter(|own| own.is_some()).count();
        if given + usize::from(!self.jobs.is_empty()) != 1 {
            return Err("give one of jobs (paths), job_text or description_text".to_owned());
        }
        for path in &self.jobs {
            let path = arguments.file(path)?;
            texts::check_jobs_file(&path)?;
        }
        if let Some(text) = &self.job_text {
            texts::check_jobs("job_text", text)?;
            arguments.text("jobs.fio", text)?;
        }
        if let Some(text) = &self.description_text {
            arguments.text("description.toml", text)?;
        }
        arguments.option("runtime", self.runtime.as_ref());
        arguments.option("seed", self.seed);
        arguments.option("every", self.every.as_ref());
        arguments.flag("quiet", true);
        Ok(())
    }
}

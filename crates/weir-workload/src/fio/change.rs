//! Options of a job file that are changed without editing the file.

use super::lines::{Line, Section};
use crate::error::FioError;

/// An option that replaces those of its name, or is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The section, for example `global`; `None` for each job.
    pub section: Option<String>,
    /// The option.
    pub option: String,
    /// Its value, as in a job file.
    pub value: String,
}

impl Change {
    /// Appends the option to its sections, where it has precedence over earlier ones. Messages about
    /// it give the position of the section.
    pub(super) fn apply(&self, file: &str, sections: &mut [Section]) -> Result<(), FioError> {
        let is_own = |section: &Section| match &self.section {
            Some(name) => section.name == *name,
            None => !section.is_global(),
        };
        let mut own = sections.iter_mut().filter(|section| is_own(section)).peekable();
        if own.peek().is_none() {
            drop(own);
            let section = self.section.clone().unwrap_or_default();
            let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
            let nearest = weir_units::nearest(&section, names.iter().copied()).map(str::to_owned);
            let known = names.join(", ");
            return Err(FioError::NoSection { file: file.to_owned(), section, nearest, known });
        }
        for section in own {
            let text = format!("{}={}", self.option, self.value);
            section.lines.push(Line { at: section.at.clone(), text });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{Isolated, parse_changed};

    fn change(section: Option<&str>, option: &str, value: &str) -> Change {
        let section = section.map(str::to_owned);
        Change { section, option: option.to_owned(), value: value.to_owned() }
    }

    const JOBS: &str = "[global]\nioengine=libaio\niodepth=4\nsize=1m\n[a]\niodepth=8\n[b]\n";

    fn depths(changes: &[Change]) -> Vec<u32> {
        let file = parse_changed("x.fio", JOBS, &Isolated, changes).expect("a job file");
        file.jobs.iter().map(|job| job.depth).collect()
    }

    #[test]
    fn a_change_has_precedence_in_its_section() {
        assert_eq!(depths(&[]), [8, 4]);
        assert_eq!(depths(&[change(Some("a"), "iodepth", "2")]), [2, 4]);
        assert_eq!(depths(&[change(Some("global"), "iodepth", "2")]), [8, 2]);
        assert_eq!(depths(&[change(None, "iodepth", "16")]), [16, 16]);
    }

    #[test]
    fn a_change_of_an_unknown_section_or_option_is_an_error() {
        let wrong = |change| parse_changed("x.fio", JOBS, &Isolated, &[change]).expect_err("wrong");
        assert_eq!(
            wrong(change(Some("globl"), "iodepth", "2")).to_string(),
            "x.fio: there is no section [globl]; did you mean \"global\"? The sections are: global, a, b"
        );
        let unknown = wrong(change(Some("a"), "iodept", "2")).to_string();
        assert_eq!(unknown, "x.fio:5: unknown option \"iodept\"; did you mean \"iodepth\"?");
    }
}

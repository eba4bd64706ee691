//! Targets and options in `BACKUP` and `RESTORE` statements of SQL Server.

use super::ended::Ended;
use weir_observe::attribute;

/// Keywords before a target.
const DEVICES: [&str; 3] = ["DISK", "URL", "TAPE"];

/// Facts from statements since the last result.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Statement {
    pub(super) database: Option<String>,
    targets: Vec<String>,
    max_transfer: Option<u64>,
    buffer_count: Option<u64>,
    block_size: Option<u64>,
    is_compressed: bool,
}

impl Statement {
    /// Takes a line; lines outside of statements are ignored.
    pub(super) fn take(&mut self, line: &str) {
        let upper = line.to_ascii_uppercase();
        for verb in ["BACKUP DATABASE ", "BACKUP LOG ", "RESTORE DATABASE ", "RESTORE LOG "] {
            if let Some(at) = upper.find(verb)
                && let Some(name) = name_of(&line[at + verb.len()..])
            {
                *self = Self { database: Some(name), ..Self::default() };
            }
        }
        for device in DEVICES {
            for path in devices(line, &upper, device) {
                if self.targets.len() < 64 {
                    self.targets.push(path);
                }
            }
        }
        let number = |option: &str| assigned(&upper, option);
        self.max_transfer = self.max_transfer.or(number("MAXTRANSFERSIZE"));
        self.buffer_count = self.buffer_count.or(number("BUFFERCOUNT"));
        self.block_size = self.block_size.or(number("BLOCKSIZE"));
        let has_word = |word: &str| {
            upper.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|own| own == word)
        };
        self.is_compressed |= has_word("COMPRESSION") && !self.targets.is_empty();
    }

    /// Adds the facts to a backup.
    pub(super) fn tell(self, ended: &mut Ended) {
        let stripes = u64::try_from(self.targets.len()).ok().filter(|count| *count > 0);
        ended.number(attribute::STRIPES, stripes);
        for target in &self.targets {
            ended.target(target);
        }
        ended.number(attribute::MAX_TRANSFER_BYTES, self.max_transfer);
        ended.number(attribute::BUFFER_COUNT_SET, self.buffer_count);
        ended.number(attribute::BLOCK_BYTES, self.block_size);
        ended.text(attribute::COMPRESSION, self.is_compressed.then_some("on"));
        if ended.database.is_none() {
            ended.database = self.database;
        }
    }
}

/// Parses a name, with or without brackets.
fn name_of(text: &str) -> Option<String> {
    let text = text.trim_start();
    let name = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => text.split(|c: char| c.is_whitespace() || c == ';').next()?,
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the paths in `device = N'..'`.
fn devices(line: &str, upper: &str, device: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = upper[from..].find(device).map(|at| at + from) {
        let end = at + device.len();
        from = end;
        let is_word = !upper[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = line.get(end..).unwrap_or_default().trim_start();
        let Some(rest) = rest.strip_prefix('=').filter(|_| is_word) else { continue };
        let rest = rest.trim_start().trim_start_matches(['N', 'n']);
        if let Some(path) = rest.strip_prefix('\'').and_then(|rest| rest.split('\'').next()) {
            found.push(path.to_owned());
        }
    }
    found
}

/// Returns the number assigned to an option.
fn assigned(upper: &str, option: &str) -> Option<u64> {
    let (_, rest) = upper.split_once(option)?;
    super::ended::leading(rest.trim_start().strip_prefix('=')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_over_several_lines() {
        let mut own = Statement::default();
        own.take("BACKUP DATABASE [My Sales]");
        own.take("  TO DISK = N'F:\\b\\1.bak', disk='G:\\b\\2.bak',");
        own.take("  URL = N'https://a/c/3.bak'");
        own.take("WITH COMPRESSION, MAXTRANSFERSIZE = 4194304, BufferCount=50, BLOCKSIZE = 65536");
        let mut ended = Ended::default();
        own.tell(&mut ended);
        assert_eq!(ended.database.as_deref(), Some("My Sales"));
        assert_eq!(ended.targets, ["F:\\b", "G:\\b", "https://a/c"]);
        let number =
            |name| ended.facts.iter().find(|(own, _)| *own == name).map(|own| own.1.clone());
        assert_eq!(number(attribute::STRIPES), Some(3.into()));
        assert_eq!(number(attribute::MAX_TRANSFER_BYTES), Some(4_194_304.into()));
        assert_eq!(number(attribute::BUFFER_COUNT_SET), Some(50.into()));
        assert_eq!(number(attribute::COMPRESSION), Some("on".into()));
    }

    #[test]
    fn other_lines_are_ignored() {
        let mut own = Statement::default();
        own.take("10 percent processed.");
        own.take("WITH NO_COMPRESSION, STATS = 10");
        own.take("ÄÄ DISK = 'ß");
        assert_eq!(own.database, None);
        let mut ended = Ended::default();
        Statement::default().tell(&mut ended);
        assert_eq!(ended, Ended::default());
    }
}

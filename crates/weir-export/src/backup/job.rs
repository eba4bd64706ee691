//! The context of a backup script, and its checks.

use crate::change::Change;
use crate::error::ExportError;
use crate::kind::Kind;
use crate::options::{Backup, Options, refused};
use crate::script::Script;
use weir_units::Bytes;

/// Maximum number of stripes, also on a managed instance.
const MOST_STRIPES: usize = 64;
const MOST_STRIPES_OF_INSTANCE: usize = 32;
/// Maximum number of blocks of a block blob.
const MOST_BLOCKS: u64 = 50_000;
/// Maximum length of a device name.
pub(super) const MOST_NAME: usize = 259;

/// The context of a backup script.
pub(super) struct Job<'a> {
    pub(super) kind: Kind,
    pub(super) change: &'a Change,
    pub(super) options: &'a Options,
    pub(super) backup: &'a Backup,
}

impl<'a> Job<'a> {
    pub(super) fn cannot(&self, what: impl Into<String>, reason: impl Into<String>) -> ExportError {
        ExportError::Cannot {
            layout: self.change.new.layout.clone(),
            what: what.into(),
            kind: self.kind.name(),
            reason: reason.into(),
        }
    }

    pub(super) fn is_instance(&self) -> bool {
        self.change.new.instance.is_some()
    }

    /// Returns whether the backup is a copy that is no base for differential backups.
    pub(super) fn is_copy_only(&self) -> bool {
        self.options.copy_only || self.is_instance()
    }

    pub(super) fn check(&self) -> Result<(), ExportError> {
        let stripes = self.backup.stripes.len();
        let what = || self.backup.file.clone();
        if self.is_instance() && self.options.urls.is_empty() {
            let reason = "a managed instance can only back up to URLs; give --url";
            return Err(self.cannot(what(), reason));
        }
        let many = too_many(stripes, self.is_instance());
        if let Some(reason) = many.filter(|_| self.kind != Kind::Pgbackrest) {
            return Err(self.cannot(what(), reason));
        }
        for url in &self.options.urls {
            check_url(url)?;
        }
        if !self.options.urls.is_empty() {
            if let Some((name, path)) = self.options.mounts.first() {
                let reason = "the stripes go to --url; leave the mount out".to_owned();
                return Err(refused(format!("--mount {name}={path}"), reason));
            }
            if self.options.urls.len() > stripes {
                let reason =
                    format!("there are more URLs than the {stripes} stripes; leave some out");
                return Err(refused(format!("--url {}", self.options.urls[stripes]), reason));
            }
        }
        Ok(())
    }

    /// Returns the volume or stripe of a file or device.
    pub(super) fn device<'b>(&'b self, place: &'b str) -> &'b str {
        let file = self.change.new.files.iter().find(|file| file.own == place);
        file.and_then(|file| file.on.as_deref()).unwrap_or(place)
    }

    /// Returns the folder of each stripe in order: mount points, or URLs in turn.
    pub(super) fn folders(&self) -> Result<Vec<String>, ExportError> {
        let urls = &self.options.urls;
        if !urls.is_empty() {
            return Ok((0..self.backup.stripes.len())
                .map(|at: usize| urls[at % urls.len()].trim_end_matches('/').to_owned())
                .collect());
        }
        self.check_mounts()?;
        let places = self.backup.stripes.iter().map(|place| self.device(place));
        let folders: Vec<String> =
            places.filter_map(|device| self.options.mount_of(device)).map(folder).collect();
        for (name, path) in &self.options.mounts {
            let is_used = self.backup.stripes.iter().any(|place| self.device(place) == name);
            let is_source = self.backup.sources.iter().any(|place| self.device(place) == name);
            let is_cluster = is_source && self.kind == Kind::Pgbackrest;
            if !is_used && !is_cluster {
                let reason = "it has no stripe of the backup; leave it out".to_owned();
                return Err(refused(format!("--mount {name}={path}"), reason));
            }
        }
        Ok(folders)
    }

    /// Returns the devices of the targets, each once.
    pub(super) fn targets(&self) -> Vec<&str> {
        let mut all = Vec::new();
        for device in self.backup.stripes.iter().map(|place| self.device(place)) {
            if !all.contains(&device) {
                all.push(device);
            }
        }
        all
    }

    /// Checks that all mount points are known. One message asks for all that are missing.
    fn check_mounts(&self) -> Result<(), ExportError> {
        let is_missing = |device: &&str| self.options.mount_of(device).is_none();
        let mut missing: Vec<(&str, String)> = Vec::new();
        for (at, device) in
            self.targets().into_iter().enumerate().filter(|(_, own)| is_missing(own))
        {
            let path = match self.kind {
                Kind::Pgbackrest => format!("/mnt/{device}"),
                _ => windows_folder(at),
            };
            missing.push((device, path));
        }
        let cluster = self.kind == Kind::Pgbackrest;
        let source = self.backup.sources.first().map(|place| self.device(place));
        let sources = || self.backup.sources.iter().map(|place| self.device(place));
        if cluster && let Some(source) = source.filter(|_| sources().all(|own| is_missing(&own))) {
            missing.push((source, CLUSTER.to_owned()));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
        let example: Vec<String> =
            missing.iter().map(|(name, path)| format!("--mount {name}={path}")).collect();
        let (verb, plural) = if names.len() == 1 { ("is", "") } else { ("are", "s") };
        let reason = format!(
            "the mount point{plural} of {} {verb} unknown; give all of them, like {}, or give --url",
            names.join(", "),
            example.join(" ")
        );
        Err(self.cannot(self.backup.file.clone(), reason))
    }

    /// Returns the distinct folders in order.
    pub(super) fn distinct(folders: &[String]) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for folder in folders {
            if !all.contains(&folder.as_str()) {
                all.push(folder);
            }
        }
        all
    }

    /// Returns the database: that of the sources' files, or the given one.
    pub(super) fn database(&self) -> Result<&str, ExportError> {
        let files = self.change.new.files.iter();
        let own = files.filter(|file| self.backup.sources.contains(&file.own));
        let mut names: Vec<&str> = own.filter_map(|file| file.database.as_deref()).collect();
        names.dedup();
        match (&names[..], self.options.database.as_deref()) {
            ([], Some(stated)) => Ok(stated),
            ([only], None) => Ok(only),
            ([only], Some(stated)) if *only == stated => Ok(stated),
            ([], None) => {
                let reason =
                    "the layout does not name the database of its sources; give --database NAME";
                Err(self.cannot(self.backup.file.clone(), reason))
            }
            ([only], Some(stated)) => Err(refused(
                format!("--database {stated}"),
                format!("the sources belong to {only} in the layout; leave it out"),
            )),
            (_, _) => {
                let reason = format!(
                    "its sources are files of several databases ({}), but a script backs up only \
                     one: describe a backup for each",
                    names.join(", ")
                );
                Err(self.cannot(self.backup.file.clone(), reason))
            }
        }
    }

    /// Writes a note about sizes that block blobs cannot hold.
    pub(super) fn note_blocks(&self, script: &mut Script) {
        let stripes = self.backup.stripes.len() as u64;
        let each = self.backup.bytes.get().div_ceil(stripes.max(1));
        let most = self.backup.max_transfer.get().saturating_mul(MOST_BLOCKS);
        if !self.options.urls.is_empty() && each > most {
            script.note(&format!(
                "a stripe may reach {}, but a block blob has at most {MOST_BLOCKS} blocks of {}, \
                 {}: use more stripes or larger transfers, or SQL Server ends with error 3063",
                Bytes::new(each),
                self.backup.max_transfer,
                Bytes::new(most)
            ));
        }
    }
}

/// Returns the reason why SQL Server cannot write this number of stripes.
pub(super) fn too_many(stripes: usize, is_instance: bool) -> Option<String> {
    let most = if is_instance { MOST_STRIPES_OF_INSTANCE } else { MOST_STRIPES };
    (stripes > most).then(|| format!("it has {stripes} stripes, above the maximum of {most}"))
}

/// An example of the folder of a cluster.
const CLUSTER: &str = "/var/lib/postgresql/17/main";

/// Returns an example of a folder on the target with this index.
fn windows_folder(at: usize) -> String {
    // A, B and C are taken, D is usually the local disk, and E that of data.
    let letter =
        u8::try_from(at).ok().and_then(|at| b'F'.checked_add(at)).filter(|own| *own <= b'Z');
    match letter {
        Some(letter) => format!("{}:\\Backup", char::from(letter)),
        None => format!("C:\\Mounts\\Backup{}", at + 1),
    }
}

/// Returns a mount point as a folder to which names are appended.
fn folder(mount: &str) -> String {
    let trimmed = mount.trim_end_matches(['/', '\\']);
    // The root folder of a drive needs a trailing separator.
    let is_drive = trimmed.ends_with(':');
    if is_drive { format!("{trimmed}\\") } else { trimmed.to_owned() }
}

/// Checks that a URL names a container and contains no secret.
fn check_url(url: &str) -> Result<(), ExportError> {
    let refuse = |reason: &str| Err(refused(format!("--url {url}"), reason.to_owned()));
    let Some(rest) = url.strip_prefix("https://") else {
        return refuse("write https://ACCOUNT.blob.core.windows.net/CONTAINER");
    };
    if url.contains('?') || url.contains("sig=") {
        let reason = "scripts contain no secrets; give the container's URL without its SAS token";
        // A token in the URL is not repeated in the message.
        let shown = url.split('?').next().unwrap_or_default();
        return Err(refused(format!("--url {shown}?.."), reason.to_owned()));
    }
    let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    if parts.len() < 2
        || parts.iter().any(|part| part.is_empty())
        || !rest
            .chars()
            .all(|c: char| c.is_ascii_graphic() && !matches!(c, '\'' | '"' | ',' | '`' | '\\'))
    {
        return refuse("write https://ACCOUNT.blob.core.windows.net/CONTAINER, or a folder in one");
    }
    Ok(())
}

/// Returns a name without the characters that file names cannot have.
pub(super) fn stem(name: &str) -> String {
    name.chars()
        .map(|c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect()
}

/// Returns the container of a URL, which is also the name of its credential.
pub(super) fn container(url: &str) -> String {
    url.splitn(5, '/').take(4).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_container_without_a_secret() {
        let check = |url: &str, expect: &str| match check_url(url) {
            Ok(()) => assert_eq!(expect, "", "{url}"),
            Err(error) => {
                let said = error.to_string();
                assert!(!expect.is_empty() && said.contains(expect), "{said}");
                assert!(!said.contains("secret="), "{said}");
            }
        };
        check("https://a.blob.core.windows.net/backups", "");
        check("https://a.blob.core.windows.net/backups/sales/", "");
        check("https://a.blob.core.windows.net", "CONTAINER");
        check("http://a.blob.core.windows.net/b", "write https");
        check("https://a.blob.core.windows.net/b?secret=1", "without its SAS token");
        check("https://a.blob.core.windows.net/it's", "CONTAINER");
        check("https://a.blob.core.windows.net//b", "CONTAINER");
    }

    #[test]
    fn a_credential_is_called_by_its_container() {
        assert_eq!(container("https://a.net/b/c/d"), "https://a.net/b");
        assert_eq!(container("https://a.net/b"), "https://a.net/b");
        assert_eq!(stem("a/b:c d'e"), "a_b_c_d_e");
    }
}

//! Counter paths: `\\HOST\Object(instance)\Counter`, in English, German or French.

/// A counter path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// The host, unchanged; empty if the path has none.
    pub(super) host: String,
    /// The object in lower case, translated to English if it is known.
    pub(super) object: String,
    /// The instance, unchanged; empty if there is none.
    pub(super) instance: String,
    /// The counter in lower case, translated to English if it is known.
    pub(super) counter: String,
    /// Object and counter, unchanged.
    pub(super) told: String,
}

impl Path {
    /// Parses a path.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (host, rest) = match text.strip_prefix(r"\\") {
            Some(rest) => rest.split_once('\\')?,
            None => ("", text.strip_prefix('\\')?),
        };
        let end = rest.find(['(', '\\'])?;
        let (object, rest) = rest.split_at(end);
        // An instance may contain backslashes (mount points) and parentheses.
        let (instance, counter) = match rest.strip_prefix('(') {
            Some(rest) => rest.rsplit_once(r")\")?,
            None => ("", rest.strip_prefix('\\')?),
        };
        if object.trim().is_empty() || counter.trim().is_empty() {
            return None;
        }
        Some(Self::new(host, object, instance, counter))
    }

    /// Creates a path from parts in separate columns.
    pub(super) fn new(host: &str, object: &str, instance: &str, counter: &str) -> Self {
        let (object, counter) = (object.trim(), counter.trim());
        Self {
            host: host.trim().trim_start_matches('\\').to_owned(),
            object: english(OBJECTS, object),
            instance: instance.trim().to_owned(),
            counter: english(COUNTERS, counter),
            told: format!("{object}\\{counter}"),
        }
    }

    /// Returns the note on a counter that is not used, although others of its name may be.
    pub(super) fn told_if_unused(&self) -> String {
        match self.told.split_once('\\') {
            Some((object, _)) if self.is_total() => format!("{object}({})", self.instance),
            _ => self.told.clone(),
        }
    }

    /// Returns whether the instance is the sum or the mean of all others.
    pub(super) fn is_total(&self) -> bool {
        self.instance.eq_ignore_ascii_case("_total")
    }
}

/// Returns a name in lower case, translated to English if it is in the table.
fn english(table: &[(&str, &str)], name: &str) -> String {
    let small = name.to_lowercase().replace(['’', '`'], "'");
    let known = table.iter().find(|(local, _)| *local == small);
    known.map_or(small, |(_, english)| (*english).to_owned())
}

const OBJECTS: &[(&str, &str)] = &[
    ("physikalischer datenträger", "physicaldisk"),
    ("physischer datenträger", "physicaldisk"),
    ("logischer datenträger", "logicaldisk"),
    ("prozessor", "processor"),
    ("prozessorinformationen", "processor information"),
    ("arbeitsspeicher", "memory"),
    ("disque physique", "physicaldisk"),
    ("disque logique", "logicaldisk"),
    ("processeur", "processor"),
    ("informations sur le processeur", "processor information"),
    ("mémoire", "memory"),
];

const COUNTERS: &[(&str, &str)] = &[
    // German.
    ("lesevorgänge/s", "disk reads/sec"),
    ("schreibvorgänge/s", "disk writes/sec"),
    ("übertragungen/s", "disk transfers/sec"),
    ("bytes gelesen/s", "disk read bytes/sec"),
    ("bytes geschrieben/s", "disk write bytes/sec"),
    ("bytes/s", "disk bytes/sec"),
    ("mittlere sek./lesevorgänge", "avg. disk sec/read"),
    ("mittlere sek./schreibvorgänge", "avg. disk sec/write"),
    ("mittlere sek./übertragung", "avg. disk sec/transfer"),
    ("durchschn. sek./übertragung", "avg. disk sec/transfer"),
    ("mittlere bytes/lesevorgang", "avg. disk bytes/read"),
    ("mittlere bytes/schreibvorgang", "avg. disk bytes/write"),
    ("mittlere bytes/übertragung", "avg. disk bytes/transfer"),
    ("aktuelle warteschlangenlänge", "current disk queue length"),
    ("durchschnittl. warteschlangenlänge des datenträgers", "avg. disk queue length"),
    (
        "durchschnittl. warteschlangenlänge der datenträger-lesevorgänge",
        "avg. disk read queue length",
    ),
    (
        "durchschnittl. warteschlangenlänge der datenträger-schreibvorgänge",
        "avg. disk write queue length",
    ),
    ("zeit (%)", "% disk time"),
    ("leerlaufzeit (%)", "% idle time"),
    ("mb frei", "free megabytes"),
    ("prozessorzeit (%)", "% processor time"),
    ("benutzerzeit (%)", "% user time"),
    ("privilegierte zeit (%)", "% privileged time"),
    ("verfügbare mb", "available mbytes"),
    ("verfügbare kb", "available kbytes"),
    ("verfügbare bytes", "available bytes"),
    // French.
    ("lectures disque/s", "disk reads/sec"),
    ("écritures disque/s", "disk writes/sec"),
    ("transferts disque/s", "disk transfers/sec"),
    ("lectures disque, octets/s", "disk read bytes/sec"),
    ("écritures disque, octets/s", "disk write bytes/sec"),
    ("octets disque/s", "disk bytes/sec"),
    ("moyenne disque s/lecture", "avg. disk sec/read"),
    ("moyenne disque s/écriture", "avg. disk sec/write"),
    ("moyenne disque s/transfert", "avg. disk sec/transfer"),
    ("moyenne disque, octets/lecture", "avg. disk bytes/read"),
    ("moyenne disque, octets/écriture", "avg. disk bytes/write"),
    ("moyenne disque, octets/transfert", "avg. disk bytes/transfer"),
    ("taille de file d'attente du disque actuelle", "current disk queue length"),
    ("longueur moyenne de file d'attente du disque", "avg. disk queue length"),
    ("longueur moyenne de file d'attente lecture disque", "avg. disk read queue length"),
    ("longueur moyenne de file d'attente écriture disque", "avg. disk write queue length"),
    ("pourcentage du temps disque", "% disk time"),
    ("% d'inactivité", "% idle time"),
    ("pourcentage d'inactivité", "% idle time"),
    ("mégaoctets libres", "free megabytes"),
    ("% temps processeur", "% processor time"),
    ("octets disponibles", "available bytes"),
    ("mégaoctets disponibles", "available mbytes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_their_parts() {
        let check = |text: &str, host: &str, object: &str, instance: &str, counter: &str| {
            let path = Path::parse(text).unwrap_or_else(|| panic!("{text}"));
            let got = (&*path.host, &*path.object, &*path.instance, &*path.counter);
            assert_eq!(got, (host, object, instance, counter), "{text}");
        };
        check(
            r"\\DB1\PhysicalDisk(0 C:)\Disk Reads/sec",
            "DB1",
            "physicaldisk",
            "0 C:",
            "disk reads/sec",
        );
        check(r"\Memory\Available MBytes", "", "memory", "", "available mbytes");
        check(
            r"\\db1\LogicalDisk(E:\SQL (1))\% Idle Time",
            "db1",
            "logicaldisk",
            r"E:\SQL (1)",
            "% idle time",
        );
        check(
            r"\\db1\sqlserver:memory manager\total server memory (kb)",
            "db1",
            "sqlserver:memory manager",
            "",
            "total server memory (kb)",
        );
        check(
            r"\\db1\Disque physique(0 C:)\% d’inactivité",
            "db1",
            "physicaldisk",
            "0 C:",
            "% idle time",
        );
        for text in ["", "Time", r"C:\x", r"\\", r"\\h\", r"\\h\o(i)", r"\\h\o(i", r"\\h\(i)\c"] {
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }
}

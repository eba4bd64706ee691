//! Detection of the kind of an input.

use crate::compressed::{GZIP, XZ, ZSTD};
use crate::error::{ImportError, Nearest};
use crate::importers::kinds;
use crate::kind::{By, Kind};
use crate::linux::line::stamped;
use crate::{bench, cloud, near, text};
use weir_observe::moment::Clock;

/// Binary formats that are recognized and not read: first bytes, name, and reason.
type RefusedBytes = (&'static [u8], &'static str, &'static str);

const REFUSED_BYTES: &[RefusedBytes] = &[
    (GZIP.1, "compressed with gzip", "decompress it, and import the result"),
    (XZ.1, "compressed with xz", "decompress it, and import the result"),
    (ZSTD.1, "compressed with zstd", "decompress it, and import the result"),
];

/// Text formats that are recognized and not read: name, test, and reason.
type Refused = (&'static str, fn(&str) -> bool, &'static str);

const REFUSED: &[Refused] = &[
    (
        "iostat of macOS",
        |text| is_foreign_iostat(text, false),
        "it does not distinguish reads from writes",
    ),
    (
        "iostat of BSD",
        |text| is_foreign_iostat(text, true),
        "it does not distinguish reads from \
                                                             writes",
    ),
    (
        "metrics in a format of OpenTelemetry",
        cloud::metric_stream::is_open_telemetry,
        "set the output format of the metric stream to JSON",
    ),
    (
        "the answer of describe-volumes of AWS",
        |text| text.contains("\"Volumes\"") && text.contains("\"VolumeType\""),
        "it lists volumes, but not their activity",
    ),
    (
        "the answer of describe-db-instances of AWS",
        |text| text.contains("\"DBInstances\"") && text.contains("\"AllocatedStorage\""),
        "it lists instances, but not their activity",
    ),
    (
        "a job file of fio",
        bench::fio::is_job_file,
        "it describes jobs and has no results; run it with `weir sim`",
    ),
    (
        "a result of Iometer",
        |text| text.contains("'Target Type,Target Name") || text.contains("'Test Type,Test Desc"),
        "only its access specifications (.icf) are",
    ),
    (
        "the terse output of fio",
        bench::fio::is_terse,
        "its fields have no names; run fio with --output-format=json",
    ),
    (
        "a log of single transactions of pgbench",
        bench::pgbench_log::is_of_transactions,
        "run pgbench with --aggregate-interval too",
    ),
];

/// Detects the kind of an input that begins with `bytes`.
///
/// # Errors
///
/// [`ImportError::UnknownKind`], with the nearest kinds.
pub(crate) fn detect(bytes: &[u8]) -> Result<Kind, ImportError> {
    let by_bytes = |kind: &Kind| matches!(kind.recognizes, By::Bytes(is_it) if is_it(bytes));
    if let Some(kind) = kinds().find(by_bytes) {
        return Ok(kind);
    }
    let refused = REFUSED_BYTES.iter().find(|(begin, _, _)| bytes.starts_with(begin));
    if let Some((_, what, why)) = refused {
        return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
    }
    let text = text::beginning(bytes);
    let by_text = |kind: &Kind| matches!(kind.recognizes, By::Text(is_it) if is_it(&text));
    if let Some(kind) = kinds().find(by_text) {
        return Ok(kind);
    }
    if let Some((what, _, why)) = REFUSED.iter().find(|(_, is_it, _)| is_it(&text)) {
        return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
    }
    let (found, is_text) = found(&text, bytes);
    let nearest = if is_text { near::nearest(&text, kinds()) } else { Vec::new() };
    Err(ImportError::UnknownKind { found, nearest })
}

/// Describes the beginning of an input, and whether it is text.
fn found(text: &str, bytes: &[u8]) -> (String, bool) {
    if bytes.is_empty() {
        return ("it is empty".to_owned(), false);
    }
    let strange = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    if strange * 20 > text.len() {
        return ("it is not text".to_owned(), false);
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let short: String = first.trim().chars().take(60).collect();
    (format!("it begins with {short:?}"), true)
}

/// Returns the kinds nearest to an input that begins with `bytes`, the nearest first.
#[must_use]
pub fn nearest(bytes: &[u8]) -> Vec<Nearest> {
    near::nearest(&text::beginning(bytes), kinds())
}

/// Returns whether a text has the head of iostat on another system: on BSD, with columns of
/// terminals or of niced processes, or else on macOS.
fn is_foreign_iostat(text: &str, is_bsd: bool) -> bool {
    const DISK: [&str; 3] = ["KB/t", "tps", "MB/s"];
    const BSD: [&str; 4] = ["tin", "tout", "ni", "in"];
    const OTHERS: [&str; 7] = ["us", "sy", "id", "1m", "5m", "15m", "xfrs"];
    text.lines().any(|line| {
        let words: Vec<_> = stamped(line, Clock::default()).1.split_whitespace().collect();
        let has_bsd = words.iter().any(|word| BSD.contains(word));
        DISK.iter().all(|name| words.contains(name))
            && has_bsd == is_bsd
            && words
                .iter()
                .all(|word| DISK.contains(word) || BSD.contains(word) || OTHERS.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::By;

    #[test]
    fn every_kind_of_text_has_signs() {
        for kind in kinds() {
            let is_text = matches!(kind.recognizes, By::Text(_));
            assert_eq!(!kind.signs.is_empty(), is_text, "{}", kind.name);
        }
    }

    #[test]
    fn the_nearest_kind_lists_present_and_missing_signs() {
        let all = nearest(b"Disk r/s w/s %util\nsda 1.0 2.0 3.0\n");
        assert_eq!(
            all.first().map(ToString::to_string).as_deref(),
            Some("iostat (it has \"r/s\", \"w/s\", \"%util\", but lacks \"Device\")")
        );
        assert_eq!(nearest(b"").len(), 0);
        assert_eq!(nearest(b"nothing of the kind\n").len(), 0);
    }
}

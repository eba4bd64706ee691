//! Backups as statements and settings of other tools.

use crate::common::{INSTANCE, MACHINE, pairs, script};
use crate::parsers::{HOSTILE, Wrong, check, each, sqlfluff, wrong_powershell, wrong_tsql};
use weir_export::{Backup, ExportError, Kind, Options};
use weir_units::Bytes;

/// [`MACHINE`] with two target disks.
fn machine() -> String {
    let disk = |at: u32| format!("[[volume]]\nname = \"backup-{at}\"\ntier = \"P30\"\n");
    let at = MACHINE.find("[[stripe]]").expect("a stripe");
    format!("{}{}{}{}", &MACHINE[..at], disk(1), disk(2), &MACHINE[at..])
}

fn backup(stripes: u32) -> Backup {
    Backup {
        file: "backup.toml".to_owned(),
        sources: vec!["data-1".to_owned(), "sales-log".to_owned()],
        stripes: (0..stripes).map(|at| format!("backup-{}", at % 2 + 1)).collect(),
        max_transfer: Bytes::mib(4),
        buffer_count: None,
        is_compressed: true,
        encoders: 4,
        bytes: Bytes::gib(500),
    }
}

fn mounts(path: &str) -> Vec<(String, String)> {
    pairs(&[("backup-1", path), ("backup-2", "G:\\")])
}

/// Returns options for a backup of [`machine`] to two drives.
fn drives() -> Options {
    Options { backup: Some(backup(4)), mounts: mounts("F:\\Backup"), ..Options::default() }
}

fn urls() -> Options {
    let urls = vec!["https://one.blob.core.windows.net/backups/sales".to_owned()];
    Options { backup: Some(backup(4)), urls, ..Options::default() }
}

/// Returns options with a single target, as pgBackRest needs.
fn repository(mount: &str) -> Options {
    let stripes = vec!["backup-1".to_owned(); 4];
    Options {
        backup: Some(Backup { stripes, ..backup(4) }),
        mounts: pairs(&[("backup-1", mount), ("pool", "/var/lib/postgresql/17/main")]),
        ..Options::default()
    }
}

/// Returns options with a hostile name.
pub(crate) fn options(kind: Kind, name: &str) -> Options {
    match kind {
        Kind::Pgbackrest => repository(&format!("/{name}")),
        _ => Options { mounts: mounts(&format!("F:\\{name}")), ..drives() },
    }
}

/// Returns the scripts of a backup kind; `None` for other kinds.
pub(crate) fn scripts(kind: Kind) -> Option<Vec<String>> {
    if !matches!(kind, Kind::TsqlBackup | Kind::Ola | Kind::Dbatools | Kind::Pgbackrest) {
        return None;
    }
    let mut all = Vec::new();
    let mut push = |text: &str, options: &Options| {
        if let Ok(script) = script(kind, text, options) {
            all.push(script.text);
        }
    };
    push(&machine(), &drives());
    push(&machine(), &urls());
    push(&machine(), &Options { copy_only: true, ..drives() });
    let plain = Backup { is_compressed: false, buffer_count: Some(50), ..backup(2) };
    push(&machine(), &Options { backup: Some(plain), ..drives() });
    push(&machine(), &repository("/backup/pgbackrest"));
    let of_instance = Backup { sources: vec!["data".to_owned()], ..backup(4) };
    let of_instance =
        Options { backup: Some(of_instance), database: Some("it's ] -- x".to_owned()), ..urls() };
    push(INSTANCE, &of_instance);
    for name in HOSTILE {
        push(&machine(), &options(kind, name));
        let nameless = machine().replace("database = \"sales\"\n", "");
        push(&nameless, &Options { database: Some(name.to_owned()), ..drives() });
    }
    Some(all)
}

/// sqlfluff does not know BACKUP and RESTORE. These statements are parsed here up to the semicolon,
/// and replaced for sqlfluff.
fn without_backups(text: &str) -> Result<String, String> {
    let mut rest = text;
    let mut out = String::new();
    let starts = ["\nBACKUP DATABASE ", "\nRESTORE VERIFYONLY FROM\n"];
    loop {
        let next = starts.iter().filter_map(|start| Some((rest.find(start)?, *start))).min();
        let Some((at, start)) = next else { break };
        let (before, from) = rest.split_at(at + 1);
        out += before;
        let end = from.find(";\n").ok_or("a statement has no end")?;
        read_statement(&from[..end], start.starts_with("\nBACKUP"))?;
        out += "SELECT 1";
        rest = &from[end..];
    }
    Ok(out + rest)
}

/// Parses a statement: its name, its devices (one per line) and its options.
fn read_statement(text: &str, is_backup: bool) -> Result<(), String> {
    let lines: Vec<&str> = text.lines().collect();
    let with = lines.iter().position(|line| line.starts_with("WITH")).ok_or("no WITH")?;
    let is_name = |line: &str| {
        let name = line.strip_prefix("BACKUP DATABASE [").and_then(|own| own.strip_suffix("] TO"));
        name.is_some_and(|own| !own.replace("]]", "").contains(']'))
    };
    let is_head = if is_backup { is_name(lines[0]) } else { lines[0] == "RESTORE VERIFYONLY FROM" };
    if !is_head {
        return Err(format!("no statement: {}", lines[0]));
    }
    for (at, line) in lines[1..with].iter().enumerate() {
        let end = if at + 2 == with { "" } else { "," };
        let wanted = ["DISK", "URL"].map(|own| format!("    {own} = @file{}{end}", at + 1));
        if !wanted.contains(&(*line).to_owned()) {
            return Err(format!("no device: {line}"));
        }
    }
    let options = lines[with..].join(" ");
    let options = options.strip_prefix("WITH").unwrap_or_default();
    for option in options.split(',').map(str::trim) {
        let (name, value) = option.split_once(" = ").unwrap_or((option, "0"));
        let known = [
            "FORMAT",
            "INIT",
            "COPY_ONLY",
            "COMPRESSION",
            "NO_COMPRESSION",
            "CHECKSUM",
            "MAXTRANSFERSIZE",
            "BLOCKSIZE",
            "BUFFERCOUNT",
            "STATS",
        ];
        if !known.contains(&name) || value.parse::<u32>().is_err() {
            return Err(format!("no option: {option}"));
        }
    }
    Ok(())
}

fn wrong_backup(texts: &[String]) -> Wrong {
    let read: Vec<Result<String, String>> = texts.iter().map(|own| without_backups(own)).collect();
    let rest: Vec<String> =
        read.iter().map(|own| own.clone().unwrap_or_else(|_| "SELECT 1;".to_owned())).collect();
    read.into_iter().zip(wrong_tsql(&rest)).map(|(own, other)| own.err().or(other)).collect()
}

#[test]
fn tsql_is_read_by_sqlfluff() {
    if sqlfluff().is_none() {
        return;
    }
    let broken = [
        ("BACKUP DATABASE [sales] TO", "BACKUP DATABASE [sa]les] TO"),
        ("DISK = @file1,", "DISK = @file1"),
        ("    CHECKSUM,", "    CHECKSUMS,"),
        ("F:\\Backup\\", "F:\\Ba'ckup\\"),
        ("nvarchar(259) =", "nvarchar(259) = ="),
        ("STATS = 5;", "STATS = five;"),
    ];
    check(Kind::TsqlBackup, 12, wrong_backup, &broken);
    let broken = [
        ("@Databases = N'[sales]'", "@Databases = N'[sales]"),
        ("@NumberOfFiles = 4,", "@NumberOfFiles = = 4,"),
    ];
    check(Kind::Ola, 8, wrong_tsql, &broken);
}

#[test]
fn powershell_is_read_by_its_grammar() {
    let broken = [("    )", "    }"), ("'sales'", "'sal'es'"), ("$backup = @{", "$backup = @(")];
    check(Kind::Dbatools, 12, |all| each(all, wrong_powershell), &broken);
}

/// The settings of pgBackRest 2 that scripts may contain.
const SETTINGS: [&str; 13] = [
    "repo1-type",
    "repo1-path",
    "repo1-azure-account",
    "repo1-azure-container",
    "repo1-azure-endpoint",
    "repo1-azure-key-type",
    "repo1-retention-full",
    "process-max",
    "buffer-size",
    "compress-type",
    "compress-level",
    "start-fast",
    "pg1-path",
];

fn wrong_settings(text: &str) -> Option<String> {
    let is_setting =
        |(name, value): (&str, &str)| SETTINGS.contains(&name) && !value.trim().is_empty();
    let is_fine = |line: &&str| {
        line.is_empty()
            || line.starts_with('#')
            || (line.starts_with('[') && line.ends_with(']'))
            || line.split_once('=').is_some_and(is_setting)
    };
    text.lines().find(|line| !is_fine(line)).map(str::to_owned)
}

#[test]
fn settings_of_pgbackrest_are_names_and_values() {
    let broken = [("process-max=4", "process_max=4"), ("compress-type=zst", "compress-type=")];
    check(Kind::Pgbackrest, 3, |all| each(all, wrong_settings), &broken);
}

#[test]
fn a_refusal_says_what_to_do() {
    let check = |kind: Kind, text: &str, options: &Options, expect: &str| {
        let error: ExportError = script(kind, text, options).expect_err("it is refused");
        assert!(error.to_string().contains(expect), "{error}");
    };
    let text = machine();
    let tsql = Kind::TsqlBackup;
    check(tsql, &text, &Options::default(), "give --backup FILE");
    check(Kind::Tsql, &text, &drives(), "--backup backup.toml: tsql scripts do not use it");
    let unmounted = Options { mounts: Vec::new(), ..drives() };
    check(tsql, &text, &unmounted, "the mount points of backup-1, backup-2 are unknown");
    check(tsql, &text, &unmounted, "--mount backup-1=F:\\Backup --mount backup-2=G:\\Backup");
    let unmounted = Options { mounts: Vec::new(), ..repository("/backup") };
    let all = "like --mount backup-1=/mnt/backup-1 --mount pool=/var/lib/postgresql/17/main";
    check(Kind::Pgbackrest, &text, &unmounted, all);
    let stray = Options { mounts: [drives().mounts, pairs(&[("log", "L:")])].concat(), ..drives() };
    check(tsql, &text, &stray, "--mount log=L:: it has no stripe of the backup");
    let secret = Options { urls: vec!["https://a.b.c/d?sig=hush".to_owned()], ..urls() };
    check(tsql, &text, &secret, "without its SAS token");
    let other = Options { database: Some("other".to_owned()), ..drives() };
    check(tsql, &text, &other, "the sources belong to sales");
    check(tsql, INSTANCE, &Options { mounts: Vec::new(), ..drives() }, "can only back up to URLs");
    let uneven = Options { backup: Some(backup(3)), ..drives() };
    check(Kind::Ola, &text, &uneven, "describe 4 stripes");
    check(Kind::Pgbackrest, &text, &drives(), "pgBackRest writes a backup to one repository");
    let long = format!("F:\\{}", "a".repeat(250));
    check(tsql, &text, &Options { mounts: mounts(&long), ..drives() }, "at most 259");
    let copy = Options { copy_only: true, ..repository("/backup") };
    check(Kind::Pgbackrest, &text, &copy, "--copy-only");
}

#[test]
fn a_blob_that_is_too_small_is_a_note() {
    let large = Backup { bytes: Bytes::gib(4 << 10), ..backup(4) };
    let options = Options { backup: Some(large), ..urls() };
    let script = script(Kind::TsqlBackup, &machine(), &options).expect("a script");
    assert!(script.notes.iter().any(|note| note.contains("error 3063")), "{:?}", script.notes);
    assert!(!script.text.contains("sig="));
}

#[test]
fn whole_scripts_are_those_that_were_read_and_found_good() {
    let golden = |name: &str, kind: Kind, options: &Options| {
        crate::golden::check(name, &script(kind, &machine(), options).expect("a script"));
    };
    golden("backup.sql", Kind::TsqlBackup, &drives());
    golden("backup.url.sql", Kind::TsqlBackup, &urls());
    golden("backup.ola.sql", Kind::Ola, &drives());
    golden("backup.ps1", Kind::Dbatools, &drives());
    golden("backup.pgbackrest.conf", Kind::Pgbackrest, &repository("/backup/pgbackrest"));
}

//! Wrong input to every verb of `weir backup` and to `weir restore`: one message, the exit code, and
//! nothing changed.

use super::{Rig, pattern};
use crate::common::{Place, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const LAYOUT: &str = "[host]\nunlimited = true\n\
    [[volume]]\nname = \"data\"\nsize = \"8 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"log\"\nsize = \"2 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"tiny\"\nsize = \"1 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"small\"\nsize = \"3 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"backup1\"\nsize = \"32 MiB\"\nunlimited = true\n";
const EXPORTS: [&str; 5] = ["data", "log", "tiny", "small", "backup1"];

/// Arguments, the exit code, and a part of the message.
type Case = (&'static str, i32, &'static str);

/// Of `weir backup run`.
const RUN: [Case; 50] = [
    ("data", 2, "required arguments were not provided"),
    ("data --to b --stripes 65", 2, "--stripes 65: a backup has 1 to 64 stripes"),
    ("data --to b --stripes 0", 2, "--stripes 0: a backup has 1 to 64 stripes"),
    (
        "data --to b --stripes x",
        2,
        "a backup has 1 to 64 stripes: \"x\" does not start with a number",
    ),
    ("data --to b c --stripes 1", 2, "c gets none of the 1 stripes"),
    ("data --to data", 2, "data is a source and a target; write to another place"),
    ("none --to b", 2, "there is no export \"none\"; there are "),
    ("dat --to b", 2, "did you mean \"data\"?"),
    ("data --to none", 2, "there is no export \"none\""),
    ("data --to nowhere/x", 2, "cannot back up to nowhere/x: there is no such folder; make it"),
    ("data --to layout.toml", 2, "cannot back up to layout.toml: it is not a folder"),
    ("data --to b b", 2, "b is a target twice; give more stripes with --stripes"),
    ("data --to ftp://x/y", 2, "ftp is no kind of place"),
    ("data --to https://localhost/a", 2, "it names no container"),
    ("data --to d/volumes", 2, "the data folder of a weir server; give a folder elsewhere"),
    ("data --to log", 2, "log contains data other than backups; give an empty volume"),
    ("data --to tiny", 2, "tiny has 1 MiB: a volume for backups has 2 MiB at least"),
    ("data --to small", 2, "no room on small: a stripe needs "),
    ("data --to nbd+unix:///none?socket=nbd.sock", 3, "none"),
    ("data --to nbd://127.0.0.1:1/x", 3, "is the server running?"),
    ("data --to nbd+unix:///x", 2, "nbd+unix:///x"),
    ("data --to b --max-transfer-size 100KB", 2, "give a multiple of 64 KiB up to 4 MiB"),
    ("data --to b --max-transfer-size 8MiB", 2, "give a multiple of 64 KiB up to 4 MiB"),
    ("data --to b --max-transfer-size 0B", 2, "give a multiple of 64 KiB up to 4 MiB"),
    ("data --to b --max-transfer-size much", 2, "--max-transfer-size"),
    ("data --to b --block-size 1000B", 2, "give a power of two, 512 B to 1 MiB"),
    ("data --to b --block-size 256B", 2, "give a power of two, 512 B to 1 MiB"),
    ("data --to b --buffer-count 0", 2, "--buffer-count"),
    ("data --to b --limit 5", 2, "unit"),
    ("data --to b --limit -1MB/s", 2, "--limit"),
    ("data --to b --name a/b", 2, "is not a file name"),
    ("data --to b --page-blob", 2, "are for https:// targets, and there are none"),
    ("data --to b --sas-file key", 2, "are for https:// targets, and there are none"),
    ("data --to b --sas-file none", 2, "cannot read none"),
    ("data --to b --encrypt", 2, "--encrypt needs a key: give --key-file FILE"),
    ("data --to b --encrypt --key-file none", 2, "cannot read the key file none"),
    ("data --to b --encrypt --key-file short", 2, "a key of 5 bytes is too short"),
    ("data --to b --key-file key", 2, "--encrypt"),
    ("data --to b --compress=20", 2, "20 is not in 1..=19"),
    ("data --to b --compress 3", 2, "3 is taken as a source; write --compress=3"),
    ("data --to b --differential --copy-only", 2, "cannot be used with"),
    ("data --to b --from c", 2, "--differential"),
    ("data --to c --differential", 2, "from which the changes are counted, is not in c"),
    ("tiny --to b --differential", 2, "take a full backup first"),
    ("nbd://127.0.0.1:1/x --to b", 3, "is the server running?"),
    ("none.toml --to b", 2, "cannot read none.toml"),
    ("note.toml --to b", 2, "note.toml"),
    ("data --to b --data d", 2, "--layout"),
    ("data --to b --layout layout.toml --data e", 2, "it holds no data of weir"),
    ("data --to b --control none.sock", 3, "none.sock"),
];

/// Of the other verbs of `weir backup`.
const KEPT: [Case; 28] = [
    ("list b --sas-file key", 2, "--sas-file is for https:// places, and there are none"),
    ("list http://127.0.0.1:1/a/c --sas-file none", 2, "cannot read none"),
    ("show nothing --from b", 2, "; there are sales "),
    ("list", 2, "required arguments were not provided"),
    ("list ./none", 2, "cannot look for backups in ./none"),
    ("list none", 2, "has no export \"none\", and there is no folder of that name"),
    ("list note.txt", 2, "cannot look for backups in note.txt: it is no stripe of a backup"),
    ("list small.toml", 2, "small.toml has no volume for backups"),
    ("list b --data d", 2, "--data d: give its layout with --layout FILE"),
    ("list b --layout layout.toml", 2, "--data"),
    ("list nbd://127.0.0.1:1/x", 3, "is the server running?"),
    ("list backup1 --control none.sock", 3, "none.sock"),
    ("show sales", 2, "say where to look for the backup with --from PLACE"),
    ("show nothing --from b", 2, "no backup \"nothing\" in b"),
    ("show 0 --from b", 2, "no backup \"0\" in b"),
    ("show ../sales --from b", 2, "no backup \"../sales\" in b"),
    ("verify secret --from k --key-file other", 2, "the key does not belong to backup"),
    ("verify secret --from k --key-file short", 2, "a key of 5 bytes is too short"),
    ("verify secret --from k --key-file none", 2, "cannot read the key file none"),
    ("verify sales --from b --key-file key", 2, "is not encrypted, so it was not made with"),
    ("verify sales --from ./none", 2, "cannot look for backups in ./none"),
    ("prune --keep-last 1", 2, "required arguments were not provided"),
    ("prune b", 2, "no rule keeps a backup: give --keep-last, --keep-daily"),
    ("prune b --keep-last 0", 2, "no rule keeps a backup"),
    ("prune b --keep-daily -1", 2, "\"-1\" is negative"),
    ("prune b --keep-last 1 --name none", 2, "there are no backups named \"none\""),
    ("prune ./none --keep-last 1", 2, "cannot look for backups in ./none"),
    ("key more", 2, "unexpected argument"),
];

/// Of `weir restore`.
const RESTORE: [Case; 37] = [
    (
        "sales --from b --to https://a.blob.core.windows.net/c/x?sig=secret",
        2,
        "https://a.blob.core.windows.net/c/x: a blob is no target of a restore; restore to",
    ),
    ("sales --from b --image c --map data=ftp://h/x", 2, "ftp://h/x: it is no target"),
    ("sales --from b --image c --sas-file key", 2, "--sas-file is for https:// places"),
    ("sales --from b", 2, "say where to restore to: --to LAYOUT --data DIR"),
    ("sales --image c", 2, "say where to look for the backup with --from PLACE"),
    ("nothing --from b --image c", 2, "no backup \"nothing\" in b"),
    ("sales --from b --to layout.toml", 2, "--to layout.toml is a layout: give the folder"),
    ("sales --from b --to none.toml --data e", 2, "cannot read none.toml"),
    ("sales --from b --to small.toml --data e", 2, "small.toml has no export \"data\""),
    ("sales --from b --to layout.toml --data d/e", 2, "the data folder of a weir server"),
    ("sales --from b --control control.sock", 2, "data is not empty; --force replaces"),
    ("sales --from b --control none.sock", 3, "none.sock"),
    ("sales --from b --control control.sock --map data=none", 2, "has no export \"none\""),
    ("sales --from b --control control.sock --map data=log", 2, "two sources go to log"),
    ("sales --from b --image c --map data", 2, "write SOURCE=TARGET, for example data=data2"),
    ("sales --from b --image c --map x=y", 2, "the backup has no source \"x\"; it has data, log"),
    ("sales --from b --image c --only x", 2, "the backup has no source \"x\"; it has data, log"),
    (
        "sales --from b --control control.sock --only data --map data=log --force",
        2,
        "log has 2097152 bytes, and data has 8388608: choose a larger target",
    ),
    (
        "sales --from b --control control.sock --only data --map data=backup1 --force",
        2,
        "it holds backups, which a restore never replaces",
    ),
    ("sales --from b --to nbd+unix:///data?socket=nbd.sock", 2, "the backup has 2 sources"),
    ("sales --from b --to nbd://127.0.0.1:1/x --only data", 3, "is the server running?"),
    ("sales --from b --image d/images", 2, "the data folder of a weir server"),
    ("sales --from b --image old", 2, "old/data.raw is there already; --force replaces it"),
    ("sales --from b --image c --control control.sock", 2, "cannot be used with"),
    ("sales --from b --image c --damaged maybe", 2, "invalid value 'maybe'"),
    ("sales --from b --image c --key-file key", 2, "is not encrypted, so it was not made with"),
    ("sales --from b --prove --scratch nowhere", 2, "--scratch nowhere: there is no such folder"),
    ("sales --from b --prove --scratch d", 2, "the data folder of a weir server"),
    ("sales --from b --image c --scratch c", 2, "--prove"),
    ("sales --from b --image c --oltp note.toml", 2, "--prove"),
    ("sales --from b --prove --oltp none.toml", 2, "cannot read none.toml"),
    ("sales --from-control control.sock --image c", 2, "--from"),
    ("secret --from k --image c", 2, "is encrypted: give its key with --key-file"),
    ("secret --from k --image c --key-file other", 2, "the key does not belong to backup"),
    ("damaged --from x --image c", 1, "the backup is damaged: frame 0 of stripe 1"),
    ("part --from y --image c", 1, "stripe 1 of 2 is missing; name the other places"),
    ("day --from z --image c", 1, "builds on the full backup"),
];

fn rig() -> Rig {
    let place = Place::without_a_disk();
    let server = Some(place.serve(LAYOUT, &["--data", "d"]));
    let rig = Rig { place, server };
    for folder in ["b", "c", "k", "x", "y", "z", "old"] {
        fs::create_dir(rig.place.path(folder)).expect("a folder");
    }
    rig.write("data", 0, &pattern(1, 4 << 20));
    rig.write("log", 4096, &pattern(2, 1 << 20));
    for (name, text) in [
        ("key", "ab".repeat(32)),
        ("other", "cd".repeat(32)),
        ("short", "abcde".to_owned()),
        ("note.txt", "a letter".to_owned()),
        ("note.toml", "no = \"description\"\n".to_owned()),
        ("small.toml", "[[volume]]\nname = \"a\"\nsize = \"1 MiB\"\nunlimited = true\n".to_owned()),
        ("old/data.raw", "an image".to_owned()),
    ] {
        rig.place.file(name, &text);
    }
    rig.backup("data log --to b --stripes 2 --name sales");
    rig.backup("data --to backup1 --name raw --copy-only");
    rig.backup("data --to k --name secret --copy-only --encrypt --key-file key");
    rig.backup("data --to x --name damaged --copy-only");
    rig.backup("data --to y --name part --stripes 2 --copy-only");
    rig.backup("data log --to z --from b --name day --differential");
    let stripe = |folder: &str| rig.place.path(folder).join(&rig.files(folder)[0]);
    let mut bytes = fs::read(stripe("x")).expect("a stripe");
    bytes[9000] ^= 1;
    fs::write(stripe("x"), bytes).expect("a stripe");
    fs::remove_file(stripe("y")).expect("a stripe");
    rig
}

/// Everything that a verb could change: files, without those of the server, and exports.
fn state(rig: &Rig) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all: BTreeMap<_, _> =
        EXPORTS.iter().map(|name| (PathBuf::from(name), rig.contents(name))).collect();
    let mut folders = vec![rig.place.dir().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.extend((!path.ends_with("d")).then(|| path.clone()));
                all.insert(path, Vec::new());
            } else if path.is_file() {
                let bytes = fs::read(&path).expect("a file");
                all.insert(path, bytes);
            }
        }
    }
    all
}

#[test]
fn wrong_input_gets_one_message_and_changes_nothing() {
    let rig = rig();
    let before = state(&rig);
    let of = |verb: &'static str, cases: &'static [Case]| {
        cases.iter().map(move |(args, code, expect)| (format!("{verb} {args}"), *code, *expect))
    };
    let all = of("backup run", &RUN).chain(of("backup", &KEPT)).chain(of("restore", &RESTORE));
    let mut wrong = Vec::new();
    for (args, code, expect) in all {
        let (stdout, stderr, got) = run(rig.weir(&args));
        let is_error = |line: &&str| line.starts_with("error: ") || line.starts_with("weir: ");
        let errors = stderr.lines().filter(is_error);
        if (got, errors.count(), stdout.is_empty(), stderr.contains(expect))
            != (Some(code), 1, true, true)
        {
            wrong.push(format!("weir {args}: exit code {got:?}, not {code}: {stdout}{stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let after = state(&rig);
    let changed: Vec<_> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    assert!(changed.is_empty(), "changed: {changed:?}");
}

//! Complete scripts for review. `WEIR_GOLDEN=write` writes them again.

use crate::common::{INSTANCE, MACHINE, changes, mounts, script};
use std::path::Path;
use weir_export::{Export, Kind, Options};

pub(crate) fn check(name: &str, export: &Export) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export/golden").join(name);
    if std::env::var_os("WEIR_GOLDEN").is_some() {
        std::fs::write(&path, &export.text).expect("a file");
    }
    let expect = std::fs::read_to_string(&path).expect("a golden file");
    assert!(export.text == expect, "{name} is not what it was:\n{}", export.text);
}

#[test]
fn scripts_are_those_that_were_read_and_found_good() {
    let none = Options::default();
    check("instance.sql", &script(Kind::Tsql, INSTANCE, &none).expect("a script"));
    check("machine.az.sh", &script(Kind::Az, MACHINE, &none).expect("a script"));
    check("machine.mdadm.sh", &script(Kind::Mdadm, MACHINE, &none).expect("a script"));
    check("machine.fstab", &script(Kind::Fstab, MACHINE, &none).expect("a script"));
    let larger = MACHINE.replace("500 GiB", "600 GiB").replace("P20", "P30");
    check("grown.sql", &changes(Kind::Tsql, MACHINE, &larger, &mounts()).expect("a script"));
    check("grown.az.sh", &changes(Kind::Az, MACHINE, &larger, &none).expect("a script"));
}

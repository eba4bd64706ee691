//! Advice as a whole: of systems that are well built and have nothing to wait for no rule says
//! anything, and what is proposed of others can be tried.

use crate::bed::{EntityLoad, TestBed};

/// Returns all findings.
fn words(bed: TestBed) -> Vec<String> {
    let all = bed.findings().into_iter().map(|found| found.finding);
    all.filter(|finding| (200..300).contains(&finding.check_id))
        .map(|finding| format!("{}: {}", finding.rule, finding.finding))
        .collect()
}

#[test]
fn an_instance_with_equal_files() {
    let mut text =
        "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n"
            .to_owned();
    for (name, role) in [("one", "data"), ("two", "data"), ("log", "log")] {
        text += &format!("[[file]]\nname = \"{name}\"\nrole = \"{role}\"\nsize = \"600 GiB\"\n");
    }
    let bed = |does: EntityLoad, log: EntityLoad| {
        let bed = TestBed::layout(&text).file("db", "one", does).file("db", "two", does);
        words(bed.file("db", "log", log).wait("WRITELOG", 300.0))
    };
    assert_eq!(
        bed(EntityLoad::reads(2000.0).and_writes(900.0).ms(4.0), EntityLoad::writes(800.0).ms(4.0)),
        [""; 0]
    );
    assert_eq!(bed(EntityLoad::reads(10.0).ms(4.0), EntityLoad::writes(3.0).ms(4.0)), [""; 0]);
}

#[test]
fn a_machine_with_cached_data_and_a_log_without() {
    let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
                \"log\"\ntier = \"P30\"\n[[volume]]\nname = \"os\"\ntier = \"P10\"\n[[stripe]]\nname \
                = \"pool\"\nunit = \"64 KiB\"\nvolumes = { count = 4, tier = \"P30\", cache = \
                \"read-only\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"900 GiB\"\non = \
                \"pool\"\n[[file]]\nname = \"redo\"\nrole = \"log\"\nsize = \"100 GiB\"\non = \
                \"log\"\n";
    let data = |second: u64| {
        let iops = if second.is_multiple_of(2) { 3000.0 } else { 5100.0 };
        EntityLoad::reads(iops).and_writes(iops / 3.0).ms(1.2)
    };
    let bed = TestBed::layout(text).disk_over("pool", data);
    let bed = bed.disk("log", EntityLoad::writes(700.0).kib(16.0).ms(2.05));
    assert_eq!(words(bed.disk("os", EntityLoad::writes(3.0))), [""; 0]);
}

/// Checks that every change which a finding proposes makes a layout that can be simulated.
#[test]
fn changes_can_be_made() {
    let instance = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, \
                    storage = \"STORAGE\" }\n[[file]]\nname = \"one\"\nrole = \"data\"\nsize = \"150 \
                    GiB\"\n[[file]]\nname = \"two\"\nrole = \"data\"\nsize = \"900 GiB\"\n[[file]]\n\
                    name = \"log\"\nrole = \"log\"\nsize = \"32 GiB\"\n";
    let machine = "edition = \"azure-premium-2015\"\nhost = { size = \"DS1\" }\n[[volume]]\nname = \
                   \"data\"\ntier = \"P10\"\n[[volume]]\nname = \"log\"\ntier = \"P30\"\ncache = \
                   \"read-only\"\n[[file]]\nname = \"rows\"\nrole = \"data\"\nsize = \"90 GiB\"\non \
                   = \"data\"\n[[file]]\nname = \"redo\"\nrole = \"log\"\nsize = \"90 GiB\"\non = \
                   \"log\"\n";
    let pool = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
                \"spare\"\ntier = \"P10\"\n[[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = { \
                count = 2, tier = \"P10\" }\n[[file]]\nname = \"rows\"\nrole = \"data\"\nsize = \"90 \
                GiB\"\non = \"pool\"\n";
    let of_instance = |storage: &str| {
        let text = instance.replace("STORAGE", storage);
        let bed = TestBed::layout(&text).file("db", "one", EntityLoad::writes(1098.0).ms(60.0));
        let bed = bed.file("db", "two", EntityLoad::reads(300.0).ms(4.0));
        (bed.file("db", "log", EntityLoad::writes(498.0).kib(4.0).ms(60.0)), text)
    };
    let data = TestBed::layout(machine).disk("data", EntityLoad::reads(498.0).ms(60.0));
    let cases = [
        (of_instance("8 TiB"), 4),
        (of_instance("1100 GiB"), 1),
        ((data.disk("log", EntityLoad::writes(1500.0).kib(4.0)), machine.to_owned()), 2),
        (
            (
                TestBed::layout(pool).disk("pool", EntityLoad::reads(996.0).ms(60.0)),
                pool.to_owned(),
            ),
            2,
        ),
    ];
    let catalog = weir_catalog::Catalog::builtin();
    for ((bed, text), least) in cases {
        let found = bed.findings().into_iter();
        let found = found.filter(|found| (200..300).contains(&found.finding.check_id));
        let changes: Vec<_> =
            found.filter_map(|found| Some((found.finding.rule, found.change?))).collect();
        assert!(changes.len() >= least, "{changes:?}");
        for (rule, change) in changes {
            let after = change.apply(&text).expect(rule);
            let layout = weir_layout::Layout::parse("layout.toml", &after, &catalog);
            assert!(layout.is_ok(), "{rule}: {change:?}: {layout:?}");
        }
    }
}

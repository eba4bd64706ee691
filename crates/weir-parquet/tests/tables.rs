//! Tables that are written and read again.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use weir_parquet::{Kind, Scan, TableError, Values, Writer, read};

fn columns() -> [(&'static str, Kind); 3] {
    [("n", Kind::Whole), ("x", Kind::Number), ("text", Kind::Text)]
}

fn values() -> Vec<Values> {
    vec![
        Values::Whole(vec![Some(1), None, Some(i64::MAX)]),
        Values::Number(vec![None, Some(0.1), Some(1e300)]),
        Values::Text(vec![Some("é, \"x\"".to_owned()), Some(String::new()), None]),
    ]
}

fn written() -> Vec<u8> {
    let facts = [("sweep", "0123".to_owned())];
    let mut writer = Writer::new(Vec::new(), &columns(), &facts).expect("a file");
    writer.rows(&values()).expect("rows");
    writer.rows(&values()).expect("more rows");
    writer.finish().expect("an end")
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("bytes");
    file.reopen().expect("the file")
}

#[test]
fn a_table_is_read_as_it_was_written() {
    let table = read(file(&written())).expect("a table");
    let names: Vec<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["n", "x", "text"]);
    for ((_, found), once) in table.iter().zip(values()) {
        let twice = match once {
            Values::Whole(all) => Values::Whole([&all[..], &all[..]].concat()),
            Values::Number(all) => Values::Number([&all[..], &all[..]].concat()),
            Values::Text(all) => Values::Text([&all[..], &all[..]].concat()),
            Values::Labels(all) => Values::Labels([&all[..], &all[..]].concat()),
        };
        assert_eq!(*found, twice);
    }
    assert_eq!(written(), written(), "equal tables are equal files");
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let mut writer = Writer::new(Vec::new(), &columns(), &[]).expect("a file");
    let mut wrong = |values: &[Values]| writer.rows(values).expect_err("wrong");
    assert!(matches!(wrong(&values()[..2]), TableError::Shape { found: 2, expected: 3 }));
    let mut short = values();
    short[1] = Values::Number(vec![None]);
    assert!(matches!(wrong(&short), TableError::Shape { found: 2, expected: 3 }));
    short[1] = Values::Text(vec![None; 3]);
    assert!(matches!(wrong(&short), TableError::Shape { found: 2, expected: 3 }));
}

#[test]
fn damaged_files_are_refused() {
    let whole = written();
    for bytes in [&b""[..], b"a,b\n1,2\n", &whole[..whole.len() / 2], &whole[4..]] {
        assert!(read(file(bytes)).is_err());
    }
}

#[test]
fn logical_types_are_part_of_the_type() {
    let kind = |physical: Physical, logical, converted| {
        let field = Type::primitive_type_builder("x", physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .with_converted_type(converted)
            .with_precision(18)
            .with_scale(2);
        let field = Arc::new(field.build().expect("a type"));
        let schema = Type::group_type_builder("x").with_fields(vec![field]).build();
        let writer = SerializedFileWriter::new(
            Vec::<u8>::new(),
            Arc::new(schema.expect("types")),
            Arc::default(),
        );
        let bytes = writer.and_then(SerializedFileWriter::into_inner).expect("a file");
        Scan::open(file(&bytes)).expect("a table").columns()[0].kind.clone()
    };
    let logical = |own: LogicalType| kind(Physical::INT64, Some(own), ConvertedType::NONE);
    assert_eq!(logical(LogicalType::integer(64, true)), "INT64");
    assert_eq!(logical(LogicalType::integer(64, false)), "INT64 as UINT_64");
    assert_eq!(logical(LogicalType::decimal(2, 18)), "INT64 as DECIMAL(18, 2)");
    let micros = LogicalType::timestamp(true, TimeUnit::MICROS);
    assert_eq!(logical(micros), "TIMESTAMP(MICROS, UTC)");
    // Files of older programs.
    let converted = |own| kind(Physical::INT64, None, own);
    assert_eq!(converted(ConvertedType::INT_64), "INT64");
    assert_eq!(converted(ConvertedType::UINT_64), "INT64 as UINT_64");
    assert_eq!(converted(ConvertedType::DECIMAL), "INT64 as DECIMAL");
    assert_eq!(kind(Physical::BYTE_ARRAY, None, ConvertedType::UTF8), "STRING");
    assert_eq!(kind(Physical::DOUBLE, None, ConvertedType::NONE), "DOUBLE");
}

//! Compresses the tables of `catalog/data`, so that the library holds them in a fraction of their
//! size. [`crate::tables`] reads them.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The tables, without their ending.
const TABLES: [&str; 10] = [
    "azure-hosts",
    "aws-hosts",
    "gcp-hosts",
    "azure-prices",
    "azure-mi-prices",
    "azure-postgres-prices",
    "aws-prices",
    "gcp-prices",
    "conflicts",
    "sources",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../catalog/data");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    for name in TABLES {
        let from = root.join(format!("{name}.csv"));
        println!("cargo::rerun-if-changed={}", from.display());
        compress(&from, &out.join(format!("{name}.z")))
            .map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

fn compress(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(from)?)?;
    Ok(fs::write(to, encoder.finish()?)?)
}

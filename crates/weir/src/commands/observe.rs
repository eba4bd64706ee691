//! `weir observe`.

mod checklist;
mod figures;
mod import;
mod live;
pub(crate) mod picture;

use crate::cli::{ObserveArgs, ObserveCommand, ObserveShowArgs};
use crate::error::CliError;
use crate::output;
use figures::Figures;
use picture::Picture;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use weir_observe::{Ending, Header, ReadError, Reader};

pub(crate) fn run(args: &ObserveArgs) -> Result<u8, CliError> {
    let Some(command) = &args.command else { return live::run(&args.live) };
    match command {
        ObserveCommand::Show(args) => show(args),
        ObserveCommand::Checklist(args) => checklist::run(args),
        ObserveCommand::Import(args) => import::run(args),
        ObserveCommand::Script { sqlserver: _ } => {
            output::print_text(weir_observe::import::sql::SCRIPT)?;
            Ok(0)
        }
        ObserveCommand::Kinds { output } => import::kinds(output),
    }
}

fn show(args: &ObserveShowArgs) -> Result<u8, CliError> {
    let header = whole_header(&args.file)?;
    let mut figures = Figures::new(&header);
    let mut picture = args.plot.as_ref().map(|_| Picture::new(&header));
    let mut reader = open(&args.file)?;
    let mut row = Vec::new();
    while let Some(chunk) = reader.next_chunk().map_err(|source| failed(&args.file, source))? {
        for (sample, at) in chunk.times.iter().enumerate() {
            chunk.row(sample, &mut row);
            figures.sample(*at, &row);
            if let Some(picture) = &mut picture {
                picture.sample(*at, &row);
            }
        }
    }
    let (_, notes, ending) = reader.into_parts();
    if ending != Ending::Complete {
        output::talk(&format!("weir: {}: {ending}", args.file.display()));
    }
    if let (Some(path), Some(picture)) = (&args.plot, picture) {
        picture.write(path)?;
    }
    output::print(&figures.report(&header, &notes, &ending), args.output.format())?;
    Ok(0)
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, CliError> {
    let file =
        File::open(path).map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    Reader::open(BufReader::new(file)).map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: ReadError) -> CliError {
    CliError::Observation { path: path.to_owned(), source }
}

/// The header with everybody who is declared on the way.
fn whole_header(path: &Path) -> Result<Header, CliError> {
    let mut reader = open(path)?;
    while reader.next_chunk().map_err(|source| failed(path, source))?.is_some() {}
    Ok(reader.into_parts().0)
}

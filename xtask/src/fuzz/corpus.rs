//! The committed inputs, and the dictionaries.

use super::seeds;
use super::target::Target;
use crate::error::XtaskError;
use std::fs;
use std::path::Path;

/// The targets whose inputs are generated.
const GENERATED: [Target; 5] =
    [Target::NbdServer, Target::NbdClient, Target::Backup, Target::BackupLabel, Target::Volume];

/// Inputs and tokens of a target.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// Inputs, sorted by file name.
    pub inputs: Vec<Vec<u8>>,
    /// Tokens that the target recognises.
    pub tokens: Vec<Vec<u8>>,
    /// True if inputs are lines of text.
    pub is_text: bool,
}

impl Corpus {
    /// Reads the corpus and the dictionary of `target`.
    ///
    /// # Errors
    /// [`XtaskError::File`], [`XtaskError::Dictionary`], or
    /// [`XtaskError::NoCorpus`] if there is no input.
    pub fn load(target: Target) -> Result<Self, XtaskError> {
        let inputs: Vec<Vec<u8>> =
            files(&target.corpus())?.into_iter().map(|(_, input)| input).collect();
        if inputs.is_empty() {
            return Err(XtaskError::NoCorpus { target, path: target.corpus() });
        }
        let path = target.dictionary();
        let text = fs::read_to_string(&path).map_err(XtaskError::file("reading", &path))?;
        let tokens = tokens(&path, &text)?;
        Ok(Self { inputs, tokens, is_text: target.is_text() })
    }
}

/// Returns the files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, XtaskError> {
    let listing = fs::read_dir(folder).map_err(XtaskError::file("listing", folder))?;
    let mut files = Vec::new();
    for entry in listing {
        let path = entry.map_err(XtaskError::file("listing", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, fs::read(&path).map_err(XtaskError::file("reading", &path))?));
    }
    files.sort();
    Ok(files)
}

/// Writes the generated inputs, and returns their number.
///
/// # Errors
///
/// [`XtaskError::File`] if one cannot be written.
pub fn generate() -> Result<usize, XtaskError> {
    let mut count = 0;
    for target in GENERATED {
        let folder = target.corpus();
        fs::create_dir_all(&folder).map_err(XtaskError::file("making", &folder))?;
        for (name, input) in seeds::of(target) {
            let path = folder.join(name);
            fs::write(&path, input).map_err(XtaskError::file("writing", &path))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Parses a libFuzzer dictionary: one quoted token per line, optionally after a name; `#` starts a
/// comment.
fn tokens(path: &Path, text: &str) -> Result<Vec<Vec<u8>>, XtaskError> {
    let mut tokens = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let quoted = line.find('"').map(|at| &line[at + 1..]).and_then(|t| t.strip_suffix('"'));
        let token = quoted.and_then(unescape).ok_or_else(|| XtaskError::Dictionary {
            path: path.to_owned(),
            line: number,
            text: line.to_owned(),
        })?;
        tokens.push(token);
    }
    Ok(tokens)
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next()? {
                b'x' => {
                    let mut digit = || char::from(bytes.next()?).to_digit(16);
                    u8::try_from(digit()? << 4 | digit()?).ok()?
                }
                escaped @ (b'\\' | b'"') => escaped,
                _ => return None,
            },
            b'"' => return None,
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;
    use weir_layout::Layout;

    #[track_caller]
    fn check(text: &str, expect: Result<&[&[u8]], &str>) {
        let got = tokens(Path::new("a.dict"), text).map_err(|error| error.to_string());
        let expect = expect.map(|all| all.iter().map(|t| t.to_vec()).collect::<Vec<_>>());
        assert_eq!(got, expect.map_err(str::to_owned));
    }

    #[test]
    fn dictionaries_are_read_as_libfuzzer_reads_them() {
        check("# words\n\n\"GO\"\nmagic=\"\\x00\\xfF\"\n", Ok(&[b"GO", b"\x00\xff"]));
        check(r#""a\"b\\""#, Ok(&[b"a\"b\\"]));
        let message = r#"a.dict:2: GO is not a token; write "text" with \" \\ or \x41"#;
        check("\"a\"\nGO", Err(message));
        check(
            r#""\x0g""#,
            Err(r#"a.dict:1: "\x0g" is not a token; write "text" with \" \\ or \x41"#),
        );
        check("\"", Err("a.dict:1: \" is not a token; write \"text\" with \\\" \\\\ or \\x41"));
    }

    #[test]
    fn every_target_has_a_corpus_and_a_dictionary() {
        for target in Target::ALL {
            let corpus = Corpus::load(target).unwrap();
            assert!(corpus.inputs.len() >= 5, "{target} has {} inputs", corpus.inputs.len());
            assert!(corpus.tokens.len() >= 20, "{target} has {} tokens", corpus.tokens.len());
        }
    }

    /// Returns the inputs that are not former findings.
    fn chosen(target: Target) -> Vec<(String, Vec<u8>)> {
        let all = files(&target.corpus()).unwrap();
        all.into_iter().filter(|(name, _)| !name.starts_with("found-")).collect()
    }

    #[test]
    fn the_generated_corpora_are_what_is_generated_now() {
        for target in GENERATED {
            let mut expect: Vec<(String, Vec<u8>)> =
                seeds::of(target).into_iter().map(|(name, data)| (name.to_owned(), data)).collect();
            expect.sort();
            assert!(
                chosen(target) == expect,
                "{target}: run `cargo xtask fuzz-corpus`, and remove what it no longer makes"
            );
        }
    }

    /// Checks that readers accept the first line of each corpus file; the rest would otherwise not
    /// be tested.
    #[test]
    fn the_committed_files_are_sound() {
        let catalog = Catalog::builtin();
        for (name, input) in chosen(Target::Layout) {
            let text = String::from_utf8(input).unwrap();
            Layout::parse(&name, &text, &catalog).unwrap_or_else(|error| panic!("{error}"));
        }
        for (name, input) in chosen(Target::Fio) {
            let text = String::from_utf8(input).unwrap();
            let read = weir_workload::fio::parse(&name, &text, &super::super::fio::Surroundings);
            read.unwrap_or_else(|error| panic!("{error}"));
        }
        for (name, input) in chosen(Target::Oltp) {
            let text = String::from_utf8(input).unwrap();
            let read = weir_oltp::Description::parse(&name, &text);
            read.unwrap_or_else(|error| panic!("{error}"));
        }
        for (name, input) in chosen(Target::Observation) {
            weir_observe::Reader::open(&input[..])
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for (name, input) in chosen(Target::Trace) {
            // The first byte tells whether checksums are made right.
            let mut reader = weir_trace::Reader::open(&input[1..])
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(reader.next_request().unwrap().is_some(), "{name} has a request");
        }
    }
}

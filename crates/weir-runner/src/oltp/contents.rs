//! The bytes of the pages and the log of a database. Each read is compared with the last
//! write.

use super::files::Files;
use super::log::{self, Records};
use super::page::{self, PageId, State};
use std::ops::Range;
use weir_oltp::model::{DataFile, Model, PAGE};
use weir_oltp::{Commit, Content, FileIo, Placement, Table};
use weir_units::Bytes;

/// Fill byte of tempdb pages; not zero, since a store may turn zeros into a hole.
const TEMPORARY: u8 = 0x74;

/// The contents of the files.
#[derive(Debug)]
pub(super) struct Contents {
    placement: Placement,
    /// The states of pages, by page number.
    pages: Table<State>,
    /// New pages of each data file, from commits so far.
    new: Vec<u32>,
    records: Records,
    identity: u64,
}

/// A wrong page: its number and its fault.
#[derive(Debug)]
pub(super) struct BadPage {
    pub(super) page: u32,
    pub(super) what: String,
}

impl Contents {
    /// Makes the contents of a database whose pages were never written.
    pub(super) fn new(model: &Model) -> Self {
        let placement = Placement::new(&model.data, model.working_set);
        let pages = Table::new(placement.pages() as usize);
        let (new, records) = (vec![0; placement.files()], Records::default());
        Self { pages, new, records, identity: identity(model), placement }
    }

    /// New pages of each data file, from commits so far.
    pub(super) fn new_pages(&self) -> &[u32] {
        &self.new
    }

    /// Sets the number of new pages of each file.
    pub(super) fn set_new_pages(&mut self, new: &[u32]) {
        self.new.iter_mut().zip(new).for_each(|(own, new)| *own = *new);
    }

    /// Notes that a page exists; it may be new.
    pub(super) fn see(&mut self, page: u32) {
        if let Some((file, number)) = self.placement.new_number(page) {
            self.new[file] = self.new[file].max(number + 1);
        }
    }

    /// Returns the page numbers of a data file in contiguous ranges.
    pub(super) fn ranges(&self, file: usize) -> [Range<u32>; 3] {
        let new = self.placement.new_range(file, self.new[file]);
        let border = self.placement.piece(new.start).end.min(new.end);
        [self.placement.range(file), new.start..border, border..new.end]
    }

    /// Adjusts the model to the new pages, whose files have grown.
    pub(super) fn grow(&self, model: &mut Model, files: &mut Files) {
        let all = model.data.iter_mut().zip(&mut files.served).zip(&files.connections);
        for (((data, served), connection), new) in all.zip(&self.new) {
            data.new_pages = *new;
            let needs = data.new_from() + u64::from(*new) * PAGE;
            if let Some(growth) = data.growth
                && needs > data.size.get()
            {
                let steps = (needs - data.size.get()).div_ceil(growth.by.get().max(1));
                let size = data.size.get().saturating_add(steps.saturating_mul(growth.by.get()));
                data.size = Bytes::new(size).min(growth.most);
            }
            if served.is_volume {
                data.size = data.size.max(connection.size());
            }
            served.size = data.size;
        }
    }

    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Returns a number that differs between databases of different descriptions.
    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    pub(super) fn state(&self, page: u32) -> State {
        self.pages.get(page as usize)
    }

    pub(super) fn set_state(&mut self, page: u32, state: State) {
        *self.pages.get_mut(page as usize) = state;
    }

    /// Locates a page.
    pub(super) fn id(&self, page: u32) -> PageId {
        let (file, offset) = self.placement.locate(page);
        PageId { file: u32::try_from(file).unwrap_or(u32::MAX), page: offset / PAGE }
    }

    /// Applies a commit to its pages, and appends its record to the log.
    pub(super) fn commit(&mut self, commit: &Commit) {
        commit.pages.iter().for_each(|page| self.see(*page));
        let Self { pages, records, .. } = self;
        let change = |page: &u32| {
            let state = pages.get_mut(*page as usize);
            *state = State { version: state.version + 1, commit: commit.number };
            state.version
        };
        let versions: Vec<u64> = commit.pages.iter().map(change).collect();
        records.push(commit, versions.into_iter());
    }

    /// Generates the bytes of a write in their present state.
    pub(super) fn encode(&mut self, io: &FileIo, content: Content, out: &mut Vec<u8>) {
        out.clear();
        match content {
            Content::Pages { first, count } => {
                for page in first..first + count {
                    page::encode(self.id(page), self.state(page), out);
                }
            }
            Content::Temporary => out.resize(usize::try_from(io.len).unwrap_or(0), TEMPORARY),
            Content::Log { lsn, bytes } => self.records.block(lsn, bytes, io.len, out),
            Content::Checkpoint(redo) => log::checkpoint(self.identity, &redo, &self.new, out),
        }
        assert_eq!(out.len() as u64, io.len, "a write has the bytes that it says: {io:?}");
    }

    /// Checks that a read of pages has returned the last write of each.
    pub(super) fn check(&self, first: u32, bytes: &[u8]) -> Result<(), BadPage> {
        for (page, bytes) in (first..).zip(bytes.chunks_exact(page::SIZE)) {
            let expect = self.state(page);
            let bad = |what| BadPage { page, what };
            let found = page::decode(self.id(page), bytes).map_err(|e| bad(e.to_string()))?;
            if found != expect {
                return Err(bad(format!(
                    "it has version {} of transaction {}, and version {} of transaction {} was \
                     written: that write is lost",
                    found.version, found.commit, expect.version, expect.commit
                )));
            }
        }
        Ok(())
    }
}

/// Returns a hash of sizes and files (FNV-1a).
fn identity(model: &Model) -> u64 {
    let sizes = model
        .data
        .iter()
        .flat_map(|data: &DataFile| [data.weight.get(), data.new_from()])
        .chain([model.log.size.get()]);
    let numbers = sizes.chain([model.working_set]);
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, number| {
        number.to_le_bytes().into_iter().fold(hash, |hash: u64, byte: u8| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_oltp::{Description, FileAbout, FileOp};

    const OLTP: &str = "mix = \"generic-oltp\"\nusers = 1\nvcores = 1\nsize = \"1 MiB\"\n\
        buffer_pool = \"1 MiB\"\ndata = [\"d1\", \"d2\"]\nlog = \"log\"\n";

    fn contents(log_mib: u64) -> Contents {
        let file = |name| FileAbout::new(name, Bytes::mib(log_mib));
        let description = Description::parse("oltp.toml", OLTP).unwrap();
        Contents::new(&description.model(&["d1", "d2", "log"].map(file), 1).unwrap())
    }

    fn written(contents: &mut Contents, first: u32, count: u32) -> Vec<u8> {
        let len = u64::from(count) * PAGE;
        let io = FileIo { file: 0, op: FileOp::Write, offset: 0, len, tag: 0 };
        let mut bytes = Vec::new();
        contents.encode(&io, Content::Pages { first, count }, &mut bytes);
        bytes
    }

    fn commit(contents: &mut Contents, number: u64, pages: &[u32]) {
        let pages = pages.to_vec();
        contents.commit(&Commit { number, changes: 2 * number, bytes: 2048, pages });
    }

    #[test]
    fn a_read_that_is_not_the_last_write_is_an_error() {
        let mut contents = contents(64);
        let fresh = written(&mut contents, 4, 3);
        contents.check(4, &fresh).unwrap();
        commit(&mut contents, 1, &[5, 5]);
        let first = written(&mut contents, 4, 3);
        contents.check(4, &first).unwrap();
        commit(&mut contents, 2, &[5, 9]);
        let check = |bytes: &[u8], expect: &str| {
            let BadPage { page, what } = contents.check(4, bytes).unwrap_err();
            assert_eq!((page, what.as_str()), (5, expect));
        };
        check(
            &first,
            "it has version 2 of transaction 1, and version 3 of transaction 2 was written: that \
             write is lost",
        );
        check(
            &fresh,
            "it has version 0 of transaction 0, and version 3 of transaction 2 was written: that \
             write is lost",
        );
    }

    #[test]
    fn databases_of_other_files_are_told_apart() {
        assert_eq!(contents(64).identity(), contents(64).identity());
        assert_ne!(contents(64).identity(), contents(65).identity());
    }
}

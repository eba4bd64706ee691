//! The bytes of block and append blobs, piece by piece: in memory, or a file each.
//!
//! A piece is written once and never changed. It is durable before a record that names it
//! is; one that no record names is removed when the server starts.

use crate::record::Piece;
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are gathered before they are written.
const GATHER: usize = 1 << 20;

/// Where pieces are.
#[derive(Debug)]
pub struct Pieces {
    place: Place,
    next: Cell<u64>,
    /// How many records name each.
    named: RefCell<HashMap<u64, usize>>,
}

#[derive(Debug)]
enum Place {
    Memory(RefCell<HashMap<u64, Bytes>>),
    Folder(PathBuf),
}

impl Pieces {
    /// In memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            place: Place::Memory(RefCell::default()),
            next: Cell::new(1),
            named: RefCell::default(),
        }
    }

    /// In that folder, which is made if it is not there. Removes what is not in `named`.
    ///
    /// # Errors
    ///
    /// What the system says, or that a piece is not there or is cut.
    pub fn open(folder: PathBuf, named: impl Iterator<Item = Piece>) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let mut counts = HashMap::new();
        let mut lens = HashMap::new();
        for piece in named {
            *counts.entry(piece.id).or_insert(0) += 1;
            lens.insert(piece.id, piece.len);
        }
        let mut found = HashSet::new();
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| u64::from_str_radix(name, 16).ok());
            let len = id.and_then(|id| lens.get(&id).copied());
            match (id, len) {
                (Some(id), Some(len)) if entry.metadata()?.len() == len => {
                    found.insert(id);
                }
                (Some(_), None) => std::fs::remove_file(entry.path())?,
                _ => {}
            }
        }
        if let Some(lost) = lens.keys().find(|id| !found.contains(*id)) {
            let path = path_of(&folder, *lost);
            let reason = format!("{} is missing or cut: bytes of a blob", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let next = lens.keys().max().map_or(1, |last| last + 1);
        let place = Place::Folder(folder);
        Ok(Self { place, next: Cell::new(next), named: RefCell::new(counts) })
    }

    /// Begins a piece.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn begin(&self) -> io::Result<NewPiece> {
        let id = self.next.get();
        self.next.set(id + 1);
        let file = match &self.place {
            Place::Memory(_) => None,
            Place::Folder(folder) => {
                let path = path_of(folder, id);
                Some((File::create_new(&path)?, path))
            }
        };
        Ok(NewPiece { id, len: 0, gathered: BytesMut::new(), file })
    }

    /// Ends a piece: it is durable. It goes when nobody names it any more; whoever ends it
    /// is one who does.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn end(&self, mut new: NewPiece) -> io::Result<Piece> {
        let piece = Piece { id: new.id, len: new.len };
        match &self.place {
            Place::Memory(all) => {
                all.borrow_mut().insert(new.id, std::mem::take(&mut new.gathered).freeze());
            }
            Place::Folder(folder) => {
                new.write().await?;
                let folder = folder.clone();
                if let Some((file, _)) = new.file.take() {
                    let sync = move || {
                        file.sync_all()?;
                        File::open(&folder)?.sync_all()
                    };
                    blocking(sync).await?;
                }
            }
        }
        self.name(piece);
        Ok(piece)
    }

    /// One more record names it.
    pub fn name(&self, piece: Piece) {
        *self.named.borrow_mut().entry(piece.id).or_insert(0) += 1;
    }

    /// A record does not name it any more.
    pub fn forget(&self, piece: Piece) {
        let mut named = self.named.borrow_mut();
        if let Some(count) = named.get_mut(&piece.id) {
            *count -= 1;
            if *count > 0 {
                return;
            }
        }
        named.remove(&piece.id);
        match &self.place {
            Place::Memory(all) => drop(all.borrow_mut().remove(&piece.id)),
            // One that stays is removed at the next start.
            Place::Folder(folder) => drop(std::fs::remove_file(path_of(folder, piece.id))),
        }
    }

    /// Reads a part of a piece.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn read(&self, piece: Piece, offset: u64, len: usize) -> io::Result<Bytes> {
        match &self.place {
            Place::Memory(all) => {
                let all = all.borrow();
                let bytes = all.get(&piece.id).ok_or(io::ErrorKind::NotFound)?;
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                Ok(bytes.slice(start..start + len))
            }
            Place::Folder(folder) => {
                let path = path_of(folder, piece.id);
                let read = move || {
                    let mut bytes = vec![0; len];
                    File::open(&path)?.read_exact_at(&mut bytes, offset)?;
                    Ok(Bytes::from(bytes))
                };
                blocking(read).await
            }
        }
    }
}

/// A piece that is being written.
#[derive(Debug)]
pub struct NewPiece {
    id: u64,
    len: u64,
    gathered: BytesMut,
    file: Option<(File, PathBuf)>,
}

impl NewPiece {
    /// Adds to it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        self.gathered.extend_from_slice(bytes);
        if self.file.is_some() && self.gathered.len() >= GATHER {
            self.write().await
        } else {
            Ok(())
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        let Some((file, path)) = self.file.take() else { return Ok(()) };
        let bytes = self.gathered.split();
        let write = move || {
            let mut file = file;
            let result = file.write_all(&bytes);
            Ok((file, result))
        };
        let (file, result) = blocking(write).await?;
        self.file = Some((file, path));
        result
    }
}

impl Drop for NewPiece {
    fn drop(&mut self) {
        // It was not ended: whoever sent it has gone.
        if let Some((_, path)) = self.file.take() {
            drop(std::fs::remove_file(path));
        }
    }
}

fn path_of(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:016x}"))
}

async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(what).await.map_err(io::Error::other)?
}

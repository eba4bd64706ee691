//! The bytes of block and append blobs, in pieces: in memory, or one file per piece.
//!
//! Pieces are immutable. A piece is durable before any record refers to it. Pieces without
//! references are removed when the server starts.

use crate::record::Piece;
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Size of the write buffer.
pub(crate) const GATHER: usize = 1 << 20;

/// The storage of pieces.
#[derive(Debug)]
pub struct Pieces {
    place: Place,
    next: Cell<u64>,
    /// Reference counts by piece.
    named: RefCell<HashMap<u64, usize>>,
}

#[derive(Debug)]
enum Place {
    Memory(RefCell<HashMap<u64, Bytes>>),
    Folder(PathBuf),
}

impl Pieces {
    /// Creates a storage in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            place: Place::Memory(RefCell::default()),
            next: Cell::new(1),
            named: RefCell::default(),
        }
    }

    /// Opens a folder, which is created if necessary, and removes the pieces that are not in
    /// `named`.
    ///
    /// # Errors
    ///
    /// The system's error, or an error that names a missing or truncated piece.
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
            let reason =
                format!("{} is missing or truncated; it holds bytes of a blob", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let next = lens.keys().max().map_or(1, |last| last + 1);
        let place = Place::Folder(folder);
        Ok(Self { place, next: Cell::new(next), named: RefCell::new(counts) })
    }

    /// Starts a new piece.
    ///
    /// # Errors
    ///
    /// The system's error.
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

    /// Completes a piece and makes it durable. The piece has one reference, which the caller owns.
    ///
    /// # Errors
    ///
    /// The system's error.
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
                    blocking(move || {
                        file.sync_all()?;
                        File::open(&folder)?.sync_all()
                    })
                    .await?;
                }
            }
        }
        self.name(piece);
        Ok(piece)
    }

    /// Adds a reference to a piece.
    pub fn name(&self, piece: Piece) {
        *self.named.borrow_mut().entry(piece.id).or_insert(0) += 1;
    }

    /// Removes a reference. A piece without references is deleted.
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
            // If deletion fails, the piece is removed at the next start.
            Place::Folder(folder) => drop(std::fs::remove_file(path_of(folder, piece.id))),
        }
    }

    /// Reads a part of a piece.
    ///
    /// # Errors
    ///
    /// The system's error.
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
                blocking(move || {
                    let mut bytes = vec![0; len];
                    File::open(&path)?.read_exact_at(&mut bytes, offset)?;
                    Ok(Bytes::from(bytes))
                })
                .await
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
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// The system's error.
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
        // The piece was not completed, because the client disconnected.
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

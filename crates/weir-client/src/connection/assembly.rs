//! Answers that come in chunks, put together by the cookie on the wire.

use std::collections::HashMap;
use weir_proto::client::Body;
use weir_proto::{Errno, Extent};

/// An answer in full.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The data of a read; empty for anything else.
    Data(&'a [u8]),
    /// The extents of a block status.
    Extents(&'a [Extent]),
}

/// A chunk that does not belong to its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misfit;

#[derive(Debug, Default)]
struct Assembly {
    /// The first byte that is read.
    offset: u64,
    /// The bytes that are read.
    length: u32,
    /// The read's data, allocated with the first chunk that is not all of it.
    data: Vec<u8>,
    /// The bytes that came.
    covered: u64,
    extents: Vec<Extent>,
    errno: Option<Errno>,
}

/// The answers of a session with structured replies that are not complete.
#[derive(Debug, Default)]
pub(super) struct Assemblies(HashMap<u64, Assembly>);

impl Assemblies {
    pub(super) fn insert(&mut self, wire: u64, offset: u64, length: u32) {
        self.0.insert(wire, Assembly { offset, length, ..Assembly::default() });
    }

    /// Takes in a chunk. Hands the answer to `on_answer` when it is complete.
    pub(super) fn take(
        &mut self,
        (wire, done): (u64, bool),
        body: Body<'_>,
        on_answer: impl FnOnce(Result<Answer<'_>, Errno>),
    ) -> Result<(), Misfit> {
        let own = self.0.get_mut(&wire).ok_or(Misfit)?;
        if let Body::Data { offset: Some(offset), data } = body
            && done
            && offset == own.offset
            && data.len() == own.length as usize
            && own.errno.is_none()
        {
            self.0.remove(&wire);
            on_answer(Ok(Answer::Data(data)));
            return Ok(());
        }
        own.add(body)?;
        if !done {
            return Ok(());
        }
        let own = self.0.remove(&wire).ok_or(Misfit)?;
        match own.errno {
            Some(errno) => on_answer(Err(errno)),
            None if own.covered != u64::from(own.length) => return Err(Misfit),
            None if own.extents.is_empty() => on_answer(Ok(Answer::Data(&own.data))),
            None => on_answer(Ok(Answer::Extents(&own.extents))),
        }
        Ok(())
    }
}

impl Assembly {
    fn add(&mut self, body: Body<'_>) -> Result<(), Misfit> {
        match body {
            Body::Nothing => {}
            Body::Data { offset, data } => {
                let at = self.cover(offset.unwrap_or(self.offset), data.len())?;
                self.data[at..at + data.len()].copy_from_slice(data);
            }
            Body::Hole { offset, length } => {
                let at = self.cover(offset, length as usize)?;
                self.data[at..at + length as usize].fill(0);
            }
            // The reply to a read has no extents.
            Body::BlockStatus { .. } if self.length > 0 => return Err(Misfit),
            Body::BlockStatus { extents, .. } => self.extents.extend(extents),
            Body::Error { errno, .. } => self.errno = self.errno.or(Some(errno)),
        }
        Ok(())
    }

    /// Returns the place of a chunk in the data.
    fn cover(&mut self, offset: u64, length: usize) -> Result<usize, Misfit> {
        let at = offset.checked_sub(self.offset).ok_or(Misfit)?;
        let at = usize::try_from(at).map_err(|_| Misfit)?;
        let whole = self.length as usize;
        if at.checked_add(length).is_none_or(|end| end > whole) {
            return Err(Misfit);
        }
        self.data.resize(whole, 0);
        self.covered += length as u64;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::BlockState;

    fn data(offset: u64, data: &[u8]) -> Body<'_> {
        Body::Data { offset: Some(offset), data }
    }

    /// Answers a read of 8 bytes at 100 with chunks, the last of which is done.
    #[track_caller]
    fn check(chunks: &[Body<'_>], expect: Result<Result<&[u8], Errno>, Misfit>) {
        let mut assemblies = Assemblies::default();
        assemblies.insert(7, 100, 8);
        let mut answered = None;
        for (at, chunk) in chunks.iter().enumerate() {
            let done = at + 1 == chunks.len();
            let taken = assemblies.take((7, done), *chunk, |answer| {
                answered = Some(answer.map(|answer| match answer {
                    Answer::Data(data) => data.to_vec(),
                    Answer::Extents(extents) => panic!("{extents:?}"),
                }));
            });
            if let Err(misfit) = taken {
                assert_eq!(Err(misfit), expect);
                return;
            }
        }
        let answered = answered.expect("it is answered");
        assert_eq!(Ok(answered.as_deref().map_err(|errno| *errno)), expect);
    }

    #[test]
    fn chunks_become_one_answer() {
        check(&[data(100, b"abcdefgh")], Ok(Ok(b"abcdefgh")));
        check(&[data(104, b"efgh"), data(100, b"abcd")], Ok(Ok(b"abcdefgh")));
        let hole = Body::Hole { offset: 102, length: 4 };
        check(&[data(100, b"ab"), hole, data(106, b"gh"), Body::Nothing], Ok(Ok(b"ab\0\0\0\0gh")));
        let error = Body::Error { errno: Errno::Io, message: "", offset: None };
        check(&[data(100, b"ab"), error, Body::Nothing], Ok(Err(Errno::Io)));
    }

    #[test]
    fn answers_to_something_else_are_seen() {
        check(&[data(99, b"abcdefgh")], Err(Misfit));
        check(&[data(100, b"abcdefghi")], Err(Misfit));
        check(&[data(100, b"abcd"), Body::Nothing], Err(Misfit));
        check(&[Body::Hole { offset: u64::MAX, length: 8 }], Err(Misfit));
    }

    #[test]
    fn extents_of_several_chunks_follow_each_other() {
        let mut assemblies = Assemblies::default();
        assemblies.insert(1, 0, 0);
        // Block status of a context: two extents of 4 KiB, the second a hole.
        let reply = [0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 3];
        let mut bytes = vec![0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5];
        bytes.extend_from_slice(&1_u64.to_be_bytes());
        bytes.extend_from_slice(&20_u32.to_be_bytes());
        bytes.extend_from_slice(&1_u32.to_be_bytes());
        bytes.extend_from_slice(&reply);
        let session = weir_proto::client::Session {
            size: weir_units::Bytes::kib(8),
            flags: weir_proto::TransmissionFlags::NONE,
            block: weir_proto::BlockSizes::DEFAULT,
            structured: true,
            meta_context: Some(1),
        };
        let parsed = weir_proto::client::parse_reply(&bytes, &session, |_| None);
        let Ok(weir_proto::client::ParsedReply::Reply { reply, .. }) = parsed else {
            panic!("{parsed:?}")
        };
        let mut got = Vec::new();
        let taken = assemblies.take((1, true), reply.body, |answer| {
            if let Ok(Answer::Extents(extents)) = answer {
                got = extents.to_vec();
            }
        });
        assert_eq!(taken, Ok(()));
        let states: Vec<_> = got.iter().map(|own| own.state).collect();
        assert_eq!(states, [BlockState::NONE, BlockState::HOLE | BlockState::ZERO]);
    }
}

//! A chain of consecutive members as one source, whose decoded bytes form one sequence.
//!
//! The sequence ends before a member that starts with a record, because another range may begin to
//! read there.

use super::{
    decoder::Codec,
    members::{Members, NextMember},
    window::{Buffer, ByteSource, Ending},
};
use webtwin_base::error::Result;

/// Number of decoded bytes that are requested at a time. Most members are smaller and need one
/// call.
const CHUNK_BYTES: usize = 256 << 10;

/// Number of members that are kept although no record needs them, so that they are removed in
/// batches.
const PIECES_PER_RELEASE: usize = 256;

/// A member of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainMember {
    /// Position of the first byte of the member in the decoded sequence.
    pub position: u64,
    /// Start of the member in the file.
    pub start: u64,
    /// End of the member in the file, once known.
    pub end: Option<u64>,
}

/// The chain that begins with the member that was opened last, as a source of records. The offset
/// of a record is the start of the member in which it begins.
pub(super) struct Chain<'m, 'f, 'l> {
    pub members: &'m mut Members<'f, 'l>,
    /// Position of the first record, after line ends that belong to it.
    pub first: u64,
}

impl Chain<'_, '_, '_> {
    /// Returns the member that contains the byte at `position`, or the last member, with its index.
    fn piece(&self, position: u64) -> (usize, ChainMember) {
        let pieces = &self.members.pieces;
        let number = pieces.partition_point(|piece| piece.position <= position).max(1) - 1;
        (number, pieces[number])
    }

    fn end_of(&self, piece: ChainMember) -> u64 {
        piece.end.unwrap_or_else(|| self.members.decoder.at())
    }

    /// Opens the next member if it continues the content, and otherwise stores what follows.
    /// Returns true if it was opened.
    fn follow(&mut self, target: &mut Buffer) -> Result<bool> {
        let members = &mut *self.members;
        let end = members.decoder.at();
        members.pieces.last_mut().expect("a chain has a member").end = Some(end);
        let next = members.behind(end)?;
        match next {
            NextMember::Start(start) if start.continues() => {
                members.pieces.push(ChainMember { position: members.decoded_bytes, start: start.at(), end: None });
                target.append(members.first.filled());
                members.decoded_bytes += members.first.filled().len() as u64;
                Ok(true)
            }
            _ => {
                members.next = Some(next);
                Ok(false)
            }
        }
    }
}

impl ByteSource for Chain<'_, '_, '_> {
    fn more(&mut self, target: &mut Buffer) -> Result<Option<Ending>> {
        let length_before = target.filled().len();
        while target.filled().len() == length_before {
            match self.members.ending {
                None => {
                    let members = &mut *self.members;
                    members.ending = members.decoder.more(&mut members.blocks, members.limits, CHUNK_BYTES, target)?;
                    members.decoded_bytes += (target.filled().len() - length_before) as u64;
                }
                Some(Ending::Member) => {
                    if !self.follow(target)? {
                        return Ok(Some(Ending::Member));
                    }
                }
                bad => return Ok(bad),
            }
        }
        Ok(self.members.ending.filter(|&ended| ended != Ending::Member))
    }

    fn jump(&mut self, _: u64) -> bool {
        false
    }

    fn peek(&mut self, _: u64, _: usize) -> Result<Option<(Vec<u8>, bool)>> {
        Ok(None)
    }

    fn longest(&self) -> u64 {
        self.members.blocks.len().saturating_mul(self.members.decoder.ratio())
    }

    fn member_magics(&self) -> &'static [&'static [u8]] {
        const MAGICS: [&[u8]; 2] = [Codec::Gzip.magic(), Codec::Zstd.magic()];
        &MAGICS
    }

    fn offset(&self, position: u64) -> u64 {
        self.piece(position).1.start
    }

    fn length(&self, start: u64, upper: u64, last: bool) -> u64 {
        let (number, first) = self.piece(start);
        let is_start = start == first.position || start == self.first && number == 0;
        let pieces = &self.members.pieces;
        let end = match self.piece(upper) {
            (number, piece) if piece.position == upper && number > 0 => Some(self.end_of(pieces[number - 1])),
            (_, piece) if last => Some(self.end_of(piece)),
            _ => None,
        };
        end.filter(|_| is_start).map_or(0, |end| end - first.start)
    }

    fn file_position(&self, position: u64) -> u64 {
        let (number, piece) = self.piece(position);
        let encoded_bytes = self.end_of(piece) - piece.start;
        let decoded_bytes =
            self.members.pieces.get(number + 1).map_or(self.members.decoded_bytes, |next| next.position)
                - piece.position;
        let part = u128::from(encoded_bytes) * u128::from(position - piece.position) / u128::from(decoded_bytes.max(1));
        piece.start + part as u64
    }

    fn edge(&self, position: u64) -> Option<u64> {
        let pieces = &self.members.pieces;
        pieces.get(pieces.partition_point(|piece| piece.position < position)).map(|piece| piece.position)
    }

    fn pass(&mut self, position: u64) {
        let (number, _) = self.piece(position);
        if number > PIECES_PER_RELEASE {
            self.members.pieces.drain(..number);
        }
    }
}

//! Plain bytes of a file, up to the next member, as a source of records.

use super::{
    decoder::Codec,
    frames::skippable,
    members::{MemberStart, Members, NextMember},
    window::{Buffer, ByteSource, Ending},
};
use webtwin_base::error::Result;

/// Bytes of the file from a position on. Positions of the source are positions in the file.
pub(super) struct Plain<'m, 'f, 'l> {
    pub members: &'m mut Members<'f, 'l>,
    pub position: u64,
}

impl ByteSource for Plain<'_, '_, '_> {
    fn more(&mut self, output: &mut Buffer) -> Result<Option<Ending>> {
        let bytes = self.members.blocks.from(self.position)?;
        output.append(bytes);
        self.position += bytes.len() as u64;
        Ok(bytes.is_empty().then_some(Ending::File))
    }

    fn jump(&mut self, position: u64) -> bool {
        self.position = position;
        true
    }

    fn peek(&mut self, position: u64, length: usize) -> Result<Option<(Vec<u8>, bool)>> {
        let blocks = &mut self.members.blocks;
        let bytes = blocks.peek(position, length)?;
        let last = position + bytes.len() as u64 == blocks.len();
        Ok(Some((bytes, last)))
    }

    fn longest(&self) -> u64 {
        self.members.blocks.len()
    }

    fn is_member(&mut self, position: u64) -> Result<bool> {
        let head = self.members.blocks.peek(position, 8)?;
        if skippable(&head).is_some() {
            return Ok(matches!(self.members.behind(position)?, NextMember::Start(_) | NextMember::End));
        }
        Ok(Codec::detect(&head).is_some()
            && matches!(self.members.open(position)?, MemberStart::Record | MemberStart::More))
    }

    fn find_member(&mut self, start: u64, end: u64) -> Result<Option<u64>> {
        self.members.find_record(start, end)
    }
}

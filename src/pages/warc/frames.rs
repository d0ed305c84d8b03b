//! Zstd frames: the window and the dictionary that each needs, and the contexts that decode them.

use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::blocks::{BLOCK_BYTES, Blocks};
use crate::zstd_head::{FrameHead, HEAD_BYTES, LARGEST_WINDOW_LOG, MAGIC, refuse_window, window_log};
use webtwin_base::error::Result;
use webtwin_job::RecordLimits;

/// First bytes of a skippable frame that contains a dictionary, in `.warc.zst` files.
const DICTIONARY_MAGIC: &[u8] = &[0x5d, 0x2a, 0x4d, 0x18];

/// First bytes of a dictionary that has an id.
const ID_MAGIC: &[u8] = &[0x37, 0xa4, 0x30, 0xec];

/// Number of bytes that contain the head of a frame and its first block.
const FIRST_BLOCK_BYTES: usize = (128 << 10) + HEAD_BYTES + 3;

/// Maximum number of unsuccessful searches for dictionaries in one range. Bounds the reads that
/// forged frames can cause.
const MAX_VAIN_SEARCHES: usize = 4;

/// Decoding contexts: one for each dictionary of a file, and one without a dictionary.
pub(super) struct Frames {
    /// Contexts with the id of their dictionary, which is 0 if it has none, in the order of the
    /// file. The first context has no dictionary.
    contexts: Vec<(u32, DCtx<'static>)>,
    current: usize,
    window_bytes: u64,
    vain_searches: usize,
}

impl Frames {
    /// Makes no context yet, because most files need none.
    pub(super) fn new(limits: &RecordLimits) -> Frames {
        Frames { contexts: Vec::new(), current: 0, window_bytes: limits.window_bytes, vain_searches: 0 }
    }

    /// Makes the context without a dictionary, unless it exists.
    fn begin(&mut self) {
        if self.contexts.is_empty() {
            self.contexts.push((0, context(self.window_bytes)));
        }
    }

    /// Adds a dictionary. From now on it is used by frames that name it, and by frames that name
    /// none.
    pub(super) fn learn(&mut self, dictionary: &[u8]) {
        self.begin();
        let mut context = context(self.window_bytes);
        // If the dictionary cannot be loaded, each frame that needs it is reported as damaged.
        let _ = context.load_dictionary(dictionary);
        self.contexts.push((id(dictionary), context));
    }

    /// Selects the context for a frame that starts at `start`. If its dictionary is not known, the
    /// file before the frame is searched for it. Returns false if the frame cannot be decoded.
    ///
    /// # Errors
    /// Returns [`Error::Input`](webtwin_base::error::Error::Input) if the window exceeds the limit,
    /// and any error of the file.
    pub(super) fn choose(&mut self, blocks: &mut Blocks, start: u64, limits: &RecordLimits) -> Result<bool> {
        self.begin();
        let Some(head) = FrameHead::parse(&blocks.peek(start, HEAD_BYTES)?) else { return Ok(true) };
        if head.window > self.window_bytes {
            // A damaged head may look like a large window, but then its first block does not
            // decode.
            return match begins_well(&blocks.peek(start, FIRST_BLOCK_BYTES)?) {
                true => Err(refuse_window(head.window, self.window_bytes)),
                false => Ok(false),
            };
        }
        self.current = match head.dictionary {
            0 => self.contexts.len() - 1,
            wanted_id => match self.contexts.iter().rposition(|&(id, _)| id == wanted_id) {
                Some(context) => context,
                None => match self.search(blocks, start, limits, wanted_id)? {
                    true => self.contexts.len() - 1,
                    false => return Ok(false),
                },
            },
        };
        self.restart();
        Ok(true)
    }

    /// Selects the next context to try for a frame that names no dictionary and did not decode to a
    /// record with the previous context, or did not decode at all (`is_damaged`). Returns false if
    /// there is none.
    pub(super) fn choose_another(
        &mut self,
        blocks: &mut Blocks,
        start: u64,
        limits: &RecordLimits,
        is_damaged: bool,
    ) -> Result<bool> {
        let head = FrameHead::parse(&blocks.peek(start, HEAD_BYTES)?);
        if head.is_none_or(|head| head.dictionary != 0) {
            return Ok(false);
        }
        if self.current > 0 {
            self.current = 0;
        } else if is_damaged && self.contexts.len() == 1 && self.search(blocks, start, limits, 0)? {
            self.current = 1;
        } else {
            return Ok(false);
        }
        self.restart();
        Ok(true)
    }

    /// Returns the context that was selected last.
    pub(super) fn context(&mut self) -> &mut DCtx<'static> {
        &mut self.contexts[self.current].1
    }

    fn restart(&mut self) {
        self.context().reset(ResetDirective::SessionOnly).expect("a session can be reset at any time");
    }

    /// Searches backward from `end` for a dictionary with this id, and adds it. Returns false if
    /// there is none.
    fn search(&mut self, blocks: &mut Blocks, end: u64, limits: &RecordLimits, wanted_id: u32) -> Result<bool> {
        if self.vain_searches == MAX_VAIN_SEARCHES {
            return Ok(false);
        }
        let overlap = DICTIONARY_MAGIC.len() as u64 - 1;
        let mut end = end;
        while end > 0 {
            let start = end.saturating_sub(BLOCK_BYTES as u64);
            let bytes = blocks.peek(start, (end - start + overlap) as usize)?;
            for position in memchr::memmem::find_iter(&bytes, DICTIONARY_MAGIC).collect::<Vec<_>>().into_iter().rev() {
                if let Some(dictionary) = dictionary(blocks, start + position as u64, limits)?
                    && id(&dictionary) == wanted_id
                {
                    self.learn(&dictionary);
                    return Ok(true);
                }
            }
            end = start;
        }
        self.vain_searches += 1;
        Ok(false)
    }
}

/// True if the first bytes of a frame decode, with a window of any size.
fn begins_well(bytes: &[u8]) -> bool {
    let mut first = [0];
    let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(&mut first));
    let decoded_body = context(1 << LARGEST_WINDOW_LOG).decompress_stream(&mut output, &mut input);
    decoded_body.is_ok() && output.pos() > 0
}

fn context(window_bytes: u64) -> DCtx<'static> {
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(window_log(window_bytes))).expect("the logarithm is in range");
    context
}

/// Returns the id of a dictionary; 0 if it has none.
fn id(dictionary: &[u8]) -> u32 {
    let number = dictionary.strip_prefix(ID_MAGIC).and_then(|rest| rest.first_chunk());
    number.map_or(0, |&bytes| u32::from_le_bytes(bytes))
}

/// Returns the length of the content of a skippable frame, given its first eight bytes.
pub(super) fn skippable(head: &[u8]) -> Option<u64> {
    let head: &[u8; 8] = head.try_into().ok()?;
    let [mark, 0x2a, 0x4d, 0x18, length @ ..] = *head else { return None };
    (mark & 0xf0 == 0x50).then(|| u64::from(u32::from_le_bytes(length)))
}

/// Reads the dictionary in the skippable frame at `position`, compressed or not. Returns `None` if
/// there is no such frame.
pub(super) fn dictionary(blocks: &mut Blocks, position: u64, limits: &RecordLimits) -> Result<Option<Vec<u8>>> {
    let head = blocks.peek(position, 8)?;
    let Some(length) = skippable(&head).filter(|&length| head[0] == 0x5d && length <= limits.record_bytes) else {
        return Ok(None);
    };
    let frame = blocks.peek(position + 8, length as usize)?;
    if !frame.starts_with(MAGIC) {
        return Ok(Some(frame));
    }
    Ok(zstd::bulk::decompress(&frame, limits.record_bytes as usize).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_header_is_valid_with_any_window_unless_damaged() {
        // A raw block, in frames with windows of 2 GiB and 4 GiB.
        let frame = |window: u8| [MAGIC, &[0, window << 3, 33, 0, 0], b"text"].concat();
        assert!(begins_well(&frame(21)) && !begins_well(&frame(22)) && !begins_well(&frame(21)[..8]));
    }

    #[test]
    fn dictionary_may_have_an_id() {
        let dictionary = [ID_MAGIC, &[7, 0, 0, 0], &[0; 8]].concat();
        assert_eq!((id(&dictionary), id(b"any text")), (7, 0));
    }
}

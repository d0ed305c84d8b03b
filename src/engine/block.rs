//! What travels between workers: a parcel, which is a block of rows and the address its sender has written on it.
//!
//! timely's own containers are addressed row by row inside its exchange operator. Ours are filled per receiver before
//! they enter the dataflow, so that a parcel is routed by one look at its address and a row is copied once.
//!
//! A [`Block`] does not know the type of its rows, so timely's channels, sockets and operators are compiled for one
//! container, however many kinds of rows a program exchanges. It travels between processes as it lies in memory (little
//! endian), padded to 8 bytes like everything timely sends, and its rows are read where the socket has put them;
//! between the workers of one process it is moved.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use bytemuck::Pod;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message};

use super::buffers::{ANY, need};

#[cfg(target_endian = "big")]
compile_error!("rows travel as they lie in memory, which is defined for little-endian machines only");

/// Most bytes of a full block: large enough that the cost of a message vanishes, small enough to stay within a cache,
/// and with what timely puts before it four frames of a connection.
pub(super) const BLOCK_BYTES: usize = 255 << 10;

/// Bytes of the blocks that a worker fills for all others at a time.
const OPEN_BYTES: usize = 3840 << 10;

/// Least bytes of a full block, however many others there are.
const LEAST_BYTES: usize = 16 << 10;

/// Bytes of a full block among so many workers.
pub(super) fn bytes_of_full(workers: usize) -> usize {
    (OPEN_BYTES / workers).clamp(LEAST_BYTES, BLOCK_BYTES)
}

/// Rows of one fixed size as they lie in memory, aligned to 8 bytes.
#[derive(Clone, Default)]
pub(crate) struct Block {
    words: Vec<u64>,
    /// Instead of words, what another process has sent: in memory that timely reads into again once it is dropped.
    arrived: Option<Bytes>,
    used: usize,
    row_bytes: u32,
}

impl std::fmt::Debug for Block {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Block({} bytes in rows of {})", self.used, self.row_bytes)
    }
}

impl Block {
    /// Returns an empty block of so many bytes for rows of type `T`, with room for [`Block::room`] of them, in the
    /// memory of `spare` if it has enough.
    pub(crate) fn new<T: Pod>(bytes: usize, spare: Option<Block>) -> Block {
        const { assert!(align_of::<T>() <= align_of::<u64>() && size_of::<T>() <= u32::MAX as usize) };
        let words = size_of::<T>().max(bytes).div_ceil(8);
        let memory = spare.map(|block| block.words).filter(|memory| memory.len() >= words);
        // Asked for as zeros, memory is mapped only where rows are written.
        let words = memory.unwrap_or_else(|| vec![0; words]);
        Block { words, arrived: None, used: 0, row_bytes: size_of::<T>() as u32 }
    }

    /// Returns a block of `rows`, however many, in the memory of one of `spare` if they are worth it.
    pub(crate) fn of<T: Pod>(rows: &[T], spare: &mut Vec<Block>) -> Block {
        let bytes: &[u8] = bytemuck::cast_slice(rows);
        let is_worth_it = |room: usize| (room / 4..=room).contains(&bytes.len());
        let spare = spare.pop_if(|spare| is_worth_it(spare.words.len() * 8));
        let mut words = spare.map_or_else(|| vec![0; bytes.len().div_ceil(8)], |block| block.words);
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Block { words, arrived: None, used: bytes.len(), row_bytes: size_of::<T>() as u32 }
    }

    /// Rows of type `T` in a block of so many bytes, at least 1.
    pub(crate) const fn room<T>(bytes: usize) -> usize {
        match size_of::<T>() {
            0 => panic!("rows without a size cannot be counted"),
            row if row < bytes => bytes / row,
            _ => 1,
        }
    }

    /// Whether there is no room for another row of type `T`; true for a block without memory.
    #[inline]
    pub(crate) fn is_full<T>(&self) -> bool {
        self.used + size_of::<T>() > self.words.len() * 8
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When the block [is full](Block::is_full).
    #[inline]
    pub(crate) fn push<T: Pod>(&mut self, row: &T) {
        let end = self.used + size_of::<T>();
        bytemuck::cast_slice_mut::<u64, u8>(&mut self.words)[self.used..end].copy_from_slice(bytemuck::bytes_of(row));
        self.used = end;
    }

    /// The rows, in the order pushed.
    ///
    /// # Panics
    /// When the rows have another size than `T`.
    pub(crate) fn rows<T: Pod>(&self) -> &[T] {
        assert!(self.row_bytes as usize == size_of::<T>() || self.used == 0, "rows are read as what they were sent as");
        bytemuck::cast_slice(&self.padded()[..self.used])
    }

    /// The bytes of the rows, and more of no meaning.
    fn padded(&self) -> &[u8] {
        self.arrived.as_deref().unwrap_or_else(|| bytemuck::cast_slice(&self.words))
    }

    /// Copies a few rows out of the memory of a socket, which they would keep from being read into again.
    pub(super) fn leave_socket(&mut self) {
        if self.used < BLOCK_BYTES / 4
            && let Some(bytes) = self.arrived.take()
        {
            self.words = bytemuck::pod_collect_to_vec(&bytes[..self.used.next_multiple_of(8)]);
        }
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes of its own memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// Rows on their way from one worker to another.
#[derive(Debug, Clone, Default)]
pub(super) struct Parcel {
    /// The address.
    pub about: Address,
    /// The rows, if any.
    pub rows: Block,
}

/// What is written on a parcel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Address {
    /// Index of the worker it goes to.
    pub to: u32,
    /// Index of the worker it comes from.
    pub from: u32,
    /// Hash of the name of the collective call it belongs to.
    pub name: u64,
    /// Number of that call.
    pub call: u64,
    /// Parcels of the receiver that count and that the sender has taken since it last said so.
    pub taken: u32,
    /// 1 on the last parcel of a call from this sender to this receiver, otherwise 0.
    pub last: u16,
    /// Which of the kinds of rows that travel in this call.
    pub kind: u16,
    /// On the last parcel, what the sender tells with this call.
    pub told: u64,
}

impl Address {
    /// Whether a parcel with these rows is one of those on their way of which there are only so many, and which are
    /// acknowledged.
    pub(crate) fn is_counted(&self, rows: &Block) -> bool {
        self.last == 0 && !rows.is_empty()
    }

    /// Whether a parcel says what was taken and nothing else.
    pub(crate) fn is_acknowledgement(&self, rows: &Block) -> bool {
        self.last == 0 && rows.is_empty()
    }
}

impl Accountable for Parcel {
    fn record_count(&self) -> i64 {
        1
    }
}

impl ContainerBytes for Parcel {
    fn from_bytes(mut bytes: Bytes) -> Self {
        let about = bytemuck::pod_read_unaligned(&bytes.extract_to(size_of::<Address>()));
        let [used, row_bytes] = bytemuck::pod_read_unaligned(&bytes.extract_to(8));
        let mut rows = Block { words: Vec::new(), arrived: None, used: used as usize, row_bytes };
        if used > 0 && bytes.as_ptr().cast::<u64>().is_aligned() {
            rows.arrived = Some(bytes);
        } else {
            rows.words = bytemuck::pod_collect_to_vec(&bytes[..rows.used.next_multiple_of(8)]);
        }
        Parcel { about, rows }
    }

    fn length_in_bytes(&self) -> usize {
        size_of::<Address>() + 8 + self.rows.used.next_multiple_of(8)
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let block = &self.rows;
        let used = u32::try_from(block.used).expect("a row of variable length is far shorter than 4 GiB");
        let rows = &block.padded()[..block.used.next_multiple_of(8)];
        for part in [bytemuck::bytes_of(&self.about), bytemuck::bytes_of(&[used, block.row_bytes]), rows] {
            writer.write_all(part).expect("timely writes into memory it has measured before");
        }
    }
}

/// Delivers each parcel, whole, to the worker it is addressed to. Blocks that are emptied by it, for they go to other
/// processes, are put into the list.
pub(super) struct ByAddress(pub Rc<RefCell<Vec<Block>>>);

/// Most bytes that timely puts before a parcel: its header, the time, and where it comes from.
const ENVELOPE: usize = 128;

impl Distributor<Parcel> for ByAddress {
    fn partition<T: Clone, P: Push<Message<T, Parcel>>>(&mut self, parcel: &mut Parcel, time: &T, workers: &mut [P]) {
        let to = parcel.about.to as usize;
        need(parcel.length_in_bytes() + ENVELOPE);
        Message::push_at(parcel, time.clone(), &mut workers[to]);
        need(ANY);
        // What is written to a socket is left here.
        let left = std::mem::take(&mut parcel.rows);
        if left.held_bytes() > 0 {
            self.0.borrow_mut().push(left);
        }
    }

    /// Nothing is held back, so there is nothing to flush.
    fn flush<T: Clone, P: Push<Message<T, Parcel>>>(&mut self, _time: &T, _workers: &mut [P]) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use timely::bytes::arc::BytesMut;

    use super::*;

    fn there_and_back(sent: &Parcel) -> Parcel {
        let mut wire = Vec::new();
        sent.into_bytes(&mut wire);
        assert_eq!(wire.len(), sent.length_in_bytes());
        assert_eq!(wire.len() % 8, 0);
        Parcel::from_bytes(BytesMut::from(wire).freeze())
    }

    proptest! {
        #[test]
        fn a_parcel_arrives_as_it_was_sent(rows: Vec<[u32; 3]>, bytes: Vec<u8>, to: u32, from: u32, name: u64, call: u64) {
            let about = Address { to, from, name, call, taken: 7, last: 1, kind: 1, told: 9 };
            let arrived = there_and_back(&Parcel { about, rows: Block::of(&rows, &mut Vec::new()) });
            prop_assert_eq!((arrived.about, arrived.rows.rows::<[u32; 3]>()), (about, &rows[..]));
            let arrived = there_and_back(&Parcel { about, rows: Block::of(&bytes, &mut Vec::new()) });
            prop_assert_eq!(arrived.rows.rows::<u8>(), &bytes[..]);
        }

        #[test]
        fn a_block_holds_what_was_pushed(rows in proptest::collection::vec(any::<[u32; 3]>(), 0..1000)) {
            let mut block = Block::new::<[u32; 3]>(1 << 14, Some(Block::new::<u64>(1 << 15, None)));
            rows.iter().for_each(|row| block.push(row));
            prop_assert_eq!(block.rows::<[u32; 3]>(), &rows[..]);
        }
    }

    #[test]
    fn a_block_holds_its_bytes_and_always_at_least_one_row() {
        assert_eq!(Block::room::<[u32; 3]>(BLOCK_BYTES), 21_760);
        assert_eq!(Block::room::<[u64; 1 << 17]>(BLOCK_BYTES), 1);
        let mut block = Block::new::<[u32; 3]>(BLOCK_BYTES, None);
        while !block.is_full::<[u32; 3]>() {
            block.push(&[1, 2, 3]);
        }
        assert_eq!(block.rows::<[u32; 3]>().len(), 21_760);
        assert!(Block::default().is_full::<u8>());
    }

    #[test]
    fn open_blocks_take_no_more_with_more_workers_until_they_are_as_small_as_may_be() {
        assert_eq!(
            [1, 2, 15, 240, 1000].map(bytes_of_full),
            [BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, LEAST_BYTES, LEAST_BYTES]
        );
        assert!((16..=240).all(|workers| bytes_of_full(workers) * workers <= OPEN_BYTES));
    }

    #[test]
    #[should_panic(expected = "read as what they were sent as")]
    fn rows_are_not_read_as_rows_of_another_size() {
        Block::of(&[1u32, 2], &mut Vec::new()).rows::<u64>();
    }
}

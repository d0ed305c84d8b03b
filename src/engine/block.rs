//! Parcels, which travel between workers. A parcel is a block of rows and the address that its
//! sender has written on it.
//!
//! timely's own containers are addressed row by row inside its exchange operator. The containers of
//! this module are filled per receiver before they enter the dataflow. So a parcel is routed by its
//! one address, and a row is copied once.
//!
//! The type [`Block`] is independent of the type of its rows. So timely's channels, sockets and
//! operators are compiled for one container, however many types of rows a program exchanges.
//! Between processes a block is sent as its memory representation (little endian), padded to 8
//! bytes like everything that timely sends, and its rows are read from the buffer of the socket.
//! Between the workers of one process a block is moved.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use bytemuck::Pod;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message};

use super::buffers::{ANY_LENGTH, need};

#[cfg(target_endian = "big")]
compile_error!("rows travel as they lie in memory, which is defined for little-endian machines only");

/// Maximum size of a full block, in bytes. It is large enough that the fixed cost of a message is
/// negligible, and small enough for a cache. Together with the header that timely puts before it, a
/// block fills four frames of a connection.
pub(super) const BLOCK_BYTES: usize = 255 << 10;

/// Total size of the blocks that a worker fills for all receivers at a time, in bytes.
const OPEN_BYTES: usize = 3840 << 10;

/// Minimum size of a full block in bytes, for any number of workers.
const MIN_BYTES: usize = 16 << 10;

/// Returns the size of a full block in bytes, for the given number of workers.
pub(super) fn bytes_of_full(workers: usize) -> usize {
    (OPEN_BYTES / workers).clamp(MIN_BYTES, BLOCK_BYTES)
}

/// Rows of one fixed size in their memory representation, aligned to 8 bytes.
#[derive(Clone, Default)]
pub(crate) struct Block {
    words: Vec<u64>,
    /// Bytes received from another process, which replace `words`. timely reuses their memory as
    /// soon as they are dropped.
    received_bytes: Option<Bytes>,
    used_words: usize,
    row_bytes: u32,
}

impl std::fmt::Debug for Block {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Block({} bytes in rows of {})", self.used_words, self.row_bytes)
    }
}

impl Block {
    /// Returns an empty block of at least `bytes` bytes for [`Block::capacity`] rows of type `T`.
    /// It reuses the memory of `spare` if that is large enough.
    pub(crate) fn new<T: Pod>(bytes: usize, spare: Option<Block>) -> Block {
        const { assert!(align_of::<T>() <= align_of::<u64>() && size_of::<T>() <= u32::MAX as usize) };
        let words = size_of::<T>().max(bytes).div_ceil(8);
        let memory = spare.map(|block| block.words).filter(|memory| memory.len() >= words);
        // The operating system maps zeroed memory lazily, so only pages with rows take memory.
        let words = memory.unwrap_or_else(|| vec![0; words]);
        Block { words, received_bytes: None, used_words: 0, row_bytes: size_of::<T>() as u32 }
    }

    /// Returns a block of all `rows`. It reuses the memory of the last block of `spare` if the rows
    /// fill at least a quarter of it and fit.
    pub(crate) fn from_rows<T: Pod>(rows: &[T], spare: &mut Vec<Block>) -> Block {
        let bytes: &[u8] = bytemuck::cast_slice(rows);
        let is_worth_it = |capacity: usize| (capacity / 4..=capacity).contains(&bytes.len());
        let spare = spare.pop_if(|spare| is_worth_it(spare.words.len() * 8));
        let mut words = spare.map_or_else(|| vec![0; bytes.len().div_ceil(8)], |block| block.words);
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Block { words, received_bytes: None, used_words: bytes.len(), row_bytes: size_of::<T>() as u32 }
    }

    /// Returns the number of rows of type `T` that fit into a block of `bytes` bytes, at least 1.
    pub(crate) const fn capacity<T>(bytes: usize) -> usize {
        match size_of::<T>() {
            0 => panic!("rows without a size cannot be counted"),
            row if row < bytes => bytes / row,
            _ => 1,
        }
    }

    /// True if another row of type `T` does not fit. A block without memory is always full.
    #[inline]
    pub(crate) fn is_full<T>(&self) -> bool {
        self.used_words + size_of::<T>() > self.words.len() * 8
    }

    /// Appends a row.
    ///
    /// # Panics
    /// Panics if the block [is full](Block::is_full).
    #[inline]
    pub(crate) fn push<T: Pod>(&mut self, row: &T) {
        let end = self.used_words + size_of::<T>();
        bytemuck::cast_slice_mut::<u64, u8>(&mut self.words)[self.used_words..end]
            .copy_from_slice(bytemuck::bytes_of(row));
        self.used_words = end;
    }

    /// Returns the rows in the order pushed.
    ///
    /// # Panics
    /// Panics if the rows have another size than `T`.
    pub(crate) fn rows<T: Pod>(&self) -> &[T] {
        assert!(
            self.row_bytes as usize == size_of::<T>() || self.used_words == 0,
            "rows are read as what they were sent as"
        );
        bytemuck::cast_slice(&self.padded()[..self.used_words])
    }

    /// Returns the bytes of the rows, followed by padding without meaning.
    fn padded(&self) -> &[u8] {
        self.received_bytes.as_deref().unwrap_or_else(|| bytemuck::cast_slice(&self.words))
    }

    /// Copies the rows out of the socket's buffer if they are few, so that timely can reuse the
    /// buffer.
    pub(super) fn leave_socket(&mut self) {
        if self.used_words < BLOCK_BYTES / 4
            && let Some(bytes) = self.received_bytes.take()
        {
            self.words = bytemuck::pod_collect_to_vec(&bytes[..self.used_words.next_multiple_of(8)]);
        }
    }

    /// True if the block has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.used_words == 0
    }

    /// Returns the size of the block's own memory in bytes, which excludes received bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// Rows in transit from one worker to another.
#[derive(Debug, Clone, Default)]
pub(super) struct Parcel {
    /// Receiver, sender and collective call.
    pub address: ParcelAddress,
    /// The rows, if any.
    pub rows: Block,
}

/// Address of a parcel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct ParcelAddress {
    /// Index of the receiving worker.
    pub to: u32,
    /// Index of the sending worker.
    pub from: u32,
    /// Hash of the name of the collective call.
    pub name: u64,
    /// Number of the collective call.
    pub call: u64,
    /// Acknowledgement: number of counted parcels of the receiver that the sender has taken since
    /// its last acknowledgement.
    pub taken_parcels: u32,
    /// 1 on the last parcel of a call from this sender to this receiver, 0 on all others.
    pub last: u16,
    /// Index of the row type, for calls that exchange rows of several types.
    pub kind: u16,
    /// Number that the sender reports with this call. Valid on the last parcel only.
    pub notice: u64,
}

impl ParcelAddress {
    /// True if a parcel with these rows counts towards the window of parcels in flight and is
    /// acknowledged.
    pub(crate) fn is_counted(&self, rows: &Block) -> bool {
        self.last == 0 && !rows.is_empty()
    }

    /// True if a parcel with these rows carries an acknowledgement and nothing else.
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
        let parcel_address = bytemuck::pod_read_unaligned(&bytes.extract_to(size_of::<ParcelAddress>()));
        let [used_words, row_bytes] = bytemuck::pod_read_unaligned(&bytes.extract_to(8));
        let mut rows = Block { words: Vec::new(), received_bytes: None, used_words: used_words as usize, row_bytes };
        // A received block stays in the socket's buffer if its rows are aligned there; only
        // misaligned blocks are copied.
        if used_words > 0 && bytes.as_ptr().cast::<u64>().is_aligned() {
            rows.received_bytes = Some(bytes);
        } else {
            rows.words = bytemuck::pod_collect_to_vec(&bytes[..rows.used_words.next_multiple_of(8)]);
        }
        Parcel { address: parcel_address, rows }
    }

    fn length_in_bytes(&self) -> usize {
        size_of::<ParcelAddress>() + 8 + self.rows.used_words.next_multiple_of(8)
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let block = &self.rows;
        let used_words = u32::try_from(block.used_words).expect("a row of variable length is far shorter than 4 GiB");
        let rows = &block.padded()[..block.used_words.next_multiple_of(8)];
        for part in [bytemuck::bytes_of(&self.address), bytemuck::bytes_of(&[used_words, block.row_bytes]), rows] {
            writer.write_all(part).expect("timely writes into memory it has measured before");
        }
    }
}

/// Routes each parcel as a whole to the worker that it is addressed to. Blocks that were copied to
/// the socket of another process are collected in the list for reuse.
pub(super) struct AddressRouter(pub Rc<RefCell<Vec<Block>>>);

/// Maximum size of what timely puts before a parcel, in bytes: its header, the time and the sender.
const ENVELOPE: usize = 128;

impl Distributor<Parcel> for AddressRouter {
    fn partition<T: Clone, P: Push<Message<T, Parcel>>>(&mut self, parcel: &mut Parcel, time: &T, workers: &mut [P]) {
        let to = parcel.address.to as usize;
        need(parcel.length_in_bytes() + ENVELOPE);
        Message::push_at(parcel, time.clone(), &mut workers[to]);
        need(ANY_LENGTH);
        // A parcel for another process is only serialised, so its block is still here and can be
        // reused.
        let left = std::mem::take(&mut parcel.rows);
        if left.held_bytes() > 0 {
            self.0.borrow_mut().push(left);
        }
    }

    /// Does nothing, because no parcel is buffered.
    fn flush<T: Clone, P: Push<Message<T, Parcel>>>(&mut self, _time: &T, _workers: &mut [P]) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use timely::bytes::arc::BytesMut;

    use super::*;

    fn there_and_back(parcel: &Parcel) -> Parcel {
        let mut wire = Vec::new();
        parcel.into_bytes(&mut wire);
        assert_eq!(wire.len(), parcel.length_in_bytes());
        assert_eq!(wire.len() % 8, 0);
        Parcel::from_bytes(BytesMut::from(wire).freeze())
    }

    proptest! {
        #[test]
        fn parcel_arrives_unchanged(rows: Vec<[u32; 3]>, bytes: Vec<u8>, to: u32, from: u32, name: u64, call: u64) {
            let parcel_address = ParcelAddress { to, from, name, call, taken_parcels: 7, last: 1, kind: 1, notice: 9 };
            let received = there_and_back(&Parcel { address: parcel_address, rows: Block::from_rows(&rows, &mut Vec::new()) });
            prop_assert_eq!((received.address, received.rows.rows::<[u32; 3]>()), (parcel_address, &rows[..]));
            let received = there_and_back(&Parcel { address: parcel_address, rows: Block::from_rows(&bytes, &mut Vec::new()) });
            prop_assert_eq!(received.rows.rows::<u8>(), &bytes[..]);
        }

        #[test]
        fn block_contains_the_pushed_rows(rows in proptest::collection::vec(any::<[u32; 3]>(), 0..1000)) {
            let mut block = Block::new::<[u32; 3]>(1 << 14, Some(Block::new::<u64>(1 << 15, None)));
            rows.iter().for_each(|row| block.push(row));
            prop_assert_eq!(block.rows::<[u32; 3]>(), &rows[..]);
        }
    }

    #[test]
    fn block_is_limited_in_bytes_but_contains_at_least_one_row() {
        assert_eq!(Block::capacity::<[u32; 3]>(BLOCK_BYTES), 21_760);
        assert_eq!(Block::capacity::<[u64; 1 << 17]>(BLOCK_BYTES), 1);
        let mut block = Block::new::<[u32; 3]>(BLOCK_BYTES, None);
        while !block.is_full::<[u32; 3]>() {
            block.push(&[1, 2, 3]);
        }
        assert_eq!(block.rows::<[u32; 3]>().len(), 21_760);
        assert!(Block::default().is_full::<u8>());
    }

    #[test]
    fn open_blocks_take_constant_memory_down_to_the_minimum_size() {
        assert_eq!(
            [1, 2, 15, 240, 1000].map(bytes_of_full),
            [BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, MIN_BYTES, MIN_BYTES]
        );
        assert!((16..=240).all(|workers| bytes_of_full(workers) * workers <= OPEN_BYTES));
    }

    #[test]
    #[should_panic(expected = "read as what they were sent as")]
    fn rejects_rows_of_another_size() {
        Block::from_rows(&[1u32, 2], &mut Vec::new()).rows::<u64>();
    }
}

//! What travels between workers: a parcel of rows, addressed by the sender.
//!
//! timely's own containers are addressed row by row inside its exchange operator. Ours are filled per receiver before
//! they enter the dataflow, so that a parcel is routed by one look at its address and a row is copied once.
//!
//! A [`Block`] travels between processes as it lies in memory (little endian), padded to 8 bytes like everything timely
//! sends; a `Vec` of other rows goes through serde. Between the workers of one process both are moved, not copied.

use std::io::Write;

use bytemuck::Pod;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message};

#[cfg(target_endian = "big")]
compile_error!("rows travel as they lie in memory, which is defined for little-endian machines only");

/// Bytes of a full block: large enough that the cost of a message vanishes, small enough to stay within a cache and
/// well within the 1 MiB buffers of timely's network threads.
const BLOCK_BYTES: usize = 256 << 10;

/// Rows of fixed layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<T>(pub Vec<T>);

impl<T> Block<T> {
    /// Rows of a full block.
    pub const ROWS: usize = {
        let row = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        if row < BLOCK_BYTES { BLOCK_BYTES / row } else { 1 }
    };
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Block(Vec::new())
    }
}

impl<T> Accountable for Block<T> {
    fn record_count(&self) -> i64 {
        self.0.len() as i64
    }
}

impl<T: Pod> ContainerBytes for Block<T> {
    fn from_bytes(bytes: Bytes) -> Self {
        let (count, rows) = bytes.split_at(8);
        let count = u64::from_le_bytes(count.try_into().expect("split_at(8) gives 8 bytes")) as usize;
        Block(bytemuck::pod_collect_to_vec(&rows[..count * size_of::<T>()]))
    }

    fn length_in_bytes(&self) -> usize {
        8 + size_of_val(&self.0[..]).next_multiple_of(8)
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let rows: &[u8] = bytemuck::cast_slice(&self.0);
        let padding = rows.len().next_multiple_of(8) - rows.len();
        for part in [&(self.0.len() as u64).to_le_bytes(), rows, &[0; 8][..padding]] {
            writer.write_all(part).expect("timely writes into memory it has measured before");
        }
    }
}

/// Rows on their way from one worker to another.
#[derive(Debug, Clone, Default)]
pub(super) struct Parcel<B> {
    /// Index of the worker it goes to.
    pub to: u32,
    /// Index of the worker it comes from.
    pub from: u32,
    /// The call it belongs to, by a hash of its name.
    pub call: u64,
    /// The rows.
    pub rows: B,
}

impl<B: Accountable> Accountable for Parcel<B> {
    fn record_count(&self) -> i64 {
        self.rows.record_count()
    }
}

impl<B: ContainerBytes> ContainerBytes for Parcel<B> {
    fn from_bytes(mut bytes: Bytes) -> Self {
        let [to, from] = bytemuck::pod_read_unaligned(&bytes.extract_to(8));
        let call = bytemuck::pod_read_unaligned(&bytes.extract_to(8));
        Parcel { to, from, call, rows: B::from_bytes(bytes) }
    }

    fn length_in_bytes(&self) -> usize {
        16 + self.rows.length_in_bytes()
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        for part in [bytemuck::bytes_of(&[self.to, self.from]), &self.call.to_le_bytes()] {
            writer.write_all(part).expect("timely writes into memory it has measured before");
        }
        self.rows.into_bytes(writer);
    }
}

/// Delivers each parcel, whole, to the worker it is addressed to.
pub(super) struct ByAddress;

impl<B: Accountable + Default> Distributor<Parcel<B>> for ByAddress {
    fn partition<T: Clone, P: Push<Message<T, Parcel<B>>>>(
        &mut self,
        parcel: &mut Parcel<B>,
        time: &T,
        workers: &mut [P],
    ) {
        let to = parcel.to as usize;
        Message::push_at(parcel, time.clone(), &mut workers[to]);
    }

    /// Nothing is held back, so there is nothing to flush.
    fn flush<T: Clone, P: Push<Message<T, Parcel<B>>>>(&mut self, _time: &T, _workers: &mut [P]) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use timely::bytes::arc::BytesMut;

    use super::*;

    fn there_and_back<C: ContainerBytes>(sent: &C) -> C {
        let mut wire = Vec::new();
        sent.into_bytes(&mut wire);
        assert_eq!(wire.len(), sent.length_in_bytes());
        assert_eq!(wire.len() % 8, 0);
        C::from_bytes(BytesMut::from(wire).freeze())
    }

    proptest! {
        #[test]
        fn a_block_arrives_as_it_was_sent(rows: Vec<[u32; 3]>, bytes: Vec<u8>, to: u32, from: u32, call: u64) {
            prop_assert_eq!(there_and_back(&Block(rows.clone())).0, rows);
            let parcel = there_and_back(&Parcel { to, from, call, rows: Block(bytes.clone()) });
            prop_assert_eq!((parcel.to, parcel.from, parcel.call, parcel.rows.0), (to, from, call, bytes));
        }

        #[test]
        fn rows_of_variable_length_arrive_as_they_were_sent(rows: Vec<String>, to: u32, from: u32) {
            let parcel = there_and_back(&Parcel { to, from, call: 0, rows: rows.clone() });
            prop_assert_eq!((parcel.to, parcel.from, parcel.rows), (to, from, rows));
        }
    }

    #[test]
    fn a_block_holds_256_kib_and_always_at_least_one_row() {
        assert_eq!(Block::<[u32; 3]>::ROWS, 21_845);
        assert_eq!(Block::<[u8; 1 << 20]>::ROWS, 1);
    }
}

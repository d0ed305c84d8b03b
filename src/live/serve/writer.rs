//! The single writer of the index. Readers of records send it batches, which it acknowledges once
//! they are on disk.
//!
//! The writer takes all waiting batches, adds their records, and syncs the log once for the whole
//! group. Requests that read the index do not wait for this: the lock is released while the disk is
//! syncing, and between two pages if a request waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use tokio::sync::watch;

use crate::answer::AddedPageAnswer;
use crate::digest::PageDigest;
use crate::index::{LiveIndex, UnsyncedWrites};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_pages::url::CanonicalUrl;

/// Maximum number of batches that wait for the writer.
const MAX_WAITING: usize = 64;

/// Number of items from which a group is synced even if more batches wait.
const GROUP: usize = 4096;

/// Time without batches after which background work of the index is advanced.
const IDLE_TIME: Duration = Duration::from_millis(200);

/// Time for waiting readers to take the lock.
const PAUSE: Duration = Duration::from_micros(20);

/// Item for the writer to add.
#[derive(Debug)]
pub(crate) enum WriterItem {
    /// A page.
    Page(Box<PageDigest>),
    /// A URL that was fetched and gave no page.
    Missing(CanonicalUrl),
}

/// Answers to the items of a batch, in order, with `None` for a URL without a page; or the reason
/// for which the batch is not acknowledged.
type Reply = std::result::Result<Vec<Option<AddedPageAnswer>>, String>;

struct Batch {
    items: Vec<WriterItem>,
    /// The file that the items are from, and the offset up to which it has been read.
    file: Option<(String, u64)>,
    reply: Sender<Reply>,
}

/// The index: written by one thread, and read by requests.
pub(crate) struct SharedIndex {
    index: RwLock<LiveIndex>,
    /// Number of readers that wait for the lock.
    asking: AtomicUsize,
    /// Sequence number of the newest published advice.
    pub(crate) advice: watch::Sender<u64>,
}

impl SharedIndex {
    /// Locks the index for reading.
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, LiveIndex> {
        self.asking.fetch_add(1, Ordering::SeqCst);
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        self.asking.fetch_sub(1, Ordering::SeqCst);
        index
    }

    /// Locks the index for writing, after all waiting readers have had their turn.
    fn index_to_write(&self) -> RwLockWriteGuard<'_, LiveIndex> {
        while self.asking.load(Ordering::SeqCst) > 0 {
            sleep(PAUSE);
        }
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends batches to the writer.
#[derive(Clone)]
pub(crate) struct BatchSender {
    send: SyncSender<Batch>,
}

impl BatchSender {
    /// Starts the writer thread. The thread ends when all senders are dropped or the index fails,
    /// and then calls `on_end`.
    pub(crate) fn start(
        index: LiveIndex,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<(Arc<SharedIndex>, BatchSender, JoinHandle<Result<()>>)> {
        let last = index.figures().advice;
        let (index, asking) = (RwLock::new(index), AtomicUsize::new(0));
        let shared_index = Arc::new(SharedIndex { index, asking, advice: watch::Sender::new(last) });
        let (send, receiver) = sync_channel(MAX_WAITING);
        let thread_index = Arc::clone(&shared_index);
        let thread = threads::start(move || {
            let result = write(&thread_index, &receiver);
            on_end();
            result
        })?;
        Ok((shared_index, BatchSender { send }, thread))
    }

    /// Adds items; returns once they are on disk.
    ///
    /// # Errors
    /// Returns the reason for which the items are not acknowledged. Some of the items may have been
    /// added nevertheless; they may be sent again.
    pub(crate) fn add(&self, items: Vec<WriterItem>, file: Option<(String, u64)>) -> Reply {
        let (reply, answer) = channel();
        let ended_error = |_| "the server is stopping; send the records again after its restart".to_string();
        self.send.send(Batch { items, file, reply }).map_err(|_| ended_error(()))?;
        answer.recv().map_err(|_| ended_error(()))?
    }
}

fn write(shared_index: &SharedIndex, receiver: &Receiver<Batch>) -> Result<()> {
    loop {
        let mut group = match receiver.recv_timeout(IDLE_TIME) {
            Ok(batch) => vec![batch],
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let mut pages: usize = group.iter().map(|batch| batch.items.len()).sum();
        while pages < GROUP
            && let Ok(batch) = receiver.try_recv()
        {
            pages += batch.items.len();
            group.push(batch);
        }
        let mut replies = Vec::with_capacity(group.len());
        for batch in group {
            let answers = batch.items.into_iter().map(|item| add(shared_index, item)).collect::<Result<Vec<_>>>()?;
            if let Some((name, offset)) = batch.file {
                shared_index.index_to_write().note_file(&name, offset);
            }
            replies.push((batch.reply, answers));
        }
        let flushed = shared_index.index_to_write().flush();
        match flushed {
            Ok(unsynced) => {
                publish(shared_index, unsynced)?;
                for (reply, answers) in replies {
                    // The send fails if the request has been cancelled, which is no error.
                    let _ = reply.send(Ok(answers));
                }
            }
            // The disk may be full, for example. The next group flushes the pending records again.
            Err(error @ Error::Storage { .. }) => {
                notify(format_args!("warning: pages were not written, and are not acknowledged: {error}"));
                for (reply, _) in replies {
                    let why = "the index cannot be written; see the log of the server, and send the records again";
                    let _ = reply.send(Err(why.into()));
                }
                sleep(IDLE_TIME);
            }
            Err(error) => return Err(error),
        }
    }
}

fn add(shared_index: &SharedIndex, item: WriterItem) -> Result<Option<AddedPageAnswer>> {
    let mut index = shared_index.index_to_write();
    match item {
        WriterItem::Page(digest) => index.add(*digest).map(Some),
        WriterItem::Missing(url) => {
            index.note_missing(&url);
            Ok(None)
        }
    }
}

/// Waits for the disk, and publishes advice. If the sync fails, it is unknown which records are on
/// disk, so the error ends the writer.
fn publish(shared_index: &SharedIndex, unsynced: Option<UnsyncedWrites>) -> Result<()> {
    let Some(unsynced) = unsynced else { return shared_index.index_to_write().tend() };
    unsynced.sync()?;
    shared_index.index_to_write().synced(&unsynced)?;
    let last = shared_index.index().figures().advice;
    shared_index.advice.send_if_modified(|advice| std::mem::replace(advice, last) != last);
    Ok(())
}

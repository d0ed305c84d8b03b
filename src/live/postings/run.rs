//! A run: an immutable file with the sorted postings of a range of pages.
//!
//! ```text
//! block     340 x (hash: u64, page: u32), padded with NO_PAGE; 8 bytes of zeros; checksum: u64
//! ...
//! firsts    the first hash of each block: u64
//! filter    words of the filter over all hashes: u64
//! foot      6 x u64: MAGIC, number of blocks, words of the filter, first page, end of the pages,
//!           checksum of firsts, filter and the other words of the foot
//! ```
//!
//! # Memory
//! The first hash of each block, and the filter: 8 bits for each chunk.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::filter::Filter;
use webtwin_base::error::{Error, Result};

/// Hash of a chunk, and a page that has the chunk.
pub(super) type Posting = (u64, u32);

const MAGIC: u64 = 0x3130_6e75_725f_7477;

/// Size of a block, in bytes.
const BLOCK: usize = 4096;

const POSTINGS_PER_BLOCK: usize = 340;

/// Page number that pads the last block.
const NO_PAGE: u32 = u32::MAX;

/// Number of words at the end of the file.
const FOOT: usize = 6;

/// An open run.
#[derive(Debug)]
pub(super) struct PostingsFile {
    path: PathBuf,
    file: File,
    pages: Range<u32>,
    first_hashes: Vec<u64>,
    filter: Filter,
}

impl PostingsFile {
    /// Returns the path of the run of a range of pages.
    fn path(folder: &Path, pages: &Range<u32>) -> PathBuf {
        folder.join(format!("{:010}-{:010}.run", pages.start, pages.end))
    }

    /// Writes a run of sorted postings, at most `count` of them. The run is on disk under its final
    /// name when this function returns.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the run cannot be written, and any error of the iterator of
    /// postings.
    pub(super) fn write(
        folder: &Path,
        pages: Range<u32>,
        count: u64,
        postings: impl Iterator<Item = Result<Posting>>,
    ) -> Result<PostingsFile> {
        let path = PostingsFile::path(folder, &pages);
        let temporary = path.with_extension("part");
        let failed = |cause| Error::storage(temporary.display().to_string(), cause);
        let mut writer = BufWriter::with_capacity(1 << 18, File::create(&temporary).map_err(failed)?);
        let (mut block, mut first_hashes, mut filter) =
            (Vec::with_capacity(BLOCK), Vec::new(), Filter::for_keys(count));
        let mut last = None;
        for posting in postings {
            let (hash, page) = posting?;
            if block.is_empty() {
                first_hashes.push(hash);
            }
            // The postings are sorted, so comparison with the previous hash inserts each key once.
            if last.replace(hash) != Some(hash) {
                filter.insert(hash);
            }
            block.extend(hash.to_le_bytes());
            block.extend(page.to_le_bytes());
            if block.len() == POSTINGS_PER_BLOCK * 12 {
                end_block(&mut block, &mut writer).map_err(failed)?;
            }
        }
        if !block.is_empty() {
            end_block(&mut block, &mut writer).map_err(failed)?;
        }
        let mut rest: Vec<u64> = first_hashes.iter().chain(filter.words()).copied().collect();
        let numbers = [first_hashes.len() as u64, filter.words().len() as u64, pages.start.into(), pages.end.into()];
        rest.push(MAGIC);
        rest.extend(numbers);
        rest.push(xxh3_64(&le_bytes(&rest)));
        writer.write_all(&le_bytes(&rest)).map_err(failed)?;
        let file = writer.into_inner().map_err(|cause| failed(cause.into_error()))?;
        // The content is synced before the rename, and the folder after it, so that a run under its
        // final name is complete even after a crash.
        file.sync_all().map_err(failed)?;
        fs::rename(&temporary, &path).map_err(failed)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let file = File::open(&path).map_err(failed)?;
        Ok(PostingsFile { path, file, pages, first_hashes, filter })
    }

    /// Opens a run; `None` if the file has another format, or if the part that is read here is
    /// damaged.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the file cannot be read.
    pub(super) fn open(path: &Path) -> Result<Option<PostingsFile>> {
        let failed = |cause| Error::storage(path.display().to_string(), cause);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let Some(foot_offset) = length.checked_sub(8 * FOOT as u64) else { return Ok(None) };
        let foot = words_at(&file, foot_offset, FOOT).map_err(failed)?;
        let [magic, blocks, words, first, end, checksum] = foot[..] else { return Ok(None) };
        let rest = blocks.checked_add(words).filter(|rest| {
            let expected = blocks.checked_mul(BLOCK as u64).zip(rest.checked_mul(8));
            magic == MAGIC && expected.is_some_and(|(blocks, rest)| blocks.checked_add(rest) == Some(foot_offset))
        });
        let (Some(rest), Ok(first), Ok(end)) = (rest, u32::try_from(first), u32::try_from(end)) else {
            return Ok(None);
        };
        let mut first_hashes = words_at(&file, blocks * BLOCK as u64, rest as usize + FOOT - 1).map_err(failed)?;
        if xxh3_64(&le_bytes(&first_hashes)) != checksum {
            return Ok(None);
        }
        first_hashes.truncate(rest as usize);
        let Some(filter) = Filter::from_words(first_hashes.split_off(blocks as usize)) else { return Ok(None) };
        Ok(Some(PostingsFile { path: path.to_path_buf(), file, pages: first..end, first_hashes, filter }))
    }

    /// Returns the range of pages whose postings the run has.
    pub(super) fn pages(&self) -> Range<u32> {
        self.pages.clone()
    }

    /// Returns the memory that the run takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        8 * (self.first_hashes.len() + self.filter.words().len()) as u64
    }

    /// Returns an upper bound of the number of postings.
    pub(super) fn len(&self) -> u64 {
        (self.first_hashes.len() * POSTINGS_PER_BLOCK) as u64
    }

    /// Appends the pages that have a chunk to `pages`.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a block is damaged, and [`Error::Storage`] if it cannot be read.
    ///
    /// # Cost
    /// No read for most chunks that the run does not have; otherwise usually one block.
    pub(super) fn find(&self, hash: u64, pages: &mut Vec<u32>) -> Result<()> {
        if !self.filter.contains(hash) {
            return Ok(());
        }
        // The postings of one chunk may begin in the block before the first block that starts with
        // it.
        let first = self.first_hashes.partition_point(|first| *first < hash).saturating_sub(1);
        for number in first..self.first_hashes.len() {
            if self.first_hashes[number] > hash {
                break;
            }
            let block = self.block(number)?;
            pages.extend(block.filter(|posting| posting.0 == hash).map(|posting| posting.1));
        }
        Ok(())
    }

    /// Reads the postings of a block.
    fn block(&self, number: usize) -> Result<impl Iterator<Item = Posting> + use<>> {
        let mut bytes = [0; BLOCK];
        let offset = (number * BLOCK) as u64;
        let name = || self.path.display().to_string();
        self.file.read_exact_at(&mut bytes, offset).map_err(|cause| Error::storage(name(), cause))?;
        let checksum = u64::from_le_bytes(bytes[BLOCK - 8..].try_into().expect("eight bytes"));
        if xxh3_64(&bytes[..BLOCK - 8]) != checksum {
            let why = format!("damaged at byte {offset}; remove the file while no server runs, and it is rebuilt");
            return Err(Error::input(name(), why));
        }
        let postings = (0..POSTINGS_PER_BLOCK).map(move |index| {
            let (hash, page) = bytes[index * 12..index * 12 + 12].split_at(8);
            let hash = u64::from_le_bytes(hash.try_into().expect("eight bytes"));
            (hash, u32::from_le_bytes(page.try_into().expect("four bytes")))
        });
        Ok(postings.take_while(|posting| posting.1 != NO_PAGE))
    }

    /// Returns all postings, in order.
    ///
    /// # Errors
    /// Yields [`Error::Input`] for a damaged block, and [`Error::Storage`] for one that cannot be
    /// read.
    pub(super) fn postings(&self) -> impl Iterator<Item = Result<Posting>> + '_ {
        (0..self.first_hashes.len()).flat_map(|number| {
            let (postings, error) = match self.block(number) {
                Ok(postings) => (Some(postings), None),
                Err(error) => (None, Some(Err(error))),
            };
            error.into_iter().chain(postings.into_iter().flatten().map(Ok))
        })
    }

    /// Removes the file. A reader that has it open can continue to read.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn end_block(block: &mut Vec<u8>, output: &mut impl Write) -> std::io::Result<()> {
    while block.len() < POSTINGS_PER_BLOCK * 12 {
        block.extend(u64::MAX.to_le_bytes());
        block.extend(NO_PAGE.to_le_bytes());
    }
    block.resize(BLOCK - 8, 0);
    block.extend(xxh3_64(block).to_le_bytes());
    output.write_all(block)?;
    block.clear();
    Ok(())
}

fn le_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words_at(file: &File, offset: u64, count: usize) -> std::io::Result<Vec<u64>> {
    let mut bytes = vec![0; 8 * count];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
}

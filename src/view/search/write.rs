//! Writer of a full-text index.
//!
//! tantivy names its segments by random numbers, so equal texts would yield different files each
//! time. Here segments are named by their position, so the files depend only on the texts and their
//! order.

use std::path::{Path, PathBuf};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::NoMergePolicy;
use tantivy::{Index, IndexSettings, IndexWriter, TantivyDocument};

use super::texts::{SchemaFields, numbers, tokenizers};
use webtwin_base::error::{Error, Result};

/// Approximate memory for the words of a segment. With another value, segments would end at other
/// texts and the files would differ.
const MEMORY: usize = 128 << 20;

/// Writes a full-text index in a folder of its own.
pub struct TextWriter {
    folder: PathBuf,
    index: Index,
    writer: IndexWriter,
    fields: SchemaFields,
    texts: u64,
}

/// File of a finished index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Name under which the file is requested when the index is opened.
    pub name: String,
    /// Current path of the file.
    pub path: PathBuf,
}

fn failed(cause: impl std::fmt::Display) -> Error {
    Error::storage("index of texts", std::io::Error::other(cause.to_string()))
}

impl TextWriter {
    /// Starts an index in an empty folder on a local disk.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the disk or tantivy fails. All functions below return this
    /// error too.
    pub fn new(folder: &Path) -> Result<TextWriter> {
        let (schema, fields) = SchemaFields::schema();
        let directory = MmapDirectory::open(folder).map_err(failed)?;
        let mut index = Index::create(directory, schema, IndexSettings::default()).map_err(failed)?;
        index.set_tokenizers(tokenizers());
        // One thread and no merging: then the end of a segment depends on the texts only.
        let writer: IndexWriter = index.writer_with_num_threads(1, MEMORY).map_err(failed)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(TextWriter { folder: folder.into(), index, writer, fields, texts: 0 })
    }

    /// Adds a text. Texts are numbered from 0 in this order. `text` must start with the title for
    /// the title to be found.
    ///
    /// # Errors
    /// Returns any error of [`TextWriter::new`].
    pub fn add(&mut self, title: &str, text: &str) -> Result<()> {
        let mut document = TantivyDocument::default();
        document.add_u64(self.fields.number, self.texts);
        document.add_text(self.fields.title, title);
        document.add_text(self.fields.text, text);
        self.texts += 1;
        self.writer.add_document(document).map(|_| ()).map_err(failed)
    }

    /// Returns the number of texts so far.
    pub fn texts(&self) -> u64 {
        self.texts
    }

    /// Completes the index. Returns its files, by name.
    ///
    /// # Errors
    /// Returns any error of [`TextWriter::new`].
    pub fn finish(mut self) -> Result<Vec<TextFile>> {
        self.writer.commit().map_err(failed)?;
        self.writer.wait_merging_threads().map_err(failed)?;
        let reader = self.index.reader().map_err(failed)?;
        let mut segments = Vec::new();
        for segment in reader.searcher().segment_readers() {
            let first = numbers(segment).map_err(failed)?.get_val(0);
            segments.push((first, segment.segment_id().uuid_string()));
        }
        segments.sort_unstable();
        let meta = self.folder.join("meta.json");
        let mut json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&meta).map_err(failed)?).map_err(failed)?;
        let mut metas = Vec::new();
        for (place, (_, id)) in segments.iter().enumerate() {
            let is_segment =
                |one: &&serde_json::Value| one["segment_id"].as_str().is_some_and(|name| name.replace('-', "") == *id);
            let segments_json = json["segments"].as_array().and_then(|all| all.iter().find(is_segment));
            let mut segment_json = segments_json.cloned().ok_or_else(|| failed("a segment is not listed"))?;
            segment_json["segment_id"] = segment_name(place).into();
            metas.push(segment_json);
        }
        json["segments"] = metas.into();
        std::fs::write(&meta, json.to_string()).map_err(failed)?;

        let mut files = vec![TextFile { name: "meta.json".into(), path: meta }];
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_segment = |(place, (_, id)): (usize, &(u64, String))| {
                Some(TextFile {
                    name: format!("{}{}", segment_name(place), name.strip_prefix(id.as_str())?),
                    path: path.clone(),
                })
            };
            files.extend(segments.iter().enumerate().find_map(is_segment));
        }
        files.sort_unstable_by(|x, y| x.name.cmp(&y.name));
        Ok(files)
    }
}

/// Returns the name of the segment at a position.
fn segment_name(place: usize) -> String {
    format!("{place:032x}")
}

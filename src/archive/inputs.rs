//! Files of an archive: WARC files, each with the path that it keeps.

use std::collections::BTreeMap;

use super::cdxj::INDEX;
use super::report::{ArchiveSummary, SUMMARY};
use super::rewrite::RECIPE;
use webtwin_base::error::{Error, Result};
use webtwin_pages::detect::{FileFormat, claims_archive, claims_wacz, detect};
use webtwin_pages::sniff::is_html;
use webtwin_pages::warc::{RecordFormat, probe};
use webtwin_storage::expand::{ExpandedInput, expand};
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{self, Manifest};
use webtwin_storage::open::{FileStamp, open};
use webtwin_storage::relative::{below_common_folder, segments};

/// WARC file.
#[derive(Debug, Clone)]
pub(super) struct WarcInput {
    pub location: Location,
    pub stamp: FileStamp,
    /// Path of the file below the deepest common folder of all files.
    pub path: String,
    /// True for a file of an older archive, to which records of other files may refer.
    pub is_older: bool,
}

/// Finds the files, ascending by name and without duplicates. Other files in a folder or matched by
/// a glob are skipped and reported.
///
/// # Errors
/// Returns [`Error::Input`] if an input is missing, or is named explicitly and is not a WARC file;
/// and [`Error::Usage`] if a path is reserved for the archive's own files.
pub(super) fn find(inputs: &[String], notify: &dyn Fn(String)) -> Result<Vec<WarcInput>> {
    let mut locations: BTreeMap<Location, bool> = BTreeMap::new();
    for ExpandedInput { locations: places, is_search, .. } in expand(inputs, is_html)? {
        for location in places {
            *locations.entry(location).or_default() |= !is_search;
        }
    }
    let mut files = Vec::new();
    let mut n_passed_over = Vec::new();
    for (location, is_named) in locations {
        match inspect(&location)? {
            Ok(stamp) => files.push(WarcInput { location, stamp, path: String::new(), is_older: false }),
            Err(reason) if is_named || claims_archive(location.name()) || claims_wacz(location.name()) => {
                return Err(Error::input(
                    location.name(),
                    format!("{reason}; name WARC files, the only inputs of an archive"),
                ));
            }
            Err(reason) => n_passed_over.push((location, reason)),
        }
    }
    if let Some((first, reason)) = n_passed_over.first() {
        let count = n_passed_over.len();
        if files.is_empty() {
            return Err(Error::input(
                first.name(),
                format!("{reason}; none of the {count} files found is a WARC file"),
            ));
        }
        notify(format!("skipped {count} files that are not WARC; first {first}: {reason}"));
    }
    name(&mut files)?;
    Ok(files)
}

/// Finds the files of older archives, ascending by name and without duplicates. An archive is a
/// complete folder that `webtwin archive` has written, or WARC files in the form of [`find`].
///
/// # Errors
/// Returns the errors of [`find`] and [`archived`].
pub(super) fn older_files(archives: &[String], notify: &dyn Fn(String)) -> Result<Vec<WarcInput>> {
    let mut files = BTreeMap::new();
    for name in archives {
        let folder =
            Location::parse(name).ok().filter(|folder| Manifest::read(folder).is_ok_and(|read| is_ours(&read)));
        let inputs_found = match folder {
            Some(folder) => archived(&folder)?.0,
            None => find(std::slice::from_ref(name), notify)?,
        };
        files
            .extend(inputs_found.into_iter().map(|file| (file.location.clone(), WarcInput { is_older: true, ..file })));
    }
    Ok(files.into_values().collect())
}

/// True if this is the manifest of an archive in the form that this build writes.
fn is_ours(manifest: &Manifest) -> bool {
    manifest.recipes.get(RECIPE.0).map(String::as_str) == Some(RECIPE.1)
}

/// Returns the files of an archive, its summary, and the names of the older archives that it was
/// made against.
///
/// # Errors
/// Returns [`Error::Input`] if the folder has no such archive, or a file of it is missing or has
/// another length.
pub(super) fn archived(archive: &Location) -> Result<(Vec<WarcInput>, ArchiveSummary, Vec<String>)> {
    let manifest = Manifest::read(archive)?;
    if !is_ours(&manifest) {
        let message = format!(
            "not an archive of this form ({}), but written by {}; restore it with that build",
            RECIPE.1, manifest.build
        );
        return Err(Error::input(archive.name(), message));
    }
    let entry = |path: &str| {
        let entry = manifest.files.iter().find(|file| file.path == path);
        entry.ok_or_else(|| {
            Error::input(
                archive.name(),
                format!("its manifest does not name {path}, so the archive is damaged; make it again"),
            )
        })
    };
    let summary = ArchiveSummary::read(archive, &manifest.read_file(archive, entry(SUMMARY)?)?)?;
    let files = summary.files.iter().map(|file| {
        let location = archive.join(&file.path)?;
        let bytes = entry(&file.path)?.bytes;
        let stamp = location.stamp()?.filter(|stamp| stamp.bytes == bytes).ok_or_else(|| {
            Error::input(location.name(), "missing, or not of the length in the manifest of the archive; put it back")
        })?;
        Ok(WarcInput { location, stamp, path: file.path.clone(), is_older: false })
    });
    let files = files.collect::<Result<_>>()?;
    let against_names = manifest.job["against"].as_array().into_iter().flatten();
    Ok((files, summary, against_names.filter_map(|name| Some(name.as_str()?.to_string())).collect()))
}

/// Returns the version of a WARC file. The inner error describes what another file is.
fn inspect(location: &Location) -> Result<std::result::Result<FileStamp, String>> {
    if location.is_folder() {
        return Ok(Err("a folder of pages".into()));
    }
    if location.name().ends_with(".open") {
        return Ok(Err("a crawler is still writing it, since its name ends in .open".into()));
    }
    let file = open(location)?;
    match detect(&*file, location.name()) {
        Ok(FileFormat::Empty) => Ok(Ok(file.stamp().clone())),
        Ok(FileFormat::WarcPlain | FileFormat::WarcGzip | FileFormat::WarcZstd) => match probe(&*file)? {
            Some((RecordFormat::Arc, _)) => Ok(Err("an ARC file; convert it with `warcio recompress`".into())),
            _ => Ok(Ok(file.stamp().clone())),
        },
        Ok(FileFormat::WarcStream(_)) => {
            Ok(Err("a WARC file in xz or bzip2; compress it with gzip, one member per record".into()))
        }
        Ok(FileFormat::Zip) => Ok(Err("a zip archive of WARC files; unpack it".into())),
        Ok(_) => Ok(Err("not a WARC file".into())),
        Err(Error::Input { reason, .. }) => Ok(Err(reason)),
        Err(other) => Err(other),
    }
}

/// Sets the path of each file.
fn name(files: &mut [WarcInput]) -> Result<()> {
    let names: Vec<Vec<String>> = files.iter().map(|file| segments(&file.location)).collect();
    for (file, path) in files.iter_mut().zip(below_common_folder(&names)) {
        file.path = path;
        let is_ours = [manifest::NAME, SUMMARY, INDEX].contains(&file.path.as_str()) || file.path.starts_with('_');
        if is_ours {
            let path = &file.path;
            return Err(Error::Usage(format!(
                "input {}: an archive has its own {path}; rename the input",
                file.location
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Result<Vec<String>> {
        let file = |name: &&str| WarcInput {
            location: Location::parse(name).unwrap(),
            stamp: FileStamp { bytes: 0, version: String::new() },
            path: String::new(),
            is_older: false,
        };
        let mut files: Vec<WarcInput> = names.iter().map(file).collect();
        name(&mut files)?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn rejects_inputs_named_like_files_of_the_archive() {
        for name in ["/a/manifest.json", "/a/summary.json", "/a/index.cdxj", "/a/_commit.json"] {
            assert_eq!(paths(&[name]).unwrap_err().exit_code(), 2, "{name}");
        }
    }
}

//! The folder `exports/`: all files for crawlers. A run and a comparison of two runs write the same
//! set of files.

use std::borrow::Cow;

use super::exports::{AvoidLists, BY_PAGES, EXPORTS, SCRAPY, WidePrefix};
use super::rule_exports::RULE_EXPORTS;
use crate::url_rules::rows::RuleRow;
use webtwin_base::error::Result;

/// Sink for the text of a file, which is called with consecutive pieces.
pub type TextReceiver<'p> = &'p mut dyn FnMut(&str) -> Result<()>;

/// Function that writes the text of a file to a [`TextReceiver`].
pub type TextSource<'w> = &'w mut dyn FnMut(TextReceiver<'_>) -> Result<()>;

/// Writes the exports of an avoid list and of URL rules. Calls `file` for each of them with its
/// name and a function that writes its text. `sites` and `rules` must yield rows in the order of
/// the files, `wide` in the order of [`WidePrefix`].
///
/// # Errors
/// Returns any error of the rows and of `file`.
///
/// # Cost
/// One pass over `sites`, `wide` or `rules` for each export.
pub fn write_exports<'r, Sites, Wide, Rules>(
    sites: impl Fn() -> Sites,
    wide: impl Fn() -> Wide,
    rules: impl Fn() -> Rules,
    mut file: impl FnMut(&str, TextSource<'_>) -> Result<()>,
) -> Result<()>
where
    Sites: Iterator<Item = Result<Cow<'r, AvoidLists>>>,
    Wide: Iterator<Item = Result<Cow<'r, WidePrefix>>>,
    Rules: Iterator<Item = Result<Cow<'r, RuleRow>>>,
{
    for export in &EXPORTS {
        file(export.name, &mut |put| export.write(sites(), put))?;
    }
    file(BY_PAGES.name, &mut |put| BY_PAGES.write(wide(), put))?;
    for export in &RULE_EXPORTS {
        file(export.name, &mut |put| export.write(rules(), put))?;
    }
    let (name, text) = SCRAPY;
    file(name, &mut |put| put(text))
}

//! `webtwin show RUN/TABLE`.

use std::io::Write;

use crate::console::ended;
use crate::error::{Error, Result};
use crate::storage::location::Location;
use crate::storage::manifest::Manifest;
use crate::storage::table::{Column, decode};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A table of a run, for example out/collections
    table: String,
    /// Rows to print; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// One JSON object per row instead of tab-separated values
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let path = args.table.trim_end_matches('/');
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let folder = Location::parse(folder)?;
    let manifest = Manifest::read(&folder)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut left, mut parts) = (if args.limit == 0 { usize::MAX } else { args.limit }, 0);
    for file in manifest.table(name) {
        let table = decode(&file.path, manifest.read_file(&folder, file)?)?;
        let rows = table.rows().min(left);
        left -= rows;
        if parts == 0 && !args.json {
            let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
            ended(writeln!(out, "{}", names.join("\t")))?;
        }
        parts += 1;
        for row in 0..rows {
            if args.json {
                let object: serde_json::Map<String, serde_json::Value> =
                    table.columns.iter().map(|(name, column)| (name.clone(), column.json(row))).collect();
                ended(writeln!(out, "{}", serde_json::Value::Object(object)))?;
            } else {
                let cells: Vec<String> = table.columns.iter().map(|(_, column)| cell(column, row)).collect();
                ended(writeln!(out, "{}", cells.join("\t")))?;
            }
        }
        if left == 0 {
            break;
        }
    }
    if parts == 0 {
        let mut tables: Vec<&str> =
            manifest.files.iter().filter_map(|file| file.path.split_once("/part-")).map(|x| x.0).collect();
        tables.dedup();
        return Err(Error::Usage(format!("{} has no table {name}; it has {}", folder.name(), tables.join(", "))));
    }
    ended(out.flush())
}

/// A value for a terminal: control characters of a page's URL are replaced.
fn cell(column: &Column, row: usize) -> String {
    match column.json(row) {
        serde_json::Value::String(text) => text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect(),
        serde_json::Value::Null => String::new(),
        value => value.to_string(),
    }
}

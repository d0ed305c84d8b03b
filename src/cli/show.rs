//! `webtwin show RUN [TABLE]`: lists the tables of a result, or prints one.

use std::fmt::Write as _;
use std::io::Write;

use webtwin_base::console::{ended, print};
use webtwin_base::error::{Error, Result};
use webtwin_results::FinishedRun;
use webtwin_results::columns::{RunNames, named};
use webtwin_results::views::views;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{CORPUS_SIDE_FOLDER, FileEntry, is_in};
use webtwin_storage::table::{Table, TableColumn, column_names, decode};
use webtwin_view::report::figures::bytes;

const EXAMPLES: &str = "\
Examples:
  webtwin show out/                                                # lists the tables
  webtwin show out/collections --sort -size --columns size,host,prefix
  webtwin show out/pairs --urls --limit 5
  webtwin show out/avoid --json --limit 0 | jq -r .url
  duckdb -init <(webtwin show out/ --sql)                          # opens all tables in DuckDB";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of a result, whose tables are listed, or a table: out/ or out/collections
    #[arg(value_name = "RUN[/TABLE]")]
    result: String,
    /// Name of the table, if it is not part of the first argument
    table: Option<String>,
    /// Maximum number of rows to print; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Columns to print, in this order [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Column to sort by; with a minus before its name, the largest values come first
    #[arg(long, value_name = "[-]NAME", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Print URLs instead of ids of pages, clusters and collections, and host names instead of ids
    /// of hosts
    #[arg(long)]
    urls: bool,
    /// Print one JSON object a row instead of tab-separated values; ids are strings
    #[arg(long)]
    json: bool,
    /// Print SQL for DuckDB instead: views of all tables, which open from any folder
    #[arg(long, conflicts_with_all = ["table", "columns", "sort", "urls", "json"])]
    sql: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let (run, table) = open(&args)?;
    match table {
        None if args.sql => {
            print(|out| out.write_all(views(&run.manifest.files, Some(&absolute(&run.folder))).as_bytes()))
        }
        None => list(&run, args.json),
        Some(_) if args.sql => Err(Error::Usage("--sql needs the folder of a result; leave out the table".into())),
        Some(table) => show(&run, &table, &args),
    }
}

/// Returns the result, and the requested table if there is one.
fn open(args: &Args) -> Result<(FinishedRun, Option<String>)> {
    let path = args.result.trim_end_matches('/');
    if args.table.is_some() || is_in(&Location::parse(&args.result)?)? {
        return Ok((FinishedRun::open(&args.result)?, args.table.clone()));
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let folder = folder.strip_suffix(CORPUS_SIDE_FOLDER.trim_end_matches('/')).unwrap_or(folder);
    let folder = if folder.is_empty() { "/" } else { folder };
    if !is_in(&Location::parse(folder)?)? {
        return Err(Error::input(
            path,
            "neither a result (a folder with manifest.json) nor a table of one; name the folder of \
             a result",
        ));
    }
    Ok((FinishedRun::open(folder)?, Some(name.into())))
}

/// Returns the absolute path or URL of a folder.
fn absolute(folder: &Location) -> String {
    let path = folder.path().and_then(|path| std::path::absolute(path).ok());
    path.map_or(folder.name().to_string(), |path| path.display().to_string())
}

/// Returns the tables of a result, each with its files.
fn tables(run: &FinishedRun) -> Vec<(&str, Vec<&FileEntry>)> {
    let mut tables: Vec<(&str, Vec<&FileEntry>)> = Vec::new();
    for file in &run.manifest.files {
        let Some(name) = file.table() else { continue };
        match tables.last_mut().filter(|last| last.0 == name) {
            Some(last) => last.1.push(file),
            None => tables.push((name, vec![file])),
        }
    }
    tables
}

fn list(run: &FinishedRun, json: bool) -> Result<()> {
    let mut text = String::new();
    if !json {
        text += "table\trows\tsize\tcolumns\n";
    }
    for (name, files) in tables(run) {
        let rows: u64 = files.iter().filter_map(|file| file.rows).sum();
        let size: u64 = files.iter().map(|file| file.bytes).sum();
        let columns = column_names(&files[0].path, run.manifest.read_file(&run.folder, files[0])?)?;
        let _ = match json {
            true => {
                let object = serde_json::json!({ "table": name, "rows": rows, "bytes": size, "columns": columns });
                writeln!(text, "{object}")
            }
            false => writeln!(text, "{name}\t{rows}\t{}\t{}", bytes(size), columns.join(",")),
        };
    }
    print(|out| out.write_all(text.as_bytes()))
}

fn show(run: &FinishedRun, name: &str, args: &Args) -> Result<()> {
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut left = limit;
    let order = args.sort.as_deref().map(|sort| match sort.strip_prefix('-') {
        Some(column) => (column, true),
        None => (sort, false),
    });
    let mut names = None;
    let mut writer = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut parts, mut ordered_rows) = (0, Table::default());
    for file in run.manifest.table(name) {
        let mut table = decode(&file.path, run.manifest.read_file(&run.folder, file)?)?;
        let column_names = args.columns.iter().map(String::as_str).chain(order.map(|order| order.0));
        let places = column_names.map(|column| place(&table, name, column)).collect::<Result<Vec<usize>>>()?;
        let columns: Vec<usize> = match args.columns.len() {
            0 => (0..table.columns.len()).collect(),
            n_columns => places[..n_columns].to_vec(),
        };
        if parts == 0 && !args.json {
            let heads: Vec<&str> = columns.iter().map(|&at| table.columns[at].0.as_str()).collect();
            ended(writeln!(writer, "{}", heads.join("\t")))?;
        }
        parts += 1;
        if args.urls {
            // Loaded on first use, because the names take a pass over other tables.
            if names.is_none() {
                names = Some(RunNames::from_run(run)?);
            }
            names.iter().try_for_each(|names| name_ids(&mut table, name, names))?;
        }
        match (order, places.last()) {
            // Keeps only the rows of each part that may be printed.
            (Some((_, descending)), Some(&sort_column)) => {
                ordered_rows.append(table)?;
                ordered_rows = first_rows(&ordered_rows, sort_column, descending, limit);
            }
            _ => {
                let rows = table.rows().min(left);
                rows_of(&mut writer, &table, &columns, rows, args.json)?;
                left -= rows;
                if left == 0 {
                    break;
                }
            }
        }
    }
    if parts == 0 {
        let tables: Vec<&str> = tables(run).iter().map(|table| table.0).collect();
        return Err(Error::Usage(format!("{} has no table {name}; use one of {}", run.folder, tables.join(", "))));
    }
    if order.is_some() {
        let columns: Vec<usize> = match args.columns.len() {
            0 => (0..ordered_rows.columns.len()).collect(),
            _ => args.columns.iter().map(|column| place(&ordered_rows, name, column)).collect::<Result<_>>()?,
        };
        rows_of(&mut writer, &ordered_rows, &columns, ordered_rows.rows(), args.json)?;
    }
    ended(writer.flush())
}

/// Returns the index of a column.
fn place(table: &Table, name: &str, column: &str) -> Result<usize> {
    table.columns.iter().position(|of| of.0 == column).ok_or_else(|| {
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
        Error::Usage(format!("table {name} has no column {column}; use one of {}", columns.join(", ")))
    })
}

/// Replaces ids with URLs and host names.
fn name_ids(table: &mut Table, name: &str, names: &RunNames) -> Result<()> {
    for (column, values) in &mut table.columns {
        if let (Some(id_names), TableColumn::Id(ids)) = (named(name, column), &*values) {
            *values = names.instead_of(ids, id_names)?;
        }
    }
    Ok(())
}

/// Returns the first rows in the order of a column. The sort is stable.
fn first_rows(table: &Table, sort_column: usize, descending: bool, limit: usize) -> Table {
    let (column, mut rows) = (&table.columns[sort_column].1, (0..table.rows()).collect::<Vec<usize>>());
    rows.sort_by(|&x, &y| if descending { column.order(y, x) } else { column.order(x, y) });
    rows.truncate(limit);
    table.pick(&rows)
}

fn rows_of(writer: &mut impl Write, table: &Table, places: &[usize], rows: usize, json: bool) -> Result<()> {
    for row in 0..rows {
        let columns = places.iter().map(|&at| &table.columns[at]);
        // Written by hand, because a map of serde_json would not keep the order of the columns.
        let cells: Vec<String> = match json {
            true => columns.map(|(name, column)| format!("{}:{}", serde_json::json!(name), column.json(row))).collect(),
            false => columns.map(|(_, column)| cell(column, row)).collect(),
        };
        ended(match json {
            true => writeln!(writer, "{{{}}}", cells.join(",")),
            false => writeln!(writer, "{}", cells.join("\t")),
        })?;
    }
    Ok(())
}

/// Replaces control characters in crawled text, for output on a terminal.
pub(super) fn on_terminal(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Formats a value for a terminal.
fn cell(column: &TableColumn, row: usize) -> String {
    match column.json(row) {
        serde_json::Value::String(text) => on_terminal(&text),
        value => value.to_string(),
    }
}

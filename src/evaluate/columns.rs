//! Reader of tab-separated lines under a header line.

use webtwin_base::error::{Error, Result};

/// Number of a line, its fields of the required columns, and its fields of the optional columns.
pub(super) type LineFields<'t, const N: usize, const M: usize> = (usize, [&'t str; N], [Option<&'t str>; M]);

/// Reads the columns `names`, at any position among others, and those of the columns
/// `optional_columns` that exist. Fields of the columns `may_be_empty` may be empty. Empty lines
/// are skipped. `file` is the name in errors.
///
/// # Errors
/// Returns [`Error::Input`] with line and column if a column is missing or named twice, or if a
/// line lacks it.
pub(super) fn read_columns<'t, const N: usize, const M: usize>(
    file: &str,
    text: &'t str,
    names: [&str; N],
    may_be_empty: &[&str],
    optional_columns: [&str; M],
) -> Result<Vec<LineFields<'t, N, M>>> {
    let mut lines = (1..).zip(text.lines());
    let (_, head) =
        lines.next().ok_or_else(|| Error::input(file, "the file is empty; begin it with a line of column names"))?;
    // Spreadsheet programs write a byte order mark at the start of a file.
    let head: Vec<&str> = head.trim_start_matches('\u{feff}').split('\t').collect();
    let column = |name: &str| {
        let mut column = (0..head.len()).filter(|&column| head[column] == name);
        match (column.next(), column.next()) {
            (column, None) => Ok(column),
            _ => Err(Error::input(file, format!("line 1 has the column {name} twice; remove or rename one"))),
        }
    };
    let mut places = [0; N];
    for (place, name) in places.iter_mut().zip(names) {
        let missing =
            || Error::input(file, format!("line 1 has no column {name}; its columns are {}", head.join(", ")));
        *place = column(name)?.ok_or_else(missing)?;
    }
    let mut optional_places = [None; M];
    for (place, name) in optional_places.iter_mut().zip(optional_columns) {
        *place = column(name)?;
    }

    let mut rows = Vec::new();
    for (line, text) in lines.filter(|(_, text)| !text.is_empty()) {
        let fields: Vec<&str> = text.split('\t').collect();
        let field = |column: usize| {
            let refuse = |what: String| Error::input(file, format!("line {line}, column {}: {what}", head[column]));
            match fields.get(column) {
                Some(&"") if !may_be_empty.contains(&head[column]) => Err(refuse("empty".into())),
                Some(&field) => Ok(field),
                None => {
                    Err(refuse(format!("missing, because the line has only {} of {} fields", fields.len(), head.len())))
                }
            }
        };
        let mut row = [""; N];
        for (value, &place) in row.iter_mut().zip(&places) {
            *value = field(place)?;
        }
        let mut optional_fields = [None; M];
        for (value, place) in optional_fields.iter_mut().zip(optional_places) {
            *value = place.map(field).transpose()?;
        }
        rows.push((line, row, optional_fields));
    }
    Ok(rows)
}

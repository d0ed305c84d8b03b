//! `views.sql`: a view of each table for DuckDB, and for tables with ids of pages a second view
//! with URLs in place of the ids.

use super::columns::PAGE_TABLES;
use webtwin_storage::manifest::FileEntry;

/// Tables that contain the URLs of their pages in addition to the ids.
const TABLES_WITH_URLS: [&str; 4] = ["pages", "avoid", "revisits", "duplicates"];

/// Returns the views of tables whose files are given by path. `root` is their folder as DuckDB must
/// find it, or `None` for the working folder of DuckDB.
pub fn views(files: &[FileEntry], root: Option<&str>) -> String {
    let parts: Vec<(&str, &str)> = files.iter().filter_map(|file| Some((file.table()?, file.path.as_str()))).collect();
    let mut sql = match root {
        Some(_) => String::new(),
        None => "-- In this folder: duckdb -init views.sql\n\
                 -- From elsewhere: SET file_search_path = 'RUN', and then this; or webtwin show RUN --sql\n"
            .into(),
    };
    for parts in parts.chunk_by(|x, y| x.0 == y.0) {
        let name = |path: &str| match root {
            Some(root) => format!("'{}/{path}'", root.trim_end_matches('/').replace('\'', "''")),
            None => format!("'{path}'"),
        };
        let names: Vec<String> = parts.iter().map(|part| name(part.1)).collect();
        let table = parts[0].0;
        sql += &format!("CREATE OR REPLACE VIEW {table} AS SELECT * FROM read_parquet([{}]);\n", names.join(", "));
    }
    let has_table = |table: &str| parts.iter().any(|part| part.0 == table);
    for (table, columns) in
        PAGE_TABLES.iter().filter(|of| has_table("pages") && has_table(of.0) && !TABLES_WITH_URLS.contains(&of.0))
    {
        let urls: Vec<String> = columns.iter().map(|column| format!("of_{column}.url AS {column}")).collect();
        let joins: Vec<String> = columns
            .iter()
            .map(|column| format!(" LEFT JOIN pages of_{column} ON of_{column}.doc_id = t.{column}"))
            .collect();
        sql += &format!(
            "CREATE OR REPLACE VIEW {table}_urls AS SELECT t.* REPLACE ({}) FROM {table} t{};\n",
            urls.join(", "),
            joins.concat()
        );
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_a_view_and_ids_of_pages_become_urls() {
        let file = |path: &str| FileEntry::new(path, None, b"");
        let files =
            ["clusters/part-00000.parquet", "pages/part-00000.parquet", "pages/part-00001.parquet", "summary.json"];
        let sql = views(&files.map(file), Some("/o'k/"));
        assert_eq!(
            sql,
            "CREATE OR REPLACE VIEW clusters AS SELECT * FROM read_parquet(['/o''k/clusters/part-00000.parquet']);\n\
             CREATE OR REPLACE VIEW pages AS SELECT * FROM \
             read_parquet(['/o''k/pages/part-00000.parquet', '/o''k/pages/part-00001.parquet']);\n\
             CREATE OR REPLACE VIEW clusters_urls AS SELECT t.* REPLACE (of_cluster.url AS cluster, of_doc_id.url AS doc_id) \
             FROM clusters t LEFT JOIN pages of_cluster ON of_cluster.doc_id = t.cluster \
             LEFT JOIN pages of_doc_id ON of_doc_id.doc_id = t.doc_id;\n"
        );
        assert!(
            views(&files[..1].iter().map(|path| file(path)).collect::<Vec<_>>(), None)
                .ends_with("(['clusters/part-00000.parquet']);\n")
        );
    }
}

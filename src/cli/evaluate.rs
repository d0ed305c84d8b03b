//! `webtwin evaluate RUN --truth FILE`.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::evaluate::{ClusterRow, MemberRow, PageRow, Report, evaluate, read_truth, table};
use crate::pages::url::CanonicalUrl;
use crate::storage::location::Location;
use crate::storage::manifest::Manifest;
use crate::storage::table::{Table, decode};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run
    run: String,
    /// Truth: a TSV with the columns url, target, version, page and variant
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let folder = Location::parse(&args.run)?;
    let file = args.truth.display().to_string();
    let text = std::fs::read_to_string(&args.truth).map_err(|cause| Error::input(&file, cause))?;
    let report = evaluate_run(&folder, &file, &text)?;
    if args.json {
        let object = serde_json::json!({
            "name": "evaluate", "scale": report.pages, "machine": crate::build::machine(),
            "build": crate::build::VERSION, "rows": report.rows(),
        });
        println!("{object}");
    } else {
        print!("{}", table(&report.rows()));
    }
    Ok(())
}

/// Holds the tables of a run against a truth, whose text came from `file`.
pub(super) fn evaluate_run(folder: &Location, file: &str, text: &str) -> Result<Report> {
    let manifest = Manifest::read(folder)?;
    let read = |name: &str| -> Result<Table> {
        let mut table = Table::default();
        for file in manifest.table(name) {
            table.append(decode(&file.path, manifest.read_file(folder, file)?)?)?;
        }
        Ok(table)
    };
    let (pages, clusters, members) = (read("pages")?, read("clusters")?, read("members")?);
    let rows = |table: &Table, names: [&str; 3]| -> Result<Vec<[u64; 3]>> {
        let [a, b, c] = [table.u64(names[0])?, table.u64(names[1])?, table.u64(names[2])?];
        Ok(a.iter().zip(b).zip(c).map(|((a, b), c)| [*a, *b, *c]).collect())
    };
    let urls = pages.text("url")?;
    let pages: Vec<PageRow> =
        pages.u64("doc_id")?.iter().zip(urls).map(|(&doc_id, url)| PageRow { doc_id, url: url.clone() }).collect();
    let clusters: Vec<ClusterRow> = rows(&clusters, ["cluster", "doc_id", "doc_id"])?
        .into_iter()
        .map(|[cluster, doc_id, _]| ClusterRow { cluster, doc_id })
        .collect();
    let members: Vec<MemberRow> = rows(&members, ["similar_cluster", "collection", "doc_id"])?
        .into_iter()
        .map(|[similar_cluster, collection, doc_id]| MemberRow { similar_cluster, collection, doc_id })
        .collect();
    let mut truth = read_truth(file, text)?;
    for row in &mut truth {
        let url = CanonicalUrl::parse(&row.url).map_err(|why| Error::input(file, format!("{}: {why}", row.url)))?;
        row.url = url.as_str().to_string();
    }
    Ok(evaluate(&pages, &clusters, &members, &truth))
}

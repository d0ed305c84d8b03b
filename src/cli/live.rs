//! `webtwin live DIR`: maintains a live index of pages as they are fetched.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{read_ahead, signals};
use webtwin_base::console::{notify, print};
use webtwin_base::error::{Error, Result};
use webtwin_job::Job;
use webtwin_live::serve::{EndCondition, LiveServeSettings, OnComplete, limits, serve};
use webtwin_live::{Agreement, LiveIndex};
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

const EXAMPLES: &str = "\
Examples:
  webtwin live index/ --follow 'crawl/*.warc.gz'
  webtwin live index/ --follow 'crawl/*.warc.gz' --no-listen --once      # reads the files and ends
  webtwin live index/ --follow 'crawl/*.warc.gz' --state state/   # then: webtwin run --state state/ --input 'crawl/*.warc.gz' ...
  webtwin live index/ --against out/            # compares the clusters with those of a run over the same pages
  curl -s --data-binary @page.warc.gz -H 'content-type: application/warc' http://127.0.0.1:8601/v1/pages
  curl -s --data-binary @urls.txt http://127.0.0.1:8601/v1/pages.txt
  curl -sN -H 'accept: text/event-stream' http://127.0.0.1:8601/v1/advice

/openapi.json describes all requests. Advice is also appended to DIR/advice.ndjson. SIGTERM ends the server once all
received pages are acknowledged.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of the index, on a local disk; created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// WARC files to read as they grow, new ones included, each up to its last whole record; may be
    /// given again
    #[arg(long, value_name = "GLOB")]
    follow: Vec<String>,
    /// End after reading the current content of the followed files
    #[arg(long, requires = "follow", conflicts_with = "until_idle")]
    once: bool,
    /// End when the followed files have not grown for this number of seconds
    #[arg(long, value_name = "SECONDS", requires = "follow")]
    until_idle: Option<u64>,
    /// State into which followed files are read once they are complete, so that `webtwin run
    /// --state URL` with the same --input need not read them again
    #[arg(long, value_name = "URL", requires = "follow")]
    state: Option<String>,
    /// Result of `webtwin run` over the same pages: compare its clusters with those of the index,
    /// print how they agree, and end
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["follow", "listen", "key", "host"])]
    against: Option<String>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8601")]
    listen: String,
    /// Follow files only, and answer no requests
    #[arg(long, requires = "follow", conflicts_with_all = ["listen", "key", "host"])]
    no_listen: bool,
    /// File of lines NAME KEY: clients send a key in the header Authorization: Bearer KEY. Required
    /// beyond loopback
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Name by which clients may address the server, with the port if they send it; may be given
    /// again
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Job file (TOML), with the settings by which pages are read and compared, as in `webtwin run`
    #[arg(long, value_name = "FILE", help_heading = "Job")]
    job: Option<PathBuf>,
    /// Setting that overrides the job file, as KEY=VALUE; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Job")]
    sets: Vec<String>,
    /// Number of threads that read pages and answer [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let (file, text) = match &args.job {
        None => ("--set".to_string(), String::new()),
        Some(path) => {
            let read = std::fs::read_to_string(path);
            let text =
                read.map_err(|cause| Error::Usage(format!("job file {}: {cause}; check --job", path.display())))?;
            (format!("job file {}", path.display()), text)
        }
    };
    let threads = super::threads(args.threads);
    let job = webtwin_job::resolve(&file, &text, &args.sets)?;
    // A comparison only reads the index, and starts no server.
    if let Some(result) = &args.against {
        return compare(&args.folder, &job, result);
    }
    let front = webtwin_http::ServiceSettings {
        listen: args.listen,
        hosts: args.host,
        keys: args.key,
        threads,
        limits: limits(threads),
    };
    let end_condition = match (args.once, args.until_idle) {
        (true, _) => EndCondition::Idle(Duration::ZERO),
        (false, Some(seconds)) => EndCondition::Idle(Duration::from_secs(seconds)),
        (false, None) => EndCondition::Stopped,
    };
    let on_complete = match &args.state {
        None => None,
        Some(state) => {
            let reader = read_ahead::Reader::new(state, job.clone())?;
            Some(Box::new(move |file: &Path| reader.read(file)) as OnComplete)
        }
    };
    let settings = LiveServeSettings {
        folder: args.folder,
        job,
        on_complete,
        follow: args.follow,
        end_condition,
        threads,
        front: (!args.no_listen).then_some(front),
    };
    let (figures, records) = serve(settings, |address, handle| {
        // The server acknowledges what it has received before it ends.
        signals::ends_by(move |_| handle.stop());
        if let Some(address) = address {
            notify(format_args!("listening on http://{address}"));
        }
    })?;
    let line = serde_json::json!({ "figures": figures, "records": records });
    print(|out| writeln!(out, "{line}"))
}

/// Prints the agreement of an index's clusters with those of a result.
fn compare(folder: &Path, job: &Job, result: &str) -> Result<()> {
    if !folder.join("live.json").exists() {
        return Err(Error::Usage(format!(
            "{}: no live index in this folder; name the folder of one",
            folder.display()
        )));
    }
    let run = FinishedRun::open(result)?;
    let mut clusters = HashMap::new();
    scan(&run, "pages", &["doc_id"], &mut |rows| {
        clusters.extend(rows.u64("doc_id")?.iter().map(|&page| (page, page)));
        Ok(())
    })?;
    scan(&run, "clusters", &["doc_id", "cluster"], &mut |rows| {
        clusters.extend(rows.u64("doc_id")?.iter().copied().zip(rows.u64("cluster")?.iter().copied()));
        Ok(())
    })?;
    if clusters.is_empty() {
        return Err(Error::Usage(format!(
            "--against {result}: the result has no table `pages`; name a result of `webtwin run`"
        )));
    }
    let agreement = Agreement::measure(LiveIndex::open(folder, job)?.clusters(), &clusters);
    let line = serde_json::to_string(&agreement).expect("figures are plain values");
    print(|out| writeln!(out, "{line}"))
}

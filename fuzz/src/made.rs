//! A finished run of a small made-up crawl and its index, for the targets that read them.

use std::path::PathBuf;
use std::sync::OnceLock;

use webtwin_dataflow::reading::ingest::Queue;
use webtwin_dataflow::replicas;
use webtwin_engine::ClusterLayout;
use webtwin_job::{Job, JobDigest};
use webtwin_pages::work_items::WorkList;
use webtwin_storage::location::Location;
use webtwin_view::lookup::build::{BuildSettings, RANGE_ROWS, build};

/// Returns the folder with `run` and `index`.
pub(super) fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(make)
}

fn make() -> PathBuf {
    let folder = super::folder("made");
    let at = |name: &str| folder.join(name).to_str().expect("the path is UTF-8").to_string();
    let mut job = Job::default();
    job.input.urls = vec!["synth://?pages=100&seed=1".into()];
    job.output.url = at("run");
    job.output.partitions = 1;
    let result = Location::parse(&job.output.url).expect("a path").into_folder();
    let work = WorkList::plan(&job.input, job.effort.shard_bytes).expect("a synthetic crawl can be read");
    let (queue, digest) = (Queue::new(work), JobDigest::from_job(&job).0);
    webtwin_engine::run(&ClusterLayout::local(1), 0, digest, move |net| {
        replicas::run(net, &job, &queue, &result).map(drop)
    })
    .expect("a synthetic crawl has a result");
    build(&BuildSettings {
        run: at("run"),
        active_rules: None,
        output: at("index"),
        chunks: true,
        simhashes: Some(None),
        text: false,
        workers: 1,
        memory_bytes: 1 << 28,
        spill: folder.clone(),
        range_rows: RANGE_ROWS,
    })
    .expect("a result has an index");
    folder
}

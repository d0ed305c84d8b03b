//! \[SGM98\]: all-pairs document overlap.
//!
//! Without `--input`, tables and crawls are synthetic. The tables are *planted* with the published
//! fractions of replicas. Figure 1 and the savings computed from them therefore check the path from
//! rows to clusters, not the web.

mod costs;
mod popular;
mod replicas;

use super::{Experiment, ExperimentRun};
pub(super) use replicas::histogram;

/// Returns the entries for the tables and figures of the paper.
pub fn entries() -> Vec<Experiment> {
    vec![
        Experiment {
            name: "sgm98-table1",
            about: "space and time of Overlap by chunking, with the paper's figures scaled to the same number of \
                pages (SGM98 Table 1); --input RUN",
            unit: "pages of a made-up table, without --input",
            scale: 200_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(costs::table_1),
        },
        Experiment {
            name: "sgm98-figure1",
            about: "pages by number of replicas (SGM98 Figure 1); --input RUN for a real crawl",
            unit: "pages of a made-up table, without --input",
            scale: 200_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(replicas::figure_1),
        },
        Experiment {
            name: "sgm98-savings",
            about: "pages that need not be visited again (SGM98 section 3); --input RUN for a real crawl",
            unit: "pages of a made-up table, without --input",
            scale: 200_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(replicas::savings),
        },
        Experiment {
            name: "sgm98-table2",
            about: "sets of pages on the most servers (SGM98 Table 2); --input RUN for a real crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 10_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(popular::table_2),
        },
    ]
}

/// Number of pages of the crawl: "approximately 24 million web pages" (section 3).
const PAGES: f64 = 24e6;

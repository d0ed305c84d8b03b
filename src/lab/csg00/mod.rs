//! \[CSG00\]: replicated collections.

mod clusters;
mod costs;
mod second_crawl;
mod targets;

use super::{Experiment, ExperimentRun, FigureRow, Options};
use webtwin_base::error::Result;

/// Returns the entries for the tables and figures of the paper.
pub fn entries() -> Vec<Experiment> {
    vec![
        Experiment {
            name: "csg00-table1",
            about: "space and time of trivial clusters by chunking, with the paper's figures scaled to the same \
                number of pages (CSG00 Table 1); --input RUN",
            unit: "pages of a made-up table, without --input",
            scale: 200_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(costs::table_1),
        },
        Experiment {
            name: "csg00-figure11",
            about: "pages by number of similar pages (CSG00 Figure 11); --input RUN for a real crawl",
            unit: "pages of a made-up table, without --input",
            scale: 200_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(figure_11),
        },
        Experiment {
            name: "csg00-figure12",
            about: "similar clusters by cardinality and size (CSG00 Figure 12); --input RUN for a real crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 10_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(clusters::figure_12),
        },
        Experiment {
            name: "csg00-section4",
            about: "collections found against the targets, exact and extended (CSG00 section 4); --input RUN --truth FILE finds \
                    them in a real crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 10_000,
            full: 50_000,
            run: ExperimentRun::Alone(targets::section_4),
        },
        Experiment {
            name: "csg00-table2",
            about: "collections with the most replicas (CSG00 Table 2); --input RUN for a real crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 10_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(clusters::table_2),
        },
        Experiment {
            name: "csg00-second-crawl",
            about: "similar pages of a crawl, and of a second crawl that obeys the avoid list of the first (CSG00 \
                section 5.1)",
            unit: "pages of a made-up crawl; the second crawl is of seven fifths of them",
            scale: 10_000,
            full: PAGES as u64,
            run: ExperimentRun::Alone(second_crawl::second_crawl),
        },
    ]
}

/// Number of pages of the crawl: "approximately 25 million web pages" (section 5.1).
const PAGES: f64 = 25e6;

fn figure_11(options: &Options) -> Result<Vec<FigureRow>> {
    super::sgm98::histogram(options, "csg00-figure11", "Similar pages (CSG00 Figure 11)")
}

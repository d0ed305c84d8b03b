//! \[DDGMP03\]: RP and HM signatures.

mod curves;
mod figure_1;

use super::{Experiment, ExperimentRun};

/// Returns the entry for the only figure of the paper.
pub fn entries() -> Vec<Experiment> {
    vec![Experiment {
        name: "ddgmp03-figure1",
        about: "precision and recall of colliding signatures over (C, D) (DDGMP03 Figure 1); --input RUN --truth \
            FILE for a real crawl",
        unit: "pages of a made-up crawl, without --input",
        scale: 5_000,
        full: 300_000,
        run: ExperimentRun::Alone(figure_1::run),
    }]
}

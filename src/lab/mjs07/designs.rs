//! Example 3.1: cost of a probe under each design, and savings of coverings.

use super::super::{FigureRow, Options, figure, row_against_published};
use webtwin_base::error::Result;
use webtwin_core::hamming::design::covering::block_designs;
use webtwin_core::hamming::design::{TableDesign, paper};

/// Reproduces Example 3.1.
pub(super) fn example_3_1(options: &Options) -> Result<Vec<FigureRow>> {
    let documents = options.scale as f64;
    // The values in the paper are for 2^34 fingerprints.
    let paper_bits = |most: f64| (options.scale == 1 << 34).then_some(most);
    let mut rows = Vec::new();
    for (design, (tables, bits, max_bits)) in paper::example_3_1().iter().zip([
        (20.0, 31.0, 8.0),
        (16.0, 28.0, 64.0),
        (10.0, 25.0, 512.0),
        (4.0, 16.0, 262_144.0),
    ]) {
        let (name, top_bits) = (format!("{tables} tables"), design.top_bits());
        rows.push(row_against_published(&format!("{name}: tables"), design.keys.len() as f64, tables, "tables"));
        rows.push(row_against_published(&format!("{name}: least top bits"), f64::from(top_bits), bits, "bits"));
        let matches = documents / 2f64.powi(top_bits as i32);
        rows.push(FigureRow {
            published: paper_bits(max_bits),
            ..figure(&format!("{name}: most matches a probe"), matches, "fingerprints")
        });
        let (recurrence, _) = paper::fewest_tables(64, super::K, 34.0, bits);
        rows.push(row_against_published(
            &format!("X(64, 3, 34) for {bits} top bits"),
            recurrence as f64,
            tables,
            "tables",
        ));
        let covering_design = block_designs(super::K)
            .iter()
            .map(|blocks| TableDesign::new(64, super::K, blocks))
            .filter(|covering| covering.top_bits() >= top_bits)
            .min_by_key(|covering| covering.keys.len());
        if let Some(covering_design) = covering_design {
            let min_bits = covering_design.top_bits();
            rows.push(
                row_against_published(
                    &format!("covering of {min_bits} top bits"),
                    covering_design.keys.len() as f64,
                    tables,
                    "tables",
                )
                .at_most(tables),
            );
        }
    }
    Ok(rows)
}

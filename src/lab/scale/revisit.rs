//! Comparison of policies of visits by the number of wrong skips that they detect, in fifty
//! simulated crawls of skipped mirrors. Each mirror ends as a mirror at some time, which the
//! crawler learns only by a visit.
//!
//! All policies have the same mirrors, which end at the same times, and the same budget of pages
//! for each crawl. A visit costs the number of pages that shows with a confidence of 95 % whether a
//! tenth has changed. For one in twenty mirrors that ended, the visit shows nothing. A mirror whose
//! end was found is fetched from then on, and no longer skipped.
//!
//! | policy | visits first |
//! |---|---|
//! | hazard | mirrors chosen by [`webtwin_compare::revisit`]: by size and probability of an end, per page fetched |
//! | uniform | mirrors that have not been visited for longest |
//! | proportional | mirrors whose original changes most often, weighted by the time since the last visit |

use super::super::{FigureRow, Options, figure};
use webtwin_base::error::Result;
use webtwin_base::ids::splitmix64;
use webtwin_compare::revisit::{HostRelation, Policy, Relation, order, probes, within, worth};

/// Number of simulated crawls.
const CRAWLS: u32 = 50;

/// Budgets of pages for each crawl, as fractions of the pages that are needed to visit every mirror
/// once.
const BUDGETS: [f64; 3] = [0.02, 0.05, 0.2];

const POLICY: Policy = Policy { confidence: 0.95, share: 0.1, prior_intervals: 4.0 };

/// The true state of a mirror, which no policy sees.
struct Mirror {
    kind: HostRelation,
    size: u32,
    /// Number of changes of its original per interval, which a crawler sees because it fetches the
    /// original.
    rate: f64,
    /// Number of the crawl from which on it is no longer a mirror.
    ends: u32,
}

/// Returns a pseudorandom number from 0 to 1, for a mirror and a purpose.
fn unit(mirror: u64, purpose: u64) -> f64 {
    (splitmix64(splitmix64(mirror) ^ purpose) >> 11) as f64 / (1u64 << 53) as f64
}

/// Makes a mirror. Aliases end rarely, parts often. A third of each kind ends three times as often
/// as the typical one, and a third a third as often. Sizes are from ten to ten thousand pages, with
/// equal numbers from ten to a hundred and from a hundred to a thousand.
fn mirror(number: u64) -> Mirror {
    let (kind, hazard) = match (unit(number, 1) * 4.0) as u32 {
        0 => (HostRelation::Alias, 0.004),
        1 | 2 => (HostRelation::Mirror, 0.02),
        _ => (HostRelation::Part, 0.06),
    };
    let hazard: f64 = hazard * [1.0 / 3.0, 1.0, 3.0][(unit(number, 2) * 3.0) as usize];
    let ends = 1.0 + (1.0 - unit(number, 3)).ln() / (1.0 - hazard).ln();
    Mirror {
        kind,
        size: 10f64.powf(1.0 + 3.0 * unit(number, 4)) as u32,
        rate: 10f64.powf(-2.0 + 2.0 * unit(number, 5)),
        ends: ends.min(1e6) as u32,
    }
}

/// State of a mirror on the list of a crawler.
#[derive(Clone, Copy)]
struct Known {
    /// Number of the crawl of the last visit.
    visited: u32,
    /// Number of intervals that it was seen to last.
    lasted: u32,
    is_skipped: bool,
}

/// A policy: returns the mirrors to visit, given the skipped mirrors, the known states, and the
/// crawl.
type Choose<'a> = dyn Fn(&[usize], &[Known], u32) -> Vec<usize> + 'a;

/// Returns the number of wrong page skips over all crawls, if `choose` selects the mirrors to
/// visit.
fn wrong_skips(mirrors: &[Mirror], choose: &mut Choose<'_>, on_end: &dyn Fn(&Mirror, u32)) -> u64 {
    let mut states = vec![Known { visited: 0, lasted: 0, is_skipped: true }; mirrors.len()];
    let mut n_wrong = 0;
    for crawl in 1..=CRAWLS {
        let skipped_mirrors: Vec<usize> = (0..mirrors.len()).filter(|&at| states[at].is_skipped).collect();
        for mirror in choose(&skipped_mirrors, &states, crawl) {
            let has_ended = mirrors[mirror].ends <= crawl;
            let shows = unit(mirror as u64, 1000 + u64::from(crawl)) < POLICY.confidence;
            let interval = crawl - states[mirror].visited;
            if has_ended && shows {
                on_end(&mirrors[mirror], states[mirror].lasted + interval);
                states[mirror].is_skipped = false;
            } else {
                states[mirror] = Known { visited: crawl, lasted: states[mirror].lasted + interval, is_skipped: true };
            }
        }
        let wrongly_skipped = (0..mirrors.len()).filter(|&at| states[at].is_skipped && mirrors[at].ends <= crawl);
        n_wrong += wrongly_skipped.map(|at| u64::from(mirrors[at].size)).sum::<u64>();
    }
    n_wrong
}

/// Compares the policies.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let mirrors: Vec<Mirror> = (0..options.scale).map(mirror).collect();
    let cost = |at: usize| u64::from(probes(&POLICY, mirrors[at].size));
    let total_cost: u64 = (0..mirrors.len()).map(cost).sum();
    let nobody = wrong_skips(&mirrors, &mut |_, _, _| Vec::new(), &|_, _| {});
    let mut rows = vec![
        figure("mirrors", mirrors.len() as f64, "mirrors"),
        figure("wrong skips without a visit, over 50 crawls", nobody as f64, "page skips"),
    ];
    for share in BUDGETS {
        let budget = (share * total_cost as f64) as u64;
        // Selects mirrors by descending rank, as long as they fit into the budget.
        let take_by_rank = |skipped_mirrors: &[usize], rank: &dyn Fn(usize) -> f64| {
            let mut order: Vec<usize> = skipped_mirrors.to_vec();
            order.sort_by(|&x, &y| rank(y).total_cmp(&rank(x)).then(x.cmp(&y)));
            let mut left = budget;
            order.retain(|&mirror| match cost(mirror) <= left {
                true => {
                    left -= cost(mirror);
                    true
                }
                false => false,
            });
            order
        };
        let uniform = wrong_skips(
            &mirrors,
            &mut |skipped, known, crawl| take_by_rank(skipped, &|at| f64::from(crawl - known[at].visited)),
            &|_, _| {},
        );
        let proportional = wrong_skips(
            &mirrors,
            &mut |skipped_mirrors, states, crawl| {
                take_by_rank(skipped_mirrors, &|at| mirrors[at].rate * f64::from(crawl - states[at].visited))
            },
            &|_, _| {},
        );
        // The policy learns from the observed ends, which the other callback records, so both
        // closures share the list.
        let history = std::cell::RefCell::new(Vec::new());
        let mut hazard = |skipped_mirrors: &[usize], states: &[Known], crawl: u32| -> Vec<usize> {
            let relation = |&mirror: &usize| Relation {
                kind: mirrors[mirror].kind,
                intervals: states[mirror].lasted,
                ends: 0,
                n_skipped: mirrors[mirror].size,
                age: crawl - states[mirror].visited,
            };
            let relations: Vec<Relation> = skipped_mirrors.iter().map(relation).collect();
            let values = worth(&relations, &history.borrow(), &POLICY);
            let is_chosen = within(budget, &values, &order(&values));
            skipped_mirrors.iter().zip(is_chosen).filter(|one| one.1).map(|one| *one.0).collect()
        };
        let note_end = |mirror: &Mirror, intervals: u32| {
            history.borrow_mut().push(Relation { kind: mirror.kind, intervals, ends: 1, n_skipped: 0, age: 1 });
        };
        let hazard = wrong_skips(&mirrors, &mut hazard, &note_end);
        let caught = |wrong: u64| 1.0 - wrong as f64 / nobody as f64;
        let best = caught(uniform).max(caught(proportional));
        let label_of =
            |policy: &str| format!("wrong skips caught at {:.0} % of all probes a crawl, {policy}", 100.0 * share);
        rows.push(figure(&label_of("by hazard"), caught(hazard), "share").at_least(best));
        rows.push(figure(&label_of("uniform"), caught(uniform), "share"));
        rows.push(figure(&label_of("proportional"), caught(proportional), "share"));
    }
    Ok(rows)
}

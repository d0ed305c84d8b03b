//! Change rates of pages from a few visits to each. Changes are a Poisson process that is observed
//! as "changed or not".
//!
//! Several changes between two visits appear as one, so the fraction of visits with a change
//! underestimates the rate. With n visits at equal intervals I, of which X found a change, the
//! estimate is -ln((n - X + 0.5) / (n + 0.5)) / I. It is finite at X = n and nearly unbiased. At
//! unequal intervals it is the maximum likelihood estimate with the same half of an unchanged visit
//! added; the two agree at equal intervals. The confidence bounds are those of the fraction of
//! visits that found a change, at the equal interval at which the same number of visits would find
//! the same number of changes.
//!
//! Rates are for reports and priorities, never for decisions about pages. So they are floating
//! point numbers, rounded to six digits.

use statrs::function::beta::beta_reg;

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// Number of bisection steps: more than the bits of a double.
const STEPS: u32 = 64;

/// Visits at one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
pub struct Visits {
    /// Time since the previous visit in seconds, at least 1.
    pub interval: i64,
    /// Number of visits.
    pub visits: u64,
    /// Number of visits that found a change.
    pub changed: u64,
}

/// Estimated change rate, and the observations that it follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Changes a day.
    pub rate: f64,
    /// Lower bound of the 95 % confidence interval, if visits are independent of each other.
    pub low: f64,
    /// Upper bound; infinite if every visit found a change.
    pub high: f64,
    /// Expected fraction of the newest interval during which a copy made at its start is up to
    /// date.
    pub freshness: f64,
    /// Number of visits over all intervals.
    pub visits: u64,
    /// Number of visits that found a change.
    pub n_changed: u64,
    /// Mean interval, in days.
    pub interval_days: f64,
}

/// Estimates a rate. Returns `None` without visits. The newest visits come last.
///
/// # Cost
/// About a hundred times the number of intervals.
pub fn rate(visits: &[Visits]) -> Option<Rate> {
    let visits: Vec<Visits> = visits.iter().copied().filter(|at| at.visits > 0).collect();
    let newest = visits.last()?;
    let sum = |of: fn(&Visits) -> u64| visits.iter().map(of).sum::<u64>();
    let (n_visits, n_changed) = (sum(|at| at.visits), sum(|at| at.changed));
    let days = |at: &Visits| at.interval.max(1) as f64 / DAY as f64;
    let interval = visits.iter().map(|at| days(at) * at.visits as f64).sum::<f64>() / n_visits as f64;
    let changes_an_interval = -(((n_visits - n_changed) as f64 + 0.5) / (n_visits as f64 + 0.5)).ln();
    let (estimate, one_for_all) = match visits.iter().all(|at| at.interval == newest.interval) {
        true => (changes_an_interval / interval, interval),
        false if n_changed == 0 => (0.0, interval),
        // Equivalent equal interval: visits at it would find the same number of changes.
        false => {
            let rate = likeliest_rate(&visits, interval, days);
            (rate, changes_an_interval / rate)
        }
    };
    let at_share = |share: f64| -(-share).ln_1p() / one_for_all;
    let (low, high) = share_between(n_changed, n_visits);
    let lambda = estimate * days(newest);
    let freshness = if lambda > 0.0 { -(-lambda).exp_m1() / lambda } else { 1.0 };
    Some(Rate {
        rate: six_digits(estimate),
        low: six_digits(at_share(low)),
        high: six_digits(at_share(high)),
        freshness: six_digits(freshness),
        visits: n_visits,
        n_changed,
        interval_days: six_digits(interval),
    })
}

/// Returns the maximum likelihood rate, with half of an unchanged visit added at the mean interval.
/// It solves the equation: the sum of t / (e^(rate t) - 1) over changed visits equals the sum of t
/// over unchanged ones. The left side falls as the rate grows. There must be a changed visit.
fn likeliest_rate(visits: &[Visits], interval: f64, days: impl Fn(&Visits) -> f64) -> f64 {
    let unchanged = visits.iter().map(|at| (at.visits - at.changed) as f64 * days(at)).sum::<f64>() + 0.5 * interval;
    let sum_of_changed = |rate: f64| -> f64 {
        visits
            .iter()
            .filter(|at| at.changed > 0)
            .map(|at| at.changed as f64 * days(at) / (rate * days(at)).exp_m1())
            .sum()
    };
    let mut high = 1.0 / interval;
    while sum_of_changed(high) > unchanged {
        high *= 2.0;
    }
    bisect(0.0, high, |rate| sum_of_changed(rate) > unchanged)
}

/// Returns the value between `low` and `high` up to which a monotone condition holds.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = low + (high - low) / 2.0;
        *(if holds(middle) { &mut low } else { &mut high }) = middle;
    }
    low + (high - low) / 2.0
}

/// Returns the 95 % confidence interval of Clopper and Pearson for the fraction of a population,
/// where `part` of `total` draws were hits.
pub fn share_between(part: u64, total: u64) -> (f64, f64) {
    let (x, n) = (part as f64, total as f64);
    let low = if part == 0 { 0.0 } else { bisect(0.0, 1.0, |share| beta_reg(x, n - x + 1.0, share) < 0.025) };
    let high = if part == total { 1.0 } else { bisect(0.0, 1.0, |share| beta_reg(x + 1.0, n - x, share) < 0.975) };
    (low, high)
}

/// Rounds to six significant digits, so that the output does not depend on the machine's floating
/// point functions. Zero loses its sign.
pub fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(interval: i64, visits: u64, n_changed: u64) -> Visits {
        Visits { interval: interval * DAY, visits, changed: n_changed }
    }

    #[test]
    fn estimate_at_equal_intervals_equals_the_corrected_estimator_of_the_paper() {
        // -ln((10 - 6 + 0.5) / 10.5) / 1
        let estimate = rate(&[visits(1, 10, 6)]).unwrap();
        assert_eq!(
            (estimate.rate, estimate.visits, estimate.n_changed, estimate.interval_days),
            (0.847298, 10, 6, 1.0)
        );
        assert_eq!(rate(&[visits(2, 5, 3), visits(2, 5, 3)]).unwrap().rate, 0.423649);
        // A page that changed at every visit has a finite rate without an upper bound. A page that
        // never changed has the rate 0.
        let all_changed = rate(&[visits(1, 10, 10)]).unwrap();
        assert_eq!((all_changed.rate, all_changed.high), (3.04452, f64::INFINITY));
        let none_changed = rate(&[visits(1, 10, 0), visits(3, 10, 0)]).unwrap();
        assert_eq!((none_changed.rate, none_changed.low, none_changed.freshness), (0.0, 0.0, 1.0));
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[visits(1, 0, 0)]), None);
    }

    #[test]
    fn estimate_at_unequal_intervals_converges_to_the_equal_case() {
        let equal_rate = rate(&[visits(1, 20, 12)]).unwrap().rate;
        let nearly_equal =
            [Visits { interval: DAY, visits: 10, changed: 6 }, Visits { interval: DAY + 1, visits: 10, changed: 6 }];
        let near_rate = rate(&nearly_equal).unwrap().rate;
        assert!((equal_rate - near_rate).abs() < 1e-4 * equal_rate, "{equal_rate} {near_rate}");
    }

    #[test]
    fn estimates_a_known_rate() {
        // Expected observations at a rate of 0.2 a day.
        let visits_at =
            |days: i64| visits(days, 100_000, (100_000.0 * (1.0 - (-0.2 * days as f64).exp())).round() as u64);
        let estimate = rate(&[visits_at(1), visits_at(4), visits_at(9)]).unwrap();
        assert!((estimate.rate - 0.2).abs() < 1e-4, "{estimate:?}");
        // (1 - e^-1.8) / 1.8 for the newest interval.
        assert!((estimate.freshness - 0.463723).abs() < 1e-4, "{estimate:?}");
        assert!(estimate.low < estimate.high);
    }

    #[test]
    fn bounds_are_those_of_clopper_and_pearson() {
        // Tables of the exact interval: 3 of 10 is between 0.0667 and 0.6525; 0 of 29 below 0.1194.
        let assert_near = |bounds: (f64, f64), want: (f64, f64)| {
            assert!((bounds.0 - want.0).abs() < 1e-4 && (bounds.1 - want.1).abs() < 1e-4, "{bounds:?}");
        };
        assert_near(share_between(3, 10), (0.0667, 0.6525));
        assert_near(share_between(0, 29), (0.0, 0.1194));
        assert_near(share_between(10, 10), (0.6915, 1.0));
    }

    #[test]
    fn six_digits_are_kept() {
        assert_eq!([0.123456789, 123456.789, 0.0, 1e-9 / 3.0].map(six_digits), [0.123457, 123457.0, 0.0, 3.33333e-10]);
        assert_eq!(six_digits(f64::INFINITY), f64::INFINITY);
        assert!(six_digits(-0.0).is_sign_positive());
    }
}

//! Quantiles of a histogram.

/// Returns a quantile of a histogram: about the fraction `share` of all values are at most this
/// value. Each bucket has its upper end, and the number of all values up to this end. Returns
/// `None` if the histogram is empty.
pub fn of(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let wanted = buckets.last()?.1 * share;
    let place = buckets.iter().position(|(_, count)| *count >= wanted && *count > 0.0)?;
    let (start, below) = place.checked_sub(1).map_or((0.0, 0.0), |place| buckets[place]);
    let (end, count) = buckets[place];
    if end.is_infinite() {
        return Some(start);
    }
    Some(start + (end - start) * (wanted - below) / (count - below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let buckets = [(0.1, 0.0), (0.2, 50.0), (0.4, 90.0), (f64::INFINITY, 100.0)];
        for (share, expected) in [(0.25, 0.15), (0.7, 0.3), (0.99, 0.4)] {
            let found = of(&buckets, share).expect("not empty");
            assert!((found - expected).abs() < 1e-9, "{share}: {found}");
        }
        assert_eq!(of(&[], 0.5), None);
        assert_eq!(of(&[(f64::INFINITY, 0.0)], 0.5), None);
    }
}

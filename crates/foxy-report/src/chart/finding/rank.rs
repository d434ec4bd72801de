//! Ranks the values of several series: the best value, the values that do not clearly differ from
//! it, and the worst value.

use super::{Value, are_near, interval, quantity, ratio, times};
use crate::direction::Better;

/// Largest number of names that one sentence lists.
const LISTED: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) value: Value,
}

/// Returns sentences about the best and the worst item.
pub(super) fn ranking(mut items: Vec<Item>, better: Better, unit: &str) -> String {
    let lower_first = matches!(better, Better::Lower | Better::FurtherLeft);
    items.sort_by(|a, b| {
        let order = a.value.value.total_cmp(&b.value.value);
        if lower_first { order } else { order.reverse() }
    });
    let [best, rest @ ..] = &items[..] else { return String::new() };
    let of = |item: &Item| {
        let Item { name, value } = item;
        format!("{name}, {}{}", quantity(value.value, unit), interval(value))
    };
    if rest.is_empty() {
        let Item { name, value } = best;
        return format!("{name}: {}{}.", quantity(value.value, unit), interval(value));
    }
    let (first, last) = match better {
        Better::Neither | Better::Unstated => ("Highest", "Lowest"),
        _ => ("Best", "Worst"),
    };
    let has_intervals = items.iter().any(|item| item.value.has_interval());
    let (ties, clear): (Vec<&Item>, Vec<&Item>) =
        rest.iter().partition(|item| are_near(&item.value, &best.value));
    if clear.is_empty() && !has_intervals {
        return format!("All {} are equal: {}.", items.len(), quantity(best.value.value, unit));
    }
    let mut text = format!("{first}: {}", of(best));
    if !ties.is_empty() {
        let equal = if has_intervals { "not clearly different" } else { "the same" };
        text.push_str(&format!("; {equal}: {}", listed(&ties, unit)));
    }
    text.push('.');
    let compared = |item: &Item| format!("{}: {}", of(item), against(item, best, unit));
    match (&clear[..], &ties[..]) {
        ([], [.., worst]) => {
            text.push_str(&format!(" No clear difference: {}.", compared(worst)));
        }
        ([only], []) if rest.len() == 1 => text.push_str(&format!(" {last}: {}.", compared(only))),
        ([next, .., worst], []) => {
            text.push_str(&format!(" Next: {}. {last}: {}.", compared(next), compared(worst)));
        }
        ([.., worst], _) => text.push_str(&format!(" {last}: {}.", compared(worst))),
        ([], []) => {}
    }
    text
}

fn listed(items: &[&Item], unit: &str) -> String {
    let name = |item: &&Item| format!("{} ({})", item.name, quantity(item.value.value, unit));
    let mut names: Vec<String> = items.iter().take(LISTED).map(name).collect();
    if items.len() > LISTED {
        names.push(format!("{} more", items.len() - LISTED));
    }
    names.join(", ")
}

/// Compares an item with the best item: as a ratio, or as a difference if a value is not above 0.
fn against(item: &Item, best: &Item, unit: &str) -> String {
    if let Some(ratio) = ratio(&item.value, &best.value) {
        return times(&ratio, best.name);
    }
    let difference = item.value.value - best.value.value;
    let word = if difference < 0.0 { "less" } else { "more" };
    format!("{} {word} than {}", quantity(difference.abs(), unit), best.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items<'a>(values: &[(&'a str, f64, f64, f64)]) -> Vec<Item<'a>> {
        let item =
            |&(name, value, low, high)| Item { name, value: Value::between(value, low, high) };
        values.iter().map(item).collect()
    }

    #[test]
    fn the_worst_is_a_multiple_of_the_best() {
        let all = items(&[("nginx", 30.0, 27.0, 33.0), ("foxy", 10.0, 9.0, 11.0)]);
        assert_eq!(
            ranking(all.clone(), Better::Lower, "us"),
            "Best: foxy, 10 µs (9 to 11). Worst: nginx, 30 µs (27 to 33): 3 × foxy."
        );
        assert!(ranking(all, Better::Neither, "").starts_with("Highest: nginx, 30"));
    }

    #[test]
    fn intervals_that_overlap_show_no_clear_difference() {
        let two = items(&[("a", 10.0, 8.0, 12.0), ("b", 11.0, 9.0, 13.0)]);
        let text = ranking(two.clone(), Better::Higher, "1/s");
        assert!(text.contains("not clearly different: a (10/s). No clear difference: a"), "{text}");
        let three = [two, items(&[("c", 5.0, 4.0, 6.0)])].concat();
        let text = ranking(three, Better::Higher, "1/s");
        assert!(text.ends_with(" Worst: c, 5/s (4 to 6): 0.455 × b."), "{text}");
    }

    #[test]
    fn single_runs_are_ranked_and_equal_values_are_named() {
        let all = items(&[("a", 4.0, 4.0, 4.0), ("b", 2.0, 2.0, 2.0), ("c", 8.0, 8.0, 8.0)]);
        assert_eq!(
            ranking(all, Better::Lower, "ms"),
            "Best: b, 2 ms. Next: a, 4 ms: 2 × b. Worst: c, 8 ms: 4 × b."
        );
        let same = items(&[("a", 1.0, 1.0, 1.0), ("b", 1.0, 1.0, 1.0)]);
        assert_eq!(ranking(same.clone(), Better::Higher, "share"), "All 2 are equal: 1.");
        let more = [same, items(&[("c", 0.0, 0.0, 0.0)])].concat();
        assert_eq!(
            ranking(more, Better::Higher, "share"),
            "Best: a, 1; the same: b (1). Worst: c, 0: 1 less than a."
        );
    }
}

//! Computes the finding of a chart of bars, which is the sentences under the title. The finding
//! ranks the groups, or compares the run's values with a paper's, or compares each series with a
//! base.

use super::super::Bars;
use super::{
    Better, Chart, Item, Look, Value, are_near, better, first_line, quantity, ranking, ratio, times,
};
use crate::number::significant;

pub(super) fn finding(chart: &Chart, groups: &[String], series: &[Bars]) -> String {
    let quoted = series.iter().find(|bars| bars.look == Look::Quoted);
    let ours: Vec<&Bars> = series.iter().filter(|bars| bars.look != Look::Quoted).collect();
    let (better, unit) = (better(chart), chart.x.unit.as_str());
    match (quoted, &ours[..]) {
        (_, []) => String::new(),
        (None, [only]) => ranking(of_groups(groups, only), better, unit),
        (Some(quoted), [only]) => {
            let text = beside_paper(groups, quoted, only, unit);
            let items = of_groups(groups, only);
            let is_ranked = items.len() > 1 && better != Better::Neither;
            let rank = if is_ranked { ranking(items, better, unit) } else { String::new() };
            let name = if rank.is_empty() { String::new() } else { format!("{}: ", only.name) };
            [text, name + &rank].join("\n").trim().to_owned()
        }
        (_, several) => match base(&chart.x.title) {
            Some(base) => beside_base(groups, several, base, better),
            None => by_group(groups, several, better, unit),
        },
    }
}

fn of_groups<'a>(groups: &'a [String], bars: &Bars) -> Vec<Item<'a>> {
    let item = |(name, value): (&'a String, &Option<Value>)| {
        Some(Item { name: first_line(name), value: value.clone()? })
    };
    groups.iter().zip(&bars.values).filter_map(item).collect()
}

/// Compares the run's value with the paper's in each group.
fn beside_paper(groups: &[String], quoted: &Bars, ours: &Bars, unit: &str) -> String {
    let values = groups.iter().zip(quoted.values.iter().zip(&ours.values));
    let pairs: Vec<(&str, &Value, &Value, Value)> = values
        .filter_map(|(name, (quoted, ours))| {
            let (quoted, ours) = (quoted.as_ref()?, ours.as_ref()?);
            Some((first_line(name), quoted, ours, ratio(ours, quoted)?))
        })
        .collect();
    let mut near = pairs.clone();
    near.sort_by(|a, b| a.3.value.ln().abs().total_cmp(&b.3.value.ln().abs()));
    match &near[..] {
        [] => String::new(),
        [(name, quoted, ours, ratio)] => format!(
            "{name}: foxy {}, the paper {}: {}.",
            quantity(ours.value, unit),
            quantity(quoted.value, unit),
            times(ratio, "the paper's")
        ),
        [nearest, .., farthest] => {
            let (near, far) = (times(&nearest.3, "the paper's"), times(&farthest.3, "the paper's"));
            let same = pairs.iter().filter(|(_, quoted, ours, _)| are_near(quoted, ours)).count();
            let ranges = if same > 0 {
                format!(" No clear difference from the paper: {same} of {}.", pairs.len())
            } else {
                String::new()
            };
            format!(
                "foxy beside the paper: nearest {}, {near}; farthest {}, {far}.{ranges}",
                nearest.0, farthest.0
            )
        }
    }
}

/// Returns the name of the base if the axis shows ratios to a base: `times that of foxy (1: …)`.
fn base(title: &str) -> Option<&str> {
    let rest = title.strip_prefix("times that of ")?;
    Some(rest.split_once(" (").map_or(rest, |(base, _)| base))
}

/// Counts the ratios that lie clearly above and below 1, and names the largest and the smallest.
fn beside_base(groups: &[String], series: &[&Bars], base: &str, better: Better) -> String {
    let mut all: Vec<(String, &Value)> = Vec::new();
    for bars in series {
        for (group, value) in groups.iter().zip(&bars.values) {
            let name = format!("{}, {}", bars.name, first_line(group));
            all.extend(value.as_ref().map(|value| (name, value)));
        }
    }
    all.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let [smallest, .., largest] = &all[..] else { return String::new() };
    let above = all.iter().filter(|(_, value)| value.low > 1.0).count();
    let below = all.iter().filter(|(_, value)| value.high < 1.0).count();
    let unclear = all.len() - above - below;
    let (best, worst) = if better == Better::Lower { (above, below) } else { (below, above) };
    format!(
        "{base} is better in {best} of {} pairs, worse in {worst}, not clearly different in \
         {unclear}. Largest: {}, {}. Smallest: {}, {}.",
        all.len(),
        largest.0,
        times(largest.1, base),
        smallest.0,
        times(smallest.1, base)
    )
}

/// Counts the groups in which each series is best, and ranks the group with the widest difference.
fn by_group(groups: &[String], series: &[&Bars], better: Better, unit: &str) -> String {
    let of_group = |group: usize| -> Vec<Item> {
        let item = |bars: &&'_ Bars| bars.values.get(group)?.clone();
        let named = series
            .iter()
            .filter_map(|bars| Some(Item { name: bars.name.as_str(), value: item(bars)? }));
        named.collect()
    };
    let span = |group: usize| {
        let values = of_group(group).into_iter().map(|item| item.value.value);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > 0.0 { high / low } else { 0.0 }
    };
    let widest = (0..groups.len()).max_by(|a, b| span(*a).total_cmp(&span(*b)));
    let Some(widest) = widest else { return String::new() };
    format!(
        "Largest difference, {} ×, in {}. {}",
        significant(span(widest), 3),
        first_line(&groups[widest]),
        ranking(of_group(widest), better, unit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(name: &str, look: Look, values: &[(f64, f64, f64)]) -> Bars {
        let value = |&(value, low, high)| Some(Value::between(value, low, high));
        Bars { name: name.into(), look, values: values.iter().map(value).collect() }
    }

    #[test]
    fn values_of_a_paper_are_the_base_of_ours() {
        let groups = ["SQUID\na remark".to_owned(), "BUDDY".to_owned()];
        let quoted = bars("the paper", Look::Quoted, &[(20.0, 20.0, 20.0), (100.0, 90.0, 110.0)]);
        let ours = bars("foxy", Look::Solid, &[(10.0, 10.0, 10.0), (105.0, 104.0, 106.0)]);
        assert_eq!(
            beside_paper(&groups, &quoted, &ours, "1/s"),
            "foxy beside the paper: nearest BUDDY, 1.05 × the paper's; farthest \
             SQUID, 0.5 × the paper's. No clear difference from the paper: 1 of 2."
        );
        assert_eq!(
            beside_paper(&groups[..1], &quoted, &ours, "1/s"),
            "SQUID: foxy 10/s, the paper 20/s: 0.5 × the paper's."
        );
    }

    #[test]
    fn ratios_to_a_base_are_counted_by_their_side_of_one() {
        let groups = ["zipf".to_owned(), "fill".to_owned()];
        let nginx = bars("nginx", Look::Solid, &[(2.0, 1.5, 2.5), (0.5, 0.4, 0.6)]);
        let squid = bars("squid", Look::Solid, &[(1.1, 0.9, 1.3), (9.0, 8.0, 10.0)]);
        assert_eq!(base("times that of foxy (1: the same)"), Some("foxy"));
        assert_eq!(
            beside_base(&groups, &[&nginx, &squid], "foxy", Better::Lower),
            "foxy is better in 2 of 4 pairs, worse in 1, not clearly different in 1. Largest: \
             squid, fill, 9 × foxy (8 to 10). Smallest: nginx, fill, 0.5 × foxy (0.4 to 0.6)."
        );
    }
}

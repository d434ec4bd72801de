//! Draws charts of figure rows, with the paper's values beside the runs' values.

use super::quotes::{in_chart, quote};
use super::{FigureRow, Place, QuoteKind};
use crate::chart::{Axis, Bars, Better, Chart, Look, Plot, Provenance, Spread, Value};

/// Returns the charts of the rows. A chart has the rows with the same figure, unit, trace, place
/// and scale. Rows with a value of zero or less get a separate chart. Leaves out rows without a
/// value of foxy's runs, and charts with nothing to compare.
pub fn charts(rows: &[FigureRow], quick: bool) -> Vec<Chart> {
    let mut groups: Vec<Vec<&FigureRow>> = Vec::new();
    for row in rows.iter().filter(|row| row.ours.is_some()) {
        match groups.iter_mut().find(|group| belong_together(group[0], row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let says_something = |group: &&Vec<&FigureRow>| {
        let differ = group.iter().any(|row| row.ours != group[0].ours);
        differ || group.iter().any(|row| quoted_of(row).is_some())
    };
    groups.iter().filter(says_something).map(|group| chart(group, quick)).collect()
}

fn belong_together(one: &FigureRow, other: &FigureRow) -> bool {
    let of = |row: &FigureRow| {
        let FigureRow { figure, unit, trace, place, .. } = row.clone();
        (figure, unit, trace, place, row.scale.to_bits(), is_positive(row))
    };
    of(one) == of(other)
}

fn is_positive(row: &FigureRow) -> bool {
    let quoted = quoted_of(row).map(|value| value.low);
    [quoted, row.ours, row.low].into_iter().flatten().all(|value| value > 0.0)
}

fn chart(rows: &[&FigureRow], quick: bool) -> Chart {
    let first = rows[0];
    let quoted = bars("the paper", Look::Quoted, rows, quoted_of);
    let ours = bars("foxy", Look::Solid, rows, ours_of);
    let has_quotes = quoted.values.iter().any(Option::is_some);
    let series = if has_quotes { vec![quoted, ours] } else { vec![ours] };
    let values = series.iter().flat_map(|bars| bars.values.iter().flatten());
    let values: Vec<f64> = values.flat_map(|value| [value.value, value.low, value.high]).collect();
    let runs = rows.iter().any(|row| !row.runs.is_empty());
    Chart {
        title: format!(
            "{}: {}, {}",
            name(&first.figure),
            what(&first.unit),
            subject(first, has_quotes)
        ),
        better: if are_alike(rows) { better(&first.unit) } else { Better::Neither },
        provenance: Provenance {
            source: String::new(),
            place: first.place,
            scale: first.scale,
            quick,
            seeds: rows.iter().map(|row| row.seeds).max().unwrap_or(0),
        },
        spread: if runs { Spread::Runs } else { Spread::Range },
        x: Axis::fitting(&format!("{}, {}", what(&first.unit), first.unit), values.into_iter()),
        y: Axis::linear("", ""),
        plot: Plot::Bars { groups: rows.iter().map(|row| group(row)).collect(), series },
    }
}

/// Returns whether the rows have values of one quantity, so that a lower value can be better than
/// another. Means, medians and differences are different quantities. No difference is better than
/// another, because each has a sign.
fn are_alike(rows: &[&FigureRow]) -> bool {
    let statistic = |row: &FigureRow| {
        let last = row.row.rsplit(", ").next().unwrap_or_default().to_owned();
        ["mean", "median"].contains(&last.as_str()).then_some(last)
    };
    let is_difference = rows.iter().any(|row| row.row.contains(" less "));
    !is_difference && rows.iter().all(|row| statistic(row) == statistic(rows[0]))
}

/// Returns whether higher or lower values in a unit are better.
fn better(unit: &str) -> Better {
    match unit {
        "1" | "B" | "chunks" | "ms" | "minutes" | "s" | "times as long" => Better::Lower,
        _ if unit.ends_with("/s") => Better::Higher,
        _ => Better::Neither,
    }
}

/// Returns the kind of quantity that has this unit, such as `time` for seconds.
fn what(unit: &str) -> &'static str {
    match unit {
        "chunks" => "number of chunks",
        "clients" => "number of clients",
        "ms" | "minutes" | "s" => "time",
        "times as long" => "ratio of times",
        "times" => "ratio",
        "KB" | "B" => "bytes",
        "%" | "% of URL-gets" | "share" => "share",
        "1" => "operations per request",
        _ if unit.ends_with("/s") => "rate",
        _ => "value",
    }
}

fn bars(
    name: &str,
    look: Look,
    rows: &[&FigureRow],
    value: impl Fn(&FigureRow) -> Option<Value>,
) -> Bars {
    Bars { name: name.into(), look, values: rows.iter().map(|row| value(row)).collect() }
}

/// Returns the quoted value from the current table of quotes. The row itself may come from an old
/// record, with the value of an older table.
fn quoted_of(row: &FigureRow) -> Option<Value> {
    let of_record = || {
        let (low, high) = row.range.or(row.quoted.map(|quoted| (quoted, quoted)))?;
        Some(Value::between(row.quoted?, low, high))
    };
    in_chart(&row.figure, &row.row).or_else(of_record)
}

fn ours_of(row: &FigureRow) -> Option<Value> {
    let ours = row.ours?;
    let range = || Value::between(ours, row.low.unwrap_or(ours), row.high.unwrap_or(ours));
    Some(Value::of_runs(&row.runs).unwrap_or_else(range))
}

fn subject(row: &FigureRow, has_quotes: bool) -> String {
    let trace =
        if row.trace.is_empty() { String::new() } else { format!(", from the log {}", row.trace) };
    let compared = if has_quotes { "foxy beside the paper" } else { "foxy's values" };
    let place = if row.place == Place::Measured { " on this machine" } else { "" };
    format!("{compared}{place}{trace}")
}

/// Returns the name of a row. A second line remarks how the quoted value was obtained.
fn group(row: &FigureRow) -> String {
    let known = quote(&row.figure, &row.row);
    let remark = match known.map(|quote| (quote.kind, quote.value.is_some())) {
        Some((QuoteKind::Derived, _)) => "\npaper: derived from its numbers",
        Some((QuoteKind::Words, true)) => "\npaper: in words",
        Some((QuoteKind::Words, false)) => "\npaper: a direction, without a number",
        Some((QuoteKind::Edition, _)) => "\npaper: another edition",
        Some((QuoteKind::Stated, _)) | None => "",
    };
    format!("{}{remark}", row.row)
}

/// Returns the words for a figure's name: `001-fig10` is figure 10 of paper 001.
fn name(figure: &str) -> String {
    let Some((paper, rest)) = figure.split_once('-') else { return figure.into() };
    let (what, suffix) = match rest.split_once('-') {
        Some((what, suffix)) => (what, format!(" ({suffix})")),
        None => (rest, String::new()),
    };
    let number = |start: &str| what.strip_prefix(start).filter(|rest| !rest.is_empty());
    let what = match (number("fig"), number("table"), number("d"), number("r")) {
        (Some(number), ..) => format!("Fig {number}"),
        (_, Some(number), ..) => format!("Table {number}"),
        (_, _, Some(number), _) if number.len() == 1 => format!("Table D-{number}"),
        (_, _, _, Some(number)) if number.len() == 2 => format!("requirement R{number}"),
        _ => what.into(),
    };
    format!("Paper {paper}, {what}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, values: &[f64]) -> FigureRow {
        FigureRow::of("001-table2", name, "URL-get/s", values).judged()
    }

    #[test]
    fn each_row_stands_beside_the_papers_value_with_every_run() {
        let rows = [row("SQUID", &[22.0, 24.0, 23.0]), row("BUDDY", &[140.0, 141.0, 142.0])];
        let charts = charts(&rows, false);
        assert_eq!(charts.len(), 1);
        let Plot::Bars { groups, series } = &charts[0].plot else { panic!("{charts:?}") };
        assert_eq!(groups, &["SQUID", "BUDDY"]);
        let shown: Vec<Vec<f64>> = series
            .iter()
            .map(|bars| bars.values.iter().flatten().map(|value| value.value).collect())
            .collect();
        assert_eq!(shown, [[27.0, 133.0], [23.0, 141.0]]);
        assert_eq!(series[1].values[0].as_ref().map(|value| value.runs.len()), Some(3));
    }

    #[test]
    fn rows_of_other_units_scales_or_figures_are_in_other_charts() {
        let ratio = FigureRow::of("001-table2", "best over SQUID", "times", &[20.0]).judged();
        let rows = [row("SQUID", &[22.0]), ratio, row("BUDDY", &[140.0]).at_scale(0.5)];
        assert_eq!(charts(&rows, false).len(), 3);
        let alone = FigureRow::of("001-fig8", "requests that move the arm", "%", &[5.0]);
        assert_eq!(charts(&[alone], false).len(), 0);
    }

    #[test]
    fn means_medians_and_differences_are_not_ranked() {
        let better = |names: &[&str]| {
            let row = |name: &&str| FigureRow::of("002-table2", name, "ms", &[1.0, 2.0]).judged();
            charts(&names.iter().map(row).collect::<Vec<_>>(), false)[0].better
        };
        assert_eq!(better(&["PT proxy direct, mean", "PT proxy tested, mean"]), Better::Lower);
        assert_eq!(better(&["PT proxy direct, mean", "PT proxy tested, median"]), Better::Neither);
        assert_eq!(better(&["second less first, mean"]), Better::Neither);
    }

    #[test]
    fn names_of_figures_are_spoken() {
        let check = |figure: &str, words: &str| assert_eq!(name(figure), words);
        check("001-fig10", "Paper 001, Fig 10");
        check("001-table2-disk", "Paper 001, Table 2 (disk)");
        check("000-d6", "Paper 000, Table D-6");
        check("001-r44", "Paper 001, requirement R44");
        check("001-recovery", "Paper 001, recovery");
    }
}

//! Draws the measures of LEAP as Table 4 of paper 002: mean and median response times.

use crate::chart::{Axis, Bars, Chart, Look, Plot, Provenance, Spread, Value};
use crate::figure::quotes::in_chart;
use crate::record::Measure;

/// A chart: measure, words, unit, factor to this unit, and the figure and end of the quoted rows.
struct Column {
    measure: &'static str,
    words: &'static str,
    unit: &'static str,
    factor: f64,
    figure: &'static str,
    end: &'static str,
}

const COLUMNS: [Column; 2] = [
    Column {
        measure: "latency_mean_us",
        words: "mean response time",
        unit: "ms",
        factor: 1e-3,
        figure: "002-table4",
        end: ", mean",
    },
    Column {
        measure: "latency_p50_us",
        words: "median response time",
        unit: "ms",
        factor: 1e-3,
        figure: "002-table4",
        end: ", median",
    },
];

/// Returns the charts if the records are those of a run with a direct path.
pub(super) fn charts(measures: &[&Measure], provenance: &Provenance) -> Vec<Chart> {
    let has_direct = measures.iter().any(|one| one.subject == "direct" && one.workload.is_none());
    let columns = COLUMNS.iter().filter(|_| has_direct);
    columns.filter_map(|column| chart(column, measures, provenance)).collect()
}

fn chart(column: &Column, measures: &[&Measure], provenance: &Provenance) -> Option<Chart> {
    let found: Vec<&&Measure> = measures
        .iter()
        .filter(|measure| measure.name == column.measure && measure.workload.is_none())
        .collect();
    let quoted = |measure: &&&Measure| {
        in_chart(column.figure, &format!("{}{}", measure.subject, column.end))
    };
    let ours = |measure: &&&Measure| {
        let [value, low, high] =
            [measure.value, measure.low, measure.high].map(|value| value * column.factor);
        Some(Value::between(value, low, high))
    };
    let series = [
        ("the paper, in 2004", Look::Quoted, found.iter().map(quoted).collect::<Vec<_>>()),
        ("this run", Look::Solid, found.iter().map(ours).collect()),
    ];
    (found.len() > 1).then(|| Chart {
        title: format!("LEAP, paper 002, Table 4: {}", column.words),
        provenance: provenance.clone(),
        spread: Spread::Confidence,
        x: Axis::linear(column.words, column.unit),
        y: Axis::linear("", ""),
        plot: Plot::Bars {
            groups: found.iter().map(|measure| measure.subject.clone()).collect(),
            series: series
                .into_iter()
                .map(|(name, look, values)| Bars { name: name.into(), look, values })
                .collect(),
        },
    })
}

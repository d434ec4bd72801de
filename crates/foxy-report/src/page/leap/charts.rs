//! Draws the mean and median response times of a run of LEAP, as in Table 4 of the LEAP paper
//! (paper 002 in docs/figures.md).

use crate::chart::{Axis, Bars, Better, Chart, Look, Plot, Provenance, Spread, Value};
use crate::figure::quotes::in_chart;
use crate::record::Measure;

/// The figure in the table of quotes that gives the LEAP paper's values.
const FIGURE: &str = "002-table4";

/// The measures of the charts, in microseconds, each with its name in the rows of the table of
/// quotes (`quotes.tsv`).
const COLUMNS: [(&str, &str); 2] = [("latency_mean_us", "mean"), ("latency_p50_us", "median")];

/// Returns the charts if the run also sent requests to the origin directly, without a proxy.
pub fn charts(measures: &[&Measure], provenance: &Provenance) -> Vec<Chart> {
    let has_direct = measures.iter().any(|one| one.subject == "direct" && one.workload.is_none());
    let columns = COLUMNS.iter().filter(|_| has_direct);
    columns.filter_map(|&column| chart(column, measures, provenance)).collect()
}

fn chart(
    (name, word): (&str, &str),
    measures: &[&Measure],
    provenance: &Provenance,
) -> Option<Chart> {
    let found: Vec<&&Measure> = measures
        .iter()
        .filter(|measure| measure.name == name && measure.workload.is_none())
        .collect();
    let quoted = |measure: &&&Measure| in_chart(FIGURE, &format!("{}, {word}", measure.subject));
    let ours = |measure: &&&Measure| {
        let [value, low, high] =
            [measure.value, measure.low, measure.high].map(|value| value * 1e-3);
        Some(Value::between(value, low, high))
    };
    let quoted: Vec<Option<Value>> = found.iter().map(quoted).collect();
    // The value of the direct path alone says nothing about proxies.
    let has_proxies = quoted.iter().flatten().count() > 1;
    let paper = has_proxies.then_some(("the paper, in 2004", Look::Quoted, quoted));
    let ours = ("this run", Look::Solid, found.iter().map(ours).collect());
    let series = paper.into_iter().chain([ours]);
    (found.len() > 1).then(|| Chart {
        title: format!("LEAP, paper 002, Table 4: {word} response time"),
        better: Better::Lower,
        provenance: provenance.clone(),
        spread: Spread::Confidence,
        x: Axis::linear(&format!("{word} response time"), "ms"),
        y: Axis::linear("", ""),
        plot: Plot::Bars {
            groups: found.iter().map(|measure| measure.subject.clone()).collect(),
            series: series
                .map(|(name, look, values)| Bars { name: name.into(), look, values })
                .collect(),
        },
    })
}

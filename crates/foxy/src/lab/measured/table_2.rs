//! Table 2 of seed 001 on this machine's real disk, beside the model at the same scale.

use super::run::run;
use super::{Context, judged, row};
use foxy_lab::figures::picture::{Picture, Series, Style};
use foxy_lab::figures::trial::Trial;
use foxy_lab::figures::{Figure, Lab};
use foxy_report::figure::{FigureRow, Verdict};
use foxy_store::SchemeName;

const NAME: &str = "001-table2-disk";
const RATE: &str = "URL-get/s";

/// The techniques, with the paper's rate of each.
const TECHNIQUES: [(&str, SchemeName, f64); 8] = [
    ("SINGLE-DIRECTORY", SchemeName::SingleDirectory, 14.5),
    ("SQUID", SchemeName::Ufs, 27.0),
    ("MULTIPLE-DIRS", SchemeName::MultipleDirs, 20.0),
    ("BUDDY", SchemeName::Buddy, 133.0),
    ("STREAM", SchemeName::Stream, 308.0),
    ("STREAM-PACKETIZER", SchemeName::Packetizer, 350.0),
    ("LAZY-READS", SchemeName::LazyReads, 385.0),
    ("LAZY-READS-LOC", SchemeName::LazyReadsLoc, 510.0),
];

/// Table 2 in the folder, and on the model at the same scale.
pub fn table_2(context: &Context) -> Figure {
    let extent = context.extent();
    let scale = extent.scale;
    let lab = Lab::new(extent, &|_, _| {});
    let mut rows = Vec::new();
    let mut bars = [Vec::new(), Vec::new()];
    let mut known = Vec::new();
    for (place, (name, scheme, quoted)) in (0..).map(f64::from).zip(TECHNIQUES) {
        let model = lab.over_seeds(Trial::of(scheme.row().text, 1));
        let model: Vec<f64> = model.iter().map(|result| result.gets_per_second()).collect();
        let model = model.iter().sum::<f64>() / model.len().max(1) as f64;
        let one = |&seed: &u64| {
            let stream = lab.stream(seed, 1.0, 1.0);
            run(&context.folder, scheme, seed, &stream.operations, context.watch).map(|run| run.rate)
        };
        let rates: Result<Vec<f64>, String> = lab.extent().seeds.iter().map(one).collect();
        bars[0].push((place, model));
        rows.push(match &rates {
            Ok(rates) => row(NAME, name, RATE, rates, scale)
                .against(quoted, quoted * 0.75..=quoted * 1.25, Verdict::DifferentToday)
                .with_note(format!("the model at this scale: {model:.1}")),
            Err(why) => FigureRow::impossible(NAME, name, RATE, Some(quoted), why).at_scale(scale),
        });
        if let Ok(rates) = rates {
            bars[1].push((place, rates.iter().sum::<f64>() / rates.len().max(1) as f64));
            known.push((scheme, rates));
        }
    }
    rows.extend(ratios(&known, scale));
    let names = ["the model", "this disk"];
    let series = names.iter().zip(bars).map(|(name, points)| Series { name: (*name).into(), points });
    let pictures = vec![Picture::Plot {
        title: "Table 2 on this machine's disk, and on the model".into(),
        x: "technique".into(),
        y: RATE.into(),
        style: Style::Bars,
        series: series.collect(),
    }];
    Figure { rows, pictures }
}

/// What the table comes to: BUDDY and the last technique over SQUID.
fn ratios(known: &[(SchemeName, Vec<f64>)], scale: f64) -> Vec<FigureRow> {
    let of = |scheme| known.iter().find(|(other, _)| *other == scheme).map(|(_, rates)| rates);
    let ratio = |name: &str, scheme, quoted: f64, band| {
        let values: Vec<f64> = match (of(scheme), of(SchemeName::Ufs)) {
            (Some(above), Some(below)) => {
                above.iter().zip(below).map(|(above, below)| above / below).collect()
            }
            _ => Vec::new(),
        };
        judged(row(NAME, name, "times", &values, scale), quoted, &band)
    };
    vec![
        ratio("LAZY-READS-LOC over SQUID", SchemeName::LazyReadsLoc, 18.0, 12.0..=25.0),
        ratio("BUDDY over SQUID", SchemeName::Buddy, 4.9, 3.5..=7.0),
    ]
}

//! Table D-6 of seed 000: what a second and a third disk add under aufs (R85, R87), on the model.

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, Style};
use super::trial::{Mix, Trial};
use foxy_report::figure::{FigureRow, judge_order, within};

/// Threads of aufs for each disk.
const THREADS: usize = 16;

/// Table D-6. Squid deals objects to its disks in turn, so does the model with the directories they lie in.
pub fn table_d6(lab: &Lab) -> Figure {
    let quoted = [66.0, 85.3, 109.6];
    let rates: Vec<Vec<f64>> = (1..=3)
        .map(|disks| {
            let trial = Trial {
                spindles: disks,
                writes_at_once: THREADS * disks,
                mix: Mix { gets: 0.4, disk: 0.4, ..Mix::PAPER },
                ..Trial::of("aufs", 1)
            };
            lab.over_seeds(trial).iter().map(|result| result.gets_per_second()).collect()
        })
        .collect();
    let over_one = |disks: usize| -> Vec<f64> {
        rates[disks - 1].iter().zip(&rates[0]).map(|(more, one)| more / one).collect()
    };
    let why = "the model has no processor to wait for, the 2003 machine had";
    let mut rows: Vec<FigureRow> = rates
        .iter()
        .zip(quoted)
        .zip(1..)
        .map(|((values, quoted), disks)| {
            FigureRow::of("000-d6", &format!("aufs, disks: {disks}"), "URL-get/s", values)
                .against(quoted, within(quoted))
                .with_note("quoted in transactions/s of PolyMix, ours in gets of the synthetic trace")
        })
        .collect();
    judge_order(&mut rows);
    rows.push(
        FigureRow::of("000-d6", "two disks over one", "times", &over_one(2))
            .against(1.29, 1.15..=1.45)
            .gain()
            .with_note(why),
    );
    rows.push(
        FigureRow::of("000-d6", "three disks over one", "times", &over_one(3))
            .against(1.66, 1.45..=1.9)
            .gain()
            .with_note(why),
    );
    let points = (1..)
        .map(f64::from)
        .zip(rates.iter().map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64));
    let pictures = vec![Picture::Plot {
        title: "D-6: aufs on one, two and three disks".into(),
        x: "disks".into(),
        y: "URL-get/s".into(),
        style: Style::Lines,
        series: vec![Series { name: "aufs".into(), points: points.collect() }],
    }];
    Figure { rows, pictures }
}

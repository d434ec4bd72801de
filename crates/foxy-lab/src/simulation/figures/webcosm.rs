//! Throughput and completion time of seed 001: Table 1, Figures 6, 7, 10, 11, 12 and 16 (R13, R21,
//! R23, R29).

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, Style};
use super::trial::{Mix, Trial, TrialResult};
use foxy_report::figure::{FigureRow, Place, judge_order, within};
use foxy_report::statistics::mean;
use foxy_schemes::BufferChoice;
use std::sync::Arc;

/// Utilizations of the sweeps. Less than 62 % does not fit the paper's disk beside its inodes.
const UTILIZATIONS: [f64; 7] = [0.62, 0.70, 0.76, 0.80, 0.85, 0.90, 0.95];
pub(super) const RATE: &str = "URL-get/s";

pub(super) fn rates(results: &[Arc<TrialResult>]) -> Vec<f64> {
    results.iter().map(|result| result.gets_per_second()).collect()
}

/// Completion of a scheme over utilizations, in minutes, for every seed.
pub(super) fn sweep(lab: &Lab, trial: Trial) -> Vec<(f64, Vec<Arc<TrialResult>>)> {
    let trials: Vec<Trial> = UTILIZATIONS
        .iter()
        .flat_map(|&utilization| {
            lab.extent().seeds.iter().map(move |&seed| Trial { utilization, seed, ..trial })
        })
        .collect();
    let results = lab.results(&trials, false);
    let seeds = lab.extent().seeds.len();
    UTILIZATIONS.iter().copied().zip(results.chunks(seeds).map(<[_]>::to_vec)).collect()
}

fn minutes(name: &str, sweep: &[(f64, Vec<Arc<TrialResult>>)]) -> Series {
    let mean = |results: &[Arc<TrialResult>]| {
        mean(&results.iter().map(|r| r.minutes()).collect::<Vec<_>>())
    };
    let points =
        sweep.iter().map(|(utilization, results)| (utilization * 100.0, mean(results))).collect();
    Series { name: name.into(), points }
}

fn over_utilization(title: &str, series: Vec<Series>) -> Vec<Picture> {
    vec![Picture::Plot {
        title: title.into(),
        x: "disk space utilization, %".into(),
        y: "completion time, minutes".into(),
        style: Style::Lines,
        series,
    }]
}

/// The rates at one utilization of a sweep.
fn at(sweep: &[(f64, Vec<Arc<TrialResult>>)], utilization: f64) -> Vec<f64> {
    let found = sweep.iter().find(|(other, _)| (other - utilization).abs() < 1e-9);
    found.map(|(_, results)| rates(results)).unwrap_or_default()
}

/// Seed by seed, one over the other.
pub(super) fn ratios(upper: &[f64], lower: &[f64]) -> Vec<f64> {
    upper.iter().zip(lower).map(|(upper, lower)| upper / lower).collect()
}

/// Table 1: what the two cache levels make of the trace.
pub fn table_1(lab: &Lab) -> Figure {
    let streams: Vec<_> =
        lab.extent().seeds.iter().map(|&seed| lab.stream(seed, Mix::PAPER)).collect();
    let row = |name: &str, quoted: f64, count: &dyn Fn(&super::lab::Stream) -> u64| {
        let share = |stream: &Arc<super::lab::Stream>| {
            count(stream) as f64 / stream.counts.memory.gets as f64 * 100.0
        };
        let values: Vec<f64> = streams.iter().map(share).collect();
        let band = quoted * 0.85..=quoted * 1.15;
        FigureRow::of("001-table1", name, "% of URL-gets", &values)
            .against(quoted, band)
            .with_note("synthetic trace, fitted to these shares")
    };
    let mut rows = vec![
        row("URL-read", 42_085.0 / 10_582.06, &|stream| stream.counts.disk.hits),
        row("URL-write", 678_040.0 / 10_582.06, &|stream| {
            stream.counts.disk.gets - stream.counts.disk.hits
        }),
        row("memory hits", 336_081.0 / 10_582.06, &|stream| stream.counts.memory.hits),
    ];
    judge_order(&mut rows);
    let pictures = shares(&rows);
    rows.push(
        FigureRow::of("001-table1", "sum of the three, as printed", "% of URL-gets", &[99.81])
            .against(100.0, 99.0..=99.9)
            .from_place(Place::Derived)
            .with_note("42,085 + 678,040 + 336,081 is 2,000 short of 1,058,206"),
    );
    Figure { rows, pictures }
}

/// The shares of Table 1, quoted and ours, as bars.
fn shares(rows: &[FigureRow]) -> Vec<Picture> {
    let both = rows.iter().flat_map(|row| [("quoted", row.quoted, row), ("ours", row.ours, row)]);
    let bars = both.zip(0..).map(|((whose, value, row), place)| Series {
        name: format!("{}, {whose}", row.row),
        points: value.map(|value| (f64::from(place), value)).into_iter().collect(),
    });
    vec![Picture::Plot {
        title: "Table 1: what two cache levels make of the trace".into(),
        x: "answer".into(),
        y: "% of URL-gets".into(),
        style: Style::Bars,
        series: bars.collect(),
    }]
}

/// Figure 6: file management overhead, 300,000 operations from 398,034 gets on a 1 GB disk.
pub fn figure_6(lab: &Lab) -> Figure {
    const SHARE: f64 = 398_034.0 / super::lab::GETS;
    let of = |scheme| {
        let trial =
            Trial { mix: Mix { gets: SHARE, disk: 0.5, ..Mix::PAPER }, ..Trial::of(scheme, 1) };
        let results = lab.over_seeds(trial);
        results.iter().map(|result| result.minutes()).collect::<Vec<f64>>()
    };
    let scale = lab.extent().scale;
    let buddy = of("buddy");
    let mut rows = vec![
        FigureRow::of("001-fig6", "BUDDY, completion", "minutes", &buddy)
            .against(40.0 * scale, within(40.0 * scale)),
    ];
    let mut bars = vec![("BUDDY", mean(&buddy))];
    for (name, scheme) in [
        ("SINGLE-DIRECTORY", "single-directory"),
        ("SQUID", "ufs"),
        ("MULTIPLE-DIRS", "multiple-dirs"),
    ] {
        let values = of(scheme);
        bars.push((name, mean(&values)));
        let row = format!("{name} over BUDDY");
        rows.push(
            FigureRow::of("001-fig6", &row, "times as long", &ratios(&values, &buddy))
                .against(8.0, 6.0..=10.0)
                .gain(),
        );
    }
    let series = bars.iter().zip(0..).map(|((name, value), place)| Series {
        name: (*name).into(),
        points: vec![(f64::from(place), *value)],
    });
    let pictures = vec![Picture::Plot {
        title: "Fig 6: file management overhead of web proxies".into(),
        x: "scheme".into(),
        y: "completion time, minutes".into(),
        style: Style::Bars,
        series: series.collect(),
    }];
    Figure { rows, pictures }
}

/// Figure 7: BUDDY over its threshold.
pub fn figure_7(lab: &Lab) -> Figure {
    const THRESHOLDS: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
    let mut points = Vec::new();
    for threshold in THRESHOLDS {
        let results = lab.over_seeds(Trial { buddy_threshold: threshold, ..Trial::of("buddy", 1) });
        let values: Vec<f64> = results.iter().map(|result| result.minutes()).collect();
        points.push((f64::from(threshold) / 2.0, values));
    }
    let time = |kilobytes: f64| {
        points
            .iter()
            .find(|(other, _)| (other - kilobytes).abs() < 0.1)
            .map_or(&[][..], |(_, values)| values)
    };
    let rows = vec![
        FigureRow::of(
            "001-fig7",
            "threshold 4 KB over 128 KB",
            "times as long",
            &ratios(time(4.0), time(128.0)),
        )
        .shape(ratios(time(4.0), time(128.0)).iter().all(|&ratio| ratio > 1.0))
        .with_note("small thresholds cost creates and deletes in the paper; no number is quoted"),
        FigureRow::of(
            "001-fig7",
            "threshold 512 KB over 128 KB",
            "times as long",
            &ratios(time(512.0), time(128.0)),
        )
        .against(1.0, 0.9..=1.1)
        .with_note("\"we get almost best performance\" at 128 KB"),
    ];
    let series = vec![Series {
        name: "BUDDY".into(),
        points: points.iter().map(|(kilobytes, values)| (*kilobytes, mean(values))).collect(),
    }];
    let pictures = vec![Picture::Plot {
        title: "Fig 7: BUDDY as a function of its threshold".into(),
        x: "threshold, KB".into(),
        y: "completion time, minutes".into(),
        style: Style::Lines,
        series,
    }];
    Figure { rows, pictures }
}

/// Figure 10: BUDDY and STREAM over utilization.
pub fn figure_10(lab: &Lab) -> Figure {
    let stream = sweep(lab, Trial::of("stream", 1));
    let buddy = lab.over_seeds(Trial::of("buddy", 1));
    let flat = UTILIZATIONS.map(|utilization| (utilization, buddy.clone()));
    let buddy = rates(&buddy);
    let rows = vec![
        FigureRow::of(
            "001-fig10",
            "STREAM over BUDDY at 70 %",
            "times",
            &ratios(&at(&stream, 0.70), &buddy),
        )
        .against(2.0, 1.6..=2.4)
        .gain(),
        FigureRow::of(
            "001-fig10",
            "STREAM over BUDDY at 95 %",
            "times",
            &ratios(&at(&stream, 0.95), &buddy),
        )
        .against(1.0, 0.8..=1.25),
    ];
    let series = vec![minutes("BUDDY", &flat), minutes("STREAM", &stream)];
    Figure { rows, pictures: over_utilization("Fig 10: BUDDY and STREAM", series) }
}

/// Figure 11: STREAM and STREAM-PACKETIZER over utilization.
pub fn figure_11(lab: &Lab) -> Figure {
    let stream = sweep(lab, Trial::of("stream", 1));
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let low = UTILIZATIONS[0];
    let gain = ratios(&at(&packetizer, low), &at(&stream, low));
    let rows = vec![
        FigureRow::of("001-fig11", "PACKETIZER over STREAM, low utilization", "times", &gain)
            .against(1.2, 1.05..=1.35)
            .gain(),
        FigureRow::of("001-fig11", "PACKETIZER, low utilization", RATE, &at(&packetizer, low))
            .against(350.0, 280.0..=420.0),
    ];
    let series = vec![minutes("STREAM", &stream), minutes("STREAM-PACKETIZER", &packetizer)];
    Figure { rows, pictures: over_utilization("Fig 11: STREAM and STREAM-PACKETIZER", series) }
}

/// Figure 12: what gathering reads adds.
pub fn figure_12(lab: &Lab) -> Figure {
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let lazy = sweep(lab, Trial::of("lazy-reads", 1));
    let rows = [0.70, 0.90]
        .map(|utilization| {
            let gain = ratios(&at(&lazy, utilization), &at(&packetizer, utilization));
            let row = format!("LAZY-READS over PACKETIZER at {:.0} %", utilization * 100.0);
            FigureRow::of("001-fig12", &row, "times", &gain).against(1.1, 1.05..=1.18).gain()
        })
        .to_vec();
    let series = vec![minutes("STREAM-PACKETIZER", &packetizer), minutes("LAZY-READS", &lazy)];
    Figure { rows, pictures: over_utilization("Fig 12: LAZY-READS", series) }
}

/// Figure 16: locality buffers over utilization, and how sensitive they are to which one is emptied
/// (R29).
pub fn figure_16(lab: &Lab) -> Figure {
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let lazy = sweep(lab, Trial::of("lazy-reads", 1));
    let mut series = vec![minutes("STREAM-PACKETIZER", &packetizer), minutes("LAZY-READS", &lazy)];
    let (reference, mut rows) = (at(&lazy, 0.76), Vec::new());
    for buffers in [8, 32, 128] {
        let loc = sweep(lab, Trial { locality_buffers: buffers, ..Trial::of("lazy-reads-loc", 1) });
        series.push(minutes(&format!("LAZY-READS-LOC ({buffers})"), &loc));
        let row = format!("LOC-{buffers} over LAZY-READS at 76 %");
        let row = FigureRow::of("001-fig16", &row, "times", &ratios(&at(&loc, 0.76), &reference));
        rows.push(match buffers {
            8 => row.against(1.12, 1.05..=1.2).gain(),
            128 => row.against(2.5, 2.0..=3.0).gain(),
            _ => row,
        });
    }
    for (name, choice) in [("fullest", BufferChoice::Fullest), ("random", BufferChoice::Random)] {
        let trial =
            Trial { utilization: 0.76, locality_choice: choice, ..Trial::of("lazy-reads-loc", 1) };
        let row = format!("LOC-128 emptying the {name} over LAZY-READS");
        let gain = ratios(&rates(&lab.over_seeds(trial)), &reference);
        rows.push(
            FigureRow::of("001-fig16", &row, "times", &gain)
                .with_note("the paper does not say which (R29)"),
        );
    }
    Figure { rows, pictures: over_utilization("Fig 16: LAZY-READS-LOC", series) }
}

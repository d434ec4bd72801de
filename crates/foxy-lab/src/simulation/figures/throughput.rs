//! The throughput and completion times of seed 001: Table 1, Figures 6, 7, 10, 11, 12 and 16 (R13,
//! R21, R23, R29), and the gain from gathered reads (R44).

use super::Figure;
use super::lab::{GETS, Lab, Stream};
use super::picture::{Picture, Series, Style};
use super::trial::{Mix, Trial, TrialResult};
use crate::simulation::storage::operation::OperationKind;
use foxy_report::figure::{FigureRow, Place, judge_order, within};
use foxy_report::statistics::mean;
use foxy_schemes::BufferChoice;
use std::sync::Arc;

/// The utilizations that a sweep runs. Below 62 %, the store and its inodes do not fit the paper's
/// disk.
const UTILIZATIONS: [f64; 7] = [0.62, 0.70, 0.76, 0.80, 0.85, 0.90, 0.95];
pub(super) const RATE: &str = "URL-get/s";

pub(super) fn rates(results: &[Arc<TrialResult>]) -> Vec<f64> {
    results.iter().map(|result| result.gets_per_second()).collect()
}

#[derive(Clone)]
pub(super) struct SweepPoint {
    utilization: f64,
    pub(super) results: Vec<Arc<TrialResult>>,
}

/// Returns the results of a scheme over all utilizations, for every seed.
pub(super) fn sweep(lab: &Lab, trial: Trial) -> Vec<SweepPoint> {
    let trials: Vec<Trial> = UTILIZATIONS
        .iter()
        .flat_map(|&utilization| {
            lab.extent().seeds.iter().map(move |&seed| Trial { utilization, seed, ..trial })
        })
        .collect();
    let results = lab.results(&trials, false);
    let seeds = lab.extent().seeds.len();
    let points = UTILIZATIONS.into_iter().zip(results.chunks(seeds));
    points
        .map(|(utilization, results)| SweepPoint { utilization, results: results.to_vec() })
        .collect()
}

/// Returns the minutes until all operations were done, for each seed.
fn minutes_of(results: &[Arc<TrialResult>]) -> Vec<f64> {
    results.iter().map(|result| result.minutes()).collect()
}

fn minutes(name: &str, sweep: &[SweepPoint]) -> Series {
    let point = |point: &SweepPoint| (point.utilization * 100.0, mean(&minutes_of(&point.results)));
    Series::new(name, sweep.iter().map(point).collect())
}

fn over_utilization(title: &str, series: Vec<Series>) -> Vec<Picture> {
    vec![Picture::plot(
        Style::Lines,
        [title, "disk space utilization, %", "completion time, minutes"],
        series,
    )]
}

/// Returns the rates at one utilization of a sweep.
fn at(sweep: &[SweepPoint], utilization: f64) -> Vec<f64> {
    let found = sweep.iter().find(|point| (point.utilization - utilization).abs() < 1e-9);
    found.map(|point| rates(&point.results)).unwrap_or_default()
}

pub(super) fn ratios(upper: &[f64], lower: &[f64]) -> Vec<f64> {
    upper.iter().zip(lower).map(|(upper, lower)| upper / lower).collect()
}

pub(super) fn ratio_row(
    figure: &str,
    name: &str,
    unit: &str,
    upper: &[f64],
    lower: &[f64],
) -> FigureRow {
    FigureRow::of(figure, name, unit, &ratios(upper, lower))
}

/// Table 1: the requests that each of two cache levels receives from the trace.
pub fn table_1(lab: &Lab) -> Figure {
    let streams: Vec<_> =
        lab.extent().seeds.iter().map(|&seed| lab.stream(seed, Mix::PAPER)).collect();
    let row = |name: &str, quoted: f64, count: &dyn Fn(&Stream) -> u64| {
        let share =
            |stream: &Arc<Stream>| count(stream) as f64 / stream.counts.memory.gets as f64 * 100.0;
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

fn shares(rows: &[FigureRow]) -> Vec<Picture> {
    let bars = rows.iter().flat_map(|row| {
        [("quoted", row.quoted), ("ours", row.ours)]
            .map(|(source, value)| (format!("{}, {source}", row.row), value))
    });
    let titles =
        ["Table 1: URL operations of the trace after two cache levels", "answer", "% of URL-gets"];
    vec![Picture::bars(titles, bars.collect())]
}

/// Figure 6: the file management overhead. The paper runs 300,000 operations from 398,034 client
/// requests on a 1 GB disk.
pub fn figure_6(lab: &Lab) -> Figure {
    const SHARE: f64 = 398_034.0 / GETS;
    let of = |scheme| {
        let trial =
            Trial { mix: Mix { gets: SHARE, disk: 0.5, ..Mix::PAPER }, ..Trial::of(scheme, 1) };
        minutes_of(&lab.over_seeds(trial))
    };
    let scale = lab.extent().scale;
    let buddy = of("buddy");
    let mut rows = vec![
        FigureRow::of("001-fig6", "BUDDY, completion", "minutes", &buddy)
            .against(40.0 * scale, within(40.0 * scale)),
    ];
    let mut bars = vec![("BUDDY".into(), Some(mean(&buddy)))];
    for (name, scheme) in [
        ("SINGLE-DIRECTORY", "single-directory"),
        ("SQUID", "ufs"),
        ("MULTIPLE-DIRS", "multiple-dirs"),
    ] {
        let values = of(scheme);
        bars.push((name.into(), Some(mean(&values))));
        let row = format!("{name} over BUDDY");
        rows.push(
            FigureRow::of("001-fig6", &row, "times as long", &ratios(&values, &buddy))
                .against(8.0, 6.0..=10.0)
                .gain(),
        );
    }
    let titles =
        ["Fig 6: file management overhead of web proxies", "scheme", "completion time, minutes"];
    let pictures = vec![Picture::bars(titles, bars)];
    Figure { rows, pictures }
}

pub fn figure_7(lab: &Lab) -> Figure {
    /// The thresholds in slots of half a KB.
    const THRESHOLDS: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
    let minutes = THRESHOLDS.map(|buddy_threshold| {
        minutes_of(&lab.over_seeds(Trial { buddy_threshold, ..Trial::of("buddy", 1) }))
    });
    let over_128_kb = |threshold: usize| ratios(&minutes[threshold], &minutes[6]);
    let (small, large) = (over_128_kb(1), over_128_kb(8));
    let row = |name: &str, ratios: &[f64]| {
        FigureRow::of("001-fig7", &format!("{name} over 128 KB"), "times as long", ratios)
    };
    let rows = vec![
        row("threshold 4 KB", &small).shape(small.iter().all(|&ratio| ratio > 1.0)).with_note(
            "small thresholds cost creates and deletes in the paper; no number is quoted",
        ),
        row("threshold 512 KB", &large)
            .against(1.0, 0.9..=1.1)
            .with_note("\"we get almost best performance\" at 128 KB"),
    ];
    let points = THRESHOLDS.into_iter().zip(&minutes);
    let points = points.map(|(slots, minutes)| (f64::from(slots) / 2.0, mean(minutes))).collect();
    let series = vec![Series::new("BUDDY", points)];
    let pictures = vec![Picture::plot(
        Style::Lines,
        [
            "Fig 7: BUDDY as a function of its threshold",
            "threshold, KB",
            "completion time, minutes",
        ],
        series,
    )];
    Figure { rows, pictures }
}

pub fn figure_10(lab: &Lab) -> Figure {
    let stream = sweep(lab, Trial::of("stream", 1));
    let buddy = lab.over_seeds(Trial::of("buddy", 1));
    let flat = UTILIZATIONS.map(|utilization| SweepPoint { utilization, results: buddy.clone() });
    let buddy = rates(&buddy);
    let rows = vec![
        ratio_row("001-fig10", "STREAM over BUDDY at 70 %", "times", &at(&stream, 0.70), &buddy)
            .against(2.0, 1.6..=2.4)
            .gain(),
        ratio_row("001-fig10", "STREAM over BUDDY at 95 %", "times", &at(&stream, 0.95), &buddy)
            .against(1.0, 0.8..=1.25),
    ];
    let series = vec![minutes("BUDDY", &flat), minutes("STREAM", &stream)];
    Figure { rows, pictures: over_utilization("Fig 10: BUDDY and STREAM", series) }
}

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

pub fn figure_12(lab: &Lab) -> Figure {
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let lazy = sweep(lab, Trial::of("lazy-reads", 1));
    let mut rows = [0.70, 0.90]
        .map(|utilization| {
            let gain = ratios(&at(&lazy, utilization), &at(&packetizer, utilization));
            let row = format!("LAZY-READS over PACKETIZER at {:.0} %", utilization * 100.0);
            FigureRow::of("001-fig12", &row, "times", &gain).against(1.1, 1.05..=1.18).gain()
        })
        .to_vec();
    rows.extend(read_delays(&lazy));
    let series = vec![minutes("STREAM-PACKETIZER", &packetizer), minutes("LAZY-READS", &lazy)];
    Figure { rows, pictures: over_utilization("Fig 12: LAZY-READS", series) }
}

/// Returns how long LAZY-READS delays a read (R139). The paper promises a fraction of a second for
/// the average read.
fn read_delays(lazy: &[SweepPoint]) -> Vec<FigureRow> {
    let at_70 = lazy.iter().find(|point| (point.utilization - 0.70).abs() < 1e-9);
    let results = at_70.map_or(&[][..], |point| &point.results);
    let row = |name: &str, of: &dyn Fn(&TrialResult) -> f64| {
        let values: Vec<f64> = results.iter().map(|result| of(result)).collect();
        let row = FigureRow::of("001-fig12", name, "s", &values);
        row.shape(values.iter().all(|&delay| delay < 1.0))
    };
    vec![
        row("LAZY-READS, mean delay of a read at 70 %", &|result| {
            result.outcome.mean_read_seconds()
        })
        .with_note("\"a fraction of second\" in the paper, which has no number"),
        row("LAZY-READS, 99 % of reads at 70 % within", &|result| {
            result.outcome.read_seconds(0.99)
        })
        .with_note("writes wait while a batch is read"),
    ]
}

/// Figure 16: locality buffers over utilization, and the effect of the choice of the buffer to
/// empty (R29).
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
                .with_note("the paper does not name the buffer (R29)"),
        );
    }
    Figure { rows, pictures: over_utilization("Fig 16: LAZY-READS-LOC", series) }
}

/// The share of the paper's requests that run. The share is small, because only the proportion of
/// reads matters here.
const SIZE: f64 = 0.3;
/// The shares of repeats. Most repeats come late, so the disk and not the memory answers them. The
/// disk keeps nearly all objects.
const REPEATS: [f64; 6] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.6];
const RECENT: f64 = 0.2;

/// Returns the percentage of reads among URL-reads and URL-writes.
fn read_percentage(lab: &Lab, mix: Mix) -> f64 {
    let shares: Vec<f64> = lab
        .extent()
        .seeds
        .iter()
        .map(|&seed| {
            let stream = lab.stream(seed, mix);
            let reads = stream.operations.count(OperationKind::Read);
            let writes = stream.operations.count(OperationKind::Write);
            reads as f64 / (reads + writes).max(1) as f64 * 100.0
        })
        .collect();
    mean(&shares)
}

/// Measures the gain of LAZY-READS over PACKETIZER as the share of reads grows (R44). The paper
/// expects the gain to grow but gives no figure.
pub fn gain_over_reads(lab: &Lab) -> Figure {
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    for repeats in REPEATS {
        let mix = Mix { repeats, recent: RECENT, memory: 0.0, disk: 1.0, ..Mix::sized(SIZE) };
        let of = |scheme| rates(&lab.over_seeds(Trial { mix, ..Trial::of(scheme, 1) }));
        let gain = ratios(&of("lazy-reads"), &of("packetizer"));
        let share = read_percentage(lab, mix);
        let name =
            format!("LAZY-READS over PACKETIZER, {:.0} % of fetches repeat", repeats * 100.0);
        points.push((share, mean(&gain)));
        rows.push(
            FigureRow::of("001-r44", &name, "times", &gain)
                .with_note(format!("{share:.0} % of URL-reads and URL-writes are reads")),
        );
    }
    let highest = points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    let (first, last) = (points[0], points[points.len() - 1]);
    let growth = FigureRow::of(
        "001-r44",
        "gain at the most reads over gain at the fewest",
        "times",
        &[last.1 / first.1],
    );
    rows.push(growth.shape(last.1 > first.1).with_note(format!(
        "expected to be above 1; the gain is highest at {:.0} % of reads",
        highest.0
    )));
    let pictures = vec![Picture::plot(
        Style::Lines,
        [
            "R44: LAZY-READS over PACKETIZER as reads become more",
            "reads, % of reads and writes",
            "times as many URL-get/s",
        ],
        vec![Series::new("LAZY-READS over PACKETIZER", points)],
    )];
    Figure { rows, pictures }
}

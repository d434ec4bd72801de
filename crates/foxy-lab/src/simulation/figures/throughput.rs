//! The throughput and completion times of the WebCoSM paper (paper 001 in docs/figures.md): Table
//! 1, and Figures 6, 7, 10, 11, 12 and 16. Also how the gain from gathered reads depends on the
//! share of reads.

use super::Figure;
use super::evidence::{FILES, FREE_CHUNKS, PAGES_READ_FOR_WRITES, Results, SEEKS, fills};
use super::lab::{GETS, Lab, Stream};
use super::picture::{Picture, bars, changed, line, paper, quoted, quoted_bars};
use super::trial::{Mix, Trial, TrialResult};
use crate::simulation::storage::operation::OperationKind;
use foxy_report::chart::Line;
use foxy_report::figure::quotes::in_chart;
use foxy_report::figure::{Condition, FigureRow, judge_order};
use foxy_report::statistics::mean;
use foxy_schemes::BufferChoice;
use std::sync::Arc;

/// The utilizations (shares of the store that hold live data) at which a sweep runs its trials
/// (simulated runs). Below 62 %, the store with its inodes exceeds the WebCoSM paper's disk.
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

/// Returns the results of a storage scheme at each utilization (share of the store that holds live
/// data), for every seed.
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

/// Returns the completion times of all operations in minutes, one for each seed.
fn minutes_of(results: &[Arc<TrialResult>]) -> Vec<f64> {
    results.iter().map(|result| result.minutes()).collect()
}

/// Converts a rate to the minutes in which the WebCoSM paper's whole trace is done.
fn whole_trace(rate: f64) -> f64 {
    GETS / rate / 60.0
}

fn minutes(name: &str, sweep: &[SweepPoint]) -> Line {
    line(
        name,
        sweep.iter().map(|point| {
            let minutes = rates(&point.results).into_iter().map(whole_trace);
            (point.utilization * 100.0, minutes.collect())
        }),
    )
}

/// Returns the quotient of the rates of two sweeps (runs at several utilizations of the store).
fn quotient(name: &str, upper: &[SweepPoint], lower: &[SweepPoint]) -> Line {
    let points = upper.iter().zip(lower).map(|(upper, lower)| {
        (upper.utilization * 100.0, ratios(&rates(&upper.results), &rates(&lower.results)))
    });
    line(name, points)
}

/// Returns the WebCoSM paper's completion time for a technique, computed from its rate in Table 2.
fn paper_minutes(technique: &str, utilization: f64) -> Line {
    let rate = in_chart("001-table2", technique);
    paper(technique, [(utilization, changed(rate, whole_trace))])
}

/// Makes two pictures over the utilization (share of the store that holds live data): the
/// completion times, and the gain that the WebCoSM paper reports.
fn over_utilization(
    titles: [&str; 2],
    minutes: Vec<Line>,
    gain: &str,
    gains: Vec<Line>,
) -> Vec<Picture> {
    let x = "disk space utilization, %";
    let time = "completion time of the paper's 1,058,206 URL-gets, minutes";
    vec![Picture::lines([titles[0], x, time], minutes), Picture::lines([titles[1], x, gain], gains)]
}

fn results_at(sweep: &[SweepPoint], utilization: f64) -> &Results {
    let found = sweep.iter().find(|point| (point.utilization - utilization).abs() < 1e-9);
    found.map_or(&[], |point| &point.results)
}

/// Returns the rates at one utilization of a sweep (runs over several utilizations), one rate for
/// each seed.
fn at(sweep: &[SweepPoint], utilization: f64) -> Vec<f64> {
    rates(results_at(sweep, utilization))
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

/// Table 1: the number of requests that reach each of the two cache levels, memory and disk.
pub fn table_1(lab: &Lab) -> Figure {
    let streams: Vec<_> =
        lab.extent().seeds.iter().map(|&seed| lab.stream(seed, Mix::PAPER)).collect();
    let row = |name: &str, count: &dyn Fn(&Stream) -> u64| {
        let share =
            |stream: &Arc<Stream>| count(stream) as f64 / stream.counts.memory.gets as f64 * 100.0;
        let values: Vec<f64> = streams.iter().map(share).collect();
        FigureRow::of("001-table1", name, "% of URL-gets", &values)
            .judged()
            .under(Condition::Fitted)
    };
    let mut rows = vec![
        row("URL-read", &|stream| stream.counts.disk.hits),
        row("URL-write", &|stream| stream.counts.disk.gets - stream.counts.disk.hits),
        row("memory hits", &|stream| stream.counts.memory.hits),
    ];
    judge_order(&mut rows);
    Figure { rows, pictures: Vec::new() }
}

/// Figure 6: the overhead of file management. The WebCoSM paper runs 300,000 disk operations, which
/// 398,034 client requests cause, on a 1 GB disk.
pub fn figure_6(lab: &Lab) -> Figure {
    const SHARE: f64 = 398_034.0 / GETS;
    let of = |scheme| {
        let mix = Mix { gets: SHARE, disk: 0.5, ..Mix::PAPER };
        lab.over_seeds(Trial { mix, ..Trial::of(scheme, 1) })
    };
    let scale = lab.extent().scale;
    let buddy = of("buddy");
    let of_buddy = minutes_of(&buddy);
    let at_full_scale: Vec<f64> = of_buddy.iter().map(|minutes| minutes / scale).collect();
    let mut rows = vec![
        FigureRow::of("001-fig6", "BUDDY, completion", "minutes", &at_full_scale)
            .judged()
            .under(fills(&[&buddy]))
            .with_note("minutes at this scale, divided by the scale"),
    ];
    let at_full = |minutes: &[f64]| minutes.iter().map(|minutes| minutes / scale).collect();
    let of_paper = in_chart("001-fig6", "BUDDY, completion");
    let (mut groups, mut ours) = (vec!["BUDDY".to_owned()], vec![at_full(&of_buddy)]);
    let whole = of_paper.as_ref().map_or(f64::NAN, |value| value.value);
    let mut papers = vec![of_paper];
    for (name, scheme) in [
        ("SINGLE-DIRECTORY", "single-directory"),
        ("SQUID", "ufs"),
        ("MULTIPLE-DIRS", "multiple-dirs"),
    ] {
        let results = of(scheme);
        let values = minutes_of(&results);
        let row = format!("{name} over BUDDY");
        groups.push(name.into());
        ours.push(at_full(&values));
        papers.push(changed(in_chart("001-fig6", &row), |times| times * whole));
        rows.push(
            FigureRow::of("001-fig6", &row, "times as long", &ratios(&values, &of_buddy))
                .judged()
                .gain()
                .under(fills(&[&results, &buddy]))
                .under(FILES.fewer("file creation and deletion", &buddy, &results)),
        );
    }
    let titles = [
        "Fig 6: completion time of BUDDY, and of schemes with a file for each object",
        "completion time of 300,000 operations, minutes",
        "",
    ];
    let series = vec![quoted_bars(papers), bars("foxy", ours)];
    Figure { rows, pictures: vec![Picture::bars(titles, groups, series)] }
}

pub fn figure_7(lab: &Lab) -> Figure {
    /// The thresholds of the technique BUDDY in slots of 512 bytes. An object above the threshold
    /// gets a file of its own.
    const THRESHOLDS: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
    let results = THRESHOLDS
        .map(|buddy_threshold| lab.over_seeds(Trial { buddy_threshold, ..Trial::of("buddy", 1) }));
    let minutes = results.each_ref().map(|results| minutes_of(results));
    let over_128_kb = |threshold: usize| ratios(&minutes[threshold], &minutes[6]);
    let (small, large) = (over_128_kb(1), over_128_kb(8));
    let cause = "creating and deleting files of large URLs";
    let row = |name: &str, ratios: &[f64]| {
        FigureRow::of("001-fig7", &format!("{name} over 128 KB"), "times as long", ratios)
            .judged()
            .under(fills(&[&results[1], &results[6], &results[8]]))
            .under(FILES.fewer(cause, &results[6], &results[1]))
    };
    let rows = vec![
        row("threshold 4 KB", &small).shape(small.iter().all(|&ratio| ratio > 1.0)),
        row("threshold 512 KB", &large),
    ];
    let kilobytes = THRESHOLDS.map(|slots| f64::from(slots) / 2.0);
    let points = kilobytes.into_iter().zip((0..THRESHOLDS.len()).map(over_128_kb));
    let lines = vec![
        line("foxy: BUDDY", points),
        quoted(
            "BUDDY, \"almost best\" from 128 KB",
            512.0,
            "001-fig7",
            "threshold 512 KB over 128 KB",
        ),
    ];
    let titles = [
        "Fig 7: completion time of BUDDY by its threshold",
        "threshold, KB",
        "completion time, times that at 128 KB",
    ];
    Figure { rows, pictures: vec![Picture::lines(titles, lines)] }
}

pub fn figure_10(lab: &Lab) -> Figure {
    let stream = sweep(lab, Trial::of("stream", 1));
    let buddy = lab.over_seeds(Trial::of("buddy", 1));
    let flat = UTILIZATIONS.map(|utilization| SweepPoint { utilization, results: buddy.clone() });
    let (at_70, at_95) = (results_at(&stream, 0.70), results_at(&stream, 0.95));
    let row = |name: &str, stream: &Results| {
        ratio_row("001-fig10", name, "times", &rates(stream), &rates(&buddy))
            .judged()
            .under(fills(&[stream, &buddy]))
    };
    let rows = vec![
        row("STREAM over BUDDY at 70 %", at_70).gain().under(SEEKS.fewer(
            "long seeks between files",
            at_70,
            &buddy,
        )),
        row("STREAM over BUDDY at 95 %", at_95).under(FREE_CHUNKS.fewer(
            "free space is clustered at low utilization",
            at_70,
            at_95,
        )),
    ];
    let buddy_minutes = changed(in_chart("001-table2", "BUDDY"), whole_trace);
    let of_paper = |row: &str| {
        let times = in_chart("001-fig10", row).map_or(f64::NAN, |value| value.value);
        changed(buddy_minutes.clone(), |minutes| minutes / times)
    };
    let (low, high) = ("STREAM over BUDDY at 70 %", "STREAM over BUDDY at 95 %");
    let pictures = over_utilization(
        [
            "Fig 10: BUDDY and STREAM: completion time over utilization",
            "Fig 10: the gain of STREAM over BUDDY",
        ],
        vec![
            minutes("BUDDY", &flat),
            minutes("STREAM", &stream),
            paper("BUDDY", [70.0, 95.0].map(|at| (at, buddy_minutes.clone()))),
            paper("STREAM", [(70.0, of_paper(low)), (95.0, of_paper(high))]),
        ],
        "rate of STREAM, times that of BUDDY",
        vec![
            quotient("foxy: STREAM over BUDDY", &stream, &flat),
            paper(
                "STREAM over BUDDY",
                [(70.0, in_chart("001-fig10", low)), (95.0, in_chart("001-fig10", high))],
            ),
        ],
    );
    Figure { rows, pictures }
}

pub fn figure_11(lab: &Lab) -> Figure {
    let stream = sweep(lab, Trial::of("stream", 1));
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let low = UTILIZATIONS[0];
    let gain = ratios(&at(&packetizer, low), &at(&stream, low));
    let row = |name: &str, unit: &str, values: &[f64]| {
        let (few, many) = (results_at(&packetizer, low), results_at(&stream, low));
        FigureRow::of("001-fig11", name, unit, values)
            .judged()
            .under(fills(&[few, many]))
            .under(PAGES_READ_FOR_WRITES.fewer("the small-write problem", few, many))
    };
    let rows = vec![
        row("PACKETIZER over STREAM, low utilization", "times", &gain).gain(),
        row("PACKETIZER, low utilization", RATE, &at(&packetizer, low)),
    ];
    let gain = "PACKETIZER over STREAM, low utilization";
    let pictures = over_utilization(
        [
            "Fig 11: STREAM and STREAM-PACKETIZER: completion time over utilization",
            "Fig 11: the gain of STREAM-PACKETIZER over STREAM",
        ],
        vec![
            minutes("STREAM", &stream),
            minutes("STREAM-PACKETIZER", &packetizer),
            paper_minutes("STREAM-PACKETIZER", low * 100.0),
        ],
        "rate of STREAM-PACKETIZER, times that of STREAM",
        vec![
            quotient("foxy: STREAM-PACKETIZER over STREAM", &packetizer, &stream),
            quoted("up to 20 % better", low * 100.0, "001-fig11", gain),
        ],
    );
    Figure { rows, pictures }
}

pub fn figure_12(lab: &Lab) -> Figure {
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let lazy = sweep(lab, Trial::of("lazy-reads", 1));
    let mut rows = [0.70, 0.90]
        .map(|utilization| {
            let gain = ratios(&at(&lazy, utilization), &at(&packetizer, utilization));
            let row = format!("LAZY-READS over PACKETIZER at {:.0} %", utilization * 100.0);
            let (few, many) =
                (results_at(&lazy, utilization), results_at(&packetizer, utilization));
            FigureRow::of("001-fig12", &row, "times", &gain)
                .judged()
                .gain()
                .under(fills(&[few, many]))
                .under(SEEKS.fewer("fewer movements of the head", few, many))
        })
        .to_vec();
    rows.extend(read_delays(&lazy));
    let of_paper = [70.0, 90.0]
        .map(|at| (at, in_chart("001-fig12", &format!("LAZY-READS over PACKETIZER at {at:.0} %"))));
    let pictures = over_utilization(
        [
            "Fig 12: STREAM-PACKETIZER and LAZY-READS: completion time over utilization",
            "Fig 12: the gain of LAZY-READS over STREAM-PACKETIZER",
        ],
        vec![
            minutes("STREAM-PACKETIZER", &packetizer),
            minutes("LAZY-READS", &lazy),
            paper_minutes("STREAM-PACKETIZER", UTILIZATIONS[0] * 100.0),
            paper_minutes("LAZY-READS", 70.0),
        ],
        "rate of LAZY-READS, times that of STREAM-PACKETIZER",
        vec![
            quotient("foxy: LAZY-READS over STREAM-PACKETIZER", &lazy, &packetizer),
            paper("10 % better", of_paper),
        ],
    );
    Figure { rows, pictures }
}

/// Returns rows about the time for which LAZY-READS delays a read to gather several reads. The
/// WebCoSM paper promises a fraction of a second on average.
fn read_delays(lazy: &[SweepPoint]) -> Vec<FigureRow> {
    let results = results_at(lazy, 0.70);
    let row = |name: &str, of: &dyn Fn(&TrialResult) -> f64| {
        let values: Vec<f64> = results.iter().map(|result| of(result)).collect();
        FigureRow::of("001-fig12", name, "s", &values)
            .judged()
            .shape(values.iter().all(|&delay| delay < 1.0))
            .under(fills(&[results]))
    };
    vec![
        row("LAZY-READS, mean delay of a read at 70 %", &|result| {
            result.outcome.mean_read_seconds()
        }),
        row("LAZY-READS, 99 % of reads at 70 % within", &|result| {
            result.outcome.read_seconds(0.99)
        })
        .with_note("writes wait while a batch is read"),
    ]
}

/// Figure 16: the effect of locality buffers (a write buffer for each origin server) at each
/// utilization (share of the store that holds live data). Also the effect of the rule that chooses
/// which buffer to write out.
pub fn figure_16(lab: &Lab) -> Figure {
    let packetizer = sweep(lab, Trial::of("packetizer", 1));
    let lazy = sweep(lab, Trial::of("lazy-reads", 1));
    let mut times = vec![minutes("STREAM-PACKETIZER", &packetizer), minutes("LAZY-READS", &lazy)];
    let (mut gains, mut papers) = (Vec::new(), Vec::new());
    let (reference, mut rows) = (at(&lazy, 0.76), Vec::new());
    for buffers in [8, 32, 128] {
        let loc = sweep(lab, Trial { locality_buffers: buffers, ..Trial::of("lazy-reads-loc", 1) });
        times.push(minutes(&format!("LAZY-READS-LOC, {buffers} buffers"), &loc));
        gains.push(quotient(&format!("foxy: {buffers} buffers"), &loc, &lazy));
        let row = format!("LOC-{buffers} over LAZY-READS at 76 %");
        papers.push(quoted(&format!("{buffers} buffers"), 76.0, "001-fig16", &row));
        let (few, many) = (results_at(&loc, 0.76), results_at(&lazy, 0.76));
        rows.push(
            FigureRow::of("001-fig16", &row, "times", &ratios(&at(&loc, 0.76), &reference))
                .judged()
                .gain()
                .under(fills(&[few, many]))
                .under(FREE_CHUNKS.fewer("less fragmented free space", few, many)),
        );
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
    times.push(paper_minutes("STREAM-PACKETIZER", UTILIZATIONS[0] * 100.0));
    times.push(paper_minutes("LAZY-READS", 70.0));
    gains.extend(papers);
    let pictures = over_utilization(
        [
            "Fig 16: LAZY-READS-LOC: completion time over utilization",
            "Fig 16: the gain of locality buffers over LAZY-READS",
        ],
        times,
        "rate of LAZY-READS-LOC, times that of LAZY-READS",
        gains,
    );
    Figure { rows, pictures }
}

/// The share of the WebCoSM paper's requests that this figure runs. It is small, because only the
/// proportion of reads matters here.
const SIZE: f64 = 0.3;
/// The shares of requests that repeat an earlier object. Most repeats come late, so the disk and
/// not the memory answers them. The disk keeps nearly all objects.
const REPEATS: [f64; 6] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.6];
const RECENT: f64 = 0.2;

/// Returns the percentage of reads among the disk operations that read or write an object.
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

/// Measures how the gain of LAZY-READS over PACKETIZER changes with the share of reads. The WebCoSM
/// paper expects the gain to grow but gives no value.
pub fn gain_over_reads(lab: &Lab) -> Figure {
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    let mut seeds = Vec::new();
    let (mut all, mut gains) = (Vec::new(), Vec::new());
    for repeats in REPEATS {
        let mix = Mix { repeats, recent: RECENT, memory: 0.0, disk: 1.0, ..Mix::sized(SIZE) };
        let of = |scheme| lab.over_seeds(Trial { mix, ..Trial::of(scheme, 1) });
        let (lazy, packetizer) = (of("lazy-reads"), of("packetizer"));
        let gain = ratios(&rates(&lazy), &rates(&packetizer));
        let share = read_percentage(lab, mix);
        let name =
            format!("LAZY-READS over PACKETIZER, {:.0} % of fetches repeat", repeats * 100.0);
        points.push((share, mean(&gain)));
        seeds.push((share, gain.clone()));
        rows.push(
            FigureRow::of("001-r44", &name, "times", &gain)
                .with_note(format!("{share:.0} % of URL-reads and URL-writes are reads")),
        );
        all.extend([lazy, packetizer]);
        gains.push(gain);
    }
    let highest = points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    let growth = ratios(&gains[gains.len() - 1], &gains[0]);
    let name = "gain at the most reads over gain at the fewest";
    rows.push(
        FigureRow::of("001-r44", name, "times", &growth)
            .judged()
            .shape(growth.iter().all(|&growth| growth > 1.0))
            .under(fills(&all.iter().map(Vec::as_slice).collect::<Vec<_>>()))
            .with_note(format!("the gain is highest at {:.0} % of reads", highest.0)),
    );
    let titles = [
        "R44: the gain of LAZY-READS by the share of reads (the paper expects a rise)",
        "reads, % of reads and writes",
        "rate of LAZY-READS, times that of STREAM-PACKETIZER",
    ];
    let lines = vec![line("LAZY-READS over STREAM-PACKETIZER", seeds)];
    Figure { rows, pictures: vec![Picture::lines(titles, lines)] }
}

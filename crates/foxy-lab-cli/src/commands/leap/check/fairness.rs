//! Checks whether LEAP measures identical proxies as equal. Counts how often LEAP reports a
//! difference between them, which is a false alarm.

use super::{CheckSetting, Findings, failed};
use crate::origin;
use foxy_cli::failure::Failure;
use foxy_lab::leap::{LeapPace, LeapReport, Manner, Meaning, Multiplier, noise_floor, requests};
use foxy_report::{Measurable, Measure, Record, Table};
use foxy_workload::Workload;

const RATE: f64 = 100.0;
const PROXIES: usize = 4;
const NAMES: [&str; PROXIES] = ["proxy-1", "proxy-2", "proxy-3", "proxy-4"];
/// Second names of the proxies. LEAP measures each proxy under two names. The difference between
/// its two names is noise.
const AGAIN: [&str; PROXIES] = ["proxy-1-again", "proxy-2-again", "proxy-3-again", "proxy-4-again"];

struct FairnessRun {
    greatest: f64,
    floor: f64,
    pairs: usize,
    alarms: [usize; 4],
}

pub fn run(setting: &CheckSetting<'_>) -> Result<Findings, Failure> {
    let (count, rate) = (setting.count("requests", 500, 2_000), setting.rate(RATE));
    let repeats = setting.count("repeats", 5, 40);
    let origin = origin::start("leap", 1)?;
    let to = origin.address();
    let start = |_| {
        Multiplier::pass_through(Some(to)).map_err(|error| failed("fairness", &error.to_string()))
    };
    let proxies = (0..PROXIES).map(start).collect::<Result<Vec<_>, _>>()?;
    let mut paths = vec![("direct", to, Manner::Direct)];
    let named = |names: [&'static str; PROXIES]| {
        let named = names.into_iter().zip(&proxies);
        named.map(|(name, proxy)| (name, proxy.address(), Manner::Reverse)).collect::<Vec<_>>()
    };
    paths.extend(named(NAMES).into_iter().chain(named(AGAIN)));
    let mut findings = Findings {
        setting: format!(
            "{repeats} runs of {count} requests at {rate} per second to {PROXIES} identical \
             pass-through proxies, each under two names"
        ),
        ..Findings::default()
    };
    let workload = Workload::find("zipf").expect("a workload of ours");
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        let seed = setting.seed + repeat;
        let stream = requests::of_workload(&workload, seed, count, to.to_string().into());
        let stream = stream.expect("it has objects").collect();
        let label = format!("fairness, run {} of {repeats}", repeat + 1);
        let report =
            setting.measure(&label, &setting.of(&paths, LeapPace::Rate(rate), seed), stream)?;
        findings.warn_of(&label, &report);
        runs.push(judged(&report));
    }
    conclude(&mut findings, &runs);
    Ok(findings)
}

fn judged(report: &LeapReport) -> FairnessRun {
    let differences = report.differences();
    let floor = noise_floor(&differences);
    // A path is a server that receives a copy of each request. Path 0 is the origin. All other
    // paths lead to identical proxies. Pairs of paths with the same address give the noise floor,
    // the largest difference that is only noise.
    let alike: Vec<_> = differences.iter().filter(|pair| pair.paths.0 > 0).collect();
    let between: Vec<_> =
        alike.iter().filter(|pair| !pair.same && pair.paths.1 <= PROXIES).collect();
    let greatest = between.iter().map(|pair| pair.median.value.abs()).fold(0.0, f64::max);
    let count = |of: &dyn Fn(&foxy_lab::leap::PairedDifference) -> bool| {
        between.iter().filter(|pair| of(pair)).count()
    };
    FairnessRun {
        greatest: greatest / 1000.0,
        floor: floor.map_or(0.0, |floor| floor.median) / 1000.0,
        pairs: between.len(),
        alarms: [
            count(&|pair| pair.meaning(floor) == Meaning::Differs),
            count(&|pair| pair.meaning_of_mean(floor) == Meaning::Differs),
            count(&|pair| pair.median.excludes_zero()),
            count(&|pair| pair.mean.excludes_zero()),
        ],
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of pairs are small")]
fn conclude(findings: &mut Findings, runs: &[FairnessRun]) {
    let mut table = Table::new(&[
        "run",
        "greatest difference",
        "noise floor",
        "pairs",
        "differ",
        "in the mean",
        "by interval alone",
        "in the mean",
    ]);
    for (number, run) in runs.iter().enumerate() {
        let mut cells = vec![
            (number + 1).to_string(),
            format!("{:.3}", run.greatest),
            format!("{:.3}", run.floor),
        ];
        cells.push(run.pairs.to_string());
        cells.extend(run.alarms.map(|count| count.to_string()));
        table.row(&cells);
    }
    findings.tables.push((
        "identical proxies: median differences in ms, and the number of pairs that LEAP reports as \
         different",
        table,
    ));
    let middle = |of: fn(&FairnessRun) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (greatest, floor) = (middle(|run| run.greatest), middle(|run| run.floor));
    let pairs: usize = runs.iter().map(|run| run.pairs).sum();
    let share = |place: usize| {
        runs.iter().map(|run| run.alarms[place]).sum::<usize>() as f64 / pairs.max(1) as f64
    };
    let measures = [
        ("identical_proxies_max_difference_ms", greatest, "ms"),
        ("noise_floor_ms", floor, "ms"),
        (
            "identical_proxies_difference_over_floor",
            greatest / floor.max(f64::MIN_POSITIVE),
            "times",
        ),
        ("false_alarm_share", share(0), "share"),
        ("false_alarm_share_of_means", share(1), "share"),
        ("false_alarm_share_by_interval", share(2), "share"),
        ("false_alarm_share_of_means_by_interval", share(3), "share"),
    ];
    for (name, value, unit) in measures {
        let measure = Measure::once(name, "leap", value, unit);
        findings.records.push(Record::Measure(Measure { repeats: runs.len() as u32, ..measure }));
    }
    findings.conclusions.push(format!(
        "greatest difference of identical proxies {greatest:.3} ms, noise floor {floor:.3} ms \
         (medians of {} runs)",
        runs.len()
    ));
    findings.conclusions.push(format!(
        "false alarms: LEAP reports {:.1} % of {pairs} pairs as different in the median, {:.1} % \
         in the mean; by the intervals alone, without the noise floor, {:.1} % and {:.1} %",
        share(0) * 100.0,
        share(1) * 100.0,
        share(2) * 100.0,
        share(3) * 100.0
    ));
}

pub fn measurable() -> Vec<Measurable> {
    let shares = ["false_alarm_share", "false_alarm_share_of_means"];
    let by_interval = ["false_alarm_share_by_interval", "false_alarm_share_of_means_by_interval"];
    let times = [
        "identical_proxies_max_difference_ms",
        "noise_floor_ms",
        "identical_proxies_difference_over_floor",
    ];
    vec![Measurable::of("leap", &times).and(&shares).and(&by_interval)]
}

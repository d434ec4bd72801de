//! Checks whether a hit of the Collector takes as long as the miss before it (LEAP paper, paper 002
//! in docs/figures.md, §3.3). Tests each combination of request condition and object size. The
//! Collector is the parent proxy of all proxies under comparison, and sends each request to the
//! origin only once.

use super::{CheckSetting, Findings, failed};
use crate::origin;
use foxy_base::{Instant, Random, clock};
use foxy_cli::failure::Failure;
use foxy_lab::leap::collector::{Collector, CollectorOptions, Listen};
use foxy_lab::leap::{Asked, LeapPace, LeapReport, LeapRun, Manner, Message};
use foxy_report::statistics::distribution_distance;
use foxy_report::{Measurable, Measure, Record, Table};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The time after which stored answers are certainly stale. The Collector (common parent proxy)
/// must use every answer for 180 s without asking the origin again.
const HELD: Duration = Duration::from_secs(181);
/// The delay before the same request goes through the next listener of the Collector (common parent
/// proxy). The previous answer has certainly ended by then.
const LATER: Duration = Duration::from_millis(40);
const SIZES: [(&str, u64); 2] = [("one packet", 500), ("100 kB", 100_000)];

const HIT_MINUS_MISS: [&str; 2] = ["hit_minus_miss_median_ms", "hit_minus_miss_p90_ms"];
const ORIGIN_TWICE: [&str; 2] = ["origin_twice_median_ms", "origin_twice_p90_ms"];
const DISTANCE: &str = "hit_and_miss_distribution_distance";

pub fn measurable() -> Vec<Measurable> {
    vec![
        Measurable::of_any(&HIT_MINUS_MISS).and(&[DISTANCE]),
        Measurable::of("origin", &ORIGIN_TWICE),
    ]
}

#[derive(Clone, Copy, PartialEq)]
enum ReplayCase {
    Plain,
    Confirmed,
    Changed,
    Unchanged,
}

impl ReplayCase {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "no condition, content",
            Self::Confirmed => "no condition, old, confirmed",
            Self::Changed => "condition, content",
            Self::Unchanged => "condition, 304",
        }
    }
}

struct Line {
    case: ReplayCase,
    body: &'static str,
    second: &'static str,
    stagger: Duration,
    asked: Vec<Asked>,
}

impl Line {
    fn name(&self) -> String {
        format!("{}, {}, {}", self.case.name(), self.body, self.second)
    }

    fn measure(
        &self,
        setting: &CheckSetting<'_>,
        collector: &Collector,
        origin: SocketAddr,
        label: &str,
    ) -> Result<LeapReport, Failure> {
        let [one, other] = [0, 1].map(|place: usize| collector.addresses()[place]);
        let paths = [("one", one), ("other", other), ("origin", origin), ("origin again", origin)];
        let paths = paths.map(|(name, address)| (name, address, Manner::Reverse));
        let asked = if self.stagger.is_zero() { &paths[..2] } else { &paths };
        let run = setting.of(asked, LeapPace::Closed(1), setting.seed);
        setting.measure(label, &LeapRun { stagger: self.stagger, ..run }, self.asked.clone())
    }

    fn of_the_origin(&self, report: &LeapReport) -> Vec<[f64; 2]> {
        if self.stagger.is_zero() { Vec::new() } else { report.as_sent((2, 3)) }
    }

    fn cells(&self, count: usize, found: &Apart, of_the_origin: &[[f64; 2]]) -> Vec<String> {
        let mut cells = [self.case.name(), self.body, self.second].map(str::to_owned).to_vec();
        cells.push(count.to_string());
        cells.extend([found.median, found.p90].map(|value| format!("{value:.3}")));
        let apart = format!("apart by {:.2}", found.distance);
        cells.push(if found.distance < 1.0 { "alike".into() } else { apart });
        let twice =
            (!of_the_origin.is_empty()).then(|| format!("{:.3}", Apart::of(of_the_origin).p90));
        cells.push(twice.unwrap_or_else(|| "–".into()));
        cells
    }
}

pub fn run(setting: &CheckSetting<'_>) -> Result<Findings, Failure> {
    let count = setting.count("requests", 24, 400);
    let origin = origin::start("leap", 1)?;
    let listen = |name: &str| Listen {
        name: Some(name.into()),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let options = CollectorOptions::new(vec![listen("one"), listen("other")]);
    let collector =
        Collector::start(options).map_err(|error| failed("replay", &error.to_string()))?;
    let mut findings = Findings {
        setting: format!(
            "{count} requests per case, each sent to two addresses of a Collector at once or {} ms \
             or more apart, then twice to the origin, which answers after 1 to 10 ms",
            LATER.as_millis()
        ),
        ..Findings::default()
    };
    let heads = [
        "case",
        "body",
        "second",
        "requests",
        "|hit − miss| median",
        "p90",
        "distributions",
        "origin twice, p90",
    ];
    let (mut table, mut all, mut twice) = (Table::new(&heads), Vec::new(), Vec::new());
    let lines = lines(setting, count, &origin.address().to_string());
    for line in lines.iter().filter(|line| line.case == ReplayCase::Confirmed) {
        line.measure(setting, &collector, origin.address(), "replay, to be held")?;
    }
    let held = clock::monotonic();
    for line in &lines {
        if line.case == ReplayCase::Confirmed {
            grow_old(setting, held)?;
        }
        let report = line.measure(
            setting,
            &collector,
            origin.address(),
            &format!("replay, {}", line.name()),
        )?;
        let (pairs, of_the_origin) = (report.as_sent((0, 1)), line.of_the_origin(&report));
        let found = Apart::of(&pairs);
        table.row(&line.cells(pairs.len(), &found, &of_the_origin));
        found.record(&line.name(), &mut findings.records);
        all.extend(pairs);
        twice.extend(of_the_origin);
    }
    findings.tables.push(("|hit − miss| at the Collector in ms, as its proxies see it", table));
    let (found, twice) = (Apart::of(&all), Apart::of(&twice));
    found.record("collector", &mut findings.records);
    findings.records.extend(twice.measures("origin", ORIGIN_TWICE));
    findings.conclusions.push(format!("|hit − miss| over all: {found}"));
    findings.conclusions.push(format!(
        "two answers of the origin itself: {twice}; the Collector is not the cause of differences \
         up to this value"
    ));
    if !setting.full {
        let (name, seconds) = (ReplayCase::Confirmed.name(), HELD.as_secs());
        findings.conclusions.push(format!(
            "not run: {name}, because its answers become stale only after {seconds} s; --full runs \
             it"
        ));
    }
    drop(collector.stop());
    Ok(findings)
}

fn lines(setting: &CheckSetting<'_>, count: u64, authority: &str) -> Vec<Line> {
    let (mut random, mut first, mut lines) = (Random::new(setting.seed), 1, Vec::new());
    let quick = [ReplayCase::Plain, ReplayCase::Changed, ReplayCase::Unchanged];
    for case in quick.into_iter().chain(setting.full.then_some(ReplayCase::Confirmed)) {
        for (body, size) in SIZES {
            for (second, stagger) in [("at once", Duration::ZERO), ("later", LATER)] {
                let asked = asked(case, first, count, size, authority, &mut random);
                first += count;
                lines.push(Line { case, body, second, stagger, asked });
            }
        }
    }
    lines
}

fn grow_old(setting: &CheckSetting<'_>, since: Instant) -> Result<(), Failure> {
    while clock::monotonic().since(since) < HELD {
        if setting.interrupted.load(Relaxed) {
            return Err(failed("replay", "stopped by a signal"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn asked(
    case: ReplayCase,
    first: u64,
    count: u64,
    size: u64,
    authority: &str,
    random: &mut Random,
) -> Vec<Asked> {
    let authority: Arc<str> = authority.into();
    let mut one = |id: u64| {
        let (delay, lifetime) =
            (1 + random.below(10), if case == ReplayCase::Confirmed { 1 } else { 900 });
        let path = format!("/o/{id}/{size}/1?delay={delay}&max-age={lifetime}");
        let tag = match case {
            ReplayCase::Plain | ReplayCase::Confirmed => None,
            ReplayCase::Changed => Some("\"other\"".to_owned()),
            ReplayCase::Unchanged => Some(format!("\"{id}-1\"")),
        };
        let fields = tag.iter().map(|tag| ("If-None-Match", tag.as_bytes())).collect();
        let plain = Asked::get(Arc::clone(&authority), path, Duration::ZERO);
        Asked { message: Arc::new(Message { fields, ..Message::default() }), ..plain }
    };
    (first..first + count).map(&mut one).collect()
}

struct Apart {
    median: f64,
    p90: f64,
    /// The distance between the distributions of hit times and miss times. The distributions differ
    /// if the distance is at least 1.
    distance: f64,
}

impl fmt::Display for Apart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "median {:.3} ms, p90 {:.3} ms", self.median, self.p90)
    }
}

impl Apart {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length is one"
    )]
    fn of(pairs: &[[f64; 2]]) -> Self {
        let mut apart: Vec<f64> =
            pairs.iter().map(|[miss, hit]| (hit - miss).abs() / 1000.0).collect();
        apart.sort_by(f64::total_cmp);
        let at = |share: f64| {
            apart.get((apart.len().saturating_sub(1) as f64 * share) as usize).copied()
        };
        let (misses, hits): (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|&[miss, hit]| (miss, hit)).unzip();
        let distance = distribution_distance(&misses, &hits);
        Self { median: at(0.5).unwrap_or(f64::NAN), p90: at(0.9).unwrap_or(f64::NAN), distance }
    }

    fn record(&self, subject: &str, records: &mut Vec<Record>) {
        records.extend(self.measures(subject, HIT_MINUS_MISS));
        let distance = Measure::once(DISTANCE, subject, self.distance, "times");
        records.push(Record::Measure(distance));
    }

    fn measures(&self, subject: &str, [median, p90]: [&str; 2]) -> [Record; 2] {
        [(median, self.median), (p90, self.p90)]
            .map(|(name, value)| Record::Measure(Measure::once(name, subject, value, "ms")))
    }
}

//! Tests of robots (load clients that request pages) with foxy's own origin on loopback. The tests
//! cover pages, embedded objects, exchanges that end early on purpose, and counts.

use foxy_lab::load::options::{LoadOptions, Mode, Pace, Stop};
use foxy_lab::load::plan::Seen;
use foxy_lab::load::plan::{Plan, Step};
use foxy_lab::load::robots::{self, Robots};
use foxy_lab::load::run;
use foxy_lab::{ErrorCause, LoadReport, Origin, OriginOptions, Protocol};
use foxy_workload::polymix::phases::Factors;
use foxy_workload::polymix::{PolyMix4, ROBOT_CONNECTIONS};
use foxy_workload::table3::Table3;
use foxy_workload::{Model, Workload};
use std::net::Ipv4Addr;
use std::time::Duration;

fn origin(servers: u32) -> Origin {
    let options = OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 };
    Origin::start_servers(options, servers).expect("an origin")
}

/// Returns the options of clients that send requests directly to the origin, in the form for a
/// forward proxy.
fn asking(origin: &Origin, workload: Workload) -> LoadOptions {
    let mode = Mode::Forward { origin: origin.address().to_string() };
    LoadOptions { clients: 10, ..LoadOptions::new(origin.address(), mode, workload) }
}

fn polymix() -> (Workload, PolyMix4) {
    let mut workload = Workload::find("polymix-4").expect("known");
    let Model::PolyMix4(knobs) = &mut workload.model else { panic!("another model") };
    knobs.delay_scale = 10_000;
    let knobs = knobs.clone();
    (workload, knobs)
}

/// A plan in which all robots (clients) are active until this number of requests have started.
struct Until(u64);

impl Plan for Until {
    fn sections(&self) -> usize {
        2
    }

    fn step(&mut self, _elapsed: Duration, seen: &Seen) -> Option<Step> {
        let section = usize::from(seen.begun * 2 >= self.0);
        (seen.begun < self.0).then_some(Step { factors: Factors::full(1.0), section })
    }
}

fn polymix_run(origin: &Origin, protocol: Protocol, requests: u64) -> Vec<LoadReport> {
    let (workload, _) = polymix();
    let options = LoadOptions { protocol, ..asking(origin, workload) };
    let robots = Robots { count: 20, connections: ROBOT_CONNECTIONS, starts: 3000.0 };
    robots::run(&options, robots, &mut Until(requests), &mut |_| {}).expect("a run")
}

#[test]
fn table_3_asks_the_origin_once_for_each_request_and_offers_two_hits_in_five() {
    let mut workload = Workload::find("table3").expect("known");
    let Model::Table3(knobs) = &mut workload.model else { panic!("another model") };
    *knobs = Table3 { think_time: Duration::from_millis(1), ..knobs.clone() };
    let origin = origin(4);
    let options = LoadOptions {
        pace: Pace::Random { rate: 4000.0 },
        stop: Stop::Requests(2000),
        ..asking(&origin, workload)
    };
    let report = run(&options, &mut |_| {}).expect("a run");
    assert_eq!((report.answers, report.failed(), report.wrong_bytes, report.hits), (2000, 0, 0, 0));
    assert_eq!((origin.requests(), origin.body_bytes()), (2000, report.bytes));
    // 40 % of the requests repeat an object: 800 on average. The range extends four standard
    // deviations to each side.
    assert!((712..=888).contains(&report.offered.requests), "{} offered", report.offered.requests);
    assert_eq!(report.generator.late.count(), 2000);
}

#[test]
fn polymix_gets_images_with_their_pages_and_only_breaks_off_what_it_means_to() {
    for protocol in [
        Protocol::Http11 { persistent: true },
        Protocol::Http11 { persistent: false },
        Protocol::Http10 { persistent: true },
        Protocol::Http10 { persistent: false },
    ] {
        let origin = origin(1);
        let reports = polymix_run(&origin, protocol, 7500);
        let mut all = LoadReport::default();
        reports.iter().for_each(|report| all.merge(report));
        for cause in ErrorCause::ALL {
            assert_eq!(all.errors[cause as usize], 0, "{protocol:?}: {}", cause.name());
        }
        assert!(reports.iter().all(|report| report.answers > 0), "both sections");
        let ended = all.answers + all.broken_off;
        assert!(ended >= 7500, "{protocol:?}: {ended} requests");
        // On average, about twelve exchanges end early on purpose. The probability of none is 1 in
        // 100,000.
        assert!((1..=45).contains(&all.broken_off), "{protocol:?}: {} broken off", all.broken_off);
        // Without a proxy, there are no hits. The workload aims at 55 % repeated GETs. There are
        // fewer, because each of the 525 servers has only five pages and documents.
        let offered = all.offered.requests * 100 / all.plain.requests;
        assert!(all.hits == 0 && (25..=45).contains(&offered), "{protocol:?}: {offered} % offered");
    }
}

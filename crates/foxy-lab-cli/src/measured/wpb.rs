//! Measures Figures 2, 5, 7, 9 and 11 of paper 003 (docs/figures.md): the Wisconsin Proxy Benchmark
//! on the reference architectures. The paper names a cause for the result of each architecture. So
//! each architecture also runs without this cause. The servers delay each answer by a thirtieth of
//! the paper's time.

mod pictures;
mod rows;

use super::Context;
use crate::folder::PREFIX;
use foxy_cli::temporary::Temporary;
use foxy_lab::load::wpb::{self, CLIENTS_PER_SERVER, Part, PointReport, Route, WpbRun};
use foxy_lab::simulation::figures::Figure;
use foxy_lab::{Origin, OriginOptions};
use foxy_report::figure::FigureRow;
use foxy_workload::wpb::Wpb;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(100);
/// At this scale or above (1 is the scale of the benchmark's paper), clients send as many requests
/// as in the benchmark. At a smaller scale, they send a tenth.
const FULL: f64 = 0.5;

type Case = (&'static str, &'static [&'static str], &'static [u32]);

const CASES: [Case; 7] = [
    ("CERN", &["process-per-request"], &[8, 32, 64, 96]),
    ("CERN without scan", &["process-per-request", "--no-scan"], &[8, 32, 64, 96]),
    ("Apache", &["prefork"], &[8, 48, 88]),
    ("Apache in one phase", &["prefork", "--one-phase"], &[8, 48, 88]),
    ("Proxy N", &["fixed-pool"], &[8, 32, 48, 56, 80, 88]),
    ("Proxy N with 64", &["fixed-pool", "--pool", "64"], &[8, 48, 56, 80, 88]),
    ("Squid", &["event-loop"], &[8, 48, 96]),
];

struct MeasuredWpb {
    name: &'static str,
    runs: Vec<Vec<PointReport>>,
}

pub fn figures(context: &Context) -> Figure {
    let measured: Result<Vec<MeasuredWpb>, String> =
        CASES.iter().map(|case| measure(context, case)).collect();
    let rows = match &measured {
        Ok(all) => rows::rows(all),
        Err(why) => {
            vec![FigureRow::impossible("003-fig2", "the reference architectures", "", why)]
        }
    };
    let pictures = measured.unwrap_or_default().iter().flat_map(pictures::pictures).collect();
    Figure {
        rows: rows.into_iter().map(|row| row.at_scale(wpb::scale(LATENCY))).collect(),
        pictures,
    }
}

fn measure(context: &Context, &(name, arguments, clients): &Case) -> Result<MeasuredWpb, String> {
    let mut runs = Vec::new();
    for &seed in &context.lab.extent().seeds {
        let mut points = Vec::new();
        for &clients in clients {
            let point = point(context, arguments, clients, seed);
            points.push(point.map_err(|error| format!("{name}: {error}"))?);
            if context.watch.stop.load(Relaxed) {
                return Err("stopped".into());
            }
        }
        runs.push(points);
    }
    Ok(MeasuredWpb { name, runs })
}

fn point(
    context: &Context,
    arguments: &[&str],
    clients: u32,
    seed: u64,
) -> std::io::Result<PointReport> {
    let store =
        Temporary::new(context.folder.join(format!("{PREFIX}{}-reference", std::process::id())));
    let proxy = Reference::start(store.path(), arguments)?;
    let servers = clients.div_ceil(CLIENTS_PER_SERVER);
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let origin = Origin::start_servers(OriginOptions { listen, threads: 1 }, servers)?;
    let whole = Wpb::new(servers);
    let requests =
        if context.lab.extent().scale < FULL { whole.requests / 10 } else { whole.requests };
    let run = WpbRun {
        target: proxy.address,
        route: Route::Forward { servers: origin.servers().to_vec() },
        clients,
        knobs: Wpb { requests, seed, ..whole },
        latency: LATENCY,
        slow: None,
        time_limit: Duration::from_secs(120),
        interrupted: Arc::clone(&context.watch.stop),
    };
    wpb::run(&run, &mut |_| {}, &mut |_| {})
}

struct Reference {
    child: Child,
    address: SocketAddr,
}

impl Reference {
    fn start(store: &Path, arguments: &[&str]) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("reference")
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--store"])
            .arg(store);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.trim_end().trim_end_matches('/').parse().ok());
        let mut reference = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) };
        reference.address =
            address.ok_or_else(|| std::io::Error::other("the proxy did not start"))?;
        Ok(reference)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

impl MeasuredWpb {
    fn values(&self, of: impl Fn(&[PointReport]) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(|points| of(points)).collect()
    }

    fn over_control(&self, part: Part, clients: u32) -> Vec<f64> {
        self.values(|points| {
            let point = at(points, clients)?;
            Some(point.part(part).mean()? / point.part(Part::Control).mean()?)
        })
    }
}

fn at(points: &[PointReport], clients: u32) -> Option<&PointReport> {
    points.iter().find(|point| point.clients == clients)
}

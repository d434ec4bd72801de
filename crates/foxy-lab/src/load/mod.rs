//! Load tests of a proxy. Clients send the requests of a workload, foxy's own origin answers, and
//! the clients check every answer. The peak finder (module `peak`) and the Wisconsin Proxy
//! Benchmark (module `wpb`) build on this module.

mod client;
mod clients;
pub mod fault;
mod judge;
pub mod name_server;
pub mod options;
pub mod origin;
pub mod outcome;
pub mod peak;
pub mod plan;
pub mod robots;
pub mod wpb;

use foxy_workload::{Model, Objects, Popularity, Workload};
use options::{LoadOptions, Pace, Stop};
use outcome::LoadReport;
use plan::Steady;
use robots::Robots;
use std::io;

/// Runs a load to its end. Calls `progress` with the number of started requests. The report counts
/// failed requests; they are not an error.
pub fn run(options: &LoadOptions, progress: &mut dyn FnMut(u64)) -> io::Result<LoadReport> {
    let Pace::Random { rate } = options.pace else { return clients::run(options, progress) };
    let robots = Robots { count: options.clients, connections: usize::MAX, starts: rate };
    let mut steady = Steady::new(options.stop);
    Ok(robots::run(options, robots, &mut steady, progress)?.pop().unwrap_or_default())
}

/// Requests each object of the workload once to fill the proxy's cache. Does nothing if the
/// workload has no warm-up.
pub fn warm_up(options: &LoadOptions, progress: &mut dyn FnMut(u64)) -> io::Result<LoadReport> {
    let Some(objects) = options.workload.warm_up() else { return Ok(LoadReport::default()) };
    let stop = Stop::Requests(objects.objects);
    let workload = Workload { model: Model::Objects(objects), ..options.workload.clone() };
    run(&LoadOptions { workload, stop, pace: Pace::Closed, ..options.clone() }, progress)
}

/// Returns the options of a second run, which requests again the last `newest` objects of an
/// earlier run. These objects should still be in the cache.
pub fn newest_again(options: &LoadOptions, report: &LoadReport, newest: u64) -> LoadOptions {
    let begun = report.begun();
    let count = newest.min(begun);
    let popularity = Popularity::Window { first: begun - count };
    let newest = |objects| Objects { objects: count, popularity, warm_up: false, ..objects };
    let workload = options.workload.clone().with_objects(newest);
    LoadOptions { workload, stop: Stop::Requests(count), pace: Pace::Closed, ..options.clone() }
}

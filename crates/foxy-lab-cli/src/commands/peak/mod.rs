//! `foxy peak`: finds the highest load at which response times stay within a given range.
//! Meanwhile, the workload fills the cache twice, as in appendix D of *Squid: The Definitive Guide*
//! (paper 000 in docs/figures.md).

mod disk;
mod report;

use super::load::arguments::{whom, wire};
use super::load::{failed, provide_descriptors, scale, start_origin};
use crate::arguments::option;
use crate::experiment::{Experiment, Flag, flags};
use crate::peers::single::{self, Single};
use crate::{origin, workloads};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::signals::interrupted;
use foxy_cli::terminal::{self, Level};
use foxy_lab::load::options::LoadOptions;
use foxy_lab::load::peak::law::Law;
use foxy_lab::load::peak::{Finder, PeakPlan, Search, Window};
use foxy_lab::load::robots::{self, Robots};
use foxy_report::Record;
use foxy_workload::polymix::{PolyMix4, ROBOT_CONNECTIONS, ROBOT_RATE, requests_per_start};
use foxy_workload::{Model, Workload};
use report::PeakOutcome;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const SAMPLE: Duration = Duration::from_secs(60);
const RESPONSES_IN_SAMPLE: u32 = 3;

pub fn command() -> Command {
    Command::new("peak")
        .about(
            "Find the load at which a proxy's response time stays within a given range while its \
             cache is filled twice",
        )
        .long_about(
            "Find the load at which a proxy's mean response time stays within a window while the \
             proxy's cache is filled twice. The window is a range of times that --low and --high \
             or the workload give. The command measures in samples, spans of time with a constant \
             load. If a sample's mean response time was below the window, the next load is 5 % \
             higher. If the mean was above the window, the next load is 5 % lower. Samples count \
             for the result while the bytes written to the cache grow from 1.5 to 2 times its \
             size. The result is the mean load of these samples.\n\nThree values of the workload \
             file matter. fill-rate is the first load. peak-rate is the highest load that the \
             simulated clients can send. cache-size divided by time-scale must be the size of the \
             proxy's cache. --time-scale divides the length of samples, the time between changes \
             of an object, and the cache size. --delay-scale divides the servers' think time and \
             the window.",
        )
        .args(whom())
        .mut_arg("proxy", |proxy| proxy.required(false).required_unless_present("start"))
        .args(single::arguments(&["proxy", "origin", "reverse", "tls", "pid"]))
        .args(search_arguments())
        .args(robot_arguments())
        .args(flags([Flag::Seed, Flag::Json, Flag::Html]))
}

fn search_arguments() -> Vec<Arg> {
    let scale = || value_parser!(u32).range(1..=65_535);
    let seconds = || value_parser!(f64);
    vec![
        workloads::argument().default_value("polymix-4"),
        option(
            "cache-size",
            "SIZE",
            "Size of the proxy's cache at full scale [default: cache-size of the workload]",
        )
        .value_parser(value_parser!(ByteSize)),
        option(
            "first-rate",
            "N",
            "Requests per second of the first sample [default: fill-rate of the workload]",
        )
        .value_parser(seconds()),
        option(
            "hold",
            "FILLS",
            "Keep the first load until the cache has been filled this number of times, because an \
             empty cache has few hits [default: 0]",
        )
        .value_parser(seconds()),
        option(
            "time-scale",
            "N",
            "Divisor of sample length, time between changes of an object, and cache size [default: \
             as in the workload]",
        )
        .value_parser(scale()),
        option(
            "delay-scale",
            "N",
            "Divisor of think time and window [default: as in the workload]",
        )
        .value_parser(scale()),
        option(
            "sample",
            "SECONDS",
            "Duration of a sample [default: 60 / time scale, at least 3 response times]",
        )
        .value_parser(seconds()),
        option(
            "low",
            "SECONDS",
            "Raise the load below this mean response time [default: 1.50 / delay scale]",
        )
        .value_parser(seconds()),
        option(
            "high",
            "SECONDS",
            "Lower the load above this mean response time [default: 1.75 / delay scale]",
        )
        .value_parser(seconds()),
        option(
            "limit",
            "SECONDS",
            "Stop after this time, even if the cache is not yet filled [default: unlimited]",
        )
        .value_parser(seconds()),
    ]
}

fn robot_arguments() -> [Arg; 3] {
    let rate = || value_parser!(f64);
    [
        option(
            "most-rate",
            "N",
            "Maximum requests per second, which sets the number of simulated clients [default: \
             peak-rate of the workload]",
        )
        .value_parser(rate()),
        option(
            "robot-rate",
            "N",
            "Requests per second of one simulated client (robot). With delay scale 5, a robot \
             of 2 is as busy as a robot of 0.4 without [default: 0.4]",
        )
        .value_parser(rate()),
        option(
            "servers",
            "N",
            "Number of origins. With a small cache, few origins have as many documents each as \
             500 origins have with a large cache [default: 500 + a tenth of most-rate / 0.4]",
        )
        .value_parser(value_parser!(u32).range(1..=10_000)),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (workload, knobs) = workload(matches)?;
    let search = search(matches, &knobs)?;
    let robots = robots(matches, &search)?;
    provide_descriptors(matches, &workload, Some(robots.count))?;
    let interrupted = interrupted()?;
    let (origin, started) = if matches.contains_id("start") {
        let (origin, cache) = (origin::start("peak", 1)?, ByteSize(search.cache_size));
        let single =
            Single::start(matches, origin.address(), cache, workload.name.as_str(), &interrupted)?;
        (Some(origin), single)
    } else {
        (start_origin(matches, &workload)?, None)
    };
    let (target, is_reverse) = match &started {
        Some(single) => (single.address(), true),
        None => (*matches.get_one("proxy").expect("required"), matches.get_flag("reverse")),
    };
    let options = wire(matches, target, is_reverse, workload, origin.as_ref())?;
    let options = LoadOptions { interrupted: Arc::clone(&interrupted), ..options };
    let limit = positive(matches, "limit")?.map_or(Duration::MAX, Duration::from_secs_f64);
    let mut started = started;
    let mut moments = Vec::new();
    let mut show = |window: &Window| {
        moments.extend(started.as_mut().and_then(Single::moment).map(|moment| (*window, moment)));
        terminal::report(Level::Info, &report::line(window));
        !interrupted.load(Relaxed)
    };
    let mut plan = PeakPlan { finder: Finder::new(search), limit, watch: &mut show };
    let sections = robots::run(&options, robots, &mut plan, &mut |_| {}).map_err(failed)?;
    let (finder, report) = (plan.finder, &sections[0]);
    let given = matches.get_one::<String>("subject").expect("has a default").clone();
    let subject = started.as_ref().map_or(given, |single| single.name().to_owned());
    let (mut more, lost) =
        started.map_or_else(Default::default, |single| single.end(report.asked()));
    more.extend(disk::records(&subject, &moments));
    more.extend(
        lost.iter().map(|why| Record::FailedRun { subject: subject.clone(), reason: why.clone() }),
    );
    let experiment = Experiment::new("peak", matches).scaled(scale(&options));
    let outcome = PeakOutcome {
        subject: &subject,
        search: &search,
        finder: &finder,
        options: &options,
        report,
    };
    let written = outcome.write(experiment, more);
    lost.map_or(written, |why| {
        Err(Failure::Failed(format!("peak: {why}; the results so far are above")))
    })
}

fn robots(matches: &ArgMatches, search: &Search) -> Result<Robots, Failure> {
    let rate = positive(matches, "robot-rate")?.unwrap_or(ROBOT_RATE);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are small")]
    let count = (search.most_load / rate).ceil() as usize;
    Ok(Robots {
        count: count.max(1),
        connections: ROBOT_CONNECTIONS,
        starts: search.most_load / requests_per_start(),
    })
}

fn workload(matches: &ArgMatches) -> Result<(Workload, PolyMix4), Failure> {
    let mut workload = workloads::named(matches)?;
    let Model::PolyMix4(knobs) = &mut workload.model else {
        let text = format!(
            "--workload {}: the peak is searched with the model polymix-4/2; name such a file",
            workload.name
        );
        return Err(Failure::Unusable(text));
    };
    if let Some(&ByteSize(size)) = matches.get_one("cache-size") {
        if size == 0 {
            return Err(Failure::Unusable(
                "--cache-size: 0 is not allowed; give the size of the proxy's cache".into(),
            ));
        }
        knobs.cache_size = size;
    }
    if let Some(rate) = positive(matches, "first-rate")? {
        knobs.fill_rate = rate;
    }
    if let Some(rate) = positive(matches, "most-rate")? {
        knobs.peak_rate = rate;
    }
    if let Some(&scale) = matches.get_one("time-scale") {
        knobs.time_scale = scale;
    }
    if let Some(&scale) = matches.get_one("delay-scale") {
        knobs.delay_scale = scale;
    }
    knobs.servers = matches.get_one("servers").copied();
    if knobs.fill_rate > knobs.peak_rate {
        let (first, most) = (knobs.fill_rate, knobs.peak_rate);
        return Err(Failure::Unusable(format!(
            "--first-rate {first}: is above --most-rate {most}, the most that the robots can \
             send; lower --first-rate or raise --most-rate"
        )));
    }
    let knobs = knobs.clone();
    Ok((workload, knobs))
}

fn search(matches: &ArgMatches, knobs: &PolyMix4) -> Result<Search, Failure> {
    let preset = Law::scaled(knobs.delay_scale);
    let low = positive(matches, "low")?.map_or(preset.low, Duration::from_secs_f64);
    let high = positive(matches, "high")?.map_or(preset.high, Duration::from_secs_f64);
    if low > high {
        return Err(Failure::Unusable(
            "--low: is above --high; lower --low or raise --high".into(),
        ));
    }
    let shortest = high * RESPONSES_IN_SAMPLE;
    let window = positive(matches, "sample")?
        .map_or((SAMPLE / knobs.time_scale).max(shortest), Duration::from_secs_f64);
    Ok(Search {
        law: Law { low, high },
        window,
        cache_size: knobs.fill_bytes() / 2,
        first_load: knobs.fill_rate,
        hold: positive(matches, "hold")?.unwrap_or(0.0),
        most_load: knobs.peak_rate,
    })
}

fn positive(matches: &ArgMatches, name: &str) -> Result<Option<f64>, Failure> {
    match matches.get_one::<f64>(name) {
        Some(&value) if !(value > 0.0 && value < 1e9) => Err(Failure::Unusable(format!(
            "--{name}: {value} is not allowed; give a number above 0"
        ))),
        value => Ok(value.copied()),
    }
}

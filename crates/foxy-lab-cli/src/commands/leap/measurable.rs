//! Lists the measures that `foxy leap` can produce with the given arguments.

use super::arguments::{NamedProxy, has_passthrough};
use super::secure;
use super::started::Chosen;
use crate::peers::up::MEASURES;
use clap::ArgMatches;
use foxy_lab::leap::collector::CollectorReport;
use foxy_lab::leap::{self, PASSTHROUGH};
use foxy_report::Measurable;

const DIRECT: &str = "direct";

pub fn of(matches: &ArgMatches, proxies: &[NamedProxy], chosen: &[Chosen]) -> Vec<Measurable> {
    let is_direct = matches.contains_id("direct")
        || !(matches.contains_id("origin") || matches.get_flag("live"));
    let names = proxies.iter().map(|proxy| proxy.name.as_str());
    let paths: Vec<&str> = is_direct.then_some(DIRECT).into_iter().chain(names).collect();
    let mut all =
        leap::measurable(&paths, matches.contains_id("listen"), secure::connections(matches));
    let collects = matches.contains_id("collector") || matches.contains_id("start");
    if collects {
        all.extend(CollectorReport::measurable(&paths));
    }
    // The bytes that each path (proxy or origin) fetched are counted only if this command starts
    // the origin or the Collector (common parent proxy).
    if collects || !["direct", "origin"].iter().any(|given| matches.contains_id(given)) {
        let base = if has_passthrough(matches) { vec![PASSTHROUGH, DIRECT] } else { vec![DIRECT] };
        let of_path = |path: &&str| {
            let fetched = Measurable::of(path, &["bandwidth_bytes", "bandwidth_share_of_{base}"]);
            let fetched = fetched.choosing("base", base.iter().copied());
            if collects { fetched.and(&["prefetches"]) } else { fetched }
        };
        all.extend(paths.iter().map(of_path));
        all.push(Measurable::of("leap", &["unasked_answers", "unasked_bytes"]));
    }
    all.extend(chosen.iter().map(|chosen| Measurable::of(&chosen.name, &MEASURES)));
    all
}

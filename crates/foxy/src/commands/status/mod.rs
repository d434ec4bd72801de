//! `foxy status`: shows the state of a running foxy on one screen. The command reads foxy's metrics
//! twice, and computes rates from the difference.

mod scrape;
mod text;

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{Arg, ArgMatches, Command};
use foxy_base::clock;
use foxy_cli::json_argument;
use foxy_cli::units::parse_positive_duration;
use foxy_proxy::core::metrics::request_metrics::RequestOutcome;
use scrape::Scrape;
use serde_json::{Value, json};
use std::time::Duration;

const RESPONSES: &str = "foxy_proxy_responses_total";
const DURATIONS: &str = "foxy_proxy_request_duration_seconds";

pub fn command() -> Command {
    let interval = Arg::new("interval").long("interval").value_name("TIME").default_value("1s");
    let command = Command::new("status")
        .about("Show requests, hits, latencies, memory, disks and errors of a running foxy")
        .arg(
            interval
                .value_parser(parse_positive_duration)
                .help("Time over which the rates are measured"),
        )
        .arg(json_argument());
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let client = AdminClient::new(matches)?;
    let interval = *matches.get_one::<Duration>("interval").expect("has a default");
    let look = || Ok::<_, Failure>(Scrape::read(&client.ask("GET", "/metrics", "")?));
    let (begun, first) = (clock::monotonic(), look()?);
    std::thread::sleep(interval);
    let (ended, last) = (clock::monotonic(), look()?);
    let troubles = client.troubles()?;
    let status = status(&first, &last, ended.since(begun), &troubles);
    let json = matches.get_flag("json");
    terminal::print(&if json { status.to_string() } else { text::of(&status) });
    Ok(())
}

/// Describes a running foxy as JSON. `first` and `last` are its metrics at the beginning and the
/// end of an interval.
fn status(first: &Scrape, last: &Scrape, interval: Duration, troubles: &[String]) -> Value {
    let (recent, seconds) = (last.since(first), interval.as_secs_f64());
    let started = last.sum("process_start_time_seconds", &[]);
    let counted = |name: &str, labels: &[(&str, &str)]| {
        let per_second = recent.sum(name, labels) / seconds;
        json!({ "total": last.sum(name, labels), "per_second": per_second })
    };
    let both =
        |value: fn(&Scrape) -> Option<f64>| json!({ "now": value(&recent), "total": value(last) });
    json!({
        "version": last.labels("foxy_build_info", "version").pop_first(),
        "uptime_seconds": clock::wall().seconds() as f64 - started,
        "ok": troubles.is_empty(),
        "troubles": troubles,
        "interval_seconds": seconds,
        "requests": counted(RESPONSES, &[]),
        "hit_ratio": both(hit_ratio),
        "saved_ratio": both(saved_ratio),
        "sent_bytes": counted("foxy_proxy_client_sent_bytes_total", &[]),
        "outcomes": outcomes(last, &recent, seconds),
        "connections": last.sum("foxy_proxy_connections_open", &[]),
        "memory": {
            "responses_bytes": last.sum("foxy_proxy_memory_bytes", &[]),
            "entries": last.sum("foxy_proxy_memory_entries", &[]),
            "index_bytes": last.sum("foxy_store_index_bytes", &[]),
            "process_bytes": last.sum("process_resident_memory_bytes", &[]),
        },
        "processors": recent.sum("process_cpu_seconds_total", &[]) / seconds,
        "stores": stores(last, &recent, seconds),
        "errors": errors(last, &recent, seconds),
    })
}

fn hit_ratio(scrape: &Scrape) -> Option<f64> {
    let count = |counts: fn(RequestOutcome) -> bool| -> f64 {
        let outcomes = RequestOutcome::ALL.iter().filter(|outcome| counts(**outcome));
        outcomes.map(|outcome| scrape.sum(RESPONSES, &[("outcome", outcome.name())])).sum()
    };
    let all = count(RequestOutcome::is_cacheable);
    (all > 0.0).then(|| count(RequestOutcome::is_hit) / all)
}

/// Returns the share of origin traffic saved. The help of the counters has the definition.
fn saved_ratio(scrape: &Scrape) -> Option<f64> {
    let sent = scrape.sum("foxy_proxy_client_cacheable_bytes_total", &[]);
    let received = scrape.sum("foxy_proxy_origin_cacheable_bytes_total", &[]);
    (sent > 0.0).then(|| 1.0 - received / sent)
}

fn outcomes(last: &Scrape, recent: &Scrape, seconds: f64) -> Value {
    let outcome = |name: &String| {
        let labels = [("outcome", name.as_str())];
        // If the interval has no request of this outcome, the quantiles cover the time since the
        // start of foxy.
        let count = recent.sum(RESPONSES, &labels);
        let quantile = |share| {
            let from = if count > 0.0 { recent } else { last };
            from.quantile(DURATIONS, &labels, share)
        };
        json!({
            "outcome": name,
            "total": last.sum(RESPONSES, &labels),
            "per_second": count / seconds,
            "median_seconds": quantile(0.5),
            "p99_seconds": quantile(0.99),
        })
    };
    last.labels(RESPONSES, "outcome").iter().map(outcome).collect()
}

fn stores(last: &Scrape, recent: &Scrape, seconds: f64) -> Value {
    let store = |folder: &String| {
        let labels = [("store", folder.as_str())];
        let now = |name: &str| last.sum(&format!("foxy_store_{name}"), &labels);
        let rate = |name: &str| recent.sum(&format!("foxy_store_{name}"), &labels) / seconds;
        json!({
            "folder": folder,
            "used_bytes": now("live_bytes"),
            "capacity_bytes": now("capacity_bytes"),
            "records": now("records"),
            "read_bytes_per_second": rate("read_bytes_total"),
            "written_bytes_per_second": rate("written_bytes_total"),
            "disk_errors": now("device_errors_total"),
            "out_of_use": now("out_of_use") > 0.0,
        })
    };
    last.labels("foxy_store_records", "store").iter().map(store).collect()
}

/// Lists foxy's own error answers by reason, the most frequent of the interval first.
fn errors(last: &Scrape, recent: &Scrape, seconds: f64) -> Value {
    const ERRORS: &str = "foxy_proxy_errors_total";
    let reasons = last.labels(ERRORS, "reason").into_iter().map(|reason| {
        let labels = [("reason", reason.as_str())];
        (recent.sum(ERRORS, &labels) / seconds, last.sum(ERRORS, &labels), reason)
    });
    let mut all: Vec<_> = reasons.collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let error =
        |(rate, total, reason)| json!({ "reason": reason, "total": total, "per_second": rate });
    all.into_iter().map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "foxy_build_info{version=\"1.2.3\"} 1\n\
        foxy_proxy_responses_total{outcome=\"miss\",class=\"2xx\"} 10\n";
    const LAST: &str = "foxy_build_info{version=\"1.2.3\"} 1\n\
        foxy_proxy_responses_total{outcome=\"memory-hit\",class=\"2xx\"} 30\n\
        foxy_proxy_responses_total{outcome=\"miss\",class=\"2xx\"} 20\n\
        foxy_proxy_request_duration_seconds_bucket{outcome=\"memory-hit\",le=\"0.002\"} 30\n\
        foxy_proxy_request_duration_seconds_bucket{outcome=\"memory-hit\",le=\"+Inf\"} 30\n\
        foxy_proxy_client_sent_bytes_total 9000\nfoxy_proxy_origin_received_bytes_total 1100\n\
        foxy_proxy_client_cacheable_bytes_total 4000\n\
        foxy_proxy_origin_cacheable_bytes_total 1000\n\
        foxy_proxy_errors_total{reason=\"loop\"} 2\n\
        foxy_store_records{store=\"/s\"} 7\nfoxy_store_live_bytes{store=\"/s\"} 1048576\n\
        foxy_store_capacity_bytes{store=\"/s\"} 4194304\nfoxy_store_out_of_use{store=\"/s\"} 1\n";

    fn found() -> Value {
        let (first, last) = (Scrape::read(FIRST), Scrape::read(LAST));
        status(&first, &last, Duration::from_secs(2), &["store /s: it fails".into()])
    }

    #[test]
    fn rates_and_ratios_follow_from_two_looks() {
        let found = found();
        assert_eq!(found["requests"], json!({ "total": 50.0, "per_second": 20.0 }));
        assert_eq!(found["hit_ratio"], json!({ "now": 0.75, "total": 0.6 }));
        assert_eq!(found["saved_ratio"]["now"], 0.75);
        assert_eq!(found["outcomes"][0]["median_seconds"], 0.001);
        assert_eq!(found["outcomes"][1]["per_second"], 5.0);
        assert_eq!(
            found["errors"][0],
            json!({ "reason": "loop", "total": 2.0, "per_second": 1.0 })
        );
    }

    #[test]
    fn the_screen_is_80_columns_wide_and_names_each_fact() {
        let text = text::of(&found());
        for part in [
            "foxy 1.2.3",
            "1 trouble",
            "store /s: it fails",
            "75.0 %",
            "memory-hit",
            "/s",
            "out of use",
            "loop",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
}
